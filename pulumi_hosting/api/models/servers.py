"""Bodies of servers (API document, "Servers")."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, Field

import pulumi_hosting.api.models.field_types as t
from pulumi_hosting.api.models.body import Clears, PageQuery, PatchModel, RequestModel, Response
from pulumi_hosting.api.models.refunds import RefundQuote


class TariffRef(Response):
    """The tariff of a server; ``id`` is ``None`` once the tariff is gone."""

    id: int | None = t.optional("Number of the tariff in the catalog; null once the tariff is gone.")
    name: str | None = t.optional("Name of the tariff, as the price list has or had it.")


class ServerResources(Response):
    """``disk_mb`` is MiB; some deployments send ``disk_gb`` instead."""

    vcpu: int | None = Field(
        default=None,
        validation_alias=AliasChoices("vcpu", "cpu_cores"),
        description="Number of virtual processor cores; null if the panel does not say.",
    )
    ram_mb: int | None = t.optional("Size of the memory in MiB; null if the panel does not say.")
    disk_mb: int | None = t.optional("Size of the disk in MiB; null if `disk_gb` is given instead.")
    disk_gb: int | None = t.optional("Size of the disk in GiB, on deployments that do not give `disk_mb`.")


class ServerFlags(Response):
    """``blocked``: locked by staff; ``expired``: next_due_at is past; ``is_test``: a gratis trial (not the
    sandbox mark); ``synthetic``: imported, without a panel record; ``protected_until``: billing will not
    suspend it earlier."""

    blocked: bool | None = t.optional("Whether staff locked the server, so that every change is refused.")
    suspended: bool | None = t.optional("Whether it is switched off for non-payment or by staff.")
    expired: bool | None = t.optional("Whether `next_due_at` has passed without a renewal.")
    pending_cancel: bool | None = t.optional("Whether a request to end it with the paid period is approved.")
    protected_until: t.Timestamp | None = t.optional(
        "Until when billing will not suspend it; null without such a promise."
    )
    is_test: bool | None = t.optional(
        "Whether it is a free trial, so that a deletion refunds nothing. Not the mark of the sandbox."
    )
    synthetic: bool | None = t.optional("Whether it was imported and the panel has no record of it.")


class ServerBilling(Response):
    """``recurring_amount``: price of the next renewal, bought addresses and discounts included."""

    cycle: Annotated[str, t.known("monthly", "hourly")] = Field(
        description="Whether the server is paid by the month (`monthly`) or by the hour (`hourly`)."
    )
    months: int | None = t.optional("Number of months that a renewal pays for, of monthly servers.")
    price_monthly: t.Money | None = t.optional("Price of the tariff per month.")
    recurring_amount: t.Money = Field(
        description="What the next renewal costs, additional addresses and discounts included; a "
        "decimal text in `currency`."
    )
    currency: str | None = None
    next_due_at: t.Timestamp | None = t.optional("When the next renewal is due; null if none is.")
    auto_renew: bool | None = t.optional("Whether the service renews the server from the balance.")
    promo_code: str | None = t.optional("The promo code that the price includes; null if there is none.")
    extra_ips: int | None = t.optional("Number of additional addresses that are paid.")


class Server(Response):
    """A virtual server. ``status``: ``active`` | ``stopped`` | ``suspended`` | ``pending_cancel`` |
    ``cancelled`` | ``terminated``.
    """

    id: t.Id = Field(
        description="Number of the server, as the control panel shows it; 9000000000 and above in the "
        "sandbox."
    )
    name: str = Field(description="Name that the server was ordered with, or renamed to.")
    hostname: str | None = t.optional("Host name in the panel; equal to `name` if it has no other.")
    status: t.ServerStatusText = Field(
        description="`active`, `stopped` by the client, `suspended` for non-payment or by staff, "
        "`pending_cancel` until the paid period ends, `cancelled` when deleted, `terminated` after long "
        "non-payment."
    )
    tariff: TariffRef | None = t.optional("The tariff that bills the server, by its number and name.")
    location: t.NameText = t.optional(
        "Name of the location where the server stands; null if it is not known."
    )
    os: t.NameText = t.optional(
        "Slug of the image that was ordered; some deployments do not change it after a reinstallation."
    )
    primary_ip: str | None = Field(
        default=None,
        validation_alias=AliasChoices("primary_ip", "ip"),
        description="The address that was assigned first; null while there is none.",
    )
    ips: list[str] | None = t.optional("Every address of the server, IPv4 and IPv6, without their ids.")
    resources: ServerResources | None = t.optional("Processors, memory and disk of the server.")
    flags: ServerFlags | None = t.optional("Special states of the server, such as a lock by staff.")
    billing: ServerBilling | None = t.optional("How the server is paid; date and price of the next renewal.")
    notes: str | None = t.optional("Notes shown in the control panel; empty if there are none.")
    created_at: t.Timestamp | None = t.optional("When the server was created; null for imported ones.")

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
        return self.id >= t.SANDBOX_SERVER_IDS


class Memory(Response):
    used_mb: t.Number | None = t.optional("What is in use, in megabytes.")
    total_mb: t.Number | None = t.optional("Size in megabytes.")


class Disk(Response):
    used_gb: t.Number | None = t.optional("What is in use, in gigabytes.")
    total_gb: t.Number | None = t.optional("Size in gigabytes.")


class ServerLiveStatus(Response):
    """Live data of the panel. ``cpu_percent`` 0..100, ``uptime_seconds`` in seconds."""

    server_id: int | None = t.optional("Number of the server that the panel measured.")
    power: Annotated[str, t.known("running", "stopped", "unknown")] = Field(
        description="`running` or `stopped`; `unknown` if the panel cannot tell."
    )
    cpu_percent: t.Number | None = t.optional("Load of the processors, from 0 to 100.")
    memory: Memory | None = t.optional("Use of the memory, if the server shows it.")
    disk: Disk | None = t.optional("Use of the disk, if the server shows it.")
    uptime_seconds: int | None = t.optional("Seconds since the server was started.")
    checked_at: t.Timestamp | None = t.optional("When the panel was asked.")


class ServerDetail(Server):
    """One server as ``GET /servers/{server_id}`` shows it; ``live`` only with ``include=live``."""

    refund_quote: RefundQuote | None = t.optional("What a deletion would credit now.")
    live: ServerLiveStatus | None = t.optional(
        "What the panel measures now, if the request asked for it; null if the panel does not answer."
    )


class ServerCreated(Response):
    """201 of ``POST /servers``. ``root_password`` is shown this once and blank in a replay; ``invoice_id`` is
    ``None`` in the sandbox.
    """

    server: Server = Field(description="The server that was ordered.")
    root_password: t.ShownOnce = t.optional(
        "Root password, shown only once; null if the order named one, and in a repeated answer."
    )
    invoice_id: int | None = t.optional("Number of the paid invoice; null in the sandbox.")
    charged: t.Money = Field(description="What the order cost.")
    balance_after: t.Money | None = None
    currency: str | None = None
    order_url: str | None = t.optional("Path in the API at which the order can be read; null in the sandbox.")


class RenewResult(Response):
    server: Server | None = t.optional("The server after the renewal.")
    invoice_id: int | None = t.optional("Number of the paid invoice; null in the sandbox.")
    charged: t.Money = Field(description="What the renewal cost.")
    balance_after: t.Money | None = None
    currency: str | None = None
    next_due_at: t.Timestamp | None = t.optional("When the renewal after this one is due.")
    months: int | None = t.optional("Number of months that were added; null for an hourly server.")
    hours: int | None = t.optional("Number of hours that were added; null for a monthly server.")


class ActionResult(Response):
    server_id: t.Id = Field(description="Number of the server that the action is for.")
    action: str | None = t.optional("`start`, `stop` or `restart`, as asked.")
    status: Annotated[str, t.known("accepted", "done")] | None = t.optional(
        "`accepted` while the panel works on it, or `done`."
    )
    message: str | None = None


class ReinstallResult(Response):
    """``root_password`` is ``None`` or blank when the caller supplied one; otherwise shown only once."""

    server_id: t.Id = Field(description="Number of the server that is installed again.")
    status: Annotated[str, t.known("reinstalling")] | None = t.optional(
        "`reinstalling`: the disk is being overwritten."
    )
    os: str | None = t.optional("Slug of the image that is installed.")
    root_password: t.ShownOnce = t.optional("Root password, shown only once; null if the request named one.")


class ResetPasswordResult(Response):
    server_id: int | None = t.optional("Number of the server that has the new password.")
    password: t.NewSecret = Field(description="The new root password, shown only once.")


_EXCLUSIVE: tuple[dict[str, dict[str, str]], ...] = (
    {"months": {}, "hours": {}},
    {"months": {}, "billing_cycle": {"const": "hourly"}},
    {"hours": {}, "billing_cycle": {"const": "monthly"}},
)


class ServerCreate(RequestModel, example={"tariff_id": 1, "os": "debian-12", "name": "web-1", "months": 1}):
    """An order. ``months`` 1 | 3 | 6 | 12 (default 1) or ``hours`` 1..720, not both; ``custom_fields``: up to
    30 texts.
    """

    printed: ClassVar = {"not": {"anyOf": [{"required": [*both], "properties": both} for both in _EXCLUSIVE]}}
    tariff_id: t.Id = Field(description="Id of the tariff.")
    os: t.OsSlug = Field(description="Slug of an image that the tariff allows.")
    name: t.ServerName | None = t.optional("Host name: letters, digits and `. _ -`. Generated if absent.")
    password: t.RootPassword | None = t.optional(
        "Root password, 8 to 64 characters with a letter and a digit. Generated and shown once if absent."
    )
    months: t.Months | None = t.optional(
        "Months to pay: 1, 3, 6 or 12. Default: 1. Not together with `hours`."
    )
    hours: Annotated[int, Field(ge=1, le=720)] | None = t.optional(
        "Hours to pay, 1 to 720, for hourly tariffs; some deployments accept 1 only. "
        "Not together with `months`."
    )
    billing_cycle: t.BillingCycle | None = t.optional("How the server is paid.")
    promo_code: t.PromoCode | None = t.optional("Promo code, at most 64 characters.")
    ssh_key_ids: list[t.Id] | None = t.optional("Ids of SSH keys of the account to install.")
    custom_fields: Annotated[dict[t.Line, t.Notes], Field(max_length=30)] | None = t.optional(
        "Answers to the provider's extra order questions, up to 30 texts."
    )

    def model_post_init(self, context: Any) -> None:
        if self.months is not None and self.hours is not None:
            raise ValueError("give either months or hours, not both")
        if self.billing_cycle == "hourly" and self.months is not None:
            raise ValueError("an hourly order takes hours, not months")
        if self.billing_cycle == "monthly" and self.hours is not None:
            raise ValueError("a monthly order takes months, not hours")


class ServerUpdate(PatchModel, example={"name": "web-2", "auto_renew": True}):
    """At least one field. ``notes`` ``None`` clears them."""

    auto_renew: bool | None = t.optional("Whether the service renews the server from the balance.")
    name: t.ServerName | None = t.optional("Host name: letters, digits and `. _ -`.")
    notes: Annotated[t.Notes | None, Clears()] = t.optional(
        "Free text shown in the control panel; null clears it."
    )


class RenewRequest(RequestModel, example={"months": 3}):
    """Exactly one of ``months`` (monthly servers) and ``hours`` (hourly servers; up to 720, up to 2160 on
    some deployments).
    """

    printed: ClassVar = {"minProperties": 1, "maxProperties": 1}
    months: t.Months | None = t.optional("Months to pay: 1, 3, 6 or 12, for monthly servers.")
    hours: Annotated[int, Field(ge=1, le=2160)] | None = t.optional(
        "Hours to pay, 1 to 720 (on some deployments 2160), for hourly servers."
    )

    def model_post_init(self, context: Any) -> None:
        if (self.months is None) == (self.hours is None):
            raise ValueError("give exactly one of months and hours")


class PowerRequest(RequestModel, example={"action": "restart"}):
    action: Literal["start", "stop", "restart"] = Field(
        description="What to do: `start`, `stop` or `restart`."
    )


class ReinstallRequest(RequestModel, example={"os": "debian-12"}):
    """Destroys all data of the server. ``password``: as when ordering; generated and shown once when
    absent."""

    os: t.OsSlug = Field(description="Slug of an image that the tariff allows.")
    password: t.RootPassword | None = t.optional(
        "Root password, 8 to 64 characters with a letter and a digit. Generated and shown once if absent."
    )
    ssh_key_ids: list[t.Id] | None = t.optional("Ids of SSH keys of the account to install.")


class ServerListQuery(PageQuery):
    status: t.ServerStatus | None = t.optional("Only servers with this status.")
    ip: Annotated[str, Field(min_length=1, max_length=45)] | None = t.optional(
        "Only servers with this address, primary or additional."
    )


class ServerReadQuery(RequestModel):
    include: Literal["live"] | None = t.optional("`live` adds what the panel shows now. Expensive.")
