"""Resources that an alias renames, and renames that are taken back. Every test ends by asking the account."""

import re
from dataclasses import replace
from typing import Any

import pytest

from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.names import DECLARED, IDENTITY
from pulumi_hosting.session.errors import ResourceError
from tests.provider.processes import WEB, Entry, Process, provider_process
from tests.support.account import Account

OLD, NEW = {**WEB, "name": "e-old"}, {**WEB, "name": "e-new"}
ALIAS = 'opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(name="e-new")])'


def updated(process: Process, name: str, given: dict[str, Any], entry: Entry) -> Entry:
    """The entry after an update that declares it under this name, with an alias."""
    inputs = process.check("server", name, given, entry.inputs)
    assert process.of("server").diff(entry.id, entry.outputs, inputs).replaces == ()
    return Entry(entry.id, process.of("server").update(entry.id, entry.outputs, inputs), inputs)


def renamed(account: Account) -> Entry:
    """The server of ``e-old``, which an alias made ``e-new``."""
    old = provider_process(account).create("server", "e-old", OLD)
    return updated(provider_process(account), "e-new", NEW, old)


def native(process: Process, name: str) -> Adapter:
    return replace(process.of("server", native=True), urn=f"urn:pulumi:dev::t::hosting:index:Server::{name}")


def refusal(process: Process, name: str, given: dict[str, Any]) -> str:
    _, failures = process.of("server").check({}, {**given, IDENTITY: f"pulumi:t/dev/server/{name}"})
    return failures[""]


def test_a_rename_that_is_taken_back_is_told_the_alias_first(account: Account) -> None:
    entry = renamed(account)
    process = provider_process(account)
    assert refusal(process, "e-old", OLD) == (
        f"server {entry.id} carries this resource's ownership tag and is named 'e-new', not 'e-old'; nothing "
        f"was ordered. Next: if this resource was renamed from 'e-new', add {ALIAS}; else set "
        f"adopt_id={entry.id} to take it over, or order_attempt=1 to order another one"
    )
    back = updated(process, "e-old", OLD, entry)
    assert (back.id, back.outputs["name"]) == (entry.id, "e-old")
    assert DECLARED not in back.outputs
    assert account.living_ids == [entry.id]
    assert account.moved() == 5


@pytest.mark.parametrize("form", ["dynamic", "native"])
def test_an_adoption_after_a_rename_that_is_taken_back_keeps_the_server(account: Account, form: str) -> None:
    """It is the same whether the server carries this resource's tag or another's."""
    entry = renamed(account)
    process = provider_process(account)
    inputs = process.check("server", "e-old", {**OLD, "adoptId": entry.id})
    by = {
        name: native(process, name) if form == "native" else process.of("server")
        for name in ("e-old", "e-new")
    }
    id, outputs = by["e-old"].create(inputs)
    by["e-new"].delete(entry.id, entry.outputs)
    assert any(
        f"e-new: warning: server {id} stays: another resource of this stack has it" in line
        for line in process.lines
    )
    assert account.living_ids == [id] == [entry.id]
    assert account.moved() == 5
    provider_process(account).delete("server", Entry(id, outputs, inputs))
    assert account.living_ids == []


def test_a_refreshed_server_of_another_name_is_not_adopted_and_the_alias_is_named(account: Account) -> None:
    """The advice must not be to leave adopt_id out: that orders another server and deletes this one."""
    process = provider_process(account)
    entry = process.refresh("server", renamed(account))
    for name in ("e-old", "other"):
        assert re.fullmatch(
            r"adopt_id: another declaration has server 20001 already; nothing was changed\. Next: if "
            r"this resource was renamed from 'e-new', add .*; else correct adopt_id",
            process.refused("server", name, {**OLD, "adoptId": entry.id}),
        )
    assert account.living_ids == [entry.id]
    assert account.moved() == 5


def test_a_replacement_on_demand_that_adopts_is_told_the_run_that_tidies_up(account: Account) -> None:
    web = provider_process(account).create("server", "web", WEB)
    given = {**WEB, "adoptId": web.id}
    forced = provider_process(account)  # no difference is asked for
    found = forced.create("server", "web", given)
    with pytest.raises(
        ResourceError,
        match=r"server 20001 was not replaced: adopt_id names it, so the creation took the same one over; "
        r"nothing was changed\. Next: pulumi up, which removes the older of the two entries from the state "
        r"and keeps the server$",
    ):
        forced.delete("server", web)
    later = provider_process(account)
    checked = later.check("server", "web", given, found.inputs)
    assert not later.of("server").diff(found.id, found.outputs, checked).changes
    later.delete("server", web)
    assert account.living_ids == [found.id] == [web.id]
    assert account.moved() == 5


def test_a_renamed_resource_is_announced_under_its_new_name(account: Account) -> None:
    entry = renamed(account)
    assert entry.outputs[IDENTITY] == "pulumi:t/dev/server/e-old"
    process = provider_process(account)
    given = {**NEW, "os": "ubuntu-24.04", "rebuild": "reinstall"}
    inputs = process.check("server", "e-new", given, entry.inputs)
    process.of("server").diff(entry.id, entry.outputs, inputs)
    process.delete("server", entry)
    assert process.lines
    assert {line.partition(":")[0] for line in process.lines} == {"e-new"}
    assert account.living_ids == []


@pytest.mark.parametrize("change", [{}, {"tariffId": 2.0}])
def test_a_renamed_server_that_is_replaced_is_no_other_server_of_the_program(
    account: Account, change: dict[str, Any]
) -> None:
    """Engines compare before a replacement that is not on demand, and check once more without old inputs."""
    process = provider_process(account)
    entry = process.refresh("server", renamed(account))
    if change:
        checked = process.check("server", "e-new", {**NEW, **change}, entry.inputs)
        assert process.of("server").diff(entry.id, entry.outputs, checked).replaces == ("tariffId",)
    new = process.create("server", "e-new", {**NEW, **change})
    process.delete("server", entry)
    assert not any("another server of this program" in line for line in process.lines)
    assert account.living_ids == [new.id] != [entry.id]


def test_a_renamed_twin_is_called_by_its_new_name(account: Account) -> None:
    process = provider_process(account)
    entry = process.refresh("server", renamed(account))
    process.check("server", "third", NEW)
    assert any(
        "another server of this program is named 'e-new' too (e-new)" in line for line in process.lines
    )
    assert account.living_ids == [entry.id]
