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
from pulumi_hosting.actions.api_key_revoke import API_KEY_REVOKE
from pulumi_hosting.actions.balance_topup import BALANCE_TOPUP
from pulumi_hosting.actions.domain_renew import DOMAIN_RENEW
from pulumi_hosting.actions.invoice_pay import INVOICE_PAY
from pulumi_hosting.actions.server_password import SERVER_PASSWORD
from pulumi_hosting.actions.server_power import SERVER_REINSTALL, SERVER_RESTART
from pulumi_hosting.actions.server_renew import SERVER_RENEW
from pulumi_hosting.actions.webhook_redeliver import WEBHOOK_REDELIVER
from pulumi_hosting.actions.webhook_test import WEBHOOK_TEST
from pulumi_hosting.session.errors import Failed

ACTIONS: Mapping[str, AnyAction] = {
    action.kind: action
    for action in (
        SERVER_RENEW,
        SERVER_PASSWORD,
        SERVER_RESTART,
        SERVER_REINSTALL,
        DOMAIN_RENEW,
        INVOICE_PAY,
        BALANCE_TOPUP,
        WEBHOOK_TEST,
        WEBHOOK_REDELIVER,
        API_KEY_REVOKE,
    )
}
"""Every action by its kind; a frontend enumerates this, so a new one cannot be forgotten."""

__all__ = ["ACTIONS", "Action", "ActionOutcome", "ActionPlan", "Failed", "Result", "act", "check", "resolve"]
