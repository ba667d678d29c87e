"""Killed at every exchange of a creation, before and after it was processed: the next run ends with one object and one charge."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.planning import engine
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.session.errors import ResourceError
from tests.resources.conftest import GOOD, Dying, House, Killed

DESIREDES: dict[str, tuple[str, dict[str, Any]]] = {
    "domain": ("domain", {"name": "example-1.com", "auto_renew": True}),
    "transfer": ("domain", {"name": "example-2.com", "auth_code": "EPP-1234567"}),
    "server_ip": ("server_ip", {"server_id": "{server}"}),
    "webhook": ("webhook_subscription", {"url": "https://hooks.example.com/x", "events": ["*"], "active": False}),
    "ssh_key": (
        "ssh_key",
        {"name": "me", "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1J0oPqkq3n9mYh0b8Jx6m0c6K0s8mF0v7b0q3Yw2aB"},
    ),
}
TABLES = {"domain": "domains", "server_ip": "addresses", "webhook_subscription": "subscriptions", "ssh_key": "ssh_keys"}


def desired_of(house: House, name: str) -> tuple[Any, Any]:
    kind, inputs = DESIREDES[name]
    server = house.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id if kind == "server_ip" else ""
    found = engine.check(RESOURCES[kind], {key: server if value == "{server}" else value for key, value in inputs.items()})
    assert not found.failures
    return RESOURCES[kind], found.inputs


def made(house: House, resource: Any) -> list[Any]:
    rows = house.control("GET", "/objects")[TABLES[resource.kind]]
    return [row for row in rows if row.get("bought")] if resource.kind == "server_ip" else list(rows)


def spent(house: House) -> Decimal:
    rows = house.control.ledger()
    return sum((Decimal(str(row["amount"])) * (1 if row["direction"] == "debit" else -1) for row in rows), Decimal(0))


def run(house: House, resource: Any, inputs: Any, **more: Any) -> Any:
    return engine.create(house.context(identity=f"pulumi:t/dev/{resource.kind}/it", **more), resource, inputs)


def reference(house: House, name: str) -> tuple[int, Decimal]:
    """Exchanges and cost of an undisturbed creation; the account is fresh again afterwards."""
    resource, inputs = desired_of(house, name)
    transport = Dying()
    before = spent(house)
    run(house, resource, inputs, transport=transport)
    cost = spent(house) - before
    house.reset()
    return len(transport.sent), cost


@pytest.mark.parametrize("dialect", ["spec", "live"])
@pytest.mark.parametrize("name", DESIREDES)
def test_killed_anywhere_it_is_made_once(house: House, name: str, dialect: str) -> None:
    killed_anywhere(house, name, dialect, lambda: None)


def test_killed_anywhere_and_run_again_elsewhere_an_address_is_bought_once(house: House) -> None:
    killed_anywhere(house, "server_ip", "spec", house.another_machine)


def killed_anywhere(house: House, name: str, dialect: str, move: Callable[[], None]) -> None:
    house.control("PATCH", "/service", {"dialect": dialect})
    exchanges, cost = reference(house, name)
    assert exchanges > 1
    for at in range(exchanges):
        for after in (False, True):
            house.control("PATCH", "/service", {"dialect": dialect})
            resource, inputs = desired_of(house, name)
            before = spent(house)
            with pytest.raises(Killed):
                run(house, resource, inputs, transport=Dying(at, after))
            move()
            run(house, resource, inputs)
            assert len(made(house, resource)) == 1, (at, after)
            assert spent(house) - before == cost, (at, after)
            house.reset()


@pytest.mark.parametrize("action", [{"drop": "after"}, {"drop": "before"}, {"truncate": 5}, {"status": 502, "code": "upstream_error"}])
@pytest.mark.parametrize("name", DESIREDES)
def test_a_lost_answer_costs_nothing_twice(house: House, name: str, action: dict[str, Any]) -> None:
    _, cost = reference(house, name)
    resource, inputs = desired_of(house, name)
    before = spent(house)
    house.arm(action, path="^/(domains|domains/transfers|servers/[0-9]+/ips|webhooks|ssh-keys)$", times=1)
    try:
        run(house, resource, inputs)
    except Exception:  # noqa: BLE001  # the next run decides
        run(house, resource, inputs)
    assert len(made(house, resource)) == 1
    assert spent(house) - before == cost


@pytest.mark.parametrize("name", ["domain", "transfer", "webhook", "ssh_key"])
def test_an_answer_that_cannot_be_read_hides_nothing(house: House, name: str) -> None:
    _, cost = reference(house, name)
    resource, inputs = desired_of(house, name)
    damage = {"id": "x", "charged": "much", "domain_id": [], "status": 7}
    house.arm({"patch": damage}, path="^/(domains|domains/transfers|webhooks|ssh-keys)$", times=1)
    state = run(house, resource, inputs)
    (row,) = made(house, resource)
    assert state.id == str(row["id"])
    assert spent(house) == cost


def test_two_addresses_of_one_server_are_two_purchases(house: House) -> None:
    resource, inputs = desired_of(house, "server_ip")
    context = house.context(identity="pulumi:t/dev/server_ip/a")
    first = engine.create(context, resource, inputs)
    other = house.context(identity="pulumi:t/dev/server_ip/b")
    other.ownership.add("pulumi:t/dev/server_ip/a", first.id)
    second = engine.create(other, resource, inputs)
    assert first.id != second.id
    assert len(made(house, resource)) == 2


def test_both_killed_before_they_were_saved_both_are_found(house: House) -> None:
    resource, inputs = desired_of(house, "server_ip")
    ids = {}
    context = house.context(identity="pulumi:t/dev/server_ip/a")
    ids["a"] = engine.create(context, resource, inputs).id
    other = house.context(identity="pulumi:t/dev/server_ip/b")
    other.ownership.add("pulumi:t/dev/server_ip/a", ids["a"])
    ids["b"] = engine.create(other, resource, inputs).id
    for name in ("b", "a"):
        assert engine.create(house.context(identity=f"pulumi:t/dev/server_ip/{name}"), resource, inputs).id == ids[name]
    assert len(made(house, resource)) == 2


def test_an_address_nobody_explains_stops_the_purchase(house: House) -> None:
    resource, inputs = desired_of(house, "server_ip")
    engine.create(house.context(identity="pulumi:other/dev/server_ip/x"), resource, inputs)
    house.another_machine()
    with pytest.raises(ResourceError, match=r"nothing here explains: .*Next: if other .* have them, set order_attempt to 1 to buy another"):
        run(house, resource, inputs)
    assert len(made(house, resource)) == 1
    another = engine.check(resource, {**inputs.given(), "order_attempt": 1}).inputs
    run(house, resource, another)
    assert len(made(house, resource)) == 2


def test_a_domain_somebody_else_registered_is_adopted_on_request_only(house: House) -> None:
    resource, inputs = desired_of(house, "domain")
    theirs = engine.create(house.context(identity="pulumi:other/dev/domain/x"), resource, inputs)
    paid = spent(house)
    with pytest.raises(ResourceError, match=f"set adopt_id={theirs.id}"):
        run(house, resource, inputs)
    taken = run(house, resource, engine.check(resource, {**inputs.given(), "adopt_id": theirs.id}).inputs)
    assert taken.id == theirs.id
    assert spent(house) == paid


def test_a_registration_under_way_is_a_state(house: House) -> None:
    resource, inputs = desired_of(house, "domain")
    house.arm({"registrar": "pending"}, path="^/domains$")
    state = run(house, resource, inputs)
    assert state.status == "pending"
    house.control("POST", "/clock", {"advance": 3 * 86400})
    state = engine.read(house.context(), resource, state)
    assert state.status == "active"
    found = engine.diff(resource, state.values(), inputs.given())
    assert found.fields == {"auto_renew"}
    state = engine.update(house.context(), resource, state, inputs, found.fields)
    assert state.auto_renew is True
