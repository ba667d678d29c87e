"""What the account shows of a server's addresses, what the resources about them share, and the idempotency
keys that are made of it: the list, read once for all of them, and ids of the form ``<server>/<address>``.

The list and the quote are expensive questions on some deployments (20 a minute); the server itself is not,
and shows the text of each address. So whoever waits asks the server, and a list is believed while it has what
the server shows.
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number, passes
from pulumi_hosting.client.exceptions import ApiError, Forbidden, NotFound
from pulumi_hosting.exactly_once.catalog_reads import listed
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing, ask, is_bound_to_an_order
from pulumi_hosting.exactly_once.order_facts import living_server
from pulumi_hosting.exactly_once.ownership_check import must_be_the_recorded_one
from pulumi_hosting.exactly_once.payments import payment
from pulumi_hosting.exactly_once.purchase import Evidence, Verdict, judge
from pulumi_hosting.session.account_snapshot import Change
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.request import Request


def plain_address(text: str) -> str:
    """One spelling per address.

    >>> plain_address("2001:0DB8::0:1")
    '2001:db8::1'
    """
    with suppress(ValueError):
        if "%" not in text:  # a zone is that of one machine
            return str(ipaddress.ip_address(text.strip()))
    raise ValueError("must be an IPv4 or IPv6 address")


FRESH = 60.0  # seconds for which the addresses of a server are believed
# seconds for which a list of all addresses believes them: at 20 servers a minute it may take that long
LISTED = 600.0


def of_server(
    request: Request, server_id: str, *, fresh: bool = False, max_age: float = FRESH
) -> list[m.Ip] | None:
    """Every address of a server, v4 and v6; None if there is no such server."""
    if fresh:
        request.reads.forget("ips", server_id)
    ask = partial(request.client.servers.ips.list, int(server_id))
    try:
        return listed(request, "list_server_ips", ask, max_age, part_of(server_id))
    except NotFound:
        return None


def shown(server: m.Server) -> frozenset[str]:
    """Every address that the server itself shows."""
    return frozenset(map(plain_address, server.ips or ()))


def bought_texts(server: m.Server) -> frozenset[str]:
    """The bought ones among them."""
    return frozenset(text for text in shown(server) if ":" not in text and text != server.ip)


def of_shown(request: Request, server: m.Server) -> list[m.Ip]:
    """The addresses of a server that was read just now, the bought ones at least."""
    texts, server_id = shown(server), str(server.id)
    if texts and not bought_texts(server):
        return []
    found = of_server(request, server_id, max_age=LISTED) if texts else None
    if found is None or texts != {plain_address(ip.address) for ip in found}:
        found = of_server(request, server_id, fresh=True)
    return found or []


def part_of(server_id: str) -> str:
    """The part of the snapshot that holds the addresses of a server."""
    return f"ips {server_id}"


def everywhere(request: Request, server_id: str | None) -> Iterator[tuple[str, m.Ip]]:
    """Server id and address: of one server as they are now, or of all on the account."""
    if server_id is not None:
        for ip in of_server(request, server_id, fresh=True) or []:
            yield server_id, ip
        return
    for server in request.client.servers.list():
        if not server.is_gone:
            for ip in of_server(request, str(server.id), max_age=LISTED) or []:
                yield str(server.id), ip


def pick(found: list[m.Ip] | None, wanted: str) -> m.Ip | None:
    """The one of ``found`` with this number or this address."""
    return next((ip for ip in found or () if wanted in (str(ip.id), plain_address(ip.address))), None)


def find(
    request: Request, server_id: str, wanted: str, *, fresh: bool = False, max_age: float = FRESH
) -> m.Ip | None:
    """The address of the server with this number or text."""
    return pick(of_server(request, server_id, fresh=fresh, max_age=max_age), wanted)


def must_be_recorded(
    request: Request, title: str, id: str, ip: m.Ip, recorded: str | None, outcome: str
) -> None:
    """Raise ``NotOurs`` if the number in an id is that of another address than the ``recorded`` one."""
    if not request.name_is_identity:
        shown = {"address": plain_address(ip.address)}
        must_be_the_recorded_one(title, id, {"address": recorded or None}, shown, outcome)


SIMULATED = "sandbox"
"""Stands for the address in the id of one that was only simulated."""
ID_FORM = "<server id>/<address id>, or <server id>/<address>"


def is_id(id: str) -> bool:
    """Whether an address may have this id, one that was only simulated too."""
    server_id, _, address = id.partition("/")
    is_address = id_number(address) is not None or address == SIMULATED or passes(plain_address, address)
    return id_number(server_id) is not None and is_address


def split_id(id: str) -> tuple[str, str]:
    """Server and address of an id ``<server id>/<address id or address>``."""
    server_id, _, address = id.partition("/")
    return server_id, plain_address(address) if "." in address or ":" in address else address


_QUOTE, _INVOICES = "get_server_ip_quote", "list_invoices"
_Marks = frozenset[tuple[int, str]]
"""Ids and statuses of invoices."""


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """A server's addresses as the service counts them."""

    extra: tuple[m.Ip, ...]
    everything: frozenset[str]
    bought: int
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
        """Id of the one invoice that followed the first ``paid``; None if there is none, or are
        several.
        """
        return str(self.invoices[paid].id) if len(self.invoices) == paid + 1 else None


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """What keys are made of."""

    present: tuple[int, ...]
    bought: int
    paid: int


