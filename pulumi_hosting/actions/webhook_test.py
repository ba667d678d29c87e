"""Trying a webhook subscription out (API document, "Webhooks": ``POST /webhooks/{id}/test``).

A probe: the service sends a ping at once and tells what the receiver answered. Nothing changes, and nothing
is sent twice.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from pulumi_hosting.actions.action import (
    Action,
    ActionPlan,
    OfSubscription,
    Result,
    answer_may_be_lost,
    resolve,
)
from pulumi_hosting.resources.webhook_subscription import WEBHOOK_SUBSCRIPTION
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request


class WebhookTestInputs(OfSubscription):
    pass


class WebhookTested(Result):
    id: Annotated[str, Field(description="Id of the subscription that the ping was sent for.")]
    url: Annotated[str, Field(description="Address of the receiver that the ping went to.")]
    ok: Annotated[
        bool | None,
        Field(description="Whether the receiver answered with a status from 200 to 299; empty in a dry run."),
    ] = None
    status: Annotated[
        int | None, Field(description="HTTP status of the receiver; empty when no answer came.")
    ] = None
    latency_ms: Annotated[float | None, Field(description="How long the receiver took, in milliseconds.")] = (
        None
    )
    detail: Annotated[str | None, Field(description="What went wrong, if anything.")] = None


class WebhookTest(Action[WebhookTestInputs, WebhookTested]):
    kind: ClassVar[str] = "webhook_test"
    title: ClassVar[str] = "test of a webhook subscription"
    result: ClassVar[str] = "test"
    scopes: ClassVar = ("webhooks:manage",)

    def plan(self, request: Request, inputs: WebhookTestInputs) -> ActionPlan:
        state = resolve(request, WEBHOOK_SUBSCRIPTION, id=inputs.id, url=inputs.url)
        if state.active is False:
            reason = f" ({state.disabled_reason})" if state.disabled_reason else ""
            raise ResourceError(
                f"webhook subscription {state.id} is disabled{reason}; nothing was sent. "
                "Next: enable it, then test it"
            )
        unknown = WebhookTested(mode=state.mode, id=state.id, url=state.url).shown()
        return ActionPlan(False, None, unknown, fetches=True, data=state)

    def perform(self, request: Request, inputs: WebhookTestInputs, plan: ActionPlan) -> WebhookTested:
        state = plan.data
        lost = (
            f"whether the ping of webhook subscription {state.id} went out is not known; nothing was "
            "repeated. Next: look at the receiver, or run again for another ping"
        )
        with answer_may_be_lost(lost):
            answer = request.client.webhooks.test(int(state.id))
        heard = answer.model_dump(include={"ok", "status", "latency_ms", "detail"})
        return WebhookTested(mode=state.mode, id=state.id, url=state.url, **heard)


WEBHOOK_TEST = WebhookTest()
