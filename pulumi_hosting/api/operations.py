"""The one table of operations (API document, sections "Endpoints" and "Limits"), in the document's order.

The client sends by it, the emulator routes and guards by it, the OpenAPI document and the reference page are printed from it, and the
contract tests loop over it. Nobody keeps a second list: a fact about an operation is a column here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.error_codes import CODES

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
RetryClass = Literal["safe", "idempotent", "idempotency_key", "never"]
Sandbox = Literal["real", "fake", "forbidden"]
Paging = Literal["none", "list", "cursor"]

SCOPES: Mapping[str, str] = {
    "account:read": "read the account",
    "balance:read": "read balance, transactions, top-up info",
    "balance:topup": "create top-ups",
    "invoices:read": "read invoices and their PDF",
    "invoices:pay": "pay from the balance, create payment links",
    "servers:read": "read servers, live status, addresses, SSH keys, orders, refund quotes",
    "servers:manage": "power, reinstall, password reset, reverse DNS, edits, add and remove SSH keys",
    "servers:order": "order, renew, buy and release addresses",
    "servers:delete": "delete with refund",
    "domains:read": "read domains and availability",
    "domains:manage": "auto-renew, privacy, name servers",
    "domains:order": "register, renew, transfer",
    "keys:read": "list API keys",
    "webhooks:manage": "subscriptions, deliveries, test, redeliver",
}

PRESETS: Mapping[str, tuple[str, ...]] = {
    "read_only": tuple(scope for scope in SCOPES if scope.endswith(":read")),
    "operate": (
        *(scope for scope in SCOPES if scope.endswith(":read")),
        "servers:manage",
        "servers:order",
        "domains:manage",
        "invoices:pay",
    ),
    "full": tuple(SCOPES),
}

TAGS: Mapping[str, str] = {
    "meta": 'The API itself and the calling key (API document, "Meta").',
    "account": 'The account (API document, "Account and balance").',
    "balance": 'The balance and its movements (API document, "Account and balance").',
    "invoices": 'Invoices (API document, "Invoices").',
    "catalog": 'What can be ordered, and for how much (API document, "Catalog").',
    "servers": 'Servers (API document, "Servers"). A server that staff have locked refuses every write with ``ServerBlocked``, a server with another change under way with ``OperationInProgress``.',
    "servers.ips": 'Addresses of a server and their reverse DNS (API document, "Servers").',
    "orders": 'Server orders (API document, "Orders").',
    "ssh_keys": 'Public SSH keys of the account (API document, "SSH keys"). No operation reads or changes a single key.',
    "domains": 'Domains (API document, "Domains"). No operation deletes a domain. A domain that staff have locked refuses every write with ``DomainBlocked``.',
    "keys": 'API keys of the account (API document, "API keys"). They are created in the web cabinet only.',
    "webhooks": 'Webhook subscriptions (API document, "Webhooks", "Events"). Live keys only: a test key gets ``SandboxRefused``. :mod:`pulumi_hosting.webhooks` checks a delivery that was received.',
    "webhooks.deliveries": 'Deliveries of a webhook subscription (API document, "Webhooks"). They are kept for 14 days, dead ones for 30.',
}
"""What the groups of operations are about, by their place in the client. ``meta``: the methods of the client itself."""

# Buckets, per key and fixed window (API document, section "Limits").
WINDOW_SECONDS = 60
NORMAL_PER_WINDOW = 120
EXPENSIVE_PER_WINDOW = 20
INVALID_KEYS_PER_WINDOW = 30
MAX_BODY_BYTES = 64 * 1024
KEY_LENGTH = range(16, 129)
KEY_MEMORY_SECONDS = 7 * 24 * 3600
SANDBOX_SERVER_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class ExtraLimit:
    """A limit beside the two buckets: ``calls`` per ``seconds`` for each value of the path parameter ``per``."""

    calls: int
    seconds: int
    per: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``call`` is its place in the client (``servers.ips.list`` → ``client.servers.ips.list()``).

    - ``responses``: model by status, the document's success first; ``bytes`` is a file, ``dict`` an open object, ``None`` no body.
    - ``scopes``: all needed; empty = any valid key; ``auth`` false = no key at all.
    - ``expensive`` true, or ``expensive_when`` query parameters hold these values: counts in the expensive bucket.
    - ``retry``: ``safe`` reads; ``idempotency_key`` is safe to repeat with the same Idempotency-Key; ``idempotent`` may be sent again after
      a read; ``never`` must not be repeated automatically.
    - ``sandbox``: what a test key gets: ``real``, ``fake`` (simulated) or ``forbidden``.
    - ``codes``: error codes it may answer, without those every operation shares.
    - ``once``: response fields that hold a secret shown only in this answer.
    - ``description``: what else a caller must know, beyond the summary and the other columns.
    - ``live_status``, ``live_expensive``: where a live deployment differs from the document.
    """

    id: str
    method: Method
    path: str
    call: str
    summary: str
    responses: Mapping[int, Any]
    scopes: tuple[str, ...] = ()
    query: type[m.Request] | None = None
    request: type[m.Request] | None = None
    body_optional: bool = False
    expensive: bool = False
    expensive_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retry: RetryClass = "safe"
    sandbox: Sandbox = "real"
    paging: Paging = "none"
    codes: tuple[str, ...] = ()
    limits: tuple[ExtraLimit, ...] = ()
    once: tuple[str, ...] = ()
    auth: bool = True
    live_status: int | None = None
    live_expensive: bool = False
    description: str = ""

    @property
    def tag(self) -> str:
        """The area it belongs to: the first part of ``call``."""
        return self.call.split(".")[0]

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The names in braces in the path, in its order."""
        return _path_parameters(self.path)

    @property
    def success(self) -> int:
        """The document's first success status."""
        first: int = next(iter(self.responses))
        return first

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_keyed(self) -> bool:
        return self.retry == "idempotency_key"

    def is_expensive(self, query: Mapping[str, str]) -> bool:
        """Whether a call with this query counts in the expensive bucket (by the document)."""
        return self.expensive or any(query.get(name) in values for name, values in self.expensive_when.items())

    @property
    def error_codes(self) -> tuple[str, ...]:
        """Every code this operation may answer, its own and the shared ones, in the order of the code table."""
        shared: set[str] = set()
        if self.auth:
            shared |= {"invalid_token", "key_expired", "key_not_yet_valid", "ip_not_allowed", "account_suspended"}
            shared |= {
                "api_disabled_for_account",
                "sandbox_disabled",
                "rate_limited",
                "server_error",
                "api_disabled",
                "temporarily_unavailable",
            }
            if self.scopes or self.id == "revoke_api_key":
                shared.add("insufficient_scope")
            if self.sandbox == "forbidden":
                shared.add("sandbox_not_supported")
            if self.query is not None or self.path_parameters or self.is_write:
                shared.add("validation_error")
            if self.paging == "cursor":
                shared.add("invalid_cursor")
            if self.path_parameters:
                shared.add("not_found")
            if self.is_write:
                shared |= {"payload_too_large", "unsupported_media_type", "upstream_error", "upstream_unavailable", "upstream_timeout"}
                if self.request is not None:
                    shared.add("invalid_request")
            if self.is_keyed:
                shared |= {"idempotency_key_required", "idempotency_conflict", "idempotency_in_progress"}
        return tuple(code for code in CODES if code in shared or code in self.codes)


