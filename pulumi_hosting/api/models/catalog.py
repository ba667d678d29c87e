"""Bodies of the catalog: locations, tariffs, images, zones, quotes (API document, "Catalog")."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from pulumi_hosting.api.models.body import Request, Response
from pulumi_hosting.api.models.fields import BillingCycle, Id, Money, Months, Number, PromoCode, known


class Location(Response):
    id: int | None = None
    code: str
    name: str | None = None
    country: str | None = None
    city: str | None = None
    in_stock: bool | None = None


class CatalogResources(Response):
    """``bandwidth_tb`` ``None`` = no traffic cap."""

    cpu_cores: int | None = None
    ram_mb: int | None = None
    disk_gb: int | None = None
    bandwidth_tb: Number | None = None
    port_mbps: int | None = None


class PeriodPrice(Response):
    months: int
    discount_percent: Number | None = None
    total: Money


class Tariff(Response):
    """``price_monthly`` includes the caller's group discount, ``list_price_monthly`` is public; ``price_hourly`` has up to 4 digits."""

    id: Id
    name: str
    description: str | None = None
    location: Location | None = None
    resources: CatalogResources | None = None
    price_monthly: Money
    list_price_monthly: Money | None = None
    price_hourly: Money | None = None
    currency: str | None = None
    periods: list[PeriodPrice] | None = None
    hourly_available: bool | None = None
    in_stock: bool | None = None
    non_refundable: bool | None = None
    excluded_os: list[str] | None = None
    extra_ip_price_monthly: Money | None = None
    max_extra_ips: int | None = None


class OsImage(Response):
    """``slug`` is the value used as ``os`` when ordering and reinstalling."""

    slug: str
    name: str | None = None
    family: Annotated[str, known("linux", "windows", "other")] | None = None
    version: str | None = None
    supports_ssh_keys: bool | None = None
    min_disk_gb: int | None = None


class Zone(Response):
    """A domain ending and its prices per year. ``tld`` may carry a leading dot: compare :attr:`ending`."""

    tld: str
    price_register: Money
    price_renew: Money
    price_transfer: Money | None = None
    currency: str | None = None
    min_years: int | None = None
    max_years: int | None = None
    privacy_supported: bool | None = None
    transfer_supported: bool | None = None

    @property
    def ending(self) -> str:
        return self.tld.lstrip(".").lower()


class Discount(Response):
    type: Annotated[str, known("group", "loyalty", "volume", "period", "promo")]
    percent: Number | None = None
    amount: Money


class Promo(Response):
    code: str
    valid: bool
    message: str | None = None


class Quote(Response):
    """What an order would cost now, by the same functions as ordering; ``shortfall`` is what the balance lacks."""

    tariff_id: int | None = None
    billing_cycle: Annotated[str, known("monthly", "hourly")] | None = None
    months: int | None = None
    hours: int | None = None
    base_amount: Money | None = None
    discounts: list[Discount] | None = None
    total: Money
    currency: str
    promo: Promo | None = None
    balance: Money | None = None
    balance_sufficient: bool
    shortfall: Money | None = None


class TariffListQuery(Request):
    location_id: Id | None = None


class OsListQuery(Request):
    tariff_id: Id | None = None


class QuoteQuery(Request):
    """``months`` 1 | 3 | 6 | 12 or ``hours`` 1..2160, not both."""

    tariff_id: Id
    months: Months | None = None
    hours: Annotated[int, Field(ge=1, le=2160)] | None = None
    billing_cycle: BillingCycle | None = None
    promo_code: PromoCode | None = None

    @model_validator(mode="after")
    def _one_period(self) -> Self:
        if self.months is not None and self.hours is not None:
            raise ValueError("give either months or hours, not both")
        return self
