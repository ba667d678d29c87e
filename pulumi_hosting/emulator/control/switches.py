"""Calls that act on the emulator itself: reset, clock, staff switches, behaviour variants, webhook routes,
faults; and reads of all that it holds.
"""

import re
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, RootModel, model_validator

from pulumi_hosting.api.models.field_types import EVENT_TYPES
from pulumi_hosting.emulator import (
    dialects,
    events,
    log_redaction,
    pricing,
    serializers,
    tasks,
    webhook_delivery,
)
from pulumi_hosting.emulator.clock import LAST
from pulumi_hosting.emulator.control.endpoint import LEFT_OUT, Body, ControlError, Route, account_of, find
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import View, format_money, format_timestamp
from pulumi_hosting.emulator.rows import AddressRow, DomainRow, Fault, Row, ServerRow
from pulumi_hosting.emulator.store import VARIANTS, Store

MAX_ADVANCE_SECONDS = 100 * 366 * 86400


def ready(core: Core) -> object:
    """The ready line again, plus ``now``."""
    return {**core.ready_line, "now": format_timestamp(core.clock.now())}


def reset(core: Core) -> object:
    """Back to a fresh account with the same keys."""
    core.reset()
    return _now(core)


def _now(core: Core) -> object:
    return {"now": format_timestamp(core.clock.now())}


class SnapshotBody(Body):
    name: str = Field("default", min_length=1, max_length=100)


def snapshot(core: Core, body: SnapshotBody) -> object:
    """Keep everything and the time, until the emulator ends."""
    core.snapshot(body.name)
    return _now(core)


def restore(core: Core, body: SnapshotBody) -> object:
    """Back to a snapshot, as often as wanted; the others stay."""
    if not core.restore(body.name):
        raise ControlError(f"there is no snapshot {body.name!r}. Next: POST /_control/snapshot", 404)
    return _now(core)


# --- clock ------------------------------------------------------------------------------------------------


class ClockBody(Body):
    advance: float = Field(ge=0, le=MAX_ADVANCE_SECONDS)


def advance_clock(core: Core, body: ClockBody) -> object:
    """Move the clock forward; runs without the lock, since webhook receivers may call this emulator."""
    if core.clock.now() + body.advance > LAST:
        raise ControlError("advance: the clock stops at the year 9000")
    core.advance(body.advance)
    return _now(core)


def list_due(core: Core) -> object:
    """What happens next, the earliest first: to which object, and when. What has become void is left out."""
    store = core.store
    found: list[tuple[float, str, Row]] = [
        (task.due, task.what, row)
        for task in store.tasks.values()
        if (row := tasks.TASKS[task.what].row_of(store, task)) is not None
    ]
    found += [(row.next_attempt_at or 0.0, "deliver", row) for row in webhook_delivery.waiting(store)]
    return [
        {"at": format_timestamp(at), "what": what, "kind": row.kind, "object_id": row.id}
        for at, what, row in sorted(found, key=lambda entry: entry[0])
    ]


# --- staff switches ---------------------------------------------------------------------------------------


def _variants(given: dict[str, object]) -> dict[str, object]:
    for name, value in given.items():
        if not any(type(value) is type(known) and value == known for known in VARIANTS.get(name, ())):
            raise ValueError(f"{name} cannot be {value!r}; known: {VARIANTS.get(name, tuple(VARIANTS))}")
    return given


class ServiceBody(Body):
    api_enabled: bool = LEFT_OUT
    sandbox_enabled: bool = LEFT_OUT
    dialect: dialects.Dialect = LEFT_OUT
    readings: Annotated[dict[str, object], AfterValidator(_variants)] = LEFT_OUT


def edit_service(core: Core, body: ServiceBody) -> object:
    """Staff switches and behaviour variants; answers all of them."""
    service = core.store.service
    for name, value in body.given().items():
        setattr(service, name, {**service.readings, **value} if name == "readings" else value)
    return {name: getattr(service, name) for name in ServiceBody.model_fields}


