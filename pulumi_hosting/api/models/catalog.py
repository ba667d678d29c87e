"""Bodies of the catalog: locations, tariffs, images, zones, quotes (API document, "Catalog")."""

from typing import Annotated, Any

from pydantic import Field

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import RequestModel, Response


class Location(Response):
    id: int | None = t.optional("Number that the filter of tariffs takes for this location.")
    code: str = Field(description="Short code of the location, as other results name it.")
    name: str | None = t.optional("Name of the location, as the control panel shows it.")
    country: str | None = t.optional("Country of the data centre, as two letters (ISO 3166).")
    city: str | None = t.optional("City of the data centre.")
    in_stock: bool | None = t.optional(
        "Whether servers can be ordered there now; null if the service does not say."
    )


class CatalogResources(Response):
    """``bandwidth_tb`` ``None`` = no traffic cap."""

    cpu_cores: int | None = t.optional("Number of virtual processor cores.")
    ram_mb: int | None = t.optional("Size of the memory in megabytes.")
    disk_gb: int | None = t.optional("Size of the disk in gigabytes.")
    bandwidth_tb: t.Number | None = t.optional(
        "Traffic per month that the price includes, in terabytes; null if there is no limit."
    )
    port_mbps: int | None = t.optional("Speed of the network port in megabits a second.")


class PeriodPrice(Response):
    months: int = Field(description="Length of the period in months: 1, 3, 6 or 12.")
    discount_percent: t.Number | None = t.optional("Discount of this period on the list price, in percent.")
    total: t.Money = Field(
        description="Price of the whole period with its discount, a decimal text in the tariff's currency."
    )


class Tariff(Response):
    """``price_monthly`` includes the caller's group discount, ``list_price_monthly`` is public;
    ``price_hourly`` has up to 4 digits.
    """

    id: t.Id = Field(description="Number that an order takes for this tariff.")
    name: str = Field(description="Name of the tariff, as the price list has it.")
    description: str | None = t.optional("What the provider says about the tariff; null if it says nothing.")
    location: Location | None = t.optional("Where servers of this tariff stand.")
    resources: CatalogResources | None = t.optional("What a server of this tariff has.")
    price_monthly: t.Money = Field(description="Price of a month with the discount of the caller's group.")
    list_price_monthly: t.Money | None = t.optional("Public price of a month, without discounts.")
    price_hourly: t.Money | None = t.optional(
        "Price of an hour, a decimal text in `currency` with up to 4 fraction digits; "
        "null without hourly payment."
    )
    currency: str | None = None
    periods: list[PeriodPrice] | None = t.optional("What longer periods cost.")
    hourly_available: bool | None = t.optional("Whether a server of this tariff can be paid by the hour.")
    in_stock: bool | None = t.optional(
        "Whether a server can be ordered now; null if the service does not say."
    )
    non_refundable: bool | None = t.optional(
        "Whether nothing is paid back when a server of this tariff is deleted."
    )
    excluded_os: list[str] | None = t.optional(
        "Slugs of the images that cannot be installed with this tariff."
    )
    extra_ip_price_monthly: t.Money | None = t.optional("What each additional address costs per month.")
    max_extra_ips: int | None = t.optional("Largest number of additional addresses of a server.")


class OsImage(Response):
    """``slug`` is the value used as ``os`` when ordering and reinstalling."""

    slug: str = Field(description="Short name that orders and reinstallations take as the image.")
    name: str | None = t.optional("Name of the operating system, as the control panel shows it.")
    family: Annotated[str, t.known("linux", "windows", "other")] | None = t.optional(
        "Kind of operating system."
    )
    version: str | None = t.optional("Version of the operating system.")
    supports_ssh_keys: bool | None = t.optional("Whether SSH keys can be installed with it.")
    min_disk_gb: int | None = t.optional("Smallest disk that the image fits on, in gigabytes.")


class Zone(Response):
    """A domain ending and its prices per year. ``tld`` may carry a leading dot: compare :attr:`ending`."""

    tld: str = Field(
        description="Ending of the domains, such as `.com`; some deployments leave out the dot in front."
    )
    price_register: t.Money = Field(description="Price of the first year of a new domain.")
    price_renew: t.Money = Field(description="Price of each further year.")
    price_transfer: t.Money | None = t.optional(
        "Price of a transfer to this provider; null if there is none."
    )
    currency: str | None = None
    min_years: int | None = t.optional("Fewest years that can be paid at once.")
    max_years: int | None = t.optional("Most years that can be paid at once.")
    privacy_supported: bool | None = t.optional("Whether the owner's data can be hidden.")
    transfer_supported: bool | None = t.optional("Whether a domain can be transferred to this provider.")

    @property
    def ending(self) -> str:
        """``tld`` in lower case, without the dot."""
        return self.tld.lstrip(".").lower()


class Discount(Response):
    type: Annotated[str, t.known("group", "loyalty", "volume", "period", "promo")] = Field(
        description="Reason of the discount: customer group, loyalty, volume, length of the period or promo "
        "code."
    )
    percent: t.Number | None = t.optional("Part of the price that the discount takes off, in percent.")
    amount: t.Money = Field(
        description="What the discount takes off, a decimal text in the currency of the quote."
    )


class Promo(Response):
    code: str = Field(description="The promo code that was asked about.")
    valid: bool = Field(description="Whether the promo code lowers the price.")
    message: str | None = t.optional("Why the promo code is not accepted, or a note on it.")


class Quote(Response):
    """What an order would cost now, by the same functions as ordering; ``shortfall`` is what the balance
    lacks.
    """

    tariff_id: int | None = t.optional("Id of the tariff that was ordered or asked about.")
    billing_cycle: Annotated[str, t.known("monthly", "hourly")] | None = t.optional(
        "Whether the price is for months (`monthly`) or hours (`hourly`)."
    )
    months: int | None = t.optional("Length of the period in months; null for an hourly price.")
    hours: int | None = t.optional("Length of the period in hours; null for a monthly price.")
    base_amount: t.Money | None = t.optional("Price of the whole period before discounts.")
    discounts: list[Discount] | None = t.optional("What was taken off the price, one entry for each reason.")
    total: t.Money = Field(description="What the order would charge for the whole period.")
    currency: str
    promo: Promo | None = t.optional("Whether the promo code counted, if the query had one.")
    balance: t.Money | None = t.optional("Money on the account before the order.")
    balance_sufficient: bool = Field(description="Whether the balance covers the total.")
    shortfall: t.Money | None = t.optional("What the balance lacks for the total; `0.00` if it suffices.")


class TariffListQuery(RequestModel):
    location_id: t.Id | None = t.optional("Only tariffs of this location.")


class OsListQuery(RequestModel):
    tariff_id: t.Id | None = t.optional("Only images that this tariff allows.")


class QuoteQuery(RequestModel, example={"tariff_id": 1, "months": 1}):
    """``months`` 1 | 3 | 6 | 12 or ``hours`` 1..2160, not both."""

    tariff_id: t.Id = Field(description="Id of the tariff.")
    months: t.Months | None = t.optional("Months to pay: 1, 3, 6 or 12. Not together with `hours`.")
    hours: Annotated[int, Field(ge=1, le=2160)] | None = t.optional(
        "Hours to pay, 1 to 2160. Not together with `months`."
    )
    billing_cycle: t.BillingCycle | None = t.optional("How the server is to be paid.")
    promo_code: t.PromoCode | None = t.optional("Promo code, at most 64 characters.")

    def model_post_init(self, context: Any) -> None:
        if self.months is not None and self.hours is not None:
            raise ValueError("give either months or hours, not both")
