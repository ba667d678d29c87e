"""What a fresh account can buy: locations, tariffs, images, domain zones, gateways, promo codes."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

Columns = dict[str, Any]


class PromoRule(NamedTuple):
    """``percent`` off one purchase; ``once``: each account may use it once."""

    percent: Decimal
    once: bool = False
    expired: bool = False


LOCATIONS: tuple[Columns, ...] = (
    {"code": "nl-ams", "name": "Amsterdam", "country": "NL", "city": "Amsterdam"},
    {"code": "de-fra", "name": "Frankfurt", "country": "DE", "city": "Frankfurt am Main"},
)


def _tariff(
    name: str, description: str, location_id: int, size: tuple[int, int, int], price: str, **columns: Any
) -> Columns:
    """The columns of a tariff. ``size``: cores, memory in MB, disk in GB. ``price``: of a month."""
    resources = dict(zip(("cpu_cores", "ram_mb", "disk_gb"), size, strict=True))
    sold = {"location_id": location_id, "price_monthly": Decimal(price)}
    return {"name": name, "description": description, **resources, **sold, **columns}


TARIFFS: tuple[Columns, ...] = (
    _tariff("VDS-1", "A small machine", 1, (1, 1024, 20), "5.00"),
    _tariff("VDS-2", "A middling machine", 1, (2, 4096, 40), "10.00"),
    _tariff("VDS-H", "By the month or by the hour", 2, (2, 2048, 40), "9.00", price_hourly=Decimal("0.0150")),
    _tariff("VDS-4", "A large machine, sold out", 2, (4, 8192, 80), "20.00", in_stock=False),
    _tariff("VDS-Linux", "Too small for Windows", 2, (1, 512, 10), "3.00", excluded_os=["windows-2022"]),
    _tariff("VDS-Promo", "Cheap and not refundable", 1, (1, 1024, 20), "1.99", non_refundable=True),
)

_WINDOWS = {"family": "windows", "version": "2022", "supports_ssh_keys": False, "min_disk_gb": 20}
IMAGES: tuple[Columns, ...] = (
    {"slug": "ubuntu-24.04", "name": "Ubuntu 24.04 LTS", "version": "24.04"},
    {"slug": "ubuntu-22.04", "name": "Ubuntu 22.04 LTS", "version": "22.04"},
    {"slug": "debian-12", "name": "Debian 12", "version": "12"},
    {"slug": "almalinux-9", "name": "AlmaLinux 9", "version": "9", "min_disk_gb": 10},
    {"slug": "windows-2022", "name": "Windows Server 2022", **_WINDOWS},
    {"slug": "freebsd-14", "name": "FreeBSD 14", "family": "other", "version": "14"},
)


def _zone(tld: str, register: str, renew: str, transfer: str | None, **columns: Any) -> Columns:
    """The columns of a zone. Prices are those of a year."""
    prices = {"register": register, "renew": renew, "transfer": transfer}
    shown = {f"price_{name}": None if text is None else Decimal(text) for name, text in prices.items()}
    return {"tld": tld, **shown, **columns}


ZONES: tuple[Columns, ...] = (
    _zone("com", "12.00", "13.00", "12.50"),
    _zone("net", "14.00", "15.00", "14.50"),
    _zone("de", "8.00", "8.00", "8.00", privacy=False),
    _zone("dev", "16.00", "16.00", None, max_years=5),
)

CATALOG: Mapping[str, tuple[Columns, ...]] = {
    "locations": LOCATIONS,
    "tariffs": TARIFFS,
    "images": IMAGES,
    "zones": ZONES,
}
"""What can be bought, by the kind of row that it is."""

GATEWAYS = ("card", "bank", "crypto")
TOPUP_MIN = Decimal("5.00")
TOPUP_MAX = Decimal("10000.00")
FIRST_TOPUP_BONUS_PERCENT = Decimal(0)

NAMESERVERS = ("ns1.hosting.example", "ns2.hosting.example")

PROMO_CODES: Mapping[str, PromoRule] = {
    "WELCOME10": PromoRule(Decimal(10), once=True),
    "SAVE20": PromoRule(Decimal(20)),
    "EXPIRED50": PromoRule(Decimal(50), expired=True),
}
