"""ProcessKilled at every exchange of a creation, before and after it was processed: the next run ends
with one object and one charge.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import diff
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.errors import ResourceError
from tests.resources.conftest import GOOD, KillingTransport, ProcessKilled, ResourceHarness

DESIREDES: dict[str, tuple[str, dict[str, Any]]] = {
    "domain": ("domain", {"name": "example-1.com", "auto_renew": True}),
    "transfer": ("domain", {"name": "example-2.com", "auth_code": "EPP-1234567"}),
    "server_ip": ("server_ip", {"server_id": "{server}"}),
    "webhook": (
        "webhook_subscription",
        {"url": "https://hooks.example.com/x", "events": ["*"], "active": False},
    ),
    "ssh_key": (
        "ssh_key",
        {
            "name": "me",
            "public_key": (
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1J0oPqkq3n9mYh0b8Jx6m0c6K0s8mF0v7b0q3Yw2aB"
            ),
        },
    ),
}
TABLES = {
    "domain": "domains",
    "server_ip": "addresses",
    "webhook_subscription": "subscriptions",
    "ssh_key": "ssh_keys",
}


def desired_of(harness: ResourceHarness, name: str) -> tuple[Any, Any]:
    kind, inputs = DESIREDES[name]
    server = (
        harness.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id
        if kind == "server_ip"
        else ""
    )
    found = check(
        RESOURCES[kind], {key: server if value == "{server}" else value for key, value in inputs.items()}
    )
    assert not found.failures
    return RESOURCES[kind], found.inputs


def made(harness: ResourceHarness, resource: Any) -> list[Any]:
    rows = harness.control("GET", "/objects")[TABLES[resource.kind]]
    return [row for row in rows if row.get("bought")] if resource.kind == "server_ip" else list(rows)


def spent(harness: ResourceHarness) -> Decimal:
    rows = harness.account.ledger()
    return sum(
        (Decimal(str(row["amount"])) * (1 if row["direction"] == "debit" else -1) for row in rows), Decimal(0)
    )


def run(harness: ResourceHarness, resource: Any, inputs: Any, **more: Any) -> Any:
    return apply.create(
        harness.context(identity=f"pulumi:t/dev/{resource.kind}/it", **more), resource, inputs
    )


def reference(harness: ResourceHarness, name: str) -> tuple[int, Decimal]:
    """Exchanges and cost of an undisturbed creation; the account is fresh again afterwards."""
    resource, inputs = desired_of(harness, name)
    transport = KillingTransport()
    before = spent(harness)
    run(harness, resource, inputs, transport=transport)
    cost = spent(harness) - before
    harness.reset()
    return len(transport.sent), cost


@pytest.mark.parametrize("dialect", ["spec", pytest.param("live", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DESIREDES)
def test_killed_anywhere_it_is_made_once(harness: ResourceHarness, name: str, dialect: str) -> None:
    killed_anywhere(harness, name, dialect, lambda: None)


@pytest.mark.parametrize("name", ["domain", "server_ip"])
def test_killed_anywhere_and_run_again_elsewhere_it_is_bought_once(
    harness: ResourceHarness, name: str
) -> None:
    killed_anywhere(harness, name, "spec", harness.another_machine)


def killed_anywhere(harness: ResourceHarness, name: str, dialect: str, move: Callable[[], None]) -> None:
    harness.control("PATCH", "/service", {"dialect": dialect})
    exchanges, cost = reference(harness, name)
    assert exchanges > 1
    for at in range(exchanges):
        for after in (False, True):
            harness.control("PATCH", "/service", {"dialect": dialect})
            resource, inputs = desired_of(harness, name)
            before = spent(harness)
            with pytest.raises(ProcessKilled):
                run(harness, resource, inputs, transport=KillingTransport(at, after))
            move()
            run(harness, resource, inputs)
            assert len(made(harness, resource)) == 1, (at, after)
            assert spent(harness) - before == cost, (at, after)
            harness.reset()


@pytest.mark.parametrize(
    "action",
    [{"drop": "after"}, {"drop": "before"}, {"truncate": 5}, {"status": 502, "code": "upstream_error"}],
)
@pytest.mark.parametrize("name", DESIREDES)
def test_a_lost_answer_costs_nothing_twice(
    harness: ResourceHarness, name: str, action: dict[str, Any]
) -> None:
    _, cost = reference(harness, name)
    resource, inputs = desired_of(harness, name)
    before = spent(harness)
    harness.fault(action, path="^/(domains|domains/transfers|servers/[0-9]+/ips|webhooks|ssh-keys)$", times=1)
    try:
        run(harness, resource, inputs)
    except Exception:  # noqa: BLE001  # the next run decides
        run(harness, resource, inputs)
    assert len(made(harness, resource)) == 1
    assert spent(harness) - before == cost


@pytest.mark.parametrize("name", ["domain", "transfer", "webhook", "ssh_key"])
def test_an_answer_that_cannot_be_read_hides_nothing(harness: ResourceHarness, name: str) -> None:
    _, cost = reference(harness, name)
    resource, inputs = desired_of(harness, name)
    damage = {"id": "x", "charged": "much", "domain_id": [], "status": 7}
    harness.fault({"patch": damage}, path="^/(domains|domains/transfers|webhooks|ssh-keys)$", times=1)
    state = run(harness, resource, inputs)
    (row,) = made(harness, resource)
    assert state.id == str(row["id"])
    assert spent(harness) == cost


def test_two_addresses_of_one_server_are_two_purchases(harness: ResourceHarness) -> None:
    resource, inputs = desired_of(harness, "server_ip")
    context = harness.context(identity="pulumi:t/dev/server_ip/a")
    first = apply.create(context, resource, inputs)
    other = harness.context(identity="pulumi:t/dev/server_ip/b")
    other.ownership.add("pulumi:t/dev/server_ip/a", first.id)
    second = apply.create(other, resource, inputs)
    assert first.id != second.id
    assert len(made(harness, resource)) == 2


def test_both_killed_before_they_were_saved_both_are_found(harness: ResourceHarness) -> None:
    resource, inputs = desired_of(harness, "server_ip")
    ids = {}
    context = harness.context(identity="pulumi:t/dev/server_ip/a")
    ids["a"] = apply.create(context, resource, inputs).id
    other = harness.context(identity="pulumi:t/dev/server_ip/b")
    other.ownership.add("pulumi:t/dev/server_ip/a", ids["a"])
    ids["b"] = apply.create(other, resource, inputs).id
    for name in ("b", "a"):
        assert (
            apply.create(harness.context(identity=f"pulumi:t/dev/server_ip/{name}"), resource, inputs).id
            == ids[name]
        )
    assert len(made(harness, resource)) == 2


def test_an_unknown_address_stops_the_purchase(harness: ResourceHarness) -> None:
    resource, inputs = desired_of(harness, "server_ip")
    apply.create(harness.context(identity="pulumi:other/dev/server_ip/x"), resource, inputs)
    harness.another_machine()
    with pytest.raises(
        ResourceError,
        match=r"of unknown origin: .*Next: if they belong to something else, set "
        r"order_attempt to 1 to buy another",
    ):
        run(harness, resource, inputs)
    assert len(made(harness, resource)) == 1
    another = check(resource, {**inputs.given(), "order_attempt": 1}).inputs
    run(harness, resource, another)
    assert len(made(harness, resource)) == 2


def test_a_domain_registered_elsewhere_is_adopted_on_request_only(harness: ResourceHarness) -> None:
    resource, inputs = desired_of(harness, "domain")
    theirs = apply.create(harness.context(identity="pulumi:other/dev/domain/x"), resource, inputs)
    paid = spent(harness)
    with pytest.raises(ResourceError, match=f"set adopt_id={theirs.id}"):
        run(harness, resource, inputs)
    taken = run(harness, resource, check(resource, {**inputs.given(), "adopt_id": theirs.id}).inputs)
    assert taken.id == theirs.id
    assert spent(harness) == paid


def test_a_registration_under_way_is_a_state(harness: ResourceHarness) -> None:
    resource, inputs = desired_of(harness, "domain")
    harness.fault({"registrar": "pending"}, path="^/domains$")
    state = run(harness, resource, inputs)
    assert state.status == "pending"
    harness.control("POST", "/clock", {"advance": 3 * 86400})
    state = apply.read(harness.context(), resource, state)
    assert state.status == "active"
    found = diff(resource, state.values(), inputs.given())
    assert found.fields == {"auto_renew"}
    state = apply.update(harness.context(), resource, state, inputs, found.fields)
    assert state.auto_renew is True
