"""What is charged is charged once: run twice, killed anywhere, cut, refused and filled up again, with whatever the service remembers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.actions import ACTIONS, Failed, check
from pulumi_hosting.actions.periods import after_months, after_years
from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import (
    Conflict,
    DomainBlocked,
    Forbidden,
    InsufficientFunds,
    InvalidInput,
    OperationInProgress,
    ServerBlocked,
    UpstreamRejected,
)
from pulumi_hosting.emulator.periods import months_after
from pulumi_hosting.exactly_once.charges import GENERATIONS
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.text import as_text
from tests.resources.conftest import Dying, House, Killed
from tests.resources.test_actions import do, new_key, one, sent, server, town

__all__ = ["town"]  # a fixture

READINGS: list[dict[str, Any]] = [{}, {"refusals_stored": False}, {"key_memory": "key"}]


def names(readings: Any) -> str:
    if isinstance(readings, bool):
        return "processed" if readings else "unsent"
    return "-".join(f"{name}={value}" for name, value in readings.items()) or "defaults"


def client(house: House) -> Client:
    return house.context().client


def billing(house: House, id: str) -> m.ServerBilling:
    found = client(house).servers.get(int(id)).billing
    assert found is not None
    return found


def due(house: House, id: str) -> datetime:
    found = billing(house, id).next_due_at
    assert found is not None
    return found


def domain(house: House, name: str = "example-1.com", years: int = 1) -> str:
    return str(client(house).domains.register(name=name, years=years, privacy=False).domain_id)


def expires(house: House, id: str) -> datetime:
    found = client(house).domains.get(int(id)).expires_at
    assert found is not None
    return found


def later(moment: datetime, months: int) -> datetime:
    """By the calendar, as the service counts."""
    return datetime.fromtimestamp(months_after(moment.timestamp(), months), UTC)


def text(moment: datetime) -> str:
    return moment.isoformat()


# --- the ones that charge, told alike ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A charge: how its object comes to be, what asks for it, and the operation and path that it goes by."""

    kind: str
    make: Callable[[House], str]
    desired: Callable[[House, str], dict[str, Any]]
    operation: str
    path: str


def _unpaid_renewal(house: House) -> str:
    """The invoice of a renewal that the balance did not cover."""
    id = server(house)
    house.control("PATCH", f"/servers/{id}", {"auto_renew": False})
    house.control("POST", "/clock", {"advance": 31 * 86400})
    return str(next(iter(client(house).invoices.list(type="vds_renewal", status="not_paid"))).id)


CASES = [
    Case(
        "server_renew",
        server,
        lambda house, id: {"id": id, "until": text(due(house, id) + timedelta(days=20))},
        "renew_server",
        "^/servers/[0-9]+/renew$",
    ),
    Case(
        "domain_renew",
        domain,
        lambda house, id: {"id": id, "until": text(expires(house, id) + timedelta(days=20))},
        "renew_domain",
        "^/domains/[0-9]+/renew$",
    ),
    Case("invoice_pay", _unpaid_renewal, lambda house, id: {"id": id}, "pay_invoice", "^/invoices/[0-9]+/pay$"),
]
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)


def charges(house: House, case: Case) -> int:
    """Charges of the operation that were not returned."""
    rows = [row for row in house.control.ledger() if row["operation"] == case.operation]
    return sum(1 if row["direction"] == "debit" else -1 for row in rows)


def charged(house: House, case: Case) -> Decimal:
    return sum((Decimal(row["amount"]) for row in house.control.ledger() if row["operation"] == case.operation), Decimal(0)).copy_abs()


def set_balance(house: House, amount: str) -> None:
    house.control("PATCH", "/account", {"balance": amount})


