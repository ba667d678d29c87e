"""Webhook subscriptions and their deliveries (API document, "Webhooks")."""

from collections.abc import Mapping
from functools import partial

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {
    "webhooks": (
        'Webhook subscriptions (API document, "Webhooks", "Events"). Live keys only: a test key gets '
        "``SandboxRefused``. :mod:`pulumi_hosting.webhooks` checks a delivery that was received."
    ),
    "webhooks.deliveries": (
        'Deliveries of a webhook subscription (API document, "Webhooks"). They are kept for 14 days, dead '
        "ones for 30."
    ),
}

_operation = partial(Operation, scopes=("webhooks:manage",), sandbox_mode="forbidden")

OPERATIONS: tuple[Operation, ...] = (
    _operation(
        "list_webhook_events",
        "GET /webhooks/events",
        "webhooks.events",
        "Event types",
        {200: m.Listing[m.EventDescriptor]},
    ),
    _operation(
        "list_webhooks",
        "GET /webhooks",
        "webhooks.list",
        "Subscriptions",
        {200: m.Listing[m.Subscription]},
        description="Their secrets are never shown.",
    ),
    _operation(
        "create_webhook",
        "POST /webhooks",
        "webhooks.create",
        "Subscribe a URL to events; the secret is shown once",
        {201: m.SubscriptionCreated},
        request=m.SubscriptionCreate,
        description="``secret`` signs the deliveries.",
    ),
    _operation(
        "get_webhook", "GET /webhooks/{webhook_id}", "webhooks.get", "One subscription", {200: m.Subscription}
    ),
    _operation(
        "update_webhook",
        "PATCH /webhooks/{webhook_id}",
        "webhooks.update",
        "Change or re-enable a subscription",
        {200: m.Subscription},
        request=m.SubscriptionUpdate,
        description="Give at least one field. ``active=True`` enables a disabled subscription and "
        "resets its count of failures.",
    ),
    _operation(
        "delete_webhook",
        "DELETE /webhooks/{webhook_id}",
        "webhooks.delete",
        "Delete a subscription and its delivery log",
        {200: m.SubscriptionDeleted, 204: None},
    ),
    _operation(
        "rotate_webhook_secret",
        "POST /webhooks/{webhook_id}/rotate-secret",
        "webhooks.rotate_secret",
        "A new signing secret, shown once; the old one stops at once",
        {200: m.WebhookSecret},
    ),
    _operation(
        "test_webhook",
        "POST /webhooks/{webhook_id}/test",
        "webhooks.test",
        "Send a ping now, past the queue",
        {200: m.TestResult},
        expensive=True,
        codes=("conflict",),
        description="The answer waits for the receiver. A disabled subscription raises ``Conflict``.",
    ),
    _operation(
        "list_webhook_deliveries",
        "GET /webhooks/{webhook_id}/deliveries",
        "webhooks.deliveries.list",
        "Deliveries of a subscription, newest first",
        {200: m.Page[m.Delivery]},
        query=m.DeliveryListQuery,
        description="The payload is not included.",
    ),
    _operation(
        "get_webhook_delivery",
        "GET /webhooks/deliveries/{delivery_id}",
        "webhooks.deliveries.get",
        "One delivery with its payload",
        {200: m.Delivery},
    ),
    _operation(
        "redeliver_webhook",
        "POST /webhooks/deliveries/{delivery_id}/redeliver",
        "webhooks.deliveries.redeliver",
        "Queue a delivery again with identical bytes",
        {202: m.Redelivery},
        expensive=True,
        codes=("conflict",),
    ),
)
