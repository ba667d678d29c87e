"""Buying one address of a server once (API document, "Servers").

The purchase answers "charged" and names no address: that is assigned later and read from the list. So it is
bought by these steps, one purchase per server at a time (``Owners.turn``):

1. *Wait* until every bought address of the server is in the list.
2. *Look*: an address of unknown origin, however old, may be what an interrupted run bought. It is this
   resource's if the notes of this machine or its key say so: the key was made from what the account showed
   before the purchase. Without proof: stop before paying.
3. *Buy*, with a key made from what the account shows now. After a crash the same purchase is repeated while
   nothing has changed, and buys once.
4. *Wait* until the list grows, and claim the new address.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import KEY_MEMORY_SECONDS
from pulumi_hosting.client.exceptions import (
    ApiError,
    HostingError,
    IdempotencyConflict,
    IdempotencyInProgress,
    InsufficientFunds,
    IpLimitReached,
    OperationInProgress,
    TransportError,
)
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.exactly_once.address_facts import (
    ServerAddresses,
    is_used,
    keys_of,
    named,
    quote_of,
    read_addresses,
    was_charged,
)
from pulumi_hosting.exactly_once.address_owners import Owners
from pulumi_hosting.session.errors import ResourceConflict, ResourceError
from pulumi_hosting.session.request import Request

_KEY_MEMORY = timedelta(seconds=KEY_MEMORY_SECONDS)
# a key that is about to be forgotten proves nothing: sent again a moment later, it buys
_MARGIN = timedelta(hours=1)
_GENERATIONS = 4
# seconds in which the other resources of a program may still say which addresses are theirs
_OWNERS_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Purchased:
    """``ip``: the address; None until it is assigned. ``number``: which purchase of the server it is, and
    ``present_before``: the ids of the addresses before it; both only while it is not assigned.
    """

    key: str | None
    ip: m.Ip | None = None
    invoice_id: str | None = None
    charged: Decimal | None = None
    currency: str | None = None
    number: int = 0
    present_before: tuple[str, ...] = ()


class AddressPurchase:
    """One resource's purchase of an address of one server. ``attempt``: so many addresses of unknown origin
    are another's.
    """

    def __init__(self, request: Request, server_id: str, attempt: int = 0) -> None:
        self.request, self.server_id, self.attempt = request, server_id, attempt
        self.owners = Owners(request, server_id)

    def place(self, approve: Callable[[], None]) -> Purchased:
        """Find what an interrupted run of this resource bought, or buy one. ``approve``: called before
        anything is paid.
        """
        wait = self.request.poller()
        last, generation = None, 0
        while True:
            addresses = self._when_listed()
            if (found := self._bought_before(addresses)) is not None:
                return found
            if addresses != last:
                last, generation = addresses, 0
            approve()
            self.request.clock.raise_if_cancelled()
            try:
                return self._buy(addresses, generation)
            except OperationInProgress:
                if wait.over:
                    raise
                key = keys_of(self.request, self.server_id, self.attempt, addresses.before(0)).key(generation)
                # the refusal may be stored, and would be repeated for ever
                generation += is_used(self.request, key)
            self.request.info(f"server {self.server_id}: another operation is running")
            wait.pause()

    def assigned(
        self, key: str | None, present_before: Iterable[str], number: int | None
    ) -> Purchased | None:
        """The address of a purchase that was not assigned at first; None until it is."""
        addresses = read_addresses(self.request, self.server_id)
        before = frozenset(present_before)
        new = [ip for ip in self.unowned(addresses.extra) if str(ip.id) not in before]
        paid = max(0, addresses.paid - 1) if number is None else number - 1
        ip = self._claimed(new, addresses, paid)
        if ip is None:
            return None
        invoice = addresses.invoice_after(paid)
        self.owners.record(ip, key, invoice)
        return Purchased(key, ip, invoice)

    def unowned(self, found: Iterable[m.Ip]) -> list[m.Ip]:
        """The addresses that no other resource is known to have, whatever their age."""
        request = self.request
        known = request.owned | request.ownership.of_others(request.identity)
        # Where addresses are counted (Ansible), one that came while this waited for its turn may be the very
        # one that is meant.
        return [
            ip
            for ip in found
            if f"{self.server_id}/{ip.id}" not in known
            and (request.name_is_identity or not self.owners.is_noted_as_anothers(ip))
        ]

    def is_old(self, ip: m.Ip) -> bool:
        """Whether the keys of its purchase are forgotten."""
        return ip.added_at is not None and ip.added_at < self.request.service_now() - _KEY_MEMORY

    def must_be_adoptable(self, ip: m.Ip) -> None:
        """Raise ``ResourceError`` for an address of this resource that is not taken over automatically."""
        bought = f"address {ip.address} (id {ip.id}) was bought by an earlier run"
        adopt = f'nothing was bought. Next: set adopt_id="{ip.id}" to take it over'
        if self.is_old(ip):
            raise ResourceError(f"{bought} of this resource, more than 7 days ago; {adopt}")
        if self.request.strict and self.request.scope is None:
            raise ResourceError(
                f"{bought} under this resource's name, and strict is set; {adopt}, or set hosting:scope"
            )

    # --- 1. wait until all are listed

    def _when_listed(self) -> ServerAddresses:
        wait = self.request.poller()
        while True:
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
        while unowned := self.unowned(addresses.extra):
            found = self._proven(addresses, unowned)
            if found is not None:
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

    def _proven(self, addresses: ServerAddresses, unowned: list[m.Ip]) -> Purchased | None:
        """The one of ``unowned`` that is shown to be this resource's, by the notes of this machine or by
        its purchase's key.
        """
        ip, paid, key = next(filter(self.owners.is_noted_as_mine, unowned), None), None, None
        if ip is None:
            since = self.request.service_now() - _KEY_MEMORY + _MARGIN
            for paid, key, candidates in self._possible_purchases(addresses, unowned):
                bought_at = candidates[0].added_at or (
                    addresses.invoices[-1].paid_at if addresses.invoices else None
                )
                if (
                    bought_at is not None
                    and bought_at > since
                    and was_charged(self.request, self.server_id, key)
                ):
                    ip = self._claimed(candidates, addresses, paid)
                    break
        if ip is None:
            return None
        self.must_be_adoptable(ip)
        invoice = None if paid is None else addresses.invoice_after(paid)
        self.request.info(f"address {ip.address} is this resource's: an earlier run bought it")
        self.owners.record(ip, key, invoice)
        return Purchased(key, ip, invoice)

    def _claimed(self, new: list[m.Ip], addresses: ServerAddresses, paid: int) -> m.Ip | None:
        """The first of the addresses that came since this resource's purchase which no other resource
        claimed. Two purchases at the same moment bring two addresses, and each may have either. ``paid``: the
        purchases before it. Raises ``ResourceError`` where claims prove nothing and there are several."""
        for ip in new:
            claim = self.owners.claim(ip)
            if claim == "ours":
                return ip
            if claim == "unproven":
                if len(new) == 1 and addresses.paid == paid + 1 and not addresses.missing:
                    return ip
                raise ResourceError(
                    f"server {self.server_id} got addresses from several purchases at the same time: "
                    f"{named(new)}; which of them is this resource's is not known, and nothing more was "
                    "bought. Next: give adopt_id the one that no other stack or play has"
                )
        return None

    def _possible_purchases(
        self, addresses: ServerAddresses, unowned: list[m.Ip]
    ) -> Iterator[tuple[int, str, list[m.Ip]]]:
        """Purchases that this resource may have made, as noted here or as the account looked before: how many
        had been paid before, the key, and the addresses that came afterwards."""
        intent = self.owners.intent()
        if intent is not None:
            new = [ip for ip in unowned if str(ip.id) not in intent["before"]]
            if new and addresses.paid > intent["paid"]:
                yield intent["paid"], intent["purchase_key"], new
        for place, first in enumerate(unowned):
            facts = addresses.before(len(addresses.extra) - addresses.extra.index(first))
            keys = keys_of(self.request, self.server_id, self.attempt, facts)
            yield from ((facts.paid, key, unowned[place:]) for key in map(keys.key, range(_GENERATIONS)))

    # --- 3. buy

    def _buy(self, addresses: ServerAddresses, generation: int) -> Purchased:
        """Pay for one. Raises ``OperationInProgress`` where the server is busy: the account may change by
        that.
        """
        request, server_id = self.request, self.server_id
        keys = keys_of(request, server_id, self.attempt, addresses.before(0))
        added: m.IpAdded | None = None
        before = sorted(addresses.everything, key=int)
        while True:
            key = keys.key(generation)
            generation += 1
            self.owners.intend(key, before, addresses.paid)
            try:
                added = request.client.servers.ips.add(int(server_id), idempotency_key=key)
            except IdempotencyInProgress:
                raise
            except OperationInProgress:
                self.owners.drop_intent()
                raise
            except ApiError as error:
                if error.status < 500:
                    self.owners.drop_intent()
                    if generation < _GENERATIONS and self._is_outdated(error):
                        continue
                    raise
                self._must_show(addresses, error, key)
            except TransportError as error:
                self._must_show(addresses, error, key)
            finally:
                request.reads.forget("ips", server_id)
                request.reads.forget("ip quote", server_id)
            return Purchased(
                key,
                charged=added.charged if added else None,
                currency=added.currency if added else None,
                number=addresses.paid + 1,
                present_before=tuple(before),
            )

    def _must_show(self, addresses: ServerAddresses, error: HostingError, key: str) -> None:
        """After a lost answer: go on if the account shows the purchase, else stop."""
        after = read_addresses(self.request, self.server_id)
        if (after.bought, after.paid, after.everything) == (
            addresses.bought,
            addresses.paid,
            addresses.everything,
        ):
            raise ResourceError(
                f"{error} — no purchase and no new address show yet. Next: run again; the same purchase is "
                f"repeated, never a second (key {key})"
            ) from None

    def _is_outdated(self, error: ApiError) -> bool:
        """Whether the key is bound to a refusal that the present state of the account contradicts, or to
        something else.
        """
        if isinstance(error, IdempotencyConflict):
            return True
        if isinstance(error, InsufficientFunds):
            balance = catalog_reads.balance(self.request, fresh=True)
            return error.required is not None and balance is not None and balance.balance >= error.required
        if isinstance(error, IpLimitReached):
            quote = quote_of(self.request, self.server_id, fresh=True)
            return quote is not None and quote.extra_ips < quote.max_extra_ips
        return False
