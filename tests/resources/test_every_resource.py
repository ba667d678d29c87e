"""Every resource, the whole way, against the emulator: made, found unchanged, changed in place, drifted,
gone, removed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import diff
from pulumi_hosting.resources import RESOURCES, base, powers
from pulumi_hosting.session.request import Request
from tests.resources.conftest import GOOD, ResourceHarness

KEY_LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1J0oPqkq3n9mYh0b8Jx6m0c6K0s8mF0v7b0q3Yw2aB me@example"


@dataclass(frozen=True)
class Case:
    """One resource's inputs, other spellings of the same, in-place changes, and drifts (a PATCH of the
    emulator's object → field).
    """

    kind: str
    inputs: dict[str, Any]
    same: dict[str, Any] = field(default_factory=dict)
    changes: tuple[dict[str, Any], ...] = ()
    drifts: tuple[tuple[str, dict[str, Any], str], ...] = ()
    gone: str = ""


CASES = [
    Case(
        "server",
        {**GOOD, "notes": "shop", "auto_renew": True, "power": "running"},
        {"notes": "shop "},
        ({"name": "web-2"}, {"notes": "blog"}, {"auto_renew": False}, {"power": "stopped"}),
        (
            ("/servers/{id}", {"name": "other"}, "name"),
            ("/servers/{id}", {"auto_renew": False}, "auto_renew"),
            ("/servers/{id}", {"notes": "theirs"}, "notes"),
            ("/servers/{id}", {"status": "stopped"}, "power"),
        ),
        "/servers/{id}",
    ),
    Case(
        "domain",
        {
            "name": "example-1.com",
            "nameservers": ["ns1.example.net", "ns2.example.net"],
            "privacy": True,
            "auto_renew": False,
        },
        {"name": "EXAMPLE-1.com.", "nameservers": ["NS2.example.net.", "ns1.example.net"]},
        ({"nameservers": ["ns3.example.net", "ns4.example.net"]}, {"privacy": False}, {"auto_renew": True}),
        (
            ("/domains/{id}", {"auto_renew": True}, "auto_renew"),
            ("/domains/{id}", {"privacy": False}, "privacy"),
            ("/domains/{id}", {"nameservers": ["ns8.example.net", "ns9.example.net"]}, "nameservers"),
        ),
        "/domains/{id}",
    ),
    Case(
        "ssh_key",
        {"name": "me", "public_key": KEY_LINE},
        {"public_key": KEY_LINE.replace(" me@", "   someone@")},
        (),
        (),
        "/ssh-keys/{id}",
    ),
    Case(
        "webhook_subscription",
        {
            "url": "https://hooks.example.com/x",
            "events": ["server.created", "balance.low"],
            "description": "ops",
        },
        {
            "url": "https://HOOKS.example.com:443/x",
            "events": [
                "balance.low",
                "server.created",
            ],
        },
        (
            {"url": "https://hooks.example.com/y"},
            {"events": ["*"]},
            {"description": "team"},
            {"active": False},
            {"rotation": "1"},
        ),
        (
            ("/webhooks/{id}", {"active": False}, "active"),
            ("/webhooks/{id}", {"events": ["*"]}, "events"),
            ("/webhooks/{id}", {"description": "theirs"}, "description"),
            ("/webhooks/{id}", {"url": "https://hooks.example.com/z"}, "url"),
        ),
        "/webhooks/{id}",
    ),
    Case("server_ip", {"server_id": "{server}"}, {}, (), (), "/servers/{head}/ips/{tail}"),
    Case(
        "ptr",
        {"server_id": "{server}", "domain": "mail.example.com"},
        {"domain": "Mail.Example.com."},
        ({"domain": "web.example.com"},),
        (("/servers/{head}/ips/{tail}", {"ptr": "evil.example.org"}, "domain"),),
        "",
    ),
]


@pytest.fixture(params=["spec", "live"])
def any_dialect(harness: ResourceHarness, request: pytest.FixtureRequest) -> Iterator[ResourceHarness]:
    """The same account in both dialects."""
    harness.control("PATCH", "/service", {"dialect": request.param})
    yield harness
    harness.control("PATCH", "/service", {"dialect": "spec"})


def test_every_resource_has_a_case_or_a_test_of_its_own() -> None:
    own = {kind for kind in RESOURCES if (Path(__file__).parent / f"test_{kind}.py").exists()}
    assert {case.kind for case in CASES} | own == set(RESOURCES)


def test_all_resources_have_the_same_methods_in_the_same_order() -> None:
    interface = [base.Resource, *(power for power in vars(powers).values() if isinstance(power, type))]
    order = [name for power in interface for name, value in vars(power).items() if callable(value)]
    for resource in RESOURCES.values():
        for part in type(resource).__mro__:
            if part.__module__.startswith("pulumi_hosting.resources.") and part not in interface:
                known = [name for name in vars(part) if name in order and not name.startswith("_")]
                assert known == sorted(known, key=order.index), part


def test_one_server_is_four_files() -> None:
    assert len(list(Path(base.__file__).parent.glob("server.py"))) == 1
    named = {path.name for path in Path(base.__file__).parent.glob("server_*.py")}
    assert named - {"server_ip.py"} == {
        "server_calls.py",
        "server_fields.py",
        "server_powers.py",
    }


def ready(harness: ResourceHarness, case: Case) -> dict[str, Any]:
    server = (
        str(harness.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id)
        if "{server}" in str(case.inputs)
        else ""
    )
    return {name: server if value == "{server}" else value for name, value in case.inputs.items()}


def where(path: str, state: Any) -> str:
    head, _, tail = state.id.partition("/")
    return path.format(id=state.id, head=head, tail=tail)


def checked(case: Case, inputs: dict[str, Any]) -> Any:
    found = check(RESOURCES[case.kind], inputs)
    assert not found.failures
    return found.inputs


def context_of(harness: ResourceHarness, case: Case, **more: Any) -> Request:
    return harness.context(identity=f"pulumi:t/dev/{case.kind}/it", **more)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_a_resource_is_created_updated_read_and_deleted(any_dialect: ResourceHarness, case: Case) -> None:
    resource = RESOURCES[case.kind]
    inputs = ready(any_dialect, case)
    context = context_of(any_dialect, case)
    state = apply.create(context, resource, checked(case, inputs))
    assert state.mode == "live"
    # other spellings, and a fresh look, are no difference
    for spelling in ({}, case.same):
        desired = checked(case, {**inputs, **spelling}).given()
        assert not diff(resource, state.values(), desired), spelling
        state = apply.read(context_of(any_dialect, case), resource, state)
        assert not diff(resource, state.values(), desired), spelling
    # changed in place, each on its own
    for change in case.changes:
        desired = checked(case, {**inputs, **change})
        found = diff(resource, {**state.values(), "rotation": None}, desired.given())
        assert found.fields == set(change), change
        assert not found.replaces
        state = apply.update(context_of(any_dialect, case), resource, state, desired, found.fields)
        state = apply.read(context_of(any_dialect, case), resource, state)
        assert not diff(resource, {**state.values(), **change}, desired.given()), change
        back = checked(case, inputs)
        fields = diff(resource, state.values(), back.given()).fields
        if fields:
            state = apply.update(context_of(any_dialect, case), resource, state, back, fields)
    # drift is seen and repaired
    for path, patch, name in case.drifts:
        any_dialect.control("PATCH", where(path, state), patch)
        state = apply.read(context_of(any_dialect, case), resource, state)
        found = diff(resource, state.values(), checked(case, inputs).given())
        assert found.fields == {name}
        state = apply.update(
            context_of(any_dialect, case), resource, state, checked(case, inputs), found.fields
        )
        state = apply.read(context_of(any_dialect, case), resource, state)
        assert not diff(resource, state.values(), checked(case, inputs).given())
    # removed, twice
    apply.delete(context_of(any_dialect, case), resource, state)
    apply.delete(context_of(any_dialect, case), resource, state)
    if case.kind == "domain":  # no delete exists
        assert apply.read(context_of(any_dialect, case), resource, state).auto_renew is False
    else:
        assert apply.read(context_of(any_dialect, case), resource, state) is None
