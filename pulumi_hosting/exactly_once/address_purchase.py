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

The service keeps no text with an address, so two kinds of evidence of whose it is stand beside the states of
the stacks:

- *Notes* in a private file per server, shared by the runs of one user on this machine: which resource has
  which address, and which purchase is under way. Without them a run knows less and stops earlier.
- *Claims* on the account, for runs on other machines: an idempotency key made of the address alone is sent
  with an order that cannot be carried out, for an object that cannot exist and whose number stands for the
  resource. The first to send it binds the key; every other resource is answered ``idempotency_conflict``. So
  two purchases that were made at the same moment end with one address each. If the service does not
  remember refused requests a claim proves nothing, and this is noticed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.client import exceptions
from pulumi_hosting.exactly_once import address_list, local_files, order_facts
from pulumi_hosting.exactly_once.idempotency_keys import (
    KEY_MEMORY,
    NONEXISTENT_ID,
    KeyRing,
    KeyWalk,
    ask,
    digest,
    key_is_used,
)
from pulumi_hosting.exactly_once.local_files import turn
from pulumi_hosting.exactly_once.ownership_check import why_not_taken_over
from pulumi_hosting.exactly_once.payments import IP_PURCHASES, is_of
from pulumi_hosting.exactly_once.purchase import Purchase, When
from pulumi_hosting.session.errors import ResourceConflict, ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

Claim = Literal["ours", "another's", "unproven"]
# a key that is about to be forgotten proves nothing: sent again a moment later, it buys
_MARGIN = timedelta(hours=1)
_GENERATIONS = 6  # keys of one look at the account: each failure of the service uses up to two
_OWNERS = 2**48  # claims use the numbers NONEXISTENT_ID - _OWNERS to NONEXISTENT_ID - 1


