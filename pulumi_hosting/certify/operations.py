"""What the document's tables say about each operation: scopes, Idempotency-Key, bucket."""

import re

SCOPED: dict[str, str] = {
    "GET /account": "account:read",
    "GET /balance": "balance:read",
    "GET /transactions": "balance:read",
    "GET /balance/topup-info": "balance:read",
    "POST /balance/topup": "balance:topup",
    "GET /invoices": "invoices:read",
    "GET /invoices/1": "invoices:read",
    "GET /invoices/1/pdf": "invoices:read",
    "POST /invoices/1/pay": "invoices:pay",
    "POST /invoices/1/payment-link": "invoices:pay",
    "GET /servers": "servers:read",
    "POST /servers": "servers:order",
    "GET /servers/1": "servers:read",
    "PATCH /servers/1": "servers:manage",
    "DELETE /servers/1": "servers:delete",
    "GET /servers/1/status": "servers:read",
    "GET /servers/1/refund-quote": "servers:read",
    "POST /servers/1/actions/power": "servers:manage",
    "POST /servers/1/actions/reinstall": "servers:manage",
    "POST /servers/1/actions/reset-password": "servers:manage",
    "POST /servers/1/renew": "servers:order",
    "GET /servers/1/ips": "servers:read",
    "GET /servers/1/ips/quote": "servers:read",
    "POST /servers/1/ips": "servers:order",
    "DELETE /servers/1/ips/1": "servers:order",
    "PUT /servers/1/ips/1/ptr": "servers:manage",
    "GET /orders": "servers:read",
    "GET /orders/1": "servers:read",
    "GET /ssh-keys": "servers:read",
    "POST /ssh-keys": "servers:manage",
    "GET /domains/availability": "domains:read",
    "GET /domains": "domains:read",
    "GET /domains/1": "domains:read",
    "POST /domains": "domains:order",
    "PUT /domains/1/nameservers": "domains:manage",
    "PATCH /domains/1": "domains:manage",
    "POST /domains/1/renew": "domains:order",
    "POST /domains/transfers": "domains:order",
    "GET /keys": "keys:read",
}
"""Method and path, with 1 as every id -> the scope that it needs. Webhooks: with live keys only."""

KEYED = (
    "POST /balance/topup",
    "POST /invoices/1/pay",
    "POST /servers",
    "DELETE /servers/1",
    "POST /servers/1/renew",
    "POST /servers/1/ips",
    "POST /domains",
    "POST /domains/1/renew",
    "POST /domains/transfers",
)

WEBHOOKS = (
    "GET /webhooks/events",
    "GET /webhooks",
    "POST /webhooks",
    "PATCH /webhooks/1",
    "POST /webhooks/1/rotate-secret",
    "POST /webhooks/1/test",
    "GET /webhooks/1/deliveries",
    "POST /webhooks/deliveries/1/redeliver",
)

PAGED = ("/servers", "/invoices", "/transactions", "/orders", "/domains")
WHOLE = ("/catalog/tariffs", "/catalog/os", "/catalog/locations", "/catalog/zones", "/ssh-keys", "/keys")

_EXPENSIVE = re.compile(
    r"GET /servers/\d+/status|GET /servers/\d+\?include=live|GET /domains/availability(\?.*)?"
    r"|GET /catalog/quote(\?.*)?|POST /servers|POST /servers/\d+/ips|POST /balance/topup"
    r"|GET /invoices/\d+/pdf|POST /webhooks/\d+/test|POST /webhooks/deliveries/\d+/redeliver"
)
_MAY_BE_EXPENSIVE = re.compile(r"GET /servers/\d+/ips(/quote)?")


def is_expensive(call: str) -> bool | None:
    """Whether a call counts in the expensive bucket; ``None``: deployments differ there."""
    return None if _MAY_BE_EXPENSIVE.fullmatch(call) else bool(_EXPENSIVE.fullmatch(call))


CODES: dict[int, str] = {
    400: "invalid_request validation_error invalid_cursor idempotency_key_required os_not_allowed "
    "invalid_period invalid_action upstream_rejected",
    401: "invalid_token key_expired key_not_yet_valid",
    402: "insufficient_funds",
    403: "insufficient_scope ip_not_allowed account_suspended api_disabled_for_account "
    "sandbox_not_supported sandbox_disabled server_blocked domain_blocked",
    404: "not_found",
    409: "conflict idempotency_conflict idempotency_in_progress operation_in_progress service_state "
    "no_capacity tariff_unavailable ip_limit_reached domain_taken domain_exists cancel_pending",
    413: "payload_too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    500: "server_error",
    502: "upstream_error",
    503: "api_disabled upstream_unavailable temporarily_unavailable",
    504: "upstream_timeout",
}
STATUS_OF = {code: status for status, codes in CODES.items() for code in codes.split()}
