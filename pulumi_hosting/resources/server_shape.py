"""What is declared of a server, and what is recorded of one."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import requests
from pulumi_hosting.client.exceptions import (
    InvalidInput,
)
from pulumi_hosting.exactly_once.orders import (
    ORDER_PREFIX,
)
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag, split_tag, with_tag
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import POLICY, REPLACES, WHEN_CREATING, Count, IdText, Trait, WholeNumber
from pulumi_hosting.resources.drift import Drift, edited, inverted, renamed
from pulumi_hosting.session.context import Context
from pulumi_hosting.session.text import as_text

REBUILDS = Trait(rebuilds=True)


def sorted_ids(ids: list[str]) -> list[str]:
    return sorted(set(ids), key=int)


def _trimmed(notes: str) -> str:
    if split_tag(notes)[1]:
        raise ValueError("must not end in [iac…]: that tag is kept by the provider")
    return notes.rstrip()


class ServerInputs(base.Inputs):
    tariff_id: Annotated[WholeNumber, Field(description="Id of the tariff, from the catalog. A change replaces the server."), REPLACES]
    os: Annotated[
        m.OsSlug,
        Field(description="Image slug, from the catalog. A change replaces it, or as rebuild says."),
        REBUILDS,
        Drift(lambda value: "almalinux-9" if value != "almalinux-9" else "debian-12"),
    ]
    name: Annotated[m.ServerName, Field(description="Host name: A-Z a-z 0-9 . _ -"), Drift(renamed)]
    months: Annotated[
        Annotated[WholeNumber, AfterValidator(lambda value: _one_of(value, m.MONTHS))],
        Field(description="Months paid when ordering: 1, 3, 6 or 12. Not together with hours. Matters when ordering only."),
        WHEN_CREATING,
    ] = 1
    hours: Annotated[
        Annotated[WholeNumber, Field(le=720)] | None,
        Field(description="Hours paid when ordering an hourly server: 1 to 720. Matters when ordering only."),
        WHEN_CREATING,
    ] = None
    billing_cycle: Annotated[
        Literal["monthly", "hourly"] | None,
        Field(description="monthly or hourly. A change replaces the server."),
        REPLACES,
    ] = None
    ssh_key_ids: Annotated[
        Annotated[list[IdText], AfterValidator(sorted_ids)] | None,
        Field(
            description="Ids of SSH keys to install; order does not matter, and another id of the same key is no change. A change has an "
            "effect only with rebuild set to replace or reinstall."
        ),
        Trait(rebuilds=True, write_only=True, unordered=True),
    ] = None
    password: Annotated[
        m.RootPassword | None,
        Field(
            description="Root password: 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with a letter and a digit. "
            "Generated and shown once when absent. A change has an effect only with rebuild set to replace or reinstall."
        ),
        Trait(rebuilds=True, write_only=True),
    ] = None
    rebuild: Annotated[
        Literal["replace", "reinstall", "forbid"] | None,
        Field(
            description="What a change of os, ssh_key_ids or password does. replace: a new server is ordered and the old one deleted; "
            "reinstall: the same server, address and paid period, BUT ITS DISK IS ERASED; forbid: the change is refused. Without it a "
            "change of os replaces, and changed keys and passwords are for the next server: the present one keeps what it has."
        ),
        POLICY,
    ] = None
    promo_code: Annotated[m.PromoCode | None, Field(description="Promo code. Matters when ordering only."), WHEN_CREATING] = None
    custom_fields: Annotated[
        Annotated[dict[m.Line, m.Notes], Field(max_length=30)] | None,
        Field(description="Answers to the provider's extra order questions, up to 30. Matter when ordering only."),
        WHEN_CREATING,
    ] = None
    auto_renew: Annotated[bool | None, Field(description="Whether the service renews it from the balance."), Drift(inverted)] = None
    notes: Annotated[
        Annotated[m.Notes, AfterValidator(_trimmed)] | None,
        Field(description="Free text shown in the cabinet."),
        Drift(edited),
    ] = None
    power: Annotated[
        Literal["running", "stopped"] | None,
        Field(description="running or stopped. Not managed when absent."),
        Drift(lambda value: "active" if value == "stopped" else "stopped", "status"),
    ] = None
    adopt_id: Annotated[
        IdText | None,
        Field(description="Take over this existing server instead of ordering one. Tariff and image must be the declared ones."),
        WHEN_CREATING,
    ] = None
    order_attempt: Annotated[
        Annotated[Count, Field(le=10**6)] | None,
        Field(description="Raise it to say 'order again' where the provider stopped rather than buy a second server of a name."),
        WHEN_CREATING,
    ] = None

    @model_validator(mode="after")
    def _one_period(self) -> Self:
        given = self.model_fields_set
        if "hours" in given and self.hours is not None:
            if "months" in given:
                raise ValueError("hours: give either months or hours, not both")
            if self.billing_cycle == "monthly":
                raise ValueError("hours: a monthly server is ordered by months")
        if self.billing_cycle == "hourly" and "months" in given:
            raise ValueError("months: an hourly server is ordered by hours")
        return self

    @model_validator(mode="after")
    def _sendable(self) -> Self:
        """Everything that is sent, what follows the order too, is built and checked before anything is paid."""
        if self.tariff_id is None or self.os is None or self.name is None:  # not known yet
            return self
        late = {"name": self.name, "notes": with_tag(self.notes, ownership_tag("", 10**9 - 1)), "auto_renew": self.auto_renew is True}
        for id, body, where in (("create_server", self.order_body(), "custom_fields"), ("update_server", late, "notes")):
            operation = BY_ID[id]
            try:
                content = requests.validated(operation, operation.request, body)
                if content is not None:
                    requests.encoded(operation, content)
            except InvalidInput as error:
                field, reason = next(iter(error.fields.items()))
                field = field.split(".")[0] if field.split(".")[0] in type(self).model_fields else where
                raise ValueError(f"{field}: {reason}") from None
        return self

    def order_body(self) -> dict[str, Any]:
        """The body of ``POST /servers`` in one canonical form: what was not given is absent, hourly orders say so in both fields."""
        body: dict[str, Any] = {"tariff_id": self.tariff_id, "os": self.os, "name": self.name}
        if self.hours is not None or self.billing_cycle == "hourly":
            body |= {"hours": self.hours or 1, "billing_cycle": "hourly"}
        else:
            body["months"] = self.months
            if self.billing_cycle is not None:
                body["billing_cycle"] = self.billing_cycle
        if self.ssh_key_ids:
            body["ssh_key_ids"] = [int(key) for key in self.ssh_key_ids]
        if self.password is not None:
            body["password"] = self.password
        if self.promo_code is not None:
            body["promo_code"] = self.promo_code
        if self.custom_fields:
            body["custom_fields"] = dict(sorted(self.custom_fields.items()))
        return body


def _one_of(value: int, allowed: tuple[int, ...]) -> int:
    if value not in allowed:
        raise ValueError(f"must be one of {', '.join(map(str, allowed))}")
    return value


class RefundQuote(BaseModel):
    """What a deletion would credit now."""

    amount: str = Field(description="What would be credited (decimal, in currency).")
    currency: str | None = Field(default=None, description="ISO 4217 code.")
    refundable: bool = Field(description="Whether anything would be credited.")
    excluded_reason: str | None = Field(default=None, description="Why nothing would be.")


class ServerState(base.State):
    id: str = Field(description="Id of the server; order:<invoice id> while it is being created.")
    name: str | None = Field(default=None, description="Host name.")
    hostname: str | None = Field(default=None, description="Host name kept by the panel.")
    status: str = Field(
        description="active, stopped, suspended, pending_cancel, cancelled or terminated; provisioning while being created."
    )
    tariff_id: int | None = Field(default=None, description="Id of the tariff; empty once the tariff is gone.")
    tariff: str | None = Field(default=None, description="Name of the tariff.")
    os: str | None = Field(default=None, description="Image slug.")
    os_shown: str | None = Field(
        default=None, description="Image slug that the API goes on showing after a reinstallation, where it does not follow."
    )
    power: str | None = Field(default=None, description="running or stopped; empty while the service keeps it suspended.")
    location: str | None = Field(default=None, description="Name of the location.")
    ip: str | None = Field(default=None, description="Primary address.")
    ips: list[str] = Field(default=[], description="Every address, v4 and v6.")
    notes: str | None = Field(default=None, description="Free text shown in the cabinet, without the provider's tag.")
    auto_renew: bool | None = Field(default=None, description="Whether the service renews it from the balance.")
    billing_cycle: str | None = Field(default=None, description="monthly or hourly.")
    price_monthly: str | None = Field(default=None, description="Price per month (decimal, in currency).")
    recurring_amount: str | None = Field(default=None, description="Price of the next renewal (decimal, in currency).")
    currency: str | None = Field(default=None, description="ISO 4217 code.")
    next_due_at: str | None = Field(default=None, description="When the next renewal is due (RFC 3339, UTC).")
    refund_quote: RefundQuote | None = Field(default=None, description="What a deletion would credit, as of the last single read.")
    blocked: bool | None = Field(default=None, description="Locked by staff.")
    created_at: str | None = Field(default=None, description="When it was created (RFC 3339, UTC).")
    invoice_id: str | None = Field(default=None, description="Invoice of the order; empty in the sandbox and for adopted servers.")
    charged: str | None = Field(default=None, description="What the order cost (decimal, in currency).")
    root_password: Secret | None = Field(default=None, description="Root password, where it was shown or declared.")
    # Sent, and never shown by the API: kept as declared.
    ssh_key_ids: list[str] | None = Field(default=None, description="Ids of the SSH keys installed, as declared.")
    ssh_key_fingerprints: list[str] | None = Field(
        default=None, description="Fingerprints of the SSH keys installed, in the SHA256 form, where all of them were known."
    )
    password: Secret | None = Field(default=None, description="Root password as declared.")
    ownership_tag: str | None = Field(
        default=None, description="Tag behind the notes on the account, as last written: tells whether a later run took the server over."
    )


POWER = {"active": "running", "stopped": "stopped"}
KEPT = ("invoice_id", "charged", "root_password", "ssh_key_ids", "ssh_key_fingerprints", "password", "ownership_tag")


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
        **({name: getattr(last, name) for name in KEPT} if last else {}),
    )


def _refund(quote: m.RefundQuote) -> RefundQuote:
    return RefundQuote(
        amount=str(quote.amount), currency=quote.currency, refundable=quote.refundable, excluded_reason=quote.excluded_reason
    )


def as_written(context: Context, state: ServerState, last: ServerState | None) -> ServerState:
    """With what was last written to a simulated server: it need not show in the answers, and nobody else can write to it."""
    if last is None or not last.status or not context.client.is_test_key or int(state.id) < m.SANDBOX_SERVER_IDS:
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