@dataclass
class Owners:
    """The evidence about the addresses of one server, as the resource of ``request`` sees it."""

    request: Request
    server_id: str
    _known: dict[str, Any] | None = field(default=None, init=False)

    @property
    def me(self) -> str:
        """A hash of the resource's identity."""
        return digest(self.request.identity.encode())

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One purchase after the other: between the runs and threads of this machine. Raises
        ``LockTimeout``, ``LocalFilesError``.
        """
        with turn(self.request, self._purpose, f"buying an address for server {self.server_id}"):
            self._known = None
            yield

    # --- notes

    def noted(self, ip: m.Ip) -> str | None:
        """Who has the address, as it was noted last; None if nothing was."""
        note = self._notes().get("addresses", {}).get(str(ip.id))
        # Ids begin at the same number again when an emulator is reset.
        return note["owner"] if note is not None and note["added_at"] == as_text(ip.added_at) else None

    def is_noted_as_mine(self, ip: m.Ip) -> bool:
        return self.noted(ip) == self.me

    def is_noted_as_anothers(self, ip: m.Ip) -> bool:
        return self.noted(ip) not in (None, self.me)

    def is_held_by_a_running_process(self, ip: m.Ip) -> bool:
        """Whether another process that still runs noted the address for another resource."""
        if not self.is_noted_as_anothers(ip):
            return False
        return self._scope.store.living()(self._notes()["addresses"][str(ip.id)]["process"])

    def record(self, ip: m.Ip, purchase_key: str | None, invoice_id: str | None) -> address_list.Purchased:
        """Note that this resource has the address. A run that cannot write it goes on: what is not noted
        only makes others stop.
        """
        note = {
            "owner": self.me,
            "address": ip.address,
            "added_at": as_text(ip.added_at),
            "purchase_key": purchase_key,
            "invoice_id": invoice_id,
            "process": self._scope.store.process,
        }
        with suppress(local_files.LocalFilesError), self._changed_notes() as notes:
            notes.setdefault("addresses", {})[str(ip.id)] = note
            notes.get("intents", {}).pop(self.me, None)
        return address_list.Purchased(purchase_key, ip, invoice_id)

    def forget(self, ip_id: str) -> None:
        """The address was released."""
        with suppress(local_files.LocalFilesError), self._changed_notes() as notes:
            notes.get("addresses", {}).pop(ip_id, None)

    def intend(self, purchase_key: str, before: Sequence[str], paid: int) -> None:
        """Note, before it is sent, what the account showed before this resource's purchase. Raises
        ``LocalFilesError``.
        """
        with self._changed_notes() as notes:
            intent = {"purchase_key": purchase_key, "before": list(before), "paid": paid}
            notes.setdefault("intents", {})[self.me] = intent

    def drop_intent(self) -> None:
        """The purchase of :meth:`intend` was refused."""
        with suppress(local_files.LocalFilesError), self._changed_notes() as notes:
            notes.get("intents", {}).pop(self.me, None)

    def intent(self) -> Mapping[str, Any] | None:
        """What :meth:`intend` noted, if neither an address was recorded nor a refusal came since."""
        found: Mapping[str, Any] | None = self._notes().get("intents", {}).get(self.me)
        return found

    # --- claims

    def claim(self, ip: m.Ip) -> Claim:
        """Claim the address for this resource, for the seven days that keys are remembered. Changes
        nothing on the account.
        """
        if self.is_noted_as_mine(ip):
            return "ours"
        if self.request.client.is_test_key:
            return "unproven"  # its keys are not those of the runs that buy
        subject = {"server_id": self.server_id, "address": ip.id}
        key = KeyRing.of(self.request.client, "", "claim_server_ip", subject).key(0)
        renew = ask(self.request.client)

        mine = NONEXISTENT_ID - 1 - int.from_bytes(self.me.encode(), "big") % (_OWNERS - 1)
        try:
            renew(mine, key)
        except exceptions.NotFound:
            return "ours" if key_is_used(renew, key, NONEXISTENT_ID) else "unproven"
        except (exceptions.IdempotencyConflict, exceptions.IdempotencyInProgress):
            return "another's"
        except (exceptions.ApiError, exceptions.WriteRefused):
            return "unproven"
        return "unproven"

    # --- proofs

    def unowned(self, found: Iterable[m.Ip]) -> list[m.Ip]:
        """The addresses that no other resource is known to have, whatever their age."""
        request = self.request
        # If addresses are counted (Ansible), one that came while this waited for its turn may be the very
        # one that is meant.
        return [
            ip
            for ip in found
            if not request.has_owner(f"{self.server_id}/{ip.id}")
            and (request.name_is_identity or not self.is_noted_as_anothers(ip))
        ]

    def is_old(self, ip: m.Ip) -> bool:
        """Whether the keys of its purchase are forgotten."""
        return ip.added_at is not None and ip.added_at < self.request.service_now() - KEY_MEMORY

    def must_be_adoptable(self, ip: m.Ip) -> None:
        """Raise ``ResourceError`` for an address of this resource that is not taken over automatically."""
        if why := why_not_taken_over(self.request, self.request.age_of(ip.added_at)):
            raise ResourceError(
                f"address {ip.address} (id {ip.id}) was bought by an earlier run of this resource: {why}; "
                f'nothing was bought. Next: set adopt_id="{ip.id}" to take it over'
            )

    def proven(
        self, addresses: address_list.ServerAddresses, unowned: list[m.Ip], attempt: int
    ) -> address_list.Purchased | None:
        """The one of ``unowned`` that is shown to be this resource's, by the notes of this machine or by its
        purchase's key; with that key and its invoice, if they are known. It is noted, and reported.
        """
        ip, paid, key = next(filter(self.is_noted_as_mine, unowned), None), None, None
        if ip is None:
            for paid, key, candidates in self._possible_purchases(addresses, unowned, attempt):
                if self._brought(candidates, addresses, paid, key):
                    ip = self.claimed(candidates, addresses, paid)
                    break
        if ip is None:
            return None
        self.must_be_adoptable(ip)
        invoice = None if paid is None else addresses.invoice_after(paid)
        found, paid_with = self.record(ip, key, invoice), f", invoice {invoice}" if invoice else ""
        self.request.info(f"address {ip.address} is this resource's: an earlier run bought it{paid_with}")
        return found

    def _brought(self, new: list[m.Ip], addresses: address_list.ServerAddresses, paid: int, key: str) -> bool:
        """Whether the purchase with this key brought one of the ``new`` addresses: a replay says so; once the
        key is forgotten, this machine's note, if nothing else was bought since."""
        bought_at = new[0].added_at or (addresses.invoices[-1].paid_at if addresses.invoices else None)
        if bought_at is None:
            return False
        if bought_at > self.request.service_now() - KEY_MEMORY + _MARGIN:
            return address_list.was_charged(self.request, self.server_id, key)
        noted = self.intent()
        is_only_one = len(new) == 1 and addresses.paid == paid + 1 and not addresses.missing
        return noted is not None and noted["purchase_key"] == key and is_only_one

    def claimed(self, new: list[m.Ip], addresses: address_list.ServerAddresses, paid: int) -> m.Ip | None:
        """The first of the addresses that came since this resource's purchase which no other resource
        claimed. Two purchases at the same moment bring two addresses, and each may have either. ``paid``: the
        purchases before it. Raises ``ResourceError`` if claims prove nothing and there are several."""
        for ip in new:
            claim = self.claim(ip)
            if claim == "ours":
                return ip
            if claim == "unproven":
                if len(new) == 1 and addresses.paid == paid + 1 and not addresses.missing:
                    return ip
                raise ResourceError(
                    f"server {self.server_id} got addresses from several purchases at the same time: "
                    f"{address_list.named(new)}; which of them is this resource's is not known, and nothing "
                    "more was bought. Next: give adopt_id the one that no other stack or play has"
                )
        return None

    def _possible_purchases(
        self, addresses: address_list.ServerAddresses, unowned: list[m.Ip], attempt: int
    ) -> Iterator[tuple[int, str, list[m.Ip]]]:
        """Purchases that this resource may have made, as noted here or as the account looked before: how many
        had been paid before, the key, and the addresses that came afterwards. A key that brought another
        address, which is deleted perhaps, brought none of these."""
        intent, noted = self.intent(), self._notes().get("addresses", {})
        spent = {noted[id]["purchase_key"] for id in noted.keys() - {str(ip.id) for ip in unowned}}
        if intent is not None:
            new = [ip for ip in unowned if address_list.is_new(ip, intent["before"])]
            if new and addresses.paid > intent["paid"]:
                yield intent["paid"], intent["purchase_key"], new
        for place, first in enumerate(unowned):
            for facts in addresses.possibly_before(len(addresses.extra) - addresses.extra.index(first)):
                keys = address_list.keys_of(self.request, self.server_id, attempt, facts)
                possible = [key for key in map(keys.key, range(_GENERATIONS)) if key not in spent]
                yield from ((facts.paid, key, unowned[place:]) for key in possible)

    # --- parts

    @property
    def _scope(self) -> local_files.Scope:
        return local_files.account_scope(self.request.client)

    @property
    def _purpose(self) -> str:
        return f"addresses of server {self.server_id}"

    def _notes(self) -> dict[str, Any]:
        if self._known is None:
            try:
                self._known = local_files.read(self._scope, self._purpose)
            except local_files.LocalFilesError:
                self._known = {}
        return self._known

    @contextmanager
    def _changed_notes(self) -> Iterator[dict[str, Any]]:
        with local_files.changing(self._scope, self._purpose) as notes:
            notes["version"] = 1
            yield notes
        self._known = notes


