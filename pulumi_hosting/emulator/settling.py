"""What a payment sets going: the order, the renewal or the top-up that an invoice was for."""

from pulumi_hosting.emulator import ledger, machines, periods
from pulumi_hosting.emulator.world import Invoice, World


def deliver(world: World, invoice: Invoice, now: float, provisioning_delay: float) -> None:
    """An invoice was paid: deliver what it is for. Orders are provisioned in the background."""
    order = world.orders.get(invoice.id)
    if order is not None and order.status == "invoice_created":
        order.status, order.updated_at = "processing", now
        invoice.period_start, invoice.period_end = now, periods.months_after(now, order.plan["months"])
        order.plan = {**order.plan, "next_due_at": invoice.period_end}
        world.later(now + provisioning_delay, "finish_order", order.id)
    elif invoice.type == "vds_renewal" and invoice.server_id is not None:
        server = world.servers[invoice.server_id]
        if not server.is_gone:
            invoice.period_start, invoice.period_end = machines.next_period(server, now)
            machines.extend(world, server, invoice.period_end, now)


def confirm(world: World, invoice: Invoice, now: float, provisioning_delay: float) -> None:
    """The payment gateway confirms: a top-up raises the balance; any other invoice is paid without touching it."""
    account = world.accounts[invoice.account_id]
    if invoice.type == "topup":
        ledger.move(
            world,
            account,
            invoice.amount,
            "topup",
            invoice.description,
            now,
            ledger.Cause("create_topup"),
            gateway=invoice.gateway,
            object_id=invoice.id,
            invoice_id=invoice.id,
        )
        account.topped_up = True
    ledger.mark_paid(world, invoice, now)
    deliver(world, invoice, now, provisioning_delay)
