"""What happens later: when tasks run, and what they do: one function per kind of task, named by the task's
``what``.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pulumi_hosting.emulator import (
    events,
    fulfilment,
    ledger,
    pricing,
    registrar,
    server_lifecycle,
)
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.formats import format_timestamp
from pulumi_hosting.emulator.periods import DAY_SECONDS
from pulumi_hosting.emulator.store import Store

T = TypeVar("T", bound=r.Row)
Action = Callable[[Store, T, r.Task], None]

TASKS: "dict[str, TaskKind[Any]]" = {}

# The resolution of the clock: the balance before a task is the one of this much earlier.
INSTANT = 0.001

log = logging.getLogger("pulumi_hosting.emulator")


def run_due(store: Store, now: float) -> None:
    """Run every task that is due, in order, each with its own due time as the present; then it is ``now``. A
    failed task is logged and dropped.
    """
    while (due := store.next_due()) is not None and due <= now:
        store.now = due
        with events.low_balance_events(store, due - INSTANT):
            while (task := store.pop_due()) is not None:
                try:
                    kind = TASKS[task.what]
                    if (row := kind.row_of(store, task)) is not None:
                        kind.action(store, row, task)
                except Exception:
                    log.exception("task %s of %s failed", task.what, task.object_id)
    store.now = now


@dataclass(frozen=True)
class TaskKind(Generic[T]):
    """``action`` happens to a row of this kind if the task still ``applies`` to it; ``gone``: to an ended
    server, too.
    """

    kind: type[T]
    action: Action[T]
    applies: Callable[[T, r.Task], bool]
    gone: bool

    def row_of(self, store: Store, task: r.Task) -> T | None:
        """The row that the task will change; None if nothing will happen."""
        row: T | None = store.tables[self.kind.kind].get(task.object_id)
        if row is None or (isinstance(row, r.ServerRow) and row.is_gone and not self.gone):
            return None
        return row if self.applies(row, task) else None


def task_of(
    kind: type[T], applies: Callable[[T, r.Task], bool] = lambda row, task: True, *, gone: bool = False
) -> Callable[[Action[T]], Action[T]]:
    """The function is the task of its name; the arguments are those of :class:`TaskKind`."""

    def register(action: Action[T]) -> Action[T]:
        TASKS[action.__name__] = TaskKind(kind, action, applies, gone)
        return action

    return register


def _is_due(server: r.ServerRow, task: r.Task) -> bool:
    """The due date has not moved since; :func:`server_lifecycle.schedule_due_date` notes it."""
    return str(server.next_due_at) == task.note


def _is_active_until(domain: r.DomainRow, task: r.Task) -> bool:
    """The expiry has not moved since; :func:`registrar.schedule_expiry` notes it."""
    return domain.status == "active" and str(domain.expires_at) == task.note


# --- orders, addresses, reinstalls -------------------------------------------------------------------------


@task_of(r.OrderRow)
def finish_order(store: Store, order: r.OrderRow, task: r.Task) -> None:
    """The provisioning of an order ends: with a server, or with a refund."""
    invoice, now = store.invoices[order.id], task.due
    order.updated_at = now
    if order.outcome != "active":
        order.status = order.outcome
        invoice.cancelled_at = now
        cause = ledger.Cause("create_server", task.note or None)
        ledger.credit_back(store, invoice, order.amount, cause, object_id=order.id)
        return
    id = server_lifecycle.new_server_id(store)
    order.status, order.server_id, invoice.server_id = "active", id, id
    server_lifecycle.add_server(store, id, order.plan)


@task_of(r.ServerRow)
def assign_address(store: Store, server: r.ServerRow, task: r.Task) -> None:
    server.busy, server.addresses_coming = None, server.addresses_coming - 1
    price = store.tariffs[server.tariff_id].extra_ip_price
    invoice_id = int(task.note) if task.note else None
    server_lifecycle.add_address(store, server, bought=True, price_monthly=price, invoice_id=invoice_id)


@task_of(r.ServerRow)
def finish_reinstall(store: Store, server: r.ServerRow, task: r.Task) -> None:
    """The reinstallation ends: the server has its new image and runs."""
    server.busy, server.os = None, task.note
    if server.status == "stopped":
        server.status = "active"
    if server.status != "suspended":
        server.power, server.power_since = "running", task.due
    events.of(store, "server.reinstalled", server)


@task_of(r.ServerRow, gone=True)
def drop_sandbox_server(store: Store, server: r.ServerRow, task: r.Task) -> None:
    """A sandbox server ends after 24 hours."""
    server_lifecycle.clear(store, server)
    store.remove(server)


# --- billing ----------------------------------------------------------------------------------------------


@task_of(r.ServerRow, _is_due)
def server_due(store: Store, server: r.ServerRow, task: r.Task) -> None:
    """The paid period is over: end, renewal, or suspension with an unpaid invoice."""
    now, account = task.due, store.accounts[server.account_id]
    if server.is_leaving:
        server_lifecycle.end(store, server)
        return
    amount = pricing.recurring(store, server)
    is_paid = pricing.renews_automatically(server) and account.balance >= amount
    if not is_paid:
        server.expired = True
        if server.status != "suspended":
            server_lifecycle.suspend(store, server)
    period = server_lifecycle.next_period(store, server)
    words, due_at = f"Renewal of {server.name}", None if is_paid else now
    invoice = ledger.new_invoice(
        store, account, "vds_renewal", amount, words, due_at=due_at, server_id=server.id, period=period
    )
    if is_paid:
        ledger.pay(store, invoice, ledger.BILLING)
        server_lifecycle.extend(store, server, period[1])
    else:
        days = store.service.readings["terminated_after_days"]
        store.schedule(now + days * DAY_SECONDS, "terminate_server", server.id, str(server.next_due_at))


@task_of(r.ServerRow, _is_due)
def server_due_soon(store: Store, server: r.ServerRow, task: r.Task) -> None:
    """The due date has come within the days of ``balance.low``, which :func:`run_due` sends. A domain is
    looked at when its own warning of these days is sent.
    """


@task_of(r.ServerRow, _is_due)
def terminate_server(store: Store, server: r.ServerRow, task: r.Task) -> None:
    """End a server that stayed unpaid for too long."""
    server_lifecycle.end(store, server, status="terminated")


@task_of(r.InvoiceRow, lambda invoice, task: invoice.status == "not_paid")
def invoice_overdue(store: Store, invoice: r.InvoiceRow, task: r.Task) -> None:
    events.of(store, "invoice.overdue", invoice)


# --- domains ----------------------------------------------------------------------------------------------


@task_of(r.DomainRow, lambda domain, task: domain.status in r.PENDING)
def sync_domain(store: Store, domain: r.DomainRow, task: r.Task) -> None:
    """The registrar confirms a pending registration or transfer."""
    registrar.activate(store, domain)


@task_of(r.DomainRow, _is_active_until)
def domain_expiring(store: Store, domain: r.DomainRow, task: r.Task) -> None:
    events.of(store, "domain.expiring", domain)


@task_of(r.DomainRow, lambda domain, task: domain.status != "cancelled")
def extend_domain(store: Store, domain: r.DomainRow, task: r.Task) -> None:
    """The registrar completes a renewal that it had accepted."""
    registrar.extend(store, domain, int(task.note.split()[0]))


@task_of(r.InvoiceRow, lambda invoice, task: invoice.status == "paid")
def refuse_domain(store: Store, invoice: r.InvoiceRow, task: r.Task) -> None:
    """The registrar refuses an order that it had taken; the task's object is the paid invoice."""
    fulfilment.call_off(store, invoice)


@task_of(r.DomainRow)
def domain_renewed(store: Store, domain: r.DomainRow, task: r.Task) -> None:
    """Send ``domain.renewed`` with the daily sync after a renewal."""
    events.of(store, "domain.renewed", domain)


@task_of(r.DomainRow, _is_active_until)
def domain_due(store: Store, domain: r.DomainRow, task: r.Task) -> None:
    """The domain expires, or is renewed from the balance."""
    account, price = store.accounts[domain.account_id], store.zone_of(domain).price_renew
    if pricing.domain_renews_automatically(domain) and account.balance >= price:
        words = f"Renewal of {domain.name}"
        invoice = ledger.new_invoice(store, account, "domain_renewal", price, words, domain_id=domain.id)
        ledger.pay(store, invoice, ledger.BILLING)
        registrar.extend(store, domain, 1)
    else:
        domain.status = "expired"


# --- webhooks ---------------------------------------------------------------------------------------------


@task_of(r.DeliveryRow, lambda row, task: format_timestamp(row.delivered_at or row.dead_at) == task.note)
def forget_delivery(store: Store, delivery: r.DeliveryRow, task: r.Task) -> None:
    """Remove a delivery from the log, unless it was queued again since."""
    store.remove(delivery)
