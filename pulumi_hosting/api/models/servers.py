"""Bodies of servers (API document, "Servers")."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema

from pulumi_hosting.api.models.body import Change, Clears, Request, Response
from pulumi_hosting.api.models.field_types import (
    MONEY_PATTERN,
    SANDBOX_SERVER_IDS,
    BillingCycle,
    Id,
    Line,
    Money,
    Months,
    NewSecret,
    Notes,
    Number,
    OsSlug,
    PromoCode,
    RootPassword,
    ServerName,
    ServerStatusText,
    ShownOnce,
    Timestamp,
    _name_of,
    known,
)


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
    """``blocked``: locked by staff; ``expired``: next_due_at is past; ``is_test``: a gratis trial (not the
    sandbox mark); ``synthetic``: imported, without a panel record; ``protected_until``: billing will not
    suspend it earlier."""

    blocked: bool | None = None
    suspended: bool | None = None
    expired: bool | None = None
    pending_cancel: bool | None = None
    protected_until: Timestamp | None = None
    is_test: bool | None = None
    synthetic: bool | None = None


class ServerBilling(Response):
    """``recurring_amount``: price of the next renewal, bought addresses and discounts included."""

    cycle: Annotated[str, known("monthly", "hourly")]
    months: int | None = None
    price_monthly: Money | None = None
    recurring_amount: Money
    currency: str | None = None
    next_due_at: Timestamp | None = None
    auto_renew: bool | None = None
    promo_code: str | None = None
    extra_ips: int | None = None


class Server(Response):
    """A virtual server. ``status``: ``active`` | ``stopped`` | ``suspended`` | ``pending_cancel`` |
    ``cancelled`` | ``terminated``.
    """

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
    used_mb: Number | None = Field(default=None, description="What is in use, in megabytes.")
    total_mb: Number | None = Field(default=None, description="Size in megabytes.")


class Disk(Response):
    used_gb: Number | None = Field(default=None, description="What is in use, in gigabytes.")
    total_gb: Number | None = Field(default=None, description="Size in gigabytes.")


class ServerLiveStatus(Response):
    """Live data of the panel. ``cpu_percent`` 0..100, ``uptime_seconds`` in seconds."""

    server_id: int | None = None
    power: Annotated[str, known("running", "stopped", "unknown")]
    cpu_percent: Number | None = Field(default=None, description="Load of the processors, from 0 to 100.")
    memory: Memory | None = Field(default=None, description="Use of the memory, where the server shows it.")
    disk: Disk | None = Field(default=None, description="Use of the disk, where the server shows it.")
    uptime_seconds: int | None = Field(default=None, description="Seconds since the server was started.")
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
    """201 of ``POST /servers``. ``root_password`` is shown this once and blank in a replay; ``invoice_id`` is
    ``None`` in the sandbox.
    """

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

    server_id: int | None = None
    status: str | None = None
    refund: Annotated[Money | None, BeforeValidator(_refund_amount), WithJsonSchema(_REFUND_SCHEMA)] = None
    currency: str | None = None
    balance_after: Money | None = None
    refund_quote: RefundQuote | None = None
    cancel_request_withdrawn: bool | None = None

    @property
    def refunded(self) -> Decimal | None:
        return (
            self.refund
            if self.refund is not None
            else (self.refund_quote.amount if self.refund_quote else None)
        )


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
    status: Annotated[str, known("accepted", "done")] | None = None
    message: str | None = None


class ReinstallResult(Response):
    """``root_password`` is ``None`` or blank when the caller supplied one; otherwise shown this once."""

    server_id: Id
    status: Annotated[str, known("reinstalling")] | None = None
    os: str | None = None
    root_password: ShownOnce = None


class ResetPasswordResult(Response):
    server_id: int | None = None
    password: NewSecret


class ServerCreate(Request):
    """An order. ``months`` 1 | 3 | 6 | 12 (default 1) or ``hours`` 1..720, not both; ``custom_fields``: up to
    30 texts.
    """

    tariff_id: Id = Field(description="Id of the tariff.")
    os: OsSlug = Field(description="Slug of an image that the tariff allows.")
    name: ServerName | None = Field(
        default=None, description="Host name: letters, digits and `. _ -`. Made up when absent."
    )
    password: RootPassword | None = Field(
        default=None,
        description="Root password, 8 to 64 characters with a letter and a digit. Generated "
        "and shown once when absent.",
    )
    months: Months | None = Field(
        default=None, description="Months to pay: 1, 3, 6 or 12. Default: 1. Not together with `hours`."
    )
    hours: Annotated[int, Field(ge=1, le=720)] | None = Field(
        default=None,
        description="Hours to pay, 1 to 720, for hourly tariffs; some deployments accept 1 "
        "only. Not together with `months`.",
    )
    billing_cycle: BillingCycle | None = Field(default=None, description="How the server is paid.")
    promo_code: PromoCode | None = Field(default=None, description="Promo code, at most 64 characters.")
    ssh_key_ids: list[Id] | None = Field(
        default=None, description="Ids of SSH keys of the account to install."
    )
    custom_fields: Annotated[dict[Line, Notes], Field(max_length=30)] | None = Field(
        default=None, description="Answers to the provider's extra order questions, up to 30 texts."
    )

    def model_post_init(self, context: Any) -> None:
        if self.months is not None and self.hours is not None:
            raise ValueError("give either months or hours, not both")
        if self.billing_cycle == "hourly" and self.months is not None:
            raise ValueError("an hourly order takes hours, not months")
        if self.billing_cycle == "monthly" and self.hours is not None:
            raise ValueError("a monthly order takes months, not hours")


class ServerUpdate(Change):
    """At least one field. ``notes`` ``None`` clears them."""

    auto_renew: bool | None = Field(default=None, description="Whether the server is renewed automatically.")
    name: ServerName | None = Field(default=None, description="Host name: letters, digits and `. _ -`.")
    notes: Annotated[Notes | None, Clears()] = Field(
        default=None, description="Free text shown in the control panel; null clears it."
    )


class RenewRequest(Request):
    """Exactly one of ``months`` (monthly servers) and ``hours`` (hourly servers; up to 720, up to 2160 on
    some deployments).
    """

    months: Months | None = Field(
        default=None, description="Months to pay: 1, 3, 6 or 12, for monthly servers."
    )
    hours: Annotated[int, Field(ge=1, le=2160)] | None = Field(
        default=None, description="Hours to pay, 1 to 720 (on some deployments 2160), for hourly servers."
    )

    def model_post_init(self, context: Any) -> None:
        if (self.months is None) == (self.hours is None):
            raise ValueError("give exactly one of months and hours")


class PowerRequest(Request):
    action: Literal["start", "stop", "restart"] = Field(
        description="What to do: `start`, `stop` or `restart`."
    )


class ReinstallRequest(Request):
    """Destroys all data of the server. ``password``: as when ordering; generated and shown once when
    absent."""

    os: OsSlug = Field(description="Slug of an image that the tariff allows.")
    password: RootPassword | None = Field(
        default=None,
        description="Root password, 8 to 64 characters with a letter and a digit. Generated "
        "and shown once when absent.",
    )
    ssh_key_ids: list[Id] | None = Field(
        default=None, description="Ids of SSH keys of the account to install."
    )


class ServerListQuery(Request):
    cursor: str | None = Field(default=None, description="Start with the page of this cursor.")
    limit: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="Items per page, 1 to 100."
    )
    status: Literal["active", "stopped", "suspended", "pending_cancel", "cancelled", "terminated"] | None = (
        Field(default=None, description="Only servers with this status.")
    )
    ip: Annotated[str, Field(min_length=1, max_length=45)] | None = Field(
        default=None, description="Only servers with this address, primary or additional."
    )


class ServerReadQuery(Request):
    include: Literal["live"] | None = Field(
        default=None, description="`live` adds what the panel shows now. Expensive."
    )
