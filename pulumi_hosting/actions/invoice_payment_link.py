"""A link to pay an invoice through a gateway (API document, "Invoices": ``POST
/invoices/{invoice_id}/payment-link``). Nothing is charged and nothing changes before a person follows it."""

from typing import Annotated, ClassVar

from pydantic import Field

from pulumi_hosting.actions.action import Action, ActionPlan, Result, nothing
from pulumi_hosting.actions.invoice_pay import read_invoice
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.resources.base import IdText, Inputs
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request


class InvoicePaymentLinkInputs(Inputs):
    id: Annotated[IdText, Field(description="Id of the invoice.")]
    gateway: Annotated[str, Field(min_length=1, max_length=64)] | None = optional(
        "Code of the payment gateway. Default: the invoice's own."
    )


class InvoicePaymentLinkShown(Result):
    invoice_id: str = Field(description="Number of the invoice to pay on the page.")
    status: str = Field(description="State of the invoice: not_paid, or paid when no link is needed.")
    amount: str = Field(description="Amount to pay (decimal, in currency).")
    currency: str = Field(description="ISO 4217 code of the currency of the amounts, such as EUR.")
    payment_url: str | None = optional("Page to pay it on; empty when it is paid, and in a dry run.")
    gateway: str | None = optional("Code of the gateway that the payment page belongs to.")


class InvoicePaymentLink(Action[InvoicePaymentLinkInputs, InvoicePaymentLinkShown]):
    kind: ClassVar[str] = "invoice_payment_link"
    title: ClassVar[str] = "payment link of an invoice"
    result: ClassVar[str] = "link"
    scopes: ClassVar = ("invoices:read", "invoices:pay")

    def plan(self, request: Request, inputs: InvoicePaymentLinkInputs) -> ActionPlan:
        found = read_invoice(request, inputs.id)
        shown = InvoicePaymentLinkShown(
            invoice_id=str(found.id),
            status=found.status,
            amount=str(found.amount),
            currency=found.currency,
            gateway=inputs.gateway or found.gateway,
        )
        if found.status == "not_paid":
            return nothing(shown.shown(), f"invoice {found.id} is to be paid", fetches=True, data=shown)
        if found.status == "paid":
            return nothing(shown.shown(), f"invoice {found.id} is paid")
        raise ResourceError(
            f"invoice {found.id} is {found.status}, and there is nothing to pay. Next: correct id, or look "
            "at it in the control panel"
        )

    def perform(
        self, request: Request, inputs: InvoicePaymentLinkInputs, plan: ActionPlan
    ) -> InvoicePaymentLinkShown:
        given = {} if inputs.gateway is None else {"gateway": inputs.gateway}
        link = request.client.invoices.payment_link(int(inputs.id), **given)
        shown: InvoicePaymentLinkShown = plan.data
        return shown.model_copy(
            update={"payment_url": link.payment_url, "gateway": link.gateway or shown.gateway}
        )
