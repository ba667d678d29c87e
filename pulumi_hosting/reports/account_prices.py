"""Prices of the account, for what a preview does not say itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.client.results import Damaged
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.address_facts import quote_of
from pulumi_hosting.planning.resolve_names import resolved
from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.reports import domain_price
from pulumi_hosting.reports.balance import Renewal
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.resources.server_fields import from_api
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.request import Request

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AccountBalance:
    amount: Decimal
    currency: str
    now: datetime
    renewals: tuple[tuple[str, str, Renewal], ...]
    """Kind, id and renewal of everything that renews itself."""


class AccountPrices:
    """Asks the account. What it refuses is not known, and ``refusals`` says why."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.refusals: dict[str, None] = {}

    def charge(self, kind: str, declared: JsonObject) -> Cost | None:
        """What making it would charge now."""
        resource = RESOURCES.get(kind)
        if not isinstance(resource, Priced):
            return None
        priced = resource
        return self._ask(lambda: priced.cost(self._request, self._with_tariff(declared)))

    def monthly(self, kind: str, declared: JsonObject) -> tuple[Decimal, str | None] | None:
        """What it would cost per month, by the price list."""
        return self._ask(lambda: self._monthly(kind, self._with_tariff(declared)))

    def server(self, id: str) -> JsonObject | None:
        """A server as it is, with what its deletion would credit now; None where it cannot be read."""
        if id_number(id) is None:
            return None
        return self._ask(lambda: from_api(self._request.client.servers.get(int(id))).values())

    def server_named(self, name: str) -> JsonObject | None:
        """The one living server of that name."""
        found = self._ask(
            lambda: [
                str(server.id)
                for server in self._request.client.servers.list()
                if not isinstance(server, Damaged) and server.name == name and not server.is_gone
            ]
        )
        return self.server(found[0]) if found and len(found) == 1 else None

    def balance(self) -> AccountBalance | None:
        """The balance, and what will be taken from it."""
        found = self._ask(lambda: self._request.client.balance.get())
        renewals = self._ask(lambda: tuple(self._renewals()))
        if found is None or renewals is None:
            return None
        now = self._ask(self._request.service_now)
        return None if now is None else AccountBalance(found.balance, found.currency, now, renewals)

    def _monthly(self, kind: str, declared: JsonObject) -> tuple[Decimal, str | None] | None:
        if kind == "server":
            tariff = catalog_reads.tariffs(self._request).get(declared.get("tariff_id", 0))
            return None if tariff is None else (tariff.price_monthly, tariff.currency)
        if kind == "domain":
            amount, currency = domain_price.monthly(self._request, declared)
            return None if amount is None else (amount, currency)
        if kind == "server_ip" and id_number(declared.get("server_id")) is not None:
            quote = quote_of(self._request, str(declared["server_id"]))
            return None if quote is None else (quote.price_monthly, quote.currency)
        return None

    def _with_tariff(self, declared: JsonObject) -> dict[str, Any]:
        """The declaration, with the id of a tariff that it names."""
        return {**declared, **resolved(lambda: self._request, RESOURCES["server"], declared, {})[0]}

    def _renewals(self) -> Iterator[tuple[str, str, Renewal]]:
        client = self._request.client
        for server in client.servers.list():
            billing = None if isinstance(server, Damaged) or server.is_gone else server.billing
            if billing is None or not billing.auto_renew or billing.next_due_at is None:
                continue
            amount, months = billing.recurring_amount or Decimal(0), billing.months or 1
            if billing.cycle == "hourly":
                amount, months = amount * 24, 0
            what = f"server {server.name or server.id}"
            yield "server", str(server.id), Renewal(billing.next_due_at, what, amount, months)
        for domain in client.domains.list():
            if isinstance(domain, Damaged) or not domain.auto_renew or domain.expires_at is None:
                continue
            price, _ = catalog_reads.renewal_price(
                self._request, domain.name, domain.price_renew, domain.currency
            )
            yield (
                *("domain", str(domain.id)),
                Renewal(domain.expires_at, f"domain {domain.name}", price or Decimal(0), 12),
            )

    def _ask(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except HostingError as error:
            self.refusals[str(error)] = None
            return None
