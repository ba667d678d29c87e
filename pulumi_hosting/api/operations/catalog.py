"""What can be ordered (API document, "Catalog")."""

from collections.abc import Mapping

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations.operation import Operation

GROUPS: Mapping[str, str] = {"catalog": 'What can be ordered, and for how much (API document, "Catalog").'}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "list_tariffs",
        "GET /catalog/tariffs",
        "catalog.tariffs",
        "Server tariffs with the caller's prices",
        {200: m.Listing[m.Tariff]},
        query=m.TariffListQuery,
    ),
    Operation(
        "get_tariff", "GET /catalog/tariffs/{tariff_id}", "catalog.tariff", "One tariff", {200: m.Tariff}
    ),
    Operation(
        "list_os_images",
        "GET /catalog/os",
        "catalog.os_images",
        "OS images; with a tariff, those it allows",
        {200: m.Listing[m.OsImage]},
        query=m.OsListQuery,
        description="The ``slug`` of an image is what orders and reinstalls take.",
    ),
    Operation(
        "list_locations",
        "GET /catalog/locations",
        "catalog.locations",
        "Locations",
        {200: m.Listing[m.Location]},
    ),
    Operation(
        "list_zones",
        "GET /catalog/zones",
        "catalog.zones",
        "Domain endings and their prices",
        {200: m.Listing[m.Zone]},
    ),
    Operation(
        "get_quote",
        "GET /catalog/quote",
        "catalog.quote",
        "What an order would cost now",
        {200: m.Quote},
        query=m.QuoteQuery,
        expensive=True,
        codes=("not_found", "invalid_period"),
        description="Discounts are included. Nothing is ordered, and no promo code is used up.",
    ),
)
