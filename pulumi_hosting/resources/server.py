"""A virtual server (API document, "Servers" and "Orders").

Ordered once (see ``exactly_once.server_order``), waited for through a 202, changed in place where the API can
(name, notes, auto-renew), replaced where it cannot. The id is ``order:<invoice_id>`` while only its order is
known. What the planner asks beside the four methods is in ``server_powers``.
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.requests import check_body
from pulumi_hosting.exactly_once.ownership_tag import (
    is_tag_of,
    next_tag,
    ownership_tag,
    split_tag,
    was_taken_over,
    with_tag,
)
from pulumi_hosting.exactly_once.server_order import Ordered, ServerOrder
from pulumi_hosting.exactly_once.server_search import ORDER_PREFIX
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import (
    POLICY,
    REPLACES,
    WHEN_CREATING,
    Count,
    IdText,
    Takeover,
    Trait,
    WholeNumber,
)
from pulumi_hosting.resources.drift_fields import Drift, edited, inverted, renamed
from pulumi_hosting.resources.server_calls import (
    delete_server,
    must_be_ours,
    order_id,
    send_power,
    send_reinstall,
    stays,
    wait_for_order,
    wait_until,
)
from pulumi_hosting.resources.server_reads import (
    adoptable_server,
    fingerprints_of,
    how_it_ended,
    listed_server,
    living_server,
    must_have_scope_for,
)
from pulumi_hosting.session.errors import ResourceError, WaitTimeout
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

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
        REPLACES,
    ]
    os: Annotated[
        m.OsSlug,
        Field(description="Image slug, from the catalog. A change replaces it, or as `rebuild` decides."),
        REBUILDS,
        Drift(lambda value: "almalinux-9" if value != "almalinux-9" else "debian-12"),
    ]
    name: Annotated[m.ServerName, Field(description="Host name: A-Z a-z 0-9 . _ -"), Drift(renamed)]
    months: Annotated[
        Annotated[WholeNumber, AfterValidator(lambda value: _one_of(value, m.MONTHS))],
        Field(
            description="Months paid when ordering: 1, 3, 6 or 12. Not together with hours. Used at "
            "creation only."
        ),
        WHEN_CREATING,
    ] = 1
    hours: Annotated[
        Annotated[WholeNumber, Field(le=720)] | None,
        Field(description="Hours paid when ordering an hourly server: 1 to 720. Used at creation only."),
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
            description="Ids of SSH keys to install; order does not matter, and another id of the same key "
            "is no change. A change has an "
            "effect only with rebuild set to replace or reinstall."
        ),
        Trait(rebuilds=True, write_only=True, unordered=True),
    ] = None
    password: Annotated[
        m.RootPassword | None,
        Field(
            description="Root password: 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with a letter "
            "and a digit. "
            "Generated and shown once when absent. A change has an effect only with rebuild set to replace "
            "or reinstall."
        ),
        Trait(rebuilds=True, write_only=True),
    ] = None
    rebuild: Annotated[
        Literal["replace", "reinstall", "forbid"] | None,
        Field(
            description="What a change of os, ssh_key_ids or password does. replace: a new server is ordered "
            "and the old one deleted; "
            "reinstall: the same server, address and paid period, BUT ITS DISK IS ERASED; forbid: the change "
            "is refused. Without it a "
            "change of os replaces, and changed keys and passwords are for the next server: the present one "
            "keeps what it has."
        ),
        POLICY,
    ] = None
    promo_code: Annotated[
        m.PromoCode | None, Field(description="Promo code. Used at creation only."), WHEN_CREATING
    ] = None
    custom_fields: Annotated[
        Annotated[dict[m.Line, m.Notes], Field(max_length=30)] | None,
        Field(
            description="Answers to the provider's extra order questions, up to 30. Matter when ordering "
            "only."
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
    adopt_id: Annotated[
        IdText | None,
        Field(
            description="Take over this existing server instead of ordering one. Tariff and image must be "
            "the declared ones."
        ),
        WHEN_CREATING,
    ] = None
    order_attempt: Annotated[
        Annotated[Count, Field(le=10**6)] | None,
        Field(
            description="Increment to force a new order after the provider refused to create a "
            "possible duplicate."
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
                raise ValueError("hours: a monthly server is ordered by months")
        if self.billing_cycle == "hourly" and "months" in given:
            raise ValueError("months: an hourly server is ordered by hours")

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
                check_body(BY_ID[id], make)
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
        notes = with_tag(self.notes or "", ownership_tag("", 10**9 - 1))
        return m.ServerUpdate(name=self.name, notes=notes, auto_renew=self.auto_renew is True)


def _one_of(value: int, allowed: tuple[int, ...]) -> int:
    if value not in allowed:
        raise ValueError(f"must be one of {', '.join(map(str, allowed))}")
    return value


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
    name: str | None = Field(
        default=None, description="Host name that the server was ordered with, or renamed to."
    )
    hostname: str | None = Field(
        default=None, description="Host name that the control panel keeps, which a rename may not change."
    )
    status: str = Field(
        description="active, stopped, suspended, pending_cancel, cancelled or terminated; provisioning while "
        "being created."
    )
    tariff_id: int | None = Field(
        default=None, description="Number of the tariff in the catalog; empty once the tariff is gone."
    )
    tariff: str | None = Field(default=None, description="Name of the tariff that bills the server.")
    os: str | None = Field(default=None, description="Slug of the installed image, such as debian-12.")
    os_shown: str | None = Field(
        default=None,
        description="Image slug that the API goes on showing after a reinstallation, where it "
        "does not follow.",
    )
    power: str | None = Field(
        default=None, description="running or stopped; empty while the service keeps it suspended."
    )
    location: str | None = Field(default=None, description="Name of the location where the server stands.")
    ip: str | None = Field(default=None, description="Primary address: the one that was assigned first.")
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
        description="Fingerprints of the SSH keys installed, in the SHA256 form, where all of "
        "them were known.",
    )
    password: Secret | None = Field(default=None, description="Root password as declared.")
    ownership_tag: str | None = Field(
        default=None,
        description="Tag behind the notes on the account, as last written: tells whether a "
        "later run took the server over.",
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
        **({name: getattr(last, name) for name in KEPT} if last else {}),
    )


def _refund(quote: m.RefundQuote) -> RefundQuote:
    return RefundQuote(
        amount=str(quote.amount),
        currency=quote.currency,
        refundable=quote.refundable,
        excluded_reason=quote.excluded_reason,
    )


def as_written(request: Request, state: ServerState, last: ServerState | None) -> ServerState:
    """With what was last written to a simulated server: responses need not show it, and only this account
    writes to it.
    """
    if (
        last is None
        or not last.status
        or not request.client.is_test_key
        or int(state.id) < m.SANDBOX_SERVER_IDS
    ):
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


class ServerBase(base.Resource[ServerInputs, ServerState]):
    """The four methods of a server."""

    kind: ClassVar[str] = "server"
    title: ClassVar[str] = "server"
    Inputs = ServerInputs
    State = ServerState
    default_name = True
    after_failed_deletion = (
        "addresses and PTR records that were declared with server= are found again by the next up"
    )
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:order", "servers:manage"),
        "update": ("servers:read", "servers:manage"),
        "delete": ("servers:read", "servers:delete"),
    }

    def read(self, request: Request, id: str, last: ServerState | None = None) -> ServerState | None:
        """The tag that is there is recorded where it is this identity's; that of a later run is not, so
        that no deletion fits it.
        """
        if id.startswith(ORDER_PREFIX):
            order = request.client.orders.get(order_id(id))
            if order.is_failed:
                return None
            if not (order.is_active and order.server_id):
                return provisional(order, last)
            id = str(order.server_id)
        server = listed_server(request, id) or living_server(request, id)
        if server is None:
            if last is not None and last.status and not is_simulated(id):
                request.warn(
                    f"{how_it_ended(request, id, last.name, last.next_due_at)}; a new one is ordered where "
                    f"the program declares it"
                )
            return None
        state = as_written(request, from_api(server, last), last)
        tag = split_tag(server.notes)[1]
        recorded = last.ownership_tag if last is not None else None
        if was_taken_over(recorded, tag) == "by a later run":
            request.warn(
                f"server {id}: a later run took it over, from another backend perhaps; from here it is not "
                f"deleted any more, and a "
                "deletion says how to leave it to that run, or to take it back"
            )
        tag = tag if is_tag_of(tag, request.identity) and not was_taken_over(recorded, tag) else recorded
        return state.model_copy(update={"ownership_tag": tag})

    def create(self, request: Request, inputs: ServerInputs) -> ServerState:
        if inputs.adopt_id is not None:
            server = adoptable_server(request, inputs.adopt_id, inputs.given())
            return self._taken(
                request, server, from_api(server), inputs, fingerprints_of(request, inputs.ssh_key_ids)
            )
        must_have_scope_for(
            request, [name for name in ("notes", "auto_renew") if getattr(inputs, name) is not None]
        )
        fingerprints = fingerprints_of(request, inputs.ssh_key_ids)
        sent = inputs.model_copy(update={"ssh_key_ids": self._sent_keys(request, inputs.ssh_key_ids)})
        ordered = ServerOrder(request, sent.order_body(), attempt=inputs.order_attempt or 0).place()
        state = from_api(ordered.server) if ordered.server else provisional(_expect_order(ordered))
        extra = {
            "invoice_id": None if ordered.invoice_id is None else str(ordered.invoice_id),
            # Without a state to remember it, a charge is one of this run, and a replay is not.
            "charged": None
            if request.name_is_identity and ordered.found and ordered.attempts == 1
            else as_text(ordered.charged),
            "root_password": ordered.root_password,
        }
        state = state.model_copy(update=extra)
        if ordered.found:
            since = ordered.server.created_at if ordered.server else _expect_order(ordered).created_at
            request.info(
                Takeover(state, ordered.reason, since, title=self.title).announcement(request.service_now())
            )
            request.ownership.add(request.identity, state.id)
            return self._taken(request, ordered.server, state, inputs, fingerprints)
        request.ownership.add(request.identity, state.id)
        own = None if request.name_is_identity else ownership_tag(request.identity)
        return self._kept(
            state.model_copy(update={"name": inputs.name, "ownership_tag": own}), inputs, fingerprints
        )

    @staticmethod
    def _sent_keys(request: Request, ids: list[str] | None) -> list[str] | None:
        """The ids of keys that an order is sent. A simulated one is not sent those of simulated keys: no
        document says that it would know them.
        """
        if not ids or not request.client.is_test_key:
            return ids
        real = {str(key.id) for key in request.shared(("ssh_keys",), request.client.ssh_keys.list)}
        return [id for id in ids if id in real]

    def _taken(
        self,
        request: Request,
        server: m.Server | None,
        state: ServerState,
        inputs: ServerInputs,
        fingerprints: list[str] | None,
    ) -> ServerState:
        """The state of a server that is taken over: with the tag that is going to be written, so that no
        earlier state's deletion fits.
        """
        request.taken_over.add(state.id)
        tag = (
            None
            if request.name_is_identity
            else next_tag(split_tag(server.notes)[1] if server else None, request.identity)
        )
        return self._kept(state.model_copy(update={"ownership_tag": tag}), inputs, fingerprints)

    @staticmethod
    def _kept(state: ServerState, inputs: ServerInputs, fingerprints: list[str] | None = None) -> ServerState:
        """With what was declared and the API never shows. ``fingerprints``: of the declared keys, where
        they are not recorded yet.
        """
        password = state.root_password or inputs.password
        known = {"ssh_key_ids": inputs.ssh_key_ids, "password": inputs.password, "root_password": password}
        return state.model_copy(
            update=known if fingerprints is None else {**known, "ssh_key_fingerprints": fingerprints}
        )

    def update(
        self, request: Request, state: ServerState, inputs: ServerInputs, fields: frozenset[str]
    ) -> ServerState:
        if state.id.startswith(ORDER_PREFIX):
            state = self.ordered(request, state, inputs)
        desired = {
            name: value
            for name, value in inputs.given().items()
            if name in fields & {"name", "notes", "auto_renew"}
        }
        if state.ownership_tag is not None:
            must_be_ours(request, state.id, state.ownership_tag)
        if desired:
            state = self.patch(request, state, desired)
            request.save(state)
        if fields & {"os", "ssh_key_ids", "password"}:
            state = self.reinstall(request, state, inputs)
        return (
            self.set_power(request, state, inputs)
            if "power" in fields or fields & {"os", "ssh_key_ids", "password"}
            else state
        )

    def ordered(self, request: Request, state: ServerState, inputs: ServerInputs) -> ServerState:
        """The state once the order is carried out. Raises what ``wait_for_order`` raises."""
        return self._kept(from_api(wait_for_order(request, state.id, state.name), state), inputs)

    @staticmethod
    def patch(request: Request, state: ServerState, desired: dict[str, Any]) -> ServerState:
        """PATCH what is declared. Whose tag stands behind the notes stays so; where the name is not the
        identity, it becomes ours.
        """
        body = {name: value for name, value in desired.items() if value is not None or name == "notes"}
        if "notes" in body:
            tag: str | None = state.ownership_tag or ownership_tag(request.identity)
            if request.name_is_identity:
                server = living_server(request, state.id)
                tag = split_tag(server.notes)[1] if server else None
            else:
                state = state.model_copy(update={"ownership_tag": tag})
            body["notes"] = with_tag(body["notes"] or "", tag) if tag else body["notes"]
        try:
            after = as_written(
                request, from_api(request.client.servers.update(int(state.id), **body), state), state
            )
        finally:
            request.reads.forget("servers")
            if "name" in body:
                request.reads.forget("world")
        # A simulated change is answered but need not show: what was accepted is what is so.
        return after.model_copy(update={name: value for name, value in desired.items() if value is not None})

    def reinstall(self, request: Request, state: ServerState, inputs: ServerInputs) -> ServerState:
        """The same server with another image, keys or password."""
        body = {
            name: value
            for name, value in inputs.given().items()
            if name in ("password", "ssh_key_ids") and value is not None
        }
        if "ssh_key_ids" in body:
            body["ssh_key_ids"] = [int(key) for key in body["ssh_key_ids"]]
        fingerprints = fingerprints_of(request, inputs.ssh_key_ids)
        result = send_reinstall(request, state.id, inputs.os, body)
        shown = result.root_password.reveal() if result.root_password else ""
        password = result.root_password if shown else inputs.password
        if password is None and not inputs.ssh_key_ids:
            request.warn(
                f"server {state.id}: its new root password was not shown. Next: declare a password, "
                f"or reset it"
            )
        installed = {
            "os": inputs.os,
            "ssh_key_ids": inputs.ssh_key_ids,
            "ssh_key_fingerprints": fingerprints,
            "password": inputs.password,
            "root_password": password,
        }
        # What follows may fail. That the disk was erased, and the new password, must be in the state by then.
        request.save(
            state.model_copy(update={**installed, "os_shown": state.os if state.os != inputs.os else None})
        )
        state = self.until(
            request, state, lambda server: server.status in POWER and server.os == inputs.os, seconds=120.0
        )
        state = state.model_copy(
            update={**installed, "os_shown": None if state.os == inputs.os else state.os}
        )
        request.save(state)
        return state

    def set_power(self, request: Request, state: ServerState, inputs: ServerInputs) -> ServerState:
        """Start or stop it. A repeated run does no harm."""
        if inputs.power is None or state.power == inputs.power:
            return state
        send_power(request, state.id, inputs.power, state.status, state.power)
        after = self.until(
            request, state, lambda server: POWER.get(server.status) == inputs.power, seconds=60.0
        )
        return after.model_copy(update={"power": inputs.power})

    @staticmethod
    def until(
        request: Request, state: ServerState, done: Callable[[m.Server], bool], seconds: float
    ) -> ServerState:
        """The state once ``done``, or after ``seconds``."""
        return as_written(request, from_api(wait_until(request, state.id, done, seconds), state), state)

    def delete(self, request: Request, state: ServerState) -> None:
        """Delete it, unless its tag shows that it was taken over: by a later run of the same resource (raises
        ``TakenOver``), or by another resource, with which it stays. If no tag was recorded, or none is there,
        it is deleted."""
        if state.id.startswith(ORDER_PREFIX):
            current = self.read(request, state.id, state)
            if current is not None and current.id.startswith(ORDER_PREFIX):
                current = self._ordered_or_gone(request, current)
            if current is None:
                return
            state = current.model_copy(update={"ownership_tag": state.ownership_tag})
        server = living_server(request, state.id)
        if server is not None and not stays(request, state.ownership_tag, server):
            delete_server(request, server)

    @staticmethod
    def _ordered_or_gone(request: Request, state: ServerState) -> ServerState | None:
        try:
            return from_api(wait_for_order(request, state.id, state.name), state)
        except WaitTimeout:
            raise
        except ResourceError:
            return None


def is_simulated(id: str) -> bool:
    """Whether the id is one of the sandbox's."""
    return id.isdigit() and int(id) >= m.SANDBOX_SERVER_IDS


def _expect_order(ordered: Ordered) -> m.Order:
    if ordered.order is None:  # pragma: no cover — Ordered holds a server or an order
        raise ResourceError("an order without server and order")
    return ordered.order
