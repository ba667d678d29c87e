"""Trying a webhook subscription out (API document, "Webhooks": ``POST /webhooks/{id}/test``).

A probe: the service sends a ping at once and tells what the receiver answered. Nothing changes, and nothing
is sent twice.
"""

from typing import ClassVar

from pydantic import Field

from pulumi_hosting.actions import action
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.resources.webhook_subscription import WEBHOOK_SUBSCRIPTION
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request


class WebhookTested(action.Result):
    id: str = Field(description="Id of the subscription that the ping was sent for.")
    url: str = Field(description="Address of the receiver that the ping went to.")
    ok: bool | None = optional(
        "Whether the receiver answered with a status from 200 to 299; empty in a dry run."
    )
    status: int | None = optional("HTTP status of the receiver; empty when no answer came.")
    latency_ms: float | None = optional("How long the receiver took, in milliseconds.")
    detail: str | None = optional("What went wrong, if anything.")


class WebhookTest(action.Action[action.OfSubscription, WebhookTested]):
    kind: ClassVar[str] = "webhook_test"
    title: ClassVar[str] = "test of a webhook subscription"
    result: ClassVar[str] = "test"
    scopes: ClassVar = ("webhooks:manage",)

    def plan(self, request: Request, inputs: action.OfSubscription) -> action.ActionPlan:
        state = action.resolve(request, WEBHOOK_SUBSCRIPTION, id=inputs.id, url=inputs.url)
        if state.active is False:
            reason = f" ({state.disabled_reason})" if state.disabled_reason else ""
            raise ResourceError(
                f"webhook subscription {state.id} is disabled{reason}; nothing was sent. "
                "Next: enable it, then test it"
            )
        unknown = WebhookTested(mode=state.mode, id=state.id, url=state.url).shown()
        return action.ActionPlan(False, None, unknown, fetches=True, data=state)

    def perform(
        self, request: Request, inputs: action.OfSubscription, plan: action.ActionPlan
    ) -> WebhookTested:
        state = plan.data
        lost = (
            f"whether the ping of webhook subscription {state.id} went out is not known; nothing was "
            "repeated. Next: look at the receiver, or run again for another ping"
        )
        with action.answer_may_be_lost(lost):
            answer = request.client.webhooks.test(int(state.id))
        return action.as_shown(WebhookTested, answer, mode=state.mode, id=state.id, url=state.url)
