"""What the account shows of a server's addresses, and the idempotency keys that are made of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, NotFound
from pulumi_hosting.exactly_once import address_list
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.key_probe import NONEXISTENT_ID, key_is_used
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.key_owner import account
from pulumi_hosting.session.request import Request


@dataclass(frozen=True, slots=True)
class ServerAddresses:
    """A server's addresses as the service counts them."""

    extra: tuple[m.Ip, ...]
    everything: frozenset[str]
    bought: int
    most: int
    invoices: tuple[m.Invoice, ...]
    """The paid ones, of addresses of the server, by id."""

    @property
    def paid(self) -> int:
        return len(self.invoices)

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
    invoices = [
        invoice
        for invoice in _invoices(request)
        if invoice.paid_at is not None
        and any(str(item.server_id) == server_id for item in invoice.items or ())
    ]
    everything = frozenset(str(ip.id) for ip in found)
    by_id = tuple(sorted(invoices, key=lambda invoice: invoice.id))
    return ServerAddresses(tuple(bought(found)), everything, quote.extra_ips, quote.max_extra_ips, by_id)


def _invoices(request: Request) -> Iterable[m.Invoice]:
    try:
        return list(request.client.invoices.list(type="ip_purchase"))
    except ApiError as error:
        if error.status != 400:
            raise
        return list(request.client.invoices.list(type="vds_addon"))  # the other name of the same thing


def is_used(request: Request, key: str) -> bool:
    """Whether the service remembers the key."""
    return key_is_used(partial(request.client.servers.renew, NONEXISTENT_ID, months=1, idempotency_key=key))


def keys_of(request: Request, server_id: str, attempt: int, facts: KeyFacts) -> KeyRing:
    """The keys of this resource's purchase that sees ``facts``."""
    me = account(request.client)
    body = {
        "server_id": server_id,
        "present": list(facts.present),
        "bought": facts.bought,
        "paid": facts.paid,
    }
    return KeyRing(me.account_id, me.livemode, request.identity, "add_server_ip", body, attempt)


def was_charged(request: Request, server_id: str, key: str) -> bool:
    """Whether the key is bound to a purchase that was carried out: its replay says so."""
    if not is_used(request, key):
        return False
    try:
        request.client.servers.ips.add(int(server_id), idempotency_key=key)
    except ApiError:
        return False  # bound to a refusal
    return True
