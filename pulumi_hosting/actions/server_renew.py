"""Paying a server further ahead (API document, "Servers": ``POST /servers/{server_id}/renew``).

A date is declared, so a second run finds it reached. The key is made of the date that was seen, so two
runs that see the same one can pay once between them, whatever period they ask for.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pulumi_hosting.actions.action import Action, ActionPlan, OfServer, from_balance, resolve
from pulumi_hosting.actions.periods import Moment, after_hours, after_months, moment
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import ApiError, InvalidInput, NotFound, ServerBlocked
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.charges import charge
from pulumi_hosting.resources.base import OneOf, WholeNumber
from pulumi_hosting.resources.server_fields import ServerState
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

MOST_HOURS = 720
_CENT = Decimal("0.01")


class ServerRenewInputs(OfServer):
    until: Annotated[
        Moment,
        Field(
            description="Renew only while the next payment is due before this: a date (its start in UTC) or "
            "an RFC 3339 timestamp with a zone. The period bought must reach it for certain, a month "
            "counting 30 days or less."
        ),
    ]
    months: Annotated[
        Annotated[WholeNumber, AfterValidator(OneOf(m.MONTHS))] | None,
        Field(
            description="Months to buy, for a monthly server: 1, 3, 6 or 12. The fewest that "
            "reach until, when absent."
        ),
    ] = None
    hours: Annotated[
        Annotated[WholeNumber, Field(le=MOST_HOURS)] | None,
        Field(
            description="Hours to buy, for an hourly server: 1 to 720. The fewest that "
            "reach until, when absent."
        ),
    ] = None

    @model_validator(mode="after")
    def _one_period(self) -> Self:
        if self.months is not None and self.hours is not None:
            raise ValueError("hours: give either months or hours, not both")
        return self


class ServerRenewed(ServerState):
    months: int | None = optional(
        "Months that the renewal buys; empty for an hourly server, or when nothing is done."
    )
    hours: int | None = optional(
        "Hours that the renewal buys; empty for a monthly server, or when nothing is done."
    )
    charged: str | None = optional(
        "What the renewal of the server cost (decimal, in currency); empty when nothing was done."
    )
    invoice_id: str | None = optional(
        "Invoice of the renewal; empty in the sandbox and when nothing was done."
    )
    balance_after: str | None = optional(
        "What the account holds after the renewal (decimal, in currency); empty when nothing was done."
    )


@dataclass(frozen=True)
class _Period:
    unit: Literal["months", "hours"]
    count: int

    def __str__(self) -> str:
        return f"{self.count} {self.unit if self.count > 1 else self.unit[:-1]}"

    def after(self, due: datetime) -> datetime:
        """Until when it pays for certain."""
        return after_months(due, self.count) if self.unit == "months" else after_hours(due, self.count)


class ServerRenew(Action[ServerRenewInputs, ServerRenewed]):
    kind: ClassVar[str] = "server_renew"
    title: ClassVar[str] = "renewal of a server"
    result: ClassVar[str] = "server"
    charges: ClassVar[bool] = True
    scopes: ClassVar = ("servers:read", "servers:order")

    def plan(self, request: Request, inputs: ServerRenewInputs) -> ActionPlan:
        state = resolve(request, SERVER, id=inputs.id, name=inputs.name)
        if state.next_due_at is not None and moment(state.next_due_at) >= moment(inputs.until):
            return self._nothing(state)
        # a list may be a minute old, and the key is made of what is seen here
        server = _fresh(request, state.id)
        due = server.billing.next_due_at if server.billing else None
        if server.billing is None or due is None:
            raise ResourceError(
                f"server {state.name} (id {state.id}) has no due date: nothing shows how far it is paid. "
                f"Next: ask the provider"
            )
        if due >= moment(inputs.until):
            return self._nothing(state.model_copy(update={"next_due_at": as_text(due)}))
        period = _period(server.billing, inputs)
        cost, exact = _cost(request, server, server.billing, period)
        before = _renewed(state)
        after = before.model_copy(
            update={
                period.unit: period.count,
                "next_due_at": None,
                "charged": str(cost.amount) if exact else None,
            }
            # What a payment makes of a suspension is the service's to say.
            | ({"status": "active", "power": None} if state.status == "suspended" else {})
        )
        change = {"paid_until": as_text(due)}, {"paid_until": f">= {inputs.until}", period.unit: period.count}
        reaches = as_text(period.after(due))
        return ActionPlan(
            True,
            before.shown(),
            after.shown(),
            cost,
            change=change,
            reaches=reaches,
            target=(SERVER, state),
            data=(server, period),
        )

    @staticmethod
    def _nothing(state: ServerState) -> ActionPlan:
        shown = _renewed(state).shown()
        return ActionPlan(
            False, shown, shown, note=f"server {state.name} is paid until {state.next_due_at} already"
        )

    def perform(self, request: Request, inputs: ServerRenewInputs, plan: ActionPlan) -> ServerRenewed:
        server, period = plan.data
        seen = server.billing.next_due_at
        try:
            answer = charge(
                request,
                what=f"renewal of server {server.id}",
                kind=self.kind,
                subject=f"server {server.id}",
                operation="renew_server",
                facts={"server_id": server.id, "next_due_at": as_text(seen)},
                send=lambda key: _renew(request, server.id, period, key),
                happened=lambda: _due(_fresh(request, str(server.id))) != seen,
                concerns=lambda invoice: (
                    invoice.type == "vds_renewal"
                    and any(item.server_id == server.id for item in invoice.items or ())
                ),
                price=plan.cost.amount if plan.cost else None,
                is_outdated=lambda error: _is_contradicted(request, server.id, error),
                ask=lambda id, key: request.client.servers.renew(id, months=1, idempotency_key=key),
                is_of_the_past=lambda answer: self._is_taken_back(request, server, answer),
            )
        finally:
            for key in ("servers", "orders_and_servers", "balance"):
                request.reads.forget(key)
        state = resolve(request, SERVER, id=str(server.id))
        renewed = _renewed(state).model_copy(update={period.unit: period.count})
        if answer is None:
            request.info(f"server {server.id}: the answer of the renewal was lost; the server shows it")
        else:
            shown = {
                "charged": as_text(answer.charged),
                "invoice_id": None if answer.invoice_id is None else str(answer.invoice_id),
                "balance_after": as_text(answer.balance_after),
            }
            if state.mode == "test" and answer.next_due_at:  # a simulated renewal may not show in later reads
                shown["next_due_at"] = as_text(answer.next_due_at)
            renewed = renewed.model_copy(update=shown)
        if renewed.next_due_at is None or moment(renewed.next_due_at) < moment(inputs.until):
            request.warn(
                f"server {server.id} was renewed and shows {renewed.next_due_at} as its due date, which "
                f"is before {inputs.until}"
            )
        return renewed

    @staticmethod
    def _is_taken_back(request: Request, server: m.Server, answer: m.RenewResult) -> bool:
        """Whether the answer replays a renewal that was refunded since: the date is the old one again."""
        if answer.invoice_id is None or _due(_fresh(request, str(server.id))) != _due(server):
            return False
        try:
            return request.client.invoices.get(answer.invoice_id).status in ("refunded", "cancelled")
        except ApiError:
            return False


def _fresh(request: Request, id: str) -> m.Server:
    try:
        return request.client.servers.get(int(id))
    except NotFound:
        raise ResourceError(
            f"server {id} was deleted meanwhile; nothing was charged for it by this "
            "run. Next: correct id or name"
        ) from None


def _due(server: m.Server) -> datetime | None:
    return server.billing.next_due_at if server.billing else None


def _renewed(state: ServerState) -> ServerRenewed:
    # Validated from its plain values: a state that was only read holds no secret.
    return ServerRenewed.model_validate({**state.shown(), "charged": None, "invoice_id": None})


def _renew(request: Request, server_id: int, period: _Period, key: str) -> m.RenewResult:
    if period.unit == "hours":
        return request.client.servers.renew(server_id, hours=period.count, idempotency_key=key)
    months: Any = period.count
    return request.client.servers.renew(server_id, months=months, idempotency_key=key)


def _is_contradicted(request: Request, server_id: int, error: ApiError) -> bool:
    """Whether a refusal that speaks of the server's state is an old one."""
    if isinstance(error, ServerBlocked):
        flags = _fresh(request, str(server_id)).flags
        return flags is not None and flags.blocked is False
    if error.code == "cancel_pending":
        return _fresh(request, str(server_id)).status != "pending_cancel"
    if error.code == "service_state":
        return _fresh(request, str(server_id)).status in ("active", "stopped", "suspended")
    return False


