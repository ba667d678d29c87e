"""Bodies of webhook subscriptions, events and deliveries (API document, "Webhooks", "Events")."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field

from pulumi_hosting.api.models.body import Change, PageQuery, Request, Response
from pulumi_hosting.api.models.field_types import (
    EVENT_TYPES,
    EventType,
    Id,
    NewSecret,
    Number,
    Timestamp,
    known,
)
from pulumi_hosting.api.values import check_line, check_webhook_url


class Subscription(Response):
    """A webhook subscription; disabled by the service after 20 failures in a row, ``disabled_reason`` says
    why.
    """

    id: Id
    url: str
    events: list[str]
    description: str | None = None
    active: bool | None = None
    failures_in_row: int | None = None
    disabled_at: Timestamp | None = None
    disabled_reason: str | None = None
    last_delivery_at: Timestamp | None = None
    last_status: int | None = None
    created_at: Timestamp | None = None


class SubscriptionCreated(Subscription):
    """``secret`` signs the deliveries and is shown this once (prefix ``whsec_``)."""

    secret: NewSecret


class WebhookSecret(Response):
    """Answer of a rotation; the old secret stops at once."""

    id: int | None = None
    secret: NewSecret


class SubscriptionDeleted(Response):
    status: str | None = None
    id: int | None = None


class EventDescriptor(Response):
    type: EventType
    description: str | None = Field(default=None, description="When the provider sends events of this type.")


class Event(Response):
    """The envelope of a delivery. ``data`` holds ``object`` (the REST shape) and ``previous`` (changed
    fields, ``None`` or absent).
    """

    id: str = Field(description="Id of the event, equal in every attempt and for every subscription.")
    type: EventType
    created_at: Timestamp
    livemode: bool | None = Field(default=None, description="False for an event of a test key.")
    account_id: int | None = None
    api_version: str | None = Field(default=None, description="Version of the API that answered.")
    data: dict[str, Any] = Field(description="What the event is about: the object as the API shows it.")
    resource: str | None = Field(default=None, description="Path of the object in the API.")

    @property
    def object(self) -> dict[str, Any]:
        value = self.data.get("object")
        return value if isinstance(value, dict) else {}

    @property
    def previous(self) -> dict[str, Any] | None:
        value = self.data.get("previous")
        return value if isinstance(value, dict) else None


class Delivery(Response):
    """``attempts`` made so far; ``last_response``: first 1000 bytes of the receiver's answer. ``payload``
    only where one is read.
    """

    id: Id = Field(description="Id of the delivery.")
    subscription_id: int | None = None
    event_id: str | None = Field(
        default=None, description="Id of the event, equal in every attempt and for every subscription."
    )
    event_type: EventType
    given_status: str | None = Field(
        default=None,
        validation_alias=AliasChoices("status", "given_status"),
        serialization_alias="status",
        description="`pending` while attempts remain, `delivered`, or `dead` after the last attempt.",
    )
    attempts: int | None = Field(default=None, description="Number of attempts so far.")
    next_attempt_at: Timestamp | None = None
    delivered_at: Timestamp | None = None
    dead: bool | None = Field(default=None, description="Whether every attempt failed, so that none follows.")
    last_status: int | None = Field(
        default=None, description="HTTP status that the receiver answered at the last attempt."
    )
    last_error: str | None = Field(default=None, description="Why the last attempt failed, in words.")
    last_response: str | None = Field(
        default=None, description="Beginning of what the receiver answered at the last attempt."
    )
    created_at: Timestamp | None = None
    payload: Event | None = Field(
        default=None, description="The event as it was sent; shown when a single delivery is read."
    )

    @property
    def status(self) -> str | None:
        """``pending`` | ``delivered`` | ``dead``, derived where the answer does not name it; ``None`` where
        it says nothing of it.
        """
        if self.given_status or self.dead or self.delivered_at:
            return self.given_status or ("dead" if self.dead else "delivered")
        return None if self.dead is None else "pending"


class TestResult(Response):
    """Outcome of a synchronous ping. ``status``: HTTP status of the receiver, ``None`` if no answer came;
    ``latency_ms`` milliseconds.
    """

    __test__ = False  # a model, though pytest would collect it by its name

    ok: bool
    status: int | None = None
    latency_ms: Number | None = None
    detail: str | None = None
    delivery: Delivery | None = None


class Redelivery(Response):
    status: Annotated[str, known("queued")] | None = None
    delivery: Delivery | None = None


def _check_events(value: list[str]) -> list[str]:
    known = {*EVENT_TYPES, "*"}
    if len(set(value)) != len(value):
        raise ValueError("event types must be unique")
    # Event types grow additively; a new one looks like `thing.happened`, anything else is a slip.
    if any(event not in known and not re.fullmatch(r"[a-z_]+\.[a-z_]+", event) for event in value):
        raise ValueError("must hold event types such as server.created, or *")
    return value


WebhookUrl = Annotated[
    str, Field(max_length=2048, json_schema_extra={"format": "uri"}), AfterValidator(check_webhook_url)
]
Events = Annotated[list[str], Field(min_length=1, max_length=64), AfterValidator(_check_events)]
Description = Annotated[str, Field(max_length=1000), AfterValidator(check_line)]


class SubscriptionCreate(Request):
    url: WebhookUrl = Field(description="An https URL of a public host.")
    events: Events = Field(
        description="Event types such as `server.created`; `*` for all, where the deployment knows it."
    )
    description: Description | None = Field(default=None, description="Free text shown in the control panel.")


class SubscriptionUpdate(Change):
    """At least one field. ``active`` true enables a disabled subscription again and clears its failures;
    ``None`` leaves a field alone.
    """

    url: WebhookUrl | None = Field(default=None, description="An https URL of a public host.")
    events: Events | None = Field(
        default=None,
        description="Event types such as `server.created`; `*` for all, where the deployment knows it.",
    )
    description: Description | None = Field(default=None, description="Free text shown in the control panel.")
    active: bool | None = Field(
        default=None, description="Whether events are delivered. True also resets the count of failures."
    )


class DeliveryListQuery(PageQuery):
    status: Literal["pending", "delivered", "dead"] | None = Field(
        default=None, description="Only deliveries with this status."
    )
    event_type: EventType | None = Field(default=None, description="Only deliveries of events of this type.")
