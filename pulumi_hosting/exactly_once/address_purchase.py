"""Buying one address of a server once (API document, "Servers"): what is special about it.

The purchase answers "charged" and names no address: that is assigned later and read from the list. So
:class:`~pulumi_hosting.exactly_once.purchase.Purchase` looks at the account like this, one purchase per
server at a time (``Owners.turn``):

1. *Wait* until every bought address of the server is in the list.
2. *Look*: an address of unknown origin, however old, may be what an interrupted run bought. It is this
   resource's if the notes of this machine or its key say so. Without proof: stop before paying.

The key is made from what the account shows before the purchase. After a crash the same purchase is repeated
while nothing has changed, and buys once. Then the list is waited for until it grows, and the new address is
claimed.
"""

from collections.abc import Collection
from functools import partial

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, HostingError, IpLimitReached
from pulumi_hosting.exactly_once import address_list
from pulumi_hosting.exactly_once.address_facts import (
    Purchased,
    ServerAddresses,
    forget_quote,
    is_new,
    keys_of,
    named,
    quote_of,
    read_addresses,
)
from pulumi_hosting.exactly_once.address_owners import Owners
from pulumi_hosting.exactly_once.key_probe import KeyWalk, ask
from pulumi_hosting.exactly_once.payments import IP_PURCHASES, is_of
from pulumi_hosting.exactly_once.purchase import Purchase, When
from pulumi_hosting.session.errors import ResourceConflict, ResourceError
from pulumi_hosting.session.request import Request

# seconds in which the other resources of a program may still say which addresses are theirs
_OWNERS_SECONDS = 30.0


class AddressPurchase(Purchase[m.IpAdded, Purchased]):
    """One resource's purchase of an address of one server: found if an interrupted run of this resource
    bought it. Carry it out within ``Owners.turn``. ``attempt``: so many addresses of unknown origin are
    another's.
    """

    _before: ServerAddresses
    """What the account showed before the purchase: the loop looks before it asks for keys."""

    def __init__(self, request: Request, server_id: str, attempt: int = 0) -> None:
        self.server_id, self.attempt = server_id, attempt
        self.owners = Owners(request, server_id)
        what = f"purchase of an address for server {server_id}"
        is_of_the_server = partial(is_of, types=IP_PURCHASES, server_id=int(server_id))
        super().__init__(request, what, "server_ip", concerns=is_of_the_server)

    def walk(self) -> KeyWalk:
        keys = keys_of(self.request, self.server_id, self.attempt, self._before.before(0))
        return KeyWalk(keys, ask=ask(self.request.client))

    def look(self, when: When) -> Purchased | None:
        if when in ("before", "busy"):
            self._before = self._when_listed()
            return self._bought_before(self._before)
        if when in ("conflict", "undone"):
            return None
        after = read_addresses(self.request, self.server_id)
        shows = (after.bought, after.kept, after.everything)
        if shows == (self._before.bought, self._before.kept, self._before.everything):
            return None
        return self._purchased(None, None)

    def accept(self, answer: m.IpAdded, walk: KeyWalk) -> Purchased | None:
        return self._purchased(walk.key, answer)

    def send(self, idempotency_key: str) -> m.IpAdded:
        request, server_id = self.request, self.server_id
        self.owners.intend(idempotency_key, sorted(self._before.everything), self._before.paid)
        try:
            return request.client.servers.ips.add(int(server_id), idempotency_key=idempotency_key)
        except HostingError as error:
            forget_quote(request, server_id)
            if isinstance(error, ApiError) and error.status < 500 and not error.outcome_unknown:
                self.owners.drop_intent()
            raise

    def _purchased(self, key: str | None, added: m.IpAdded | None) -> Purchased:
        return Purchased(
            key,
            charged=added.charged if added else None,
            currency=added.currency if added else None,
            number=self._before.paid + 1,
            present_before=tuple(sorted(self._before.everything)),
        )

    def is_outdated(self, error: ApiError, /) -> bool:
        if isinstance(error, IpLimitReached):
            quote = quote_of(self.request, self.server_id)  # it was forgotten when this was answered
            return quote is not None and quote.extra_ips < quote.max_extra_ips
        return False

    def assigned(
        self, server: m.Server, key: str | None, before: Collection[str], number: int | None
    ) -> Purchased | None:
        """The address of a purchase that was not assigned at first; None until it is. ``server``: as it is
        now."""
        if server.ips and address_list.bought_texts(server) <= {*before}:
            return None
        addresses = read_addresses(self.request, self.server_id, server, number)
        new = [ip for ip in self.owners.unowned(addresses.extra) if is_new(ip, before)]
        paid = max(0, addresses.paid - 1) if number is None else number - 1
        ip = self.owners.claimed(new, addresses, paid)
        return None if ip is None else self.owners.record(ip, key, addresses.invoice_after(paid))

    # --- 1. wait until all are listed

    def _when_listed(self) -> ServerAddresses:
        wait, looks = self.request.poller(), 0
        while True:
            addresses, looks = read_addresses(self.request, self.server_id), looks + 1
            if addresses.bought != len(addresses.extra) and (looks == 1 or wait.over):
                forget_quote(self.request, self.server_id)  # one may have been released since
                addresses = read_addresses(self.request, self.server_id)
            if not addresses.missing or (wait.over and addresses.missing <= self.attempt):
                return addresses
            if wait.over:
                invoice = (
                    f"invoice {addresses.invoices[-1].id}"
                    if addresses.invoices
                    else "no invoice of it is known"
                )
                raise ResourceError(
                    f"server {self.server_id} counts {addresses.bought} bought addresses and shows "
                    f"{len(addresses.extra)} ({invoice}); nothing was bought. Next: run again later, or set "
                    f"order_attempt to {addresses.missing} to buy another"
                )
            self.request.info(f"server {self.server_id}: waiting for an address that was bought before")
            wait.pause()

    # --- 2. look for what was bought before

    def _bought_before(self, addresses: ServerAddresses) -> Purchased | None:
        """The address that an interrupted run of this resource bought. Raises ``ResourceConflict`` for more
        addresses of unknown origin than ``attempt`` allows for."""
        wait = self.request.poller(_OWNERS_SECONDS)
        server_id = self.server_id
        while unowned := self.owners.unowned(addresses.extra):
            if found := self.owners.proven(addresses, unowned, self.attempt):
                return found
            allowed = len(unowned) + addresses.missing
            if allowed <= self.attempt:
                return None
            if wait.over and self.request.name_is_identity:
                raise ResourceConflict(
                    f"server {server_id} got addresses since this run looked: {named(unowned)}; nothing was "
                    "bought. Next: run again, and they are counted",
                    id=f"{server_id}/{unowned[0].id}",
                )
            if wait.over:
                invoice = f", newest invoice {addresses.invoices[-1].id}" if addresses.invoices else ""
                raise ResourceConflict(
                    f"server {server_id} has addresses of unknown origin: {named(unowned)}{invoice}; "
                    "nothing was bought. Next: if other stacks, playbooks or people have them, set "
                    f"order_attempt to {allowed} to buy another; if an interrupted run of this resource "
                    "bought one and nothing else has it, set adopt_id to that one",
                    id=f"{server_id}/{unowned[0].id}",
                )
            wait.pause()
        return None
