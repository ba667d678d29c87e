"""What a fresh account can buy: locations, tariffs, images, domain zones, gateways, promo codes."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

Columns = dict[str, Any]


class LocationEntry(NamedTuple):
    id: int
    code: str
    name: str
    country: str
    city: str


class ImageEntry(NamedTuple):
    slug: str
    name: str
    family: str
    version: str
    supports_ssh_keys: bool
    min_disk_gb: int


class ZoneEntry(NamedTuple):
    """A domain zone; ``tld`` without its dot, prices per year."""

    tld: str
    price_register: Decimal
    price_renew: Decimal
    price_transfer: Decimal | None
    min_years: int = 1
    max_years: int = 10
    privacy: bool = True

    @property
    def transfer(self) -> bool:
        return self.price_transfer is not None


class PromoRule(NamedTuple):
    """``percent`` off one purchase; ``once``: each account may use it once."""

    percent: Decimal
    once: bool = False
    expired: bool = False


LOCATIONS: Mapping[int, LocationEntry] = {
    1: LocationEntry(1, "nl-ams", "Amsterdam", "NL", "Amsterdam"),
    2: LocationEntry(2, "de-fra", "Frankfurt", "DE", "Frankfurt am Main"),
}


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

IMAGES: Mapping[str, ImageEntry] = {
    image.slug: image
    for image in (
        ImageEntry("ubuntu-24.04", "Ubuntu 24.04 LTS", "linux", "24.04", True, 5),
        ImageEntry("ubuntu-22.04", "Ubuntu 22.04 LTS", "linux", "22.04", True, 5),
        ImageEntry("debian-12", "Debian 12", "linux", "12", True, 5),
        ImageEntry("almalinux-9", "AlmaLinux 9", "linux", "9", True, 10),
        ImageEntry("windows-2022", "Windows Server 2022", "windows", "2022", False, 20),
        ImageEntry("freebsd-14", "FreeBSD 14", "other", "14", True, 5),
    )
}

ZONES: Mapping[str, ZoneEntry] = {
    zone.tld: zone
    for zone in (
        ZoneEntry("com", Decimal("12.00"), Decimal("13.00"), Decimal("12.50")),
        ZoneEntry("net", Decimal("14.00"), Decimal("15.00"), Decimal("14.50")),
        ZoneEntry("de", Decimal("8.00"), Decimal("8.00"), Decimal("8.00"), privacy=False),
        ZoneEntry("dev", Decimal("16.00"), Decimal("16.00"), None, max_years=5),
    )
}

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
