"""What ends when, and what is said of it: pure, from objects, a balance and a time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.words import PYTHON
from pulumi_hosting.planning.paid_time import PaidTime, events, months_after
from pulumi_hosting.session.prepaid import Prepaid, with_invoices

NOW = datetime(2026, 11, 22, 10, tzinfo=UTC)


def what(id: str = "1", *, days: float = 5, **more: Any) -> Prepaid:
    given = {"kind": "server", "name": "web", "amount": Decimal("5.00"), "months": 1, "renews": True}
    return Prepaid(id=id, until=NOW + timedelta(days=days), **{**given, **more})


def kinds(objects: list[Prepaid], balance: str | None, days: float = 20) -> list[tuple[str, str]]:
    amount = None if balance is None else Decimal(balance)
    found = events(objects, amount, NOW)
    return [
        (one.what.id, one.kind) for one in found if one.at is None or one.at <= NOW + timedelta(days=days)
    ]


def said(one: Prepaid, balance: str | None = "100.00") -> str | None:
    amount = None if balance is None else Decimal(balance)
    paid = PaidTime(PYTHON, NOW, (one,), amount, "EUR")
    event = paid.of(one.key)
    return None if event is None else paid.warning(event)


def test_what_is_due_on_one_day_shares_the_balance() -> None:
    server, domain = what("1", days=5), what("2", days=5.4, amount=Decimal("13.00"), months=12)
    assert kinds([server, domain], "18.00") == [("1", "renewed"), ("2", "renewed")]
    assert kinds([server, domain], "6.00") == [("1", "short"), ("2", "short")]
    assert kinds([server, what("2", days=6.4, amount=Decimal("13.00"))], "6.00") == [
        ("1", "renewed"),
        ("2", "short"),
    ]


def test_what_renews_comes_again_and_what_does_not_ends_once() -> None:
    assert kinds([what("1", days=5), what("2", days=7, renews=False)], "100.00", days=40) == [
        ("1", "renewed"),
        ("2", "ends"),
        ("1", "renewed"),
    ]


def test_a_balance_that_is_not_known_makes_nothing_short() -> None:
    assert kinds([what("1")], None) == [("1", "renewed")]


def test_what_the_service_has_not_renewed_a_day_after_its_time_is_named() -> None:
    assert said(what("1", days=-0.9)) is None
    assert said(what("1", days=-1.1)) == (
        "Overdue: server 1 (web) was paid until 2026-11-21 and was not renewed. "
        "Next: pulumi-hosting action server-renew --id 1 --until 2026-11-23"
    )


def test_what_is_free_is_never_short() -> None:
    assert kinds([what("1", amount=Decimal(0)), what("2", days=4)], "1.00") == [
        ("2", "short"),
        ("1", "renewed"),
    ]


def test_an_hourly_server_is_due_every_day() -> None:
    hourly = what("1", days=0.5, months=0, amount=Decimal("0.24"))
    paid = PaidTime(PYTHON, NOW, (hourly,), Decimal("1.00"), "EUR")
    first = paid.first_short
    assert first is not None
    assert first.at == NOW + timedelta(days=4.5)
    until = f"until {first.at:%Y-%m-%d}: then server 1 (web) is due"
    assert paid.covers() == f"the balance covers everything {until}"
    assert replace(paid, balance=Decimal(1000)).first_short is None
    assert replace(paid, balance=Decimal(1000)).covers() == "the balance covers everything that renews itself"
    assert replace(paid, balance=None).covers() == "the balance is not known"


def test_a_time_that_is_over_is_said_at_once() -> None:
    assert kinds([what("1", ended="suspended", days=-11)], "0.00") == [("1", "over")]
    assert said(what(ended="suspended", days=-11)) == (
        "server 1 (web) is suspended (it was paid until 2026-11-11). "
        "Next: pulumi-hosting action server-renew --id 1 --until 2026-11-23"
    )
    assert said(what(kind="domain", name="shop.com", ended="expired", days=-1)) == (
        "domain 1 (shop.com) is expired (it was paid until 2026-11-21). "
        "Next: pulumi-hosting action domain-renew --id 1 --until 2026-11-23"
    )
    assert said(what(ended="suspended", days=5)) == (
        "server 1 (web) is suspended, though it is paid until 2026-11-27. Next: ask the provider why"
    )


@pytest.mark.parametrize(
    ("ended", "days", "line"),
    [
        ("pending_cancel", 5, "ends on 2026-11-27: its cancellation is approved"),
        ("suspended", 5, "is suspended, and ends on 2026-11-27: its cancellation is approved"),
    ],
)
def test_an_approved_end_is_not_to_be_renewed(ended: str, days: int, line: str) -> None:
    one = what(ended=ended, days=days, is_cancelled=True, renews=False)
    assert said(one) == (
        f"server 1 (web) {line}. Next: ask the provider to withdraw it, or delete the declaration"
    )


@pytest.mark.parametrize(
    ("days", "line"),
    [
        (5, "suspended and locked by the provider's staff, though it is paid until 2026-11-27"),
        (-5, "suspended and locked by the provider's staff (it was paid until 2026-11-17)"),
    ],
)
def test_what_staff_locked_and_suspended_names_no_command(days: int, line: str) -> None:
    one = what(ended="suspended", days=days, is_locked=True, renews=False, invoice="5001")
    assert said(one) == f"server 1 (web) is {line}. Next: ask the provider why"


def test_what_is_over_is_uncovered_however_long_it_was_paid_for() -> None:
    paid = PaidTime(PYTHON, NOW, (what("1", ended="suspended", days=300), what("2", days=200)), Decimal(100))
    assert [due.what.id for due in paid.uncovered()] == ["1"]
    assert [due.what.id for due in paid.uncovered(timedelta(days=7))] == ["1"]
    assert [due.what.id for due in paid.within(timedelta(days=7))] == ["1"]


def test_a_protected_server_is_warned_of_later_and_due_as_before() -> None:
    safe = what("1", days=3, renews=False, protected_until=NOW + timedelta(days=60))
    assert said(safe) is None
    assert kinds([replace(safe, renews=True)], "1.00") == [("1", "short")]
    assert said(replace(safe, protected_until=NOW + timedelta(days=2))) is not None
    soon = replace(safe, protected_until=NOW + timedelta(days=8))
    assert str(said(soon)).startswith(
        "Soon: server 1 (web) is paid until 2026-11-30 and does not renew itself"
    )
    paid = PaidTime(PYTHON, NOW, (soon,), Decimal(100))
    listed = [len(paid.uncovered(timedelta(days=days))) for days in (7, 9)]
    assert listed == [0, 1]


def test_an_unpaid_invoice_is_what_keeps_its_object() -> None:
    line = {"description": "web", "amount": "5.00", "server_id": 1, "domain_id": None}
    given = {"id": 5001, "status": "not_paid", "amount": "5.00", "currency": "EUR", "items": [line]}
    own = m.Invoice.model_validate({**given, "type": "vds_renewal"})
    other = m.Invoice.model_validate({**given, "id": 5002, "type": "late_fee", "items": []})
    first = m.Invoice.model_validate({**given, "id": 5003, "type": "vds_purchase"})
    web, fee = with_invoices([what("1", ended="suspended", days=-1)], [own, other, first])
    assert (web.invoice, fee.kind, fee.id) == ("5001", "invoice", "5002")
    assert str(said(web)).endswith("Next: pulumi-hosting action invoice-pay --id 5001")


def test_an_amount_to_top_up_is_one_that_gateways_take() -> None:
    hourly = what("1", days=0.5, months=0, amount=Decimal("0.1776"))
    assert "--amount 10.00 --balance-below 0.18" in str(said(hourly, "0.00"))
    paid = PaidTime(PYTHON, NOW, (hourly,), Decimal(0), "EUR", gateway="card", least=Decimal("25.00"))
    assert paid.first_short is not None
    assert "--amount 30.00 --balance-below 0.18 --gateway card" in paid.step(paid.first_short)


def test_an_invoice_that_is_to_be_paid_is_named_with_its_last_day() -> None:
    invoice = what("5001", kind="invoice", name="renewal of web", renews=False)
    assert said(invoice) == (
        "Urgent: invoice 5001 (renewal of web) of 5.00 EUR is to be paid by 2026-11-27. "
        "Next: pulumi-hosting action invoice-pay --id 5001"
    )


def test_what_ends_uncovered_is_listed_once_each() -> None:
    objects = (what("1", days=40), what("2", days=6, renews=False), what("3", ended="expired", days=-3))
    paid = PaidTime(PYTHON, NOW, objects, Decimal("1.00"), "EUR")
    listed = {days: [event.what.id for event in paid.uncovered(timedelta(days=days))] for days in (1, 7, 90)}
    assert listed == {1: ["3"], 7: ["3", "2"], 90: ["3", "2", "1"]}
    assert [event.what.id for event in paid.uncovered()] == ["3", "2"]


@pytest.mark.parametrize(
    ("months", "days", "is_said"),
    [(1, 10.2, False), (1, 10, True), (3, 30.2, False), (3, 30, True), (12, 30.2, False), (12, 30, True)],
)
def test_a_warning_begins_a_third_of_the_paid_period_before_its_end(
    months: int, days: float, is_said: bool
) -> None:
    assert (said(what(months=months, days=days, renews=False)) is not None) == is_said


def test_an_hourly_server_is_warned_of_within_a_day() -> None:
    assert said(what(months=0, days=1.1, renews=False)) is None
    assert said(what(months=0, days=0.9, renews=False)) is not None


@pytest.mark.parametrize(
    ("days", "word"),
    [
        (20, "Note"),
        (14.1, "Note"),
        (14, "Soon"),
        (7.1, "Soon"),
        (7, "Urgent"),
        (1.1, "Urgent"),
        (1, "Last day"),
    ],
)
def test_the_first_word_changes_as_the_end_comes_near(days: float, word: str) -> None:
    line = said(what(kind="domain", name="shop.com", months=12, days=days, renews=False))
    until, reached = NOW + timedelta(days=days), NOW + timedelta(days=days + 1)
    assert line == (
        f"{word}: domain 1 (shop.com) is paid until {until:%Y-%m-%d} and does not renew itself. "
        f"Next: set auto_renew, or pulumi-hosting action domain-renew --id 1 --until {reached:%Y-%m-%d}"
    )


def test_a_short_balance_is_named_with_the_sum_and_what_to_top_up() -> None:
    assert said(what(days=5), "2.00") == (
        "Urgent: server 1 (web) is paid until 2026-11-27, and the balance of 2.00 EUR does not cover the "
        "5.00 EUR that are due by then. Next: pulumi-hosting action balance-topup --amount 10.00 "
        "--balance-below 5.00 --gateway CODE"
    )
    assert said(what(days=5), "5.00") is None
    assert said(what(days=-1, renews=False)) == (
        "Overdue: server 1 (web) was paid until 2026-11-21 and does not renew itself. "
        "Next: set auto_renew, or pulumi-hosting action server-renew --id 1 --until 2026-11-23"
    )


def test_months_end_on_the_last_day_of_a_shorter_month() -> None:
    assert months_after(datetime(2027, 12, 31, tzinfo=UTC), 2) == datetime(2028, 2, 29, tzinfo=UTC)