def _period(billing: m.ServerBilling, inputs: ServerRenewInputs) -> _Period:
    """The period to buy: the given one, or the smallest, if it reaches the declared date for certain.
    Raises ``InvalidInput``.
    """
    due, until = billing.next_due_at, moment(inputs.until)
    assert due is not None  # noqa: S101 — the plan has refused a server without
    unit: Literal["months", "hours"] = "hours" if billing.cycle == "hourly" else "months"
    given, other = (inputs.hours, inputs.months) if unit == "hours" else (inputs.months, inputs.hours)
    if other is not None:
        field = "months" if unit == "hours" else "hours"
        reason = f"the server is paid by the {unit[:-1]}: give {unit}, or leave both out"
        raise InvalidInput({field: reason}, ServerRenew.title)
    choices: tuple[int, ...] = m.MONTHS
    if given is not None:
        choices = (given,)
    elif unit == "hours":
        choices = (min(math.ceil((until - due) / timedelta(hours=1)), MOST_HOURS),)
    periods = [_Period(unit, count) for count in choices]
    for period in periods:
        if period.after(due) >= until:
            return period
    field, advice = (
        ("until", "give an earlier date")
        if given is None
        else (unit, "give a longer period, or an earlier until")
    )
    reason = (
        f"{periods[-1]} from {as_text(due)} reach {as_text(periods[-1].after(due))} for certain, not "
        f"{as_text(until)}; nothing was sent. Next: {advice}"
    )
    raise InvalidInput({field: reason}, ServerRenew.title)


