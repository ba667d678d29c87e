"""What is paid in advance, as the account shows it: one look for a run, and what it says of one object.

A run asks for nothing here while what it manages is paid for longer than a warning reaches. Else it reads the
servers, the domains, the unpaid invoices and the balance once. What the key may not read is not known, and
nothing is said of it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeVar

from pulumi_hosting.api import models as m
from pulumi_hosting.api import operations
from pulumi_hosting.api.models.body import Response
from pulumi_hosting.client.exceptions import HostingError, InsufficientScope
from pulumi_hosting.client.results import readable
from pulumi_hosting.client.shared_store import StoreUnavailable
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.planning.paid_time import Due, PaidTime
from pulumi_hosting.resources.base import AnyResource, Inputs, State
from pulumi_hosting.resources.powers import Registered, Remarked
from pulumi_hosting.session import prepaid
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS, UNPAID
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.prepaid import Prepaid
from pulumi_hosting.session.request import WHOLE_RUN, Request

R = TypeVar("R", bound=Response)


@dataclass(frozen=True, slots=True)
class Remark:
    """What a run says of the paid time of one object. ``ended``: how its time is over, as
    ``Prepaid.ended``; ``what``: the object, if it is known."""

    ended: str = ""
    line: str | None = None
    what: Prepaid | None = field(default=None, compare=False)


def remark(request: Request, resource: AnyResource, state: State, declared: Mapping[str, object]) -> Remark:
    """Look whether the time of an object is over, or about to be and not paid for. ``declared``: its inputs.
    Raises nothing: what cannot be read is not known."""
    if not isinstance(resource, Remarked) or state.mode == "test" or not state.id.isdigit():
        return Remark()
    what = None
    try:
        what = resource.prepaid(request, state)
        is_near = what and (what.ended or what.is_locked or what.is_near(catalog_reads.service_now(request)))
        if what is None or not is_near:
            return Remark(what=what)
        # auto_renew is set by this run, and what is kept paid is renewed by one
        renews = declared.get("keep_paid") or declared.get("auto_renew")
        paid = paid_time_of(request).declared(what.key, renews)
        event = paid.of(what.key) or (Due("over", what, what.until) if what.ended else None)
        return Remark(what=what) if event is None else Remark(event.what.ended, paid.warning(event), what)
    except HostingError:
        return Remark(what.ended if what else "", what=what)


def tell(request: Request, resource: AnyResource, state: State, declared: Mapping[str, object]) -> Remark:
    """Warn of what ``remark`` says, and of how long the balance lasts, each once in a session: a preview with
    a refresh compares twice. Returns what ``remark`` does."""
    found = remark(request, resource, state, declared)
    if found.line and request.session.announces(resource.kind, found.line, state.id):
        request.warn(found.line)
        paid = paid_time_of(request)
        # that all is covered is no help for what has ended
        is_told = not found.ended or paid.first_short is not None
        if is_told and request.session.announces(None, "balance", "covers"):
            held = "" if paid.balance is None else f"balance {paid.balance} {paid.currency}: "
            request.warn(f"{held}{paid.covers()}")
    return found


def bought(resource: AnyResource, inputs: Inputs, state: State) -> str | None:
    """What to say of a new object that the service will not renew, where its declaration does not say so."""
    shown = state.values()
    if state.mode == "test" or shown.get("auto_renew") is not False:
        return None
    until = shown.get("expires_at") or shown.get("next_due_at")
    return _not_renewed(resource, inputs, shown["name"], f" is paid until {until[:10]}, and" if until else "")


def to_be_bought(resource: AnyResource, inputs: Inputs) -> str | None:
    """The same before it is bought: the service's default for what is registered is not to renew it."""
    is_ours = isinstance(resource, Registered)
    return _not_renewed(resource, inputs, getattr(inputs, "name", "")) if is_ours else None


