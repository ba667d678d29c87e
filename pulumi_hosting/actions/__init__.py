"""What is done to what exists already, once: one file per action, one way to run them
all (``action``)."""

from collections.abc import Mapping

from pulumi_hosting.actions.action import (
    Action,
    ActionOutcome,
    ActionPlan,
    AnyAction,
    Result,
    act,
    check,
    resolve,
)
from pulumi_hosting.actions.api_key_revoke import ApiKeyRevoke
from pulumi_hosting.actions.balance_topup import BalanceTopup
from pulumi_hosting.actions.domain_renew import DomainRenewal
from pulumi_hosting.actions.invoice_pay import InvoicePay
from pulumi_hosting.actions.invoice_payment_link import InvoicePaymentLink
from pulumi_hosting.actions.server_password import ServerPassword
from pulumi_hosting.actions.server_power import ServerReinstall, ServerRestart
from pulumi_hosting.actions.server_renew import ServerRenew
from pulumi_hosting.actions.webhook_redeliver import WebhookRedeliver
from pulumi_hosting.actions.webhook_test import WebhookTest
from pulumi_hosting.session.errors import Failed

ACTIONS: Mapping[str, AnyAction] = {
    action.kind: action()
    for action in (
        ServerRenew,
        ServerPassword,
        ServerRestart,
        ServerReinstall,
        DomainRenewal,
        InvoicePay,
        InvoicePaymentLink,
        BalanceTopup,
        WebhookTest,
        WebhookRedeliver,
        ApiKeyRevoke,
    )
}
"""Every action by its kind; a frontend enumerates this, so a new one cannot be forgotten."""

__all__ = ["ACTIONS", "Action", "ActionOutcome", "ActionPlan", "Failed", "Result", "act", "check", "resolve"]
