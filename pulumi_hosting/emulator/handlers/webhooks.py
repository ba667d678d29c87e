"""Webhook subscriptions and their deliveries."""

from pulumi_hosting.api.models.field_types import EVENTS
from pulumi_hosting.emulator import events, serializers, webhook_delivery
from pulumi_hosting.emulator.call import Call
from pulumi_hosting.emulator.messages import Answer, Refusal, invalid
from pulumi_hosting.emulator.rows import DeliveryRow, SubscriptionRow
from pulumi_hosting.emulator.webhook_delivery import AttemptOutcome, Outbound


def list_webhook_events(call: Call) -> Answer:
    return Answer(200, {"data": [{"type": type, "description": text} for type, text in EVENTS.items()]})


def list_webhooks(call: Call) -> Answer:
    return call.listing(call.store.of(SubscriptionRow, call.account.id).values(), next_cursor=None)


def _check(url: str | None, names: list[str] | None) -> None:
    if url is not None and (problem := webhook_delivery.url_problem(url)) is not None:
        raise invalid(url=problem)
    if names is not None and any(name not in EVENTS and name != "*" for name in names):
        raise invalid(events="unknown")


def create_webhook(call: Call) -> Answer:
    body = call.body
    _check(body.url, body.events)
    row = call.store.add(
        SubscriptionRow(
            account_id=call.account.id,
            url=body.url,
            events=list(body.events),
            description=body.description or "",
            secret=call.store.webhook_secret(),
        )
    )
    return Answer(201, {**call.view(row), "secret": row.secret})


def _own(call: Call) -> SubscriptionRow:
    return call.own(SubscriptionRow, call.ids["webhook_id"])


def get_webhook(call: Call) -> Answer:
    return Answer(200, call.view(_own(call)))


def update_webhook(call: Call) -> Answer:
    """``null`` leaves a field unchanged. Enabling the subscription resets its failures."""
    row, body = _own(call), call.body
    _check(body.url, body.events)
    call.assign(row)
    if body.active:
        row.failures_in_row, row.disabled_at, row.disabled_reason = 0, None, None
    return Answer(200, call.view(row))


def delete_webhook(call: Call) -> Answer:
    row = _own(call)
    webhook_delivery.remove_subscription(call.store, row)
    return Answer(200, {"status": "deleted", "id": row.id})


def rotate_webhook_secret(call: Call) -> Answer:
    row = _own(call)
    row.secret = call.store.webhook_secret()
    return Answer(200, {"id": row.id, "secret": row.secret})


def test_webhook(call: Call) -> Outbound:
    """Send a ping at once. A failure is neither counted nor retried."""
    row = _own(call)
    if not row.active:
        raise Refusal("conflict", "the subscription is disabled")
    delivery = events.ping(call.store, row, queued=False)

    def answer(outcome: AttemptOutcome) -> Answer:
        webhook_delivery.note(call.store, delivery, row, outcome)
        webhook_delivery.settle(call.store, delivery, delivered=outcome.ok)
        return call.answer(200, outcome, detail=outcome.error, delivery=call.view(delivery))

    return Outbound(webhook_delivery.attempt(call.store, delivery), answer)


def list_webhook_deliveries(call: Call) -> Answer:
    row = _own(call)
    # An unknown type finds nothing, since new types may be added.
    rows = (
        delivery
        for delivery in call.store.newest(DeliveryRow, row.id)
        if (call.query.status is None or delivery.status == call.query.status)
        and (call.query.event_type is None or delivery.event_type == call.query.event_type)
    )
    return call.page(rows)


def get_webhook_delivery(call: Call) -> Answer:
    delivery = call.own(DeliveryRow, call.ids["delivery_id"])
    return Answer(200, serializers.delivery(delivery, call.store, read=True))


def redeliver_webhook(call: Call) -> Answer:
    """Queue a delivery again, with the same body and a new set of attempts."""
    delivery = call.own(DeliveryRow, call.ids["delivery_id"])
    if delivery.status == "pending":
        raise Refusal("conflict", "the delivery is already queued")
    delivery.delivered_at = delivery.dead_at = None
    delivery.failures, delivery.next_attempt_at = 0, call.now
    return Answer(202, {"status": "queued", "delivery": call.view(delivery)})
