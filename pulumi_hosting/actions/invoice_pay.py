"""Paying an invoice from the balance (API document, "Invoices": ``POST /invoices/{invoice_id}/pay``).

An invoice is paid once, and the key is made of its id.
"""

from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field

from pulumi_hosting.actions.action import Action, ActionPlan, Result, as_shown, existing, nothing
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.charges import Charge
from pulumi_hosting.resources.base import IdText, Inputs
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

_ADVICE = {
    "cancelled": "leave it out: nothing is owed for it any more",
    "refunded": "leave it out: it was paid, and the money was returned",
    "pending": "a payment through its gateway has begun: wait for it",
    "failed": "its payment arrived and the service could not be delivered: ask the provider",
}


class InvoicePayInputs(Inputs):
    id: Annotated[IdText, Field(description="Id of the invoice.")]


class InvoicePaid(Result):
    id: str = Field(description="Number used to read and pay the invoice.")
    status: str = Field(description="paid, or not_paid while it is only planned.")
    type: str = Field(description="What was bought: vds_renewal, domain_renewal and so on.")
    amount: str = Field(description="Amount taken from the balance (decimal, in currency).")
    currency: str = Field(description="ISO 4217 code of the currency of the amounts, such as EUR.")
    description: str | None = optional("What the invoice is for, in the service's words.")
    created_at: str | None = optional("When the invoice was made (RFC 3339, UTC).")
    due_at: str | None = optional("Last moment to pay it (RFC 3339, UTC); empty if there is none.")
    paid_at: str | None = optional("When the money left the balance (RFC 3339, UTC); empty until then.")
    server_ids: list[str] = Field(default=[], description="Ids of the servers that its lines pay for.")
    domain_ids: list[str] = Field(default=[], description="Ids of the domains that its lines pay for.")
    balance_after: str | None = optional("The balance after this payment; empty when nothing was done.")


class InvoicePay(Action[InvoicePayInputs, InvoicePaid]):
    kind: ClassVar[str] = "invoice_pay"
    title: ClassVar[str] = "payment of an invoice"
    result: ClassVar[str] = "invoice"
    charges: ClassVar[bool] = True
    scopes: ClassVar = ("invoices:read", "invoices:pay")

    def plan(self, request: Request, inputs: InvoicePayInputs) -> ActionPlan:
        invoice = read_invoice(request, inputs.id)
        before = _shown(invoice)
        if invoice.status == "paid":
            when = f" since {before.paid_at}" if before.paid_at else ""
            return nothing(before.shown(), f"invoice {invoice.id} is paid{when}")
        if invoice.status != "not_paid":
            advice = _ADVICE.get(invoice.status, "look at it in the control panel")
            raise ResourceError(
                f"invoice {invoice.id} is {invoice.status} and cannot be paid; nothing "
                f"was sent. Next: {advice}"
            )
        if invoice.type == "topup":
            raise ResourceError(
                f"invoice {invoice.id} is a top-up of the balance and cannot be paid from it; nothing was "
                "sent. Next: pay it through its gateway, by its payment link"
            )
        what = f"invoice {invoice.id}" + (f", {invoice.description}" if invoice.description else "")
        cost = catalog_reads.charge(request, invoice.amount, invoice.currency, what, fresh=True)
        left = None if cost.balance is None else str(cost.balance - cost.amount)
        after = before.model_copy(update={"status": "paid", "balance_after": left})
        return ActionPlan(True, before.shown(), after.shown(), cost, data=invoice)

    def perform(self, request: Request, inputs: InvoicePayInputs, plan: ActionPlan) -> InvoicePaid:
        invoice: m.Invoice = plan.data
        try:
            answer = Charge(
                request,
                what=f"payment of invoice {invoice.id}",
                kind=self.kind,
                subject=f"invoice {invoice.id}",
                operation="pay_invoice",
                facts={"invoice_id": invoice.id},
                send=partial(request.client.invoices.pay, invoice.id),
                happened=lambda: read_invoice(request, inputs.id).status == "paid",
                concerns=lambda other: other.id == invoice.id,
                ask=lambda id, key: request.client.invoices.pay(id, idempotency_key=key),
                price=invoice.amount,
            ).once()
        finally:
            request.reads.forget("balance")
            request.reads.forget("servers")
        after = read_invoice(request, inputs.id)
        balance = answer.balance_after if answer is not None else None
        # A simulated payment shows in its answer alone.
        return _shown(after).model_copy(
            update={"status": answer.status if answer else after.status, "balance_after": as_text(balance)}
        )


def read_invoice(request: Request, id: str) -> m.Invoice:
    """The invoice of that id. Raises ``NoSuchObject``."""
    return existing(request.client.invoices.get, id, "invoice", ", and check whose API key it is")


def _shown(invoice: m.Invoice) -> InvoicePaid:
    lines = invoice.items or ()
    return as_shown(
        InvoicePaid,
        invoice,
        id=str(invoice.id),
        server_ids=sorted({str(item.server_id) for item in lines if item.server_id}, key=int),
        domain_ids=sorted({str(item.domain_id) for item in lines if item.domain_id}, key=int),
    )
