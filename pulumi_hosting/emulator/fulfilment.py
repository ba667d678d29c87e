"""What a payment starts: the order, the renewal or the top-up that the invoice is for."""

from pulumi_hosting.emulator import ledger, periods, server_lifecycle
from pulumi_hosting.emulator.rows import InvoiceRow
from pulumi_hosting.emulator.store import Store


def deliver(store: Store, invoice: InvoiceRow) -> None:
    """Deliver what a paid invoice is for. An order is provisioned in the background."""
    order, now = store.orders.get(invoice.id), store.now
    if order is not None and order.status == "invoice_created":
        order.status, order.updated_at = "processing", now
        invoice.period_start, invoice.period_end = now, periods.months_after(now, order.plan["months"])
        order.plan = {**order.plan, "next_due_at": invoice.period_end}
        store.schedule(now + store.provisioning_delay, "finish_order", order.id)
    elif invoice.type == "vds_renewal" and invoice.server_id is not None:
        server = store.servers[invoice.server_id]
        if not server.is_gone:
            invoice.period_start, invoice.period_end = server_lifecycle.next_period(store, server)
            server_lifecycle.extend(store, server, invoice.period_end)


def confirm(store: Store, invoice: InvoiceRow) -> None:
    """The payment gateway confirms: a top-up raises the balance; any other invoice is paid without using the
    balance.
    """
    if invoice.type == "topup":
        cause, gateway = ledger.Cause("create_topup"), invoice.gateway
        ledger.move_for(store, invoice, invoice.amount, "topup", cause, gateway=gateway, object_id=invoice.id)
        store.accounts[invoice.account_id].topped_up = True
    ledger.mark_paid(store, invoice)
    deliver(store, invoice)
