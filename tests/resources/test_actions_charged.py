"""What is charged is charged once: run twice, killed anywhere, cut, refused and filled up again, with
whatever the service remembers.
"""

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
from tests.resources.conftest import KillingTransport, ProcessKilled, ResourceHarness
from tests.resources.test_actions import any_dialect, do, new_key, one, sent, server

__all__ = ["any_dialect"]  # a fixture

READINGS: list[dict[str, Any]] = [{}, {"refusals_stored": False}, {"key_memory": "key"}]


def names(readings: Any) -> str:
    if isinstance(readings, bool):
        return "processed" if readings else "unsent"
    return "-".join(f"{name}={value}" for name, value in readings.items()) or "defaults"


def client(harness: ResourceHarness) -> Client:
    return harness.context().client


def billing(harness: ResourceHarness, id: str) -> m.ServerBilling:
    found = client(harness).servers.get(int(id)).billing
    assert found is not None
    return found


def due(harness: ResourceHarness, id: str) -> datetime:
    found = billing(harness, id).next_due_at
    assert found is not None
    return found


def domain(harness: ResourceHarness, name: str = "example-1.com", years: int = 1) -> str:
    return str(client(harness).domains.register(name=name, years=years, privacy=False).domain_id)


def expires(harness: ResourceHarness, id: str) -> datetime:
    found = client(harness).domains.get(int(id)).expires_at
    assert found is not None
    return found


def later(moment: datetime, months: int) -> datetime:
    """By the calendar, as the service counts."""
    return datetime.fromtimestamp(months_after(moment.timestamp(), months), UTC)


def text(moment: datetime) -> str:
    return moment.isoformat()


# --- the ones that charge, told alike ----------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A charge: how its object comes to be, what asks for it, and the operation and path that it goes by."""

    kind: str
    make: Callable[[ResourceHarness], str]
    desired: Callable[[ResourceHarness, str], dict[str, Any]]
    operation: str
    path: str


def _unpaid_renewal(harness: ResourceHarness) -> str:
    """The invoice of a renewal that the balance did not cover."""
    id = server(harness)
    harness.control("PATCH", f"/servers/{id}", {"auto_renew": False})
    harness.control("POST", "/clock", {"advance": 31 * 86400})
    return str(next(iter(client(harness).invoices.list(type="vds_renewal", status="not_paid"))).id)


CASES = [
    Case(
        "server_renew",
        server,
        lambda harness, id: {"id": id, "until": text(due(harness, id) + timedelta(days=20))},
        "renew_server",
        "^/servers/[0-9]+/renew$",
    ),
    Case(
        "domain_renew",
        domain,
        lambda harness, id: {"id": id, "until": text(expires(harness, id) + timedelta(days=20))},
        "renew_domain",
        "^/domains/[0-9]+/renew$",
    ),
    Case(
        "invoice_pay",
        _unpaid_renewal,
        lambda harness, id: {"id": id},
        "pay_invoice",
        "^/invoices/[0-9]+/pay$",
    ),
]
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)


def charges(harness: ResourceHarness, case: Case) -> int:
    """Charges of the operation that were not returned."""
    rows = [row for row in harness.account.ledger() if row["operation"] == case.operation]
    return sum(1 if row["direction"] == "debit" else -1 for row in rows)


def charged(harness: ResourceHarness, case: Case) -> Decimal:
    return sum(
        (Decimal(row["amount"]) for row in harness.account.ledger() if row["operation"] == case.operation),
        Decimal(0),
    ).copy_abs()


def set_balance(harness: ResourceHarness, amount: str) -> None:
    harness.control("PATCH", "/account", {"balance": amount})


