"""Every body of the API as a pydantic model (API document, "Resources and their fields" and "Endpoints").

Requests are closed: an unknown field, a bad value or a bad combination is refused before anything is sent. "Not given" and ``None`` are
two things: only fields that were set are sent. Responses are open: unknown fields, enum values and codes survive; where a live deployment
spells a field differently than the document, both spellings become one attribute. Money is ``Decimal``, time is aware UTC,
fields shown only once are :class:`~pulumi_hosting.api.redact.Secret`.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from pulumi_hosting.api.meta import Meta
from pulumi_hosting.api.redact import Secret
from pulumi_hosting.api.values import HOST_NAME_PATTERN as HOST_NAME_PATTERN
from pulumi_hosting.api.values import KEY_TYPES as KEY_TYPES
from pulumi_hosting.api.values import (
    SERVER_NAME_PATTERN,
    check_domain_name,
    check_host_name,
    check_line,
    check_notes,
    check_public_key,
    check_server_name,
    check_webhook_url,
)

INT64 = 2**63 - 1
MONTHS = (1, 3, 6, 12)
SANDBOX_SERVER_IDS = 9_000_000_000
SYNTHETIC_SERVER_IDS = range(2_000_000_000, SANDBOX_SERVER_IDS)

MONEY_PATTERN = r"^-?[0-9]+\.[0-9]{2,4}$"
_MONEY = re.compile(MONEY_PATTERN.strip("^$"))
PASSWORD_PATTERN = r"^(?=.*[A-Za-z])(?=.*[0-9])[A-Za-z0-9!@#$%^&*-]{8,64}$"  # noqa: S105  # a rule, not a password
SERVER_STATUSES = ("active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated")
INVOICE_STATUSES = ("not_paid", "paid", "cancelled", "refunded")
INVOICE_TYPES = (
    "topup",
    "vds_purchase",
    "vds_renewal",
    "ip_purchase",
    "domain_registration",
    "domain_renewal",
    "domain_transfer",
    "other",
)
LIVE_INVOICE_TYPES = ("vds_addon", "domain_purchase", "late_fee", "dedicated_purchase", "dedicated_renewal")
DOMAIN_STATUSES = ("pending", "active", "expired", "transfer_pending", "cancelled")
DELIVERY_STATUSES = ("pending", "delivered", "dead")
EVENT_TYPES = (
    "server.created",
    "server.suspended",
    "server.unsuspended",
    "server.terminated",
    "server.reinstalled",
    "invoice.created",
    "invoice.paid",
    "invoice.overdue",
    "balance.low",
    "domain.registered",
    "domain.expiring",
    "domain.renewed",
    "key.created",
    "key.revoked",
    "ping",
)

# --- kinds of values ---------------------------------------------------------------------------------------------------------


def _money_from_api(value: object) -> object:
    # A float has lost cents already; an answer that carries one is not what the document describes.
    if isinstance(value, Decimal):
        return value
    if not isinstance(value, str) or not is_money(value):
        raise ValueError("money must be a decimal string with 2 to 4 fraction digits")
    return Decimal(value)


def is_money(text: str) -> bool:
    """Whether the text is a sum of money as answers have it."""
    return len(text) <= 40 and _MONEY.fullmatch(text) is not None


def _money_to_api(value: Decimal) -> str:
    # By its digits: arithmetic would round what is longer than a decimal context, or refuse it.
    whole, _, cents = f"{value:f}".partition(".")
    return f"{whole}.{cents.rstrip('0'):0<2}"


def _amount_to_send(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError("must be a money string with two fraction digits")
    if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,15}\.[0-9]{2}", value, re.ASCII):
        raise ValueError("must be a money string with two fraction digits")
    # Compared before anything is made of it: a number of a thousand digits would not become a decimal, or not a short one.
    if not 0 <= value < 10**15 if isinstance(value, int | float) else False:
        raise ValueError("must be from 0 to less than 10^15")
    amount = Decimal(str(value))
    if not amount.is_finite() or not 0 <= amount < 10**15 or amount != amount.quantize(Decimal("0.01")):
        raise ValueError("must be from 0 to less than 10^15, with at most two fraction digits")
    return amount


def _to_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("a timestamp must be within the years 1 to 9999 in UTC") from None


def _whole(value: object) -> object:
    # A choice of numbers would take True for 1.
    if type(value) is not int:
        raise ValueError("must be a whole number")
    return value


Money = Annotated[
    Decimal,
    BeforeValidator(_money_from_api),
    PlainSerializer(_money_to_api, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": MONEY_PATTERN}),
]
Amount = Annotated[
    Decimal,
    BeforeValidator(_amount_to_send),
    PlainSerializer(_money_to_api, return_type=str),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": r"^[0-9]{1,15}\.[0-9]{2}$"}, {"type": "number", "multipleOf": 0.01, "minimum": 0}]}
    ),
]


def _timestamp_to_api(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _timestamp_from_api(value: object) -> object:
    # pydantic would take the digits of unix seconds too.
    if isinstance(value, datetime) or (isinstance(value, str) and _RFC3339.fullmatch(value)):
        return value
    raise ValueError("a timestamp must be an RFC 3339 text with a zone")


def _shown_once(value: object) -> object:
    # The replay of a stored answer blanks its secrets (API document, "Idempotency"): nothing was shown.
    return None if value == "" else value


ShownOnce = Annotated[Secret | None, BeforeValidator(_shown_once)]
"""A secret that is shown once: ``None`` in a replay, where the service blanks it."""
NewSecret = Annotated[Secret, BeforeValidator(_shown_once)]
"""A secret that the answer must show: a blank one is damage."""

Timestamp = Annotated[
    AwareDatetime,
    # After a validator of ours, strict mode would take JSON text for Python text and refuse it; what is text is decided above.
    Field(strict=False),
    BeforeValidator(_timestamp_from_api),
    AfterValidator(_to_utc),
    PlainSerializer(_timestamp_to_api, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Id = Annotated[int, Field(ge=1, le=INT64)]
Number = Annotated[float, Field(allow_inf_nan=False)]
ServerName = Annotated[str, AfterValidator(check_server_name), Field(json_schema_extra={"pattern": SERVER_NAME_PATTERN, "maxLength": 253})]
HostName = Annotated[str, AfterValidator(check_host_name)]
Notes = Annotated[str, AfterValidator(check_notes)]
Line = Annotated[str, AfterValidator(check_line)]
ShortLine = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(check_line)]
PublicKey = Annotated[str, Field(max_length=16384), AfterValidator(check_public_key)]


def _known(*values: str) -> Any:
    """A text whose documented values are ``values``; others are accepted, since enums of this API may grow."""
    return Field(json_schema_extra={"examples": list(values)})


ServerStatusText = Annotated[str, _known(*SERVER_STATUSES)]
DomainStatusText = Annotated[str, _known(*DOMAIN_STATUSES)]
EventType = Annotated[str, _known(*EVENT_TYPES)]


# --- base classes ------------------------------------------------------------------------------------------------------------


class Request(BaseModel):
    """A request body or query. Closed, and strict about types; only fields that were set are sent."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True, hide_input_in_errors=True, frozen=True)

    def to_api(self) -> dict[str, Any]:
        """The JSON object to send: what was set, secrets revealed."""
        body = self.model_dump(mode="json", exclude_unset=True, by_alias=True)
        for name in self.model_fields_set:
            value = getattr(self, name)
            if isinstance(value, Secret):
                body[name] = value.reveal()
        return body


