"""Bodies of refunds: what a deletion would credit, and the deletion (API document, "Servers")."""

from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from pulumi_hosting.api.models.body import Response
from pulumi_hosting.api.models.field_types import MONEY_PATTERN, Money, Number, Timestamp, known, optional


class RefundItem(Response):
    invoice_id: int | None = optional("Number of the paid invoice that the credit is for.")
    amount: Money | None = optional(
        "What was paid for the period, a decimal text in the currency of the quote."
    )
    refund: Money | None = optional("Part of the payment that would be credited, a decimal text.")
    period_start: Timestamp | None = optional("Start of the paid period.")
    period_end: Timestamp | None = optional("End of the paid period.")
    paid_at: Timestamp | None = optional("When the invoice was paid.")
    days_left: Number | None = optional("Days of the period that are not used yet.")


class RefundQuote(Response):
    """What a deletion would credit now. ``excluded_reason`` says why nothing is refunded."""

    server_id: int | None = optional("Number of the server that would be deleted.")
    amount: Money = Field(description="What a deletion would credit to the balance.")
    currency: str | None = None
    refundable: bool = Field(description="Whether a deletion would credit anything.")
    excluded_reason: (
        Annotated[
            str,
            known(
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
    ) = optional("Why a deletion would credit nothing; null where it would.")
    days_left: Number | None = optional("Paid days that are not used yet, with fractions.")
    gross_amount: Money | None = optional("The credit before `referral_adjustment` is taken off.")
    referral_adjustment: Money | None = optional("Referral reward that the credit is lowered by.")
    note: str | None = optional("Explanation of the provider in words; empty where there is none.")
    breakdown: list[RefundItem] | None = optional("The credit by paid invoice; empty for hourly servers.")
    computed_at: Timestamp | None = optional("When the credit was computed.")


def _refund_amount(value: object) -> object:
    # The document shows an object with `amount`, a live deployment a money string.
    return value.get("amount") if isinstance(value, dict) else value


_REFUND_SCHEMA = {
    "anyOf": [
        {
            "type": "object",
            "required": ["amount"],
            "properties": {"amount": {"type": "string", "pattern": MONEY_PATTERN}},
        },
        {"type": "string", "pattern": MONEY_PATTERN},
        {"type": "null"},
    ]
}


class DeleteResult(Response):
    """``refund`` is the credited sum in ``currency`` (``None`` where the answer does not say)."""

    server_id: int | None = optional("Number of the server that was deleted.")
    status: str | None = optional("`cancelled` once the server is gone.")
    refund: Annotated[Money | None, BeforeValidator(_refund_amount), WithJsonSchema(_REFUND_SCHEMA)] = (
        optional("What was credited to the balance; an object with `amount` on some deployments.")
    )
    currency: str | None = None
    balance_after: Money | None = optional("Balance of the account after the credit.")
    refund_quote: RefundQuote | None = optional("How the credit was computed.")
    cancel_request_withdrawn: bool | None = optional(
        "Whether a request to end the server with the paid period was withdrawn."
    )

    @property
    def refunded(self) -> Decimal | None:
        if self.refund is None and self.refund_quote is not None:
            return self.refund_quote.amount
        return self.refund
