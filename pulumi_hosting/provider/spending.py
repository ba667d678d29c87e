"""What a resource's creation may charge in this run: shown in the preview, checked again before the order."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning.budget import Budget
from pulumi_hosting.planning.plan import takeover_of
from pulumi_hosting.provider.conversion import IDENTITY
from pulumi_hosting.provider.refusals import name_of
from pulumi_hosting.resources.base import Resource, Takeover
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request

_LOOK_AT_INVOICE = "Next: look at the invoice, then run again"


def show_takeover(budget: Budget, request: Request, taken: Takeover) -> str | None:
    """Show what is taken over instead of being made. It costs nothing and nothing is counted; a refusal where
    that differs from what was planned before.
    """
    taken.announce(request)
    return budget.found(request.identity, _nothing(taken))


def show_price(budget: Budget, request: Request, cost: Cost) -> str | None:
    """Show what making it charges; a refusal where that is more than the run may charge."""
    if refusal := budget.refusal(request.identity, cost):
        return refusal
    total, later = budget.total(cost.currency), budget.later()
    charge = "would charge" if request.client.is_test_key else "will charge"
    line = f"{charge} {cost.amount} {cost.currency} ({cost.what}); run total {total} {cost.currency}{later}"
    balance = budget.opening(cost)
    if balance is None:
        request.info(line)
    elif total <= balance:
        request.info(f"{line}, balance {balance} {cost.currency} (sufficient{' so far' if later else ''})")
    else:
        request.warn(
            f"{line}, balance {balance} {cost.currency} (insufficient). "
            f"Next: top up {total - balance} {cost.currency}"
        )
    return None


def show_unpriced(budget: Budget, request: Request, resource: Resource[Any, Any], why: str) -> None:
    """Show ``why`` the price is not known yet, and the total of the run, which leaves it out."""
    budget.priced_later(request.identity, resource.title)
    currency = budget.currency
    total = f"; run total {budget.total(currency)} {currency}{budget.later()}" if currency else ""
    request.info(f"{why}{total}")


def must_be_affordable(budget: Budget, request: Request, resource: Resource[Any, Any], inputs: Any) -> None:
    """Raise ``ResourceError`` or ``InvalidInput`` where this run must not order it."""
    if not isinstance(resource, Priced) or resource.Inputs.adopted_by(inputs.given()) is not None:
        return
    if stopped := budget.stopped:
        raise ResourceError(f"nothing more is ordered in this run: {stopped}. {_LOOK_AT_INVOICE}")
    if budget.limit is None:
        return
    cost = budget.planned(request.identity)
    if cost is None and (taken := takeover_of(request, resource, inputs)) is not None:
        budget.found(request.identity, _nothing(taken))
        return
    cost = cost or resource.cost(request, inputs.given())
    if cost is not None:
        if refusal := budget.refusal(request.identity, cost):
            raise _beyond_the_limit(request, resource, refusal)
    elif refusal := budget.unpriced():
        raise _beyond_the_limit(request, resource, refusal)


def approve_after_all(budget: Budget, request: Request, resource: Resource[Any, Any], inputs: Any) -> None:
    """Show and book the price of what was announced as found and has to be paid after all: another resource
    has it, or it is gone. Raises ``InvalidInput`` beyond the limit."""
    if not isinstance(resource, Priced) or not budget.is_to_be_paid(request.identity):
        return
    cost = resource.cost(request, inputs.given())
    refusal = budget.unpriced() if cost is None else show_price(budget, request, cost)
    if refusal:
        raise _beyond_the_limit(request, resource, refusal)


@dataclass
class Purchase:
    """What one creation makes and pays. ``made``: the object as it is known, once there is one; ``exceeded``:
    a sentence if its order cost more than was announced.
    """

    budget: Budget
    request: Request
    made: Any = None
    exceeded: str | None = None
    _told: bool = False

    def save(self, state: Any) -> None:
        """Keep the object, and book and show what was charged for it, once."""
        self.made, charged = state, getattr(state, "charged", None)
        if charged is None or self._told:
            return
        self._told, request = True, self.request
        if not request.client.is_test_key and state.id not in request.taken_over:
            self._show(Decimal(charged), getattr(state, "currency", None), getattr(state, "invoice_id", None))
        if exceeded := self.budget.charged(request.identity, Decimal(charged)):
            self.exceeded = f"{exceeded}; nothing more is ordered in this run. {_LOOK_AT_INVOICE}"

    def _show(self, amount: Decimal, currency: str | None, invoice: str | None) -> None:
        self.budget.moved("charged", amount, currency)
        cost = self.budget.planned(self.request.identity)
        what = f" ({cost.what})" if cost else ""
        paid = f"charged {amount} {currency or ''}".rstrip()
        self.request.info(f"{paid}{what}{f', invoice {invoice}' if invoice else ''}")


def exists(request: Request, resource: Resource[Any, Any], state: Any) -> str:
    """That the object exists, and what it cost."""
    line = f"{resource.title} {state.id} exists"
    charged = None if state.id in request.taken_over else getattr(state, "charged", None)
    if charged is None:
        return line
    return f"{line} and was charged {charged} {getattr(state, 'currency', None) or ''}".rstrip()


def _nothing(taken: Takeover) -> Cost:
    return Cost(Decimal("0.00"), taken.currency or "", taken.reason)


def _beyond_the_limit(request: Request, resource: Resource[Any, Any], refusal: str) -> InvalidInput:
    title = f"{resource.title} {name_of(resource, {IDENTITY: request.identity})}"
    return InvalidInput({"max_charge": refusal}, title)
