"""Servers, their addresses and their orders (API document, "Servers", "Orders")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import ExtraLimit, Operation

GROUPS: Mapping[str, str] = {
    "servers": (
        'Servers (API document, "Servers"). A server that staff have locked refuses every write with '
        "``ServerBlocked``, a server with another change under way with ``OperationInProgress``."
    ),
    "servers.ips": 'Addresses of a server and their reverse DNS (API document, "Servers").',
    "orders": 'Server orders (API document, "Orders").',
}

_NOT_NOW = ("service_state", "server_blocked", "operation_in_progress")
"""Codes of every change of a server: its state, or what else is done to it, does not allow it."""

OPERATIONS: tuple[Operation, ...] = (
    # --- servers
    Operation(
        "list_servers",
        "GET /servers",
        "servers.list",
        "Servers, newest first; a test key also sees its sandbox servers",
        {200: m.Page[m.Server]},
        ("servers:read",),
        query=m.ServerListQuery,
    ),
    Operation(
        "create_server",
        "POST /servers",
        "servers.create",
        "Order a server: 201 when it exists, 202 while it is being created",
        {201: m.ServerCreated, 202: m.Order},
        ("servers:order",),
        request=m.ServerCreate,
        expensive=True,
        is_keyed=True,
        codes=("insufficient_funds", "no_capacity", "tariff_unavailable", "os_not_allowed", "invalid_period"),
        description="The balance is charged at once; with ``InsufficientFunds`` nothing is. "
        "``ServerCreated`` means that the server exists, ``Order`` that it is being created: read the order "
        "until it is active. A generated root password is shown once, in ``ServerCreated.root_password``, "
        "never in an ``Order``, and not when a request is repeated.",
    ),
    Operation(
        "get_server",
        "GET /servers/{server_id}",
        "servers.get",
        "One server with its refund quote; include=live adds panel data",
        {200: m.ServerDetail},
        ("servers:read",),
        query=m.ServerReadQuery,
        expensive_when={"include": ("live",)},
        codes=("service_state",),
        description="With ``include='live'`` a server without a panel record raises ``ServiceState``.",
    ),
    Operation(
        "update_server",
        "PATCH /servers/{server_id}",
        "servers.update",
        "Name, notes, auto-renew",
        {200: m.Server},
        ("servers:manage",),
        request=m.ServerUpdate,
        codes=_NOT_NOW,
        description="Give at least one field. Only what is given changes.",
    ),
    Operation(
        "delete_server",
        "DELETE /servers/{server_id}",
        "servers.delete",
        "Delete a server; the unused part is credited",
        {200: m.DeleteResult},
        ("servers:delete",),
        is_keyed=True,
        codes=_NOT_NOW,
        description="All its data is lost. ``ServiceState`` means that it is deleted already, "
        "``Unavailable`` that the panel failed and nothing changed.",
    ),
    Operation(
        "get_server_status",
        "GET /servers/{server_id}/status",
        "servers.status",
        "Live power, load and uptime from the panel",
        {200: m.ServerLiveStatus},
        ("servers:read",),
        expensive=True,
        codes=("service_state", "upstream_error", "upstream_timeout"),
        description="Load is in percent, uptime in seconds. A server without a panel record raises "
        "``ServiceState``.",
    ),
    Operation(
        "get_server_refund_quote",
        "GET /servers/{server_id}/refund-quote",
        "servers.refund_quote",
        "What a deletion would credit now",
        {200: m.RefundQuote},
        ("servers:read",),
    ),
    Operation(
        "power_server",
        "POST /servers/{server_id}/actions/power",
        "servers.power",
        "Start, stop or restart",
        {202: m.ActionResult},
        ("servers:manage",),
        request=m.PowerRequest,
        codes=("invalid_action", *_NOT_NOW),
        description="The answer says that the action was accepted, not that it is done. A suspended server "
        "raises ``ServiceState``.",
    ),
    Operation(
        "reinstall_server",
        "POST /servers/{server_id}/actions/reinstall",
        "servers.reinstall",
        "Reinstall with an image; destroys all data",
        {202: m.ReinstallResult},
        ("servers:manage",),
        request=m.ReinstallRequest,
        codes=("os_not_allowed", *_NOT_NOW),
        description="ALL DATA OF THE SERVER IS LOST. A generated root password is shown once, in this "
        "answer.",
    ),
    Operation(
        "reset_server_password",
        "POST /servers/{server_id}/actions/reset-password",
        "servers.reset_password",
        "A new root password, shown once",
        {200: m.ResetPasswordResult},
        ("servers:manage",),
        codes=_NOT_NOW,
        limits=(ExtraLimit(calls=5, seconds=300, per="server_id"),),
    ),
    Operation(
        "renew_server",
        "POST /servers/{server_id}/renew",
        "servers.renew",
        "Pay further months or hours in advance",
        {200: m.RenewResult},
        ("servers:order",),
        request=m.RenewRequest,
        is_keyed=True,
        codes=("invalid_period", "insufficient_funds", *_NOT_NOW, "cancel_pending"),
        description="Give exactly one of ``months`` (monthly servers) and ``hours`` (hourly servers). The "
        "balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    # --- addresses and reverse DNS
    Operation(
        "list_server_ips",
        "GET /servers/{server_id}/ips",
        "servers.ips.list",
        "Addresses of a server, v4 and v6",
        {200: m.Listing[m.Ip]},
        ("servers:read",),
        live_expensive=True,
    ),
    Operation(
        "get_server_ip_quote",
        "GET /servers/{server_id}/ips/quote",
        "servers.ips.quote",
        "What one more address costs",
        {200: m.IpQuote},
        ("servers:read",),
        live_expensive=True,
    ),
    Operation(
        "add_server_ip",
        "POST /servers/{server_id}/ips",
        "servers.ips.add",
        "Buy one IPv4 address; it is assigned later",
        {200: m.IpAdded, 201: m.IpAdded},
        ("servers:order",),
        request=m.IpAddRequest,
        body_optional=True,
        expensive=True,
        is_keyed=True,
        codes=("ip_limit_reached", "insufficient_funds", *_NOT_NOW),
        live_status=201,
        description="The answer does not name the address. It appears in the list of addresses later. The "
        "balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    Operation(
        "delete_server_ip",
        "DELETE /servers/{server_id}/ips/{ip_id}",
        "servers.ips.delete",
        "Release an additional address, without refund",
        {200: m.IpDeleted, 204: None},
        ("servers:order",),
        codes=("conflict", *_NOT_NOW),
        description="The primary address cannot be released: ``Conflict``.",
    ),
    Operation(
        "set_server_ip_ptr",
        "PUT /servers/{server_id}/ips/{ip_id}/ptr",
        "servers.ips.set_ptr",
        "Set or remove the reverse DNS name of an address",
        {200: m.PtrRecord},
        ("servers:manage",),
        request=m.PtrUpdate,
        codes=("upstream_rejected", *_NOT_NOW),
    ),
    # --- orders
    Operation(
        "list_orders",
        "GET /orders",
        "orders.list",
        "Server orders that are still being created",
        {200: m.Page[m.Order]},
        ("servers:read",),
        query=m.OrderListQuery,
        description="Newest first. Finished orders are not in the list; read them by id.",
    ),
    Operation(
        "get_order",
        "GET /orders/{invoice_id}",
        "orders.get",
        "One server order",
        {200: m.Order},
        ("servers:read",),
        description="Finished orders too.",
    ),
)
