"""Webhook subscriptions and their deliveries. Live keys with ``webhooks:manage`` only (API document, "Webhooks", "Events").

A test key gets ``SandboxRefused``. To check a delivery that was received, see :mod:`pulumi_hosting.webhooks`.
"""

from collections.abc import Sequence
from typing import Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.client.results import UNSET, Given, Items, Pages, given
from pulumi_hosting.client.services.base import Caller, Service

DeliveryStatus = Literal["pending", "delivered", "dead"]


class WebhooksService(Service):
    """``client.webhooks``"""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self.deliveries = DeliveriesArea(caller)

    def events(self) -> Items[m.EventDescriptor]:
        """The event types there are."""
        return self._caller.items("list_webhook_events")

    def list(self) -> Items[m.Subscription]:
        """The subscriptions, without their secrets."""
        return self._caller.items("list_webhooks")

    def create(self, *, url: str, events: Sequence[str], description: Given[str] = UNSET) -> m.SubscriptionCreated:
        """Subscribes an https URL to events; ``secret`` signs the deliveries and is given this once. Never repeated by itself.

        ``events``: types such as ``server.created``; ``*`` where the deployment knows it. Raises ``ValidationFailed``.
        """
        body = given(url=url, events=[*events], description=description)
        found: m.SubscriptionCreated = self._caller.call("create_webhook", body=body)
        return found

    def get(self, webhook_id: int) -> m.Subscription:
        """One subscription. Raises ``NotFound``."""
        found: m.Subscription = self._caller.call("get_webhook", webhook_id)
        return found

    def update(
        self,
        webhook_id: int,
        *,
        url: Given[str] = UNSET,
        events: Given[Sequence[str]] = UNSET,
        description: Given[str] = UNSET,
        active: Given[bool] = UNSET,
    ) -> m.Subscription:
        """Changes what is given, at least one; ``active=True`` enables a disabled subscription and forgets its failures.

        Raises ``NotFound``, ``ValidationFailed``.
        """
        body = given(url=url, events=events if events is UNSET else [*events], description=description, active=active)
        found: m.Subscription = self._caller.call("update_webhook", webhook_id, body=body)
        return found

    def delete(self, webhook_id: int) -> m.SubscriptionDeleted:
        """Deletes a subscription and the log of its deliveries. Raises ``NotFound``."""
        found: m.SubscriptionDeleted = self._caller.call("delete_webhook", webhook_id)
        return found

    def rotate_secret(self, webhook_id: int) -> m.WebhookSecret:
        """A new signing secret, given this once; the old one stops at once. Never repeated by itself. Raises ``NotFound``."""
        found: m.WebhookSecret = self._caller.call("rotate_webhook_secret", webhook_id)
        return found

    def test(self, webhook_id: int) -> m.TestResult:
        """Sends a ``ping`` now and waits for the receiver; ``latency_ms`` in milliseconds. Expensive. Never repeated by itself.

        Raises ``Conflict`` when the subscription is disabled, ``NotFound``.
        """
        found: m.TestResult = self._caller.call("test_webhook", webhook_id)
        return found


class DeliveriesArea(Service):
    """``client.webhooks.deliveries``"""

    def list(
        self,
        webhook_id: int,
        *,
        cursor: Given[str] = UNSET,
        limit: Given[int] = UNSET,
        status: Given[DeliveryStatus] = UNSET,
        event_type: Given[str] = UNSET,
    ) -> Pages[m.Delivery]:
        """Deliveries of a subscription, newest first, without their payload. Raises ``NotFound``.

        Kept 14 days, dead ones 30. ``limit``: items per page, 1..100 (default 100). ``cursor``: start at that page.
        """
        query = given(cursor=cursor, limit=limit, status=status, event_type=event_type)
        return self._caller.pages("list_webhook_deliveries", webhook_id, query=query)

    def get(self, delivery_id: int) -> m.Delivery:
        """One delivery with its payload. Raises ``NotFound``."""
        found: m.Delivery = self._caller.call("get_webhook_delivery", delivery_id)
        return found

    def redeliver(self, delivery_id: int) -> m.Redelivery:
        """Queues a delivery again, with identical bytes. Expensive. Never repeated by itself. Raises ``Conflict``, ``NotFound``."""
        found: m.Redelivery = self._caller.call("redeliver_webhook", delivery_id)
        return found
