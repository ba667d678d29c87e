"""The only place that changes a balance. A balance is always the opening balance plus the sum of its
movements.
"""

from decimal import Decimal
from typing import Any, NamedTuple

from pulumi_hosting.emulator import events
from pulumi_hosting.emulator.formats import format_money
from pulumi_hosting.emulator.messages import Refusal
from pulumi_hosting.emulator.rows import AccountRow, InvoiceRow, MovementRow
from pulumi_hosting.emulator.store import Store


class Cause(NamedTuple):
    """The origin of a movement: the operation, ``billing`` or ``control``, and its request and key if it has
    them.
    """

    operation: str
    idempotency_key: str | None = None
    request_seq: int | None = None


# How long an unpaid invoice may stay so before it is overdue.
UNPAID_SECONDS = 3 * 86400

BILLING = Cause("billing")
CONTROL = Cause("control")


def require(account: AccountRow, amount: Decimal) -> None:
    """402 when the balance does not cover ``amount``."""
    if account.balance < amount:
        raise Refusal(
            "insufficient_funds",
            details={
                "required": format_money(amount),
                "balance": format_money(account.balance),
                "shortfall": format_money(amount - account.balance),
                "currency": account.currency,
            },
        )


def move(
    store: Store,
    account: AccountRow,
    signed: Decimal,
    type: str,
    description: str,
    cause: Cause,
    **columns: Any,
) -> None:
    """Change the balance by ``signed`` and record the movement. ``columns``: others of its row."""
    account.balance += signed
    # A payment of 0.00 (a discount of 100 %) is a debit too.
    direction = "debit" if signed < 0 or type == "payment" else "credit"
    store.add(
        MovementRow(
            account_id=account.id,
            at=store.now,
            amount=abs(signed),
            direction=direction,
            type=type,
            description=description,
            **cause._asdict(),
            **columns,
        )
    )


def move_for(
    store: Store, invoice: InvoiceRow, signed: Decimal, type: str, cause: Cause, **columns: Any
) -> None:
    """A movement for an invoice, from or to the balance, unless ``columns`` say otherwise."""
    account = store.accounts[invoice.account_id]
    words = f"Refund: {invoice.description}" if type == "refund" else invoice.description
    bought = invoice.server_id or invoice.domain_id
    usual = {"gateway": "balance", "object_id": bought, "invoice_id": invoice.id}
    move(store, account, signed, type, words, cause, **usual | columns)


def new_invoice(
    store: Store,
    account: AccountRow,
    type: str,
    amount: Decimal,
    description: str,
    *,
    gateway: str | None = "balance",
    due_at: float | None = None,
    period: tuple[float | None, float | None] = (None, None),
    **bought: Any,
) -> InvoiceRow:
    """Add an unpaid invoice and send its event. ``bought``: ``server_id`` or ``domain_id``."""
    invoice = store.add(
        InvoiceRow(
            account_id=account.id,
            type=type,
            status="not_paid",
            amount=amount,
            description=description,
            due_at=store.now if due_at is None else due_at,
            gateway=gateway,
            period_start=period[0],
            period_end=period[1],
            **bought,
        )
    )
    if due_at is not None:
        store.schedule(due_at, "invoice_overdue", invoice.id)
    events.of(store, "invoice.created", invoice)
    return invoice


def pay(store: Store, invoice: InvoiceRow, cause: Cause) -> None:
    """Debit an invoice from the balance and mark it paid."""
    move_for(store, invoice, -invoice.amount, "payment", cause)
    mark_paid(store, invoice)


def mark_paid(store: Store, invoice: InvoiceRow) -> None:
    invoice.status, invoice.paid_at = "paid", store.now
    events.of(store, "invoice.paid", invoice, previous={"status": "not_paid"})


def credit_back(store: Store, invoice: InvoiceRow, amount: Decimal, cause: Cause, **columns: Any) -> None:
    """Refund ``amount`` of an invoice to the balance. ``columns``: others of the movement."""
    if amount > 0:
        invoice.refunded += amount
        invoice.status = "refunded"
        move_for(store, invoice, amount, "refund", cause, **columns)
