"""Asking for a top-up of the balance (API document, "Account and balance": ``POST /balance/topup``).

It makes an unpaid invoice and a link to pay it; nothing is charged, and the balance moves when the gateway
confirms. While such an invoice waits to be paid there is no second one, and the key is made of the newest one
seen.
"""

import re
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from pulumi_hosting.actions.action import Action, ActionPlan, Result, nothing
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import Forbidden, InvalidInput
from pulumi_hosting.exactly_once.charges import Charge
from pulumi_hosting.resources.base import Inputs
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

_NEWEST = 100  # so many invoices are one request


def _money(value: object) -> object:
    """One spelling of an amount: two fraction digits.

    >>> _money("50"), _money(12.5)
    ('50.00', '12.50')
    """
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    found = re.fullmatch(r"([0-9]{1,15})(?:\.([0-9]{1,2}))?", text, re.ASCII)
    if not found:
        raise ValueError("must be an amount of money with at most two fraction digits, such as 50.00")
    return f"{found[1]}.{(found[2] or ''):0<2}"


Money = Annotated[str, BeforeValidator(_money)]


class BalanceTopupInputs(Inputs):
    amount: Money = Field(
        description="Amount of the top-up, in the account's currency, with two decimals; within the "
        "provider's bounds."
    )
    gateway: str = Field(
        min_length=1, max_length=64, description="Code of one of the payment gateways on offer."
    )
    balance_below: Money = Field(
        description="Ask for a top-up only while the balance is below this amount (account's currency)."
    )


class BalanceTopupAsked(Result):
    invoice_id: str | None = optional("Id of the unpaid top-up invoice; empty when none is needed.")
    payment_url: str | None = optional("Page to pay it on; empty when none is needed, and in a dry run.")
    gateway: str | None = optional("Code of the gateway that the payment page belongs to.")
    amount: str | None = optional("Amount of the top-up (decimal, in currency).")
    currency: str | None = optional("ISO 4217 code of the currency of the amounts, such as EUR.")
    balance: str | None = optional("Current balance, without the top-up (decimal, in currency).")


class BalanceTopup(Action[BalanceTopupInputs, BalanceTopupAsked]):
    kind: ClassVar[str] = "balance_topup"
    title: ClassVar[str] = "top-up of the balance"
    result: ClassVar[str] = "topup"
    scopes: ClassVar = ("balance:read", "balance:topup", "invoices:read", "invoices:pay")

    def plan(self, request: Request, inputs: BalanceTopupInputs) -> ActionPlan:
        balance = request.client.balance.get()
        idle = BalanceTopupAsked(currency=balance.currency, balance=as_text(balance.balance))
        if balance.balance >= Decimal(inputs.balance_below):
            note = (
                f"the balance is {balance.balance} {balance.currency}, which is not below "
                f"{inputs.balance_below}"
            )
            return nothing(idle.shown(), note)
        _check(request.client.balance.topup_info(), inputs)
        asked = idle.model_copy(update={"gateway": inputs.gateway, "amount": inputs.amount})
        known = _known(request)
        waiting = _waiting(known, inputs)
        if waiting is not None:
            note = f"top-up invoice {waiting.id} of {waiting.amount} {waiting.currency} is waiting to be paid"
            data, is_to_pay = (asked, waiting, known), waiting.status == "not_paid"
            return nothing(_of_invoice(asked, waiting).shown(), note, fetches=is_to_pay, data=data)
        return ActionPlan(True, idle.shown(), asked.shown(), data=(asked, None, known))

    def perform(self, request: Request, inputs: BalanceTopupInputs, plan: ActionPlan) -> BalanceTopupAsked:
        asked: BalanceTopupAsked
        asked, waiting, known = plan.data
        if waiting is None:
            newest = max((invoice.id for invoice in known), default=0)
            answer = Charge(
                request,
                what=f"top-up of {inputs.amount} by {inputs.gateway}",
                kind=self.kind,
                subject=f"{inputs.amount} {inputs.gateway}",
                operation="create_topup",
                facts={"amount": inputs.amount, "gateway": inputs.gateway, "newest": newest},
                send=partial(request.client.balance.topup, amount=inputs.amount, gateway=inputs.gateway),
                happened=lambda: _waiting(_known(request), inputs) is not None,
            ).once()
            if answer is not None:
                made = {"invoice_id": str(answer.invoice_id), "gateway": answer.gateway}
                return asked.model_copy(update={**made, "payment_url": answer.payment_url})
            waiting = _waiting(_known(request), inputs)
        if waiting is None:
            return asked  # it was paid since, or cancelled
        shown = _of_invoice(asked, waiting)
        try:
            link = request.client.invoices.payment_link(waiting.id, gateway=inputs.gateway)
        except Forbidden as error:
            request.warn(f"top-up invoice {waiting.id}: its payment link cannot be shown: {error}")
            return shown
        given = {"payment_url": link.payment_url, "gateway": link.gateway or shown.gateway}
        return shown.model_copy(update=given)


def _check(info: m.TopupInfo, inputs: BalanceTopupInputs) -> None:
    """Raises ``InvalidInput`` for what the service would refuse."""
    failures: dict[str, str] = {}
    if not info.min <= Decimal(inputs.amount) <= info.max:
        failures["amount"] = f"must be {info.min} to {info.max} {info.currency}"
    if inputs.gateway not in info.gateways:
        failures["gateway"] = f"is not offered: choose one of {', '.join(info.gateways)}"
    if failures:
        raise InvalidInput(failures, BalanceTopup.title)


def _known(request: Request) -> list[m.Invoice]:
    """The newest top-up invoices."""
    return list(islice(request.client.invoices.list(type="topup"), _NEWEST))


def _waiting(known: list[m.Invoice], inputs: BalanceTopupInputs) -> m.Invoice | None:
    """The newest top-up of this amount that is still to be paid, or whose payment is on its way."""
    for invoice in known:
        if invoice.status in ("not_paid", "pending") and invoice.amount == Decimal(inputs.amount):
            return invoice
    return None


def _of_invoice(asked: BalanceTopupAsked, invoice: m.Invoice) -> BalanceTopupAsked:
    return asked.model_copy(
        update={
            "invoice_id": str(invoice.id),
            "gateway": invoice.gateway or asked.gateway,
            "currency": invoice.currency,
        }
    )
