"""Bodies of refunds: what a deletion would credit, and the deletion (API document, "Servers")."""

from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import Response


class RefundItem(Response):
    invoice_id: int | None = t.optional("Number of the paid invoice that the credit is for.")
    amount: t.Money | None = t.optional(
        "What was paid for the period, a decimal text in the currency of the quote."
    )
    refund: t.Money | None = t.optional("Part of the payment that would be credited, a decimal text.")
    period_start: t.Timestamp | None = t.optional("Start of the paid period.")
    period_end: t.Timestamp | None = t.optional("End of the paid period.")
    paid_at: t.Timestamp | None = t.optional("When the invoice was paid.")
    days_left: t.Number | None = t.optional("Days of the period that are not used yet.")


class RefundQuote(Response):
    """What a deletion would credit now. ``excluded_reason`` says why nothing is refunded."""

    server_id: int | None = t.optional("Number of the server that would be deleted.")
    amount: t.Money = Field(description="What a deletion would credit to the balance.")
    currency: str | None = None
    refundable: bool = Field(description="Whether a deletion would credit anything.")
    excluded_reason: (
        Annotated[
            str,
            t.known(
                "promo_tariff",
                "blocked",
                "unpaid",
                "no_payment_record",
                "service_state",
                "hourly",
                "consumed",
                "currency_mismatch",
                "unavailable",
            ),
        ]
        | None
    ) = t.optional("Why a deletion would credit nothing; null if it would.")
    days_left: t.Number | None = t.optional("Paid days that are not used yet, with fractions.")
    gross_amount: t.Money | None = t.optional("The credit before `referral_adjustment` is taken off.")
    referral_adjustment: t.Money | None = t.optional("Referral reward that the credit is lowered by.")
    note: str | None = t.optional("Explanation of the provider in words; empty if there is none.")
    breakdown: list[RefundItem] | None = t.optional("The credit by paid invoice; empty for hourly servers.")
    computed_at: t.Timestamp | None = t.optional("When the credit was computed.")


def _refund_amount(value: object) -> object:
    # The document shows an object with `amount`, a live deployment a money string.
    return value.get("amount") if isinstance(value, dict) else value


_REFUND_SCHEMA = {
    "anyOf": [
        {
            "type": "object",
            "required": ["amount"],
            "properties": {"amount": {"type": "string", "pattern": t.MONEY_PATTERN}},
        },
        {"type": "string", "pattern": t.MONEY_PATTERN},
        {"type": "null"},
    ]
}


class DeleteResult(Response):
    """``refund`` is the credited sum in ``currency`` (``None`` where the answer does not say)."""

    server_id: int | None = t.optional("Number of the server that was deleted.")
    status: str | None = t.optional("`cancelled` once the server is gone.")
    refund: Annotated[t.Money | None, BeforeValidator(_refund_amount), WithJsonSchema(_REFUND_SCHEMA)] = (
        t.optional("What was credited to the balance; an object with `amount` on some deployments.")
    )
    currency: str | None = None
    balance_after: t.Money | None = t.optional("Balance of the account after the credit.")
    refund_quote: RefundQuote | None = t.optional("How the credit was computed.")
    cancel_request_withdrawn: bool | None = t.optional(
        "Whether a request to end the server with the paid period was withdrawn."
    )

    @property
    def refunded(self) -> Decimal | None:
        if self.refund is None and self.refund_quote is not None:
            return self.refund_quote.amount
        return self.refund