@each
def test_foreseen_then_done_then_found_done(town: House, case: Case) -> None:
    desired = case.desired(town, case.make(town))
    approved: list[Cost] = []
    predicted = do(town, case.kind, desired, dry_run=True, approve=approved.append)
    assert sent(town) == []
    result = do(town, case.kind, desired, approve=approved.append)
    assert predicted.changed
    assert result.changed
    assert predicted.cost is not None
    assert result.cost is not None
    assert predicted.cost.amount == result.cost.amount == charged(town, case)
    assert [cost.amount for cost in approved] == [result.cost.amount] * 2
    assert predicted.before == result.before
    assert set(one(predicted.after)) == set(one(result.after))
    for name, value in one(predicted.after).items():
        assert value in (None, one(result.after)[name]), name  # what is predicted is so
    again = do(town, case.kind, desired, approve=lambda cost: pytest.fail("nothing is charged"))
    assert (again.changed, again.cost, sent(town)) == (False, None, [])
    assert again.note
    assert set(one(again.after)) == set(one(result.after))
    assert charges(town, case) == 1


@each
@pytest.mark.parametrize(("readings", "after"), [({}, False), *((readings, True) for readings in READINGS)], ids=names)
def test_killed_anywhere_and_run_again_it_is_one_charge(house: House, case: Case, readings: dict[str, Any], after: bool) -> None:
    house.read_as(**readings)
    desired = case.desired(house, case.make(house))
    at = 0
    while True:
        transport = Dying(at, after)
        try:
            do(house, case.kind, desired, transport=transport)
        except Killed:
            at += 1
            continue
        break
    assert at > 1
    assert charges(house, case) == 1
    assert do(house, case.kind, desired).changed is False


@each
@pytest.mark.parametrize(
    "action",
    [
        {"drop": "after"},
        {"drop": "before"},
        {"truncate": 20},
        {"status": 503, "code": "temporarily_unavailable", "retry_after": 1},
        {"status": 504, "code": "upstream_timeout"},
    ],
    ids=lambda action: str(next(iter(action.values()))),
)
def test_a_cut_answer_is_asked_for_with_the_same_key(house: House, case: Case, action: dict[str, Any]) -> None:
    desired = case.desired(house, case.make(house))
    house.arm(action, path=case.path)
    assert do(house, case.kind, desired).changed
    assert charges(house, case) == 1


