"""Paying something further ahead: what the renewals of servers and domains share.

A date is declared, so a second run finds it reached. The key is made of the date that was seen, so two runs
that see the same one can pay once between them, whatever period they ask for.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field

from pulumi_hosting.actions.action import Action, ActionPlan, nothing, resolve
from pulumi_hosting.actions.periods import Period, moment
from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, InvalidInput, NotFound
from pulumi_hosting.exactly_once.charges import Charge
from pulumi_hosting.exactly_once.payments import is_of
from pulumi_hosting.resources.base import AnyResource, I, State
from pulumi_hosting.resources.domain import DomainState
from pulumi_hosting.resources.server_fields import ServerState
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

R = TypeVar("R", bound=State)
S = TypeVar("S", ServerState, DomainState)
A = TypeVar("A", m.RenewResult, m.DomainRenewResult)
O = TypeVar("O", m.Server, m.Domain)  # noqa: E741 — the object as the API shows it


def until(is_before: str, counting: str) -> Any:
    """The field ``until``. ``is_before``: of what date it speaks; ``counting``: what must reach it."""
    return Field(
        description=f"Renew only while {is_before} before this: a date (its start in UTC) or an RFC 3339 "
        f"timestamp with a zone. {counting}"
    )


@dataclass(frozen=True)
class Seen(Generic[O]):
    """``found``: the object as it was read just now, paid until ``due``; ``period``: what is bought."""

    found: O
    due: datetime
    period: Period


class PaidAhead(Action[I, R], Generic[I, R, O, S, A]):
    """A renewal. ``result`` is what is renewed too: ``server``, ``domain``."""

    charges: ClassVar[bool] = True
    resource: ClassVar[AnyResource]
    date: ClassVar[str]
    """The field of the state that shows until when it is paid."""
    invoices: ClassVar[str]
    """The type of the invoices of renewals."""
    longer: ClassVar[str]
    """What to give if the given period is too short."""
    gone: ClassVar[str]
    undated: ClassVar[str]
    """What to say of one that is not there any more, and of one that shows no date."""
    smallest: ClassVar[Period]
    parts: ClassVar[tuple[str, ...]]
    """What is not believed any more after a renewal, beside the balance."""

    def plan(self, request: Request, inputs: Any) -> ActionPlan:
        state = resolve(request, self.resource, id=inputs.id, name=inputs.name)
        paid_until = getattr(state, self.date)
        if paid_until is not None and moment(paid_until) >= moment(inputs.until):
            return self.paid_already(state)
        # a list may be a minute old, and the key is made of what is seen here
        found = self.fresh(request, int(state.id))
        due = self.due(found)
        if due is None:
            raise ResourceError(self.undated.format(state))
        if due >= moment(inputs.until):
            return self.paid_already(state.model_copy(update={self.date: as_text(due)}))
        seen = Seen(found, due, self._period(found, due, inputs))
        cost, is_exact = self.cost(request, seen)
        if under_way := self.under_way(request, seen, state):
            return under_way
        before, bought = self.renewed(state), seen.period.given
        brings = bought | {self.date: None, "charged": str(cost.amount) if cost and is_exact else None}
        return ActionPlan(
            True,
            before.shown(),
            before.model_copy(update=brings | self.revives(state)).shown(),
            cost,
            change=({"paid_until": as_text(due)}, {"paid_until": f">= {inputs.until}", **bought}),
            reaches=as_text(seen.period.after(due)),
            target=(self.resource, state),
            data=seen,
        )

    def perform(self, request: Request, inputs: Any, plan: ActionPlan) -> R:
        seen: Seen[O] = plan.data
        id, what = seen.found.id, f"{self.result} {seen.found.id}"
        try:
            answer = Charge(
                request,
                what=f"renewal of {what}",
                kind=self.kind,
                subject=what,
                operation=f"renew_{self.result}",
                facts={f"{self.result}_id": id, self.date: as_text(seen.due)},
                send=partial(self._renew, request, id, seen.period),
                happened=lambda: not self.is_unchanged(request, seen),
                concerns=lambda invoice: self.is_of(invoice, id),
                price=plan.cost.amount if plan.cost else None,
                is_outdated=lambda error: self.is_outdated(request, id, error),
                may_be_lifted=lambda error: self.may_be_lifted(request, id, error),
                ask=lambda id, key: self._renew(request, id, self.smallest, key),
                is_of_the_past=lambda answer: self.is_taken_back(request, seen, answer),
                bound_elsewhere=lambda: self.refuse_another(request, seen),
            ).once()
        finally:
            for part in (*self.parts, "balance"):
                request.reads.forget(part)
        state = resolve(request, self.resource, id=str(id))
        brought = seen.period.given
        if answer is None:
            request.info(f"{what}: the answer of the renewal was lost; the {self.result} shows it")
        else:
            brought["charged"] = as_text(answer.charged)
            brought["balance_after"] = as_text(answer.balance_after)
        return self.renewed(state).model_copy(update=brought | self.told(request, state, answer))

    def paid_already(self, state: S, note: str = "", **more: str) -> ActionPlan:
        """There is nothing to do."""
        shown = self.renewed(state).model_copy(update=more).shown()
        paid = f"{self.result} {state.name} is paid until {getattr(state, self.date)} already"
        return nothing(shown, note or paid)

    def renewed(self, state: State) -> R:
        """The result of a renewal before anything is known of it."""
        # Validated from its plain values: a state that was only read holds no secret.
        own = self.Result.__annotations__
        return self.Result.model_validate({name: v for name, v in state.shown().items() if name not in own})

    def is_of(self, invoice: m.Invoice, id: int) -> bool:
        """Whether the invoice is of a renewal of this object."""
        return is_of(invoice, (self.invoices,), **{f"{self.result}_id": id})

    def fresh(self, request: Request, id: int) -> O:
        """The object as it is now. Raises ``ResourceError`` if it is gone."""
        try:
            found: O = self._service(request).get(id)
        except NotFound:
            raise ResourceError(f"{self.result} {id} {self.gone}. Next: correct id or name") from None
        return found

    def is_unchanged(self, request: Request, seen: Seen[O]) -> bool:
        """Whether the object still shows the date that was seen."""
        return self.due(self.fresh(request, seen.found.id)) == seen.due

    def may_be_lifted(self, request: Request, id: int, error: ApiError) -> bool:
        """Whether a refusal may end with time alone: it is too early, or the object is suspended or expired.
        No document says when."""
        return error.code in ("conflict", "service_state")

    def _service(self, request: Request) -> Any:
        return getattr(request.client, f"{self.result}s")

    def _renew(self, request: Request, id: int, period: Period, idempotency_key: str) -> A:
        answer: A = self._service(request).renew(id, **period.given, idempotency_key=idempotency_key)
        return answer

    def _period(self, found: O, due: datetime, inputs: Any) -> Period:
        """The given period, or the smallest, if it reaches the declared date for certain. Raises
        ``InvalidInput``."""
        end, periods = moment(inputs.until), self.periods(found, due, inputs)
        for period in periods:
            if period.after(due) >= end:
                return period
        unit = period.unit
        field, advice = "until", "give an earlier date"
        if getattr(inputs, unit) is not None:
            field, advice = unit, f"give {self.longer}, or an earlier until"
        reaches = f"{period} from {as_text(due)} reach {as_text(period.after(due))} for certain"
        reason = f"{reaches}, not {inputs.until}; nothing was sent. Next: {advice}"
        raise InvalidInput({field: reason}, self.title)

    # --- what is special about a server or a domain

    @abstractmethod
    def due(self, found: O) -> datetime | None:
        """Until when it is paid."""

    @abstractmethod
    def periods(self, found: O, due: datetime, inputs: Any) -> Sequence[Period]:
        """What can be bought, the smallest first; the given one alone. Raises ``InvalidInput``."""

    @abstractmethod
    def cost(self, request: Request, seen: Seen[O]) -> tuple[Cost | None, bool]:
        """What it charges, if that is known, and whether that is exact."""

    @abstractmethod
    def is_outdated(self, request: Request, id: int, error: ApiError) -> bool:
        """Whether a refusal that speaks of the object's state is an old one."""

    @abstractmethod
    def is_taken_back(self, request: Request, seen: Seen[O], answer: A) -> bool:
        """Whether the answer replays a renewal that was returned since: the date is the old one again."""

    @abstractmethod
    def told(self, request: Request, state: S, answer: A | None) -> dict[str, object]:
        """What else the answer tells; it is None if it was lost."""

    def revives(self, state: S) -> dict[str, object]:
        """What else a renewal changes, as far as that can be known."""
        return {}

    def under_way(self, request: Request, seen: Seen[O], state: S) -> ActionPlan | None:
        """That nothing is done, if it was renewed and the date shows later."""
        return None

    def refuse_another(self, request: Request, seen: Seen[O]) -> None:
        """Stop if the key of this date belongs to another period, which was paid."""


AnyRenewal = PaidAhead[Any, Any, Any, Any, Any]
"""A renewal of anything: who has it knows its inputs and result by their fields alone."""