class RoutesBody(RootModel[dict[str, object]]):
    pass


def replace_webhook_routes(core: Core, body: RoutesBody) -> object:
    """Where deliveries to an origin really go."""
    try:
        core.store.service.routes = webhook_delivery.check_routes(body.root)
    except ValueError as error:
        raise ControlError(str(error)) from error
    return core.store.service.routes


# --- events -----------------------------------------------------------------------------------------------

_KIND_OF = {"server": "servers", "invoice": "invoices", "domain": "domains", "key": "keys"}
"""The kind of row that an event is about, by the beginning of its type."""


class EventBody(Body):
    type: Literal[EVENT_TYPES]  # type: ignore[valid-type]  # the table of the API
    object_id: int = LEFT_OUT
    previous: View = LEFT_OUT
    account_id: int = LEFT_OUT


def fire_event(core: Core, body: EventBody) -> object:
    """Queue an event for the subscriptions to it as if it had just happened; nothing else changes. Without
    ``object_id`` it is about the newest object that it can be about.
    """
    store, account = core.store, account_of(core, body.account_id)
    before, kind = len(store.deliveries), _KIND_OF.get(body.type.partition(".")[0])
    if kind is not None:
        named = [
            row
            for row in store.tables[kind].values()
            if row.account_id == account.id
            and body.object_id in (None, row.id)
            and not getattr(row, "is_sandbox", False)
        ]
        if not named:
            raise ControlError(
                f"the account has no such object among its {kind}. Next: POST /_control/{kind}", 404
            )
        events.of(store, body.type, named[-1], previous=body.previous)
    elif body.type == "ping":
        for subscription in events.receivers(store, account.id, "ping"):
            events.ping(store, subscription)
    else:
        view = partial(pricing.balance_view, store, account)
        events.emit(store, account.id, body.type, view, resource="/balance")
    return {"type": body.type, "deliveries": [*store.deliveries][before:]}


# --- faults -----------------------------------------------------------------------------------------------


def _headers(given: dict[str, str | None]) -> dict[str, str | None]:
    for name, text in given.items():
        if not re.fullmatch(r"[A-Za-z0-9-]+", name) or (
            text is not None and not (text.isascii() and text.isprintable())
        ):
            raise ValueError(f"{name!r}: {text!r} is not a header that can be sent")
    return given


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return text


class FaultAction(Body):
    """What a fault does; ``code``, ``message``, ``details`` and ``retry_after`` say how its error answer
    looks.
    """

    drop: Literal["before", "after"] = LEFT_OUT
    truncate: int = Field(LEFT_OUT, ge=0)
    delay: float = Field(LEFT_OUT, ge=0, le=600)
    status: int = Field(LEFT_OUT, ge=400, le=599)
    refunded: int = Field(LEFT_OUT, ge=400, le=599)
    panel_timeout: Literal["active", "cancelled", "failed"] = LEFT_OUT
    registrar: Literal["pending", "refused", "never"] = LEFT_OUT
    ip: Literal["never"] = LEFT_OUT
    patch: dict[str, object] = LEFT_OUT
    headers: Annotated[dict[str, str | None], AfterValidator(_headers)] = LEFT_OUT
    code: str = LEFT_OUT
    retry_after: float = Field(LEFT_OUT, ge=0, le=86400)
    message: str = LEFT_OUT
    details: dict[str, object] = LEFT_OUT

    @model_validator(mode="after")
    def _does_something(self) -> "FaultAction":
        if self.model_fields_set <= {"code", "retry_after", "message", "details"}:
            raise ValueError(
                "does nothing: it needs one of drop, truncate, delay, status, refunded, panel_timeout, …"
            )
        return self


class FaultBody(Body):
    method: str | None = None
    path: Annotated[str, AfterValidator(_pattern)] | None = None
    after: int = Field(0, ge=0)
    times: int = Field(1, ge=1)
    action: FaultAction


