"""A domain name (API document, "Domains").

Registered or, with an auth code, transferred in: once, since the name is unique and every order is keyed.
What the registrar has not confirmed yet is a state, not a failure. The API cannot delete domains: to remove
one from a declaration turns its auto-renewal off, says until when it stays, and forgets it. The id is the
domain's number; until the service shows one, and in the sandbox, it is the name.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import check_host_name, check_line, id_number
from pulumi_hosting.client.exceptions import NotFound
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.domain_order import DomainOrder, became_of
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY
from pulumi_hosting.exactly_once.local_files import taken_again
from pulumi_hosting.exactly_once.ownership_check import must_be_the_recorded_one, why_not_taken_over
from pulumi_hosting.exactly_once.purchase import Verdict
from pulumi_hosting.exactly_once.purchase_journal import SENT_WITHIN, is_interrupted, paid_for
from pulumi_hosting.resources import base
from pulumi_hosting.resources.api_fields import At, shown
from pulumi_hosting.resources.drift_fields import Drift
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session import errors
from pulumi_hosting.session.domain_names import ascii_name, domain_name, host_names
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text


def _one_line(secret: Secret) -> Secret:
    check_line(secret.reveal())
    return secret


def _years(value: int) -> int:
    if value > 10:
        raise ValueError("must be 1 to 10")
    return value


class DomainInputs(base.Inputs):
    change = m.DomainUpdate
    name: Annotated[m.DomainName, AfterValidator(domain_name), base.REPLACES] = Field(
        description="Full domain name, in Unicode or punycode. A change registers another domain."
    )
    years: Annotated[Annotated[base.WholeNumber, AfterValidator(_years)], base.PRICES] = Field(
        default=1,
        description="Years paid when registering: 1 to 10, within the zone's bounds. Used at creation only.",
    )
    nameservers: Annotated[
        Annotated[m.Nameservers, AfterValidator(host_names)] | None,
        base.Trait(unordered=True),
        Drift(lambda value: ["ns1.example.org", "ns2.example.org"]),
    ] = m.optional(
        "2 to 4 name servers (some deployments take exactly 2); order, case and a dot at the end do not "
        "matter."
    )
    privacy: bool | None = m.optional("Whether the owner's data is hidden in WHOIS, if the zone allows it.")
    auto_renew: bool | None = m.optional(
        "Whether the service renews the domain from the balance. The default for a new domain is false."
    )
    keep_paid: Annotated[base.LengthOfTime | None, base.POLICY] = m.optional(
        "Renew the domain by a year, once in a run, if less than this is left of its paid time: days or "
        "hours, such as 30d, less than a year. The run's limit applies. Nothing is bought if auto_renew is "
        "on and the balance covers it."
    )
    promo_code: Annotated[m.PromoCode | None, base.PRICES] = m.optional("Promo code. Used at creation only.")
    auth_code: Annotated[
        Annotated[Secret, Field(min_length=1, max_length=255), AfterValidator(_one_line)] | None,
        base.TRANSFERS,
    ] = m.optional(
        "EPP code of the current registrar: transfers the domain in instead of registering it. Used at "
        "creation only."
    )
    adopt_id: Annotated[base.IdText | None, base.ADOPTS] = m.optional(
        "Take over this existing domain of the account, which must have the declared name, instead of "
        "ordering it."
    )

    def model_post_init(self, context: Any) -> None:
        base.check_kept_paid(self.keep_paid, timedelta(days=365), "365 days")

    def order_body(self, privacy: bool) -> dict[str, Any]:
        """The body of ``POST /domains``. Privacy is always given: its default differs between deployments."""
        body: dict[str, Any] = {"name": self.name, "years": self.years, "privacy": privacy}
        options = {"nameservers": self.nameservers, "promo_code": self.promo_code}
        return body | {name: value for name, value in options.items() if value is not None}


class DomainState(base.State):
    api = m.Domain
    id: str = Field(
        description="Id of the domain; its name until the service shows a number, and in the sandbox."
    )
    name: Annotated[str, At()] = Field(
        description="Full name in punycode and lower case, such as xn--mnster-3ya.example."
    )
    status: Annotated[str, At()] = Field(
        default="pending", description="One of pending, active, expired, transfer_pending and cancelled."
    )
    nameservers: Annotated[list[str] | None, At()] = m.optional(
        "Host names of its name servers, in lower case and alphabetical order."
    )
    privacy: Annotated[bool | None, At()] = None
    auto_renew: Annotated[bool | None, At()] = None
    registered_at: Annotated[str | None, At()] = None
    expires_at: Annotated[str | None, At()] = m.optional(
        "When its paid time ends (RFC 3339, UTC), and the domain with it unless it is renewed."
    )
    locked: Annotated[bool | None, At()] = None
    blocked: Annotated[bool | None, At()] = None
    price_renew: Annotated[str | None, At()] = None
    currency: Annotated[str | None, At()] = None
    charged: str | None = m.optional(
        "What the registration or transfer cost (decimal, in currency); empty for adopted domains."
    )
    created_at: Annotated[str | None, At()] = None


def _from_api(domain: m.Domain, last: DomainState | None = None) -> DomainState:
    values = shown(DomainState, domain) | {
        "id": str(domain.id),
        "name": ascii_name(domain.name),
        "nameservers": None if domain.nameservers is None else host_names(domain.nameservers),
    }
    if last is not None:
        values |= {"currency": domain.currency or last.currency, "charged": last.charged}
    return DomainState(**values)


def is_under_way(state: DomainState) -> bool:
    """Whether the state is that of an order that the registrar had not confirmed. An import knows no name."""
    return bool(state.name) and state.status in ("pending", "transfer_pending") and state.mode != "test"


def ordered(state: DomainState) -> str:
    """The order, in words."""
    if state.status == "transfer_pending":
        return f"the transfer of {state.name}"
    return f"the registration of {state.name}"


def fate(request: Request, state: DomainState) -> Verdict:
    """What became of the order."""
    ordered_at = None if state.created_at is None else datetime.fromisoformat(state.created_at)
    return became_of(request, state.name, ordered_at)


def forget_order(request: Request, state: DomainState) -> None:
    """Forget an order whose domain is not there. Raises ``StillOrdered`` if it may still come, or its charge
    is kept."""
    wait = request.poller()
    while not (verdict := fate(request, state)).is_over:
        if wait.over:
            why = f"{ordered(state)} is under way, and its auto-renew cannot be turned off yet"
            raise errors.StillOrdered("domain", state.id, why)
        request.info(f"waiting for {ordered(state)}")
        wait.pause()
    if not verdict.may_be_forgotten:
        raise errors.StillOrdered("domain", state.id, verdict.sentence(ordered(state)))
    request.warn(f"{verdict.sentence(ordered(state))}; nothing is left to remove")


def _is_settled(domain: m.Domain) -> bool:
    return domain.status not in ("pending", "transfer_pending")


def _by_number(request: Request, id: str) -> m.Domain | None:
    try:
        return request.client.domains.get(int(id))
    except NotFound:
        return None


_FRESH = 30.0  # seconds for which a list of domains is believed


class DomainBase(base.Resource[DomainInputs, DomainState]):
    """The four methods of a domain."""

    kind: ClassVar[str] = "domain"
    title: ClassVar[str] = "domain"
    replacement = "once"
    id_form: ClassVar[str] = "a positive integer, or the domain's name"
    scopes: ClassVar = {
        "read": ("domains:read",),
        "create": ("domains:read", "domains:order", "domains:manage"),
        "update": ("domains:read", "domains:manage"),
        "delete": ("domains:read", "domains:manage"),
    }

    def is_id(self, id: str) -> bool:
        """Its name is the id of an order whose domain has no number yet."""
        if id_number(id) is not None:
            return True
        try:
            return bool(check_host_name(domain_name(id)))
        except ValueError:
            return False

    def read(self, request: Request, id: str, last: DomainState | None = None) -> DomainState | None:
        """By number, or by name. An order that is accepted and not listed yet stays as it was recorded."""
        found = self._resolved(request, id)
        if found is None and last is not None and is_under_way(last) and not self._named(request, last.name):
            verdict = fate(request, last)
            if not verdict.is_over:
                request.info(f"{last.name} was ordered, and is not among the domains of the account yet")
                return last
            request.warn(f"{verdict.sentence(ordered(last))}; it is ordered again if it is still declared")
        if found and last is not None:
            self._must_be_the_recorded_one(request, last, found, "the state stays as it was")
        return _from_api(found, last) if found else None

    def _must_be_the_recorded_one(
        self, request: Request, state: DomainState, found: m.Domain, outcome: str
    ) -> None:
        """By its name, which never changes, and its order."""
        if not request.name_is_identity:
            recorded = {"name": state.name or None, "created_at": state.created_at}
            shown = {"name": ascii_name(found.name), "created_at": as_text(found.created_at)}
            must_be_the_recorded_one(self.title, state.id, recorded, shown, outcome)

    def _must_stand_nowhere_else(self, request: Request, state: DomainState) -> None:
        """Raise ``NotOurs`` if the domain of the state is gone, and its name was ordered again since."""
        if request.name_is_identity or not state.name:
            return
        if (other := self._named(request, state.name)) is not None:
            text = f"domain {state.id} ({state.name}) is gone, and domain {other.id} has its name"
            raise errors.NotOurs(str(other.id), None, "elsewhere", f"{text}; nothing was changed")

    @staticmethod
    def _listed(request: Request, max_age: float = _FRESH) -> Mapping[str, m.Domain]:
        """The domains of the account by name and by number."""

        def ask() -> dict[str, list[m.Domain]]:
            return {"list_domains": list(request.client.domains.list())}

        listed = request.session.snapshot(
            "domains", ask, max_age, lambda operation, id: _by_number(request, id)
        )["list_domains"]
        living = [domain for domain in listed if not domain.is_gone]
        return {key: domain for domain in living for key in (str(domain.id), ascii_name(domain.name))}

    def _named(self, request: Request, name: str) -> m.Domain | None:
        """By name. Where the request wants it, only what is asked for now shows that there is none."""
        began = request.clock.monotonic()
        found = self._listed(request).get(name)
        if found is None and request.fresh:
            found = self._listed(request, request.seconds_since(began)).get(name)
        return found

    def _resolved(self, request: Request, id: str, max_age: float = _FRESH) -> m.Domain | None:
        if id_number(id) is None:
            return self._named(request, domain_name(id))
        found: m.Domain | None = request.by_id("domains", "list_domains", id, max_age)
        if found is None or found.is_gone:
            found = _by_number(request, id)
        return None if found is None or found.is_gone else found

    @taken_again
    def create(self, request: Request, inputs: DomainInputs) -> DomainState:
        if inputs.adopt_id is not None:
            request.taken_over.add(inputs.adopt_id)
            return _from_api(self._adoptable(request, inputs, inputs.adopt_id))
        order = self._order(request, inputs)
        with order.turn_of_name():
            request.reads.forget("domains")
            existing = self._named(request, inputs.name)
            if existing is None:
                return self._from_order(request, inputs, order)
            if request.client.is_test_key:
                request.info(
                    f"{inputs.name} is on this account already (id {existing.id}); with a "
                    "test key nothing is ordered"
                )
                return _from_api(existing).model_copy(update={"id": inputs.name})
            # of an own one a replacement is asked for
            if not request.name_is_identity and str(existing.id) not in request.owned:
                refusal = self._not_ours(request, existing)
                made = existing.created_at
                is_ours = made is not None and is_interrupted(request, self.kind, made)
                if refusal is None and not (is_ours or order.was_placed()):
                    refusal = _refusal(existing, "nothing shows that this resource ordered it")
                if refusal is not None:
                    raise errors.ResourceConflict(refusal, id=str(existing.id))
                why = (
                    "an interrupted run ordered it" if is_ours else "this resource's idempotency key names it"
                )
                _takeover(request, existing, why).announce(request)
                request.taken_over.add(str(existing.id))
            return _from_api(existing)

    @staticmethod
    def _not_ours(request: Request, existing: m.Domain) -> str | None:
        """Why a domain of the declared name must not be taken over automatically, as far as that is known
        without sending the order's key.
        """
        since = request.age_of(existing.created_at)
        why = why_not_taken_over(request, since)
        return _refusal(existing, why) if why else None

    def _order(self, request: Request, inputs: DomainInputs) -> DomainOrder:
        def find() -> m.Domain | None:
            request.reads.forget("domains")
            return self._named(request, inputs.name)

        if inputs.auth_code is not None:
            return DomainOrder(request, {"name": inputs.name}, inputs.auth_code, find)
        zone = catalog_reads.zone_of(request, inputs.name)
        privacy = inputs.privacy if inputs.privacy is not None else bool(zone and zone.privacy_supported)
        return DomainOrder(request, inputs.order_body(privacy), None, find)

    @staticmethod
    def _from_order(request: Request, inputs: DomainInputs, order: DomainOrder) -> DomainState:
        """Place the order. Until the account shows the domain, its state is made of the answer."""
        placed = order.carry_out()
        answer, domain = placed.answer, placed.domain
        if domain is not None:
            charged = as_text(answer.charged) if answer else None
            currency = answer.currency if answer else None
            paid = {"charged": charged, "currency": currency or domain.currency}
            return _from_api(domain).model_copy(update=paid)
        if answer is None:  # pragma: no cover — an order has an answer or a domain
            raise errors.ResourceError(f"{inputs.name}: an order without answer and domain")
        status = "active" if answer.status == "registered" else "pending"
        if "transfer" in answer.status:
            status = "transfer_pending"
        if status != "active":
            request.info(f"{inputs.name}: the order was accepted and is {status}; it becomes active later")
        return DomainState(
            id=inputs.name,
            name=inputs.name,
            status=status,
            nameservers=inputs.nameservers or [],
            privacy=order.body.get("privacy"),
            auto_renew=False,
            expires_at=as_text(getattr(answer, "expires_at", None)),
            currency=answer.currency,
            charged=None if placed.is_replay else as_text(answer.charged),
            created_at=as_text(request.service_now()),
        )

    def _adoptable(self, request: Request, inputs: DomainInputs, id: str) -> m.Domain:
        found = self._resolved(request, id)
        if found is None:
            raise errors.ResourceError(
                f"adopt_id: there is no domain {id} on this account. Next: correct adopt_id, or "
                "leave it out to order it"
            )
        if ascii_name(found.name) != inputs.name:
            raise errors.ResourceError(
                f"adopt_id: domain {id} is {found.name}, not {inputs.name}. Next: declare it as it is"
            )
        return found

    def update(
        self, request: Request, state: DomainState, inputs: DomainInputs, fields: frozenset[str]
    ) -> DomainState:
        found = self._resolved(request, state.id)
        if found is None and state.status == "active":
            raise errors.ResourceError(f"domain {state.name} is gone. Next: run again with a refresh")
        if found is not None:
            self._must_be_the_recorded_one(request, state, found, "nothing was changed")
        if found is None and is_under_way(state):
            verdict = fate(request, state)
            if verdict.is_over:
                what = verdict.sentence(ordered(state))
                again = f"{request.client.words.read_and_apply}, which orders it again"
                raise errors.OrderFailed(f"{what}. Next: {again}")
        now = state if found is None else _from_api(found, state)
        if found is None or not _is_settled(found):
            request.warn(
                f"domain {state.name} is {now.status}: {', '.join(sorted(fields))} can be set once it is "
                "active. Next: run again then"
            )
            return now.model_copy(update={"id": state.id})
        id, after = found.id, found
        given = inputs.given(fields & inputs.settings())
        patch = {name: value for name, value in given.items() if value is not None}
        try:
            if patch:
                after = request.client.domains.update(id, **patch)
                request.save(_from_api(after, state).model_copy(update={"id": state.id}))
            if "nameservers" in fields and inputs.nameservers is not None:
                after = request.client.domains.set_nameservers(id, nameservers=inputs.nameservers)
        finally:
            request.reads.forget("domains")
        # Both answer with the whole domain; the spec promises only what was set.
        return _from_api(after, state).model_copy(update={"id": state.id})

    def delete(self, request: Request, state: DomainState) -> None:
        """Turn auto-renew off, and say until when the domain stays. Raises where that cannot be done yet."""
        found = self._resolved(request, state.id)
        if found is None:
            self._must_stand_nowhere_else(request, state)
            if is_under_way(state):
                forget_order(request, state)
            return
        self._must_be_the_recorded_one(request, state, found, "nothing was changed")
        if found.auto_renew is not False:  # None: not known
            if not _is_settled(found):
                raise errors.WaitTimeout(
                    f"domain {state.name} (id {found.id}) is {found.status}, and its auto-renew cannot be "
                    "turned off before it is active; nothing was changed. Next: run it again then, or turn "
                    "it off in the control panel",
                    id=state.id,
                )
            try:
                found = request.client.domains.update(found.id, auto_renew=False)
            finally:
                request.reads.forget("domains")
            if found.auto_renew:
                raise errors.ResourceError(
                    f"domain {state.name} (id {found.id}) still renews: the service did not turn auto-renew "
                    "off. Next: run it again"
                )
        price = ""
        if found.price_renew:
            currency = found.currency or state.currency or ""
            price = f", {found.price_renew} {currency}".rstrip() + " a year if renewed"
        until = f" until {found.expires_at:%Y-%m-%d}" if found.expires_at else ""
        pending = "" if _is_settled(found) else f" ({found.status})"
        request.warn(
            f"domain {state.name} (id {found.id}{price}) stays{until}{pending}: auto-renew is off; the API "
            "cannot delete domains"
        )


def _takeover(request: Request, domain: m.Domain, reason: str) -> Takeover:
    made, paid = domain.created_at, None
    if made is not None and request.service_now() - made <= KEY_MEMORY:
        paid = paid_for(request.client, "domain", {"id": domain.id}, made - SENT_WITHIN, made + SENT_WITHIN)
    state, title = _from_api(domain), "domain"
    if paid is None:
        return Takeover(state, reason, made, currency=domain.currency, title=title)
    return Takeover(state, reason, made, paid.paid, paid.currency, title=title, invoice_id=paid.invoice_id)


def _refusal(domain: m.Domain, why: str) -> str:
    return (
        f"{ascii_name(domain.name)} is on this account already (domain {domain.id}): {why}; nothing was "
        f"ordered. Next: set adopt_id={domain.id} to take it over"
    )
