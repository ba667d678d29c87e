"""What the catalog says, and other short lists, asked once per process or run (API document, "Catalog").
Prices and stock are as of then.
"""

from __future__ import annotations  # models that only a hint names are not loaded

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, Forbidden, HostingError, NotFound
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.request import WHOLE_RUN, Request

T = TypeVar("T")
_FRESH = 300.0  # seconds


def tariffs(request: Request) -> Mapping[int, m.Tariff]:
    return {tariff.id: tariff for tariff in listed(request, "list_tariffs", request.client.catalog.tariffs)}


def os_images(request: Request) -> Mapping[str, m.OsImage]:
    images = listed(request, "list_os_images", request.client.catalog.os_images)
    return {image.slug: image for image in images}


def zones(request: Request) -> Mapping[str, m.Zone]:
    """By top-level domain, without the dot."""
    return {zone.ending: zone for zone in listed(request, "list_zones", request.client.catalog.zones)}


def ssh_keys(request: Request, max_age: float = 60.0) -> list[m.SshKey]:
    """The account's keys, as of ``max_age`` seconds ago at most."""
    return listed(request, "list_ssh_keys", request.client.ssh_keys.list, max_age, "ssh_keys")


def listed(
    request: Request, operation: str, ask: Callable[[], Iterable[T]], max_age: float = _FRESH, part: str = ""
) -> list[T]:
    """A list as of ``max_age`` seconds ago at most. ``part``: of the snapshot, if it is not called like the
    operation."""
    found = request.session.snapshot(part or operation, lambda: {operation: [*ask()]}, max_age)
    return found[operation]


def zone_of(request: Request, name: str) -> m.Zone | None:
    """The zone that a domain name is registered in."""
    found, labels = zones(request), name.split(".")
    return next((found[tld] for i in range(1, len(labels)) if (tld := ".".join(labels[i:])) in found), None)


def renewal_price(
    request: Request, name: str, own: Decimal | None, currency: str | None
) -> tuple[Decimal | None, str | None]:
    """What a further year of a domain costs, and the currency: its ``own`` price, else that of its zone."""
    if own is not None or (zone := zone_of(request, name)) is None:
        return own, currency
    return zone.price_renew, zone.currency or currency


def quote(request: Request, tariff_id: int, period: Mapping[str, Any]) -> m.Quote | None:
    """The price of an order, one expensive question per distinct order and run; None if the service gives
    none."""

    def ask() -> list[m.Quote]:
        try:
            return [request.client.catalog.quote(tariff_id=tariff_id, **period)]
        except NotFound:
            return []
        except ApiError as error:
            if error.status == 400:  # the order will be refused with better words
                return []
            raise

    found = listed(request, "get_quote", ask, WHOLE_RUN, f"quote {tariff_id} {sorted(period.items())}")
    return found[0] if found else None


def balance(request: Request, *, fresh: bool = False) -> m.Balance | None:
    """The balance; None if the key may not see it."""
    if fresh:
        request.reads.forget("balance")

    def ask() -> list[m.Balance]:
        try:
            return [request.client.balance.get()]
        except Forbidden:
            return []

    found = listed(request, "get_balance", ask, _FRESH, "balance")
    return found[0] if found else None


def charge(
    request: Request, amount: Decimal, currency: str | None, what: str, *, fresh: bool = False
) -> Cost:
    """What would be charged, beside the balance. In its currency if the price names none."""
    known = balance(request, fresh=fresh)
    if known is None:
        return Cost(amount, currency or "", what)
    return Cost(amount, currency or known.currency, what, known.balance)


def service_now(request: Request) -> datetime:
    """The service's time, at most a minute ago: asked for if no answer of the run told it."""

    def ask() -> list[m.Health]:
        return [m.Health.model_construct(status="ok", time=request.client.service_now(), version="")]

    return listed(request, "get_health", ask, 60.0, "service time")[0].time


def tariff_called(request: Request, id: int) -> str:
    """The tariff as a person calls it: its name, else its id."""
    with suppress(HostingError):
        if (found := tariffs(request).get(id)) is not None:
            return found.name
    return f"tariff {id}"


def unknown_tariff(id: object, found: Mapping[int, m.Tariff]) -> str:
    """What is wrong with an id that no tariff has, and which there are."""
    return f"there is no tariff {id}: choose one of {choices(found)}"


def refused_image(request: Request, os: str, tariffs: Callable[[], list[m.Tariff]]) -> str | None:
    """Why no server of one of the tariffs can have this image; None if all can. ``tariffs`` are asked for an
    image that there is."""
    images = os_images(request)
    if os not in images:
        return f"there is no image {os!r}: choose one of {', '.join(sorted(images))}"
    without = (tariff for tariff in tariffs() if os in (tariff.excluded_os or ()))
    named = next((f"{tariff.id} ({tariff.name})" for tariff in without), None)
    return named and f"image {os} is not offered with tariff {named}"


def choices(found: Mapping[int, m.Tariff], at_most: int = 12) -> str:
    """The ids of tariffs that can be ordered, for a message."""
    names = [f"{tariff.id} ({tariff.name})" for tariff in found.values() if tariff.in_stock is not False]
    return ", ".join(names[:at_most]) + (" …" if len(names) > at_most else "")