def arm_fault(core: Core, body: FaultBody) -> object:
    """Arm a fault for the next matching requests."""
    method = body.method.upper() if body.method else None
    columns = dict(body) | {"method": method, "action": body.action.given()}
    return {"id": core.store.add(Fault(**columns)).id}


def list_faults(core: Core) -> object:
    """The faults that are armed, oldest first; ``after`` and ``times`` are what is left of them."""
    return [
        {name: value for name, value in log_redaction.masked(fault.columns()).items() if name != "seq"}
        for fault in core.store.faults.values()
    ]


def remove_fault(core: Core, id: int) -> object:
    fault = find(core.store.faults, id, "fault")
    core.store.remove(fault)
    return {"id": fault.id}


def clear_faults(core: Core) -> object:
    cleared = list(core.store.faults.values())
    for fault in cleared:
        core.store.remove(fault)
    return {"cleared": len(cleared)}


# --- what arrived, what was charged, what exists: for tests and account checks, secrets masked

APART_FROM_LEDGER = ("seq", "gateway", "description")
HIDDEN_KINDS = ("stored", "tasks", "faults", "movements", "requests")


class RequestsQuery(BaseModel):
    """Unknown parameters are ignored."""

    since: int = Field(0, ge=0)
    last: int | None = Field(None, ge=1)


def list_requests(core: Core, query: RequestsQuery) -> object:
    """What arrived under /v1, oldest first; ``last``: at most so many, the newest."""
    rows = [row for row in core.store.requests.values() if row.id > query.since]
    return [log_redaction.logged_request(row) for row in (rows[-query.last :] if query.last else rows)]


def list_movements(core: Core) -> object:
    """Every movement of money."""
    return [
        {name: value for name, value in row.columns().items() if name not in APART_FROM_LEDGER}
        | {"at": format_timestamp(row.at), "amount": format_money(row.amount)}
        for row in core.store.movements.values()
    ]


def list_objects(core: Core) -> object:
    """Everything that exists, by kind, with what an account check needs. Deleted servers are not listed."""
    return {
        kind: [
            {"kind": kind, **log_redaction.masked(row.columns()), **_api_view(row, core.store)}
            for row in table.values()
            if not (isinstance(row, ServerRow) and row.is_gone)
        ]
        for kind, table in core.store.tables.items()
        if kind not in HIDDEN_KINDS
    }


def _api_view(row: Row, store: Store) -> View:
    """What an account check needs besides the columns: cost, currency, account."""
    if isinstance(row, ServerRow):
        view = serializers.server(row, store)
        cost = {name: view["billing"][name] for name in ("price_monthly", "currency")}
        return {**view, **cost, "is_sandbox": row.is_sandbox}
    if isinstance(row, AddressRow):
        server = store.servers[row.server_id]
        return {"account_id": server.account_id, "currency": store.accounts[server.account_id].currency}
    if isinstance(row, DomainRow):
        view = serializers.domain(row, store)
        return {"price_renew": view["price_renew"], "currency": view["currency"]}
    return {}


ROUTES = (
    Route("GET", "/", ready),
    Route("POST", "/reset", reset),
    Route("POST", "/snapshot", snapshot),
    Route("POST", "/restore", restore, locked=False),
    Route("POST", "/clock", advance_clock, locked=False),
    Route("GET", "/due", list_due),
    Route("PATCH", "/service", edit_service),
    Route("PUT", "/webhook-routes", replace_webhook_routes),
    Route("POST", "/events", fire_event),
    Route("GET", "/faults", list_faults),
    Route("POST", "/faults", arm_fault),
    Route("DELETE", "/faults/{id}", remove_fault),
    Route("DELETE", "/faults", clear_faults),
    Route("GET", "/requests", list_requests),
    Route("GET", "/ledger", list_movements),
    Route("GET", "/objects", list_objects),
)
