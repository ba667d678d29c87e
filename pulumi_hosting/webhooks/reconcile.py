"""Events that never arrived: found in the service's log of deliveries, and fetched from it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from pulumi_hosting.api.models import Delivery, Event
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ApiError, HostingError, InvalidResponse
from pulumi_hosting.webhooks.background import log


async def missed_deliveries(
    client: Client,
    subscription: int,
    *,
    lookback: float,
    store_created_at: float,
    knows: Callable[[str], Awaitable[bool]],
    now: Callable[[], float] = time.time,
) -> list[Delivery]:
    """Deliveries of events that the receiver does not know, oldest first. Costs one request, and one for
    every 100 deliveries.

    - ``lookback``: how old a delivery may be, in seconds.
    - ``store_created_at``: unix seconds; what was accepted before, another receiver has handled.
    - ``knows``: whether the receiver has received an event of this id.

    Logs an error and returns nothing when the service refuses for good. Raises ``HostingError`` for what may
    pass.
    """
    try:
        shown = await asyncio.to_thread(client.webhooks.get, subscription)
        deliveries = await asyncio.to_thread(lambda: list(client.webhooks.deliveries.list(subscription)))
    except ApiError as refusal:
        if not _is_permanent(refusal):
            raise
        log.error("cannot ask for missed events, continuing without them: %s", refusal)
        return []
    if not shown.active:
        log.warning(
            "subscription %d is disabled, nothing is delivered: set active again (%s)",
            subscription,
            shown.disabled_reason,
        )
    oldest, missed = now() - lookback, dict[str, Delivery]()
    for delivery in deliveries:
        created_at = delivery.created_at.timestamp() if delivery.created_at else now()
        if created_at < oldest or (delivery.status == "delivered" and created_at < store_created_at):
            continue
        if delivery.event_id and delivery.event_type != "ping" and not await knows(delivery.event_id):
            missed[delivery.event_id] = delivery
    latest = datetime.fromtimestamp(now(), UTC)
    return sorted(missed.values(), key=lambda delivery: (delivery.created_at or latest, delivery.id))


async def event_of(client: Client, delivery: Delivery) -> Event | None:
    """The event of a delivery: from the delivery, else with one request.

    Logs an error and returns ``None`` when it cannot be had. Raises ``HostingError`` for what may pass.
    """
    try:
        event = (
            delivery.payload or (await asyncio.to_thread(client.webhooks.deliveries.get, delivery.id)).payload
        )
    except (ApiError, InvalidResponse) as failure:
        if not _is_permanent(failure):
            raise
        log.error(
            "cannot fetch missed event %s, continuing without it until the next start: %s",
            delivery.event_id,
            failure,
        )
        return None
    if event is None:
        log.error("delivery %d has no payload: its event is left out", delivery.id)
    return event


def _is_permanent(failure: HostingError) -> bool:
    """Whether the same request would fail again, so that a retry only keeps other events waiting."""
    return not isinstance(failure, ApiError) or (400 <= failure.status < 500 and failure.status != 429)
