"""Events: written once into the envelope and queued for every subscription that wants them."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pulumi_hosting.emulator import dialects, money, views
from pulumi_hosting.emulator.wire import stamp
from pulumi_hosting.emulator.world import Delivery, Domain, Invoice, Key, Server, Subscription, World


def envelope(
    world: World, account_id: int, type: str, object: dict[str, Any], previous: dict[str, Any] | None, resource: str | None, now: float
) -> tuple[str, str]:
    """The event's id and its bytes as text: the same at every attempt."""
    event_id = "evt_" + world.token("event", 24)
    data: dict[str, Any] = {"object": object}
    if previous is not None or dialects.PREVIOUS(world.service.dialect) == "null":
        data["previous"] = previous
    event = {
        "id": event_id,
        "type": type,
        "created_at": stamp(now),
        "livemode": True,
        "account_id": account_id,
        "api_version": "1",
        "data": data,
        "resource": resource,
    }
    return event_id, json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def wants(world: World, account_id: int, type: str) -> list[Subscription]:
    return [
        subscription
        for subscription in world.of(Subscription, account_id).values()
        if subscription.active and (type in subscription.events or "*" in subscription.events)
    ]


def emit(
    world: World,
    account_id: int,
    type: str,
    view: Callable[[], dict[str, Any]],
    now: float,
    *,
    previous: dict[str, Any] | None = None,
    resource: str,
) -> None:
    """Queue an event for those who want it; the object is only looked at when somebody does."""
    receivers = wants(world, account_id, type)
    if not receivers:
        return
    event_id, payload = envelope(world, account_id, type, view(), previous, views.API + resource, now)
    for subscription in receivers:
        world.add(
            world.make(
                Delivery,
                account_id=account_id,
                subscription_id=subscription.id,
                event_id=event_id,
                event_type=type,
                payload=payload,
                created_at=now,
                next_attempt_at=now,
            )
        )


def of_server(world: World, type: str, server: Server, now: float, *, previous: dict[str, Any] | None = None) -> None:
    """Sandbox servers are nobody's business but their key's."""
    if not server.is_sandbox:
        emit(world, server.account_id, type, lambda: views.server(server, world), now, previous=previous, resource=f"/servers/{server.id}")


def of_invoice(world: World, type: str, invoice: Invoice, now: float, *, previous: dict[str, Any] | None = None) -> None:
    emit(world, invoice.account_id, type, lambda: views.invoice(invoice, world), now, previous=previous, resource=f"/invoices/{invoice.id}")


def of_domain(world: World, type: str, domain: Domain, now: float, *, previous: dict[str, Any] | None = None) -> None:
    emit(world, domain.account_id, type, lambda: views.domain(domain, world), now, previous=previous, resource=f"/domains/{domain.id}")


def of_key(world: World, type: str, key: Key, now: float) -> None:
    emit(world, key.account_id, type, lambda: views.key(key), now, resource=f"/keys/{key.id}")


@contextmanager
def balances_watched(world: World, before: float, now: float) -> Iterator[None]:
    """``balance.low`` for every account whose balance covered the 7 days after ``before`` and no longer covers those after ``now``.

    Asked before and after a whole operation, so that a renewal, which takes money and moves a due date, is seen as one thing. That time
    passes changes nothing between the two: a due date that enters the 7 days is no event.
    """
    asking = {row.account_id for row in world.subscriptions.values() if row.active and not {"balance.low", "*"}.isdisjoint(row.events)}
    covered = [world.accounts[id] for id in asking if not money.is_low(world, world.accounts[id], before)]
    yield
    for account in covered:
        if money.is_low(world, account, now):
            view = partial(money.balance_view, world, account, now)
            emit(world, account.id, "balance.low", view, now, resource="/balance")
