"""Bodies of webhook subscriptions, events and deliveries (API document, "Webhooks", "Events")."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import PageQuery, PatchModel, RequestModel, Response
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import check_webhook_url

SIGNATURE_HEADER = "X-Webhook-Signature"
TIMESTAMP_HEADER = "X-Webhook-Timestamp"
ID_HEADER = "X-Webhook-Id"
EVENT_HEADER = "X-Webhook-Event"
DELIVERY_HEADERS: Mapping[str, tuple[str, str]] = {
    SIGNATURE_HEADER: (
        "^v1=[0-9a-f]{64}$",
        "v1= and the HMAC-SHA256 of timestamp, a dot and the raw body, in lowercase hex, keyed with the "
        "secret of the subscription.",
    ),
    TIMESTAMP_HEADER: ("^[0-9]{1,12}$", "Unix seconds of this attempt."),
    ID_HEADER: ("^evt_", "Id of the event, equal in every attempt."),
    EVENT_HEADER: ("^[!-~]+$", "Type of the event."),
    "User-Agent": ("-Webhooks/1.0$", "Name of the service and version of its deliveries."),
}
"""Pattern and meaning of each header of a delivery."""


class Subscription(Response):
    """A webhook subscription; disabled by the service after 20 failures in a row, ``disabled_reason`` says
    why.
    """

    id: t.Id = Field(description="Number used to change, test and delete the subscription.")
    url: str = Field(description="The https:// address that events are delivered to.")
    events: list[str] = Field(
        description="Event types that are delivered, such as `server.created`; `*` for all."
    )
    description: str | None = t.optional(
        "What the owner wrote about the subscription; empty if there is nothing."
    )
    active: bool | None = t.optional(
        "Whether it delivers. The service sets it to false after 20 failures in a row."
    )
    failures_in_row: int | None = t.optional("Number of failed attempts since the last success.")
    disabled_at: t.Timestamp | None = t.optional(
        "When the service stopped delivering; null while it delivers."
    )
    disabled_reason: str | None = t.optional(
        "Why the service stopped delivering, in words; null while it delivers."
    )
    last_delivery_at: t.Timestamp | None = t.optional("When an attempt was last made; null before the first.")
    last_status: int | None = t.optional("Last HTTP status from the receiver; null if no answer came.")
    created_at: t.Timestamp | None = t.optional("When the subscription was made.")


class SubscriptionCreated(Subscription):
    """``secret`` signs the deliveries and is shown only once (prefix ``whsec_``)."""

    secret: t.NewSecret = Field(description="Secret that signs the deliveries, shown only once.")


class WebhookSecret(Response):
    """Answer of a rotation; the old secret stops at once."""

    id: int | None = t.optional("Number of the subscription whose secret is new.")
    secret: t.NewSecret = Field(description="The new secret, shown only once; the old one stopped working.")


class SubscriptionDeleted(Response):
    status: str | None = t.optional("`deleted` once no events are delivered any more.")
    id: int | None = t.optional("Number of the subscription that was deleted.")


class EventDescriptor(Response):
    type: t.EventType = Field(description="Value that subscriptions and filters use for such events.")
    description: str | None = t.optional("When the provider sends events of this type.")


class Event(Response):
    """The envelope of a delivery. ``data`` holds ``object`` (the REST shape) and ``previous`` (changed
    fields, ``None`` or absent).
    """

    id: str = Field(description="Id of the event, equal in every attempt and for every subscription.")
    type: t.EventType = Field(description="What happened.")
    created_at: t.Timestamp = Field(description="When it happened; equal in every attempt.")
    livemode: bool | None = t.optional("Always true: events exist for live keys only.")
    account_id: int | None = t.optional("Number of the account in which it happened.")
    api_version: str | None = t.optional("Version of the API that the event was written for.")
    data: dict[str, Any] = Field(
        description="`object`: what the event is about, as the API shows it; `previous`: the fields "
        "that changed, as they were."
    )
    resource: str | None = t.optional("Path of the object in the API; null for a ping.")

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

    id: t.Id = Field(description="Number used to read the delivery and to queue it again.")
    subscription_id: int | None = t.optional("Number of the subscription that the event is delivered for.")
    event_id: str | None = t.optional(
        "Number of the event that is delivered; every delivery of one event has the same."
    )
    event_type: t.EventType = Field(description="What happened: the type of the delivered event.")
    given_status: str | None = Field(
        default=None,
        validation_alias=AliasChoices("status", "given_status"),
        serialization_alias="status",
        description="`pending` while attempts remain, `delivered`, or `dead` after the last attempt.",
    )
    attempts: int | None = t.optional("Number of attempts so far.")
    next_attempt_at: t.Timestamp | None = t.optional("When the next attempt is due; null if none follows.")
    delivered_at: t.Timestamp | None = t.optional("When the receiver accepted it; null while it has not.")
    dead: bool | None = t.optional("Whether every attempt failed, so that none follows.")
    last_status: int | None = t.optional(
        "HTTP status of the receiver at the last attempt; null if no answer came."
    )
    last_error: str | None = t.optional("Why the last attempt failed, in words; null if it did not.")
    last_response: str | None = t.optional(
        "First 1000 bytes of what the receiver answered at the last attempt; null if nothing came."
    )
    created_at: t.Timestamp | None = t.optional("When the event was queued for this subscription.")
    payload: Event | None = t.optional("The event as it was sent; shown when a single delivery is read.")

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

    ok: bool = Field(description="Whether the receiver answered with a status from 200 to 299.")
    status: int | None = t.optional("HTTP status of the receiver; null if no answer came.")
    latency_ms: t.Number | None = t.optional("How long the receiver took, in milliseconds.")
    detail: str | None = t.optional("What went wrong, in words; null if nothing did.")
    delivery: Delivery | None = t.optional(
        "The ping as the list of deliveries shows it; null if the service does not keep it."
    )


class Redelivery(Response):
    status: Annotated[str, t.known("queued")] | None = t.optional(
        "`queued` once the same bytes are to be sent again."
    )
    delivery: Delivery | None = t.optional("The delivery that is sent again.")


def _check_events(value: list[str]) -> list[str]:
    # Event types grow additively; a new one looks like `thing.happened`, anything else is a slip.
    for event in value:
        if not re.fullmatch(t.EVENT_PATTERN, event):
            # What does not look like a word may be a secret.
            named = repr(event) if re.fullmatch(r"[a-z_. -]{1,40}", event) else "one"
            raise ValueError(f"{named} is not one of {', '.join(t.EVENT_TYPES)}, or *")
        if value.count(event) > 1:
            raise ValueError(f"must name each event type once, and {event} is there twice")
    return value


WebhookUrl = Annotated[
    str,
    BeforeValidator(lambda given: given.reveal() if isinstance(given, Secret) else given),
    Field(max_length=2048),
    t.Constraint(check_webhook_url, format="uri", pattern=r"^[Hh][Tt][Tt][Pp][Ss]://[^\s@]+$"),
]
Events = Annotated[
    list[t.EventType],
    Field(min_length=1, max_length=64),
    t.Constraint(_check_events, uniqueItems=True, items={"type": "string", "pattern": t.EVENT_PATTERN}),
]
Description = Annotated[str, Field(max_length=1000), t.ONE_LINE]


class SubscriptionCreate(
    RequestModel,
    example={"url": "https://hooks.example.org/in", "events": ["server.created", "invoice.paid"]},
):
    url: WebhookUrl = Field(description="An https URL of a public host.")
    events: Events = Field(
        description="Event types such as `server.created`; `*` for all, if the deployment supports it."
    )
    description: Description | None = t.optional("Free text shown in the control panel.")


class SubscriptionUpdate(PatchModel, example={"active": True}):
    """At least one field. ``active`` true enables a disabled subscription again and clears its failures;
    ``None`` leaves a field alone.
    """

    null_changes_nothing = True
    url: WebhookUrl | None = t.optional("An https URL of a public host.")
    events: Events | None = t.optional(
        "Event types such as `server.created`; `*` for all, if the deployment supports it."
    )
    description: Description | None = t.optional("Free text shown in the control panel.")
    active: bool | None = t.optional("Whether events are delivered. True also resets the count of failures.")


class DeliveryListQuery(PageQuery):
    status: Literal["pending", "delivered", "dead"] | None = t.optional("Only deliveries with this status.")
    event_type: Annotated[t.EventType, Field(pattern="^[!-~]{1,64}$")] | None = t.optional(
        "Only deliveries of events of this type."
    )
