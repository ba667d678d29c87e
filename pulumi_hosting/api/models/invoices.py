"""Bodies of invoices and orders (API document, "Invoices", "Orders")."""

from typing import Annotated, Literal, get_args

from pydantic import Field

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import PageQuery, RequestModel, Response

InvoiceStatus = Literal["not_paid", "paid", "cancelled", "refunded", "pending", "failed"]
"""Those from ``pending`` on exist on some deployments only."""
InvoiceType = Literal[
    "topup",
    "vds_purchase",
    "vds_renewal",
    "ip_purchase",
    "domain_registration",
    "domain_renewal",
    "domain_transfer",
    "other",
    "vds_addon",
    "domain_purchase",
    "late_fee",
    "dedicated_purchase",
    "dedicated_renewal",
]
"""Those from ``vds_addon`` on exist on some deployments only."""


class InvoiceItem(Response):
    description: str | None = t.optional("What the line is for, in the provider's words.")
    amount: t.Money = Field(description="Price of the line, a decimal text in the currency of the invoice.")
    server_id: int | None = t.optional("Number of the server that the line pays for; null if it is for none.")
    domain_id: int | None = t.optional("Number of the domain that the line pays for; null if it is for none.")


class Invoice(Response):
    """``status`` and ``type`` may hold values of a live deployment beyond the document's."""

    id: t.Id = Field(description="Number used to read and pay the invoice.")
    status: Annotated[str, t.known(*get_args(InvoiceStatus))] = Field(
        description="`not_paid`, `paid`, `cancelled` or `refunded`; on some deployments also `pending` "
        "while a gateway payment runs, and `failed` when the money arrived and the delivery failed."
    )
    type: Annotated[str, t.known(*get_args(InvoiceType))] = Field(description="What was bought.")
    amount: t.Money = Field(description="Sum of the invoice.")
    currency: str
    description: str | None = t.optional("What the invoice is for, in the provider's words.")
    gateway: str | None = t.optional(
        "Code of the payment gateway that was used; `balance` for the balance itself."
    )
    created_at: t.Timestamp | None = t.optional("When the invoice was made.")
    due_at: t.Timestamp | None = t.optional("Last moment to pay it; null if there is none.")
    paid_at: t.Timestamp | None = t.optional("When it was paid; null while it is not.")
    cancelled_at: t.Timestamp | None = t.optional("When it was cancelled; null while it is not.")
    items: list[InvoiceItem] | None = t.optional("The lines of the invoice.")
    pdf_url: str | None = t.optional("Path in the API that answers the invoice as PDF.")


class PayInvoiceResult(Response):
    invoice_id: t.Id = Field(description="Number of the invoice that was paid.")
    status: str = Field(description="`paid`: the balance was charged at once.")
    amount: t.Money = Field(description="Sum that left the balance.")
    currency: str
    balance_after: t.Money | None = None


class PaymentLinkRequest(RequestModel, example={"gateway": "card"}):
    """``gateway``: default is the one the invoice has. No other field is accepted."""

    gateway: t.ShortLine | None = t.optional(
        "The gateway to pay through. Default: the one that the invoice has."
    )


class PaymentLink(Response):
    invoice_id: int | None = t.optional("Number of the invoice that the page is for.")
    payment_url: str = Field(description="Page to pay the invoice on.")
    gateway: str | None = t.optional("Code of the payment gateway that the page belongs to.")


class Order(Response):
    """A server order that was not finished when it was placed (202), or a read of one.

    ``status``: ``active`` is success, ``cancelled`` and ``failed`` are failures with the charge credited
    back, anything else is still under way.
    """

    invoice_id: t.Id = Field(description="Number of the order's invoice, used to read the order.")
    status: Annotated[
        str, t.known("provisioning", "invoice_created", "processing", "active", "cancelled")
    ] = Field(
        description="`provisioning` while the paid server is built, `invoice_created` while a gateway "
        "payment is due, `processing` until the server shows, `active` when it is there, `cancelled` with "
        "the money returned."
    )
    server_id: int | None = t.optional("Number of the server; null until it is created.")
    server_name: str | None = t.optional("Name that the server has or will have.")
    tariff_id: int | None = t.optional("Number of the tariff that was ordered; null if it is not recorded.")
    tariff_name: str | None = t.optional("Name of the tariff that was ordered.")
    amount: t.Money | None = t.optional("What the order charged.")
    currency: str | None = None
    created_at: t.Timestamp | None = t.optional("When the order was placed.")
    updated_at: t.Timestamp | None = t.optional(
        "When the state of the order last changed; null if nothing is recorded."
    )
    order_url: str | None = t.optional("Path in the API at which the state of the order can be read.")
    failure_reason: str | None = t.optional(
        "Why the order failed, in words; null unless it did and the service says."
    )

    @property
    def is_failed(self) -> bool:
        return self.status in ("cancelled", "failed")

    @property
    def is_active(self) -> bool:
        return self.status == "active"

    @property
    def awaits_payment(self) -> bool:
        """Ordered in the control panel and not paid yet. It is not processed automatically; orders of the API
        are paid at once.
        """
        return self.status == "invoice_created"

    @property
    def is_pending(self) -> bool:
        """Still being carried out: it may become a server without anybody doing anything."""
        return not (self.is_active or self.is_failed or self.awaits_payment)


class InvoiceListQuery(PageQuery):
    status: InvoiceStatus | None = t.optional(
        "Only invoices with this status. `pending` and `failed` exist on some deployments only."
    )
    type: InvoiceType | None = t.optional(
        "Only invoices of this type. The types from `vds_addon` on exist on some deployments only."
    )


class OrderListQuery(PageQuery):
    """``status`` can only be ``provisioning``: the list shows orders that are still being created."""

    status: Literal["provisioning"] | None = t.optional("Only orders with this status.")
