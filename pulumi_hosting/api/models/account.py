"""Bodies of health, keys, account, balance, transactions and top-ups (API document, "Account and balance", "API keys")."""

from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from pulumi_hosting.api.models.body import PageQuery, Request, Response
from pulumi_hosting.api.models.fields import Amount, Id, Money, Number, ShortLine, Timestamp, known


class Health(Response):
    """``GET /health``. ``disabled``: staff switched the API off, every other operation answers 503 ``api_disabled``."""

    status: Annotated[str, known("ok", "disabled")]
    time: Timestamp
    version: str | None = None


class ApiKey(Response):
    """An API key as listed; never the key itself. ``rate_…`` are requests per minute, ``None`` = the default applies."""

    id: Id
    name: str | None = None
    hint: str | None = None
    mode: Annotated[str, known("live", "test")]
    scopes: list[str]
    ip_allowlist: list[str] | None = None
    rate_per_minute: int | None = None
    rate_expensive_per_minute: int | None = None
    not_before: Timestamp | None = None
    expires_at: Timestamp | None = None
    revoked_at: Timestamp | None = None
    revoked_reason: str | None = None
    active: bool | None = None
    last_used_at: Timestamp | None = None
    last_used_ip: str | None = None
    created_at: Timestamp | None = None


class ApiKeyRevoked(Response):
    """Answer of revoking the calling key; the document does not show it, so nothing in it is required."""

    status: str | None = None
    key: ApiKey | None = None


class Me(Response):
    """The calling key, what it may do, and whose it is. ``livemode`` is false for test keys."""

    key: ApiKey
    account_id: Id
    livemode: bool
    scopes: list[str]
    available_scopes: list[str] | None = None
    sandbox_enabled: bool | None = None
    api_version: str | None = None


class Group(Response):
    """A client group and its discount in percent."""

    id: int | None = None
    name: str | None = None
    discount_percent: Number | None = None


class Account(Response):
    id: Id
    login: str | None = None
    email: str | None = None
    name: str | None = None
    company: str | None = None
    currency: str
    group: Group | None = None
    loyalty_discount_percent: Number | None = None
    email_verified: bool | None = None
    two_factor_enabled: bool | None = None
    created_at: Timestamp | None = None


class Balance(Response):
    """Sums of money in ``currency``. ``low_balance``: the balance does not cover renewals due within 7 days."""

    balance: Money
    currency: str
    upcoming_7d: Money
    upcoming_30d: Money
    low_balance: bool | None = None
    auto_renew_total_monthly: Money | None = None


class Transaction(Response):
    """``amount`` is absolute; ``direction`` (``credit`` | ``debit``) tells its sign."""

    id: Id
    direction: Annotated[str, known("credit", "debit")]
    amount: Money
    currency: str
    type: Annotated[str, known("topup", "payment", "refund", "bonus", "referral", "adjustment", "other")] | None = None
    gateway: str | None = None
    description: str | None = None
    invoice_id: int | None = None
    created_at: Timestamp


def _gateway_codes(value: object) -> object:
    # Older deployments list gateways as objects with a code.
    if isinstance(value, list):
        return [item.get("code") if isinstance(item, dict) else item for item in value]
    return value


class TopupInfo(Response):
    """Bounds of a top-up and the gateways it can be paid through, in display order."""

    currency: str
    min: Money = Field(validation_alias=AliasChoices("min", "min_amount"))
    max: Money = Field(validation_alias=AliasChoices("max", "max_amount"))
    first_topup_bonus_percent: Number | None = None
    first_topup_eligible: bool | None = None
    gateways: Annotated[list[str], BeforeValidator(_gateway_codes)]


class TopupRequest(Request):
    """``amount``: money string with two fraction digits, within ``min``..``max`` of TopupInfo. No other field is accepted."""

    amount: Amount
    gateway: ShortLine


class TopupResult(Response):
    invoice_id: Id
    payment_url: str
    gateway: str | None = None
    amount: Money | None = None
    currency: str | None = None


class TransactionListQuery(PageQuery):
    direction: Literal["credit", "debit"] | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None
