"""Bodies of health, keys, account, balance, transactions and top-ups (API document, "Account and balance",
"API keys").
"""

from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import PageQuery, RequestModel, Response


class Health(Response):
    """``GET /health``. ``disabled``: staff switched the API off, every other operation answers 503
    ``api_disabled``.
    """

    status: Annotated[str, t.known("ok", "disabled")] = Field(
        description="`ok`, or `disabled` while staff have switched the API off and every other operation "
        "fails."
    )
    time: t.Timestamp = Field(description="Clock of the service.")
    version: str | None = t.optional("Version of the API that the service offers, `1`.")


class ApiKey(Response):
    """An API key as listed; never the key itself. ``rate_…`` are requests per minute, ``None`` = the default
    applies.
    """

    id: t.Id = Field(description="Number used to read and revoke the API key; it is not the secret.")
    name: str | None = t.optional("Name that the owner gave the key.")
    hint: str | None = t.optional("First and last letters of the key, to recognise it.")
    mode: Annotated[str, t.known("live", "test")] = Field(
        description="`live`: the key makes real changes; `test`: its changes are only simulated."
    )
    scopes: list[str] = Field(description="What the key may do, such as `servers:read`.")
    ip_allowlist: list[str] | None = t.optional("Addresses and networks that may use the key; empty: any.")
    rate_per_minute: int | None = t.optional("Normal requests per minute for this key; null: the default.")
    rate_expensive_per_minute: int | None = t.optional(
        "Expensive requests per minute for this key; null: the default."
    )
    not_before: t.Timestamp | None = t.optional("Start of the time in which the key works; null: at once.")
    expires_at: t.Timestamp | None = t.optional("End of the time in which the key works; null: never.")
    revoked_at: t.Timestamp | None = t.optional("When the key was revoked; null while it is not.")
    revoked_reason: str | None = t.optional("Why the key was revoked; null while it is not.")
    active: bool | None = t.optional(
        "Whether the key works now: it is not revoked, and now is between `not_before` and `expires_at`."
    )
    last_used_at: t.Timestamp | None = t.optional(
        "When the key last made a request (RFC 3339, UTC), up to a minute late; null before its first."
    )
    last_used_ip: str | None = t.optional("Address that the key was last used from.")
    created_at: t.Timestamp | None = t.optional("When the owner made the key in the control panel.")


class ApiKeyRevoked(Response):
    """Answer of revoking the calling key; the document does not show it, so nothing in it is required."""

    status: str | None = t.optional("`revoked` once the key no longer works.")
    key: ApiKey | None = t.optional("The API key that was revoked.")


class Me(Response):
    """The calling key, what it may do, and whose it is. ``livemode`` is false for test keys."""

    key: ApiKey = Field(description="The API key that made the call.")
    account_id: t.Id = Field(description="Number of the account that the API key belongs to.")
    livemode: bool = Field(description="False for a test key.")
    scopes: list[str] = Field(description="What the key may do, such as `servers:read`.")
    available_scopes: list[str] | None = t.optional("Every scope that a key of this account could be given.")
    sandbox_enabled: bool | None = t.optional("Whether test keys work on this account.")
    api_version: str | None = t.optional("API version that answered the request, `1`.")


class Group(Response):
    """A client group and its discount in percent."""

    id: int | None = t.optional("The provider's number for the customer group.")
    name: str | None = t.optional("What the provider calls the customer group.")
    discount_percent: t.Number | None = t.optional("Discount of the group on list prices, in percent.")


class Account(Response):
    id: t.Id = Field(description="The provider's number for the account.")
    login: str | None = t.optional("Name that the owner signs in with.")
    email: str | None = t.optional("Address that the provider writes to.")
    name: str | None = t.optional("Name of the owner.")
    company: str | None = t.optional("Company that the account was opened for, if any.")
    currency: str = Field(description="ISO 4217 code of the currency that the balance is kept in.")
    group: Group | None = t.optional("Customer group, which may bring a discount.")
    loyalty_discount_percent: t.Number | None = t.optional("Discount for the time as a customer, in percent.")
    email_verified: bool | None = t.optional("Whether the owner has confirmed the address.")
    two_factor_enabled: bool | None = t.optional("Whether the owner signs in with a second factor.")
    created_at: t.Timestamp | None = t.optional("When the account was opened.")


