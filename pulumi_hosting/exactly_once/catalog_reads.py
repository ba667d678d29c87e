"""What the catalog says, asked once per process (API document, "Catalog"). Prices and stock are as of
then.
"""

from collections.abc import Mapping
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, Forbidden, NotFound
from pulumi_hosting.session.request import Request

_FRESH = 300.0  # seconds


def tariffs(request: Request) -> Mapping[int, m.Tariff]:
    return request.shared(
        ("tariffs",), lambda: {tariff.id: tariff for tariff in request.client.catalog.tariffs()}, _FRESH
    )


def os_images(request: Request) -> Mapping[str, m.OsImage]:
    return request.shared(
        ("os",), lambda: {image.slug: image for image in request.client.catalog.os_images()}, _FRESH
    )


def zones(request: Request) -> Mapping[str, m.Zone]:
    """By top-level domain, without the dot."""
    return request.shared(
        ("zones",), lambda: {zone.ending: zone for zone in request.client.catalog.zones()}, _FRESH
    )


def zone_of(request: Request, name: str) -> m.Zone | None:
    """The zone that a domain name is registered in."""
    found, labels = zones(request), name.split(".")
    return next((found[tld] for i in range(1, len(labels)) if (tld := ".".join(labels[i:])) in found), None)


def quote(request: Request, tariff_id: int, period: Mapping[str, Any]) -> m.Quote | None:
    """The price of an order, one expensive question per distinct order; None where the service gives none."""

    def fetch() -> m.Quote | None:
        try:
            return request.client.catalog.quote(tariff_id=tariff_id, **period)
        except NotFound:
            return None
        except ApiError as error:
            if error.status == 400:  # the order will be refused with better words
                return None
            raise

    return request.shared(("quote", tariff_id, *sorted(period.items())), fetch, _FRESH)


def balance(request: Request, *, fresh: bool = False) -> m.Balance | None:
    """The balance; None where the key may not see it."""
    if fresh:
        request.reads.forget("balance")

    def fetch() -> m.Balance | None:
        try:
            return request.client.balance.get()
        except Forbidden:
            return None

    return request.shared(("balance",), fetch, _FRESH)


def choices(found: Mapping[int, m.Tariff], at_most: int = 12) -> str:
    """The ids of tariffs that can be ordered, for a message."""
    names = [f"{tariff.id} ({tariff.name})" for tariff in found.values() if tariff.in_stock is not False]
    return ", ".join(names[:at_most]) + (" …" if len(names) > at_most else "")
