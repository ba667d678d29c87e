"""Paying a server further ahead (API document, "Servers": ``POST /servers/{server_id}/renew``)."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pulumi_hosting.actions.action import ActionPlan, OfServer
from pulumi_hosting.actions.periods import Moment, Period, moment
from pulumi_hosting.actions.renewal import PaidAhead, Seen, until
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import ApiError, InvalidInput
from pulumi_hosting.exactly_once import catalog_reads, order_facts
from pulumi_hosting.resources.base import OneOf, WholeNumber
from pulumi_hosting.resources.server_fields import MOST_HOURS, ServerState
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

_CENT = Decimal("0.01")


class ServerRenewInputs(OfServer):
    until: Moment = until(
        "the next payment is due",
        "The period bought must reach it for certain, a month counting 30 days or less.",
    )
    months: Annotated[WholeNumber, AfterValidator(OneOf(m.MONTHS))] | None = optional(
        "Months to buy, for a monthly server: 1, 3, 6 or 12. Default: the fewest that reach until."
    )
    hours: Annotated[WholeNumber, Field(le=MOST_HOURS)] | None = optional(
        "Hours to buy, for an hourly server: 1 to 720. Default: the fewest that reach until."
    )

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


class ServerRenew(PaidAhead[ServerRenewInputs, ServerRenewed, m.Server, ServerState, m.RenewResult]):
    kind: ClassVar[str] = "server_renew"
    title: ClassVar[str] = "renewal of a server"
    result: ClassVar[str] = "server"
    scopes: ClassVar = ("servers:read", "servers:order")
    resource = SERVER
    date = "next_due_at"
    invoices = "vds_renewal"
    longer = "a longer period"
    gone = "was deleted meanwhile; nothing was charged for it by this run"
    undated = (
        "server {0.name} (id {0.id}) has no due date: nothing shows how far it is paid. "
        "Next: ask the provider"
    )
    smallest = Period("months", 1)
    parts = ("servers", "orders_and_servers")

    def due(self, found: m.Server) -> datetime | None:
        return found.billing.next_due_at if found.billing else None

    def periods(self, found: m.Server, due: datetime, inputs: ServerRenewInputs) -> Sequence[Period]:
        unit: Literal["months", "hours"] = "hours" if _billing(found).cycle == "hourly" else "months"
        given, other = (inputs.hours, inputs.months) if unit == "hours" else (inputs.months, inputs.hours)
        if other is not None:
            field = "months" if unit == "hours" else "hours"
            reason = f"the server is paid by the {unit[:-1]}: give {unit}, or leave both out"
            raise InvalidInput({field: reason}, self.title)
        choices: tuple[int, ...] = m.MONTHS
        if given is not None:
            choices = (given,)
        elif unit == "hours":
            choices = (min(math.ceil((moment(inputs.until) - due) / timedelta(hours=1)), MOST_HOURS),)
        return [Period(unit, count) for count in choices]

    def cost(self, request: Request, seen: Seen[m.Server]) -> tuple[Cost, bool]:
        """The period that the server renews by costs its ``recurring_amount``, bought addresses included. Any
        other costs the quote, and the addresses in proportion.
        """
        server, billing, period = seen.found, _billing(seen.found), seen.period
        unit = 1 if billing.cycle == "hourly" else billing.months
        exact = period.count == unit
        amount, how = (billing.recurring_amount, "") if exact else _quoted(request, server, period, unit)
        what = f"server {server.name}, {period} from {as_text(seen.due.replace(microsecond=0))}{how}"
        return catalog_reads.charge(request, amount, billing.currency, what, fresh=True), exact

    def revives(self, state: ServerState) -> dict[str, object]:
        # What a payment makes of a suspension is the service's to say.
        return {"status": "active", "power": None} if state.status == "suspended" else {}

    def perform(self, request: Request, inputs: ServerRenewInputs, plan: ActionPlan) -> ServerRenewed:
        renewed = super().perform(request, inputs, plan)
        if renewed.next_due_at is None or moment(renewed.next_due_at) < moment(inputs.until):
            request.warn(
                f"server {renewed.id} was renewed and shows {renewed.next_due_at} as its due date, which "
                f"is before {inputs.until}"
            )
        return renewed

    def told(self, request: Request, state: ServerState, answer: m.RenewResult | None) -> dict[str, object]:
        if answer is None:
            return {}
        shown: dict[str, object] = {"invoice_id": as_text(answer.invoice_id)}
        if state.mode == "test" and answer.next_due_at:  # a simulated renewal may not show in later reads
            shown["next_due_at"] = as_text(answer.next_due_at)
        return shown

    def is_outdated(self, request: Request, id: int, error: ApiError) -> bool:
        return order_facts.is_outdated(request, str(id), error)

    def is_taken_back(self, request: Request, seen: Seen[m.Server], answer: m.RenewResult) -> bool:
        if answer.invoice_id is None or not self.is_unchanged(request, seen):
            return False
        try:
            return request.client.invoices.get(answer.invoice_id).status in ("refunded", "cancelled")
        except ApiError:
            return False


def _billing(server: m.Server) -> m.ServerBilling:
    assert server.billing is not None  # noqa: S101 — the plan has refused a server without
    return server.billing


def _quoted(request: Request, server: m.Server, period: Period, unit: int | None) -> tuple[Decimal, str]:
    billing, tariff = _billing(server), server.tariff.id if server.tariff else None
    desired = None if tariff is None else catalog_reads.quote(request, tariff, _query(period))
    if desired is None or tariff is None:
        amount, how = billing.recurring_amount / (unit or 1) * period.count, ", in proportion"
    elif unit is None:
        return desired.total, ", as quoted, bought addresses not counted"
    else:
        present = catalog_reads.quote(request, tariff, _query(Period(period.unit, unit)))
        beside = billing.recurring_amount - present.total if present else Decimal(0)
        amount, how = desired.total + beside / unit * period.count, ", as quoted"
    return amount.quantize(_CENT, ROUND_HALF_UP), how


def _query(period: Period) -> dict[str, object]:
    return {**period.given, **({"billing_cycle": "hourly"} if period.unit == "hours" else {})}
