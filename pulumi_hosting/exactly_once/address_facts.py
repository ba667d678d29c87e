"""What the account shows of a server's addresses, and the idempotency keys that are made of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, NotFound
from pulumi_hosting.exactly_once import address_list
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.key_probe import ask, is_bound_to_an_order
from pulumi_hosting.exactly_once.payments import payment
from pulumi_hosting.exactly_once.purchase import Evidence, Verdict, judge
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """A server's addresses as the service counts them."""

    extra: tuple[m.Ip, ...]
    everything: frozenset[str]
    bought: int
    most: int
    invoices: tuple[m.Invoice, ...]
    """Those that were paid, of addresses of the server, by id; what was returned since is among them."""

    @property
    def paid(self) -> int:
        return len(self.invoices)

    @property
    def kept(self) -> int:
        """The number of purchases that were not returned."""
        return sum(invoice.status not in ("refunded", "cancelled") for invoice in self.invoices)

    @property
    def missing(self) -> int:
        """Bought addresses that the list does not show yet."""
        return max(0, self.bought - len(self.extra))

    def before(self, unexplained: int) -> "KeyFacts":
        """What a purchase saw that brought the last ``unexplained`` addresses, or all that followed it."""
        left = len(self.extra) - unexplained
        return KeyFacts(
            tuple(ip.id for ip in self.extra[:left]), self.bought - unexplained, self.paid - unexplained
        )

    def possibly_before(self, unexplained: int) -> "Iterator[KeyFacts]":
        """The same, and what it saw if purchases were returned that were paid after it looked."""
        facts = self.before(unexplained)
        for returned in range(self.paid - self.kept + 1):
            yield replace(facts, paid=facts.paid - returned)

    def invoice_after(self, paid: int) -> str | None:
        """Id of the one invoice that followed the first ``paid``; None where there is none, or are
        several.
        """
        return str(self.invoices[paid].id) if len(self.invoices) == paid + 1 else None


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """What keys are made of."""

    present: tuple[int, ...]
    bought: int
    paid: int


def bought(found: Iterable[m.Ip]) -> list[m.Ip]:
    """The bought ones, in the order of their ids."""
    return sorted((ip for ip in found if not ip.primary and ip.ip_version != 6), key=lambda ip: ip.id)


def named(found: Iterable[m.Ip]) -> str:
    return ", ".join(f"{ip.address} (id {ip.id})" for ip in found)


def quote_of(request: Request, server_id: str, *, fresh: bool = False) -> m.IpQuote | None:
    """What one more address costs, asked once a minute; None if there is no such server. ``fresh``: now."""
    if fresh:
        request.reads.forget("ip quote", server_id)

    def fetch() -> m.IpQuote | None:
        try:
            return request.client.servers.ips.quote(int(server_id))
        except NotFound:
            return None

    return request.shared(("ip quote", server_id), fetch)


def read_addresses(request: Request, server_id: str) -> ServerAddresses:
    """The server's addresses as they are now. Raises ``ResourceError`` if there is no such server."""
    found = address_list.of_server(request, server_id, fresh=True)
    quote = quote_of(request, server_id, fresh=True)
    if found is None or quote is None:
        raise ResourceError(
            f"server_id: there is no server {server_id} on this account. Next: correct server_id"
        )
    everything = frozenset(str(ip.id) for ip in found)
    paid = _paid_invoices(request, server_id)
    return ServerAddresses(tuple(bought(found)), everything, quote.extra_ips, quote.max_extra_ips, paid)


def became_of(request: Request, server_id: str, number: int | None) -> Verdict:
    """What became of a purchase of an address that is not assigned. ``number``: which purchase of the server
    it is; None if that is not known."""
    paid, ordered_at = _paid_invoices(request, server_id), None
    invoice = paid[number - 1] if number is not None and 0 < number <= len(paid) else None
    if invoice is not None:
        ordered_at = invoice.paid_at or invoice.created_at
    return judge(
        Evidence(
            payment=None if invoice is None else payment(request.client, invoice.id),
            age=None if ordered_at is None else request.service_now() - ordered_at,
        )
    )


def _paid_invoices(request: Request, server_id: str) -> tuple[m.Invoice, ...]:
    """The invoices of addresses of the server that were paid, by id."""
    found = (
        invoice
        for invoice in _invoices(request)
        if invoice.paid_at is not None
        and any(str(item.server_id) == server_id for item in invoice.items or ())
    )
    return tuple(sorted(found, key=lambda invoice: invoice.id))


def _invoices(request: Request) -> Iterable[m.Invoice]:
    try:
        return list(request.client.invoices.list(type="ip_purchase"))
    except ApiError as error:
        if error.status != 400:
            raise
        return list(request.client.invoices.list(type="vds_addon"))  # the other name of the same thing


def keys_of(request: Request, server_id: str, attempt: int, facts: KeyFacts) -> KeyRing:
    """The keys of this resource's purchase that sees ``facts``."""
    body = {
        "server_id": server_id,
        "present": list(facts.present),
        "bought": facts.bought,
        "paid": facts.paid,
    }
    return KeyRing.of(request.client, request.identity, "add_server_ip", body, attempt)


def was_charged(request: Request, server_id: str, key: str) -> bool:
    """Whether the key is bound to a purchase that was carried out: its replay says so."""
    if not is_bound_to_an_order(ask(request.client), key):
        return False
    try:
        request.client.servers.ips.add(int(server_id), idempotency_key=key)
    except ApiError:
        return False  # bound to a refusal
    return True
