"""Inputs and state of a server, and what of the API's objects they are made of."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import by_id, servers
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.requests import check_body
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag, split_tag, with_tag
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import (
    ADOPTS,
    ALWAYS,
    POLICY,
    PRICES,
    REPLACES_AND_PRICES,
    WHEN_CREATING,
    Count,
    IdText,
    OneOf,
    Trait,
    WholeNumber,
)
from pulumi_hosting.resources.drift_fields import Drift, edited, inverted, renamed
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

_OPERATIONS = by_id(servers.OPERATIONS)
_LONGEST_TAG = ownership_tag("", 10**9 - 1)
REBUILDS = Trait(rebuilds=True)


def sorted_ids(ids: list[str]) -> list[str]:
    return sorted(set(ids), key=int)


def _trimmed(notes: str) -> str:
    if split_tag(notes)[1]:
        raise ValueError("must not end in [iac…]: that tag is kept by the provider")
    return notes.rstrip()


class ServerInputs(base.Inputs):
    tariff_id: Annotated[
        WholeNumber,
        Field(description="Id of the tariff, from the catalog. A change replaces the server."),
        REPLACES_AND_PRICES,
    ]
    os: Annotated[
        m.OsSlug,
        Field(description="Image slug, from the catalog. A change replaces it, or as `rebuild` decides."),
        REBUILDS,
        Drift(lambda value: "almalinux-9" if value != "almalinux-9" else "debian-12"),
    ]
    name: Annotated[m.ServerName, Field(description="Host name: A-Z a-z 0-9 . _ -"), Drift(renamed)]
    months: Annotated[
        Annotated[WholeNumber, AfterValidator(OneOf(m.MONTHS))],
        Field(
            description="Months paid when ordering: 1, 3, 6 or 12. Not together with "
            "hours. Used at creation only."
        ),
        PRICES,
    ] = 1
    hours: Annotated[
        Annotated[WholeNumber, Field(le=720)] | None,
        Field(description="Hours paid when ordering an hourly server: 1 to 720. Used at creation only."),
        PRICES,
    ] = None
    billing_cycle: Annotated[
        Literal["monthly", "hourly"] | None,
        Field(description="monthly or hourly. A change replaces the server."),
        REPLACES_AND_PRICES,
    ] = None
    ssh_key_ids: Annotated[
        Annotated[list[IdText], AfterValidator(sorted_ids)] | None,
        Field(
            description="Ids of SSH keys to install; order does not matter, and another id of the same key "
            "is no change. A change has an effect only with rebuild set to replace or reinstall."
        ),
        Trait(rebuilds=True, write_only=True, unordered=True),
    ] = None
    password: Annotated[
        m.RootPassword | None,
        Field(
            description="Root password: 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with a letter "
            "and a digit. Generated and shown once when absent. A change has an effect only with rebuild "
            "set to replace or reinstall."
        ),
        Trait(rebuilds=True, write_only=True),
    ] = None
    rebuild: Annotated[
        Literal["replace", "reinstall", "forbid"] | None,
        Field(
            description="What a change of os, ssh_key_ids or password does. replace: a new server is "
            "ordered and the old one deleted; reinstall: the same server, address and paid period, BUT ITS "
            "DISK IS ERASED; forbid: the change is refused. Without it a change of os replaces, and changed "
            "keys and passwords are for the next server: the present one keeps what it has."
        ),
        POLICY,
    ] = None
    promo_code: Annotated[
        m.PromoCode | None, Field(description="Promo code. Used at creation only."), PRICES
    ] = None
    custom_fields: Annotated[
        Annotated[dict[m.Line, m.Notes], Field(max_length=30)] | None,
        Field(
            description="Answers to the provider's extra order questions, up to 30. "
            "Matter when ordering only."
        ),
        WHEN_CREATING,
    ] = None
    auto_renew: Annotated[
        bool | None, Field(description="Whether the service renews it from the balance."), Drift(inverted)
    ] = None
    notes: Annotated[
        Annotated[m.Notes, AfterValidator(_trimmed)] | None,
        Field(description="Free text shown in the control panel."),
        Drift(edited),
    ] = None
    power: Annotated[
        Literal["running", "stopped"] | None,
        Field(description="running or stopped. Not managed when absent."),
        Drift(lambda value: "active" if value == "stopped" else "stopped", "status"),
    ] = None
    tariff: Annotated[
        m.ShortLine | None,
        Field(
            description="Name of the tariff, from the catalog, in place of tariff_id. It is resolved when "
            "the server is ordered; a later change of the catalog is no difference."
        ),
        Trait(policy=True, names="tariff_id", decides="price"),
    ] = None
    adopt_id: Annotated[
        IdText | None,
        Field(
            description="Take over this existing server instead of ordering one. Tariff and image must be "
            "the declared ones."
        ),
        ADOPTS,
    ] = None
    order_attempt: Annotated[
        Annotated[Count, Field(le=10**6)] | None,
        Field(
            description="Increment to force a new order after the provider refused to "
            "create a possible duplicate."
        ),
        WHEN_CREATING,
    ] = None

    def model_post_init(self, context: Any) -> None:
        self._check_period()
        self._check_bodies()

    def _check_period(self) -> None:
        given = self.model_fields_set
        if "hours" in given and self.hours is not None:
            if "months" in given:
                raise ValueError("hours: give either months or hours, not both")
            if self.billing_cycle == "monthly":
                raise ValueError(
                    "hours: a monthly server is ordered by months. Next: give months instead of hours"
                )
        if self.billing_cycle == "hourly" and "months" in given:
            raise ValueError(
                "months: an hourly server is ordered by hours. Next: give hours instead of months"
            )

    def _check_bodies(self) -> None:
        """Build and check every body before anything is paid: the order's, and that of the change that
        follows it.
        """
        if self.tariff_id is None or self.os is None or self.name is None:  # not known yet
            return
        for id, make, where in (
            ("create_server", self.order_body, "custom_fields"),
            ("update_server", self._longest_change, "notes"),
        ):
            try:
                check_body(_OPERATIONS[id], make)
            except InvalidInput as error:
                field, reason = next(iter(error.fields.items()))
                field = field.split(".")[0] if field.split(".")[0] in type(self).model_fields else where
                raise ValueError(f"{field}: {reason}") from None

    def order_body(self) -> m.ServerCreate:
        """The body of ``POST /servers`` in one canonical form: what was not given is absent, hourly
        orders say so in both fields.
        """
        options: dict[str, Any] = {}
        if self.hours is not None or self.billing_cycle == "hourly":
            options |= {"hours": self.hours or 1, "billing_cycle": "hourly"}
        else:
            options["months"] = self.months
            if self.billing_cycle is not None:
                options["billing_cycle"] = self.billing_cycle
        if self.ssh_key_ids:
            options["ssh_key_ids"] = [int(key) for key in self.ssh_key_ids]
        if self.password is not None:
            options["password"] = self.password
        if self.promo_code is not None:
            options["promo_code"] = self.promo_code
        if self.custom_fields:
            options["custom_fields"] = dict(sorted(self.custom_fields.items()))
        return m.ServerCreate(tariff_id=self.tariff_id, os=self.os, name=self.name, **options)

    def _longest_change(self) -> m.ServerUpdate:
        """The longest body of the change that follows the order."""
        notes = with_tag(self.notes or "", _LONGEST_TAG)
        return m.ServerUpdate(name=self.name, notes=notes, auto_renew=self.auto_renew is True)


class RefundQuote(BaseModel):
    """What a deletion would credit now."""

    amount: str = Field(description="What would be credited (decimal, in currency).")
    currency: str | None = Field(
        default=None, description="ISO 4217 code of the currency of the credit, such as EUR."
    )
    refundable: bool = Field(description="Whether anything would be credited.")
    excluded_reason: str | None = Field(default=None, description="Why nothing would be.")


class ServerState(base.State):
    id: str = Field(description="Id of the server; order:<invoice id> while it is being created.")
    name: Annotated[str | None, ALWAYS] = Field(
        default=None, description="Host name that the server was ordered with, or renamed to."
    )
    hostname: str | None = Field(
        default=None, description="Host name that the control panel keeps, which a rename may not change."
    )
    status: str = Field(
        description="active, stopped, suspended, pending_cancel, cancelled or terminated; "
        "provisioning while being created."
    )
    tariff_id: int | None = Field(
        default=None, description="Number of the tariff in the catalog; empty once the tariff is gone."
    )
    tariff: str | None = Field(default=None, description="Name of the tariff that bills the server.")
    os: str | None = Field(default=None, description="Slug of the installed image, such as debian-12.")
    os_shown: str | None = Field(
        default=None,
        description="Image slug that the API goes on showing after a reinstallation, "
        "where it does not follow.",
    )
    power: str | None = Field(
        default=None, description="running or stopped; empty while the service keeps it suspended."
    )
    location: str | None = Field(default=None, description="Name of the location where the server stands.")
    ip: str | None = Field(
        default=None,
        description="Primary address: the one that was assigned first; empty while there is none.",
    )
    ips: list[str] = Field(default=[], description="Every address of the server, IPv4 and IPv6.")
    notes: str | None = Field(
        default=None, description="Notes shown in the control panel, without the provider's tag."
    )
    auto_renew: bool | None = Field(
        default=None, description="Whether the service renews it from the balance."
    )
    billing_cycle: str | None = Field(
        default=None, description="Whether it is paid by the month (monthly) or by the hour (hourly)."
    )
    price_monthly: str | None = Field(
        default=None, description="Price of the tariff per month (decimal, in currency)."
    )
    recurring_amount: str | None = Field(
        default=None, description="Price of the next renewal (decimal, in currency)."
    )
    currency: str | None = Field(
        default=None, description="ISO 4217 code of the currency of the amounts, such as EUR."
    )
    next_due_at: str | None = Field(
        default=None, description="When the next renewal is due (RFC 3339, UTC); empty where none is."
    )
    refund_quote: RefundQuote | None = Field(
        default=None, description="What a deletion would credit, as of the last single read."
    )
    blocked: bool | None = Field(
        default=None, description="Whether staff of the service locked it, so that every change is refused."
    )
    created_at: str | None = Field(
        default=None,
        description="When the order was carried out (RFC 3339, UTC); empty for imported servers.",
    )
    invoice_id: str | None = Field(
        default=None, description="Invoice of the order; empty in the sandbox and for adopted servers."
    )
    charged: str | None = Field(
        default=None, description="What the order cost (decimal, in currency); empty for adopted servers."
    )
    root_password: Secret | None = Field(
        default=None, description="Root password, where it was shown or declared."
    )
    # Sent, and never shown by the API: kept as declared.
    ssh_key_ids: list[str] | None = Field(
        default=None, description="Ids of the SSH keys installed, as declared."
    )
    ssh_key_fingerprints: list[str] | None = Field(
        default=None,
        description="Fingerprints of the SSH keys installed, in the SHA256 form, "
        "where all of them were known.",
    )
    password: Secret | None = Field(default=None, description="Root password as declared.")
    ownership_tag: str | None = Field(
        default=None,
        description="Tag behind the notes on the account, as last written: tells whether a later "
        "run took the server over.",
    )


POWER = {"active": "running", "stopped": "stopped"}
KEPT = (
    "invoice_id",
    "charged",
    "root_password",
    "ssh_key_ids",
    "ssh_key_fingerprints",
    "password",
    "ownership_tag",
)


def from_api(server: m.Server, last: ServerState | None = None) -> ServerState:
    billing = server.billing
    quote = server.refund_quote if isinstance(server, m.ServerDetail) else None
    return ServerState(
        id=str(server.id),
        name=server.name,
        hostname=server.hostname,
        status=server.status,
        tariff_id=server.tariff.id if server.tariff else None,
        tariff=server.tariff.name if server.tariff else None,
        os=last.os if last and last.os_shown and last.os_shown == server.os else server.os,
        os_shown=last.os_shown if last and last.os_shown == server.os else None,
        power=POWER.get(server.status),
        location=server.location,
        ip=server.ip,
        ips=sorted(server.ips or ([server.ip] if server.ip else []), key=lambda text: (":" in text, text)),
        notes=split_tag(server.notes)[0],
        auto_renew=billing.auto_renew if billing else None,
        billing_cycle=billing.cycle if billing else None,
        price_monthly=as_text(billing.price_monthly) if billing else None,
        recurring_amount=as_text(billing.recurring_amount) if billing else None,
        currency=(billing.currency if billing else None) or (last.currency if last else None),
        next_due_at=as_text(billing.next_due_at) if billing else None,
        refund_quote=_refund(quote) if quote else (last.refund_quote if last else None),
        blocked=server.flags.blocked if server.flags else None,
        created_at=as_text(server.created_at),
        **(
            {name: getattr(last, name) for name in KEPT}
            if last
            else {"ownership_tag": split_tag(server.notes)[1]}
        ),
    )


def _refund(quote: m.RefundQuote) -> RefundQuote:
    return RefundQuote(
        amount=str(quote.amount),
        currency=quote.currency,
        refundable=quote.refundable,
        excluded_reason=quote.excluded_reason,
    )


def is_simulated(id: str) -> bool:
    """Whether the id is one of the sandbox's."""
    return (id_number(id) or 0) >= m.SANDBOX_SERVER_IDS


def as_written(request: Request, state: ServerState, last: ServerState | None) -> ServerState:
    """With what was last written to a simulated server: responses need not show it, and only this account
    writes to it.
    """
    if last is None or not last.status or not request.client.is_test_key or not is_simulated(state.id):
        return state
    written = {name: getattr(last, name) for name in ("name", "notes", "auto_renew", "os", "power")}
    return state.model_copy(update={name: value for name, value in written.items() if value is not None})


def provisional(order: m.Order, last: ServerState | None = None) -> ServerState:
    known = last.model_dump() | {name: getattr(last, name) for name in KEPT} if last else {}
    return ServerState(
        **{
            **known,
            "id": f"{ORDER_PREFIX}{order.invoice_id}",
            "status": "provisioning",
            "name": order.server_name or known.get("name"),
            "invoice_id": str(order.invoice_id),
            "charged": as_text(order.amount) or known.get("charged"),
            "currency": order.currency or known.get("currency"),
        }
    )
