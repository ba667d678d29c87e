"""Bodies of invoices and orders (API document, "Invoices", "Orders")."""

from typing import Annotated, Literal

from pydantic import Field

from pulumi_hosting.api.models.body import PageQuery, Request, Response
from pulumi_hosting.api.models.field_types import (
    INVOICE_STATUSES,
    INVOICE_TYPES,
    LIVE_INVOICE_TYPES,
    Id,
    Money,
    ShortLine,
    Timestamp,
    known,
)


class InvoiceItem(Response):
    description: str | None = Field(
        default=None, description="What the line is for, in words of the provider."
    )
    amount: Money
    server_id: int | None = None
    domain_id: int | None = None


class Invoice(Response):
    """``status`` and ``type`` may hold values of a live deployment beyond the document's."""

    id: Id = Field(description="Id of the invoice.")
    status: Annotated[str, known(*INVOICE_STATUSES, "pending", "failed")]
    type: Annotated[str, known(*INVOICE_TYPES, *LIVE_INVOICE_TYPES)]
    amount: Money
    currency: str = Field(description="ISO 4217 code of the amounts beside it.")
    description: str | None = Field(
        default=None, description="What the invoice is for, in words of the provider."
    )
    gateway: str | None = Field(
        default=None,
        description="Code of the payment gateway that was used; `balance` for the balance itself.",
    )
    created_at: Timestamp | None = None
    due_at: Timestamp | None = None
    paid_at: Timestamp | None = None
    cancelled_at: Timestamp | None = None
    items: list[InvoiceItem] | None = Field(default=None, description="What the invoice consists of.")
    pdf_url: str | None = Field(default=None, description="Address of the invoice as PDF.")

    @property
    def is_address_purchase(self) -> bool:
        """Whether an extra address was bought: ``ip_purchase`` in the document, ``vds_addon`` on a live
        deployment.
        """
        return self.type in ("ip_purchase", "vds_addon")


class PayInvoiceResult(Response):
    invoice_id: Id
    status: str
    amount: Money
    currency: str
    balance_after: Money | None = None


class PaymentLinkRequest(Request):
    """``gateway``: default is the one the invoice has. No other field is accepted."""

    gateway: ShortLine | None = Field(
        default=None, description="The gateway to pay through. Default: the one that the invoice has."
    )


class PaymentLink(Response):
    invoice_id: int | None = None
    payment_url: str
    gateway: str | None = None


class Order(Response):
    """A server order that was not finished when it was placed (202), or a read of one.

    ``status``: ``active`` is success, ``cancelled`` and ``failed`` are failures with the charge credited
    back, anything else is still under way.
    """

    invoice_id: Id
    status: Annotated[str, known("provisioning", "invoice_created", "processing", "active", "cancelled")]
    server_id: int | None = None
    server_name: str | None = Field(default=None, description="Name that the server has or will have.")
    tariff_id: int | None = Field(
        default=None, description="Id of the tariff that was ordered or asked about."
    )
    tariff_name: str | None = Field(default=None, description="Name of the tariff that was ordered.")
    amount: Money | None = None
    currency: str | None = Field(default=None, description="ISO 4217 code of the amounts beside it.")
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    order_url: str | None = Field(default=None, description="Page of the order in the control panel.")
    failure_reason: str | None = Field(
        default=None, description="Why the order was not carried out, if it was not."
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
    status: Literal["not_paid", "paid", "cancelled", "refunded", "pending", "failed"] | None = Field(
        default=None,
        description="Only invoices with this status. `pending` and `failed` exist on some deployments only.",
    )
    type: (
        Literal[
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
        | None
    ) = Field(
        default=None,
        description="Only invoices of this type. The types from `vds_addon` on exist on "
        "some deployments only.",
    )


class OrderListQuery(PageQuery):
    """``status`` can only be ``provisioning``: the list shows orders that are still being created."""

    status: Literal["provisioning"] | None = Field(default=None, description="Only orders with this status.")
