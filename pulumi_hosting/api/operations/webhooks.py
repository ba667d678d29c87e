"""Webhook subscriptions and their deliveries (API document, "Webhooks")."""

from collections.abc import Mapping

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

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "list_webhook_events",
        "GET /webhooks/events",
        "webhooks.events",
        "Event types",
        {200: m.Listing[m.EventDescriptor]},
        ("webhooks:manage",),
        sandbox="forbidden",
        paging="list",
    ),
    Operation(
        "list_webhooks",
        "GET /webhooks",
        "webhooks.list",
        "Subscriptions",
        {200: m.Listing[m.Subscription]},
        ("webhooks:manage",),
        sandbox="forbidden",
        paging="list",
        description="Their secrets are never shown.",
    ),
    Operation(
        "create_webhook",
        "POST /webhooks",
        "webhooks.create",
        "Subscribe a URL to events; the secret is shown once",
        {201: m.SubscriptionCreated},
        ("webhooks:manage",),
        request=m.SubscriptionCreate,
        retry="never",
        sandbox="forbidden",
        once=("secret",),
        description="``secret`` signs the deliveries.",
    ),
    Operation(
        "get_webhook",
        "GET /webhooks/{webhook_id}",
        "webhooks.get",
        "One subscription",
        {200: m.Subscription},
        ("webhooks:manage",),
        sandbox="forbidden",
    ),
    Operation(
        "update_webhook",
        "PATCH /webhooks/{webhook_id}",
        "webhooks.update",
        "Change or re-enable a subscription",
        {200: m.Subscription},
        ("webhooks:manage",),
        request=m.SubscriptionUpdate,
        retry="idempotent",
        sandbox="forbidden",
        description=(
            "Give at least one field. ``active=True`` enables a disabled subscription and "
            "resets its count of failures."
        ),
    ),
    Operation(
        "delete_webhook",
        "DELETE /webhooks/{webhook_id}",
        "webhooks.delete",
        "Delete a subscription and its delivery log",
        {200: m.SubscriptionDeleted, 204: None},
        ("webhooks:manage",),
        retry="idempotent",
        sandbox="forbidden",
    ),
    Operation(
        "rotate_webhook_secret",
        "POST /webhooks/{webhook_id}/rotate-secret",
        "webhooks.rotate_secret",
        "A new signing secret, shown once; the old one stops at once",
        {200: m.WebhookSecret},
        ("webhooks:manage",),
        retry="never",
        sandbox="forbidden",
        once=("secret",),
    ),
    Operation(
        "test_webhook",
        "POST /webhooks/{webhook_id}/test",
        "webhooks.test",
        "Send a ping now, past the queue",
        {200: m.TestResult},
        ("webhooks:manage",),
        expensive=True,
        retry="never",
        sandbox="forbidden",
        codes=("conflict",),
        description="The answer waits for the receiver. A disabled subscription raises ``Conflict``.",
    ),
    Operation(
        "list_webhook_deliveries",
        "GET /webhooks/{webhook_id}/deliveries",
        "webhooks.deliveries.list",
        "Deliveries of a subscription, newest first",
        {200: m.Page[m.Delivery]},
        ("webhooks:manage",),
        query=m.DeliveryListQuery,
        sandbox="forbidden",
        paging="cursor",
        description="The payload is not included.",
    ),
    Operation(
        "get_webhook_delivery",
        "GET /webhooks/deliveries/{delivery_id}",
        "webhooks.deliveries.get",
        "One delivery with its payload",
        {200: m.Delivery},
        ("webhooks:manage",),
        sandbox="forbidden",
    ),
    Operation(
        "redeliver_webhook",
        "POST /webhooks/deliveries/{delivery_id}/redeliver",
        "webhooks.deliveries.redeliver",
        "Queue a delivery again with identical bytes",
        {202: m.Redelivery},
        ("webhooks:manage",),
        expensive=True,
        retry="never",
        sandbox="forbidden",
        codes=("conflict",),
    ),
)
