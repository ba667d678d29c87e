"""The only place that changes a balance. A balance is always the opening balance plus the sum of its
movements.
"""

from decimal import Decimal
from typing import NamedTuple

from pulumi_hosting.emulator import events
from pulumi_hosting.emulator.formats import format_money
from pulumi_hosting.emulator.messages import ApiError
from pulumi_hosting.emulator.rows import Account, Invoice, Movement
from pulumi_hosting.emulator.store import Store


class Cause(NamedTuple):
    """The origin of a movement: the operation, ``billing`` or ``control``, and its request and key if it has
    them.
    """

    operation: str
    idempotency_key: str | None = None
    request_seq: int | None = None


BILLING = Cause("billing")
CONTROL = Cause("control")


def require(account: Account, amount: Decimal) -> None:
    """402 when the balance does not cover ``amount``."""
    if account.balance < amount:
        raise ApiError(
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
    account: Account,
    signed: Decimal,
    type: str,
    description: str,
    now: float,
    cause: Cause,
    *,
    gateway: str | None = None,
    object_id: int | None = None,
    invoice_id: int | None = None,
) -> Movement:
    """Change the balance by ``signed`` and record the movement."""
    account.balance += signed
    return store.add(
        Movement(
            account_id=account.id,
            at=now,
            amount=abs(signed),
            # A payment of 0.00 (a discount of 100 %) is a debit too.
            direction="debit" if signed < 0 or type == "payment" else "credit",
            type=type,
            description=description,
            gateway=gateway,
            operation=cause.operation,
            object_id=object_id,
            invoice_id=invoice_id,
            idempotency_key=cause.idempotency_key,
            request_seq=cause.request_seq,
        )
    )


def new_invoice(
    store: Store,
    account: Account,
    type: str,
    amount: Decimal,
    description: str,
    now: float,
    *,
    gateway: str | None = "balance",
    due_at: float | None = None,
    server_id: int | None = None,
    domain_id: int | None = None,
    period: tuple[float, float] | None = None,
) -> Invoice:
    """Add an unpaid invoice and send its event."""
    start, end = period or (None, None)
    invoice = store.add(
        Invoice(
            account_id=account.id,
            type=type,
            status="not_paid",
            amount=amount,
            description=description,
            created_at=now,
            due_at=now if due_at is None else due_at,
            gateway=gateway,
            server_id=server_id,
            domain_id=domain_id,
            period_start=start,
            period_end=end,
        )
    )
    if due_at is not None:
        store.schedule(due_at, "invoice_overdue", invoice.id)
    events.of_invoice(store, "invoice.created", invoice, now)
    return invoice


def pay(
    store: Store,
    account: Account,
    invoice: Invoice,
    now: float,
    cause: Cause,
    *,
    object_id: int | None = None,
) -> None:
    """Debit an invoice from the balance and mark it paid."""
    move(
        store,
        account,
        -invoice.amount,
        "payment",
        invoice.description,
        now,
        cause,
        gateway="balance",
        object_id=object_id if object_id is not None else invoice.server_id or invoice.domain_id,
        invoice_id=invoice.id,
    )
    mark_paid(store, invoice, now)


def mark_paid(store: Store, invoice: Invoice, now: float) -> None:
    invoice.status, invoice.paid_at = "paid", now
    events.of_invoice(store, "invoice.paid", invoice, now, previous={"status": "not_paid"})


def credit_back(
    store: Store,
    account: Account,
    invoice: Invoice,
    amount: Decimal,
    now: float,
    cause: Cause,
    *,
    object_id: int | None = None,
) -> None:
    """Refund ``amount`` of an invoice to the balance."""
    if amount <= 0:
        return
    invoice.refunded += amount
    invoice.status = "refunded"
    move(
        store,
        account,
        amount,
        "refund",
        f"Refund: {invoice.description}",
        now,
        cause,
        gateway="balance",
        object_id=object_id if object_id is not None else invoice.server_id or invoice.domain_id,
        invoice_id=invoice.id,
    )
