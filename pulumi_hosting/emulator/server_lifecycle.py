"""Servers are built, renewed, suspended, resumed and ended here, for handlers, tasks and the control
interface.
"""

import ipaddress
import socket
from typing import Any

from pulumi_hosting.api.models.field_types import SANDBOX_SERVER_IDS, SYNTHETIC_SERVER_IDS
from pulumi_hosting.api.operations import SANDBOX_SERVER_SECONDS
from pulumi_hosting.emulator import events, periods, pricing
from pulumi_hosting.emulator.rows import AddressRow, Columns, InvoiceRow, OrderRow, ServerRow, TariffRow
from pulumi_hosting.emulator.store import Store

# Of 198.18.0.0/15 (RFC 2544, benchmarking) and 2001:db8::/32 (RFC 3849, documentation): no real machine has
# such an address.
FIRST_IPV4 = int(ipaddress.IPv4Address("198.18.1.0"))
FIRST_IPV6 = int(ipaddress.IPv6Address("2001:db8::1"))


def next_period(
    store: Store, server: ServerRow, *, months: int | None = None, hours: int | None = None
) -> tuple[float, float]:
    """The period that a renewal pays, from the end of the present one, or from now if that is over.

    Without ``months`` and ``hours`` it is as long as the server's own period.
    """
    start = max(server.next_due_at, store.now)
    if months is None and hours is None:
        months, hours = (None, 1) if server.cycle == "hourly" else (server.months, None)
    return start, periods.end(start, months=months, hours=hours)


def new_server_id(store: Store, *, sandbox: bool = False, synthetic: bool = False) -> int:
    if sandbox:
        return store.new_id(ServerRow, SANDBOX_SERVER_IDS + 1, "sandbox")
    if synthetic:
        return store.new_id(ServerRow, SYNTHETIC_SERVER_IDS.start + 1, "synthetic")
    return store.new_id(ServerRow)


def _next_address(store: Store, version: int) -> str:
    number = store.count(f"ipv{version}")
    if version == 4:
        return socket.inet_ntop(socket.AF_INET, (FIRST_IPV4 + number).to_bytes(4))
    return socket.inet_ntop(socket.AF_INET6, (FIRST_IPV6 + (number << 64)).to_bytes(16))


def skip_addresses(store: Store) -> None:
    """Let new addresses follow those that rows were given."""
    for row in store.addresses.values():
        first, step = (FIRST_IPV4, 0) if row.version == 4 else (FIRST_IPV6, 64)
        number = int(ipaddress.ip_address(row.address)) - first >> step
        if 0 < number < 2**16:
            counter = f"ipv{row.version}"
            store.counters[counter] = max(store.counters[counter], number)


def add_address(store: Store, server: ServerRow, version: int = 4, **columns: Any) -> AddressRow:
    """Give the server its next address of this version. ``columns``: others of its row."""
    text = columns.get("address") or _next_address(store, version)
    columns = {"address": text, "added_at": store.now, **columns}
    return store.add(AddressRow(server_id=server.id, version=version, **columns))


def plan(account_id: int, name: str, tariff: TariffRow, os: str, until: float) -> Columns:
    """The columns of a monthly server that is paid until ``until``."""
    return {
        "account_id": account_id,
        "name": name,
        "hostname": name,
        "tariff_id": tariff.id,
        "os": os,
        "cycle": "monthly",
        "months": 1,
        "next_due_at": until,
    }


def order_of(
    invoice: InvoiceRow, plan: Columns, status: str, updated_at: float, *, outcome: str = "active"
) -> OrderRow:
    """The order of a server; its id is the invoice's."""
    return OrderRow(
        id=invoice.id,
        account_id=invoice.account_id,
        status=status,
        outcome=outcome,
        tariff_id=plan["tariff_id"],
        server_name=plan["name"],
        amount=invoice.amount,
        created_at=invoice.created_at,
        updated_at=updated_at,
        plan=plan,
    )


def add_server(store: Store, id: int, plan: Columns) -> ServerRow:
    """Add a server from the columns in ``plan``, with its IPv4 and IPv6 address, and schedule its next due
    date, or in the sandbox its end after 24 hours.
    """
    server = store.add(ServerRow(id=id, power_since=store.now, **plan))
    add_address(store, server, primary=True)
    add_address(store, server, version=6)
    if server.is_sandbox:
        store.schedule(store.now + SANDBOX_SERVER_SECONDS, "drop_sandbox_server", server.id)
    else:
        schedule_due_date(store, server)
        events.of(store, "server.created", server)
    return server


def schedule_due_date(store: Store, server: ServerRow) -> None:
    # The note is the due date: a task whose note is no longer the server's due date has no effect.
    store.schedule(server.next_due_at, "server_due", server.id, str(server.next_due_at))
    week_before = server.next_due_at - pricing.LOW_DAYS * periods.DAY_SECONDS
    if week_before > store.now:
        store.schedule(week_before, "server_due_soon", server.id, str(server.next_due_at))


def extend(store: Store, server: ServerRow, until: float) -> None:
    """The server is paid until ``until``; a server suspended for non-payment is resumed."""
    server.next_due_at = until
    server.expired = False
    if not server.is_sandbox:
        schedule_due_date(store, server)
    if server.status == "suspended" and not server.blocked:
        resume(store, server)


def suspend(store: Store, server: ServerRow) -> None:
    previous = server.status
    server.suspended_from, server.status, server.power = previous, "suspended", "stopped"
    events.of(store, "server.suspended", server, previous={"status": previous})


def resume(store: Store, server: ServerRow) -> None:
    server.status = server.suspended_from or "active"
    server.suspended_from = None
    if server.status != "stopped":
        server.power, server.power_since = "running", store.now
    events.of(store, "server.unsuspended", server, previous={"status": "suspended"})


def cancel_unpaid_invoices(store: Store, server: ServerRow) -> None:
    """Cancel the unpaid invoices of a server that was renewed otherwise, or ended."""
    for invoice in store.of(InvoiceRow, server.account_id).values():
        if invoice.server_id == server.id and invoice.status == "not_paid":
            invoice.status, invoice.cancelled_at = "cancelled", store.now


def end(store: Store, server: ServerRow, *, status: str = "cancelled") -> None:
    """End the server; its row stays, with the status ``cancelled`` or ``terminated``."""
    previous = server.status
    server.status, server.power, server.busy = status, "stopped", None
    server.addresses_coming, server.suspended_from = 0, None
    cancel_unpaid_invoices(store, server)
    events.of(store, "server.terminated", server, previous={"status": previous})
    clear(store, server)


def clear(store: Store, server: ServerRow) -> None:
    """Remove the addresses of an ended server and its pending tasks."""
    for address in list(store.of(AddressRow, server.id).values()):
        store.remove(address)
    store.drop_tasks(server.id, "assign_address", "finish_reinstall")
