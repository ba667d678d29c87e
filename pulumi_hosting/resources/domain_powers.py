"""What a domain can do beside the four methods: see ``powers``."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import look_alike
from pulumi_hosting.client.exceptions import HostingError, InvalidInput
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.resources import powers
from pulumi_hosting.resources.base import Reasons
from pulumi_hosting.resources.domain import (
    DomainBase,
    DomainInputs,
    DomainState,
    _from_api,
    _takeover,
    fate,
    is_under_way,
    ordered,
)
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session import prepaid
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.domain_names import ascii_name, unicode_name
from pulumi_hosting.session.prepaid import Prepaid
from pulumi_hosting.session.request import WHOLE_RUN, Request


class DomainResource(
    DomainBase,
    powers.Findable[DomainInputs, DomainState],
    powers.Adoptable[DomainInputs],
    powers.Validated,
    powers.Priced,
    powers.Settled[DomainInputs, DomainState],
    powers.Registered[DomainState],
    powers.Remarked[DomainState],
):
    """A domain as resource: see ``domain`` for its inputs, its state and its methods."""

    natural_key: ClassVar = ("name",)

    def find(self, request: Request, inputs: DomainInputs) -> DomainState | None:
        """By name."""
        found = self._named(request, inputs.name)
        return _from_api(found) if found else None

    def all(self, request: Request, *, name: str | None = None, **filters: Any) -> Iterable[DomainState]:
        """By ``status`` (the service looks) and by ``name`` (we do)."""
        try:
            wanted = None if name is None else ascii_name(name)
        except ValueError as error:
            raise InvalidInput({"name": str(error)}, self.title) from None
        return (
            _from_api(found)
            for found in request.client.domains.list(**filters)
            if wanted in (None, ascii_name(found.name))
        )

    def takeover(self, request: Request, inputs: DomainInputs) -> Takeover | None:
        if inputs.adopt_id is None:
            if request.name_is_identity or request.client.is_test_key:
                return None
            existing = self._named(request, inputs.name)
            if existing is None or str(existing.id) in request.owned or self._not_ours(request, existing):
                return None  # ordered, replaced, or refused
            return replace(_takeover(request, existing, ""), unsure=True)
        return _takeover(request, self._adoptable(request, inputs, inputs.adopt_id), "adopt_id names it")

    def cost(self, request: Request, desired: Mapping[str, Any]) -> Cost | None:
        """The zone's prices; a promo code may lower them."""
        if desired.get("adopt_id") is not None or "name" not in desired:
            return None
        zone = catalog_reads.zone_of(request, desired["name"])
        if zone is None:
            return None
        years = int(desired.get("years") or 1)
        transfer = desired.get("auth_code") is not None
        amount = zone.price_transfer if transfer else zone.price_register * years
        if amount is None:
            return None
        name = f"{desired['name']} ({read})" if (read := unicode_name(desired["name"])) else desired["name"]
        what = f"transfer of {name}" if transfer else f"{name}, {years} year{'s' if years > 1 else ''}"
        if desired.get("auto_renew") is None and desired.get("keep_paid") is None:
            what += ", no auto-renew"  # the service's default
        balance = catalog_reads.balance(request)
        # found again, or a stop: nothing is paid for it either way
        if self._named(request, desired["name"]) is not None:
            amount, what = Decimal(0), f"{name} is on this account already"
        currency = zone.currency or (balance.currency if balance else "")
        return Cost(amount, currency, what, balance.balance if balance else None)

    def validate(self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]) -> Reasons:
        """The zone and its bounds; for a new name whether it can be had."""
        if desired.get("adopt_id") is not None or "name" not in desired:
            return {}
        name = desired["name"]
        zone = catalog_reads.zone_of(request, name)
        if zone is None:
            choices = ", ".join(sorted(catalog_reads.zones(request)))
            return {"name": f"no zone of this provider ends {name!r}: choose one of {choices}"}
        failures: Reasons = {}
        if desired.get("privacy") and "privacy" in fields and zone.privacy_supported is False:
            failures["privacy"] = f".{zone.ending} hides no owner's data: leave it out or say false"
        if "name" not in fields:
            return failures
        if why := look_alike(name):
            request.warn(
                f"{name} may be taken for another name: {why}. Next: make sure that this is the name you mean"
            )
        if desired.get("auth_code") is not None:
            if zone.price_transfer is None or zone.transfer_supported is False:
                failures["auth_code"] = f"transfers of .{zone.ending} are not offered"
        elif not (zone.min_years or 1) <= desired.get("years", 1) <= (zone.max_years or 10):
            failures["years"] = f"must be {zone.min_years or 1} to {zone.max_years or 10} in this zone"
        elif not failures:
            existing = self._named(request, name)
            if existing is None:
                answer = request.shared(
                    ("availability", name), lambda: request.client.domains.availability(name=name), 300.0
                )
                if answer.available:
                    return failures
                request.reads.forget("domains")  # another run may have registered it a moment ago
                if (existing := self._named(request, name)) is None:
                    reason = answer.reason or "it is not available"
                    return {"name": f"{name} cannot be registered: {reason}"}
            is_found = request.name_is_identity or request.client.is_test_key
            if (
                not is_found
                and str(existing.id) not in request.owned
                and (refusal := self._not_ours(request, existing))
            ):
                failures["name"] = refusal
        return failures

    def settle(self, request: Request, state: DomainState, inputs: DomainInputs) -> DomainState:
        """Set what an order does not carry everywhere: auto-renew, and after a transfer or adoption the
        rest.
        """
        given = inputs.given({"nameservers", *inputs.settings()})
        late = frozenset(
            name for name, value in given.items() if value is not None and getattr(state, name) != value
        )
        if not late:
            return state
        if request.client.is_test_key:
            return state.model_copy(update={name: getattr(inputs, name) for name in late})
        return self.update(request, state, inputs, late)

    def why_unchangeable(self, state: DomainState) -> str | None:
        """A registration or transfer under way."""
        return f"it is {state.status}" if state.status in ("pending", "transfer_pending") else None

    def is_released(self, state: DomainState) -> bool:
        """The API cannot delete domains: one whose auto-renew is off ends when its time is over."""
        return state.auto_renew is False

    def remarks(self, request: Request, state: DomainState) -> list[str]:
        """What became of an order that the registrar had not confirmed, and that a domain is gone."""
        if not is_under_way(state):
            if not self.is_gone(request, state):
                return []
            step = f"{request.client.words.read_and_apply}, to order it again if it is still declared"
            gone = (
                f"domain {state.id} ({state.name}) is not on the account any more, and the state still has it"
            )
            return [f"{gone}. Next: {step}"]
        try:
            if self._resolved(request, state.id) is not None:
                return []
            verdict = fate(request, state)
        except HostingError:
            return []
        if not verdict.is_over:
            return []
        step = f"{request.client.words.read_and_apply}, to order it again"
        return [f"{verdict.sentence(ordered(state))}. Next: {step}"]

    def is_gone(self, request: Request, state: DomainState) -> bool:
        is_real = state.id.isdigit() and state.mode != "test" and not is_under_way(state)
        return is_real and self._at_first(request, state) is None

    def prepaid(self, request: Request, state: DomainState) -> Prepaid | None:
        found = self._at_first(request, state)
        return prepaid.of_domain(found, None) if found else None

    def _at_first(self, request: Request, state: DomainState) -> m.Domain | None:
        """As one look of the run showed it; None if it is gone."""
        return self._resolved(request, state.id, WHOLE_RUN)


DOMAIN = DomainResource()
