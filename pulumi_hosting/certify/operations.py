"""What the document's tables say about each operation: scopes, Idempotency-Key, bucket."""

import re

_SCOPES = """
account:read    GET    /account
balance:read    GET    /balance /transactions /balance/topup-info
balance:topup   POST   /balance/topup*
invoices:read   GET    /invoices /invoices/1 /invoices/1/pdf
invoices:pay    POST   /invoices/1/pay* /invoices/1/payment-link
servers:read    GET    /servers /servers/1 /servers/1/status /servers/1/refund-quote /servers/1/ips
servers:read    GET    /servers/1/ips/quote /orders /orders/1 /ssh-keys
servers:order   POST   /servers* /servers/1/renew* /servers/1/ips*
servers:order   DELETE /servers/1/ips/1
servers:manage  PATCH  /servers/1
servers:manage  POST   /servers/1/actions/power /servers/1/actions/reinstall /servers/1/actions/reset-password
servers:manage  PUT    /servers/1/ips/1/ptr
servers:manage  POST   /ssh-keys
servers:delete  DELETE /servers/1*
domains:read    GET    /domains/availability /domains /domains/1
domains:order   POST   /domains* /domains/1/renew* /domains/transfers*
domains:manage  PUT    /domains/1/nameservers
domains:manage  PATCH  /domains/1
keys:read       GET    /keys
webhooks:manage GET    /webhooks/events /webhooks /webhooks/1/deliveries
webhooks:manage POST   /webhooks /webhooks/1/rotate-secret /webhooks/1/test /webhooks/deliveries/1/redeliver
webhooks:manage PATCH  /webhooks/1
"""
_ROWS = [
    (f"{method} {path}", scope)
    for scope, method, *paths in map(str.split, _SCOPES.strip().splitlines())
    for path in paths
]
SCOPED = {call.rstrip("*"): scope for call, scope in _ROWS}
"""Method and path, with 1 as every id -> the scope that it needs."""
KEYED = [call.rstrip("*") for call, _ in _ROWS if call.endswith("*")]
"""Those that take an Idempotency-Key; a star marks them."""
WEBHOOKS = [call for call, scope in SCOPED.items() if scope == "webhooks:manage"]
"""With live keys only."""
PAGED = {
    "/servers": "status=active",
    "/invoices": "status=paid",
    "/transactions": "direction=debit",
    "/orders": "",
    "/domains": "status=active",
}
"""Lists with pages -> a filter of each."""

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