class Response(BaseModel):
    """An answer. Unknown fields are kept in ``model_extra`` but never printed: they may be secrets of a later version."""

    # A slot, not a private attribute: those cost a Python call per object, and would make equal answers of two calls unequal.
    __slots__ = ("_meta",)

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        defer_build=True,
        hide_input_in_errors=True,
        frozen=True,
        populate_by_name=True,
        revalidate_instances="never",
    )

    @property
    def meta(self) -> Meta | None:
        """Request id, rate limits, sandbox mark of the call that brought this; ``None`` inside of other answers and on your own objects."""
        return getattr(self, "_meta", None)

    def __repr_args__(self) -> Any:
        extras = self.model_extra or {}
        return [(name, value) for name, value in super().__repr_args__() if name not in extras]


R = TypeVar("R", bound=Response)


class Page(Response, Generic[R]):
    """One page of a list; ``next_cursor`` is ``None`` on the last one."""

    data: list[R]
    next_cursor: str | None = None


class Listing(Response, Generic[R]):
    """A short list, whole. A live deployment adds ``next_cursor: null`` to some; it is followed should it ever be set."""

    data: list[R]
    next_cursor: str | None = None


# --- meta and account --------------------------------------------------------------------------------------------------------


class Health(Response):
    """``GET /health``. ``disabled``: staff switched the API off, every other operation answers 503 ``api_disabled``."""

    status: Annotated[str, _known("ok", "disabled")]
    time: Timestamp
    version: str | None = None


class ApiKey(Response):
    """An API key as listed; never the key itself. ``rate_…`` are requests per minute, ``None`` = the default applies."""

    id: Id
    name: str | None = None
    hint: str | None = None
    mode: Annotated[str, _known("live", "test")]
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
    direction: Annotated[str, _known("credit", "debit")]
    amount: Money
    currency: str
    type: Annotated[str, _known("topup", "payment", "refund", "bonus", "referral", "adjustment", "other")] | None = None
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


# --- invoices and orders -----------------------------------------------------------------------------------------------------


class InvoiceItem(Response):
    description: str | None = None
    amount: Money
    server_id: int | None = None
    domain_id: int | None = None


