"""What a fresh account can buy: locations, tariffs, images, domain zones, gateways, promo codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Location:
    id: int
    code: str
    name: str
    country: str
    city: str


@dataclass(frozen=True, slots=True)
class OsImage:
    slug: str
    name: str
    family: str
    version: str
    supports_ssh_keys: bool
    min_disk_gb: int


@dataclass(frozen=True, slots=True)
class Zone:
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


@dataclass(frozen=True, slots=True)
class PromoRule:
    """``percent`` off one purchase; ``once``: each account may use it once."""

    percent: Decimal
    once: bool = False
    expired: bool = False


LOCATIONS: Mapping[int, Location] = {
    1: Location(1, "nl-ams", "Amsterdam", "NL", "Amsterdam"),
    2: Location(2, "de-fra", "Frankfurt", "DE", "Frankfurt am Main"),
}

TARIFFS: tuple[dict[str, Any], ...] = (
    {
        "name": "VDS-1",
        "description": "A small machine",
        "location_id": 1,
        "cpu_cores": 1,
        "ram_mb": 1024,
        "disk_gb": 20,
        "price_monthly": Decimal("5.00"),
    },
    {
        "name": "VDS-2",
        "description": "A middling machine",
        "location_id": 1,
        "cpu_cores": 2,
        "ram_mb": 4096,
        "disk_gb": 40,
        "price_monthly": Decimal("10.00"),
    },
    {
        "name": "VDS-H",
        "description": "By the month or by the hour",
        "location_id": 2,
        "cpu_cores": 2,
        "ram_mb": 2048,
        "disk_gb": 40,
        "price_monthly": Decimal("9.00"),
        "price_hourly": Decimal("0.0150"),
    },
    {
        "name": "VDS-4",
        "description": "A large machine, sold out",
        "location_id": 2,
        "cpu_cores": 4,
        "ram_mb": 8192,
        "disk_gb": 80,
        "price_monthly": Decimal("20.00"),
        "in_stock": False,
    },
    {
        "name": "VDS-Linux",
        "description": "Too small for Windows",
        "location_id": 2,
        "cpu_cores": 1,
        "ram_mb": 512,
        "disk_gb": 10,
        "price_monthly": Decimal("3.00"),
        "excluded_os": ["windows-2022"],
    },
    {
        "name": "VDS-Promo",
        "description": "Cheap and not refundable",
        "location_id": 1,
        "cpu_cores": 1,
        "ram_mb": 1024,
        "disk_gb": 20,
        "price_monthly": Decimal("1.99"),
        "non_refundable": True,
    },
)

IMAGES: Mapping[str, OsImage] = {
    image.slug: image
    for image in (
        OsImage("ubuntu-24.04", "Ubuntu 24.04 LTS", "linux", "24.04", True, 5),
        OsImage("ubuntu-22.04", "Ubuntu 22.04 LTS", "linux", "22.04", True, 5),
        OsImage("debian-12", "Debian 12", "linux", "12", True, 5),
        OsImage("almalinux-9", "AlmaLinux 9", "linux", "9", True, 10),
        OsImage("windows-2022", "Windows Server 2022", "windows", "2022", False, 20),
        OsImage("freebsd-14", "FreeBSD 14", "other", "14", True, 5),
    )
}

ZONES: Mapping[str, Zone] = {
    zone.tld: zone
    for zone in (
        Zone("com", Decimal("12.00"), Decimal("13.00"), Decimal("12.50")),
        Zone("net", Decimal("14.00"), Decimal("15.00"), Decimal("14.50")),
        Zone("de", Decimal("8.00"), Decimal("8.00"), Decimal("8.00"), privacy=False),
        Zone("dev", Decimal("16.00"), Decimal("16.00"), None, max_years=5),
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