class Balance(Response):
    """Sums of money in ``currency``. ``low_balance``: the balance does not cover renewals due within 7
    days."""

    balance: t.Money = Field(description="Money on the account now.")
    currency: str
    upcoming_7d: t.Money = Field(description="Sum of the renewals due within 7 days.")
    upcoming_30d: t.Money = Field(description="Sum of the renewals due within 30 days.")
    low_balance: bool | None = t.optional(
        "Whether the balance does not cover the renewals due within 7 days."
    )
    auto_renew_total_monthly: t.Money | None = t.optional(
        "Monthly cost of everything that renews automatically."
    )


class Transaction(Response):
    """``amount`` is absolute; ``direction`` (``credit`` or ``debit``) is its sign."""

    id: t.Id = Field(description="Number of the movement in the account's list.")
    direction: Annotated[str, t.known("credit", "debit")] = Field(
        description="`credit`: money came to the balance; `debit`: money left it."
    )
    amount: t.Money = Field(description="Sum that moved. Positive in both directions: see `direction`.")
    currency: str
    type: (
        Annotated[str, t.known("topup", "payment", "refund", "bonus", "referral", "adjustment", "other")]
        | None
    ) = t.optional("What kind of movement it is.")
    gateway: str | None = t.optional(
        "Code of the payment gateway that was used; `balance` for the balance itself."
    )
    description: str | None = t.optional("What the movement was for, in the provider's words.")
    invoice_id: int | None = t.optional(
        "Number of the invoice that the money was for; null if there is none."
    )
    created_at: t.Timestamp = Field(description="When the money moved.")


def _gateway_codes(value: object) -> object:
    # Older deployments list gateways as objects with a code.
    if isinstance(value, list):
        return [item.get("code") if isinstance(item, dict) else item for item in value]
    return value


class TopupInfo(Response):
    """Bounds of a top-up and the gateways it can be paid through, in display order."""

    currency: str
    min: t.Money = Field(
        validation_alias=AliasChoices("min", "min_amount"), description="Smallest sum that can be topped up."
    )
    max: t.Money = Field(
        validation_alias=AliasChoices("max", "max_amount"),
        description="Largest sum that can be topped up at once.",
    )
    first_topup_bonus_percent: t.Number | None = t.optional(
        "What the provider adds to the first top-up, in percent."
    )
    first_topup_eligible: bool | None = t.optional("Whether the account can still get that bonus.")
    gateways: Annotated[list[str], BeforeValidator(_gateway_codes)] = Field(
        description="Codes of the gateways that a top-up can be paid through."
    )


class TopupRequest(RequestModel, example={"amount": "50.00", "gateway": "card"}):
    """``amount``: money string with two fraction digits, within ``min``..``max`` of TopupInfo. No other field
    is accepted.
    """

    amount: t.Amount = Field(
        description="Sum with two fraction digits, within `min` and `max` of the top-up information."
    )
    gateway: t.ShortLine = Field(description="One of the gateways of the top-up information.")


class TopupResult(Response):
    invoice_id: t.Id = Field(description="Number of the unpaid invoice that the top-up made.")
    payment_url: str = Field(
        description="Page to pay the top-up on; the balance changes once the gateway confirms."
    )
    gateway: str | None = t.optional("Code of the payment gateway that the page belongs to.")
    amount: t.Money | None = t.optional("Sum to be paid; null if the service does not say.")
    currency: str | None = None


class TransactionListQuery(PageQuery):
    direction: Literal["credit", "debit"] | None = t.optional(
        "Only money that came (`credit`) or went (`debit`)."
    )
    since: t.Timestamp | None = t.optional("Only movements at this time or later. Needs a time zone.")
    until: t.Timestamp | None = t.optional("Only movements before this time. Needs a time zone.")