def _cost(request: Request, server: m.Server, billing: m.ServerBilling, period: _Period) -> tuple[Cost, bool]:
    """What the renewal charges, and whether that is exact.

    The period that the server renews by costs its ``recurring_amount``, bought addresses included. Any other
    costs the quote, and the addresses in proportion.
    """
    unit = 1 if billing.cycle == "hourly" else billing.months
    exact = period.count == unit
    amount, how = (billing.recurring_amount, "") if exact else _quoted(request, server, billing, period, unit)
    due = as_text(billing.next_due_at.replace(microsecond=0) if billing.next_due_at else None)
    what = f"server {server.name}, {period} from {due}{how}"
    return from_balance(request, amount, billing.currency, what), exact


def _quoted(
    request: Request, server: m.Server, billing: m.ServerBilling, period: _Period, unit: int | None
) -> tuple[Decimal, str]:
    tariff = server.tariff.id if server.tariff else None
    desired = (
        None if tariff is None else catalog_reads.quote(request, tariff, _query(period.unit, period.count))
    )
    if desired is None or tariff is None:
        return (billing.recurring_amount / (unit or 1) * period.count).quantize(
            _CENT, ROUND_HALF_UP
        ), ", in proportion"
    if unit is None:
        return desired.total, ", as quoted, bought addresses not counted"
    present = catalog_reads.quote(request, tariff, _query(period.unit, unit))
    beside = billing.recurring_amount - present.total if present else Decimal(0)
    return (desired.total + beside / unit * period.count).quantize(_CENT, ROUND_HALF_UP), ", as quoted"


def _query(unit: str, count: int) -> dict[str, object]:
    return {unit: count, **({"billing_cycle": "hourly"} if unit == "hours" else {})}


SERVER_RENEW = ServerRenew()
