"""What the account shows of the money of purchases: no account is needed, invoices and movements are
listed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import CallError, Forbidden, NotFound, TransportError
from pulumi_hosting.exactly_once.payments import (
    CLOCKS_DIFFER,
    Payment,
    first_since,
    movements,
    payment,
    payments_since,
)
from tests.exactly_once.service import NOW, invoice, movement, refusal


@dataclass
class Books:
    """Invoices, the newest first, and movements of the balance; either may be an error."""

    rows: Any = ()
    moved: Any = ()
    asked_since: list[datetime] = field(default_factory=list)

    @property
    def client(self) -> Any:
        return SimpleNamespace(
            invoices=SimpleNamespace(get=self._get, list=lambda: self._told(self.rows)),
            balance=SimpleNamespace(transactions=self._transactions),
        )

    def _get(self, id: int) -> m.Invoice:
        found = [row for row in self._told(self.rows) if row.id == id]
        if not found:
            raise refusal(404, "not_found")
        row: m.Invoice = found[0]
        return row

    def _transactions(self, since: datetime) -> Any:
        self.asked_since.append(since)
        return self._told(self.moved)

    @staticmethod
    def _told(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return iter(value)


def item(amount: str = "5.00", **of: Any) -> m.InvoiceItem:
    return m.InvoiceItem(amount=Decimal(amount), **of)


FORBIDDEN = refusal(403, "insufficient_scope")
CREDIT = movement("5.00", "credit")


# --- one invoice


@pytest.mark.parametrize(
    ("row", "moved", "paid", "returned"),
    [
        (invoice(31), (), "5.00", "0"),
        (invoice(31, paid_at=None), (), "5.00", "0"),  # a deployment that does not say when
        (invoice(31, "not_paid", paid_at=None), (), "0", "0"),
        (invoice(31, "pending", paid_at=None), (), "0", "0"),
        (invoice(31, "cancelled", paid_at=None), (), "0", "0"),
        (invoice(31, "failed"), (), "5.00", "0"),
        (invoice(31, "refunded"), (movement("5.00"), CREDIT), "5.00", "5.00"),
        (invoice(31, "refunded", paid_at=None), (movement("5.00"), CREDIT), "5.00", "5.00"),
        (invoice(31, "refunded"), (CREDIT, movement("4.00"), movement("1.00")), "5.00", "5.00"),
        (invoice(31, "refunded"), (movement("5.00"), movement("3.00", "credit")), "5.00", "3.00"),
        (invoice(31, "cancelled"), (movement("5.00"),), "5.00", "0"),
        (invoice(31, "refunded"), FORBIDDEN, "5.00", "5.00"),
        (invoice(31, "refunded"), (movement("9.00", invoice_id=32),), "5.00", "5.00"),
        (invoice(31, amount="0.00"), (), "0", "0"),
    ],
)
def test_what_left_the_balance_for_an_invoice_and_what_came_back(
    row: m.Invoice, moved: Any, paid: str, returned: str
) -> None:
    books = Books([row], moved)
    found = payment(books.client, 31)
    assert found is not None
    assert (found.invoice_id, found.status, found.currency) == (31, row.status, "EUR")
    assert (found.paid, found.returned) == (Decimal(paid), Decimal(returned))
    assert books.asked_since in ([], [NOW - CLOCKS_DIFFER])


def test_it_says_when_it_was_paid() -> None:
    row = invoice(
        31, created_at=NOW - timedelta(hours=1), items=[item(), item(server_id=3), item(domain_id=4)]
    )
    found = payment(Books([row]).client, 31)
    assert found is not None
    assert found.at == NOW


@pytest.mark.parametrize("error", [FORBIDDEN, refusal(404, "not_found")])
def test_an_invoice_that_the_key_may_not_see_tells_nothing(error: CallError) -> None:
    assert isinstance(error, Forbidden | NotFound)
    assert payment(Books(error).client, 31) is None


@pytest.mark.parametrize(
    "error", [refusal(500, "server_error"), TransportError("cut", outcome_unknown=False)]
)
def test_an_answer_that_does_not_come_is_not_taken_for_no_invoice(error: CallError) -> None:
    with pytest.raises(type(error)):
        payment(Books(error).client, 31)


# --- whether anything is kept, and how it is said


@pytest.mark.parametrize(
    ("paid", "returned", "is_returned", "sentence"),
    [
        ("5.00", "0", False, "5.00 EUR were not returned, invoice 31"),
        ("5.00", "4.99", False, "4.99 EUR were returned and 0.01 EUR were not returned, invoice 31"),
        ("5.00", "5.00", True, "5.00 EUR were returned, invoice 31"),
        ("5.00", "6.00", True, "6.00 EUR were returned, invoice 31"),
        ("0", "0", True, "nothing was charged, invoice 31"),
    ],
)
def test_where_the_money_is(paid: str, returned: str, is_returned: bool, sentence: str) -> None:
    found = Payment(31, "paid", Decimal(paid), Decimal(returned), "EUR")
    assert (found.is_returned, found.sentence) == (is_returned, sentence)


# --- movements


def test_movements_are_summed_up_by_invoice_and_others_left_out() -> None:
    moved = [
        movement("5.00"),
        movement("7.00", invoice_id=32),
        movement("100.00", "credit", None),
        movement("2.00", "credit"),
        movement("3.00", "credit"),
    ]
    books = Books(moved=moved)
    assert movements(books.client, NOW) == {
        31: (Decimal("5.00"), Decimal("5.00")),
        32: (Decimal("7.00"), Decimal(0)),
    }
    assert books.asked_since == [NOW]


@pytest.mark.parametrize(
    "error", [FORBIDDEN, refusal(500, "server_error"), TransportError("cut", outcome_unknown=False)]
)
def test_movements_that_cannot_be_seen_are_not_taken_for_none(error: CallError) -> None:
    books = Books([invoice(31)], error)
    with pytest.raises(type(error)):
        movements(books.client, NOW)
    with pytest.raises(type(error)):
        list(payments_since(books.client, NOW, lambda row: True))


def test_only_the_payments_that_are_meant_are_told() -> None:
    rows = [invoice(32, type="topup"), invoice(31, items=[item(server_id=3)])]
    books = Books(rows, [movement("4.00"), movement("1.00", "credit"), movement("9.00", invoice_id=32)])
    meant: Callable[[m.Invoice], bool] = lambda row: row.type == "vds_renewal"  # noqa: E731  # a stub stands in
    assert list(payments_since(books.client, NOW, meant)) == [
        Payment(31, "paid", Decimal("4.00"), Decimal("1.00"), "EUR", NOW)
    ]


def test_an_invoice_of_a_movement_that_cannot_be_read_is_not_taken_for_anothers() -> None:
    with pytest.raises(NotFound):
        list(payments_since(Books([], [movement("5.00")]).client, NOW, lambda row: True))


# --- the first of an object since a moment


def since_now(client: Any, *types: str, minutes: float = 15, **of: int) -> int | None:
    found = first_since(client, NOW, NOW + timedelta(minutes=minutes), types, **of)
    return None if found is None else found.invoice_id


def test_the_first_payment_of_an_object_and_a_type_is_told() -> None:
    late = NOW + timedelta(minutes=16)
    rows = [
        invoice(38, paid_at=late, items=[item(server_id=5)]),
        invoice(37, type="ip_purchase", items=[item(server_id=3)]),
        invoice(36, "not_paid", paid_at=None, items=[item(server_id=3)]),
        invoice(35, items=[item(domain_id=3)]),
        invoice(34, items=[item(), item(server_id=3)]),
        invoice(33, items=[item(server_id=3)]),
        invoice(32, paid_at=NOW - timedelta(seconds=1), items=[item(server_id=3)]),
        invoice(31, items=None),
    ]
    client = Books(rows).client
    assert since_now(client, "vds_renewal", server_id=3) == 33
    assert since_now(client, "ip_purchase", "vds_addon", server_id=3) == 37
    assert since_now(client, server_id=3) == 33
    assert since_now(client, domain_id=3) == 35
    assert since_now(client, invoice_id=34) == 34
    assert since_now(client, invoice_id=36) is None
    assert since_now(client, server_id=4) is None
    assert since_now(client, server_id=5) is None
    assert since_now(client, minutes=16, server_id=5) == 38


def test_only_the_latest_invoices_are_looked_through() -> None:
    rows = [
        *(invoice(100 - number, items=[item(server_id=4)]) for number in range(50)),
        invoice(31, items=[item(server_id=3)]),
    ]
    assert since_now(Books(rows).client, server_id=3) is None
    assert since_now(Books(rows[1:]).client, server_id=3) == 31


@pytest.mark.parametrize("error", [FORBIDDEN, refusal(404, "not_found")])
def test_invoices_that_the_key_may_not_see_tell_nothing(error: CallError) -> None:
    assert since_now(Books(error).client, server_id=3) is None
