"""What a resource's creation may charge in this run: shown in the preview, checked again before the order."""

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from decimal import Decimal

from pulumi_hosting.api.error_codes import parted
from pulumi_hosting.client.exceptions import HostingError, InvalidInput
from pulumi_hosting.exactly_once import catalog_reads, purchase_journal
from pulumi_hosting.planning import paid_reads
from pulumi_hosting.planning.budget import Budget, would_charge
from pulumi_hosting.planning.plan import takeover_of
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.provider.refusals import name_of
from pulumi_hosting.provider.replacements import Declaring, Replacements
from pulumi_hosting.resources.base import AnyResource, Inputs, State
from pulumi_hosting.resources.powers import Priced, Refunded
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request

_LOOK_AT_INVOICE = "Next: look at the invoice, then run again"


def show_takeover(budget: Budget, request: Request, taken: Takeover) -> str | None:
    """Show what is taken over instead of being made. It costs nothing and nothing is counted; a refusal if
    that differs from what was planned before.
    """
    taken.announce(request)
    return budget.found(request.identity, _nothing(taken))


def show_price(
    budget: Budget, request: Request, cost: Cost, replacements: Replacements | None = None
) -> str | None:
    """Show what making it charges; a refusal if that is more than the run may charge, or, in a run with
    ``replacements``, more than it can pay."""
    if refusal := budget.refusal(request.identity, cost):
        return refusal
    paid_reads.warn_of_store(request)
    if beyond := budget.beyond_month(request.identity, request.client, cost):
        if not request.client.is_test_key:
            return beyond
        request.warn(f"with a live key it would be refused: {beyond}")
    currency, later = cost.currency, budget.later()
    total, lacking = budget.total(currency), budget.lacking(currency)
    is_test = request.client.is_test_key
    line = f"{'would' if is_test else 'will'} charge {cost}; run total {total} {currency}{later}"
    tell = request.info if is_test else request.announce or request.info  # nothing replaces "would charge"
    replaced = [] if replacements is None or is_test else replacements.under_way()
    declared = replacements.of(request.label) if replacements and replaced else None
    if lacking is None:
        if declared in replaced:
            request.warn(f"{line}. Whether the balance covers it is not known: the key may not read it")
        else:
            tell(line)
        return None
    opening = budget.openings.get(currency)
    line += f", balance {opening} {currency}"
    if lacking <= 0:
        tell(f"{line} ({'sufficient so far' if later else 'sufficient'})")
        return None
    if not replaced:
        request.warn(f"{line} (insufficient). Next: top up {lacking} {currency}")
        return None
    resource, wanted = (declared.resource, declared.wanted) if declared else (None, None)
    if isinstance(resource, Priced) and resource.may_be_paid(request, wanted() if wanted else {}):
        request.warn(
            f"{line} (insufficient, unless the order under way is that of an interrupted run). Next: if it "
            f"is not, top up {lacking} {currency}"
        )
        return None
    credit = sum(
        (_credit(request, found.resource, found.state) for found in replaced if found.state), Decimal("0.00")
    )
    names = " and ".join(map(str, replaced))
    if lacking <= credit:
        request.warn(
            f"{line} (insufficient before about {credit} {currency} are credited for {names}, which must be "
            f"deleted first for that: delete_before_replace). Next: top up {lacking} {currency}"
        )
        return None
    budget.refused(request.identity)
    return (
        f"{would_charge(cost, total)}, and it replaces {names}: the balance of {opening} "
        f"{currency} and the {credit} {currency} credited for that do not cover it; it is not ordered, and "
        f"nothing is deleted for it. Next: top up {lacking - credit} {currency}"
    )


def _credit(request: Request, resource: AnyResource, state: State) -> Decimal:
    """What deleting the object credits, as far as it is known."""
    known = resource.refund(request, state) if isinstance(resource, Refunded) else None
    return known or Decimal("0.00")


def must_be_payable(
    budget: Budget,
    request: Request,
    awaited: Declaring,
    resource: AnyResource,
    state: State,
    deleted: list[str],
) -> None:
    """Raise ``ResourceError`` if the object is to be deleted before the ``awaited`` one takes its place,
    and that one cannot be ordered: later it would be lost. ``deleted``: what was deleted before it.
    """
    wanted = awaited.values()
    if not isinstance(resource, Priced) or request.client.is_test_key:
        return
    if resource.Inputs.adopted_by(wanted) is not None:
        return
    # If it was never read nor compared, what its check as a new object would take over is the object itself.
    planned = None if awaited.state is None else budget.planned(awaited.identity)
    cost = planned or resource.cost(request, wanted)
    if budget.stopped:
        why: str | None = f"nothing more is ordered in this run: {budget.stopped}. {_LOOK_AT_INVOICE}"
    elif cost is None:
        why = budget.unpriced() if awaited.known else None
    else:
        why = budget.refusal(awaited.identity, cost) or _unpayable(budget, request, resource, state, cost)
    if why:
        reason, step = parted(why)
        before = f" Deleted before it in this run: {', '.join(deleted)}." if deleted else ""
        raise ResourceError(
            f"{resource.title} {state.id} is not deleted, since what replaces it cannot be ordered: {reason}."
            f"{before} Next: {step}"
        )


