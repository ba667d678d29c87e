"""Renewals of servers and domains: which period is bought, and that it is bought once."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.actions import ACTIONS, check
from pulumi_hosting.actions.periods import Period
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
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.text import as_text
from tests.resources.actions import do, new_key, one, sent, server
from tests.resources.charges import (
    CASES,
    _unpaid_renewal,
    charged,
    charges,
    client,
    domain,
    due,
    expires,
    later,
    set_balance,
    text,
)
from tests.resources.conftest import ResourceHarness


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


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"blocked": True}, r"is locked by the provider's staff.* Next: ask the provider why"),
        ({"status": "pending_cancel"}, r"its cancellation is approved\. Next: ask the provider"),
    ],
)
def test_a_dry_run_says_what_the_service_will_refuse(
    harness: ResourceHarness, change: dict[str, Any], why: str
) -> None:
    id = server(harness)
    harness.control("PATCH", f"/servers/{id}", change)
    desired = {"id": id, "until": text(due(harness, id) + timedelta(days=1))}
    do(harness, "server_renew", desired, dry_run=True)
    assert re.match(rf"it would be refused: server {id} .*{why}", harness.messages[-1])


def test_a_refusal_that_nothing_explains_ends(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"status": 403, "code": "server_blocked"}, path=f"^/servers/{id}/renew$", times=99)
    with pytest.raises(ServerBlocked):
        do(harness, "server_renew", {"id": id, "until": text(due(harness, id) + timedelta(days=1))})
    assert [line for line in sent(harness) if f"/{id}/" in line] == [f"POST /v1/servers/{id}/renew"] * 16


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


def test_a_refunded_renewal_is_renewed_again(harness: ResourceHarness) -> None:
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
    began = datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert Period("months", months).after(began).date().isoformat() == reaches


def test_years_reach_what_they_reach_under_either_reading() -> None:
    start = datetime(2031, 3, 1, tzinfo=UTC)
    assert Period("years", 1).after(start) == datetime(2032, 2, 29, tzinfo=UTC)
    assert Period("years", 1).after(datetime(2032, 2, 29, tzinfo=UTC)) == datetime(2033, 2, 28, tzinfo=UTC)


def test_a_key_without_the_scope_to_pay_is_refused_by_the_service(harness: ResourceHarness) -> None:
    id = server(harness)
    _, key = new_key(harness)
    with pytest.raises(Forbidden):
        do(harness, "server_renew", {"id": id, "until": text(due(harness, id) + timedelta(days=1))}, key=key)