@each
def test_an_answer_that_never_comes_is_made_out_by_the_account(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    house.arm({"drop": "after"}, path=case.path, times=50)
    result = do(house, case.kind, desired)
    assert result.changed
    assert charges(house, case) == 1
    house.control("DELETE", "/faults")
    assert do(house, case.kind, desired).changed is False


@each
def test_a_request_that_never_arrives_is_repeated_by_the_next_run(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    house.arm({"drop": "before"}, path=case.path, times=50)
    with pytest.raises(Failed, match=r"was carried out is not known; it does not show yet. Next: run again: the same request is repeated"):
        do(house, case.kind, desired)
    house.control("DELETE", "/faults")
    assert do(house, case.kind, desired).changed
    assert charges(house, case) == 1


@each
@pytest.mark.parametrize("readings", READINGS, ids=names)
def test_refused_for_want_of_money_then_filled_up_it_works_once(house: House, case: Case, readings: dict[str, Any]) -> None:
    house.read_as(**readings)
    desired = case.desired(house, case.make(house))
    set_balance(house, "0.50")
    for _ in range(3):
        with pytest.raises(InsufficientFunds, match="top up the balance and run again"):
            do(house, case.kind, desired)
    set_balance(house, "100.00")
    assert do(house, case.kind, desired).changed
    assert do(house, case.kind, desired).changed is False
    assert charges(house, case) == 1


@each
def test_a_refusal_without_figures_is_compared_with_the_price(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    set_balance(house, "0.50")
    house.arm({"patch": {"error": {"details": {"required": None}}}}, path=case.path, times=9)
    with pytest.raises(InsufficientFunds):
        do(house, case.kind, desired)
    set_balance(house, "100.00")
    assert do(house, case.kind, desired).changed
    assert charges(house, case) == 1


@each
def test_charged_failed_and_returned_it_is_reported_and_works_later(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    house.arm({"refunded": 502, "code": "upstream_error"}, path=case.path)
    with pytest.raises(
        Failed, match=r"the charge was returned \(invoice [0-9]+\); nothing was repeated. Next: run again in a few"
    ) as caught:
        do(house, case.kind, desired)
    assert (caught.value.status, caught.value.code) == (502, "upstream_error")
    assert charges(house, case) == 0
    house.control("POST", "/clock", {"advance": 600})
    # The outcome is stored under its key for a week; a run that sees it to be of the past goes on.
    assert do(house, case.kind, desired).changed
    assert charges(house, case) == 1


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case.kind)  # of an invoice its own status tells
def test_money_that_is_gone_without_effect_stops_everything(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    assert do(house, case.kind, desired).changed
    # The same again, with a failure in between: the account shows a paid invoice of a moment ago, and not what it was for.
    house.arm({"status": 500, "code": "server_error"}, path=case.path)
    with pytest.raises(Failed, match=r"invoice [0-9]+ is paid, and the renewal of .* does not show; nothing was repeated"):
        do(house, case.kind, {**desired, "until": further(house, case, desired)})
    assert charges(house, case) == 1


def further(house: House, case: Case, desired: dict[str, Any]) -> str:
    now = due(house, desired["id"]) if case.kind == "server_renew" else expires(house, desired["id"])
    return text(now + timedelta(days=1))


@each
def test_a_failure_of_the_service_without_a_charge_is_tried_with_another_key(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    house.arm({"status": 500, "code": "server_error"}, path=case.path)
    assert do(house, case.kind, desired).changed
    assert charges(house, case) == 1


@each
def test_where_the_money_cannot_be_seen_nothing_is_repeated(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    scopes = [scope for scope in client(house).me().scopes if scope != "balance:read"]
    blind = house.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    house.arm({"status": 500, "code": "server_error"}, path=case.path)
    with pytest.raises(Failed, match="is not known; it does not show yet"):
        do(house, case.kind, desired, key=blind)
    assert charges(house, case) == 0


@each
def test_two_runs_that_saw_the_same_pay_once_between_them(house: House, case: Case) -> None:
    """Both planned before either was done."""
    desired = case.desired(house, case.make(house))
    action = ACTIONS[case.kind]
    inputs = check(action, desired)
    contexts = [house.context(identity=f"ansible:/{who}", name_is_identity=True) for who in ("a", "b")]
    plans = [action.plan(context, inputs) for context in contexts]
    for context, plan in zip(contexts, plans, strict=True):
        action.perform(context, inputs, plan)
    assert charges(house, case) == 1


@each
def test_a_failure_while_another_run_was_quicker_is_none(house: House, case: Case) -> None:
    desired = case.desired(house, case.make(house))
    action = ACTIONS[case.kind]
    inputs, context = check(action, desired), house.context(identity="ansible:/a", name_is_identity=True)
    plan = action.plan(context, inputs)
    do(house, case.kind, desired)
    house.arm({"status": 500, "code": "server_error"}, path=case.path)
    result: Any = action.perform(context, inputs, plan)
    assert result.mode in ("live", None)
    assert charges(house, case) == 1


@each
def test_an_answer_that_came_too_late_is_never_followed_by_another_request(house: House, case: Case) -> None:
    """504: it may be carried out yet (API document, "Errors")."""
    desired = case.desired(house, case.make(house))
    house.arm({"status": 504, "code": "upstream_timeout"}, path=case.path, times=50)
    with pytest.raises(Failed, match="the same request is repeated, never a second one") as caught:
        do(house, case.kind, desired)
    assert caught.value.status == 504
    keys = {row["headers"]["idempotency-key"] for row in requests(house) if row["status"] == 504}
    assert len(keys) == 1
    house.control("DELETE", "/faults")
    assert do(house, case.kind, desired).changed
    assert charges(house, case) == 1


def requests(house: House) -> list[dict[str, Any]]:
    found = house.control("GET", "/requests?since=0")
    rows = found["requests"] if isinstance(found, dict) else found
    return [{**row, "headers": {name.lower(): value for name, value in row["headers"].items()}} for row in rows]


# --- server_renew ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "months"), [(1, 1), (28, 1), (32, 3), (85, 3), (95, 6), (175, 6), (200, 12), (358, 12)])
def test_the_smallest_period_that_reaches_is_bought_at_its_price(house: House, days: int, months: int) -> None:
    id = server(house)
    client(house).servers.ips.add(int(id))
    house.control("POST", "/clock", {"advance": 60})
    before = due(house, id)
    until = before + timedelta(days=days)
    result = do(house, "server_renew", {"id": id, "until": text(until)})
    assert due(house, id) == later(before, months) >= until
    assert result.cost is not None
    assert result.cost.what.startswith(f"server web-1, {months} month{'s' if months > 1 else ''} from ")
    assert result.cost.amount == Decimal(result.result.charged) == charged(house, CASES[0])


def test_an_hourly_server_is_renewed_by_hours(house: House) -> None:
    tariff = next(tariff for tariff in client(house).catalog.tariffs() if tariff.hourly_available and tariff.in_stock)
    id = server(house, tariff_id=tariff.id, billing_cycle="hourly")
    before = due(house, id)
    result = do(house, "server_renew", {"name": "web-1", "until": text(before + timedelta(hours=4, minutes=1))})
    assert due(house, id) == before + timedelta(hours=5)
    assert result.cost is not None
    assert result.cost.amount == Decimal(result.result.charged)
    given = do(house, "server_renew", {"name": "web-1", "until": text(before + timedelta(hours=6)), "hours": 9})
    assert due(house, id) == before + timedelta(hours=14)
    assert given.changed
    for more, field in (({"months": 1}, "months"), ({"hours": 1}, "hours"), ({}, "until")):
        with pytest.raises(InvalidInput) as caught:
            do(house, "server_renew", {"name": "web-1", "until": text(before + timedelta(days=60)), **more})
        assert set(caught.value.fields) == {field}
        assert sent(house) == []


@pytest.mark.parametrize(("more", "days", "field"), [({"months": 1}, 31, "months"), ({}, 366, "until"), ({"hours": 5}, 1, "hours")])
def test_a_period_that_falls_short_is_refused_before_anything_is_sent(house: House, more: dict[str, int], days: int, field: str) -> None:
    id = server(house)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput) as caught:
            do(house, "server_renew", {"id": id, "until": text(due(house, id) + timedelta(days=days)), **more}, dry_run=dry_run)
        assert set(caught.value.fields) == {field}
        assert sent(house) == []


def test_a_given_period_is_bought_as_given(house: House) -> None:
    id = server(house)
    before = due(house, id)
    do(house, "server_renew", {"id": id, "until": text(before + timedelta(days=1)), "months": 6})
    assert due(house, id) == later(before, 6)


def test_another_period_from_the_same_date_is_not_charged_beside_the_first(house: House) -> None:
    id = server(house)
    action = ACTIONS["server_renew"]
    desired = [check(action, {"id": id, "until": text(due(house, id) + timedelta(days=1)), "months": months}) for months in (3, 1)]
    contexts = [house.context(identity=f"ansible:/{who}", name_is_identity=True) for who in ("a", "b")]
    plans = [action.plan(context, inputs) for context, inputs in zip(contexts, desired, strict=True)]
    for context, inputs, plan in zip(contexts, desired, plans, strict=True):
        action.perform(context, inputs, plan)
    assert charges(house, CASES[0]) == 1


def test_another_period_after_a_refused_one_is_charged(house: House) -> None:
    id = server(house)
    until = text(due(house, id) + timedelta(days=1))
    set_balance(house, "10.00")
    with pytest.raises(InsufficientFunds):
        do(house, "server_renew", {"id": id, "until": until, "months": 12})
    assert do(house, "server_renew", {"id": id, "until": until, "months": 1}).changed
    assert charges(house, CASES[0]) == 1


def test_a_lock_and_a_cancellation_that_were_lifted_are_of_the_past(house: House) -> None:
    id = server(house)
    desired = {"id": id, "until": text(due(house, id) + timedelta(days=1))}
    house.control("PATCH", f"/servers/{id}", {"blocked": True})
    with pytest.raises(ServerBlocked):
        do(house, "server_renew", desired)
    house.control("PATCH", f"/servers/{id}", {"blocked": False, "status": "pending_cancel"})
    for _ in range(2):
        with pytest.raises(Conflict, match="a cancellation of the service is pending"):
            do(house, "server_renew", desired)
    house.control("PATCH", f"/servers/{id}", {"status": "active"})
    assert do(house, "server_renew", desired).changed
    assert charges(house, CASES[0]) == 1


def test_a_refusal_that_nothing_explains_ends(house: House) -> None:
    id = server(house)
    house.arm({"status": 403, "code": "server_blocked"}, path="/renew$", times=99)
    with pytest.raises(ServerBlocked):
        do(house, "server_renew", {"id": id, "until": text(due(house, id) + timedelta(days=1))})
    assert len(sent(house)) == GENERATIONS


def test_a_server_without_a_due_date_is_not_renewed(house: House) -> None:
    id = server(house)
    house.arm({"patch": {"billing": {"next_due_at": None}}}, path=f"^/servers/{id}$", method="GET", times=2)
    with pytest.raises(ResourceError, match="has no due date"):
        do(house, "server_renew", {"id": id, "until": "2030-01-01"})


def test_a_price_that_nobody_quotes_is_taken_in_proportion(house: House) -> None:
    id = server(house)
    desired = {"id": id, "until": text(due(house, id) + timedelta(days=50))}
    house.arm({"status": 404, "code": "not_found"}, path="^/catalog/quote$", method="GET", times=2)
    cost = do(house, "server_renew", desired, dry_run=True).cost
    assert cost is not None
    assert (cost.amount, cost.what.endswith(", in proportion")) == (Decimal("15.00"), True)
    house.control("DELETE", "/faults")
    quoted = do(house, "server_renew", desired).cost
    assert quoted is not None
    assert quoted.what.endswith(", as quoted")
    assert quoted.amount == Decimal("14.25") == charged(house, CASES[0])


def test_a_renewal_waits_for_another_operation(house: House) -> None:
    id = server(house)
    desired = {"id": id, "until": text(due(house, id) + timedelta(days=1))}
    client(house).servers.reinstall(int(id), os="debian-12")
    for _ in range(2):
        with pytest.raises(OperationInProgress):
            do(house, "server_renew", desired, wait_timeout=0.0)
    assert do(house, "server_renew", desired).changed
    assert any("another operation is running" in line for line in house.told)
    assert charges(house, CASES[0]) == 1


def test_a_suspended_server_is_renewed(house: House) -> None:
    _unpaid_renewal(house)
    found = client(house).servers.list()
    id = str(next(iter(found)).id)
    desired = {"id": id, "until": text(due(house, id) + timedelta(days=3))}
    predicted = do(house, "server_renew", desired, dry_run=True)
    assert one(predicted.after)["status"] is None or one(predicted.after)["status"] == "active"
    result = do(house, "server_renew", desired)
    assert (result.before is not None, result.result.status) == (True, "active")
    assert charges(house, CASES[0]) == 1


def test_a_refunded_renewal_is_renewed_anew(house: House) -> None:
    """Its answer is stored, and what it brought was taken back: the date is the old one again."""
    id = server(house)
    seen = due(house, id)
    desired = {"id": id, "until": text(seen + timedelta(days=1))}
    first = do(house, "server_renew", desired).result.invoice_id
    for _ in range(2):
        house.arm({"patch": {"billing": {"next_due_at": as_text(seen)}}}, path=f"^/servers/{id}$", method="GET", times=4)
        house.arm({"patch": {"status": "refunded"}}, path=f"^/invoices/{first}$", method="GET")
        do(house, "server_renew", desired)
        house.control("DELETE", "/faults")
        assert charges(house, CASES[0]) == 2  # the answer of the second one holds


def test_a_simulated_renewal_charges_nothing(town: House) -> None:
    key = town.emulator.test_key
    id = str(town.order(key=key).id)
    found = town.context(key=key).client.servers.get(int(id)).billing
    assert found is not None
    assert found.next_due_at is not None
    until = text(found.next_due_at + timedelta(days=1))
    result = do(town, "server_renew", {"id": id, "until": until}, key=key)
    assert (result.changed, result.result.mode) == (True, "test")
    assert datetime.fromisoformat(result.result.next_due_at) >= datetime.fromisoformat(until)
    assert town.control.ledger() == []


# --- domain_renew ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "years"), [(1, 1), (365, 1), (366, 2), (1400, 4)])
def test_the_fewest_years_that_reach_are_bought(house: House, days: int, years: int) -> None:
    id = domain(house)
    before = expires(house, id)
    result = do(house, "domain_renew", {"name": "Example-1.com", "until": text(before + timedelta(days=days))})
    assert expires(house, id) == later(before, 12 * years)
    assert Decimal(result.result.charged) == 13 * years
    assert result.result.renewal == "renewed"


def test_years_that_fall_short_are_refused_before_anything_is_sent(house: House) -> None:
    id = domain(house)
    for more, field in (({"years": 1}, "years"), ({}, "until")):
        with pytest.raises(InvalidInput) as caught:
            do(house, "domain_renew", {"id": id, "until": text(expires(house, id) + timedelta(days=366 if more else 4000)), **more})
        assert set(caught.value.fields) == {field}
        assert sent(house) == []


def test_a_renewal_that_does_not_show_yet_is_not_paid_again(town: House) -> None:
    id = domain(town)
    before = expires(town, id)
    desired = {"id": id, "until": text(before + timedelta(days=1))}
    town.arm({"registrar": "pending"}, path="/renew$")
    result = do(town, "domain_renew", desired)
    assert result.result.renewal in ("pending_sync", "pending")
    assert expires(town, id) == before
    for more in ({}, {"years": 3}):
        for dry_run in (True, False):
            again = do(town, "domain_renew", {**desired, **more}, dry_run=dry_run)
            assert (again.changed, again.result.renewal, sent(town)) == (False, "pending_sync", [])
            assert "the new date shows later" in (again.note or "")
    town.control("POST", "/clock", {"advance": 90000})
    assert expires(town, id) == later(before, 12)
    assert do(town, "domain_renew", desired).changed is False
    assert charges(town, CASES[1]) == 1


def test_two_renewals_in_a_row_are_two_where_two_are_declared(house: House) -> None:
    id = domain(house)
    for times in (1, 2, 3):
        assert do(house, "domain_renew", {"id": id, "until": text(expires(house, id) + timedelta(days=1))}).changed
        assert charges(house, CASES[1]) == times


def test_without_a_look_at_the_invoices_the_key_still_protects(house: House) -> None:
    id = domain(house)
    desired = {"id": id, "until": text(expires(house, id) + timedelta(days=1))}
    scopes = [scope for scope in client(house).me().scopes if scope != "invoices:read"]
    blind = house.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    house.arm({"registrar": "pending"}, path="/renew$")
    do(house, "domain_renew", desired, key=blind)
    assert do(house, "domain_renew", desired, key=blind).result.renewal == "pending_sync"
    assert any("known by its key alone" in line for line in house.told)
    with pytest.raises(Forbidden):
        do(house, "domain_renew", {**desired, "years": 2}, key=blind)
    assert charges(house, CASES[1]) == 1


def test_another_period_beside_a_paid_one_is_refused_while_it_does_not_show(house: House) -> None:
    """A promo price hides the years that were paid, so that only the key tells."""
    id = domain(house)
    desired = {"id": id, "until": text(expires(house, id) + timedelta(days=1))}
    house.arm({"registrar": "pending"}, path="/renew$")
    do(house, "domain_renew", desired)
    house.arm({"patch": {"registered_at": None}}, path="^/domains/", method="GET", times=9)
    with pytest.raises(ResourceError, match=r"was renewed from .* already, for another period \(invoice [0-9]+\).* nothing was charged"):
        do(house, "domain_renew", {**desired, "years": 2})
    assert charges(house, CASES[1]) == 1


def test_a_locked_domain_is_renewed_once_it_is_unlocked(house: House) -> None:
    id = domain(house)
    desired = {"id": id, "until": text(expires(house, id) + timedelta(days=1))}
    house.control("PATCH", f"/domains/{id}", {"blocked": True})
    with pytest.raises(DomainBlocked):
        do(house, "domain_renew", desired)
    house.control("PATCH", f"/domains/{id}", {"blocked": False})
    assert do(house, "domain_renew", desired).changed
    assert charges(house, CASES[1]) == 1


def test_what_the_registrar_refuses_is_its_refusal(house: House) -> None:
    id = domain(house, years=9)
    with pytest.raises(UpstreamRejected, match="at most 10 years ahead"):
        do(house, "domain_renew", {"id": id, "until": text(expires(house, id) + timedelta(days=700))})


def test_a_domain_without_a_date_is_not_renewed(house: House) -> None:
    house.arm({"registrar": "pending"}, path="^/domains$")
    client(house).domains.register(name="example-1.com")
    with pytest.raises(ResourceError, match=r"is pending and shows no expiry date. Next: run again once it is active"):
        do(house, "domain_renew", {"name": "example-1.com", "until": "2030-01-01"})


# --- invoice_pay -------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_paid_says_why(house: House) -> None:
    topup = client(house).balance.topup(amount="10.00", gateway="card").invoice_id
    with pytest.raises(ResourceError, match="is a top-up of the balance and cannot be paid from it; nothing was sent"):
        do(house, "invoice_pay", {"id": topup})
    with pytest.raises(ResourceError, match="there is no invoice with id 999 on this account"):
        do(house, "invoice_pay", {"id": "999"})
    id = _unpaid_renewal(house)
    for status in ("cancelled", "refunded", "pending", "failed", "disputed"):
        house.arm({"patch": {"status": status}}, path=f"^/invoices/{id}$", method="GET")
        with pytest.raises(ResourceError, match=f"invoice {id} is {status} and cannot be paid; nothing was sent. Next: "):
            do(house, "invoice_pay", {"id": id})
        assert sent(house) == []


def test_a_paid_invoice_shows_what_it_was_for(house: House) -> None:
    id = _unpaid_renewal(house)
    result = do(house, "invoice_pay", {"id": id})
    assert (result.result.status, result.result.type, result.result.amount) == ("paid", "vds_renewal", "5.00")
    assert result.result.server_ids == [str(next(iter(client(house).servers.list())).id)]
    assert Decimal(result.result.balance_after) == client(house).balance.get().balance
    assert result.result.paid_at


def test_a_simulated_payment_moves_nothing(house: House) -> None:
    id = _unpaid_renewal(house)
    before = house.control.ledger()
    result = do(house, "invoice_pay", {"id": id}, key=house.emulator.test_key)
    assert (result.changed, result.result.status, result.result.mode) == (True, "paid", "test")
    assert house.control.ledger() == before


# --- balance_topup -----------------------------------------------------------------------------------------------------------

DESIRED = {"amount": "50", "gateway": "card", "balance_below": 2000}


def unpaid(house: House) -> list[int]:
    return [invoice.id for invoice in client(house).invoices.list(type="topup")]


def test_a_topup_is_asked_for_once(town: House) -> None:
    predicted = do(town, "balance_topup", DESIRED, dry_run=True)
    assert (predicted.changed, sent(town), predicted.cost) == (True, [], None)
    result = do(town, "balance_topup", DESIRED)
    assert result.changed
    assert result.result.payment_url.startswith("https://")
    assert (result.result.amount, result.result.gateway, result.result.currency, result.result.balance) == (
        "50.00",
        "card",
        "EUR",
        "1000.00",
    )
    for name, value in one(predicted.after).items():
        assert value in (None, one(result.after)[name]), name
    seen = do(town, "balance_topup", DESIRED, dry_run=True)
    assert (seen.changed, seen.result.payment_url, seen.result.invoice_id, sent(town)) == (False, None, result.result.invoice_id, [])
    again = do(town, "balance_topup", DESIRED)
    assert (again.changed, again.result) == (False, result.result)
    assert [str(id) for id in unpaid(town)] == [result.result.invoice_id]
    # Paid, and below the mark again: a new one.
    town.control("POST", f"/invoices/{result.result.invoice_id}/confirm", {})
    assert do(town, "balance_topup", DESIRED).result.invoice_id != result.result.invoice_id
    assert len(unpaid(town)) == 2


def test_a_balance_that_suffices_is_left_alone(house: House) -> None:
    result = do(house, "balance_topup", {**DESIRED, "balance_below": "1000.00"})
    assert (result.changed, result.result.invoice_id, result.result.balance, sent(house)) == (False, None, "1000.00", [])
    assert result.note == "the balance is 1000.00 EUR, which is not below 1000.00"


@pytest.mark.parametrize(
    ("more", "field"), [({"amount": "4.99"}, "amount"), ({"amount": "10001"}, "amount"), ({"gateway": "gold"}, "gateway")]
)
def test_bounds_and_gateways_are_asked_for_before_anything_is_sent(house: House, more: dict[str, str], field: str) -> None:
    for dry_run in (True, False):
        with pytest.raises(InvalidInput) as caught:
            do(house, "balance_topup", {**DESIRED, **more}, dry_run=dry_run)
        assert set(caught.value.fields) == {field}
        assert sent(house) == []


@pytest.mark.parametrize("after", [False, True])
def test_killed_anywhere_there_is_one_topup(house: House, after: bool) -> None:
    at = 0
    while True:
        try:
            do(house, "balance_topup", DESIRED, transport=Dying(at, after))
        except Killed:
            at += 1
            continue
        break
    assert at > 3
    assert len(unpaid(house)) == 1


def test_the_lost_answer_of_a_topup_is_looked_up(house: House) -> None:
    house.arm({"drop": "after"}, path="^/balance/topup$", times=50)
    result = do(house, "balance_topup", DESIRED)
    assert result.result.invoice_id == str(unpaid(house)[0])
    assert result.result.payment_url


def test_a_link_that_the_key_may_not_ask_for_is_left_out(house: House) -> None:
    made = do(house, "balance_topup", DESIRED).result
    scopes = [scope for scope in client(house).me().scopes if scope != "invoices:pay"]
    key = house.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    result = do(house, "balance_topup", DESIRED, key=key)
    assert (result.changed, result.result.invoice_id, result.result.payment_url) == (False, made.invoice_id, None)
    assert any("its payment link cannot be shown" in line for line in house.told)


def test_a_simulated_topup_makes_no_invoice(house: House) -> None:
    first, second = (do(house, "balance_topup", DESIRED, key=house.emulator.test_key).result for _ in range(2))
    assert first == second
    assert first.mode == "test"
    assert unpaid(house) == []


# --- how far a period reaches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "months", "reaches"),
    [("2031-01-31", 1, "2031-02-28"), ("2031-03-15", 1, "2031-04-14"), ("2031-02-15", 1, "2031-03-15"), ("2031-12-15", 12, "2032-12-09")],
)
def test_months_reach_what_they_reach_under_either_reading(start: str, months: int, reaches: str) -> None:
    assert after_months(datetime.fromisoformat(start).replace(tzinfo=UTC), months).date().isoformat() == reaches


def test_years_reach_what_they_reach_under_either_reading() -> None:
    start = datetime(2031, 3, 1, tzinfo=UTC)
    assert after_years(start, 1) == datetime(2032, 2, 29, tzinfo=UTC)
    assert after_years(datetime(2032, 2, 29, tzinfo=UTC), 1) == datetime(2033, 2, 28, tzinfo=UTC)


def test_a_key_without_the_scope_to_pay_is_refused_by_the_service(house: House) -> None:
    id = server(house)
    _, key = new_key(house)
    with pytest.raises(Forbidden):
        do(house, "server_renew", {"id": id, "until": text(due(house, id) + timedelta(days=1))}, key=key)