def _unpayable(
    budget: Budget, request: Request, resource: AnyResource, state: State, cost: Cost
) -> str | None:
    """Why the balance of now, and what this deletion credits, do not pay what is still to be ordered."""
    found = catalog_reads.balance(request, fresh=True) if cost.amount else None
    if found is None:
        return None
    currency = cost.currency
    lacking = max(cost.amount - found.balance, budget.lacking(currency) or Decimal(0))
    request.session.reads.forget("refund", state.id)  # an address of it may be gone, and its credit with it
    if lacking <= 0 or lacking <= (credit := _credit(request, resource, state)):
        return None
    return (
        f"it costs {cost.amount} {currency} ({cost.what}), the orders of this run cost "
        f"{budget.total(currency)} {currency} in all, the balance is {found.balance} {currency}, and the "
        f"deletion credits {credit} {currency}. Next: top up {lacking - credit} {currency}"
    )


def show_unpriced(budget: Budget, request: Request, resource: AnyResource, why: str) -> None:
    """Show ``why`` the price is not known yet, and the total of the run, which leaves it out."""
    budget.priced_later(request.identity, resource.title)
    currency = budget.currency
    total = f"; run total {budget.total(currency)} {currency}{budget.later()}" if currency else ""
    (request.announce or request.info)(f"{why}{total}")


def must_be_affordable(budget: Budget, request: Request, resource: AnyResource, inputs: Inputs) -> None:
    """Raise ``ResourceError`` or ``InvalidInput`` if this run must not order it."""
    if not isinstance(resource, Priced) or resource.Inputs.adopted_by(inputs.given()) is not None:
        return
    if stopped := budget.stopped:
        raise ResourceError(f"nothing more is ordered in this run: {stopped}. {_LOOK_AT_INVOICE}")
    if budget.limited is None:
        return
    cost = budget.planned(request.identity)
    if cost is None and (taken := takeover_of(request, resource, inputs)) is not None:
        budget.found(request.identity, _nothing(taken))
        return
    cost = cost or resource.cost(request, inputs.given())
    refusal = budget.unpriced() if cost is None else budget.refusal(request.identity, cost)
    if refusal:
        raise _beyond_the_limit(request, resource, refusal)


def approve(
    budget: Budget, request: Request, resource: AnyResource, inputs: Inputs
) -> AbstractContextManager[object]:
    """Held while it is paid. Shows and books the price of what was announced as found and has to be paid
    after all: another resource has it, or it is gone. Raises ``InvalidInput`` beyond the limit."""
    if not isinstance(resource, Priced):
        return nullcontext()
    cost = budget.planned(request.identity)
    if budget.is_to_be_paid(request.identity):
        cost = resource.cost(request, inputs.given())
        refusal = budget.unpriced() if cost is None else show_price(budget, request, cost)
        if refusal:
            raise _beyond_the_limit(request, resource, refusal)
    if cost is None and budget.month:
        cost = resource.cost(request, inputs.given())
    return request.session.paying(request, cost)


@dataclass
class PaidCreation:
    """What one creation makes and pays. ``made``: the object as it is known, once there is one; ``exceeded``:
    a sentence if its order cost more than was announced.
    """

    budget: Budget
    request: Request
    replacements: Replacements = field(default_factory=Replacements)
    made: State | None = None
    exceeded: str | None = None
    _told: bool = False

    def save(self, state: State) -> None:
        """Keep the object, and book and show what was charged for it, once."""
        self.made, charged = state, getattr(state, "charged", None)
        self.replacements.made(self.request.label)
        if charged is None or self._told:
            return
        self._told, request, amount = True, self.request, Decimal(charged)
        if not request.client.is_test_key and state.id not in request.taken_over:
            currency, invoice = getattr(state, "currency", None), getattr(state, "invoice_id", None)
            self.budget.moved("charged", amount, currency)
            cost = self.budget.planned(request.identity)
            # of several tariffs, the one that was ordered
            what = f" ({cost.choices.get(getattr(state, 'tariff', None) or '', cost.what)})" if cost else ""
            paid = f"charged {amount} {currency or ''}".rstrip()
            request.info(f"{paid}{what}{f', invoice {invoice}' if invoice else ''}")
        if exceeded := self.budget.charged(request.identity, amount):
            self.exceeded = f"{exceeded}; nothing more is ordered in this run. {_LOOK_AT_INVOICE}"


def show_unreported(request: Request, interrupted: purchase_journal.Entry | None, state: State) -> None:
    """Say what an interrupted run charged for an object that this one found, since it could not."""
    if interrupted is None or state.id not in request.taken_over:
        return
    with suppress(HostingError):  # what is found is saved
        kind, shown = request.kind or "", state.values()
        if paid := purchase_journal.unreported(request.client, interrupted, kind, shown):
            request.warn(f"an interrupted run bought it: {paid.charged}")


def exists(request: Request, resource: AnyResource, state: State) -> str:
    """That the object exists, and what it cost."""
    line = f"{resource.title} {state.id} exists"
    charged = None if state.id in request.taken_over else getattr(state, "charged", None)
    if charged is None:
        return line
    return f"{line} and was charged {charged} {getattr(state, 'currency', None) or ''}".rstrip()


def _nothing(taken: Takeover) -> Cost:
    return Cost(Decimal("0.00"), taken.currency or "", taken.reason)


def _beyond_the_limit(request: Request, resource: AnyResource, refusal: str) -> InvalidInput:
    title = f"{resource.title} {name_of(resource, {IDENTITY: request.identity})}"
    return InvalidInput({"max_charge": refusal}, title)