class Invoice(Response):
    """``status`` and ``type`` may hold values of a live deployment beyond the document's."""

    id: Id
    status: Annotated[str, _known(*INVOICE_STATUSES, "pending", "failed")]
    type: Annotated[str, _known(*INVOICE_TYPES, *LIVE_INVOICE_TYPES)]
    amount: Money
    currency: str
    description: str | None = None
    gateway: str | None = None
    created_at: Timestamp | None = None
    due_at: Timestamp | None = None
    paid_at: Timestamp | None = None
    cancelled_at: Timestamp | None = None
    items: list[InvoiceItem] | None = None
    pdf_url: str | None = None

    @property
    def is_address_purchase(self) -> bool:
        """Whether an extra address was bought: ``ip_purchase`` in the document, ``vds_addon`` on a live deployment."""
        return self.type in ("ip_purchase", "vds_addon")


class PayInvoiceResult(Response):
    invoice_id: Id
    status: str
    amount: Money
    currency: str
    balance_after: Money | None = None


class PaymentLinkRequest(Request):
    """``gateway``: default is the one the invoice has. No other field is accepted."""

    gateway: ShortLine | None = None


class PaymentLink(Response):
    invoice_id: int | None = None
    payment_url: str
    gateway: str | None = None


class Order(Response):
    """A server order that was not finished when it was placed (202), or a read of one.

    ``status``: ``active`` is success, ``cancelled`` and ``failed`` are failures with the charge credited back, anything else is
    still under way.
    """

    invoice_id: Id
    status: Annotated[str, _known("provisioning", "invoice_created", "processing", "active", "cancelled")]
    server_id: int | None = None
    server_name: str | None = None
    tariff_id: int | None = None
    tariff_name: str | None = None
    amount: Money | None = None
    currency: str | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    order_url: str | None = None
    failure_reason: str | None = None

    @property
    def is_failed(self) -> bool:
        return self.status in ("cancelled", "failed")

    @property
    def is_active(self) -> bool:
        return self.status == "active"

    @property
    def awaits_payment(self) -> bool:
        """Ordered in the cabinet and still to be paid by a person: nothing comes of it by itself. What the API orders is paid at once."""
        return self.status == "invoice_created"

    @property
    def is_pending(self) -> bool:
        """Still being carried out: it may become a server without anybody doing anything."""
        return not (self.is_active or self.is_failed or self.awaits_payment)


# --- catalog -----------------------------------------------------------------------------------------------------------------


class Location(Response):
    id: int | None = None
    code: str
    name: str | None = None
    country: str | None = None
    city: str | None = None
    in_stock: bool | None = None


class CatalogResources(Response):
    """``bandwidth_tb`` ``None`` = no traffic cap."""

    cpu_cores: int | None = None
    ram_mb: int | None = None
    disk_gb: int | None = None
    bandwidth_tb: Number | None = None
    port_mbps: int | None = None


class PeriodPrice(Response):
    months: int
    discount_percent: Number | None = None
    total: Money


class Tariff(Response):
    """``price_monthly`` includes the caller's group discount, ``list_price_monthly`` is public; ``price_hourly`` has up to 4 digits."""

    id: Id
    name: str
    description: str | None = None
    location: Location | None = None
    resources: CatalogResources | None = None
    price_monthly: Money
    list_price_monthly: Money | None = None
    price_hourly: Money | None = None
    currency: str | None = None
    periods: list[PeriodPrice] | None = None
    hourly_available: bool | None = None
    in_stock: bool | None = None
    non_refundable: bool | None = None
    excluded_os: list[str] | None = None
    extra_ip_price_monthly: Money | None = None
    max_extra_ips: int | None = None


class OsImage(Response):
    """``slug`` is the value used as ``os`` when ordering and reinstalling."""

    slug: str
    name: str | None = None
    family: Annotated[str, _known("linux", "windows", "other")] | None = None
    version: str | None = None
    supports_ssh_keys: bool | None = None
    min_disk_gb: int | None = None


class Zone(Response):
    """A domain ending and its prices per year. ``tld`` may carry a leading dot: compare :attr:`ending`."""

    tld: str
    price_register: Money
    price_renew: Money
    price_transfer: Money | None = None
    currency: str | None = None
    min_years: int | None = None
    max_years: int | None = None
    privacy_supported: bool | None = None
    transfer_supported: bool | None = None

    @property
    def ending(self) -> str:
        return self.tld.lstrip(".").lower()


class Discount(Response):
    type: Annotated[str, _known("group", "loyalty", "volume", "period", "promo")]
    percent: Number | None = None
    amount: Money


class Promo(Response):
    code: str
    valid: bool
    message: str | None = None


