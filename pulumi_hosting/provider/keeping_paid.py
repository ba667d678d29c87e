"""The renewal that ``keepPaid`` asks for: shown and counted when an object is compared, carried out with its
update."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.budget import Budget
from pulumi_hosting.provider import spending
from pulumi_hosting.resources.base import AnyResource, State
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import LimitExceeded
from pulumi_hosting.session.request import Request

if TYPE_CHECKING:
    from pulumi_hosting.actions.action import ActionOutcome
    from pulumi_hosting.actions.keep_paid import Renewal


def _keep_paid() -> ModuleType:
    """Loaded for those who declare it: all actions come with it, a tenth of a provider's start."""
    from pulumi_hosting.actions import keep_paid

    return keep_paid


def show(
    budget: Budget, request: Request, resource: AnyResource, state: State, declared: Mapping[str, object]
) -> "ActionOutcome | None":
    """What the update will renew, counted with its price in this run; None if nothing, or if that is not
    known or not allowed, with a warning."""
    asks, request = declared.get("keep_paid"), _counted_apart(request)
    if asks is None or (state.mode == "test" and not request.client.is_test_key):
        return None
    try:
        due: Renewal | None = _keep_paid().renewal(request, resource, state, declared)
        if due is None and (paid := _keep_paid().unreported(request, resource, state, declared)):
            request.warn(f"an interrupted run renewed it: {paid.charged}")
    except HostingError as error:
        request.warn(f"whether keepPaid {asks} asks for a renewal is not known: {error}")
        return None
    planned = due.plan(request, partial(_show_price, budget, request)) if due else None
    if planned and planned.change is not None:
        before, after = (side["paid_until"] for side in planned.change)
        request.info(f"keepPaid {asks}: paid until {str(before)[:10]}, and with this renewal until {after}")
    return planned


def is_planned(budget: Budget, request: Request) -> bool:
    """Whether the comparison of this declaration has counted a renewal."""
    return budget.planned(_counted_apart(request).identity) is not None


def renewed(
    budget: Budget, request: Request, resource: AnyResource, state: State, declared: Mapping[str, object]
) -> State:
    """The state after the renewal, if one is due. What is refused is a warning. Raises ``Failed`` where the
    outcome is not known."""
    if declared.get("keep_paid") is None:
        return state
    request = _counted_apart(request)
    due: Renewal | None = _keep_paid().renewal(request, resource, state, declared)
    done = due and due.carry_out(request, partial(budget.must_book, request.identity))
    if not (due and done):
        return state
    paid = spending.PaidCreation(budget, request)
    paid.save(done.result)
    if paid.exceeded:
        request.warn(paid.exceeded)
    found: State = apply.read(request, resource, state) or state
    # a simulated renewal shows in its answer alone
    return found.model_copy(update={due.date: getattr(done.result, due.date)})


def _counted_apart(request: Request) -> Request:
    """The same, counted beside what making the object would cost."""
    return replace(request, identity=f"{request.identity} keep_paid")


def _show_price(budget: Budget, request: Request, cost: Cost | None) -> None:
    if refusal := budget.unpriced() if cost is None else spending.show_price(budget, request, cost):
        raise LimitExceeded(refusal)