# seconds in which the other resources of a program may still say which addresses are theirs
_OWNERS_SECONDS = 30.0


class AddressPurchase(Purchase[m.IpAdded, address_list.Purchased]):
    """One resource's purchase of an address of one server: found if an interrupted run of this resource
    bought it. Carry it out within ``Owners.turn``. ``attempt``: so many addresses of unknown origin are
    another's.
    """

    _before: address_list.ServerAddresses
    """What the account showed before the purchase: the loop looks before it asks for keys."""

    def __init__(self, request: Request, server_id: str, attempt: int = 0) -> None:
        self.server_id, self.attempt = server_id, attempt
        self.owners = Owners(request, server_id)
        what = f"purchase of an address for server {server_id}"
        is_of_the_server = partial(is_of, types=IP_PURCHASES, server_id=int(server_id))
        super().__init__(request, what, "server_ip", concerns=is_of_the_server)

    def walk(self) -> KeyWalk:
        keys = address_list.keys_of(self.request, self.server_id, self.attempt, self._before.before(0))
        return KeyWalk(keys, ask=ask(self.request.client))

    def look(self, when: When) -> address_list.Purchased | None:
        if when in ("before", "busy"):
            self._before = self._when_listed()
            return self._bought_before(self._before)
        if when in ("conflict", "undone"):
            return None
        after = address_list.read_addresses(self.request, self.server_id)
        shows = (after.bought, after.kept, after.everything)
        if shows == (self._before.bought, self._before.kept, self._before.everything):
            return None
        return self._purchased(None, None)

    def accept(self, answer: m.IpAdded, walk: KeyWalk) -> address_list.Purchased | None:
        return self._purchased(walk.key, answer)

    def send(self, idempotency_key: str) -> m.IpAdded:
        request, server_id = self.request, self.server_id
        self.owners.intend(idempotency_key, sorted(self._before.everything), self._before.paid)
        try:
            return request.client.servers.ips.add(int(server_id), idempotency_key=idempotency_key)
        except exceptions.HostingError as error:
            address_list.forget_quote(request, server_id)
            if isinstance(error, exceptions.ApiError) and error.status < 500 and not error.outcome_unknown:
                self.owners.drop_intent()
            raise

    def _purchased(self, key: str | None, added: m.IpAdded | None) -> address_list.Purchased:
        return address_list.Purchased(
            key,
            charged=added.charged if added else None,
            currency=added.currency if added else None,
            number=self._before.paid + 1,
            present_before=tuple(sorted(self._before.everything)),
        )

    def is_outdated(self, error: exceptions.ApiError, /) -> bool:
        if isinstance(error, exceptions.IpLimitReached):
            quote = address_list.quote_of(
                self.request, self.server_id
            )  # it was forgotten when this was answered
            return quote is not None and quote.extra_ips < quote.max_extra_ips
        return order_facts.is_outdated(self.request, self.server_id, error)

    def assigned(
        self, server: m.Server, key: str | None, before: Collection[str], number: int | None
    ) -> address_list.Purchased | None:
        """The address of a purchase that was not assigned at first; None until it is. ``server``: as it is
        now."""
        if server.ips and address_list.bought_texts(server) <= {*before}:
            return None
        addresses = address_list.read_addresses(self.request, self.server_id, server, number)
        new = [ip for ip in self.owners.unowned(addresses.extra) if address_list.is_new(ip, before)]
        paid = max(0, addresses.paid - 1) if number is None else number - 1
        ip = self.owners.claimed(new, addresses, paid)
        return None if ip is None else self.owners.record(ip, key, addresses.invoice_after(paid))

    # --- 1. wait until all are listed

    def _when_listed(self) -> address_list.ServerAddresses:
        wait, looks = self.request.poller(), 0
        while True:
            addresses, looks = address_list.read_addresses(self.request, self.server_id), looks + 1
            if addresses.bought != len(addresses.extra) and (looks == 1 or wait.over):
                address_list.forget_quote(self.request, self.server_id)  # one may have been released since
                addresses = address_list.read_addresses(self.request, self.server_id)
            if not addresses.missing or (wait.over and addresses.missing <= self.attempt):
                return addresses
            if wait.over:
                paid = addresses.invoices
                invoice = f"invoice {paid[-1].id}" if paid else "no invoice of it is known"
                raise ResourceError(
                    f"server {self.server_id} counts {addresses.bought} bought addresses and shows "
                    f"{len(addresses.extra)} ({invoice}); nothing was bought. Next: run again later, or set "
                    f"order_attempt to {addresses.missing} to buy another"
                )
            self.request.info(f"server {self.server_id}: waiting for an address that was bought before")
            wait.pause()

    # --- 2. look for what was bought before

    def _bought_before(self, addresses: address_list.ServerAddresses) -> address_list.Purchased | None:
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
            if wait.over:
                invoice = f", newest invoice {addresses.invoices[-1].id}" if addresses.invoices else ""
                shown = address_list.named(unowned)
                problem = (
                    f"got addresses since this run looked: {shown}; nothing was bought. Next: run again, and "
                    "they are counted"
                    if self.request.name_is_identity
                    else f"has addresses of unknown origin: {shown}{invoice}; nothing was bought. Next: if "
                    f"they belong to something else, set order_attempt to {allowed} to buy "
                    "another; if an interrupted run of this resource bought one and nothing else has it, set "
                    "adopt_id to that one"
                )
                raise ResourceConflict(f"server {server_id} {problem}", id=f"{server_id}/{unowned[0].id}")
            wait.pause()
        return None
