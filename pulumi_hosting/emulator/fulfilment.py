"""What a payment starts: the order, the renewal or the top-up that the invoice is for. When the purchase is
called off, its money returns, and what it paid for and has not come yet does not come.
"""

from pulumi_hosting.emulator import ledger, periods, server_lifecycle
from pulumi_hosting.emulator.ledger import Cause
from pulumi_hosting.emulator.rows import PENDING, InvoiceRow, MovementRow
from pulumi_hosting.emulator.store import Store


def deliver(store: Store, invoice: InvoiceRow) -> None:
    """Deliver what a paid invoice is for. An order is provisioned in the background."""
    order, now = store.orders.get(invoice.id), store.now
    if order is not None and order.status == "invoice_created":
        order.status, order.updated_at = "processing", now
        invoice.period_start, invoice.period_end = now, periods.months_after(now, order.plan["months"])
        order.plan = {**order.plan, "next_due_at": invoice.period_end}
        store.schedule(now + store.provisioning_delay, "finish_order", order.id)
    elif invoice.type == "vds_renewal":
        # An account file may have invoices of a server that it does not have.
        server = store.servers.get(invoice.server_id or 0)
        if server is not None and not server.is_gone:
            invoice.period_start, invoice.period_end = server_lifecycle.next_period(store, server)
            server_lifecycle.extend(store, server, invoice.period_end)


def confirm(store: Store, invoice: InvoiceRow) -> None:
    """The payment gateway confirms: a top-up raises the balance; any other invoice is paid without using the
    balance.
    """
    if invoice.type == "topup":
        cause, gateway = Cause("create_topup"), invoice.gateway
        ledger.move_for(store, invoice, invoice.amount, "topup", cause, gateway=gateway, object_id=invoice.id)
        store.accounts[invoice.account_id].topped_up = True
    ledger.mark_paid(store, invoice)
    deliver(store, invoice)


def call_off(store: Store, invoice: InvoiceRow, cause: Cause | None = None) -> None:
    """Return what is left of a paid invoice, and take back what has not come. Without ``cause`` the credit
    has that of the charge.
    """
    left = invoice.amount - invoice.refunded
    if invoice.type == "topup":  # its money had come to the balance, and leaves it again
        invoice.refunded, invoice.status = invoice.amount, "refunded"
        by, gateway = cause or ledger.BILLING, invoice.gateway
        ledger.move_for(store, invoice, -left, "refund", by, gateway=gateway, object_id=invoice.id)
        return
    _take_back(store, invoice)
    ledger.credit_back(store, invoice, left, cause or _charged_by(store, invoice))


def _charged_by(store: Store, invoice: InvoiceRow) -> Cause:
    for row in store.of(MovementRow, invoice.account_id).values():
        if row.invoice_id == invoice.id and row.direction == "debit":
            return Cause(row.operation or "", row.idempotency_key, row.request_seq)
    return ledger.BILLING


def _take_back(store: Store, invoice: InvoiceRow) -> None:
    order = store.orders.get(invoice.id)
    server = store.servers.get(invoice.server_id or 0)
    domain = store.domains.get(invoice.domain_id or 0)
    if order is not None and order.server_id is None:
        order.status, order.updated_at, invoice.cancelled_at = "cancelled", store.now, store.now
        store.drop_tasks(order.id, "finish_order")
    elif invoice.type == "ip_purchase" and server is not None:
        # A released address has come, too; it is not refundable.
        has_come = any(address.invoice_id == invoice.id for address in store.addresses.values())
        if server.addresses_coming and invoice.refundable and not has_come:
            store.drop_tasks(server.id, "assign_address", note=str(invoice.id))
            server.busy, server.addresses_coming = None, server.addresses_coming - 1
    elif invoice.type == "vds_renewal" and server is not None and not server.is_gone:
        start = invoice.period_start
        if start is not None and start >= store.now and server.next_due_at == invoice.period_end:
            server.next_due_at = start
            server_lifecycle.schedule_due_date(store, server)
    elif domain is not None:
        store.drop_tasks(domain.id, "extend_domain", note=str(invoice.id))
        if invoice.type != "domain_renewal" and domain.status in PENDING:
            domain.status = "cancelled"
