"""Bodies of server addresses and reverse DNS (API document, "Servers")."""

from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field, field_serializer

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import Clears, RequestModel, Response
from pulumi_hosting.api.values import HOST_NAME_PATTERN, NAME_LENGTH, check_host_name


class Ip(Response):
    """One address of a server. ``ptr`` is its reverse DNS name; ``price_monthly`` is 0.00 for the primary
    one.
    """

    id: t.Id = Field(description="Number used to release the address and to set its reverse DNS.")
    address: str = Field(
        validation_alias=AliasChoices("address", "ip"), description="The address itself, IPv4 or IPv6."
    )
    version: int | None = t.optional("4 for IPv4, 6 for IPv6.")
    primary: bool = Field(description="Whether it is the primary address, which cannot be released.")
    ptr: str | None = t.optional("Host name that reverse DNS gives for the address.")
    gateway: str | None = t.optional(
        "Router of the address, to be set in the server's network configuration."
    )
    netmask: str | None = t.optional("Netmask to be set with the address.")
    price_monthly: t.Money | None = t.optional(
        "What the address costs per month, a decimal text; `0.00` for the primary one."
    )
    added_at: t.Timestamp | None = t.optional("When the address was assigned to the server.")

    @property
    def ip_version(self) -> int:
        """4 or 6, from the text if the answer does not say."""
        return self.version or (6 if ":" in self.address else 4)


class IpQuote(Response):
    """What one more address costs now (``prorated_now``) and per month, and how many are bought and
    allowed."""

    server_id: int | None = t.optional("Number of the server that would get the address.")
    price_monthly: t.Money = Field(description="What one more address adds to each month.")
    prorated_now: t.Money = Field(
        description="What one more address costs now, up to `next_due_at`; a decimal text in `currency`."
    )
    currency: str | None = None
    next_due_at: t.Timestamp | None = t.optional("When the server's next renewal is due; null if none is.")
    extra_ips: int = Field(description="Number of additional addresses of the server.")
    max_extra_ips: int = Field(description="Largest number of additional addresses.")
    balance_sufficient: bool | None = t.optional("Whether the balance covers `prorated_now`.")


class IpAddRequest(RequestModel, example={"count": 1}):
    """The body may be left out altogether; ``count`` can only be 1."""

    count: Annotated[Literal[1], BeforeValidator(t._whole)] | None = t.optional(
        "Can only be 1, which is the default."
    )


class IpAdded(Response):
    """The purchase is paid; the address itself appears later in the list of the server's addresses. ``days``:
    what was paid for.

    An older deployment answers with ``invoice_id`` and what the server costs from now on, and names neither
    server nor success.
    """

    success: bool | None = t.optional("Always true: the address is paid. Null if the service does not say.")
    server_id: int | None = t.optional("Number of the server that gets the address.")
    invoice_id: int | None = t.optional("Number of the invoice of the purchase, on older deployments only.")
    balance_after: t.Money | None = None
    recurring_amount: t.Money | None = t.optional("What each renewal of the server costs from now on.")
    charged: t.Money = Field(description="What the address cost up to the next renewal.")
    currency: str | None = None
    days: int | None = t.optional("Number of days that the charge pays for.")


class IpDeleted(Response):
    status: str | None = t.optional("`deleted` once the address is released.")
    server_id: int | None = t.optional("Number of the server that had the address.")
    ip_id: int | None = t.optional("Number of the address that was released.")


PtrName = Annotated[
    str,
    t.Constraint(
        lambda name: check_host_name(name) if name else name,
        pattern=f"^$|{HOST_NAME_PATTERN}",
        maxLength=NAME_LENGTH,
    ),
]


class PtrUpdate(RequestModel, example={"domain": "mail.example.com"}):
    """``domain``: host name of at least two labels; an empty string or ``None`` removes the record. The field
    is not ``ptr``.
    """

    domain: Annotated[PtrName | None, Clears(must_be_given=True)] = t.optional(
        "Host name of at least two labels; null or an empty text removes the record."
    )

    @field_serializer("domain")
    def _empty(self, domain: str | None) -> str:
        # An empty text removes the record on every deployment; null only on the younger ones.
        return domain or ""


class PtrRecord(Response):
    id: t.Id = Field(description="Number of the address whose reverse DNS it is.")
    ptr: str | None = t.optional("Host name that reverse DNS gives now; null after a removal.")
