"""A virtual server (API document, "Servers" and "Orders").

Ordered once (see ``ordering``), waited for through a 202, changed in place where the API can (name, notes, auto-renew), replaced where it
cannot. The id is ``order:<invoice_id>`` while all that is known of it is its order.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from pulumi_hosting.api import models as m
from pulumi_hosting.api import requests
from pulumi_hosting.api.errors import (
    ApiError,
    CallError,
    Conflict,
    HostingError,
    InvalidInput,
    NotFound,
    OperationInProgress,
    ServerError,
    ServiceState,
    TransportError,
    Unavailable,
)
from pulumi_hosting.api.operations import BY_ID, SANDBOX_SERVER_SECONDS
from pulumi_hosting.api.redact import Secret
from pulumi_hosting.resources import base, catalog
from pulumi_hosting.resources.base import (
    POLICY,
    REPLACES,
    WHEN_CREATING,
    Ambiguous,
    Context,
    Cost,
    Count,
    IdText,
    NotReady,
    NounError,
    OnChange,
    TakenOver,
    Takeover,
    Trait,
    WholeNumber,
    account,
    age,
    as_text,
)
from pulumi_hosting.resources.fingerprints import fingerprint
from pulumi_hosting.resources.keys import SCHEME
from pulumi_hosting.resources.marks import is_tag, is_tag_of, next_tag, ownership_tag, split_tag, was_taken_over, with_tag
from pulumi_hosting.resources.ordering import (
    KEY_MEMORY,
    ORDER_PREFIX,
    TAGGED,
    Ordered,
    ServerOrder,
    candidates,
    find_tagged,
    living_servers,
    pending_order,
    pending_orders,
)

REBUILDS = Trait(rebuilds=True)
_DUE_SOON = timedelta(days=7)


def sorted_ids(ids: list[str]) -> list[str]:
    return sorted(set(ids), key=int)


def _trimmed(notes: str) -> str:
    if split_tag(notes)[1]:
        raise ValueError("must not end in [iac…]: that tag is kept by the provider")
    return notes.rstrip()


class ServerInputs(base.Inputs):
    tariff_id: Annotated[WholeNumber, Field(description="Id of the tariff, from the catalog. A change replaces the server."), REPLACES]
    os: Annotated[m.OsSlug, Field(description="Image slug, from the catalog. A change replaces it, or as rebuild says."), REBUILDS]
    name: Annotated[m.ServerName, Field(description="Host name: A-Z a-z 0-9 . _ -")]
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
        Annotated[dict[str, str], Field(max_length=30)] | None,
        Field(description="Answers to the provider's extra order questions, up to 30. Matter when ordering only."),
        WHEN_CREATING,
    ] = None
    auto_renew: Annotated[bool | None, Field(description="Whether the service renews it from the balance.")] = None
    notes: Annotated[
        Annotated[str, AfterValidator(_trimmed)] | None,
        Field(description="Free text shown in the cabinet."),
    ] = None
    power: Annotated[
        Literal["running", "stopped"] | None,
        Field(description="running or stopped. Not managed when absent."),
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
_KEPT = ("invoice_id", "charged", "root_password", "ssh_key_ids", "ssh_key_fingerprints", "password", "ownership_tag")


def _from_api(server: m.Server, last: ServerState | None = None) -> ServerState:
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
        blocked=server.flags.blocked,
        created_at=as_text(server.created_at),
        **({name: getattr(last, name) for name in _KEPT} if last else {}),
    )


def _refund(quote: m.RefundQuote) -> RefundQuote:
    return RefundQuote(
        amount=str(quote.amount), currency=quote.currency, refundable=quote.refundable, excluded_reason=quote.excluded_reason
    )


def _as_written(context: Context, state: ServerState, last: ServerState | None) -> ServerState:
    """With what was last written to a simulated server: it need not show in the answers, and nobody else can write to it."""
    if last is None or not last.status or not context.client.is_test_key or int(state.id) < m.SANDBOX_SERVER_IDS:
        return state
    written = {name: getattr(last, name) for name in ("name", "notes", "auto_renew", "os", "power")}
    return state.model_copy(update={name: value for name, value in written.items() if value is not None})


def _provisional(order: m.Order, last: ServerState | None = None) -> ServerState:
    known = last.model_dump() | {name: getattr(last, name) for name in _KEPT} if last else {}
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


class ServerNoun(base.Noun[ServerInputs, ServerState]):
    kind: ClassVar[str] = "server"
    title: ClassVar[str] = "server"
    Inputs = ServerInputs
    State = ServerState
    natural_key: ClassVar = ("name",)
    default_name = True
    listed_in_sandbox = True
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:order", "servers:manage"),
        "update": ("servers:read", "servers:manage"),
        "delete": ("servers:read", "servers:delete"),
    }

    # --- looking

    def find(self, context: Context, inputs: ServerInputs) -> ServerState | None:
        """The living server of that name; one still being ordered counts too."""
        if found := self._named(context, inputs.name):
            return found
        for order in context.client.orders.list():
            if order.server_name == inputs.name and order.is_pending:
                return _provisional(order)
        # An order that was carried out between the two looks is in neither; after it left the orders, it is among the servers.
        return self._named(context, inputs.name)

    @staticmethod
    def _named(context: Context, name: str) -> ServerState | None:
        living = [server for server in context.client.servers.list() if server.name == name and not server.is_gone]
        if len(living) > 1:
            raise Ambiguous(f"server name {name!r}", [str(server.id) for server in living])
        return _from_api(living[0]) if living else None

    def read(self, context: Context, id: str, last: ServerState | None = None) -> ServerState | None:
        """A tag of this identity on the account is recorded, whichever run wrote it."""
        if id.startswith(ORDER_PREFIX):
            order = context.client.orders.get(_order_id(id))
            if order.is_failed:
                return None
            if not (order.is_active and order.server_id):
                return _provisional(order, last)
            id = str(order.server_id)
        server = _listed(context, id) or _living(context, id)
        if server is None:
            if last is not None and last.status and not self.is_simulated(id):
                context.warn(f"{self._ended(context, last)}; a new one is ordered where the program declares it")
            return None
        state = _as_written(context, _from_api(server, last), last)
        tag = split_tag(server.notes)[1]
        return state.model_copy(update={"ownership_tag": tag}) if is_tag_of(tag, context.identity) else state

    def is_simulated(self, id: str) -> bool:
        return id.isdigit() and int(id) >= m.SANDBOX_SERVER_IDS

    def has_lapsed(self, state: ServerState, now: datetime) -> bool:
        """A sandbox server ends by itself after 24 hours (API document, "Sandbox")."""
        if state.created_at is None or not self.is_simulated(state.id):
            return False
        return now - datetime.fromisoformat(state.created_at) > timedelta(seconds=SANDBOX_SERVER_SECONDS)

    def on_change(self, field: str, wish: Mapping[str, Any]) -> OnChange:
        if not self.Inputs.trait(field).rebuilds:
            return super().on_change(field, wish)
        choices: Mapping[str, OnChange] = {"replace": "replace", "reinstall": "update", "forbid": "refuse"}
        return choices.get(wish.get("rebuild") or "", "replace" if field == "os" else "keep")

    def is_same(self, context: Context, field: str, olds: Mapping[str, Any], after: Any) -> bool:
        """SSH keys are the same by fingerprint: a key that was made again has another id. Where ``olds`` are only the inputs of before and
        their keys are gone, nothing can be told yet, and the comparison with the state decides."""
        if field != "ssh_key_ids" or not after or not olds.get(field):
            return False
        installed = olds.get("ssh_key_fingerprints") or _fingerprints(context, olds[field])
        if installed is None:
            return "id" not in olds
        return _fingerprints(context, after) == sorted(installed)

    # --- asking before

    def consequence(self, fields: frozenset[str]) -> str | None:
        what = sorted(fields & {"os", "ssh_key_ids", "password"})
        return f"{' and '.join(what)} by reinstalling the server: ITS DISK IS ERASED" if what else None

    def validate(self, context: Context, wish: Mapping[str, Any], fields: frozenset[str]) -> dict[str, str]:
        """Tariff and image against the catalog: there, in stock, allowed together, hourly where it is to be paid by the hour."""
        if wish.get("adopt_id") is not None:
            return {}
        failures: dict[str, str] = {}
        tariff = None
        if fields & {"tariff_id", "os", "hours", "billing_cycle"} and "tariff_id" in wish:
            tariff = catalog.tariffs(context).get(wish["tariff_id"])
            if tariff is None:
                failures["tariff_id"] = f"there is no tariff {wish['tariff_id']}: choose one of {catalog.choices(catalog.tariffs(context))}"
            elif "tariff_id" in fields and not tariff.in_stock and not self._has_begun(context, wish):
                failures["tariff_id"] = f"tariff {tariff.id} ({tariff.name}) is out of stock"
            elif "hourly" in (wish.get("billing_cycle"), "hourly" if wish.get("hours") else None) and not tariff.hourly_available:
                failures["billing_cycle"] = f"tariff {tariff.id} ({tariff.name}) is not offered by the hour"
        if fields & {"tariff_id", "os"} and "os" in wish:
            images = catalog.os_images(context)
            if wish["os"] not in images:
                failures["os"] = f"there is no image {wish['os']!r}: choose one of {', '.join(sorted(images))}"
            elif tariff is not None and wish["os"] in tariff.excluded_os:
                failures["os"] = f"image {wish['os']} is not offered with tariff {tariff.id} ({tariff.name})"
        keys = wish.get("ssh_key_ids") if "ssh_key_ids" in fields and not context.client.is_test_key else None
        if keys and (missing := self._missing_keys(context, keys)):
            failures["ssh_key_ids"] = f"there is no SSH key {', '.join(missing)} on this account"
        if "name" in wish:
            context.claims.name(context.identity, wish["name"])
        if not failures and "name" in wish and {"name", "tariff_id"} <= fields:
            self._remark_on_namesakes(context, wish["name"])
        return failures

    @staticmethod
    def _missing_keys(context: Context, wanted: list[str]) -> list[str]:
        known = _known_keys(context, wanted)
        return [id for id in wanted if id not in known]

    @staticmethod
    def _remark_on_namesakes(context: Context, name: str) -> None:
        """What stands, or is under way, under the name, and cannot be shown to be this declaration's without sending its key."""
        if context.client.is_test_key or context.name_is_identity:
            return
        twins = context.claims.name(context.identity, name)
        for server in living_servers(context):
            owner = context.claims.owner(str(server.id))
            if server.name == name and owner not in (None, context.identity) and context.claims.named(owner or "") in (None, name):
                twins |= {owner or ""}
        if twins:
            others = ", ".join(sorted(twin.rsplit("/", 1)[-1] for twin in twins))
            context.warn(
                f"another server of this program is named {name!r} too ({others}): each of them is a server of its own. "
                "Next: give one of them another name, unless that is meant"
            )
        for server in candidates(context):
            tag = split_tag(server.notes)[1]
            if server.name != name or is_tag_of(tag, context.identity):
                continue
            since = context.service_now() - server.created_at if server.created_at else None
            ordered = f", ordered {age(since)} ago" if since is not None else ""
            if is_tag(tag) or (since is not None and since > KEY_MEMORY):
                then = "it is not this resource's, and the order will stop"
            else:
                then = "unless an interrupted run of this program ordered it, the order will stop"
            context.warn(
                f"a server named {name!r} exists (id {server.id}{ordered}): {then}. "
                f"Next: set adopt_id={server.id} to take it over, or choose another name"
            )
        if (order := pending_order(context, name)) is not None:
            when = f", placed {age(context.service_now() - order.created_at)} ago" if order.created_at else ""
            price = f", {order.amount} {order.currency or ''}".rstrip() if order.amount is not None else ""
            context.warn(
                f"a server named {name!r} is being created (order {order.invoice_id}{when}{price}): it is waited for, and taken over if an "
                "interrupted run of this program ordered it; another one is ordered only if that order comes to nothing"
            )

    def remarks(self, context: Context, state: ServerState) -> list[str]:
        if context.client.is_test_key or not state.id.isdigit() or self.is_simulated(state.id):
            return []
        listed = _at_first(context)
        if listed is None:
            return []
        try:
            server = listed.get(state.id) or _living(context, state.id)
            if server is None:
                return [f"{self._ended(context, state)}, and the state still has it. Next: pulumi up --refresh, which orders a new one"]
            return _renewal_remarks(context, server, listed.values())
        except HostingError:
            return []

    @staticmethod
    def _ended(context: Context, state: ServerState) -> str:
        """How a server that cannot be read any more has ended, as far as the account shows it."""
        how = "is gone from the account"
        statuses: tuple[Literal["terminated", "cancelled"], ...] = ("terminated", "cancelled")
        for status in statuses:
            if any(str(server.id) == state.id for server in context.shared(("ended", status), partial(_of_status, context, status))):
                how = f"was {status}"
        due = f" (last due {state.next_due_at[:10]})" if state.next_due_at else ""
        return f"server {state.id}{f' ({state.name})' if state.name else ''} {how}{due}"

    def _has_begun(self, context: Context, wish: Mapping[str, Any]) -> bool:
        """Whether a server of this name exists or is under way: an interrupted run may have taken the last one of its tariff."""
        name = wish.get("name")
        return name is not None and (
            any(order.server_name == name for order in context.client.orders.list())
            or any(server.name == name and not server.is_gone for server in context.client.servers.list())
        )

    def cost(self, context: Context, wish: Mapping[str, Any]) -> Cost | None:
        """The quote: the same price functions as the order (API document, "Catalog")."""
        if wish.get("adopt_id") is not None or "tariff_id" not in wish:
            return None
        period: dict[str, Any]
        if wish.get("hours") is not None or wish.get("billing_cycle") == "hourly":
            period = {"hours": wish.get("hours") or 1, "billing_cycle": "hourly"}
            what = f"{period['hours']} h"
        else:
            period = {"months": wish.get("months") or 1}
            what = f"{period['months']} month{'s' if period['months'] > 1 else ''}"
        if wish.get("promo_code") is not None:
            period["promo_code"] = wish["promo_code"]
        quote = catalog.quote(context, wish["tariff_id"], period)
        if quote is None:
            return None
        if quote.promo is not None and not quote.promo.valid:
            context.warn(f"promo code {quote.promo.code}: {quote.promo.message or 'is not valid'}; the order is likely to be refused")
        tariff = catalog.tariffs(context).get(wish["tariff_id"])
        return Cost(quote.total, quote.currency, f"{tariff.name if tariff else 'server'}, {what}", quote.balance)

    def all(self, context: Context, *, name: str | None = None, **filters: Any) -> Iterable[ServerState]:
        """By ``status`` and ``ip`` (the service looks) and by ``name`` (we do)."""
        return (_from_api(server) for server in context.client.servers.list(**filters) if name is None or server.name == name)

    def is_provisional(self, state: ServerState) -> bool:
        return state.id.startswith(ORDER_PREFIX)

    # --- making

    def create(self, context: Context, inputs: ServerInputs) -> ServerState:
        if inputs.adopt_id is not None:
            server = self._adoptable(context, inputs, inputs.adopt_id)
            return self._taken(context, server, _from_api(server), inputs, _fingerprints(context, inputs.ssh_key_ids))
        self._must_be_able_to_finish(context, inputs)
        fingerprints = _fingerprints(context, inputs.ssh_key_ids)
        ordered = ServerOrder(context, self._body(context, inputs), attempt=inputs.order_attempt or 0).place()
        state = _from_api(ordered.server) if ordered.server else _provisional(_expect_order(ordered))
        extra = {
            "invoice_id": None if ordered.invoice_id is None else str(ordered.invoice_id),
            # Without a state to remember it, a charge is one of this run, and a replay is not.
            "charged": None if context.name_is_identity and ordered.found and ordered.attempts == 1 else as_text(ordered.charged),
            "root_password": ordered.root_password,
        }
        state = state.model_copy(update=extra)
        if ordered.found:
            since = ordered.server.created_at if ordered.server else _expect_order(ordered).created_at
            context.tell(Takeover(state, ordered.reason, since, title=self.title).announcement(context.service_now()))
            context.claims.add(context.identity, state.id)
            return self._taken(context, ordered.server, state, inputs, fingerprints)
        context.claims.add(context.identity, state.id)
        own = None if context.name_is_identity else ownership_tag(context.identity)
        return self._kept(state.model_copy(update={"name": inputs.name, "ownership_tag": own}), inputs, fingerprints)

    @staticmethod
    def _body(context: Context, inputs: ServerInputs) -> dict[str, Any]:
        """What is ordered. A simulated order is not sent the ids of simulated keys: no document says that it would know them."""
        body = inputs.order_body()
        if context.client.is_test_key and "ssh_key_ids" in body:
            real = {key.id for key in context.shared(("ssh_keys",), context.client.ssh_keys.list)}
            body["ssh_key_ids"] = [key for key in body["ssh_key_ids"] if key in real]
            if not body["ssh_key_ids"]:
                del body["ssh_key_ids"]
        return body

    def _taken(
        self, context: Context, server: m.Server | None, state: ServerState, inputs: ServerInputs, fingerprints: list[str] | None
    ) -> ServerState:
        """The state of a server that is taken over: with the tag that is going to be written, so that no earlier state's deletion fits."""
        context.taken_over.add(state.id)
        tag = None if context.name_is_identity else next_tag(split_tag(server.notes)[1] if server else None, context.identity)
        return self._kept(state.model_copy(update={"ownership_tag": tag}), inputs, fingerprints)

    def takeover(self, context: Context, inputs: ServerInputs) -> Takeover | None:
        """By ``adopt_id`` or by its tag. What only sending the order's key could prove is a remark of ``validate``."""
        if inputs.adopt_id is not None:
            server = self._adoptable(context, inputs, inputs.adopt_id)
            tag = split_tag(server.notes)[1]
            others = is_tag(tag) and not is_tag_of(tag, context.identity)
            reason = "adopt_id names it" + (
                "; it carries the tag of another resource, which can no longer delete it then" if others else ""
            )
            return self._announced(context, server, reason)
        if context.name_is_identity:
            return None
        found = find_tagged(context, inputs.name, attempt=inputs.order_attempt or 0)
        return None if found is None else self._announced(context, found, TAGGED)

    def _announced(self, context: Context, server: m.Server, reason: str) -> Takeover:
        billing = server.billing
        return Takeover(
            _from_api(server),
            reason,
            server.created_at,
            _charged(context, server),
            billing.currency if billing else None,
            billing.price_monthly if billing else None,
            self.title,
        )

    @staticmethod
    def _must_be_able_to_finish(context: Context, inputs: ServerInputs) -> None:
        """Stop before the money moves where the key may order but not set what an order cannot carry."""
        late = [name for name in ("notes", "auto_renew") if getattr(inputs, name) is not None]
        if late and "servers:manage" not in account(context.client).scopes:
            raise NounError(
                f"the API key lacks the scope servers:manage, which {' and '.join(late)} need once the server is there; nothing was "
                "ordered. Next: give the key that scope, or leave them out"
            )

    @staticmethod
    def _kept(state: ServerState, inputs: ServerInputs, fingerprints: list[str] | None = None) -> ServerState:
        """With what was declared and the API never shows. ``fingerprints``: of the declared keys, where they are not recorded yet."""
        password = state.root_password or inputs.password
        known = {"ssh_key_ids": inputs.ssh_key_ids, "password": inputs.password, "root_password": password}
        return state.model_copy(update=known if fingerprints is None else {**known, "ssh_key_fingerprints": fingerprints})

    @staticmethod
    def _adoptable(context: Context, inputs: ServerInputs, id: str) -> m.Server:
        server = _living(context, id)
        if server is None:
            raise NounError(
                f"adopt_id: there is no living server {id} on this account. Next: correct adopt_id, or leave it out to order one"
            )
        state = _from_api(server)
        differing = [
            f"{name} is {getattr(state, name)!r}, not {wish!r}"
            for name, wish in inputs.given().items()
            if name in ("tariff_id", "os", "billing_cycle") and getattr(state, name) not in (None, wish)
        ]
        if differing:
            raise NounError(f"adopt_id: server {id} is not the declared one: {'; '.join(differing)}. Next: declare what it is")
        return server

    def wait(self, context: Context, state: ServerState) -> ServerState:
        return self._await(context, state) if state.id.startswith(ORDER_PREFIX) else state

    def settle(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        """Wait for the order, then set what an order cannot carry: notes, auto-renew, our tag."""
        if state.id.startswith(ORDER_PREFIX):
            state = self._kept(self._await(context, state), inputs)
            context.claims.add(context.identity, state.id)
        unkept = state.root_password is None or not (context.keeps_secrets or inputs.password is not None)
        if unkept and inputs.adopt_id is None and not inputs.ssh_key_ids:
            context.warn(
                f"server {state.id}: its generated root password "
                + ("is not returned, since nothing here may keep it" if state.root_password else "was not shown to this run")
                + ". Next: declare a password or SSH keys when ordering, or reset the password"
            )
        return self._power(context, self._set_late(context, state, inputs), inputs)

    def _set_late(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        late = frozenset(inputs.model_fields_set & {"name", "notes", "auto_renew"})
        wishes = {name: value for name, value in inputs.given().items() if name in late and getattr(state, name) != value}
        if context.name_is_identity:
            return self._patch(context, state, wishes) if wishes else state
        # What reads back without the tag is what was written with it, so the tag is written even where nothing else is.
        notes = wishes.get("notes", state.notes) or ""
        try:
            return self._patch(context, state, {**wishes, "notes": notes})
        except ApiError as error:
            if wishes:
                raise
            # Without the tag a lost answer is still found by its key, for seven days.
            context.warn(f"server {state.id}: the ownership tag could not be written: {error}")
            # What another resource's tag stays behind, no recorded tag must keep from being deleted.
            return state if inputs.adopt_id is None else state.model_copy(update={"ownership_tag": None})

    def _await(self, context: Context, state: ServerState) -> ServerState:
        wait = context.patience()
        while True:
            # Everybody who waits shares one list; an order that left it is asked for itself.
            if _order_id(state.id) in pending_orders(context, wait.next * 0.9) and not wait.over:
                context.tell(f"server {state.name}: order {_order_id(state.id)} is provisioning")
                wait.pause()
                continue
            order = context.client.orders.get(_order_id(state.id))
            if order.is_failed:
                raise NounError(
                    f"order {order.invoice_id} for server {state.name!r} ended as {order.status}"
                    + (f" ({order.failure_reason})" if order.failure_reason else "")
                    + "; the charge was returned to the balance. Next: run again to order anew"
                )
            if order.is_active and order.server_id:
                server = _living(context, str(order.server_id))
                if server is None:
                    raise NounError(
                        f"server {order.server_id} of order {order.invoice_id} was deleted meanwhile. Next: run again to order anew"
                    )
                return _from_api(server, state)
            if wait.over:
                raise NotReady(
                    f"order {order.invoice_id} for server {state.name!r} is still {order.status} after {context.wait_timeout:.0f} s. "
                    "Next: run again; the order is known and will be waited for, not placed again",
                    id=state.id,
                )
            context.tell(f"server {state.name}: order {order.invoice_id} is {order.status}")
            wait.pause()

    # --- changing

    def update(self, context: Context, state: ServerState, inputs: ServerInputs, fields: frozenset[str]) -> ServerState:
        if state.id.startswith(ORDER_PREFIX):
            state = self._kept(self._await(context, state), inputs)
        wishes = {name: value for name, value in inputs.given().items() if name in fields & {"name", "notes", "auto_renew"}}
        if wishes:
            state = self._patch(context, state, wishes)
            context.save(state)
        if fields & {"os", "ssh_key_ids", "password"}:
            state = self.reinstall(context, state, inputs)
        return self._power(context, state, inputs) if "power" in fields or fields & {"os", "ssh_key_ids", "password"} else state

    def reinstall(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        """The same server with another image, keys or password. Sent once: what became of a lost answer is for a person to look at."""
        context.warn(f"server {state.id} is reinstalled with {inputs.os}: its disk is erased")
        body = {name: value for name, value in inputs.given().items() if name in ("password", "ssh_key_ids") and value is not None}
        if "ssh_key_ids" in body:
            body["ssh_key_ids"] = [int(key) for key in body["ssh_key_ids"]]
        fingerprints = _fingerprints(context, inputs.ssh_key_ids)
        try:
            result = context.client.servers.reinstall(int(state.id), os=inputs.os, **body)
        except CallError as error:
            if not error.outcome_unknown:
                raise
            raise NounError(
                f"{error.summary} — whether server {state.id} was reinstalled is not known. Next: look at it before running again: "
                "a run that still shows the change erases the disk once more"
            ) from None
        context.reads.forget("servers")
        shown = result.root_password.reveal() if result.root_password else ""
        password = result.root_password if shown else inputs.password
        if password is None and not inputs.ssh_key_ids:
            context.warn(f"server {state.id}: its new root password was not shown. Next: declare a password, or reset it")
        installed = {
            "os": inputs.os,
            "ssh_key_ids": inputs.ssh_key_ids,
            "ssh_key_fingerprints": fingerprints,
            "password": inputs.password,
            "root_password": password,
        }
        # What follows may fail; that the disk was erased, and with which password it begins again, must not be forgotten.
        context.save(state.model_copy(update={**installed, "os_shown": state.os if state.os != inputs.os else None}))
        state = self.until(context, state, lambda server: server.status in POWER and server.os == inputs.os, patience=120.0)
        state = state.model_copy(update={**installed, "os_shown": None if state.os == inputs.os else state.os})
        context.save(state)
        return state

    def _power(self, context: Context, state: ServerState, inputs: ServerInputs) -> ServerState:
        """Start or stop. Convergent, so a repeated run does no harm."""
        if inputs.power is None or state.power == inputs.power:
            return state
        if state.power is None:
            raise NounError(
                f"server {state.id} is {state.status} and cannot be {'started' if inputs.power == 'running' else 'stopped'}. "
                "Next: see why in the cabinet (an unpaid renewal, perhaps), or leave power out"
            )
        action: Literal["start", "stop"] = "start" if inputs.power == "running" else "stop"
        context.client.servers.power(int(state.id), action=action)
        context.reads.forget("servers")
        return self.until(context, state, lambda server: POWER.get(server.status) == inputs.power, patience=60.0).model_copy(
            update={"power": inputs.power}
        )

    @staticmethod
    def until(context: Context, state: ServerState, done: Callable[[m.Server], bool], patience: float) -> ServerState:
        """The server once it is as wished; after ``patience`` seconds as it is, since not every deployment shows it."""
        wait = context.patience(patience)
        while True:
            server = _living(context, state.id)
            if server is None:
                raise NounError(f"server {state.id} was deleted meanwhile. Next: run again")
            # A simulated change is accepted and need not ever show.
            if done(server) or context.client.is_test_key or wait.over:
                return _as_written(context, _from_api(server, state), state)
            context.tell(f"server {state.id}: waiting for the change to show")
            wait.pause()

    @staticmethod
    def _patch(context: Context, state: ServerState, wishes: dict[str, Any]) -> ServerState:
        """PATCH what is wished. Whose tag stands behind the notes stays so; where the name is not the identity, it becomes ours."""
        body = {name: value for name, value in wishes.items() if value is not None or name == "notes"}
        if "notes" in body:
            tag: str | None = state.ownership_tag or ownership_tag(context.identity)
            if context.name_is_identity:
                server = _living(context, state.id)
                tag = split_tag(server.notes)[1] if server else None
            else:
                state = state.model_copy(update={"ownership_tag": tag})
            body["notes"] = with_tag(body["notes"] or "", tag) if tag else body["notes"]
        try:
            after = _as_written(context, _from_api(context.client.servers.update(int(state.id), **body), state), state)
        finally:
            context.reads.forget("servers")
            if "name" in body:
                context.reads.forget("world")
        # A simulated change is answered but need not show: what was accepted is what is so.
        return after.model_copy(update={name: value for name, value in wishes.items() if value is not None})

    def predict(self, inputs: ServerInputs, state: ServerState | None) -> dict[str, Any]:
        known = super().predict(inputs, state)
        if state and known["name"] != state.name:
            known.pop("hostname", None)  # the document leaves open whether the panel's name follows
        if state and known["power"] != state.power:
            known.pop("status", None)  # a stopped server's status is stopped, and active once it runs again
        return known

    # --- removing

    def delete(self, context: Context, state: ServerState) -> None:
        """Delete it, unless its tag shows that it was taken over since: by a later run of the same resource (raises ``TakenOver``), or by
        another resource, with which it stays. Where no tag was recorded, or none is there, it is deleted."""
        if state.id.startswith(ORDER_PREFIX):
            current = self.read(context, state.id, state)
            if current is not None and current.id.startswith(ORDER_PREFIX):
                current = self._await_or_gone(context, current)
            if current is None:
                return
            state = current.model_copy(update={"ownership_tag": state.ownership_tag})
        if state.ownership_tag is not None and self._stays(context, state):
            return
        wait = context.patience()
        while True:
            try:
                # A fresh key each time: a stored failure would otherwise block the deletion for seven days.
                result = context.client.servers.delete(int(state.id), idempotency_key=f"{SCHEME}-delete-{uuid.uuid4().hex}")
            except NotFound:
                return
            except OperationInProgress:
                if wait.over:
                    raise
                context.tell(f"server {state.id}: another operation is running")
                wait.pause()
                continue
            except (ServiceState, TransportError, Unavailable, ServerError, Conflict):
                if _living(context, state.id) is None:
                    return
                raise
            context.reads.forget("servers")
            context.reads.forget("world")
            if result.refunded is not None:
                context.tell(f"server {state.id} deleted, {result.refunded} {result.currency or ''} credited".rstrip())
            return

    @staticmethod
    def _stays(context: Context, state: ServerState) -> bool:
        """Whether nothing is to be deleted: it is gone, or another resource took it over. Raises ``TakenOver``."""
        server = _living(context, state.id)
        if server is None:
            return True
        taken = was_taken_over(state.ownership_tag, split_tag(server.notes)[1])
        if taken == "by a later run":
            raise TakenOver(f"server {state.id}: a later run took it over; nothing was deleted. Next: pulumi up --refresh", id=state.id)
        if taken == "by another":
            billing = server.billing
            price = f" and costs {billing.price_monthly} {billing.currency or ''}".rstrip() + " a month" if billing else ""
            context.warn(
                f"server {state.id} ({server.name}) stays{price}: another resource took it over, its notes carry that one's tag. "
                "Next: delete it there, if it is not wanted"
            )
        return taken is not None

    def _await_or_gone(self, context: Context, state: ServerState) -> ServerState | None:
        try:
            return self._await(context, state)
        except NotReady:
            raise
        except NounError:
            return None


def _listed(context: Context, id: str) -> m.Server | None:
    """The server in the list that everybody shares; None where it is not there, or where so few are asked for that a list is dearer."""
    if not context.reads.many("server"):
        return None
    listed = context.shared(("servers",), lambda: {str(server.id): server for server in context.client.servers.list()})
    server = listed.get(id)
    return None if server is None or server.is_gone else server


def _at_first(context: Context) -> dict[str, m.Server] | None:
    """The living servers as this run first saw them, one list for all; None where they cannot be read, found out once."""

    def fetch() -> dict[str, m.Server] | None:
        try:
            return {str(server.id): server for server in context.client.servers.list() if not server.is_gone}
        except HostingError:
            return None

    return context.shared(("servers at first",), fetch, 86400.0)


def _of_status(context: Context, status: Literal["terminated", "cancelled"]) -> list[m.Server]:
    try:
        return list(context.client.servers.list(status=status))
    except HostingError:
        return []


def _renewal_remarks(context: Context, server: m.Server, others: Iterable[m.Server]) -> list[str]:
    """Whether the server will be switched off within days: it is not renewed, or the balance is not enough."""
    billing, now = server.billing, context.service_now()
    if billing is None or billing.next_due_at is None or billing.next_due_at - now > _DUE_SOON:
        return []
    due = billing.next_due_at
    named = f"server {server.id} ({server.name}) {'was' if due < now else 'is'} due on {due:%Y-%m-%d}"
    if billing.auto_renew is False:
        return [f"{named} and auto-renew is off: it is suspended then. Next: renew it, or set auto_renew"]
    balance = catalog.balance(context)
    paid = [other.billing for other in others if other.billing and other.billing.auto_renew and other.billing.next_due_at]
    needed = sum((bill.recurring_amount or Decimal(0) for bill in paid if bill.next_due_at and bill.next_due_at <= due), Decimal(0))
    if balance is None or balance.balance >= needed:
        return []
    return [
        f"{named}, and the balance of {balance.balance} {balance.currency} does not cover the {needed} {balance.currency} that are due by "
        f"then: it is suspended if they are not paid. Next: top up {needed - balance.balance} {balance.currency}"
    ]


def _known_keys(context: Context, wanted: Iterable[str]) -> dict[str, m.SshKey]:
    """The keys of the account by id; a list from before one of the wanted keys was added is not believed."""
    known: dict[str, m.SshKey] = {}
    for fresh in (False, True):
        if fresh:
            context.reads.forget("ssh_keys")
        known = {str(key.id): key for key in context.shared(("ssh_keys",), context.client.ssh_keys.list)}
        if known.keys() >= set(wanted):
            break
    return known


def _fingerprints(context: Context, ids: list[str] | None) -> list[str] | None:
    """The fingerprints of these keys; None where there are no ids, or not all of them can be told."""
    if not ids:
        return None
    try:
        known = _known_keys(context, ids)
        return sorted({known[id].fingerprint or fingerprint(known[id].public_key) for id in ids})
    except (HostingError, KeyError, ValueError):
        return None


def _charged(context: Context, server: m.Server) -> Decimal | None:
    """What the order of a server cost, if it is among the latest purchases and the key may see them; one request, shared."""

    def fetch() -> dict[int, Decimal]:
        try:
            latest = islice(context.client.invoices.list(type="vds_purchase", limit=100), 100)
            return {item.server_id: invoice.amount for invoice in latest for item in invoice.items if item.server_id is not None}
        except ApiError:
            return {}

    return context.shared(("purchases",), fetch).get(server.id)


def _living(context: Context, id: str) -> m.Server | None:
    if not re.fullmatch(r"[1-9][0-9]{0,18}", id):
        raise NounError(f"{id!r} is not a server id. Next: correct it; ids are positive integers")
    try:
        server = context.client.servers.get(int(id))
    except NotFound:
        return None
    return None if server.is_gone else server


def _order_id(id: str) -> int:
    return int(id.removeprefix(ORDER_PREFIX))


def _expect_order(ordered: Ordered) -> m.Order:
    if ordered.order is None:  # pragma: no cover — Ordered holds a server or an order
        raise NounError("an order without server and order")
    return ordered.order


SERVER = ServerNoun()
