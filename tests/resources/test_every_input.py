"""Every input that changes in place, of every resource, through both frontends, and what the account shows.

The inputs are taken from the declarations and the API's models, so one that is added is tested here without a
line: an input that nothing sends fails.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import pytest

from pulumi_hosting.api.casing import camel
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.drift_fields import drifts
from pulumi_hosting.resources.powers import natural_key
from tests.ansible.in_process import Play
from tests.ansible.test_specs import module
from tests.provider.processes import Entry, Process, provider_process
from tests.support.account import Account

BASES: dict[str, dict[str, Any]] = {
    "server": {"tariff_id": 1, "os": "debian-12", "name": "web-1"},
    "domain": {"name": "example.com"},
    "webhook_subscription": {"url": "https://hooks.example.com/x", "events": ["ping"]},
    "ptr": {"domain": "one.example.com"},
}
"""The least that is declared."""
VALUES: dict[tuple[str, str], tuple[Any, Any]] = {
    ("domain", "nameservers"): (
        ["ns1.example.net", "ns2.example.net"],
        ["ns3.example.net", "ns4.example.net"],
    ),
    ("webhook_subscription", "url"): ("https://hooks.example.com/x", "https://hooks.example.com/y"),
    ("webhook_subscription", "events"): (["server.created"], ["ping"]),
    ("ptr", "domain"): ("one.example.com", "two.example.com"),
}
"""Two values of what not any text is valid for."""
STATUS = {"running": "active"}


def in_place() -> Iterator[tuple[str, str]]:
    """A resource without a body of a change has a test of its own."""
    for kind, resource in RESOURCES.items():
        if kind not in BASES and resource.Inputs.change is None:
            continue
        for name in resource.Inputs.model_fields:
            trait = resource.Inputs.trait(name)
            others = (trait.when_creating, trait.policy, trait.names, trait.trigger, trait.rebuilds)
            if not (trait.replaces or trait.waits or any(others)):
                yield kind, name


IN_PLACE = list(in_place())
each_input = pytest.mark.parametrize(
    ("kind", "name"), IN_PLACE, ids=[f"{kind}-{name}" for kind, name in IN_PLACE]
)


def values_of(kind: str, name: str) -> tuple[Any, Any]:
    if (kind, name) in VALUES:
        return VALUES[kind, name]
    annotation = RESOURCES[kind].Inputs.model_fields[name].annotation
    choices = [part for part in (annotation, *get_args(annotation)) if get_origin(part) is Literal]
    if choices:
        first, second, *_ = get_args(choices[0])
        return first, second
    return (True, False) if bool in (annotation, *get_args(annotation)) else ("one-1", "two-2")


def account_for(kind: str) -> tuple[Account, dict[str, Any]]:
    """An account, and the least that is declared on it."""
    account, base = Account(), dict(BASES[kind])
    if kind == "ptr":
        base["server_id"] = str(account.server())
    return account, base


def shown(account: Account, kind: str, base: Mapping[str, Any]) -> dict[str, Any]:
    """The one object of this kind, as the account shows it: field → value, nested ones too."""
    listed = {
        "server": "/servers",
        "domain": "/domains",
        "webhook_subscription": "/webhooks",
        "ptr": f"/servers/{base.get('server_id')}/ips",
    }[kind]
    data = account.api("GET", listed).json()
    items = next(value for value in data.values() if isinstance(value, list))
    item = next(item for item in items if item.get("primary", True))
    if kind in ("server", "domain"):
        item = account.api("GET", f"{listed}/{item['id']}").json()
        item = item.get(kind, item)
    fields: dict[str, Any] = {}
    pending = [item]
    while pending:
        for key, value in pending.pop(0).items():
            if isinstance(value, dict):
                pending.append(value)
            else:
                fields.setdefault(key, value)
    return fields


def assert_shown(account: Account, kind: str, base: Mapping[str, Any], name: str, value: Any) -> None:
    fields = shown(account, kind, base)
    if (kind, name) == ("server", "power"):
        name, value = "status", STATUS.get(value, value)
    elif kind == "ptr":
        name = "ptr"
    found = fields[name]
    if isinstance(value, str):  # a tag may stand behind it
        assert found.partition("[iac")[0].rstrip() == value, name
    else:
        assert (sorted(found) if isinstance(value, list) else found) == value, name


def up(process: Process, kind: str, entry: Entry, given: Mapping[str, Any]) -> Entry:
    """``pulumi up`` with other inputs than the account shows."""
    inputs = process.check(kind, "it", camelled(given), entry.inputs)
    found = process.of(kind).diff(entry.id, entry.outputs, inputs)
    assert (found.changes, found.replaces) == (True, ()), found
    return Entry(entry.id, process.of(kind).update(entry.id, entry.outputs, inputs), inputs)


def path_of(resource: Any, id: str) -> str:
    """That of an object in the control interface."""
    return (resource.control_path or f"/{resource.kind}s/{{}}").format(*id.split("/"))


def camelled(given: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(name): value for name, value in given.items()}


@each_input
def test_pulumi_sends_it_when_it_is_made_and_when_it_changes(kind: str, name: str) -> None:
    account, base = account_for(kind)
    first, second = values_of(kind, name)
    process = provider_process(account)
    entry = process.create(kind, "it", camelled({**base, name: first}))
    assert_shown(account, kind, base, name, first)
    entry = up(process, kind, entry, {**base, name: second})
    assert_shown(account, kind, base, name, second)
    later = provider_process(account)
    entry = later.refresh(kind, entry)
    assert not later.of(kind).diff(entry.id, entry.outputs, entry.inputs).changes


@each_input
def test_pulumi_finds_what_was_changed_outside_and_takes_it_back(kind: str, name: str) -> None:
    account, base = account_for(kind)
    first, _ = values_of(kind, name)
    process = provider_process(account)
    given = {**base, name: first}
    entry = process.create(kind, "it", camelled(given))
    resource = RESOURCES[kind]
    drift = drifts(resource.Inputs)[name]
    account.control("PATCH", path_of(resource, entry.id), {drift.sent_as or name: drift.other(first)})
    later = provider_process(account)
    entry = later.refresh(kind, entry)
    assert camel(name) in later.of(kind).diff(entry.id, entry.outputs, entry.inputs).properties
    up(later, kind, entry, given)
    assert_shown(account, kind, base, name, first)


def test_a_task_may_give_each_of_them_but_the_power_which_has_a_module_of_its_own() -> None:
    options = {kind: module(kind).MODULE.argument_spec for kind, _ in IN_PLACE}
    assert [(kind, name) for kind, name in IN_PLACE if name not in options[kind]] == [("server", "power")]


@pytest.mark.parametrize(("kind", "name"), [pair for pair in IN_PLACE if pair != ("server", "power")])
def test_ansible_sends_it_and_check_mode_says_so_before(kind: str, name: str) -> None:
    account, base = account_for(kind)
    first, second = values_of(kind, name)
    made = Play(account)(kind, **{**base, name: first})
    assert (made["failed"], made["changed"]) == (False, True), made
    assert_shown(account, kind, base, name, first)
    # what is named by its id may get another name
    meant = (
        {"id": made[kind]["id"]} if name in (*natural_key(RESOURCES[kind]), "name") and kind != "ptr" else {}
    )
    task = {**base, name: second, **meant}
    checked = Play(account, check_mode=True)
    assert [checked(kind, **task)["changed"] for _ in range(2)] == [True, False], checked.results
    assert_shown(account, kind, base, name, first)
    done = Play(account)
    assert [done(kind, **task)["changed"] for _ in range(2)] == [True, False], done.results
    assert_shown(account, kind, base, name, second)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, name in IN_PLACE if name in RESOURCES[kind].Inputs.clears()]
)
def test_an_explicit_null_of_a_task_empties_it(kind: str, name: str) -> None:
    account, base = account_for(kind)
    Play(account)(kind, **{**base, name: "one-1"})
    play = Play(account)
    assert [play(kind, **{**base, name: None})["changed"] for _ in range(2)] == [True, False], play.results
    assert_shown(account, kind, base, name, "")


def test_every_setting_of_the_api_is_an_input_or_is_left_out_on_purpose() -> None:
    """An input never appears alone because the API has a field: this says that there is one to add."""
    missing = {
        f"{kind}.{name}"
        for kind, resource in RESOURCES.items()
        for name in (resource.Inputs.change.model_fields if resource.Inputs.change else ())
        if name not in resource.Inputs.model_fields
    }
    assert missing == set()
