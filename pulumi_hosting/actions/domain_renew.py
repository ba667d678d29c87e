"""Paying a domain further ahead (API document, "Domains": ``POST /domains/{domain_id}/renew``).

A date is declared, so a second run finds it reached. The registrar may accept and show the new date only
with a later sync: until then the paid invoice tells that it is under way, and the key, which is made of the
date that was seen, keeps it from being paid again.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import Field

from pulumi_hosting.actions.action import Action, ActionPlan, OfDomain, from_balance, resolve
from pulumi_hosting.actions.periods import Moment, after_years, moment
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import DomainBlocked, Forbidden, InvalidInput, NotFound
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.charges import charge
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.payments import payment
from pulumi_hosting.exactly_once.purchase import Evidence, judge
from pulumi_hosting.resources.base import WholeNumber
from pulumi_hosting.resources.domain import DomainState
from pulumi_hosting.resources.domain_powers import DOMAIN
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

MOST_YEARS = 10
_YEAR = timedelta(days=365.25)
_LOOKED_BACK = timedelta(days=60)  # for a renewal that never showed


class DomainRenewInputs(OfDomain):
    until: Annotated[
        Moment,
        Field(
            description="Renew only while the domain expires before this: a date (its start in UTC) or an "
            "RFC 3339 timestamp with a zone. The years bought must reach it for certain, "
            "a year counting 365 days."
        ),
    ]
    years: Annotated[
        Annotated[WholeNumber, Field(le=MOST_YEARS)] | None,
        Field(description="Years to buy: 1 to 10. The fewest that reach until, when absent."),
    ] = None


class DomainRenewed(DomainState):
    renewal: str | None = optional(
        "renewed; pending_sync or pending when the registrar accepted and the new date shows "
        "later; empty when nothing was done."
    )
    years: int | None = optional("Years that the renewal buys; empty when nothing is done.")
    charged: str | None = optional(
        "What the renewal of the domain cost (decimal, in currency); empty when nothing was done."
    )
    balance_after: str | None = optional(
        "What the account holds after the renewal (decimal, in currency); empty when nothing was done."
    )


@dataclass(frozen=True)
class _Seen:
    id: int
    expires_at: datetime
    years: int


class DomainRenewal(Action[DomainRenewInputs, DomainRenewed]):
    kind: ClassVar[str] = "domain_renew"
    title: ClassVar[str] = "renewal of a domain"
    result: ClassVar[str] = "domain"
    charges: ClassVar[bool] = True
    scopes: ClassVar = ("domains:read", "domains:order", "invoices:read")

    def plan(self, request: Request, inputs: DomainRenewInputs) -> ActionPlan:
        state = resolve(request, DOMAIN, id=inputs.id, name=inputs.name)
        if state.expires_at is not None and moment(state.expires_at) >= moment(inputs.until):
            return _nothing(state, f"domain {state.name} is paid until {state.expires_at} already")
        # a list may be a minute old, and the key is made of what is seen here
        domain = _fresh(request, int(state.id))
        if domain.expires_at is None:
            raise ResourceError(
                f"domain {state.name} is {state.status} and shows no expiry date. Next: "
                "run again once it is active"
            )
        if domain.expires_at >= moment(inputs.until):
            expires = as_text(domain.expires_at)
            return _nothing(
                state.model_copy(update={"expires_at": expires}),
                f"domain {state.name} is paid until {expires} already",
            )
        seen = _Seen(domain.id, domain.expires_at, _years(domain.expires_at, inputs))
        cost = _cost(request, domain, seen.years)
        if invoice := _not_shown(request, domain):
            age = None if invoice.paid_at is None else request.service_now() - invoice.paid_at
            became = judge(Evidence(status="pending", age=age))
            if not became.is_over:
                note = (
                    f"domain {state.name} was renewed with invoice {invoice.id}, paid "
                    f"{as_text(invoice.paid_at)}; the new date shows later"
                )
                return _nothing(state, note, "pending_sync")
            became = replace(became, payment=payment(request.client, invoice.id))
            request.warn(f"{became.sentence(f'the renewal of domain {domain.id}')}: it is renewed again")
        before = _renewed(state)
        after = before.model_copy(
            update={"expires_at": None, "years": seen.years, "charged": str(cost.amount) if cost else None}
        )
        change = (
            {"paid_until": as_text(seen.expires_at)},
            {"paid_until": f">= {inputs.until}", "years": seen.years},
        )
        reaches = as_text(after_years(seen.expires_at, seen.years))
        return ActionPlan(
            True,
            before.shown(),
            after.shown(),
            cost,
            change=change,
            reaches=reaches,
            target=(DOMAIN, state),
            data=seen,
        )

    def perform(self, request: Request, inputs: DomainRenewInputs, plan: ActionPlan) -> DomainRenewed:
        seen: _Seen = plan.data
        try:
            answer = charge(
                request,
                what=f"renewal of domain {seen.id}",
                kind=self.kind,
                subject=f"domain {seen.id}",
                operation="renew_domain",
                facts={"domain_id": seen.id, "expires_at": as_text(seen.expires_at)},
                send=lambda key: request.client.domains.renew(seen.id, years=seen.years, idempotency_key=key),
                happened=lambda: _fresh(request, seen.id).expires_at != seen.expires_at,
                concerns=lambda invoice: _is_of(invoice, seen.id),
                price=plan.cost.amount if plan.cost else None,
                is_outdated=lambda error: (
                    isinstance(error, DomainBlocked) and _fresh(request, seen.id).blocked is False
                ),
                ask=lambda id, key: request.client.domains.renew(id, years=1, idempotency_key=key),
                is_of_the_past=lambda answer: _is_taken_back(request, seen),
                bound_elsewhere=lambda: _refuse_second(request, seen),
            )
        finally:
            request.reads.forget("domains")
            request.reads.forget("balance")
        state = resolve(request, DOMAIN, id=str(seen.id))
        if answer is None:
            request.info(f"domain {seen.id}: the answer of the renewal was lost; the domain shows it")
            return _renewed(state).model_copy(update={"renewal": "renewed", "years": seen.years})
        if answer.status != "renewed":
            request.info(f"domain {state.name}: the registrar accepted the renewal; the new date shows later")
        return _renewed(state).model_copy(
            update={
                "renewal": answer.status,
                "years": seen.years,
                "charged": as_text(answer.charged),
                "balance_after": as_text(answer.balance_after),
            }
        )


def _nothing(state: DomainState, note: str, renewal: str | None = None) -> ActionPlan:
    shown = _renewed(state).model_copy(update={"renewal": renewal}).shown()
    return ActionPlan(False, shown, shown, note=note)


def _renewed(state: DomainState) -> DomainRenewed:
    return DomainRenewed.model_validate({**state.shown(), "charged": None})


def _fresh(request: Request, id: int) -> m.Domain:
    try:
        return request.client.domains.get(id)
    except NotFound:
        raise ResourceError(
            f"domain {id} is not on this account any more. Next: correct id or name"
        ) from None


def _years(expires: datetime, inputs: DomainRenewInputs) -> int:
    """The years to buy: the given ones, or the fewest, if they reach the declared date for certain.
    Raises ``InvalidInput``.
    """
    until = moment(inputs.until)
    choices = range(1, MOST_YEARS + 1) if inputs.years is None else (inputs.years,)
    for years in choices:
        if after_years(expires, years) >= until:
            return years
    field, advice = (
        ("until", "give an earlier date")
        if inputs.years is None
        else ("years", "give more years, or an earlier until")
    )
    longest = choices[-1]
    raise InvalidInput(
        {
            field: f"{longest} year{'s' if longest > 1 else ''} from {as_text(expires)} reach "
            f"{as_text(after_years(expires, longest))} for certain, not {inputs.until}; nothing "
            f"was sent. Next: {advice}"
        },
        DomainRenewal.title,
    )


def _cost(request: Request, domain: m.Domain, years: int) -> Cost | None:
    """``price_renew`` times years; None where neither the domain nor its zone has a price."""
    price, priced_in = catalog_reads.renewal_price(request, domain.name, domain.price_renew, domain.currency)
    if price is None:
        return None
    what = f"{domain.name}, {years} year{'s' if years > 1 else ''} from {as_text(domain.expires_at)}"
    return from_balance(request, price * years, priced_in, what)


def _is_of(invoice: m.Invoice, domain_id: int) -> bool:
    return invoice.type == "domain_renewal" and any(
        item.domain_id == domain_id for item in invoice.items or ()
    )


def _is_taken_back(request: Request, seen: _Seen) -> bool:
    """Whether the newest renewal was returned and the date is the old one: its answer is a replay."""
    if _fresh(request, seen.id).expires_at != seen.expires_at:
        return False
    try:
        renewals = request.client.invoices.list(type="domain_renewal")
        newest = next((invoice for invoice in renewals if _is_of(invoice, seen.id)), None)
        paid = None if newest is None else payment(request.client, newest.id)
    except Forbidden:
        return False
    return paid is not None and paid.paid > 0 and paid.is_returned


def _newest_paid(request: Request, domain_id: int, since: datetime) -> m.Invoice | None:
    """The newest paid renewal of the domain since then. Raises ``Forbidden`` where the key may not see
    invoices.
    """
    for invoice in request.client.invoices.list(type="domain_renewal"):
        if invoice.created_at is not None and invoice.created_at < since:
            return None
        if (
            invoice.status == "paid"
            and invoice.paid_at is not None
            and invoice.paid_at >= since
            and _is_of(invoice, domain_id)
        ):
            return invoice
    return None


def _not_shown(request: Request, domain: m.Domain) -> m.Invoice | None:
    """The newest renewal that is paid and that the domain does not show, if the account proves one: more
    years are paid than it has.
    """
    try:
        recent = _newest_paid(request, domain.id, request.service_now() - _LOOKED_BACK)
    except Forbidden:
        request.info(
            "without the scope invoices:read, a renewal that the registrar has not shown yet "
            "is known by its key alone"
        )
        return None
    zone = catalog_reads.zone_of(request, domain.name)
    if recent is None or zone is None or domain.registered_at is None or domain.expires_at is None:
        return None
    prices = {
        "domain_renewal": domain.price_renew or zone.price_renew,
        "domain_registration": zone.price_register,
        "domain_purchase": zone.price_register,  # what a deployment may call it
        "domain_transfer": zone.price_transfer,
    }
    paid = sum(
        round(invoice.amount / price)
        for invoice in request.client.invoices.list()
        if invoice.status == "paid"
        and any(item.domain_id == domain.id for item in invoice.items or ())
        and (price := prices.get(invoice.type))
    )
    # Discounts and cheaper days make this too small, never too large; then the key alone keeps the renewal
    # from being paid twice.
    return recent if round((domain.expires_at - domain.registered_at) / _YEAR) < paid else None


def _refuse_second(request: Request, seen: _Seen) -> None:
    """Stop where the key of this date belongs to another period, which was paid and does not show yet. Raises
    ``Forbidden`` too: then it cannot be known."""
    if invoice := _newest_paid(request, seen.id, request.service_now() - KEY_MEMORY):
        raise ResourceError(
            f"domain {seen.id} was renewed from {as_text(seen.expires_at)} already, for another period "
            f"(invoice {invoice.id}), and the new date does not show yet; nothing was charged. "
            "Next: run again once it does"
        )


DOMAIN_RENEW = DomainRenewal()