class Quote(Response):
    """What an order would cost now, by the same functions as ordering; ``shortfall`` is what the balance lacks."""

    tariff_id: int | None = None
    billing_cycle: Annotated[str, _known("monthly", "hourly")] | None = None
    months: int | None = None
    hours: int | None = None
    base_amount: Money | None = None
    discounts: list[Discount] | None = None
    total: Money
    currency: str
    promo: Promo | None = None
    balance: Money | None = None
    balance_sufficient: bool
    shortfall: Money | None = None


# --- servers -----------------------------------------------------------------------------------------------------------------


def _name_of(value: object) -> object:
    # Older deployments send location and os as objects.
    if isinstance(value, dict):
        return value.get("slug") or value.get("name") or value.get("code")
    return value


class TariffRef(Response):
    """The tariff of a server; ``id`` is ``None`` once the tariff is gone."""

    id: int | None = None
    name: str | None = None


class ServerResources(Response):
    """``disk_mb`` is MiB; some deployments send ``disk_gb`` instead."""

    vcpu: int | None = Field(default=None, validation_alias=AliasChoices("vcpu", "cpu_cores"))
    ram_mb: int | None = None
    disk_mb: int | None = None
    disk_gb: int | None = None


class ServerFlags(Response):
    """``blocked``: locked by staff; ``expired``: next_due_at is past; ``is_test``: a gratis trial (not the sandbox mark);
    ``synthetic``: imported, without a panel record; ``protected_until``: billing will not suspend it earlier."""

    blocked: bool | None = None
    suspended: bool | None = None
    expired: bool | None = None
    pending_cancel: bool | None = None
    protected_until: Timestamp | None = None
    is_test: bool | None = None
    synthetic: bool | None = None


class ServerBilling(Response):
    """``recurring_amount``: price of the next renewal, bought addresses and discounts included."""

    cycle: Annotated[str, _known("monthly", "hourly")]
    months: int | None = None
    price_monthly: Money | None = None
    recurring_amount: Money
    currency: str | None = None
    next_due_at: Timestamp | None = None
    auto_renew: bool | None = None
    promo_code: str | None = None
    extra_ips: int | None = None


class Server(Response):
    """A virtual server. ``status``: ``active`` | ``stopped`` | ``suspended`` | ``pending_cancel`` | ``cancelled`` | ``terminated``."""

    id: Id
    name: str
    hostname: str | None = None
    status: ServerStatusText
    tariff: TariffRef | None = None
    location: Annotated[str | None, BeforeValidator(_name_of)] = None
    os: Annotated[str | None, BeforeValidator(_name_of)] = None
    primary_ip: str | None = Field(default=None, validation_alias=AliasChoices("primary_ip", "ip"))
    ips: list[str] | None = None
    resources: ServerResources | None = None
    flags: ServerFlags | None = None
    billing: ServerBilling | None = None
    notes: str | None = None
    created_at: Timestamp | None = None

    @property
    def ip(self) -> str | None:
        """The primary address: ``primary_ip``, else ``ip``, else the first of ``ips``."""
        return self.primary_ip or (self.ips[0] if self.ips else None)

    @property
    def is_gone(self) -> bool:
        """Deleted by the client, by a cancel request or after long non-payment."""
        return self.status in ("cancelled", "terminated")

    @property
    def is_sandbox(self) -> bool:
        return self.id >= SANDBOX_SERVER_IDS


class Memory(Response):
    used_mb: Number | None = None
    total_mb: Number | None = None


class Disk(Response):
    used_gb: Number | None = None
    total_gb: Number | None = None


class ServerLiveStatus(Response):
    """Live data of the panel. ``cpu_percent`` 0..100, ``uptime_seconds`` in seconds."""

    server_id: int | None = None
    power: Annotated[str, _known("running", "stopped", "unknown")]
    cpu_percent: Number | None = None
    memory: Memory | None = None
    disk: Disk | None = None
    uptime_seconds: int | None = None
    checked_at: Timestamp | None = None


class RefundItem(Response):
    invoice_id: int | None = None
    amount: Money | None = None
    refund: Money | None = None
    period_start: Timestamp | None = None
    period_end: Timestamp | None = None
    paid_at: Timestamp | None = None
    days_left: Number | None = None


