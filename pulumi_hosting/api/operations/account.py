"""The account and its balance (API document, "Account and balance")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {
    "account": 'The account (API document, "Account and balance").',
    "balance": 'The balance and its movements (API document, "Account and balance").',
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "get_account", "GET /account", "account.get", "The account", {200: m.Account}, ("account:read",)
    ),
    Operation(
        "get_balance",
        "GET /balance",
        "balance.get",
        "Balance and upcoming charges",
        {200: m.Balance},
        ("balance:read",),
    ),
    Operation(
        "list_transactions",
        "GET /transactions",
        "balance.transactions",
        "Movements of the balance, newest first",
        {200: m.Page[m.Transaction]},
        ("balance:read",),
        query=m.TransactionListQuery,
    ),
    Operation(
        "get_topup_info",
        "GET /balance/topup-info",
        "balance.topup_info",
        "Bounds and gateways of top-ups",
        {200: m.TopupInfo},
        ("balance:read",),
    ),
    Operation(
        "create_topup",
        "POST /balance/topup",
        "balance.topup",
        "Create a top-up invoice and its payment link",
        {201: m.TopupResult},
        ("balance:topup",),
        request=m.TopupRequest,
        expensive=True,
        is_keyed=True,
        description="The balance changes when the gateway confirms the payment.",
    ),
)
