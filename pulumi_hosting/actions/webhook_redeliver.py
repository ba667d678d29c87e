"""Queueing dead deliveries again (API document, "Webhooks": ``POST
/webhooks/deliveries/{delivery_id}/redeliver``).

A delivery is dead after its sixth failure; queued again, it is pending, with identical bytes. One that is not
dead is left alone, so a second run has nothing to do, and a run that was killed half-way continues with what
is left.
"""

from typing import ClassVar

from pydantic import Field

from pulumi_hosting.actions import action
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import ApiError, Conflict, RateLimited, RateLimitTimeout, TransportError
from pulumi_hosting.resources.base import IdText
from pulumi_hosting.resources.webhook_subscription import WEBHOOK_SUBSCRIPTION
from pulumi_hosting.session.errors import Failed, ResourceError
from pulumi_hosting.session.request import Request


class WebhookRedeliverInputs(action.OfSubscription):
    delivery_id: IdText | None = optional(
        "Id of the dead delivery to queue again. Default: every dead delivery of the subscription."
    )


class WebhookRedelivered(action.Result):
    id: str = Field(description="Id of the delivery that is sent again.")
    event_id: str | None = optional("Id of the event, the same in every attempt.")
    event_type: str = Field(description="Type of the event, such as server.created.")
    status: str | None = optional("pending, delivered or dead; empty if the API does not say.")
    attempts: int | None = optional("Attempts made so far.")
    last_status: int | None = optional("HTTP status of the receiver at the last attempt; empty if none came.")
    last_error: str | None = optional("What went wrong at the last attempt.")
    created_at: str | None = optional("When the event was first queued (RFC 3339, UTC).")


class WebhookRedeliver(action.Action[WebhookRedeliverInputs, WebhookRedelivered]):
    kind: ClassVar[str] = "webhook_redeliver"
    title: ClassVar[str] = "redelivery of webhooks"
    result: ClassVar[str] = "deliveries"
    many: ClassVar[bool] = True
    scopes: ClassVar = ("webhooks:manage",)

    def plan(self, request: Request, inputs: WebhookRedeliverInputs) -> action.ActionPlan:
        state = action.resolve(request, WEBHOOK_SUBSCRIPTION, id=inputs.id, url=inputs.url)
        if inputs.delivery_id is None:
            listed = request.client.webhooks.deliveries.list(int(state.id), status="dead")
            looked = [delivery for delivery in listed if delivery.status == "dead"]
            otherwise = f"webhook subscription {state.id} has no dead delivery"
        else:
            looked = [_read(request, inputs.delivery_id, state.id)]
            otherwise = f"delivery {looked[0].id} is {looked[0].status}, not dead"
        before = [_shown(delivery).shown() for delivery in looked]
        if not any(delivery.status == "dead" for delivery in looked):
            return action.nothing(before, otherwise)
        after = [_shown(delivery, "pending").shown() for delivery in looked]
        return action.ActionPlan(True, before, after, target=(WEBHOOK_SUBSCRIPTION, state), data=looked)

    def perform(
        self, request: Request, inputs: WebhookRedeliverInputs, plan: action.ActionPlan
    ) -> list[WebhookRedelivered]:
        queued: list[WebhookRedelivered] = []
        for delivery in plan.data:
            try:
                queued.append(_redeliver(request, delivery))
            except (RateLimited, RateLimitTimeout) as error:
                raise Failed(
                    f"{error.summary} — {len(queued)} of {len(plan.data)} deliveries are queued again. "
                    "Next: run again for the others",
                    error,
                ) from None
        return queued


def _redeliver(request: Request, delivery: m.Delivery) -> WebhookRedelivered:
    try:
        request.client.webhooks.deliveries.redeliver(delivery.id)
    except Conflict:
        # Another process queued it meanwhile.
        return _shown(_seen(request, delivery))
    except action.UNSURE as error:
        after = _seen(request, delivery)
        if after.status in ("dead", None):
            raise Failed(
                f"{error.summary} — delivery {delivery.id} is not queued again. Next: run again", error
            ) from None
        return _shown(after)
    return _shown(delivery, "pending")


def _seen(request: Request, delivery: m.Delivery) -> m.Delivery:
    try:
        return request.client.webhooks.deliveries.get(delivery.id)
    except (ApiError, TransportError):
        return delivery


def _read(request: Request, id: str, subscription_id: str) -> m.Delivery:
    read = request.client.webhooks.deliveries.get
    delivery = action.existing(read, id, "delivery", "; the log forgets old ones", "delivery_id")
    if delivery.subscription_id is not None and str(delivery.subscription_id) != subscription_id:
        raise ResourceError(
            f"delivery {id} is of webhook subscription {delivery.subscription_id}, not {subscription_id}; "
            "nothing was sent. Next: correct delivery_id, or the subscription"
        )
    return delivery


def _shown(delivery: m.Delivery, status: str | None = None) -> WebhookRedelivered:
    return action.as_shown(
        WebhookRedelivered, delivery, id=str(delivery.id), status=status or delivery.status
    )