@each
def test_predicted_then_done_then_found_done(any_dialect: ResourceHarness, case: Case) -> None:
    desired = case.desired(any_dialect, case.make(any_dialect))
    approved: list[Cost] = []
    predicted = do(any_dialect, case.kind, desired, dry_run=True, approve=approved.append)
    assert sent(any_dialect) == []
    result = do(any_dialect, case.kind, desired, approve=approved.append)
    assert predicted.changed
    assert result.changed
    assert predicted.cost is not None
    assert result.cost is not None
    assert predicted.cost.amount == result.cost.amount == charged(any_dialect, case)
    assert [cost.amount for cost in approved] == [result.cost.amount] * 2
    assert predicted.before == result.before
    assert set(one(predicted.after)) == set(one(result.after))
    for name, value in one(predicted.after).items():
        assert value in (None, one(result.after)[name]), name  # what is predicted is so
    again = do(any_dialect, case.kind, desired, approve=lambda cost: pytest.fail("nothing is charged"))
    assert (again.changed, again.cost, sent(any_dialect)) == (False, None, [])
    assert again.note
    assert set(one(again.after)) == set(one(result.after))
    assert charges(any_dialect, case) == 1


@each
@pytest.mark.parametrize(
    ("readings", "after"), [({}, False), *((readings, True) for readings in READINGS)], ids=names
)
def test_killed_anywhere_and_run_again_it_is_one_charge(
    harness: ResourceHarness, case: Case, readings: dict[str, Any], after: bool
) -> None:
    harness.account.variant(**readings)
    desired = case.desired(harness, case.make(harness))
    at = 0
    while True:
        transport = KillingTransport(at, after)
        try:
            do(harness, case.kind, desired, transport=transport)
        except ProcessKilled:
            at += 1
            continue
        break
    assert at > 1
    assert charges(harness, case) == 1
    assert do(harness, case.kind, desired).changed is False


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
def test_a_cut_answer_is_asked_for_with_the_same_key(
    harness: ResourceHarness, case: Case, action: dict[str, Any]
) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault(action, path=case.path)
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@each
def test_an_answer_that_never_comes_is_made_out_by_the_account(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault({"drop": "after"}, path=case.path, times=50)
    result = do(harness, case.kind, desired)
    assert result.changed
    assert charges(harness, case) == 1
    harness.control("DELETE", "/faults")
    assert do(harness, case.kind, desired).changed is False


@each
def test_a_request_that_never_arrives_is_repeated_by_the_next_run(
    harness: ResourceHarness, case: Case
) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault({"drop": "before"}, path=case.path, times=50)
    with pytest.raises(
        Failed,
        match=r"was carried out is not known; it does not show yet. Next: run again: "
        r"the same request is repeated",
    ):
        do(harness, case.kind, desired)
    harness.control("DELETE", "/faults")
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@each
@pytest.mark.parametrize("readings", READINGS, ids=names)
def test_refused_for_want_of_money_then_filled_up_it_works_once(
    harness: ResourceHarness, case: Case, readings: dict[str, Any]
) -> None:
    harness.account.variant(**readings)
    desired = case.desired(harness, case.make(harness))
    set_balance(harness, "0.50")
    for _ in range(3):
        with pytest.raises(InsufficientFunds, match="top up the balance and run again"):
            do(harness, case.kind, desired)
    set_balance(harness, "100.00")
    assert do(harness, case.kind, desired).changed
    assert do(harness, case.kind, desired).changed is False
    assert charges(harness, case) == 1


@each
def test_a_refusal_without_figures_is_compared_with_the_price(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    set_balance(harness, "0.50")
    harness.fault({"patch": {"error": {"details": {"required": None}}}}, path=case.path, times=9)
    with pytest.raises(InsufficientFunds):
        do(harness, case.kind, desired)
    set_balance(harness, "100.00")
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@each
def test_charged_failed_and_returned_it_is_reported_and_works_later(
    harness: ResourceHarness, case: Case
) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault({"refunded": 502, "code": "upstream_error"}, path=case.path)
    with pytest.raises(
        Failed,
        match=r"the charge was returned \(invoice [0-9]+\); nothing was repeated. Next: run again in "
        r"a few",
    ) as caught:
        do(harness, case.kind, desired)
    assert (caught.value.status, caught.value.code) == (502, "upstream_error")
    assert charges(harness, case) == 0
    harness.control("POST", "/clock", {"advance": 600})
    # The outcome is stored under its key for a week; a run that sees it to be of the past goes on.
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case.kind)  # of an invoice its own status tells
def test_money_that_is_gone_without_effect_stops_everything(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    assert do(harness, case.kind, desired).changed
    # The same again, with a failure in between: the account shows a paid invoice of a moment ago, and not
    # what it was for.
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    with pytest.raises(
        Failed,
        match=r"invoice [0-9]+ is paid, and the renewal of .* does not show; nothing "
        r"was repeated",
    ):
        do(harness, case.kind, {**desired, "until": further(harness, case, desired)})
    assert charges(harness, case) == 1


def further(harness: ResourceHarness, case: Case, desired: dict[str, Any]) -> str:
    now = due(harness, desired["id"]) if case.kind == "server_renew" else expires(harness, desired["id"])
    return text(now + timedelta(days=1))


@each
def test_a_failure_of_the_service_without_a_charge_is_tried_with_another_key(
    harness: ResourceHarness, case: Case
) -> None:
    desired = case.desired(harness, case.make(harness))
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


@each
def test_where_the_money_cannot_be_seen_nothing_is_repeated(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    scopes = [scope for scope in client(harness).me().scopes if scope != "balance:read"]
    blind = harness.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    with pytest.raises(Failed, match="is not known; it does not show yet"):
        do(harness, case.kind, desired, key=blind)
    assert charges(harness, case) == 0


@each
def test_two_runs_that_saw_the_same_pay_once_between_them(harness: ResourceHarness, case: Case) -> None:
    """Both planned before either was done."""
    desired = case.desired(harness, case.make(harness))
    action = ACTIONS[case.kind]
    inputs = check(action, desired)
    contexts = [harness.context(identity=f"ansible:/{who}", name_is_identity=True) for who in ("a", "b")]
    plans = [action.plan(context, inputs) for context in contexts]
    for context, plan in zip(contexts, plans, strict=True):
        action.perform(context, inputs, plan)
    assert charges(harness, case) == 1


@each
def test_a_failure_while_another_run_was_quicker_is_none(harness: ResourceHarness, case: Case) -> None:
    desired = case.desired(harness, case.make(harness))
    action = ACTIONS[case.kind]
    inputs, context = check(action, desired), harness.context(identity="ansible:/a", name_is_identity=True)
    plan = action.plan(context, inputs)
    do(harness, case.kind, desired)
    harness.fault({"status": 500, "code": "server_error"}, path=case.path)
    result: Any = action.perform(context, inputs, plan)
    assert result.mode in ("live", None)
    assert charges(harness, case) == 1


@each
def test_an_answer_that_came_too_late_is_never_followed_by_another_request(
    harness: ResourceHarness, case: Case
) -> None:
    """504: it may be carried out yet (API document, "Errors")."""
    desired = case.desired(harness, case.make(harness))
    harness.fault({"status": 504, "code": "upstream_timeout"}, path=case.path, times=50)
    with pytest.raises(Failed, match="the same request is repeated, never a second one") as caught:
        do(harness, case.kind, desired)
    assert caught.value.status == 504
    keys = {row["headers"]["idempotency-key"] for row in requests(harness) if row["status"] == 504}
    assert len(keys) == 1
    harness.control("DELETE", "/faults")
    assert do(harness, case.kind, desired).changed
    assert charges(harness, case) == 1


def requests(harness: ResourceHarness) -> list[dict[str, Any]]:
    found = harness.control("GET", "/requests?since=0")
    rows = found["requests"] if isinstance(found, dict) else found
    return [
        {**row, "headers": {name.lower(): value for name, value in row["headers"].items()}} for row in rows
    ]


# --- server_renew ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "months"), [(1, 1), (28, 1), (32, 3), (85, 3), (95, 6), (175, 6), (200, 12), (358, 12)]
)
def test_the_smallest_period_that_reaches_is_bought_at_its_price(
    harness: ResourceHarness, days: int, months: int
) -> None:
    id = server(harness)
    client(harness).servers.ips.add(int(id))
    harness.control("POST", "/clock", {"advance": 60})
    before = due(harness, id)
    until = before + timedelta(days=days)
    result = do(harness, "server_renew", {"id": id, "until": text(until)})
    assert due(harness, id) == later(before, months) >= until
    assert result.cost is not None
    assert result.cost.what.startswith(f"server web-1, {months} month{'s' if months > 1 else ''} from ")
    assert result.cost.amount == Decimal(result.result.charged) == charged(harness, CASES[0])


def test_an_hourly_server_is_renewed_by_hours(harness: ResourceHarness) -> None:
    tariff = next(
        tariff for tariff in client(harness).catalog.tariffs() if tariff.hourly_available and tariff.in_stock
    )
    id = server(harness, tariff_id=tariff.id, billing_cycle="hourly")
    before = due(harness, id)
    result = do(
        harness, "server_renew", {"name": "web-1", "until": text(before + timedelta(hours=4, minutes=1))}
    )
    assert due(harness, id) == before + timedelta(hours=5)
    assert result.cost is not None
    assert result.cost.amount == Decimal(result.result.charged)
    given = do(
        harness, "server_renew", {"name": "web-1", "until": text(before + timedelta(hours=6)), "hours": 9}
    )
    assert due(harness, id) == before + timedelta(hours=14)
    assert given.changed
    for more, field in (({"months": 1}, "months"), ({"hours": 1}, "hours"), ({}, "until")):
        with pytest.raises(InvalidInput) as caught:
            do(harness, "server_renew", {"name": "web-1", "until": text(before + timedelta(days=60)), **more})
        assert set(caught.value.fields) == {field}
        assert sent(harness) == []


@pytest.mark.parametrize(
    ("more", "days", "field"), [({"months": 1}, 31, "months"), ({}, 366, "until"), ({"hours": 5}, 1, "hours")]
)
def test_a_period_that_falls_short_is_refused_before_anything_is_sent(
    harness: ResourceHarness, more: dict[str, int], days: int, field: str
) -> None:
    id = server(harness)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput) as caught:
            do(
                harness,
                "server_renew",
                {"id": id, "until": text(due(harness, id) + timedelta(days=days)), **more},
                dry_run=dry_run,
            )
        assert set(caught.value.fields) == {field}
        assert sent(harness) == []


def test_a_given_period_is_bought_as_given(harness: ResourceHarness) -> None:
    id = server(harness)
    before = due(harness, id)
    do(harness, "server_renew", {"id": id, "until": text(before + timedelta(days=1)), "months": 6})
    assert due(harness, id) == later(before, 6)


def test_another_period_from_the_same_date_is_not_charged_beside_the_first(harness: ResourceHarness) -> None:
    id = server(harness)
    action = ACTIONS["server_renew"]
    desired = [
        check(action, {"id": id, "until": text(due(harness, id) + timedelta(days=1)), "months": months})
        for months in (3, 1)
    ]
    contexts = [harness.context(identity=f"ansible:/{who}", name_is_identity=True) for who in ("a", "b")]
    plans = [action.plan(context, inputs) for context, inputs in zip(contexts, desired, strict=True)]
    for context, inputs, plan in zip(contexts, desired, plans, strict=True):
        action.perform(context, inputs, plan)
    assert charges(harness, CASES[0]) == 1


def test_another_period_after_a_refused_one_is_charged(harness: ResourceHarness) -> None:
    id = server(harness)
    until = text(due(harness, id) + timedelta(days=1))
    set_balance(harness, "10.00")
    with pytest.raises(InsufficientFunds):
        do(harness, "server_renew", {"id": id, "until": until, "months": 12})
    assert do(harness, "server_renew", {"id": id, "until": until, "months": 1}).changed
    assert charges(harness, CASES[0]) == 1


def test_a_lock_and_a_cancellation_that_were_lifted_are_of_the_past(harness: ResourceHarness) -> None:
    id = server(harness)
    desired = {"id": id, "until": text(due(harness, id) + timedelta(days=1))}
    harness.control("PATCH", f"/servers/{id}", {"blocked": True})
    with pytest.raises(ServerBlocked):
        do(harness, "server_renew", desired)
    harness.control("PATCH", f"/servers/{id}", {"blocked": False, "status": "pending_cancel"})
    for _ in range(2):
        with pytest.raises(Conflict, match="a cancellation of the service is pending"):
            do(harness, "server_renew", desired)
    harness.control("PATCH", f"/servers/{id}", {"status": "active"})
    assert do(harness, "server_renew", desired).changed
    assert charges(harness, CASES[0]) == 1


def test_a_refusal_that_nothing_explains_ends(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"status": 403, "code": "server_blocked"}, path="/renew$", times=99)
    with pytest.raises(ServerBlocked):
        do(harness, "server_renew", {"id": id, "until": text(due(harness, id) + timedelta(days=1))})
    assert len(sent(harness)) == GENERATIONS


