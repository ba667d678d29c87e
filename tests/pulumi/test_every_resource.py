"""The ladder every resource climbs, all of them in one stack: dynamic and native, in both dialects, on
every engine.
"""

from typing import Any

import pytest

from tests.support.programs import OTHER_KEY, PUBLIC_KEY, Program, Ref

Declarations = dict[str, tuple[str, dict[str, Any]]]

ALL: Declarations = {
    "base": ("Server", {"tariff_id": 1, "os": "debian-12"}),
    "key": ("SshKey", {"public_key": PUBLIC_KEY}),
    "web": (
        "Server",
        {
            "tariff_id": 1,
            "os": "debian-12",
            "name": "web",
            "notes": "one",
            "auto_renew": True,
            "power": "running",
        },
    ),
    "site": (
        "Domain",
        {
            "name": "Example-1.com",
            "nameservers": ["ns2.example.net.", "NS1.example.net"],
            "privacy": True,
            "auto_renew": False,
        },
    ),
    "spare": ("ServerIp", {"server_id": Ref("base.id")}),
    "rev": ("Ptr", {"server_id": Ref("base.id"), "domain": "Mail.example.com."}),
    "hook": (
        "WebhookSubscription",
        {
            "url": "https://Hooks.example.com/x",
            "events": ["server.created", "balance.low"],
            "description": "ops",
        },
    ),
}

UPDATES: list[dict[str, dict[str, Any]]] = [
    {
        "web": {"name": "www"},
        "site": {"nameservers": ["ns3.example.net", "ns4.example.net"]},
        "rev": {"domain": "web.example.com"},
        "hook": {"url": "https://hooks.example.com/y"},
    },
    {"web": {"notes": "two"}, "site": {"privacy": False}, "hook": {"events": ["*"]}},
    {"web": {"auto_renew": False}, "site": {"auto_renew": True}, "hook": {"description": "team"}},
    {"web": {"power": "stopped"}, "hook": {"active": False}},
    {"web": {"os": "ubuntu-24.04", "rebuild": "reinstall"}, "hook": {"rotation": "1"}},
]
DRIFTS: list[dict[str, tuple[str, dict[str, Any], str]]] = [
    {
        "web": ("/servers/{id}", {"name": "other"}, "name"),
        "site": ("/domains/{id}", {"nameservers": ["ns8.example.net", "ns9.example.net"]}, "nameservers"),
        "rev": ("/servers/{head}/ips/{tail}", {"ptr": "evil.example.org"}, "domain"),
        "hook": ("/webhooks/{id}", {"url": "https://evil.example.com/"}, "url"),
    },
    {
        "web": ("/servers/{id}", {"notes": "theirs"}, "notes"),
        "site": ("/domains/{id}", {"privacy": False}, "privacy"),
        "hook": ("/webhooks/{id}", {"events": ["ping"]}, "events"),
    },
    {
        "web": ("/servers/{id}", {"auto_renew": False}, "autoRenew"),
        "site": ("/domains/{id}", {"auto_renew": True}, "autoRenew"),
        "hook": ("/webhooks/{id}", {"description": "theirs"}, "description"),
    },
    {
        "web": ("/servers/{id}", {"status": "stopped"}, "power"),
        "hook": ("/webhooks/{id}", {"active": False}, "active"),
    },
]
REPLACES: list[dict[str, dict[str, Any]]] = [
    {
        "web": {"tariff_id": 2},
        "site": {"name": "example-2.com"},
        "key": {"name": "other"},
        "spare": {"server_id": Ref("web.id")},
    },
    {
        "web": {"os": "ubuntu-24.04"},
        "key": {"public_key": OTHER_KEY},
        "rev": {"address": Ref("spare.address"), "server_id": Ref("web.id")},
    },
    {"web": {"billing_cycle": "hourly", "tariff_id": 3}},
]
PLACES = {
    "Server": "servers/{id}",
    "Domain": "domains/{id}",
    "SshKey": "ssh-keys/{id}",
    "WebhookSubscription": "webhooks/{id}",
}
PLACES |= {"ServerIp": "servers/{head}/ips/{tail}"}


def changed(declarations: Declarations, changes: dict[str, dict[str, Any]]) -> Declarations:
    return {name: (kind, {**given, **changes.get(name, {})}) for name, (kind, given) in declarations.items()}


def place(pattern: str, id: str) -> str:
    head, _, tail = id.partition("/")
    return pattern.format(id=id, head=head, tail=tail)


def unchanged(program: Program) -> None:
    program.run(program.stack.up("--expect-no-changes"), {})


def look(program: Program) -> Any:
    return program.stack.refresh("--preview-only", "--expect-no-changes", "--diff")


@pytest.mark.daily
@pytest.mark.both_providers
def test_every_resource_is_made_changed_and_removed(program: Program, dialect: str) -> None:
    program.declare(ALL)
    program.run(program.stack.preview(), {"create": len(ALL) + 1})
    assert program.charges == 0
    program.run(program.stack.up(), {"create": len(ALL) + 1})
    paid = program.charges
    assert paid == 4  # two servers, a domain, an address
    unchanged(program)
    now = ALL
    for changes in UPDATES:
        now = changed(now, changes)
        program.declare(now)
        program.run(program.stack.up(), {"update": len(changes)})
    unchanged(program)
    assert program.charges == paid
    assert "mode" in program.resources()["web"]["outputs"]
    program.run(program.stack.destroy())
    left = program.control("GET", "/objects")
    assert [left[kind] for kind in ("servers", "ssh_keys", "subscriptions", "addresses")] == [[], [], [], []]
    (domain,) = left["domains"]
    assert domain["auto_renew"] is False


@pytest.mark.both_providers
def test_drift_of_every_field_is_found_named_and_repaired(program: Program, dialect: str) -> None:
    program.declare(ALL)
    program.run(program.stack.up())
    for drifts in DRIFTS:
        ids = {name: resource["id"] for name, resource in program.resources().items()}
        for name, (path, patch, _) in drifts.items():
            program.control("PATCH", place(path, ids[name]), patch)
        found = look(program)
        assert found.exit_code == 7, found.output
        for name, (_, _, field) in drifts.items():
            assert any(step.name == name for step in found.steps if step.op == "update"), found.output
            assert field in found.output
        program.run(program.stack.up("--refresh"))
    # what the service runs is no drift
    program.control("POST", "/clock", {"advance": 3 * 86400})
    quiet = look(program)
    assert quiet.exit_code == 0, quiet.output
    # gone outside
    for name, resource in program.resources().items():
        kind = ALL[name][0]
        if name != "base" and kind in PLACES:
            program.control("DELETE", "/" + place(PLACES[kind], resource["id"]))
    assert look(program).exit_code == 7
    again = program.run(program.stack.up("--refresh"))
    # but for the server that stayed and its reverse DNS
    assert again.changed.get("create") == len(ALL) - 2, again.output
    unchanged(program)


def test_what_cannot_change_in_place_is_replaced(program: Program, dialect: str) -> None:
    program.declare(ALL)
    program.run(program.stack.up())
    now = ALL
    for changes in REPLACES:
        now = changed(now, changes)
        program.declare(now)
        before = {name: resource["id"] for name, resource in program.resources().items()}
        done = program.run(program.stack.up())
        assert done.changed.get("replace", 0) >= len(changes), done.output
        after = {name: resource["id"] for name, resource in program.resources().items()}
        assert {name for name in changes if before[name] == after[name]} == set()
    unchanged(program)
    assert len(program.living) == 2