@cache
def _path_parameters(path: str) -> tuple[str, ...]:
    return tuple(re.findall(r"{(\w+)}", path))


OPERATIONS: tuple[Operation, ...] = (
    # --- meta
    Operation("get_health", "GET", "/health", "health", "Whether the API is switched on", {200: m.Health}, auth=False),
    Operation("get_openapi", "GET", "/openapi.json", "openapi", "This API as OpenAPI 3.1", {200: dict}, auth=False),
    Operation("get_me", "GET", "/me", "me", "The calling key, its scopes and account", {200: m.Me}),
    # --- account, balance
    Operation("get_account", "GET", "/account", "account.get", "The account", {200: m.Account}, ("account:read",)),
    Operation("get_balance", "GET", "/balance", "balance.get", "Balance and upcoming charges", {200: m.Balance}, ("balance:read",)),
    Operation(
        "list_transactions",
        "GET",
        "/transactions",
        "balance.transactions",
        "Movements of the balance, newest first",
        {200: m.Page[m.Transaction]},
        ("balance:read",),
        query=m.TransactionListQuery,
        paging="cursor",
    ),
    Operation(
        "get_topup_info",
        "GET",
        "/balance/topup-info",
        "balance.topup_info",
        "Bounds and gateways of top-ups",
        {200: m.TopupInfo},
        ("balance:read",),
    ),
    Operation(
        "create_topup",
        "POST",
        "/balance/topup",
        "balance.topup",
        "Create a top-up invoice and its payment link",
        {201: m.TopupResult},
        ("balance:topup",),
        request=m.TopupRequest,
        expensive=True,
        retry="idempotency_key",
        sandbox="fake",
        description="The balance changes when the gateway confirms the payment.",
    ),
    # --- invoices
    Operation(
        "list_invoices",
        "GET",
        "/invoices",
        "invoices.list",
        "Invoices, newest first",
        {200: m.Page[m.Invoice]},
        ("invoices:read",),
        query=m.InvoiceListQuery,
        paging="cursor",
    ),
    Operation("get_invoice", "GET", "/invoices/{invoice_id}", "invoices.get", "One invoice", {200: m.Invoice}, ("invoices:read",)),
    Operation(
        "get_invoice_pdf",
        "GET",
        "/invoices/{invoice_id}/pdf",
        "invoices.pdf",
        "One invoice as PDF",
        {200: bytes},
        ("invoices:read",),
        expensive=True,
    ),
    Operation(
        "pay_invoice",
        "POST",
        "/invoices/{invoice_id}/pay",
        "invoices.pay",
        "Pay an invoice from the balance",
        {200: m.PayInvoiceResult},
        ("invoices:pay",),
        retry="idempotency_key",
        sandbox="fake",
        codes=("insufficient_funds", "conflict"),
        description="The balance is charged at once. With ``InsufficientFunds`` nothing changes.",
    ),
    Operation(
        "create_invoice_payment_link",
        "POST",
        "/invoices/{invoice_id}/payment-link",
        "invoices.payment_link",
        "A link to pay an invoice through a gateway",
        {200: m.PaymentLink},
        ("invoices:pay",),
        request=m.PaymentLinkRequest,
        body_optional=True,
        retry="never",
        sandbox="fake",
        codes=("conflict",),
    ),
    # --- catalog
    Operation(
        "list_tariffs",
        "GET",
        "/catalog/tariffs",
        "catalog.tariffs",
        "Server tariffs with the caller's prices",
        {200: m.Listing[m.Tariff]},
        query=m.TariffListQuery,
        paging="list",
    ),
    Operation("get_tariff", "GET", "/catalog/tariffs/{tariff_id}", "catalog.tariff", "One tariff", {200: m.Tariff}),
    Operation(
        "list_os_images",
        "GET",
        "/catalog/os",
        "catalog.os_images",
        "OS images; with a tariff, those it allows",
        {200: m.Listing[m.OsImage]},
        query=m.OsListQuery,
        paging="list",
        description="The ``slug`` of an image is what orders and reinstalls take.",
    ),
    Operation("list_locations", "GET", "/catalog/locations", "catalog.locations", "Locations", {200: m.Listing[m.Location]}, paging="list"),
    Operation(
        "list_zones", "GET", "/catalog/zones", "catalog.zones", "Domain endings and their prices", {200: m.Listing[m.Zone]}, paging="list"
    ),
    Operation(
        "get_quote",
        "GET",
        "/catalog/quote",
        "catalog.quote",
        "What an order would cost now",
        {200: m.Quote},
        query=m.QuoteQuery,
        expensive=True,
        codes=("not_found", "invalid_period"),
        description="Discounts are included. Nothing is ordered, and no promo code is used up.",
    ),
    # --- servers
    Operation(
        "list_servers",
        "GET",
        "/servers",
        "servers.list",
        "Servers, newest first; a test key also sees its sandbox servers",
        {200: m.Page[m.Server]},
        ("servers:read",),
        query=m.ServerListQuery,
        paging="cursor",
    ),
    Operation(
        "create_server",
        "POST",
        "/servers",
        "servers.create",
        "Order a server: 201 when it exists, 202 while it is being created",
        {201: m.ServerCreated, 202: m.Order},
        ("servers:order",),
        request=m.ServerCreate,
        expensive=True,
        retry="idempotency_key",
        sandbox="fake",
        codes=("insufficient_funds", "no_capacity", "tariff_unavailable", "os_not_allowed", "invalid_period"),
        once=("root_password",),
        description="The balance is charged at once; with ``InsufficientFunds`` nothing is. ``ServerCreated`` means that the server exists, ``Order`` that it is being created: read the order until it is active. A generated root password is shown once, in ``ServerCreated.root_password``, never in an ``Order``, and not when a request is repeated.",
    ),
    Operation(
        "get_server",
        "GET",
        "/servers/{server_id}",
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
        "PATCH",
        "/servers/{server_id}",
        "servers.update",
        "Name, notes, auto-renew",
        {200: m.Server},
        ("servers:manage",),
        request=m.ServerUpdate,
        retry="idempotent",
        sandbox="fake",
        codes=("server_blocked", "service_state", "operation_in_progress"),
        description="Give at least one field. Only what is given changes.",
    ),
    Operation(
        "delete_server",
        "DELETE",
        "/servers/{server_id}",
        "servers.delete",
        "Delete a server; the unused part is credited",
        {200: m.DeleteResult},
        ("servers:delete",),
        retry="idempotency_key",
        sandbox="fake",
        codes=("service_state", "server_blocked", "operation_in_progress"),
        description="All its data is lost. ``ServiceState`` means that it is deleted already, ``Unavailable`` that the panel failed and nothing changed.",
    ),
    Operation(
        "get_server_status",
        "GET",
        "/servers/{server_id}/status",
        "servers.status",
        "Live power, load and uptime from the panel",
        {200: m.ServerLiveStatus},
        ("servers:read",),
        expensive=True,
        codes=("service_state", "upstream_error", "upstream_timeout"),
        description="Load is in percent, uptime in seconds. A server without a panel record raises ``ServiceState``.",
    ),
    Operation(
        "get_server_refund_quote",
        "GET",
        "/servers/{server_id}/refund-quote",
        "servers.refund_quote",
        "What a deletion would credit now",
        {200: m.RefundQuote},
        ("servers:read",),
    ),
    Operation(
        "power_server",
        "POST",
        "/servers/{server_id}/actions/power",
        "servers.power",
        "Start, stop or restart",
        {202: m.ActionResult},
        ("servers:manage",),
        request=m.PowerRequest,
        retry="never",
        sandbox="fake",
        codes=("invalid_action", "service_state", "server_blocked", "operation_in_progress"),
        description="The answer says that the action was accepted, not that it is done. A suspended server raises ``ServiceState``.",
    ),
    Operation(
        "reinstall_server",
        "POST",
        "/servers/{server_id}/actions/reinstall",
        "servers.reinstall",
        "Install an image anew; destroys all data",
        {202: m.ReinstallResult},
        ("servers:manage",),
        request=m.ReinstallRequest,
        retry="never",
        sandbox="fake",
        codes=("os_not_allowed", "service_state", "server_blocked", "operation_in_progress"),
        once=("root_password",),
        description="ALL DATA OF THE SERVER IS LOST. A generated root password is shown once, in this answer.",
    ),
    Operation(
        "reset_server_password",
        "POST",
        "/servers/{server_id}/actions/reset-password",
        "servers.reset_password",
        "A new root password, shown once",
        {200: m.ResetPasswordResult},
        ("servers:manage",),
        retry="never",
        sandbox="fake",
        codes=("service_state", "server_blocked", "operation_in_progress"),
        limits=(ExtraLimit(calls=5, seconds=300, per="server_id"),),
        once=("password",),
    ),
    Operation(
        "renew_server",
        "POST",
        "/servers/{server_id}/renew",
        "servers.renew",
        "Pay further months or hours in advance",
        {200: m.RenewResult},
        ("servers:order",),
        request=m.RenewRequest,
        retry="idempotency_key",
        sandbox="fake",
        codes=("invalid_period", "insufficient_funds", "service_state", "server_blocked", "operation_in_progress", "cancel_pending"),
        description="Give exactly one of ``months`` (monthly servers) and ``hours`` (hourly servers). The balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    # --- addresses and reverse DNS
    Operation(
        "list_server_ips",
        "GET",
        "/servers/{server_id}/ips",
        "servers.ips.list",
        "Addresses of a server, v4 and v6",
        {200: m.Listing[m.Ip]},
        ("servers:read",),
        paging="list",
        live_expensive=True,
    ),
    Operation(
        "get_server_ip_quote",
        "GET",
        "/servers/{server_id}/ips/quote",
        "servers.ips.quote",
        "What one more address costs",
        {200: m.IpQuote},
        ("servers:read",),
        live_expensive=True,
    ),
    Operation(
        "add_server_ip",
        "POST",
        "/servers/{server_id}/ips",
        "servers.ips.add",
        "Buy one IPv4 address; it is assigned later",
        {200: m.IpAdded, 201: m.IpAdded},
        ("servers:order",),
        request=m.IpAddRequest,
        body_optional=True,
        expensive=True,
        retry="idempotency_key",
        sandbox="fake",
        codes=("ip_limit_reached", "insufficient_funds", "operation_in_progress", "server_blocked", "service_state"),
        live_status=201,
        description="The answer does not name the address. It appears in the list of addresses later. The balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    Operation(
        "delete_server_ip",
        "DELETE",
        "/servers/{server_id}/ips/{ip_id}",
        "servers.ips.delete",
        "Release an additional address, without refund",
        {200: m.IpDeleted, 204: None},
        ("servers:order",),
        retry="idempotent",
        sandbox="fake",
        codes=("conflict", "server_blocked", "service_state", "operation_in_progress"),
        description="The primary address cannot be released: ``Conflict``.",
    ),
    Operation(
        "set_server_ip_ptr",
        "PUT",
        "/servers/{server_id}/ips/{ip_id}/ptr",
        "servers.ips.set_ptr",
        "Set or remove the reverse DNS name of an address",
        {200: m.PtrRecord},
        ("servers:manage",),
        request=m.PtrUpdate,
        retry="idempotent",
        sandbox="fake",
        codes=("upstream_rejected", "server_blocked", "service_state", "operation_in_progress"),
    ),
    # --- orders
    Operation(
        "list_orders",
        "GET",
        "/orders",
        "orders.list",
        "Server orders that are still being created",
        {200: m.Page[m.Order]},
        ("servers:read",),
        query=m.OrderListQuery,
        paging="cursor",
        description="Newest first. Finished orders are not in the list; read them by id.",
    ),
    Operation(
        "get_order",
        "GET",
        "/orders/{invoice_id}",
        "orders.get",
        "One server order",
        {200: m.Order},
        ("servers:read",),
        description="Finished orders too.",
    ),
    # --- SSH keys
    Operation(
        "list_ssh_keys",
        "GET",
        "/ssh-keys",
        "ssh_keys.list",
        "Public keys of the account",
        {200: m.Listing[m.SshKey]},
        ("servers:read",),
        paging="list",
    ),
    Operation(
        "create_ssh_key",
        "POST",
        "/ssh-keys",
        "ssh_keys.create",
        "Add a public key",
        {201: m.SshKey},
        ("servers:manage",),
        request=m.SshKeyCreate,
        retry="never",
        sandbox="fake",
        codes=("conflict",),
        description="Some deployments refuse a key that is there already with ``Conflict``.",
    ),
    Operation(
        "delete_ssh_key",
        "DELETE",
        "/ssh-keys/{key_id}",
        "ssh_keys.delete",
        "Remove a public key; servers that carry it keep it",
        {204: None},
        ("servers:manage",),
        retry="idempotent",
        sandbox="fake",
    ),
    # --- domains
    Operation(
        "check_domain_availability",
        "GET",
        "/domains/availability",
        "domains.availability",
        "Whether a name can be registered, and its price",
        {200: m.Availability},
        ("domains:read",),
        query=m.AvailabilityQuery,
        expensive=True,
        codes=("upstream_error", "upstream_timeout"),
    ),
    Operation(
        "list_domains",
        "GET",
        "/domains",
        "domains.list",
        "Domains, newest first",
        {200: m.Page[m.Domain]},
        ("domains:read",),
        query=m.DomainListQuery,
        paging="cursor",
    ),
    Operation("get_domain", "GET", "/domains/{domain_id}", "domains.get", "One domain", {200: m.Domain}, ("domains:read",)),
    Operation(
        "register_domain",
        "POST",
        "/domains",
        "domains.register",
        "Register a domain: 201 registered, 202 accepted",
        {201: m.DomainOrderResult, 202: m.DomainOrderResult},
        ("domains:order",),
        request=m.DomainRegister,
        retry="idempotency_key",
        sandbox="fake",
        codes=("domain_taken", "domain_exists", "insufficient_funds", "upstream_rejected", "invalid_period"),
        description="``status`` is ``registered``, or ``pending`` until the registrar confirms. The balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    Operation(
        "set_domain_nameservers",
        "PUT",
        "/domains/{domain_id}/nameservers",
        "domains.set_nameservers",
        "Replace the name servers",
        {200: m.Domain},
        ("domains:manage",),
        request=m.NameserversUpdate,
        retry="idempotent",
        sandbox="fake",
        codes=("domain_blocked", "upstream_rejected", "conflict"),
        description="The whole set is replaced.",
    ),
    Operation(
        "update_domain",
        "PATCH",
        "/domains/{domain_id}",
        "domains.update",
        "Auto-renew, WHOIS privacy",
        {200: m.Domain},
        ("domains:manage",),
        request=m.DomainUpdate,
        retry="idempotent",
        sandbox="fake",
        codes=("domain_blocked", "upstream_rejected", "conflict"),
        description="Give at least one field. If the registrar refuses (``UpstreamRejected``), nothing is saved.",
    ),
    Operation(
        "renew_domain",
        "POST",
        "/domains/{domain_id}/renew",
        "domains.renew",
        "Pay further years in advance",
        {200: m.DomainRenewResult, 202: m.DomainRenewResult},
        ("domains:order",),
        request=m.DomainRenew,
        retry="idempotency_key",
        sandbox="fake",
        codes=("insufficient_funds", "domain_blocked", "upstream_rejected", "conflict"),
        description="``status`` is ``renewed``, or ``pending_sync`` or ``pending`` until the new date is known. The balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    Operation(
        "transfer_domain",
        "POST",
        "/domains/transfers",
        "domains.transfer",
        "Transfer a domain in with its auth code",
        {202: m.DomainTransferResult},
        ("domains:order",),
        request=m.DomainTransfer,
        retry="idempotency_key",
        sandbox="fake",
        codes=("domain_exists", "insufficient_funds", "upstream_rejected"),
        description="A transfer takes days. Some deployments ignore ``nameservers``, ``privacy`` and ``auto_renew``: change them once the domain is there. The balance is charged at once; with ``InsufficientFunds`` nothing is.",
    ),
    # --- API keys
    Operation(
        "list_api_keys",
        "GET",
        "/keys",
        "keys.list",
        "API keys of the account",
        {200: m.Listing[m.ApiKey]},
        ("keys:read",),
        paging="list",
        description="The text of a key is never shown.",
    ),
    Operation("get_api_key", "GET", "/keys/{key_id}", "keys.get", "One API key", {200: m.ApiKey}, ("keys:read",)),
    Operation(
        "revoke_api_key",
        "DELETE",
        "/keys/{key_id}",
        "keys.revoke",
        "Revoke the calling key, whatever its scopes",
        {200: m.ApiKeyRevoked, 204: None},
        retry="idempotent",
        codes=("conflict",),
        description="Only the key that makes the call can be revoked (``client.me().key.id``), test keys too. Another key raises ``InsufficientScope``, a revoked one ``Conflict``.",
    ),
    # --- webhooks
    Operation(
        "list_webhook_events",
        "GET",
        "/webhooks/events",
        "webhooks.events",
        "Event types",
        {200: m.Listing[m.EventDescriptor]},
        ("webhooks:manage",),
        sandbox="forbidden",
        paging="list",
    ),
    Operation(
        "list_webhooks",
        "GET",
        "/webhooks",
        "webhooks.list",
        "Subscriptions",
        {200: m.Listing[m.Subscription]},
        ("webhooks:manage",),
        sandbox="forbidden",
        paging="list",
        description="Their secrets are never shown.",
    ),
    Operation(
        "create_webhook",
        "POST",
        "/webhooks",
        "webhooks.create",
        "Subscribe a URL to events; the secret is shown once",
        {201: m.SubscriptionCreated},
        ("webhooks:manage",),
        request=m.SubscriptionCreate,
        retry="never",
        sandbox="forbidden",
        once=("secret",),
        description="``secret`` signs the deliveries.",
    ),
    Operation(
        "get_webhook",
        "GET",
        "/webhooks/{webhook_id}",
        "webhooks.get",
        "One subscription",
        {200: m.Subscription},
        ("webhooks:manage",),
        sandbox="forbidden",
    ),
    Operation(
        "update_webhook",
        "PATCH",
        "/webhooks/{webhook_id}",
        "webhooks.update",
        "Change or re-enable a subscription",
        {200: m.Subscription},
        ("webhooks:manage",),
        request=m.SubscriptionUpdate,
        retry="idempotent",
        sandbox="forbidden",
        description="Give at least one field. ``active=True`` enables a disabled subscription and resets its count of failures.",
    ),
    Operation(
        "delete_webhook",
        "DELETE",
        "/webhooks/{webhook_id}",
        "webhooks.delete",
        "Delete a subscription and its delivery log",
        {200: m.SubscriptionDeleted, 204: None},
        ("webhooks:manage",),
        retry="idempotent",
        sandbox="forbidden",
    ),
    Operation(
        "rotate_webhook_secret",
        "POST",
        "/webhooks/{webhook_id}/rotate-secret",
        "webhooks.rotate_secret",
        "A new signing secret, shown once; the old one stops at once",
        {200: m.WebhookSecret},
        ("webhooks:manage",),
        retry="never",
        sandbox="forbidden",
        once=("secret",),
    ),
    Operation(
        "test_webhook",
        "POST",
        "/webhooks/{webhook_id}/test",
        "webhooks.test",
        "Send a ping now, past the queue",
        {200: m.TestResult},
        ("webhooks:manage",),
        expensive=True,
        retry="never",
        sandbox="forbidden",
        codes=("conflict",),
        description="The answer waits for the receiver. A disabled subscription raises ``Conflict``.",
    ),
    Operation(
        "list_webhook_deliveries",
        "GET",
        "/webhooks/{webhook_id}/deliveries",
        "webhooks.deliveries.list",
        "Deliveries of a subscription, newest first",
        {200: m.Page[m.Delivery]},
        ("webhooks:manage",),
        query=m.DeliveryListQuery,
        sandbox="forbidden",
        paging="cursor",
        description="The payload is not included.",
    ),
    Operation(
        "get_webhook_delivery",
        "GET",
        "/webhooks/deliveries/{delivery_id}",
        "webhooks.deliveries.get",
        "One delivery with its payload",
        {200: m.Delivery},
        ("webhooks:manage",),
        sandbox="forbidden",
    ),
    Operation(
        "redeliver_webhook",
        "POST",
        "/webhooks/deliveries/{delivery_id}/redeliver",
        "webhooks.deliveries.redeliver",
        "Queue a delivery again with identical bytes",
        {202: m.Redelivery},
        ("webhooks:manage",),
        expensive=True,
        retry="never",
        sandbox="forbidden",
        codes=("conflict",),
    ),
)

BY_ID: Mapping[str, Operation] = {operation.id: operation for operation in OPERATIONS}
