"""Events: serialized once and queued for every subscription to their type."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from pulumi_hosting.emulator import dialects, pricing, serializers, webhook_delivery
from pulumi_hosting.emulator.formats import View, format_timestamp
from pulumi_hosting.emulator.rows import (
    DeliveryRow,
    DomainRow,
    InvoiceRow,
    KeyRow,
    ServerRow,
    SubscriptionRow,
)
from pulumi_hosting.emulator.store import Store


def envelope(
    store: Store, account_id: int, type: str, object: View, previous: View | None, resource: str | None
) -> tuple[str, str]:
    """The event's id and its JSON, which is the same at every attempt."""
    event_id = "evt_" + store.token("event", 24)
    data: View = {"object": object}
    if previous is not None or dialects.PREVIOUS(store.service.dialect) == "null":
        data["previous"] = previous
    event = {
        "id": event_id,
        "type": type,
        "created_at": format_timestamp(store.now),
        "livemode": True,
        "account_id": account_id,
        "api_version": "1",
        "data": data,
        "resource": resource,
    }
    return event_id, json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def emit(
    store: Store,
    account_id: int,
    type: str,
    view: Callable[[], View],
    *,
    previous: View | None = None,
    resource: str,
) -> None:
    """Queue an event for its subscribers; ``view`` is called only if there are any."""
    if not (subscriptions := receivers(store, account_id, type)):
        return
    event = envelope(store, account_id, type, view(), previous, serializers.API + resource)
    for subscription in subscriptions:
        webhook_delivery.new_delivery(store, subscription, event, type)


def receivers(store: Store, account_id: int, type: str) -> list[SubscriptionRow]:
    """The account's active subscriptions to events of this type."""
    return [
        row
        for row in store.of(SubscriptionRow, account_id).values()
        if row.active and (type in row.events or "*" in row.events)
    ]


def ping(store: Store, subscription: SubscriptionRow, *, queued: bool = True) -> DeliveryRow:
    """Add a delivery of a ``ping``, which names its subscription, to the log. ``queued``: send it now."""
    object = {"subscription_id": subscription.id, "message": "pong"}
    event = envelope(store, subscription.account_id, "ping", object, None, None)
    return webhook_delivery.new_delivery(store, subscription, event, "ping", queued=queued)


def of(
    store: Store, type: str, row: KeyRow | ServerRow | InvoiceRow | DomainRow, *, previous: View | None = None
) -> None:
    """An event of a row; sandbox servers have none."""
    if store.subscriptions and not (isinstance(row, ServerRow) and row.is_sandbox):
        view, resource = partial(serializers.view_of, row, store), f"/{row.kind}/{row.id}"
        emit(store, row.account_id, type, view, previous=previous, resource=resource)


def revoke(store: Store, key: KeyRow, reason: str) -> None:
    """End a key, with its event; one that has ended stays as it is."""
    if key.revoked_at is None:
        key.revoked_at, key.revoked_reason = store.now, reason
        of(store, "key.revoked", key)


def low_balance_events(store: Store, before: float | None = None) -> AbstractContextManager[None]:
    """``balance.low`` for every account whose balance covered the 7 days after ``before`` and no longer
    covers those after the present.

    Compared before and after a whole operation, so that a renewal, which takes money and moves a due date, is
    one change. With the variant ``balance_low: movements`` the time from ``before`` to the present causes no
    event unless money moves, even when a due date comes within 7 days.
    """
    return _compared(store, before) if store.subscriptions else nullcontext()


@contextmanager
def _compared(store: Store, before: float | None) -> Iterator[None]:
    since = store.now if before is None else before
    subscribed = {
        row.account_id
        for row in store.subscriptions.values()
        if row.active and not {"balance.low", "*"}.isdisjoint(row.events)
    }
    accounts = [store.accounts[id] for id in subscribed]
    covered = [
        (account, account.balance) for account in accounts if not pricing.is_low(store, account, since)
    ]
    time_counts = since == store.now or store.service.readings["balance_low"] == "due_dates"
    yield
    for account, balance in covered:
        if (time_counts or account.balance < balance) and pricing.is_low(store, account, store.now):
            view = partial(pricing.balance_view, store, account)
            emit(store, account.id, "balance.low", view, resource="/balance")
