"""What tasks do: one function per kind of task, named by the task's ``what``. The task's due time is the
present moment.
"""

from collections.abc import Callable

from pulumi_hosting.emulator import (
    called_off,
    events,
    ledger,
    price_list,
    pricing,
    registrar,
    server_lifecycle,
)
from pulumi_hosting.emulator.formats import format_timestamp
from pulumi_hosting.emulator.rows import Task
from pulumi_hosting.emulator.store import Store

# --- orders, addresses, reinstalls -------------------------------------------------------------------------


def finish_order(store: Store, task: Task) -> None:
    """The provisioning of an order ends: with a server, or with a refund."""
    order, now = store.orders.get(task.object_id), task.due
    if order is None:
        return
    invoice, account = store.invoices[order.id], store.accounts[order.account_id]
    order.updated_at = now
    if order.outcome != "active":
        order.status = order.outcome
        invoice.cancelled_at = now
        ledger.credit_back(
            store,
            account,
            invoice,
            order.amount,
            now,
            ledger.Cause("create_server", task.note or None),
            object_id=order.id,
        )
        return
    id = server_lifecycle.new_server_id(store)
    order.status, order.server_id, invoice.server_id = "active", id, id
    server_lifecycle.add_server(store, id, order.plan, now)


def assign_address(store: Store, task: Task) -> None:
    server = store.servers.get(task.object_id)
    if server is None or server.is_gone:
        return
    server.busy, server.addresses_coming = None, server.addresses_coming - 1
    server_lifecycle.add_address(
        store,
        server,
        task.due,
        price=store.tariffs[server.tariff_id].extra_ip_price,
        invoice_id=int(task.note) if task.note else None,
    )


def finish_reinstall(store: Store, task: Task) -> None:
    """The reinstallation ends: the server has its new image and runs."""
    server = store.servers.get(task.object_id)
    if server is None or server.is_gone:
        return
    server.busy, server.os = None, task.note
    server.power, server.power_since = "running", task.due
    if server.status == "stopped":
        server.status = "active"
    events.of_server(store, "server.reinstalled", server, task.due)


def drop_sandbox_server(store: Store, task: Task) -> None:
    """A sandbox server ends after 24 hours."""
    server = store.servers.get(task.object_id)
    if server is not None:
        server_lifecycle.clear(store, server)
        store.remove(server)


# --- billing ----------------------------------------------------------------------------------------------


def server_due(store: Store, task: Task) -> None:
    """The paid period is over: end, renewal, or suspension with an unpaid invoice."""
    server, now = store.servers.get(task.object_id), task.due
    if server is None or server.is_gone or str(server.next_due_at) != task.note:
        return
    account = store.accounts[server.account_id]
    if server.status == "pending_cancel":
        server_lifecycle.end(store, server, now)
        return
    amount = pricing.recurring(store, server)
    period = server_lifecycle.next_period(server, now)
    if pricing.renews_automatically(server) and account.balance >= amount:
        server_lifecycle.renew_from_balance(store, server, account, amount, period, now, ledger.BILLING)
        return
    server.expired = True
    if server.status != "suspended":
        server_lifecycle.suspend(store, server, now)
    ledger.new_invoice(
        store,
        account,
        "vds_renewal",
        amount,
        f"Renewal of {server.name}",
        now,
        due_at=now,
        server_id=server.id,
        period=period,
    )
    store.schedule(
        now + server_lifecycle.TERMINATE_AFTER_SECONDS, "terminate_server", server.id, str(server.next_due_at)
    )


def terminate_server(store: Store, task: Task) -> None:
    """End a server that stayed unpaid for too long."""
    server = store.servers.get(task.object_id)
    if server is not None and not server.is_gone and str(server.next_due_at) == task.note:
        server_lifecycle.end(store, server, task.due, status="terminated")


def invoice_overdue(store: Store, task: Task) -> None:
    invoice = store.invoices.get(task.object_id)
    if invoice is not None and invoice.status == "not_paid":
        events.of_invoice(store, "invoice.overdue", invoice, task.due)


# --- domains ----------------------------------------------------------------------------------------------


def sync_domain(store: Store, task: Task) -> None:
    """The registrar confirms a pending registration or transfer."""
    domain = store.domains.get(task.object_id)
    if domain is not None and domain.status in ("pending", "transfer_pending"):
        registrar.activate(store, domain, task.due)


def domain_expiring(store: Store, task: Task) -> None:
    domain = store.domains.get(task.object_id)
    if domain is not None and domain.status == "active" and str(domain.expires_at) == task.note:
        events.of_domain(store, "domain.expiring", domain, task.due)


def extend_domain(store: Store, task: Task) -> None:
    """The registrar completes a renewal that it had accepted."""
    domain = store.domains.get(task.object_id)
    if domain is not None and domain.status != "cancelled":
        registrar.extend(store, domain, int(task.note.split()[0]), task.due)


def refuse_domain(store: Store, task: Task) -> None:
    """The registrar refuses an order that it had taken; the task's object is the paid invoice."""
    invoice = store.invoices.get(task.object_id)
    if invoice is not None and invoice.status == "paid":
        called_off.call_off(store, invoice, task.due)


def domain_renewed(store: Store, task: Task) -> None:
    """Send ``domain.renewed`` with the daily sync after a renewal."""
    domain = store.domains.get(task.object_id)
    if domain is not None:
        events.of_domain(store, "domain.renewed", domain, task.due)


def domain_due(store: Store, task: Task) -> None:
    """The domain expires, or is renewed from the balance."""
    domain, now = store.domains.get(task.object_id), task.due
    if domain is None or str(domain.expires_at) != task.note or domain.status != "active":
        return
    account, price = store.accounts[domain.account_id], price_list.ZONES[domain.tld].price_renew
    if pricing.domain_renews_automatically(domain) and account.balance >= price:
        invoice = ledger.new_invoice(
            store, account, "domain_renewal", price, f"Renewal of {domain.name}", now, domain_id=domain.id
        )
        ledger.pay(store, account, invoice, now, ledger.BILLING)
        registrar.extend(store, domain, 1, now)
    else:
        domain.status = "expired"


# --- webhooks ---------------------------------------------------------------------------------------------


def forget_delivery(store: Store, task: Task) -> None:
    """Remove a delivery from the log, unless it was queued again since."""
    delivery = store.deliveries.get(task.object_id)
    if delivery is not None and format_timestamp(delivery.delivered_at or delivery.dead_at) == task.note:
        store.remove(delivery)


TASKS: dict[str, Callable[[Store, Task], None]] = {
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
        refuse_domain,
        domain_expiring,
        domain_renewed,
        domain_due,
        forget_delivery,
    )
}
