"""Everything that is on the account: what can be declared as a resource, with its price; and prices of the
account, for what a preview does not say itself.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import Forbidden, HostingError, InvalidResponse
from pulumi_hosting.client.results import readable
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.address_list import quote_of
from pulumi_hosting.exactly_once.webhook_search import tag_of
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.planning.paid_time import PaidTime
from pulumi_hosting.planning.resolve_names import resolved
from pulumi_hosting.rehearsal.facts import JsonObject, ReportFacts
from pulumi_hosting.rehearsal.managed_objects import ManagedObject
from pulumi_hosting.reports.run_results import decimal_of
from pulumi_hosting.resources import RESOURCES, webhook_subscription
from pulumi_hosting.resources.base import AnyResource, State, several
from pulumi_hosting.resources.powers import Priced, Registered, listed
from pulumi_hosting.resources.server_fields import from_api, provisional
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session
from pulumi_hosting.session.text import as_text, without_secrets

T = TypeVar("T")


class AccountPrices:
    """Asks the account. What it refuses is not known, and ``refusals`` says why; nothing is known without an
    account, for the reason ``why_none``.
    """

    def __init__(self, account: Request | None, why_none: str = "") -> None:
        self._account = account
        self.refusals = dict.fromkeys([why_none] if why_none else ())

    def charge(self, kind: str, declared: JsonObject) -> Cost | None:
        """What making it would charge now."""
        resource = RESOURCES.get(kind)
        if not isinstance(resource, Priced):
            return None
        return self._ask(lambda request: resource.cost(request, _with_tariff(request, declared)))

    def monthly(self, kind: str, declared: JsonObject) -> tuple[Decimal, str | None] | None:
        """What it would cost per month, by the price list."""
        return self._ask(lambda request: _monthly(request, kind, _with_tariff(request, declared)))

    def server(self, id: str) -> JsonObject | None:
        """A server as it is, with what its deletion would credit now; None where it cannot be read."""
        if id_number(id) is None:
            return None
        return self._ask(lambda request: _server(request.client.servers.get(int(id))))

    def server_named(self, name: str) -> JsonObject | None:
        """The one living server of that name."""
        found = self._ask(
            lambda request: [str(server.id) for server in _living(request) if server.name == name]
        )
        return self.server(found[0]) if found and len(found) == 1 else None

    @cached_property
    def of_servers(self) -> dict[str, JsonObject]:
        """What each living server costs, by its id, from one list; nothing if that is not known."""
        return {str(server.id): _price_of(server) for server in self._ask(_living) or ()}

    def paid_time(self) -> PaidTime | None:
        """The balance, and what will be taken from it; None where a part of it is not known."""
        found = self._ask(paid_time_of)
        refused = {} if found is None else {**found.refused}
        refused.pop("invoices", None)  # no renewal is among them
        self.refusals.update(dict.fromkeys(refused.values()))
        return None if refused else found

    def _ask(self, question: Callable[[Request], T]) -> T | None:
        try:
            return None if self._account is None else question(self._account)
        except HostingError as error:
            self.refusals[str(error)] = None
            return None


def _server(server: m.ServerDetail) -> JsonObject:
    """Its state, with what no state has: what it costs, and what its deletion would credit now."""
    quote = {"amount": str(server.refund_quote.amount)} if server.refund_quote else None
    return {**from_api(server).values(), **_price_of(server), "refund_quote": quote}


def _price_of(server: m.Server) -> JsonObject:
    billing = server.billing
    return {"price_monthly": as_text(billing.price_monthly), "currency": billing.currency} if billing else {}


def _monthly(request: Request, kind: str, declared: JsonObject) -> tuple[Decimal, str | None] | None:
    if kind == "server":
        tariffs, ids = catalog_reads.tariffs(request), several(declared.get("tariff_id"))
        prices = [(tariffs[id].price_monthly, tariffs[id].currency) for id in ids if id in tariffs]
        return max(prices, default=None) if len(prices) == len(ids) else None
    if kind == "domain":
        amount, currency = monthly_of_domain(request, declared)
        return None if amount is None else (amount, currency)
    if kind == "server_ip" and id_number(declared.get("server_id")) is not None:
        quote = quote_of(request, str(declared["server_id"]))
        return None if quote is None else (quote.price_monthly, quote.currency)
    return None


def recorded_monthly(values: JsonObject) -> Decimal | None:
    """The price per month that an object records; of a domain a twelfth of its year."""
    yearly = decimal_of(values.get("price_renew"))
    return decimal_of(values.get("price_monthly")) if yearly is None else yearly / 12


def monthly_of_domain(request: Request, domain: JsonObject) -> tuple[Decimal | None, str | None]:
    """A twelfth of a year by its own ``price_renew``, else by that of its zone, and the currency; None where
    neither is known.
    """
    own, currency = decimal_of(domain.get("price_renew")), domain.get("currency")
    yearly, currency = catalog_reads.renewal_price(request, str(domain.get("name")), own, currency)
    return (None if yearly is None else yearly / 12), currency


def _with_tariff(request: Request, declared: JsonObject) -> dict[str, object]:
    """The declaration, with the id of a tariff that it names."""
    return {**declared, **resolved(lambda: request, RESOURCES["server"], declared, {})[0]}


def _living(request: Request) -> list[m.Server]:
    return [server for server in readable(request.client.servers.list())[0] if not server.is_gone]


_GONE = ("cancelled", "terminated", "transferred_out")
"""States of objects that the account still lists and that are not there any more."""


@dataclass(frozen=True, slots=True)
class AccountObject(ReportFacts):
    """One object of the account.

    - ``price_monthly``: what it costs per month, in ``currency``; 0 where it is free, None where the API does
      not say. A domain's price per year is divided by twelve; 0 where it does not renew itself.
    - ``tag``: the ownership tag of the resource that made it, or took it over last; None without one. Only
      servers and webhook subscriptions carry one.
    - ``months``: what a renewal of a monthly server pays for; None of everything else.
    - ``note``: what else a person should know, such as ``ends 2026-12-01``; empty where there is nothing.
    """

    JSON = ("kind", "id", "name", "price_monthly", "currency")

    resource: AnyResource
    state: State
    price_monthly: Decimal | None
    currency: str | None
    tag: str | None
    note: str = ""
    months: int | None = None

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def id(self) -> str:
        return self.state.id

    @property
    def adopt_id(self) -> str | None:
        """What the input ``adopt_id`` of its resource is set to; None where there is no such input."""
        if "adopt_id" not in self.resource.Inputs.model_fields:
            return None
        return self.id.rpartition("/")[2]  # what is part of another object: its own id, behind the other's

    @property
    def is_ending(self) -> bool:
        """Whether it can only end: it cannot be deleted, and is not renewed. A domain without auto-renew."""
        return isinstance(self.resource, Registered) and self.resource.is_released(self.state)

    @property
    def name(self) -> str:
        """What people call it: its name, its URL without what may be secret in it, or its address."""
        values = self.state.values()
        found = next((values[key] for key in ("name", "url", "domain", "address") if values.get(key)), "")
        return without_secrets(str(found)) if "url" in values else str(found)


@dataclass(frozen=True, slots=True)
class AccountObjects:
    """What the account holds, as far as the key may read it.

    ``unread``: kind → why its objects could not be listed.
    """

    objects: tuple[AccountObject, ...]
    unread: dict[str, str]

    def __iter__(self) -> Iterator[AccountObject]:
        return iter(self.objects)


def named(item: AccountObject | ManagedObject) -> dict[str, str]:
    """An object for machines."""
    return {"kind": item.kind, "id": item.id, "name": item.name}


def reading(client: Client, warn: Callable[[str], None], mode: str | None = None) -> Request:
    """A request for reports, which only read. ``warn``: called with each object that cannot be read;
    ``mode``: the only one that may be written in, ``live`` or ``test``."""
    request = Request(Session(client, declared_mode=mode), "report")
    request.warn = warn
    request.skip_damaged = lambda error: warn(str(error))
    return request


def read_account(
    request: Request, started: Callable[[int, int, str], None], kinds: Collection[str] = RESOURCES
) -> AccountObjects:
    """Every object of these kinds, servers first. ``unread`` says of which kinds the key has no scope, or an
    object could not be read; another error is raised. ``started`` takes the number of each kind, from 1, that
    of all kinds, and what is read.
    """
    found: list[AccountObject] = []
    unread: dict[str, str] = {}
    for number, kind in enumerate(kinds, 1):
        started(number, len(kinds), f"reading every {RESOURCES[kind].title}")
        damaged: list[HostingError] = []
        try:
            found += _objects(replace(request, skip_damaged=damaged.append), RESOURCES[kind])
        except (Forbidden, InvalidResponse) as error:
            damaged.append(error)
        if damaged:
            unread[kind] = "; ".join(map(str, damaged))
    known = {one.currency for one in found if one.currency}
    if len(known) == 1:  # addresses have none of their own
        found = [replace(one, currency=one.currency or min(known)) for one in found]
    return AccountObjects(tuple(found), unread)


def _objects(request: Request, resource: AnyResource) -> Iterator[AccountObject]:
    if resource.kind == "server":
        yield from _servers(request, resource)
        return
    if resource.kind == "webhook_subscription":
        for found in request.client.webhooks.list():
            state = webhook_subscription.from_api(found)
            yield AccountObject(resource, state, Decimal(0), None, tag_of(found))
        return
    for state in listed(request, resource):
        # what staff locked may be called cancelled, and is there
        if getattr(state, "status", None) not in _GONE or getattr(state, "blocked", None):
            price, currency = _price(request, state)
            yield AccountObject(resource, state, price, currency, None, _note(state))


def _servers(request: Request, resource: AnyResource) -> Iterator[AccountObject]:
    orders, unread_orders = readable(request.client.orders.list())
    servers, unread = readable(request.client.servers.list())
    for damaged in (*unread_orders, *unread):
        if request.skip_damaged:
            request.skip_damaged(damaged.error())
    for order in orders:
        if order.is_pending:
            note = f"ordered, {order.amount} {order.currency or ''} paid".rstrip()
            yield AccountObject(resource, provisional(order), None, order.currency, None, note)
    for server in servers:
        if not server.is_gone:
            state, billing = from_api(server), server.billing
            price, months = (billing.price_monthly, billing.months) if billing else (None, None)
            tag, note = state.ownership_tag, _note(state)
            yield AccountObject(resource, state, price, state.currency, tag, note, months)


def _price(request: Request, state: State) -> tuple[Decimal | None, str | None]:
    fields, values = type(state).model_fields, state.values()
    if "price_monthly" in fields:
        return decimal_of(values.get("price_monthly")), values.get("currency")
    if "price_renew" in fields and values.get("auto_renew") is not False:
        return monthly_of_domain(request, values)
    return Decimal(0), values.get("currency")


def _note(state: State) -> str:
    values = state.values()
    if values.get("status") not in (None, "active", "running"):
        return str(values["status"])
    if values.get("auto_renew") is False:
        until = values.get("expires_at") or values.get("next_due_at")
        return f"paid until {until[:10]}, does not renew itself" if until else "does not renew itself"
    return ""