def _not_renewed(resource: AnyResource, inputs: Inputs, name: str, paid: str = "") -> str | None:
    given = inputs.given()
    if given.get("auto_renew") is not None or given.get("keep_paid") is not None:
        return None
    return f"{resource.title} {name}{paid} does not renew itself. Next: set auto_renew or keep_paid"


def paid_time_of(request: Request) -> PaidTime:
    """What is paid in advance on the account, asked for once in a run."""
    return request.shared(("paid time",), lambda: _asked(request), WHOLE_RUN)


def _asked(request: Request) -> PaidTime:
    refused: dict[str, str] = {}
    failed: list[str] = []
    client = request.client
    # What a key may not read is not asked for again by each task of a playbook.
    held = {*client.key_owner.get().scopes} if client.key_owner.is_known else {*operations.SCOPES}

    def refuse(what: str, error: HostingError) -> None:
        refused[what] = str(error)
        if not isinstance(error, InsufficientScope):
            failed.append(what)

    def ask(operation: str, question: Callable[[], Iterable[R]]) -> list[R]:
        what = operation.partition("_")[2]
        lacking = {*operations.BY_ID[operation].scopes} - held
        if lacking:
            refused[what] = f"the API key lacks {' and '.join(lacking)}"
            return []
        try:
            found, damaged = readable(question())
        except HostingError as error:
            refuse(what, error)
            return []
        if damaged:
            refused[what] = str(damaged[0].error())
        return found

    def kept(operation: str, part: str, question: Callable[[], Iterable[R]]) -> list[R]:
        """Asked for once by all processes of the run."""
        return ask(operation, lambda: catalog_reads.listed(request, operation, question, WHOLE_RUN, part))

    def price_of(found: m.Domain) -> Decimal | None:
        try:
            return catalog_reads.renewal_price(request, found.name, found.price_renew, found.currency)[0]
        except HostingError as error:
            refuse("prices", error)
            return None

    servers: list[m.Server] = ask(
        "list_servers", lambda: request.session.listed(ORDERS_AND_SERVERS, "list_servers", WHOLE_RUN)
    )
    domains = kept("list_domains", "domains", client.domains.list)
    invoices = kept("list_invoices", UNPAID, lambda: client.invoices.list(status="not_paid"))
    balances = kept("get_balance", "balance", lambda: [client.balance.get()])
    if not balances:  # a run that may not see it keeps that as no balance
        refused.setdefault("balance", "the API key lacks balance:read")
    objects = [prepaid.of_server(found) for found in servers if not (found.is_gone or found.is_sandbox)]
    for found in domains:
        if not found.is_gone:
            objects.append(prepaid.of_domain(found, price_of(found)))
    objects = prepaid.with_invoices(objects, invoices)
    amount, currency = next(((one.balance, one.currency) for one in balances), (None, None))
    now = catalog_reads.service_now(request)
    paid = PaidTime(client.words, now, tuple(objects), amount, currency, refused, failed)
    if paid.first_short is None or not paid.first_short.what.is_near(now):
        return paid
    try:  # a top-up is advised
        offered = client.balance.topup_info()
    except HostingError:
        return paid
    return replace(paid, gateway=offered.gateways[0] if offered.gateways else paid.gateway, least=offered.min)


def remark_on_order(request: Request, cost: Cost) -> None:
    """Say what a real run would be refused for: the balance does not cover the charge, or the shared store
    cannot be used."""
    if cost.balance is not None and cost.amount > cost.balance:
        price = f"{cost.amount} {cost.currency} for {cost.what}"
        request.warn(f"{price} is more than the balance of {cost.balance}: it would be refused")
    warn_of_store(request)


def warn_of_store(request: Request) -> None:
    """Say once that the shared store cannot be used, without which nothing is bought."""

    def look() -> None:
        try:
            request.client.store.living()
        except StoreUnavailable as error:
            request.warn(f"nothing can be bought: {error}")

    request.shared(("shared store",), look, WHOLE_RUN)