class RefundQuote(Response):
    """What a deletion would credit now. ``excluded_reason`` says why nothing is refunded."""

    server_id: int | None = None
    amount: Money
    currency: str | None = None
    refundable: bool
    excluded_reason: (
        Annotated[
            str,
            _known(
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
    ) = None
    days_left: Number | None = None
    gross_amount: Money | None = None
    referral_adjustment: Money | None = None
    note: str | None = None
    breakdown: list[RefundItem] | None = None
    computed_at: Timestamp | None = None


class ServerDetail(Server):
    """One server as ``GET /servers/{server_id}`` shows it; ``live`` only with ``include=live``."""

    refund_quote: RefundQuote | None = None
    live: ServerLiveStatus | None = None


class ServerCreated(Response):
    """201 of ``POST /servers``. ``root_password`` is shown this once and blank in a replay; ``invoice_id`` is ``None`` in the sandbox."""

    server: Server
    root_password: ShownOnce = None
    invoice_id: int | None = None
    charged: Money
    balance_after: Money | None = None
    currency: str | None = None
    order_url: str | None = None


def _refund_amount(value: object) -> object:
    # The document shows an object with `amount`, a live deployment a money string.
    return value.get("amount") if isinstance(value, dict) else value


_REFUND_SCHEMA = {
    "anyOf": [
        {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "string", "pattern": MONEY_PATTERN}}},
        {"type": "string", "pattern": MONEY_PATTERN},
        {"type": "null"},
    ]
}


class DeleteResult(Response):
    """``refund`` is the credited sum in ``currency`` (``None`` where the answer does not say)."""

    server_id: int | None = None
    status: str | None = None
    refund: Annotated[Money | None, BeforeValidator(_refund_amount), WithJsonSchema(_REFUND_SCHEMA)] = None
    currency: str | None = None
    balance_after: Money | None = None
    refund_quote: RefundQuote | None = None
    cancel_request_withdrawn: bool | None = None

    @property
    def refunded(self) -> Decimal | None:
        return self.refund if self.refund is not None else (self.refund_quote.amount if self.refund_quote else None)


class RenewResult(Response):
    server: Server | None = None
    invoice_id: int | None = None
    charged: Money
    balance_after: Money | None = None
    currency: str | None = None
    next_due_at: Timestamp | None = None
    months: int | None = None
    hours: int | None = None


class ActionResult(Response):
    server_id: Id
    action: str | None = None
    status: Annotated[str, _known("accepted", "done")] | None = None
    message: str | None = None


class ReinstallResult(Response):
    """``root_password`` is ``None`` or blank when the caller supplied one; otherwise shown this once."""

    server_id: Id
    status: Annotated[str, _known("reinstalling")] | None = None
    os: str | None = None
    root_password: ShownOnce = None


class ResetPasswordResult(Response):
    server_id: int | None = None
    password: NewSecret


def _check_password(value: Secret) -> Secret:
    if not re.fullmatch(PASSWORD_PATTERN, value.reveal()):
        raise ValueError("must be 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with at least one letter and one digit")
    return value


RootPassword = Annotated[
    Secret,
    AfterValidator(_check_password),
    WithJsonSchema({"type": "string", "format": "password", "pattern": PASSWORD_PATTERN, "minLength": 8, "maxLength": 64}),
]
OsSlug = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(check_line)]
PromoCode = ShortLine
Months = Annotated[Literal[1, 3, 6, 12], BeforeValidator(_whole)]
BillingCycle = Literal["monthly", "hourly"]


class ServerCreate(Request):
    """An order. ``months`` 1 | 3 | 6 | 12 (default 1) or ``hours`` 1..720, not both; ``custom_fields``: up to 30 texts."""

    tariff_id: Id
    os: OsSlug
    name: ServerName | None = None
    password: RootPassword | None = None
    months: Months | None = None
    hours: Annotated[int, Field(ge=1, le=720)] | None = None
    billing_cycle: BillingCycle | None = None
    promo_code: PromoCode | None = None
    ssh_key_ids: list[Id] | None = None
    custom_fields: Annotated[dict[Line, Notes], Field(max_length=30)] | None = None

    @model_validator(mode="after")
    def _one_period(self) -> Self:
        if self.months is not None and self.hours is not None:
            raise ValueError("give either months or hours, not both")
        if self.billing_cycle == "hourly" and self.months is not None:
            raise ValueError("an hourly order takes hours, not months")
        if self.billing_cycle == "monthly" and self.hours is not None:
            raise ValueError("a monthly order takes months, not hours")
        return self


class ServerUpdate(Request):
    """At least one field. ``notes`` ``None`` clears them."""

    auto_renew: bool | None = None
    name: ServerName | None = None
    notes: Notes | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one of auto_renew, name, notes")
        return self


class RenewRequest(Request):
    """Exactly one of ``months`` (monthly servers) and ``hours`` (hourly servers; up to 720, up to 2160 on some deployments)."""

    months: Months | None = None
    hours: Annotated[int, Field(ge=1, le=2160)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.months is None) == (self.hours is None):
            raise ValueError("give exactly one of months and hours")
        return self


class PowerRequest(Request):
    action: Literal["start", "stop", "restart"]


class ReinstallRequest(Request):
    """Destroys all data of the server. ``password``: as when ordering; generated and shown once when absent."""

    os: OsSlug
    password: RootPassword | None = None
    ssh_key_ids: list[Id] | None = None


class ServerListQuery(Request):
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    status: Literal["active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated"] | None = None
    ip: Annotated[str, Field(min_length=1, max_length=45)] | None = None


