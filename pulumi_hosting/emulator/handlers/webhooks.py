"""Webhook subscriptions and their deliveries."""

import re
from typing import Any

from pulumi_hosting.api.models.field_types import EVENT_TYPES
from pulumi_hosting.emulator import dialects, events, serializers, webhook_delivery
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import ApiError, Response, invalid
from pulumi_hosting.emulator.rows import Delivery, Subscription
from pulumi_hosting.emulator.webhook_delivery import Outbound, Outcome


def list_webhook_events(call: Call) -> Response:
    return Response(
        200,
        {"data": [{"type": type, "description": words} for type, words in serializers.EVENT_WORDS.items()]},
    )


def list_webhooks(call: Call) -> Response:
    rows = call.store.of(Subscription, call.account.id).values()
    return Response(200, {"data": [serializers.subscription(row) for row in rows], "next_cursor": None})


def _check(url: str | None, names: list[str] | None) -> None:
    problem = None if url is None else webhook_delivery.url_problem(url)
    if problem is not None:
        raise invalid(url=problem)
    if names is not None and any(name not in EVENT_TYPES and name != "*" for name in names):
        raise invalid(events="unknown")


def _new_secret(call: Call) -> str:
    return "whsec_" + call.store.token("webhook secret", 44)


def create_webhook(call: Call) -> Response:
    body = call.body
    _check(body.url, body.events)
    row = call.store.add(
        Subscription(
            account_id=call.account.id,
            url=body.url,
            events=list(body.events),
            description=body.description or "",
            secret=_new_secret(call),
            created_at=call.now,
        )
    )
    return Response(201, {**serializers.subscription(row), "secret": row.secret})


def _own(call: Call) -> Subscription:
    return call.own(Subscription, call.ids["webhook_id"])


def get_webhook(call: Call) -> Response:
    return Response(200, serializers.subscription(_own(call)))


def update_webhook(call: Call) -> Response:
    """``null`` leaves a field unchanged. Enabling the subscription resets its failures."""
    row, body = _own(call), call.body
    _check(body.url, body.events)
    row.url = body.url if body.url is not None else row.url
    row.events = list(body.events) if body.events is not None else row.events
    row.description = body.description if body.description is not None else row.description
    if body.active is not None:
        row.active = body.active
    if body.active:
        row.failures_in_row, row.disabled_at, row.disabled_reason = 0, None, None
    return Response(200, serializers.subscription(row))


def delete_webhook(call: Call) -> Response:
    row = _own(call)
    for delivery in list(call.store.of(Delivery, row.id).values()):
        call.store.remove(delivery)
    call.store.remove(row)
    return Response(200, {"status": "deleted", "id": row.id})


def rotate_webhook_secret(call: Call) -> Response:
    row = _own(call)
    row.secret = _new_secret(call)
    return Response(200, {"id": row.id, "secret": row.secret})


def _shown(call: Call, delivery: Delivery) -> dict[str, Any]:
    return serializers.delivery(delivery, payload=dialects.DELIVERY_PAYLOAD(call.dialect))


def test_webhook(call: Call) -> Outbound:
    """Send a ping at once. A failure is neither counted nor retried."""
    row = _own(call)
    if not row.active:
        raise ApiError("conflict", "the subscription is disabled")
    object = {"subscription_id": row.id, "message": "pong"}
    event_id, payload = events.envelope(call.store, call.account.id, "ping", object, None, None, call.now)
    delivery = call.store.add(
        Delivery(
            account_id=call.account.id,
            subscription_id=row.id,
            event_id=event_id,
            event_type="ping",
            payload=payload,
            created_at=call.now,
        )
    )

    def answer(outcome: Outcome) -> Response:
        delivery.attempts = 1
        webhook_delivery.note(delivery, row, outcome, call.now)
        webhook_delivery.settle(call.store, delivery, call.now, delivered=outcome.ok)
        view = {
            "ok": outcome.ok,
            "status": outcome.status,
            "latency_ms": outcome.latency_ms,
            "detail": outcome.error,
            "delivery": _shown(call, delivery),
        }
        return Response(200, view)

    return Outbound(webhook_delivery.prepare(call.store, row, event_id, "ping", payload, call.now), answer)


def list_webhook_deliveries(call: Call) -> Response:
    row = _own(call)
    # An unknown type finds nothing, since new types may be added; text that cannot be a type is refused.
    if call.query.event_type is not None and not re.fullmatch(r"[!-~]{1,64}", call.query.event_type):
        raise invalid(event_type="invalid")
    rows = (
        delivery
        for delivery in call.store.newest(Delivery, row.id)
        if (call.query.status is None or delivery.status == call.query.status)
        and (call.query.event_type is None or delivery.event_type == call.query.event_type)
    )
    return call.page(rows, lambda row: _shown(call, row))


def get_webhook_delivery(call: Call) -> Response:
    return Response(200, serializers.delivery(call.own(Delivery, call.ids["delivery_id"]), payload=True))


def redeliver_webhook(call: Call) -> Response:
    """Queue a delivery again, with the same body and a new set of attempts."""
    delivery = call.own(Delivery, call.ids["delivery_id"])
    if delivery.status == "pending":
        raise ApiError("conflict", "the delivery is already queued")
    delivery.delivered_at = delivery.dead_at = None
    delivery.failures, delivery.next_attempt_at = 0, call.now
    return Response(202, {"status": "queued", "delivery": _shown(call, delivery)})
