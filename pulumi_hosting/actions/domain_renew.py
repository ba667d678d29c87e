"""Paying a domain further ahead (API document, "Domains": ``POST /domains/{domain_id}/renew``).

The registrar may accept and show the new date only with a later sync: until then the paid invoice tells that
it is under way, and the key, which is made of the date that was seen, keeps it from being paid again.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import Field

from pulumi_hosting.actions.action import ActionPlan, OfDomain
from pulumi_hosting.actions.periods import Moment, Period
from pulumi_hosting.actions.renewal import PaidAhead, Seen, until
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import ApiError, DomainBlocked, Forbidden
from pulumi_hosting.exactly_once import catalog_reads
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
_LOOKED_BACK = timedelta(days=366)  # for a renewal that never showed


class DomainRenewInputs(OfDomain):
    until: Moment = until(
        "the domain expires", "The years bought must reach it for certain, a year counting 365 days."
    )
    years: Annotated[WholeNumber, Field(le=MOST_YEARS)] | None = optional(
        "Years to buy: 1 to 10. Default: the fewest that reach until."
    )


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


class DomainRenewal(PaidAhead[DomainRenewInputs, DomainRenewed, m.Domain, DomainState, m.DomainRenewResult]):
    kind: ClassVar[str] = "domain_renew"
    title: ClassVar[str] = "renewal of a domain"
    result: ClassVar[str] = "domain"
    scopes: ClassVar = ("domains:read", "domains:order", "invoices:read")
    resource = DOMAIN
    date = "expires_at"
    invoices = "domain_renewal"
    longer = "more years"
    gone = "is not on this account any more"
    undated = "domain {0.name} is {0.status} and shows no expiry date. Next: run again once it is active"
    smallest = Period("years", 1)
    parts = ("domains",)

    def due(self, found: m.Domain) -> datetime | None:
        return found.expires_at

    def periods(self, found: m.Domain, due: datetime, inputs: DomainRenewInputs) -> Sequence[Period]:
        choices = range(1, MOST_YEARS + 1) if inputs.years is None else (inputs.years,)
        return [Period("years", count) for count in choices]

    def cost(self, request: Request, seen: Seen[m.Domain]) -> tuple[Cost | None, bool]:
        """``price_renew`` times years; None if neither the domain nor its zone has a price."""
        name, own, currency = seen.found.name, seen.found.price_renew, seen.found.currency
        price, priced_in = catalog_reads.renewal_price(request, name, own, currency)
        if price is None:
            return None, False
        what = f"{name}, {seen.period} from {as_text(seen.due)}"
        return catalog_reads.charge(request, price * seen.period.count, priced_in, what, fresh=True), True

    def under_way(self, request: Request, seen: Seen[m.Domain], state: DomainState) -> ActionPlan | None:
        if (invoice := self._not_shown(request, seen.found)) is None:
            return None
        age = None if invoice.paid_at is None else request.service_now() - invoice.paid_at
        became = judge(Evidence(status="pending", age=age))
        if not became.is_over:
            note = (
                f"domain {state.name} was renewed with invoice {invoice.id}, paid "
                f"{as_text(invoice.paid_at)}; the new date shows later"
            )
            return self.paid_already(state, note, renewal="pending_sync")
        became = replace(became, payment=payment(request.client, invoice.id))
        if not (became.payment and became.payment.is_returned):
            what = became.sentence(f"the renewal of domain {seen.found.id}")
            raise ResourceError(f"{what}; it is not paid again. Next: ask the provider about it")
        request.warn(f"{became.sentence(f'the renewal of domain {seen.found.id}')}: it is renewed again")
        return None

    def told(
        self, request: Request, state: DomainState, answer: m.DomainRenewResult | None
    ) -> dict[str, object]:
        if answer is not None and answer.status != "renewed":
            request.info(f"domain {state.name}: the registrar accepted the renewal; the new date shows later")
        return {"renewal": answer.status if answer else "renewed"}

    def is_outdated(self, request: Request, id: int, error: ApiError) -> bool:
        return isinstance(error, DomainBlocked) and self.fresh(request, id).blocked is False

    def may_be_lifted(self, request: Request, id: int, error: ApiError) -> bool:
        """Not if a renewal may be paid that does not show yet: its key alone keeps it from being paid
        again."""
        try:
            recent = self._newest_paid(request, id, request.service_now() - KEY_MEMORY)
        except Forbidden:
            return False
        return recent is None and super().may_be_lifted(request, id, error)

    def is_taken_back(self, request: Request, seen: Seen[m.Domain], answer: m.DomainRenewResult) -> bool:
        """By the newest renewal: the answer names no invoice."""
        if not self.is_unchanged(request, seen):
            return False
        try:
            renewals = request.client.invoices.list(type=self.invoices)
            newest = next((invoice for invoice in renewals if self.is_of(invoice, seen.found.id)), None)
            paid = None if newest is None else payment(request.client, newest.id)
        except Forbidden:
            return False
        return paid is not None and paid.paid > 0 and paid.is_returned

    def refuse_another(self, request: Request, seen: Seen[m.Domain]) -> None:
        """Raises ``Forbidden`` too: then it cannot be known."""
        if invoice := self._newest_paid(request, seen.found.id, request.service_now() - KEY_MEMORY):
            raise ResourceError(
                f"domain {seen.found.id} was renewed from {as_text(seen.due)} already, for another period "
                f"(invoice {invoice.id}), and the new date does not show yet; nothing was charged. "
                "Next: run again once it does"
            )

    def _newest_paid(self, request: Request, domain_id: int, since: datetime) -> m.Invoice | None:
        """The newest paid renewal of the domain since then. Raises ``Forbidden`` if the key may not see
        invoices.
        """
        for invoice in request.client.invoices.list(type=self.invoices):
            if invoice.created_at is not None and invoice.created_at < since:
                return None
            was_paid = invoice.status == "paid" and invoice.paid_at is not None and invoice.paid_at >= since
            if was_paid and self.is_of(invoice, domain_id):
                return invoice
        return None

    def _not_shown(self, request: Request, domain: m.Domain) -> m.Invoice | None:
        """The newest renewal that is paid and that the domain does not show, if the account proves one: more
        years are paid than it has.
        """
        try:
            recent = self._newest_paid(request, domain.id, request.service_now() - _LOOKED_BACK)
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
        # Discounts and cheaper days make this too small, never too large; then the key alone keeps the
        # renewal from being paid twice.
        return recent if round((domain.expires_at - domain.registered_at) / _YEAR) < paid else None
