"""Bodies of server addresses and reverse DNS (API document, "Servers")."""

from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, field_serializer

from pulumi_hosting.api.models.body import Clears, Request, Response
from pulumi_hosting.api.models.field_types import Id, Money, Timestamp, _whole
from pulumi_hosting.api.values import check_host_name


class Ip(Response):
    """One address of a server. ``ptr`` is its reverse DNS name; ``price_monthly`` is 0.00 for the primary
    one.
    """

    id: Id = Field(description="Id of the address.")
    address: str = Field(
        validation_alias=AliasChoices("address", "ip"), description="The IPv4 or IPv6 address."
    )
    version: int | None = Field(default=None, description="4 for IPv4, 6 for IPv6.")
    primary: bool = Field(description="Whether it is the primary address, which cannot be released.")
    ptr: str | None = Field(default=None, description="Host name that reverse DNS gives for the address.")
    gateway: str | None = Field(
        default=None, description="Router of the address, to be set in the server's network configuration."
    )
    netmask: str | None = Field(default=None, description="Netmask to be set with the address.")
    price_monthly: Money | None = None
    added_at: Timestamp | None = None

    @property
    def ip_version(self) -> int:
        """4 or 6, from the text where the answer does not say."""
        return self.version or (6 if ":" in self.address else 4)


class IpQuote(Response):
    """What one more address costs now (``prorated_now``) and per month, and how many are bought and
    allowed."""

    server_id: int | None = None
    price_monthly: Money
    prorated_now: Money
    currency: str | None = Field(default=None, description="ISO 4217 code of the amounts beside it.")
    next_due_at: Timestamp | None = None
    extra_ips: int = Field(description="Number of additional addresses of the server.")
    max_extra_ips: int = Field(description="Largest number of additional addresses.")
    balance_sufficient: bool | None = Field(default=None, description="Whether the balance covers the total.")


class IpAddRequest(Request):
    """The body may be left out altogether; ``count`` can only be 1."""

    count: Annotated[Literal[1], BeforeValidator(_whole)] | None = Field(
        default=None, description="Can only be 1, which is the default."
    )


class IpAdded(Response):
    """The purchase is paid; the address itself appears later in the list of the server's addresses. ``days``:
    what was paid for.

    An older deployment answers with ``invoice_id`` and what the server costs from now on, and names neither
    server nor success.
    """

    success: bool | None = None
    server_id: int | None = None
    invoice_id: int | None = None
    balance_after: Money | None = None
    recurring_amount: Money | None = None
    charged: Money
    currency: str | None = None
    days: int | None = None


class IpDeleted(Response):
    status: str | None = None
    server_id: int | None = None
    ip_id: int | None = None


def _check_ptr_name(value: str) -> str:
    return check_host_name(value) if value else value


PtrName = Annotated[str, AfterValidator(_check_ptr_name)]


class PtrUpdate(Request):
    """``domain``: host name of at least two labels; an empty string or ``None`` removes the record. The field
    is not ``ptr``.
    """

    domain: Annotated[PtrName | None, Clears(must_be_given=True)] = Field(
        default=None,
        description="Host name of at least two labels; null or an empty text removes the record.",
    )

    @field_serializer("domain")
    def _empty(self, domain: str | None) -> str:
        # An empty text removes the record on every deployment; null only on the younger ones.
        return domain or ""


class PtrRecord(Response):
    id: Id
    ptr: str | None = None
