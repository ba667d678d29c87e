"""A state whose ids were damaged, by an editor or a script: one line says so, whatever is done with the
entry, and nothing is believed of the object."""

from collections.abc import Callable
from typing import Any

import pytest

from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.errors import ResourceError
from tests.provider.processes import Entry, Process, provider_process
from tests.provider.test_wrong_base_url import GIVEN, created
from tests.support.account import Account

ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
DAMAGES: dict[str, Callable[[str], str]] = {
    "empty": lambda id: "",
    "order": lambda id: "order:abc",
    "pending": lambda id: "pending:abc/1",
    "other script": lambda id: id.translate(ARABIC),
    "other script after a prefix": lambda id: f"order:{id}".translate(ARABIC),
    "zero": lambda id: "0",
    "superscript": lambda id: "²",
    "negative": lambda id: f"-{id}",
    "space": lambda id: f"{id} ",
    "line": lambda id: f"{id}\n",
    "too large": lambda id: "9" * 30,
    "float": lambda id: "20001.0",
    "slashes": lambda id: "1/2/3",
    "slash": lambda id: f"{id.partition('/')[0]}/",
    "null": lambda id: "null",
}
CHANGES: dict[str, dict[str, Any]] = {
    "server": {"notes": "x"},
    "server_ip": {"adoptId": "1"},
    "ptr": {"domain": "web.example.com"},
    "domain": {"autoRenew": False},
    "ssh_key": {"name": "you"},
    "webhook_subscription": {"description": "x"},
}


def read(process: Process, kind: str, entry: Entry) -> object:
    return process.of(kind).read(entry.id, entry.outputs, entry.inputs)


def diff(process: Process, kind: str, entry: Entry) -> object:
    return process.of(kind).diff(entry.id, entry.outputs, entry.inputs | CHANGES[kind])


def preview(process: Process, kind: str, entry: Entry) -> object:
    return process.of(kind).preview_update(entry.id, entry.outputs, entry.inputs | CHANGES[kind])


def update(process: Process, kind: str, entry: Entry) -> object:
    return process.of(kind).update(entry.id, entry.outputs, entry.inputs | CHANGES[kind])


def delete(process: Process, kind: str, entry: Entry) -> None:
    process.of(kind).delete(entry.id, entry.outputs)


def import_(process: Process, kind: str, entry: Entry) -> object:
    return process.of(kind).read(entry.id, {}, {})


def test_every_resource_is_tried() -> None:
    assert set(CHANGES) == set(GIVEN) == set(RESOURCES)


@pytest.mark.parametrize("kind", GIVEN)
def test_a_damaged_id_is_one_line_and_nothing_is_done(account: Account, kind: str) -> None:
    entry = created(account, kind)
    before = account.control("GET", "/objects"), account.ledger()
    for name, damage in DAMAGES.items():
        damaged = Entry(damage(entry.id), {**entry.outputs, "id": damage(entry.id)}, entry.inputs)
        for act in (read, diff, preview, update, delete, import_):
            process = provider_process(account)
            with pytest.raises(ResourceError) as caught:
                act(process, kind, damaged)
            line = str(caught.value)
            named = "web: " if kind == "server" else "it: "
            assert line.startswith("" if act is import_ else named), (name, act, line)
            assert f"{RESOURCES[kind].title}: " in line, (name, act, line)
            assert "is not an id: an id is " in line, (name, act, line)
            step = (
                "correct the id" if act is import_ else "export the state (pulumi stack export --file s.json)"
            )
            assert line.count("Next: ") == 1, (name, act, line)
            assert f"nothing was done. Next: {step}" in line, (name, act, line)
            assert len(line.splitlines()) == 1, (name, act, line)
            assert not [told for told in process.lines if "warning" in told], (name, act, process.lines)
    assert (account.control("GET", "/objects"), account.ledger()) == before
    provider_process(account).delete(kind, entry)


@pytest.mark.parametrize("kind", GIVEN)
def test_an_id_that_a_test_key_made_is_none_of_them(account: Account, kind: str) -> None:
    entry = created(account, kind, apiKey=account.test_key)
    process = provider_process(account, apiKey=account.test_key)
    assert read(process, kind, entry)
    diff(process, kind, entry)
    delete(process, kind, entry)