class ServerReadQuery(Request):
    include: Literal["live"] | None = None


# --- addresses ---------------------------------------------------------------------------------------------------------------


class Ip(Response):
    """One address of a server. ``ptr`` is its reverse DNS name; ``price_monthly`` is 0.00 for the primary one."""

    id: Id
    address: str = Field(validation_alias=AliasChoices("address", "ip"))
    version: int | None = None
    primary: bool
    ptr: str | None = None
    gateway: str | None = None
    netmask: str | None = None
    price_monthly: Money | None = None
    added_at: Timestamp | None = None

    @property
    def ip_version(self) -> int:
        """4 or 6, from the text where the answer does not say."""
        return self.version or (6 if ":" in self.address else 4)


class IpQuote(Response):
    """What one more address costs now (``prorated_now``) and per month, and how many are bought and allowed."""

    server_id: int | None = None
    price_monthly: Money
    prorated_now: Money
    currency: str | None = None
    next_due_at: Timestamp | None = None
    extra_ips: int
    max_extra_ips: int
    balance_sufficient: bool | None = None


class IpAddRequest(Request):
    """The body may be left out altogether; ``count`` can only be 1."""

    count: Annotated[Literal[1], BeforeValidator(_whole)] | None = None


class IpAdded(Response):
    """The purchase is paid; the address itself appears later in the list of the server's addresses. ``days``: what was paid for.

    An older deployment answers with ``invoice_id`` and what the server costs from now on, and names neither server nor success.
    """

    success: bool | None = None
    server_id: int | None = None
    invoice_id: int | None = None
    balance_after: Money | None = None
    recurring_amount: Money | None = None
    charged: Money
    currency: str | None = None
    days: int | None = None


class IpDeleted(Response):
    status: str | None = None
    server_id: int | None = None
    ip_id: int | None = None


def _check_ptr_name(value: str) -> str:
    return check_host_name(value) if value else value


PtrName = Annotated[str, AfterValidator(_check_ptr_name)]


class PtrUpdate(Request):
    """``domain``: host name of at least two labels; an empty string or ``None`` removes the record. The field is not ``ptr``."""

    domain: PtrName | None = None


class PtrRecord(Response):
    id: Id
    ptr: str | None = None


# --- SSH keys ----------------------------------------------------------------------------------------------------------------


class SshKey(Response):
    """A public key of the account. ``fingerprint`` has the ``SHA256:`` form."""

    id: Id
    name: str
    fingerprint: str | None = None
    type: str | None = None
    public_key: str
    created_at: Timestamp | None = None


class SshKeyCreate(Request):
    name: Annotated[str, Field(min_length=1, max_length=255), AfterValidator(check_line)]
    public_key: PublicKey


# --- domains -----------------------------------------------------------------------------------------------------------------


class Domain(Response):
    """``locked``: the registrar's transfer lock; ``blocked``: locked by staff. ``tld`` may carry a leading dot."""

    id: Id
    name: str
    tld: str | None = None
    status: DomainStatusText
    registered_at: Timestamp | None = None
    expires_at: Timestamp | None = None
    auto_renew: bool | None = None
    privacy: bool | None = None
    nameservers: list[str] | None = None
    locked: bool | None = None
    blocked: bool | None = None
    price_renew: Money | None = None
    currency: str | None = None
    created_at: Timestamp | None = None


class Availability(Response):
    """``reason`` says why a name is not available: ``taken`` | ``premium`` | ``reserved`` | ``invalid`` | ``unsupported_tld``."""

    name: str | None = None
    available: bool
    reason: Annotated[str, _known("taken", "premium", "reserved", "invalid", "unsupported_tld")] | None = None
    premium: bool | None = None
    price_register: Money | None = None
    price_renew: Money | None = None
    currency: str | None = None
    min_years: int | None = None


def _known_domain(value: object) -> object:
    # While there is no record the object has no id: its name is all there is to know.
    return value.get("name") if isinstance(value, dict) and "id" in value and value["id"] is None else value


def _also_without_a_record(schema: dict[str, Any]) -> None:
    properties = {"id": {"type": "null"}, "name": {"type": "string"}}
    schema["anyOf"].append({"type": "object", "required": list(properties), "properties": properties})


class _DomainOutcome(Response):
    # The document shows the domain as an object, a live deployment its name.
    domain: Annotated[Domain | str | None, BeforeValidator(_known_domain), Field(json_schema_extra=_also_without_a_record)] = None
    id_given: int | None = Field(default=None, validation_alias=AliasChoices("domain_id", "id_given"), serialization_alias="domain_id")

    @property
    def domain_id(self) -> int | None:
        """Id of the domain record; ``None`` while there is none: look the name up in ``GET /domains`` later."""
        return self.id_given or (self.domain.id if isinstance(self.domain, Domain) else None)

    @property
    def domain_name(self) -> str | None:
        return self.domain.name if isinstance(self.domain, Domain) else self.domain


