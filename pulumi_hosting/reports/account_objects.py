"""Everything that is on the account: what can be declared as a resource, with its price."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import Forbidden
from pulumi_hosting.client.results import Damaged
from pulumi_hosting.exactly_once.ownership_tag import split_tag
from pulumi_hosting.exactly_once.webhook_search import tag_of
from pulumi_hosting.rehearsal.facts import ReportFacts
from pulumi_hosting.rehearsal.managed_objects import ManagedObject
from pulumi_hosting.reports.account_prices import monthly_of_domain
from pulumi_hosting.reports.planned_changes import decimal_of
from pulumi_hosting.resources import RESOURCES, webhook_subscription
from pulumi_hosting.resources.base import AnyResource, State
from pulumi_hosting.resources.powers import Registered, listed
from pulumi_hosting.resources.server_fields import from_api, provisional
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session
from pulumi_hosting.session.text import without_secrets

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
    """Every object of these kinds, servers first. What the key has no scope for is in ``unread``; another
    error is raised. ``started`` takes the number of each kind, from 1, that of all kinds, and what is read.
    """
    found: list[AccountObject] = []
    unread: dict[str, str] = {}
    for number, kind in enumerate(kinds, 1):
        started(number, len(kinds), f"reading every {RESOURCES[kind].title}")
        try:
            found += _objects(request, RESOURCES[kind])
        except Forbidden as error:
            unread[kind] = str(error)
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
        if getattr(state, "status", None) not in _GONE:
            price, currency = _price(request, state)
            yield AccountObject(resource, state, price, currency, None, _note(state))


def _servers(request: Request, resource: AnyResource) -> Iterator[AccountObject]:
    for order in request.client.orders.list():
        if isinstance(order, Damaged):
            request.warn(str(order.error()))
        elif order.is_pending:
            note = f"ordered, {order.amount} {order.currency or ''} paid".rstrip()
            yield AccountObject(resource, provisional(order), None, order.currency, None, note)
    for server in request.client.servers.list():
        if isinstance(server, Damaged):
            request.warn(str(server.error()))
        elif not server.is_gone:
            state, billing, tag = from_api(server), server.billing, split_tag(server.notes)[1]
            price, months = (billing.price_monthly, billing.months) if billing else (None, None)
            yield AccountObject(resource, state, price, state.currency, tag, _note(state), months)


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
