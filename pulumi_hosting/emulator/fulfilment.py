"""What a payment starts: the order, the renewal or the top-up that the invoice is for."""

from pulumi_hosting.emulator import ledger, periods, server_lifecycle
from pulumi_hosting.emulator.rows import InvoiceRow
from pulumi_hosting.emulator.scheduler import Scheduler


def deliver(scheduler: Scheduler, invoice: InvoiceRow, now: float) -> None:
    """Deliver what a paid invoice is for. An order is provisioned in the background."""
    store = scheduler.store
    order = store.orders.get(invoice.id)
    if order is not None and order.status == "invoice_created":
        order.status, order.updated_at = "processing", now
        invoice.period_start, invoice.period_end = now, periods.months_after(now, order.plan["months"])
        order.plan = {**order.plan, "next_due_at": invoice.period_end}
        scheduler.after_provisioning(now, "finish_order", order.id)
    elif invoice.type == "vds_renewal" and invoice.server_id is not None:
        server = store.servers[invoice.server_id]
        if not server.is_gone:
            invoice.period_start, invoice.period_end = server_lifecycle.next_period(server, now)
            server_lifecycle.extend(store, server, invoice.period_end, now)


def confirm(scheduler: Scheduler, invoice: InvoiceRow, now: float) -> None:
    """The payment gateway confirms: a top-up raises the balance; any other invoice is paid without using the
    balance.
    """
    store = scheduler.store
    if invoice.type == "topup":
        cause, gateway = ledger.Cause("create_topup"), invoice.gateway
        ledger.move_for(
            store, invoice, invoice.amount, "topup", now, cause, gateway=gateway, object_id=invoice.id
        )
        store.accounts[invoice.account_id].topped_up = True
    ledger.mark_paid(store, invoice, now)
    deliver(scheduler, invoice, now)