def test_a_server_without_a_due_date_is_not_renewed(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault(
        {"patch": {"billing": {"next_due_at": None}}}, path=f"^/servers/{id}$", method="GET", times=2
    )
    with pytest.raises(ResourceError, match="has no due date"):
        do(harness, "server_renew", {"id": id, "until": "2030-01-01"})


def test_a_price_without_a_quote_is_taken_in_proportion(harness: ResourceHarness) -> None:
    id = server(harness)
    desired = {"id": id, "until": text(due(harness, id) + timedelta(days=50))}
    harness.fault({"status": 404, "code": "not_found"}, path="^/catalog/quote$", method="GET", times=2)
    cost = do(harness, "server_renew", desired, dry_run=True).cost
    assert cost is not None
    assert (cost.amount, cost.what.endswith(", in proportion")) == (Decimal("15.00"), True)
    harness.control("DELETE", "/faults")
    quoted = do(harness, "server_renew", desired).cost
    assert quoted is not None
    assert quoted.what.endswith(", as quoted")
    assert quoted.amount == Decimal("14.25") == charged(harness, CASES[0])


def test_a_renewal_waits_for_another_operation(harness: ResourceHarness) -> None:
    id = server(harness)
    desired = {"id": id, "until": text(due(harness, id) + timedelta(days=1))}
    client(harness).servers.reinstall(int(id), os="debian-12")
    for _ in range(2):
        with pytest.raises(OperationInProgress):
            do(harness, "server_renew", desired, wait_timeout=0.0)
    assert do(harness, "server_renew", desired).changed
    assert any("another operation is running" in line for line in harness.messages)
    assert charges(harness, CASES[0]) == 1


def test_a_suspended_server_is_renewed(harness: ResourceHarness) -> None:
    _unpaid_renewal(harness)
    found = client(harness).servers.list()
    id = str(next(iter(found)).id)
    desired = {"id": id, "until": text(due(harness, id) + timedelta(days=3))}
    predicted = do(harness, "server_renew", desired, dry_run=True)
    assert one(predicted.after)["status"] is None or one(predicted.after)["status"] == "active"
    result = do(harness, "server_renew", desired)
    assert (result.before is not None, result.result.status) == (True, "active")
    assert charges(harness, CASES[0]) == 1


def test_a_refunded_renewal_is_renewed_anew(harness: ResourceHarness) -> None:
    """Its answer is stored, and what it brought was taken back: the date is the old one again."""
    id = server(harness)
    seen = due(harness, id)
    desired = {"id": id, "until": text(seen + timedelta(days=1))}
    first = do(harness, "server_renew", desired).result.invoice_id
    for _ in range(2):
        harness.fault(
            {"patch": {"billing": {"next_due_at": as_text(seen)}}},
            path=f"^/servers/{id}$",
            method="GET",
            times=4,
        )
        harness.fault({"patch": {"status": "refunded"}}, path=f"^/invoices/{first}$", method="GET")
        do(harness, "server_renew", desired)
        harness.control("DELETE", "/faults")
        assert charges(harness, CASES[0]) == 2  # the answer of the second one holds


def test_a_simulated_renewal_charges_nothing(any_dialect: ResourceHarness) -> None:
    key = any_dialect.account.test_key
    id = str(any_dialect.order(key=key).id)
    found = any_dialect.context(key=key).client.servers.get(int(id)).billing
    assert found is not None
    assert found.next_due_at is not None
    until = text(found.next_due_at + timedelta(days=1))
    result = do(any_dialect, "server_renew", {"id": id, "until": until}, key=key)
    assert (result.changed, result.result.mode) == (True, "test")
    assert datetime.fromisoformat(result.result.next_due_at) >= datetime.fromisoformat(until)
    assert any_dialect.account.ledger() == []


# --- domain_renew ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "years"), [(1, 1), (365, 1), (366, 2), (1400, 4)])
def test_the_fewest_years_that_reach_are_bought(harness: ResourceHarness, days: int, years: int) -> None:
    id = domain(harness)
    before = expires(harness, id)
    result = do(
        harness, "domain_renew", {"name": "Example-1.com", "until": text(before + timedelta(days=days))}
    )
    assert expires(harness, id) == later(before, 12 * years)
    assert Decimal(result.result.charged) == 13 * years
    assert result.result.renewal == "renewed"


def test_years_that_fall_short_are_refused_before_anything_is_sent(harness: ResourceHarness) -> None:
    id = domain(harness)
    for more, field in (({"years": 1}, "years"), ({}, "until")):
        with pytest.raises(InvalidInput) as caught:
            do(
                harness,
                "domain_renew",
                {
                    "id": id,
                    "until": text(expires(harness, id) + timedelta(days=366 if more else 4000)),
                    **more,
                },
            )
        assert set(caught.value.fields) == {field}
        assert sent(harness) == []


def test_a_renewal_that_does_not_show_yet_is_not_paid_again(any_dialect: ResourceHarness) -> None:
    id = domain(any_dialect)
    before = expires(any_dialect, id)
    desired = {"id": id, "until": text(before + timedelta(days=1))}
    any_dialect.fault({"registrar": "pending"}, path="/renew$")
    result = do(any_dialect, "domain_renew", desired)
    assert result.result.renewal in ("pending_sync", "pending")
    assert expires(any_dialect, id) == before
    for more in ({}, {"years": 3}):
        for dry_run in (True, False):
            again = do(any_dialect, "domain_renew", {**desired, **more}, dry_run=dry_run)
            assert (again.changed, again.result.renewal, sent(any_dialect)) == (False, "pending_sync", [])
            assert "the new date shows later" in (again.note or "")
    any_dialect.control("POST", "/clock", {"advance": 90000})
    assert expires(any_dialect, id) == later(before, 12)
    assert do(any_dialect, "domain_renew", desired).changed is False
    assert charges(any_dialect, CASES[1]) == 1


def test_two_renewals_in_a_row_are_two_where_two_are_declared(harness: ResourceHarness) -> None:
    id = domain(harness)
    for times in (1, 2, 3):
        assert do(
            harness, "domain_renew", {"id": id, "until": text(expires(harness, id) + timedelta(days=1))}
        ).changed
        assert charges(harness, CASES[1]) == times


def test_without_a_look_at_the_invoices_the_key_still_protects(harness: ResourceHarness) -> None:
    id = domain(harness)
    desired = {"id": id, "until": text(expires(harness, id) + timedelta(days=1))}
    scopes = [scope for scope in client(harness).me().scopes if scope != "invoices:read"]
    blind = harness.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    harness.fault({"registrar": "pending"}, path="/renew$")
    do(harness, "domain_renew", desired, key=blind)
    assert do(harness, "domain_renew", desired, key=blind).result.renewal == "pending_sync"
    assert any("known by its key alone" in line for line in harness.messages)
    with pytest.raises(Forbidden):
        do(harness, "domain_renew", {**desired, "years": 2}, key=blind)
    assert charges(harness, CASES[1]) == 1


def test_another_period_beside_a_paid_one_is_refused_while_it_does_not_show(harness: ResourceHarness) -> None:
    """A promo price hides the years that were paid, so that only the key tells."""
    id = domain(harness)
    desired = {"id": id, "until": text(expires(harness, id) + timedelta(days=1))}
    harness.fault({"registrar": "pending"}, path="/renew$")
    do(harness, "domain_renew", desired)
    harness.fault({"patch": {"registered_at": None}}, path="^/domains/", method="GET", times=9)
    with pytest.raises(
        ResourceError,
        match=r"was renewed from .* already, for another period \(invoice "
        r"[0-9]+\).* nothing was charged",
    ):
        do(harness, "domain_renew", {**desired, "years": 2})
    assert charges(harness, CASES[1]) == 1


def test_a_locked_domain_is_renewed_once_it_is_unlocked(harness: ResourceHarness) -> None:
    id = domain(harness)
    desired = {"id": id, "until": text(expires(harness, id) + timedelta(days=1))}
    harness.control("PATCH", f"/domains/{id}", {"blocked": True})
    with pytest.raises(DomainBlocked):
        do(harness, "domain_renew", desired)
    harness.control("PATCH", f"/domains/{id}", {"blocked": False})
    assert do(harness, "domain_renew", desired).changed
    assert charges(harness, CASES[1]) == 1


def test_what_the_registrar_refuses_is_its_refusal(harness: ResourceHarness) -> None:
    id = domain(harness, years=9)
    with pytest.raises(UpstreamRejected, match="at most 10 years ahead"):
        do(harness, "domain_renew", {"id": id, "until": text(expires(harness, id) + timedelta(days=700))})


def test_a_domain_without_a_date_is_not_renewed(harness: ResourceHarness) -> None:
    harness.fault({"registrar": "pending"}, path="^/domains$")
    client(harness).domains.register(name="example-1.com")
    with pytest.raises(
        ResourceError,
        match=r"is pending and shows no expiry date. Next: run again once it "
        r"is active",
    ):
        do(harness, "domain_renew", {"name": "example-1.com", "until": "2030-01-01"})


# --- invoice_pay -------------------------------------------------------------------------------------------


def test_what_cannot_be_paid_says_why(harness: ResourceHarness) -> None:
    topup = client(harness).balance.topup(amount="10.00", gateway="card").invoice_id
    with pytest.raises(
        ResourceError, match="is a top-up of the balance and cannot be paid from it; nothing was sent"
    ):
        do(harness, "invoice_pay", {"id": topup})
    with pytest.raises(ResourceError, match="there is no invoice with id 999 on this account"):
        do(harness, "invoice_pay", {"id": "999"})
    id = _unpaid_renewal(harness)
    for status in ("cancelled", "refunded", "pending", "failed", "disputed"):
        harness.fault({"patch": {"status": status}}, path=f"^/invoices/{id}$", method="GET")
        with pytest.raises(
            ResourceError, match=f"invoice {id} is {status} and cannot be paid; nothing was sent. Next: "
        ):
            do(harness, "invoice_pay", {"id": id})
        assert sent(harness) == []


def test_a_paid_invoice_shows_what_it_was_for(harness: ResourceHarness) -> None:
    id = _unpaid_renewal(harness)
    result = do(harness, "invoice_pay", {"id": id})
    assert (result.result.status, result.result.type, result.result.amount) == ("paid", "vds_renewal", "5.00")
    assert result.result.server_ids == [str(next(iter(client(harness).servers.list())).id)]
    assert Decimal(result.result.balance_after) == client(harness).balance.get().balance
    assert result.result.paid_at


def test_a_simulated_payment_moves_nothing(harness: ResourceHarness) -> None:
    id = _unpaid_renewal(harness)
    before = harness.account.ledger()
    result = do(harness, "invoice_pay", {"id": id}, key=harness.account.test_key)
    assert (result.changed, result.result.status, result.result.mode) == (True, "paid", "test")
    assert harness.account.ledger() == before


# --- balance_topup -----------------------------------------------------------------------------------------

DESIRED = {"amount": "50", "gateway": "card", "balance_below": 2000}


def unpaid(harness: ResourceHarness) -> list[int]:
    return [invoice.id for invoice in client(harness).invoices.list(type="topup")]


def test_a_topup_is_asked_for_once(any_dialect: ResourceHarness) -> None:
    predicted = do(any_dialect, "balance_topup", DESIRED, dry_run=True)
    assert (predicted.changed, sent(any_dialect), predicted.cost) == (True, [], None)
    result = do(any_dialect, "balance_topup", DESIRED)
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
    seen = do(any_dialect, "balance_topup", DESIRED, dry_run=True)
    assert (seen.changed, seen.result.payment_url, seen.result.invoice_id, sent(any_dialect)) == (
        False,
        None,
        result.result.invoice_id,
        [],
    )
    again = do(any_dialect, "balance_topup", DESIRED)
    assert (again.changed, again.result) == (False, result.result)
    assert [str(id) for id in unpaid(any_dialect)] == [result.result.invoice_id]
    # Paid, and below the mark again: a new one.
    any_dialect.control("POST", f"/invoices/{result.result.invoice_id}/confirm", {})
    assert do(any_dialect, "balance_topup", DESIRED).result.invoice_id != result.result.invoice_id
    assert len(unpaid(any_dialect)) == 2


def test_a_balance_that_suffices_is_left_alone(harness: ResourceHarness) -> None:
    result = do(harness, "balance_topup", {**DESIRED, "balance_below": "1000.00"})
    assert (result.changed, result.result.invoice_id, result.result.balance, sent(harness)) == (
        False,
        None,
        "1000.00",
        [],
    )
    assert result.note == "the balance is 1000.00 EUR, which is not below 1000.00"


@pytest.mark.parametrize(
    ("more", "field"),
    [({"amount": "4.99"}, "amount"), ({"amount": "10001"}, "amount"), ({"gateway": "gold"}, "gateway")],
)
def test_bounds_and_gateways_are_asked_for_before_anything_is_sent(
    harness: ResourceHarness, more: dict[str, str], field: str
) -> None:
    for dry_run in (True, False):
        with pytest.raises(InvalidInput) as caught:
            do(harness, "balance_topup", {**DESIRED, **more}, dry_run=dry_run)
        assert set(caught.value.fields) == {field}
        assert sent(harness) == []


@pytest.mark.parametrize("after", [False, True])
def test_killed_anywhere_there_is_one_topup(harness: ResourceHarness, after: bool) -> None:
    at = 0
    while True:
        try:
            do(harness, "balance_topup", DESIRED, transport=KillingTransport(at, after))
        except ProcessKilled:
            at += 1
            continue
        break
    assert at > 3
    assert len(unpaid(harness)) == 1


def test_the_lost_answer_of_a_topup_is_looked_up(harness: ResourceHarness) -> None:
    harness.fault({"drop": "after"}, path="^/balance/topup$", times=50)
    result = do(harness, "balance_topup", DESIRED)
    assert result.result.invoice_id == str(unpaid(harness)[0])
    assert result.result.payment_url


def test_a_link_that_the_key_may_not_ask_for_is_left_out(harness: ResourceHarness) -> None:
    made = do(harness, "balance_topup", DESIRED).result
    scopes = [scope for scope in client(harness).me().scopes if scope != "invoices:pay"]
    key = harness.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    result = do(harness, "balance_topup", DESIRED, key=key)
    assert (result.changed, result.result.invoice_id, result.result.payment_url) == (
        False,
        made.invoice_id,
        None,
    )
    assert any("its payment link cannot be shown" in line for line in harness.messages)


def test_a_simulated_topup_makes_no_invoice(harness: ResourceHarness) -> None:
    first, second = (
        do(harness, "balance_topup", DESIRED, key=harness.account.test_key).result for _ in range(2)
    )
    assert first == second
    assert first.mode == "test"
    assert unpaid(harness) == []


# --- how far a period reaches ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "months", "reaches"),
    [
        ("2031-01-31", 1, "2031-02-28"),
        ("2031-03-15", 1, "2031-04-14"),
        ("2031-02-15", 1, "2031-03-15"),
        ("2031-12-15", 12, "2032-12-09"),
    ],
)
def test_months_reach_what_they_reach_under_either_reading(start: str, months: int, reaches: str) -> None:
    assert (
        after_months(datetime.fromisoformat(start).replace(tzinfo=UTC), months).date().isoformat() == reaches
    )


def test_years_reach_what_they_reach_under_either_reading() -> None:
    start = datetime(2031, 3, 1, tzinfo=UTC)
    assert after_years(start, 1) == datetime(2032, 2, 29, tzinfo=UTC)
    assert after_years(datetime(2032, 2, 29, tzinfo=UTC), 1) == datetime(2033, 2, 28, tzinfo=UTC)


def test_a_key_without_the_scope_to_pay_is_refused_by_the_service(harness: ResourceHarness) -> None:
    id = server(harness)
    _, key = new_key(harness)
    with pytest.raises(Forbidden):
        do(harness, "server_renew", {"id": id, "until": text(due(harness, id) + timedelta(days=1))}, key=key)
