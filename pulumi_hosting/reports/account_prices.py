"""Prices of the account, for what a preview does not say itself."""

from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.client.results import readable
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.address_facts import quote_of
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.planning.paid_time import PaidTime
from pulumi_hosting.planning.resolve_names import resolved
from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.reports.planned_changes import decimal_of
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.resources.server_fields import from_api
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

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
        tariff = catalog_reads.tariffs(request).get(declared.get("tariff_id", 0))
        return None if tariff is None else (tariff.price_monthly, tariff.currency)
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