class DomainOrderResult(_DomainOutcome):
    """``status``: ``registered`` (201) or ``pending`` (202: accepted, becomes active with a later sync)."""

    status: Annotated[str, _known("registered", "pending")]
    zone: str | None = None
    years: int | None = None
    charged: Money
    discount: Money | None = None
    promo_code: str | None = None
    currency: str | None = None
    flat_expires_at: Timestamp | None = Field(
        default=None, validation_alias=AliasChoices("expires_at", "flat_expires_at"), serialization_alias="expires_at"
    )
    message: str | None = None
    balance_after: Money | None = None

    @property
    def expires_at(self) -> datetime | None:
        return self.flat_expires_at or (self.domain.expires_at if isinstance(self.domain, Domain) else None)


class DomainRenewResult(_DomainOutcome):
    """``status``: ``renewed``, ``pending_sync`` (accepted, the new date is not visible yet) or ``pending`` (202)."""

    status: Annotated[str, _known("renewed", "pending_sync", "pending")]
    years: int | None = None
    total_years: int | None = None
    charged: Money
    balance_after: Money | None = None
    currency: str | None = None
    flat_expires_at: Timestamp | None = Field(
        default=None, validation_alias=AliasChoices("expires_at", "flat_expires_at"), serialization_alias="expires_at"
    )
    message: str | None = None

    @property
    def expires_at(self) -> datetime | None:
        return self.flat_expires_at or (self.domain.expires_at if isinstance(self.domain, Domain) else None)


class DomainTransferResult(_DomainOutcome):
    """``status``: ``transfer_pending`` and ``pending_transfer`` mean the same; ``pending``: the registrar did not answer in time."""

    status: Annotated[str, _known("transfer_pending", "pending_transfer", "pending")]
    charged: Money
    currency: str | None = None
    message: str | None = None


def _unique_hosts(value: list[str]) -> list[str]:
    if len({host.rstrip(".").lower() for host in value}) != len(value):
        raise ValueError("name servers must be unique")
    return value


DomainName = Annotated[str, Field(min_length=3, max_length=253), AfterValidator(check_domain_name)]
Nameservers = Annotated[list[HostName], Field(min_length=2, max_length=4), AfterValidator(_unique_hosts)]
Years = Annotated[int, Field(ge=1, le=10)]


class DomainRegister(Request):
    """``years`` default 1; ``nameservers`` 2..4 unique host names, default the provider's own; ``privacy`` default true in the
    document and false on some deployments, so send it; ``auto_renew`` is not accepted here by some: use the update instead."""

    name: DomainName
    years: Years | None = None
    nameservers: Nameservers | None = None
    privacy: bool | None = None
    auto_renew: bool | None = None
    promo_code: PromoCode | None = None


class DomainRenew(Request):
    years: Years


class DomainUpdate(Request):
    """At least one field. ``privacy`` is applied at the registrar before the answer; a refusal saves nothing."""

    auto_renew: bool | None = None
    privacy: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one of auto_renew, privacy")
        return self


class NameserversUpdate(Request):
    """The whole set, 2..4 unique host names (some deployments take exactly two)."""

    nameservers: Nameservers


class DomainTransfer(Request):
    """``auth_code`` is the EPP code of the present registrar. The other fields are accepted by some deployments only."""

    name: DomainName
    auth_code: Annotated[Secret, Field(min_length=1, max_length=255)]
    nameservers: Nameservers | None = None
    privacy: bool | None = None
    auto_renew: bool | None = None


class AvailabilityQuery(Request):
    name: Annotated[str, Field(min_length=1, max_length=253)]


# --- webhooks ----------------------------------------------------------------------------------------------------------------


class Subscription(Response):
    """A webhook subscription; disabled by the service after 20 failures in a row, ``disabled_reason`` says why."""

    id: Id
    url: str
    events: list[str]
    description: str | None = None
    active: bool | None = None
    failures_in_row: int | None = None
    disabled_at: Timestamp | None = None
    disabled_reason: str | None = None
    last_delivery_at: Timestamp | None = None
    last_status: int | None = None
    created_at: Timestamp | None = None


class SubscriptionCreated(Subscription):
    """``secret`` signs the deliveries and is shown this once (prefix ``whsec_``)."""

    secret: NewSecret


class WebhookSecret(Response):
    """Answer of a rotation; the old secret stops at once."""

    id: int | None = None
    secret: NewSecret


class SubscriptionDeleted(Response):
    status: str | None = None
    id: int | None = None


class EventDescriptor(Response):
    type: EventType
    description: str | None = None