@dataclass(frozen=True, slots=True)
class Purchased:
    """``ip``: the address; None until it is assigned. ``number``: which purchase of the server it is, and
    ``present_before``: the addresses before it; both only while it is not assigned.
    """

    key: str | None
    ip: m.Ip | None = None
    invoice_id: str | None = None
    charged: Decimal | None = None
    currency: str | None = None
    number: int = 0
    present_before: tuple[str, ...] = ()


def bought(found: Iterable[m.Ip]) -> list[m.Ip]:
    """The bought ones, in the order of their ids."""
    return sorted((ip for ip in found if not ip.primary and ip.ip_version != 6), key=lambda ip: ip.id)


def is_new(ip: m.Ip, before: Collection[str]) -> bool:
    """Whether it is not one of those before a purchase. Their ids are in notes of earlier versions."""
    return not {str(ip.id), plain_address(ip.address)} & {*before}


def named(found: Iterable[m.Ip]) -> str:
    return ", ".join(f"{ip.address} (id {ip.id})" for ip in found)


def quote_of(request: Request, server_id: str) -> m.IpQuote | None:
    """What one more address costs, asked once a run; None if there is no such server."""
    kept = _quoted(request, server_id)
    return None if kept is None else kept[0]


def forget_quote(request: Request, server_id: str) -> None:
    """Ask for it again when it is wanted next, and for the invoices before it."""
    request.reads.forget("ip invoices")
    request.reads.forget("ip quote", server_id)


def _quoted(request: Request, server_id: str) -> tuple[m.IpQuote, _Marks] | None:
    """The quote, and the invoices of addresses that were read before it: what was bought since is missing."""

    def before() -> dict[str, list[Any]]:
        try:
            return {_INVOICES: _invoices(request)}
        except Forbidden:
            return {_INVOICES: []}  # a key that only asks for prices

    def ask() -> dict[str, list[Any]]:
        known = request.session.snapshot("ip invoices", before, LISTED)[_INVOICES]
        quote = request.client.servers.ips.quote(int(server_id))
        return {_QUOTE: [quote], _INVOICES: _paid(known, server_id)}

    try:
        kept = request.session.snapshot(f"ip quote {server_id}", ask, LISTED)
    except NotFound:
        return None
    return kept[_QUOTE][0], _marks(kept[_INVOICES])


def read_addresses(
    request: Request, server_id: str, server: m.Server | None = None, own: int | None = None
) -> ServerAddresses:
    """The server's addresses as they are now. Raises ``ResourceError`` if there is no such server.

    The list and the quote are expensive questions on some deployments, so each is believed until a cheap one
    contradicts it: the server itself shows other addresses, or the invoices a purchase or a return that the
    quote does not count. ``server``: it, if it was read just now. ``own``: which purchase of the server is
    known to be accepted; it is counted.
    """
    server = server or living_server(request, server_id)
    if server is not None:
        found, paid = of_shown(request, server), tuple(_paid(_invoices(request), server_id))
        count = _counted(request, server_id, paid, own)
        if count is not None:
            listed = {plain_address(ip.address) for ip in found}
            everything = shown(server) | listed
            return ServerAddresses(tuple(bought(found)), everything, count, paid)
    raise ResourceError(f"server_id: there is no server {server_id} on this account. Next: correct server_id")


def _counted(request: Request, server_id: str, paid: tuple[m.Invoice, ...], own: int | None) -> int | None:
    kept = _quoted(request, server_id)
    if kept is not None and kept[1] != _marks(paid):
        if own == len(paid) and kept[1] == _marks(paid[:-1]):
            part, quote = f"ip quote {server_id}", kept[0]
            counted = quote.model_copy(update={"extra_ips": quote.extra_ips + 1})
            request.reads.snapshot.apply(Change("set", part, _QUOTE, "0", counted))
            request.reads.snapshot.apply(Change("set", part, _INVOICES, str(paid[-1].id), paid[-1]))
            return counted.extra_ips
        forget_quote(request, server_id)
        kept = _quoted(request, server_id)
    return None if kept is None else kept[0].extra_ips


def became_of(request: Request, server_id: str, number: int | None) -> Verdict:
    """What became of a purchase of an address that is not assigned. ``number``: which purchase of the server
    it is; None if that is not known."""
    paid = _paid(_invoices(request), server_id)
    if number is None or not 0 < number <= len(paid):
        return judge(Evidence())
    invoice = paid[number - 1]
    money = payment(request.client, invoice.id)
    return judge(Evidence(payment=money, age=request.age_of(invoice.paid_at)))


def _paid(invoices: Iterable[m.Invoice], server_id: str) -> list[m.Invoice]:
    """Those of addresses of the server that were paid, by id."""
    found = (
        invoice
        for invoice in invoices
        if invoice.paid_at is not None
        and any(str(item.server_id) == server_id for item in invoice.items or ())
    )
    return sorted(found, key=lambda invoice: invoice.id)


def _marks(paid: Iterable[m.Invoice]) -> _Marks:
    return frozenset((invoice.id, invoice.status) for invoice in paid)


def _invoices(request: Request) -> list[m.Invoice]:
    try:
        return list(request.client.invoices.list(type="ip_purchase"))
    except ApiError as error:
        if error.status != 400:
            raise
        return list(request.client.invoices.list(type="vds_addon"))  # the other name of the same thing


def keys_of(request: Request, server_id: str, attempt: int, facts: KeyFacts) -> KeyRing:
    """The keys of this resource's purchase that sees ``facts``."""
    body = {"server_id": server_id, **asdict(facts)}
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
