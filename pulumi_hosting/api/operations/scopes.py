"""The scopes of API keys, and the usual sets of them (API document, "Authentication")."""

from collections.abc import Mapping

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