class Event(Response):
    """The envelope of a delivery. ``data`` holds ``object`` (the REST shape) and ``previous`` (changed fields, ``None`` or absent)."""

    id: str
    type: EventType
    created_at: Timestamp
    livemode: bool | None = None
    account_id: int | None = None
    api_version: str | None = None
    data: dict[str, Any]
    resource: str | None = None

    @property
    def object(self) -> dict[str, Any]:
        value = self.data.get("object")
        return value if isinstance(value, dict) else {}

    @property
    def previous(self) -> dict[str, Any] | None:
        value = self.data.get("previous")
        return value if isinstance(value, dict) else None


class Delivery(Response):
    """``attempts`` made so far; ``last_response``: first 1000 bytes of the receiver's answer. ``payload`` only where one is read."""

    id: Id
    subscription_id: int | None = None
    event_id: str | None = None
    event_type: EventType
    given_status: str | None = Field(default=None, validation_alias=AliasChoices("status", "given_status"), serialization_alias="status")
    attempts: int | None = None
    next_attempt_at: Timestamp | None = None
    delivered_at: Timestamp | None = None
    dead: bool | None = None
    last_status: int | None = None
    last_error: str | None = None
    last_response: str | None = None
    created_at: Timestamp | None = None
    payload: Event | None = None

    @property
    def status(self) -> str | None:
        """``pending`` | ``delivered`` | ``dead``, derived where the answer does not name it; ``None`` where it says nothing of it."""
        if self.given_status or self.dead or self.delivered_at:
            return self.given_status or ("dead" if self.dead else "delivered")
        return None if self.dead is None else "pending"


class TestResult(Response):
    """Outcome of a synchronous ping. ``status``: HTTP status of the receiver, ``None`` if no answer came; ``latency_ms`` milliseconds."""

    __test__ = False  # a model, though pytest would collect it by its name

    ok: bool
    status: int | None = None
    latency_ms: Number | None = None
    detail: str | None = None
    delivery: Delivery | None = None


class Redelivery(Response):
    status: Annotated[str, _known("queued")] | None = None
    delivery: Delivery | None = None


def _check_events(value: list[str]) -> list[str]:
    known = {*EVENT_TYPES, "*"}
    if len(set(value)) != len(value):
        raise ValueError("event types must be unique")
    # Event types grow additively; a new one looks like `thing.happened`, anything else is a slip.
    if any(event not in known and not re.fullmatch(r"[a-z_]+\.[a-z_]+", event) for event in value):
        raise ValueError("must hold event types such as server.created, or *")
    return value


WebhookUrl = Annotated[str, Field(max_length=2048, json_schema_extra={"format": "uri"}), AfterValidator(check_webhook_url)]
Events = Annotated[list[str], Field(min_length=1, max_length=64), AfterValidator(_check_events)]
Description = Annotated[str, Field(max_length=1000), AfterValidator(check_line)]


class SubscriptionCreate(Request):
    url: WebhookUrl
    events: Events
    description: Description | None = None


class SubscriptionUpdate(Request):
    """At least one field. ``active`` true enables a disabled subscription again and clears its failures; ``None`` leaves a field alone."""

    url: WebhookUrl | None = None
    events: Events | None = None
    description: Description | None = None
    active: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("give at least one of url, events, description, active")
        return self


# --- queries of lists --------------------------------------------------------------------------------------------------------


class PageQuery(Request):
    """``limit`` 1..100, default 50; ``cursor``: the ``next_cursor`` of the previous page, with the same filters."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=100)] | None = None


class TransactionListQuery(PageQuery):
    direction: Literal["credit", "debit"] | None = None
    since: Timestamp | None = None
    until: Timestamp | None = None


class InvoiceListQuery(PageQuery):
    status: Literal["not_paid", "paid", "cancelled", "refunded", "pending", "failed"] | None = None
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
    ) = None


class OrderListQuery(PageQuery):
    """``status`` can only be ``provisioning``: the list shows orders that are still being created."""

    status: Literal["provisioning"] | None = None


class DomainListQuery(PageQuery):
    status: Literal["pending", "active", "expired", "transfer_pending", "cancelled"] | None = None


class DeliveryListQuery(PageQuery):
    status: Literal["pending", "delivered", "dead"] | None = None
    event_type: EventType | None = None


class TariffListQuery(Request):
    location_id: Id | None = None


class OsListQuery(Request):
    tariff_id: Id | None = None


class QuoteQuery(Request):
    """``months`` 1 | 3 | 6 | 12 or ``hours`` 1..2160, not both."""

    tariff_id: Id
    months: Months | None = None
    hours: Annotated[int, Field(ge=1, le=2160)] | None = None
    billing_cycle: BillingCycle | None = None
    promo_code: PromoCode | None = None

    @model_validator(mode="after")
    def _one_period(self) -> Self:
        if self.months is not None and self.hours is not None:
            raise ValueError("give either months or hours, not both")
        return self
