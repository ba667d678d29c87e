"""What happens by itself, at its time: every function here is the ``what`` of a task and takes its row."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from pulumi_hosting.emulator import catalog, events, ledger, machines, money, registrar
from pulumi_hosting.emulator.wire import stamp
from pulumi_hosting.emulator.world import Task, World

if TYPE_CHECKING:
    from pulumi_hosting.emulator.core import Core


# The clock's resolution: what was true just before a moment.
INSTANT = 0.001

log = logging.getLogger("pulumi_hosting.emulator")


def tick(core: "Core", now: float) -> None:
    """Do everything that is due, each thing at its own moment. A task that fails is logged, and the next one is done."""
    world = core.world
    while (due := world.next_due()) is not None and due <= now:
        with events.balances_watched(world, due - INSTANT, due):
            while (task := world.pop_due(due)) is not None:
                try:
                    WHAT[task.what](world, task)
                except Exception:
                    log.exception("task %s of %s failed", task.what, task.object_id)


# --- orders, addresses, reinstalls -----------------------------------------------------------------------------------------------


def finish_order(world: World, task: Task) -> None:
    """An order that was being provisioned ends: a server, or the money back."""
    order, now = world.orders.get(task.object_id), task.due
    if order is None:
        return
    invoice, account = world.invoices[order.id], world.accounts[order.account_id]
    order.updated_at = now
    if order.outcome != "active":
        order.status = order.outcome
        invoice.cancelled_at = now
        ledger.credit_back(world, account, invoice, order.amount, now, ledger.Cause("create_server", task.note or None), object_id=order.id)
        return
    server, addresses = machines.build(world, machines.new_server_id(world), order.plan, now)
    order.status, order.server_id, invoice.server_id = "active", server.id, server.id
    machines.settle_in(world, server, addresses, now)


def assign_address(world: World, task: Task) -> None:
    server = world.servers.get(task.object_id)
    if server is None or server.is_gone:
        return
    server.busy, server.addresses_coming = None, server.addresses_coming - 1
    address = machines.new_address(world, server, task.due, price=world.tariffs[server.tariff_id].extra_ip_price)
    address.invoice_id = int(task.note) if task.note else None
    world.add(address)


def finish_reinstall(world: World, task: Task) -> None:
    """The image of a reinstalled server shows once it is installed; the machine runs again."""
    server = world.servers.get(task.object_id)
    if server is None or server.is_gone:
        return
    server.busy, server.os = None, task.note
    server.power, server.power_since = "running", task.due
    if server.status == "stopped":
        server.status = "active"
    events.of_server(world, "server.reinstalled", server, task.due)


def drop_sandbox_server(world: World, task: Task) -> None:
    """The 24 hours are over."""
    server = world.servers.get(task.object_id)
    if server is not None:
        machines.clear(world, server)
        world.remove(server)


# --- billing ---------------------------------------------------------------------------------------------------------------------


def server_due(world: World, task: Task) -> None:
    """The paid period is over: the end, the next period, or suspension with an unpaid renewal."""
    server, now = world.servers.get(task.object_id), task.due
    if server is None or server.is_gone or str(server.next_due_at) != task.note:
        return
    account = world.accounts[server.account_id]
    if server.status == "pending_cancel":
        machines.end(world, server, now)
        return
    amount = money.recurring(world, server)
    period = machines.next_period(server, now)
    if money.renews_by_itself(server) and account.balance >= amount:
        machines.renew_from_balance(world, server, account, amount, period, now, ledger.BILLING)
        return
    server.expired = True
    if server.status != "suspended":
        machines.suspend(world, server, now)
    ledger.new_invoice(
        world,
        account,
        "vds_renewal",
        amount,
        f"Renewal of {server.name}",
        now,
        due_at=now,
        server_id=server.id,
        period=period,
    )
    world.later(now + machines.TERMINATE_AFTER_SECONDS, "terminate_server", server.id, str(server.next_due_at))


def terminate_server(world: World, task: Task) -> None:
    """Long non-payment."""
    server = world.servers.get(task.object_id)
    if server is not None and not server.is_gone and str(server.next_due_at) == task.note:
        machines.end(world, server, task.due, status="terminated")


def invoice_overdue(world: World, task: Task) -> None:
    invoice = world.invoices.get(task.object_id)
    if invoice is not None and invoice.status == "not_paid":
        events.of_invoice(world, "invoice.overdue", invoice, task.due)


# --- domains ---------------------------------------------------------------------------------------------------------------------


def sync_domain(world: World, task: Task) -> None:
    """The registrar's sync: a pending registration or transfer becomes active."""
    domain = world.domains.get(task.object_id)
    if domain is not None and domain.status in ("pending", "transfer_pending"):
        registrar.activate(world, domain, task.due)


def domain_expiring(world: World, task: Task) -> None:
    domain = world.domains.get(task.object_id)
    if domain is not None and domain.status == "active" and str(domain.expires_at) == task.note:
        events.of_domain(world, "domain.expiring", domain, task.due)


def extend_domain(world: World, task: Task) -> None:
    """The sync after a renewal that the registrar had only accepted."""
    domain = world.domains.get(task.object_id)
    if domain is not None and domain.status != "cancelled":
        registrar.extend(world, domain, int(task.note), task.due)


def domain_renewed(world: World, task: Task) -> None:
    """The daily sync after a renewal makes the new date known."""
    domain = world.domains.get(task.object_id)
    if domain is not None:
        events.of_domain(world, "domain.renewed", domain, task.due)


def domain_due(world: World, task: Task) -> None:
    """Expiry: renewed from the balance, or expired."""
    domain, now = world.domains.get(task.object_id), task.due
    if domain is None or str(domain.expires_at) != task.note or domain.status != "active":
        return
    account, price = world.accounts[domain.account_id], catalog.ZONES[domain.tld].price_renew
    if money.domain_renews_by_itself(domain) and account.balance >= price:
        invoice = ledger.new_invoice(world, account, "domain_renewal", price, f"Renewal of {domain.name}", now, domain_id=domain.id)
        ledger.pay(world, account, invoice, now, ledger.BILLING)
        registrar.extend(world, domain, 1, now)
    else:
        domain.status = "expired"


# --- webhooks --------------------------------------------------------------------------------------------------------------------


def forget_delivery(world: World, task: Task) -> None:
    """The log's retention is over, unless the delivery was queued again since."""
    delivery = world.deliveries.get(task.object_id)
    if delivery is not None and stamp(delivery.delivered_at or delivery.dead_at) == task.note:
        world.remove(delivery)


WHAT: dict[str, Callable[[World, Task], None]] = {
    action.__name__: action
    for action in (
        finish_order,
        assign_address,
        finish_reinstall,
        drop_sandbox_server,
        server_due,
        terminate_server,
        invoice_overdue,
        sync_domain,
        extend_domain,
        domain_expiring,
        domain_renewed,
        domain_due,
        forget_delivery,
    )
}
