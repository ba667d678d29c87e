"""One bought address of a server (API document, "Servers").

The purchase answers "charged" and names no address: that is assigned later and read from the list. So it is
bought by these steps, one purchase per server at a time (``Owners.turn``):

1. *Settle*: wait until every bought address of the server is in the list.
2. *Look*: an address that nothing here explains, however old, may be what an interrupted run bought. It is
   this resource's if the notes of this machine or its key say so: the key was made from the world as it was
   before the purchase. Without proof: stop before paying.
3. *Buy*, with a key made from the world as it is now; a crash before anything moved repeats it, and buys
   once.
4. *Wait* until the list grows, and claim the new address. The id is ``<server id>/<address id>``, until then
   ``pending:…``.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import (
    ApiError,
    HostingError,
    IdempotencyConflict,
    IdempotencyInProgress,
    InsufficientFunds,
    IpLimitReached,
    NotFound,
    OperationInProgress,
    TransportError,
)
from pulumi_hosting.exactly_once import address_list, catalog_reads
from pulumi_hosting.exactly_once.address_facts import (
    World,
    bought,
    is_used,
    keys_of,
    look,
    named,
    quote_of,
    was_charged,
)
from pulumi_hosting.exactly_once.address_owners import Owners
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import REPLACES, WHEN_CREATING, IdText
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceConflict, ResourceError, WaitTimeout
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

PENDING = "pending:"
SIMULATED = "sandbox"
_KEY_MEMORY = timedelta(days=7)
# a key that is about to be forgotten proves nothing: sent again a moment later, it buys
_MARGIN = timedelta(hours=1)
_GENERATIONS = 4
# seconds in which the other declarations of a program may still say which addresses are theirs
_OWNERS_SECONDS = 30.0


class ServerIpInputs(base.Inputs):
    server_id: Annotated[
        IdText,
        Field(
            description="Id of the server that gets one more IPv4 address. A change buys another, "
            "for that server."
        ),
        REPLACES,
    ]
    adopt_id: Annotated[
        Annotated[str, Field(min_length=1, max_length=64)] | None,
        Field(
            description="Take over this bought address of the server (its id, or the address itself) "
            "instead of buying one."
        ),
        WHEN_CREATING,
    ] = None
    order_attempt: Annotated[
        base.WholeNumber | None,
        Field(
            description="Buy although the server has up to this many addresses of unknown origin: "
            "they are another's."
        ),
        WHEN_CREATING,
    ] = None


class ServerIpState(base.State):
    id: str = Field(
        description="<server id>/<address id>; pending:<server id>/… until the address is assigned."
    )
    server_id: str = Field(description="Id of the server that has the address.")
    address: str | None = Field(default=None, description="The address; empty until it is assigned.")
    gateway: str | None = Field(
        default=None, description="Router of the address, to be set in the server's network configuration."
    )
    netmask: str | None = Field(default=None, description="Netmask to be set with the address.")
    price_monthly: str | None = Field(
        default=None, description="What the address adds to each month (decimal, in currency)."
    )
    currency: str | None = Field(
        default=None, description="ISO 4217 code of the currency of the amounts, such as EUR."
    )
    charged: str | None = Field(default=None, description="What the purchase cost (decimal, in currency).")
    added_at: str | None = Field(
        default=None,
        description="When the address was assigned to the server (RFC 3339, UTC); empty until then.",
    )
    purchase_key: str | None = Field(
        default=None, description="Idempotency key of the purchase; it holds no secret."
    )
    invoice_id: str | None = Field(
        default=None, description="Id of the purchase's invoice, where it is known."
    )
    present_before: list[str] | None = Field(
        default=None,
        description="Ids of the server's addresses just before the purchase, while it is pending.",
    )


class ServerIpBase(base.Resource[ServerIpInputs, ServerIpState]):
    """The four methods of a bought address."""

    kind: ClassVar[str] = "server_ip"
    title: ClassVar[str] = "server address"
    Inputs = ServerIpInputs
    State = ServerIpState
    control_path = "/servers/{}/ips/{}"
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:order", "invoices:read"),
        "update": (),
        "delete": ("servers:read", "servers:order"),
    }

    # --- looking

    def read(self, request: Request, id: str, last: ServerIpState | None = None) -> ServerIpState | None:
        if id.startswith(PENDING):
            if last is None or last.present_before is None:
                raise ResourceError(
                    f"{id!r} stands for a purchase under way. Next: give <server id>/<address id>"
                )
            return (
                None
                if self._server_is_gone(request, last.server_id)
                else self._arrived(request, last) or last
            )
        server_id, wanted = address_list.split_id(id, "an address")
        found = address_list.of_server(request, server_id)
        ip = address_list.pick(found, wanted) if found is not None else None
        return self._state(request, server_id, ip, last) if ip is not None else None

    def is_provisional(self, state: ServerIpState) -> bool:
        return state.id.startswith(PENDING)

    @staticmethod
    def _state(
        request: Request, server_id: str, ip: m.Ip, last: ServerIpState | None = None
    ) -> ServerIpState:
        return ServerIpState(
            id=f"{server_id}/{ip.id}",
            server_id=server_id,
            address=address_list.plain_address(ip.address),
            gateway=ip.gateway,
            netmask=ip.netmask,
            price_monthly=as_text(ip.price_monthly),
            currency=last.currency if last else None,
            charged=last.charged if last else None,
            added_at=as_text(ip.added_at),
            purchase_key=last.purchase_key if last else None,
            invoice_id=last.invoice_id if last else None,
        )

    # --- asking before

    def _unexplained(self, request: Request, server_id: str) -> list[m.Ip]:
        """Bought addresses that neither this run nor the notes of this machine know to be another
        resource's.
        """
        found = address_list.of_server(request, server_id) or []
        return self._loose(request, server_id, bought(found), Owners(request, server_id))

    def cost(self, request: Request, desired: Mapping[str, Any]) -> Cost | None:
        """Until the server's next due date; it adds to the renewals after that."""
        if "server_id" not in desired or desired.get("adopt_id") is not None:
            return None
        quote = quote_of(request, desired["server_id"])
        if quote is None:
            return None
        balance = catalog_reads.balance(request)
        currency = quote.currency or (balance.currency if balance else "")
        what = f"an address, then {quote.price_monthly} a month"
        return Cost(quote.prorated_now, currency, what, balance.balance if balance else None)

    # --- making

    def create(self, request: Request, inputs: ServerIpInputs) -> ServerIpState:
        if inputs.adopt_id is not None:
            return self._adopt(request, inputs, inputs.adopt_id)
        if request.client.is_test_key:
            return self._simulate(request, inputs)
        owners = Owners(request, inputs.server_id)
        with owners.turn():
            state = self._found_or_bought(request, inputs, owners)
            if self.is_provisional(state):
                request.save(state)
                try:
                    state = self.wait(request, state)
                except WaitTimeout:
                    if request.wait_timeout:
                        raise  # otherwise there is nothing to wait for
            return state

    def _found_or_bought(self, request: Request, inputs: ServerIpInputs, owners: Owners) -> ServerIpState:
        wait = request.poller()
        last, generation = None, 0
        while True:
            world = self._settled(request, inputs)
            found = self._lost(request, inputs, world, owners)
            if found is not None:
                return found
            if world != last:
                last, generation = world, 0
            if (cost := self.cost(request, inputs.given())) is not None:
                request.approve(cost)
            try:
                return self._buy(request, inputs, world, owners, generation)
            except OperationInProgress:
                if wait.over:
                    raise
                key = keys_of(request, inputs.server_id, inputs.order_attempt or 0, world.before(0)).key(
                    generation
                )
                # the refusal may be stored, and would be repeated for ever
                generation += is_used(request, key)
            request.info(f"server {inputs.server_id}: another operation is running")
            wait.pause()

    def _adopt(self, request: Request, inputs: ServerIpInputs, wanted: str) -> ServerIpState:
        found = address_list.of_server(request, inputs.server_id, fresh=True) or []
        ip = address_list.pick(found, wanted)
        if ip is None or ip.primary:
            reason = "is its primary one" if ip is not None else "is none of its addresses"
            raise ResourceError(
                f"adopt_id: {wanted} of server {inputs.server_id} {reason}. Next: correct adopt_id, or leave "
                f"it out to buy one"
            )
        id = f"{inputs.server_id}/{ip.id}"
        if id in request.ownership.of_others(request.identity) or Owners(
            request, inputs.server_id
        ).is_held_by_a_running_process(ip):
            raise ResourceError(
                f"adopt_id: another resource has {self.title} {id} already; nothing was "
                f"changed. Next: correct adopt_id"
            )
        return self._state(request, inputs.server_id, ip)

    @staticmethod
    def _is_old(request: Request, ip: m.Ip) -> bool:
        return ip.added_at is not None and ip.added_at < request.service_now() - _KEY_MEMORY

    def _simulate(self, request: Request, inputs: ServerIpInputs) -> ServerIpState:
        added = request.client.servers.ips.add(int(inputs.server_id))
        # RFC 5737: documentation addresses. What needs an address later gets one that looks like it.
        address = f"192.0.2.{1 + int.from_bytes(request.identity.encode()[-4:], 'big') % 254}"
        request.info(f"simulated: a test key buys no address; {address} stands for it")
        return ServerIpState(
            id=f"{inputs.server_id}/{SIMULATED}",
            server_id=inputs.server_id,
            address=address,
            currency=added.currency,
            charged=as_text(added.charged),
        )

    # 1
    def _settled(self, request: Request, inputs: ServerIpInputs) -> World:
        wait = request.poller()
        while True:
            world = look(request, inputs.server_id)
            if not world.missing or (wait.over and world.missing <= (inputs.order_attempt or 0)):
                return world
            if wait.over:
                invoice = (
                    f"invoice {world.invoices[-1].id}" if world.invoices else ("no invoice of it is known")
                )
                raise ResourceError(
                    f"server {inputs.server_id} counts {world.bought} bought addresses and shows "
                    f"{len(world.extra)} ({invoice}); nothing "
                    f"was bought. Next: run again later, or set order_attempt to {world.missing} to buy "
                    f"another"
                )
            request.info(f"server {inputs.server_id}: waiting for an address that was bought before")
            wait.pause()

    # 2
    def _lost(
        self, request: Request, inputs: ServerIpInputs, world: World, owners: Owners
    ) -> ServerIpState | None:
        """The address that an interrupted run of this resource bought. Raises ``ResourceConflict`` for more
        addresses that nothing explains than ``order_attempt`` allows for."""
        wait = request.poller(_OWNERS_SECONDS)
        server_id = inputs.server_id
        while loose := self._loose(request, server_id, world.extra, owners):
            found = self._proven(request, inputs, world, loose, owners)
            if found is not None:
                return found
            allowed = len(loose) + world.missing
            if allowed <= (inputs.order_attempt or 0):
                return None
            if wait.over and request.name_is_identity:
                raise ResourceConflict(
                    f"server {server_id} got addresses since this run looked: {named(loose)}; nothing was "
                    f"bought. Next: run again, and "
                    "they are counted",
                    id=f"{server_id}/{loose[0].id}",
                )
            if wait.over:
                invoice = f", newest invoice {world.invoices[-1].id}" if world.invoices else ""
                raise ResourceConflict(
                    f"server {server_id} has addresses of unknown origin: {named(loose)}{invoice}; "
                    f"nothing was bought. Next: if "
                    f"other stacks, playbooks or people have them, set order_attempt to {allowed} to buy "
                    f"another; if an interrupted run of "
                    "this resource bought one and nothing else has it, set adopt_id to that one",
                    id=f"{server_id}/{loose[0].id}",
                )
            wait.pause()
        return None

    @staticmethod
    def _loose(request: Request, server_id: str, extra: Iterable[m.Ip], owners: Owners) -> list[m.Ip]:
        """The addresses that no other resource is known to have, whatever their age."""
        known = request.owned | request.ownership.of_others(request.identity)
        # Where addresses are counted (Ansible), one that came while this waited for its turn may be the very
        # one that is meant.
        return [
            ip
            for ip in extra
            if f"{server_id}/{ip.id}" not in known
            and (request.name_is_identity or not owners.is_noted_as_anothers(ip))
        ]

    def _proven(
        self, request: Request, inputs: ServerIpInputs, world: World, loose: list[m.Ip], owners: Owners
    ) -> ServerIpState | None:
        """The one of ``loose`` that is shown to be this resource's, by the notes of this machine or by
        its purchase's key.
        """
        ip, paid, key = next((ip for ip in loose if owners.is_noted_as_mine(ip)), None), None, None
        if ip is None:
            since = request.service_now() - _KEY_MEMORY + _MARGIN
            for paid, key, candidates in self._purchases(request, inputs, world, loose, owners):
                bought_at = candidates[0].added_at or (world.invoices[-1].paid_at if world.invoices else None)
                if (
                    bought_at is not None
                    and bought_at > since
                    and was_charged(request, inputs.server_id, key)
                ):
                    ip = self._taken(owners, inputs.server_id, candidates, world, paid)
                    break
        if ip is None:
            return None
        self._must_be_young(request, ip)
        self._must_be_allowed(request, ip)
        state = self._state(request, inputs.server_id, ip)
        invoice = None if paid is None else world.invoice_after(paid)
        request.info(f"address {ip.address} is this resource's: an earlier run bought it")
        owners.record(ip, key, invoice)
        return state.model_copy(update={"purchase_key": key, "invoice_id": invoice})

    def _taken(self, owners: Owners, server_id: str, new: list[m.Ip], world: World, paid: int) -> m.Ip | None:
        """The first of the addresses that came since this resource's purchase which no other resource
        claimed. Two purchases at the same moment bring two addresses, and each may have either. ``paid``: the
        purchases before it. Raises ``ResourceError`` where claims prove nothing and there are several."""
        for ip in new:
            claim = owners.claim(ip)
            if claim == "ours":
                return ip
            if claim == "unproven":
                if len(new) == 1 and world.paid == paid + 1 and not world.missing:
                    return ip
                raise ResourceError(
                    f"server {server_id} got addresses from several purchases at the same time: "
                    f"{named(new)}; which of them is this "
                    "resource's is not known, and nothing more was bought. Next: give adopt_id the one that "
                    "no other stack or play has"
                )
        return None

    @classmethod
    def _must_be_young(cls, request: Request, ip: m.Ip) -> None:
        if cls._is_old(request, ip):
            raise ResourceError(
                f"address {ip.address} (id {ip.id}) was bought by an earlier run of this resource, more than "
                f"7 days ago; nothing was "
                f'bought. Next: set adopt_id="{ip.id}" to take it over'
            )

    @staticmethod
    def _must_be_allowed(request: Request, ip: m.Ip) -> None:
        if request.strict and request.scope is None:
            raise ResourceError(
                f"address {ip.address} (id {ip.id}) was bought by an earlier run under this resource's name, "
                f"and strict is set; nothing "
                f'was bought. Next: set adopt_id="{ip.id}" to take it over, or set hosting:scope'
            )

    def _purchases(
        self, request: Request, inputs: ServerIpInputs, world: World, loose: list[m.Ip], owners: Owners
    ) -> Iterator[tuple[int, str, list[m.Ip]]]:
        """Purchases that this resource may have made, as noted here or as the world looked before: how many
        had been paid before, the key, and the addresses that came afterwards."""
        intent = owners.intent()
        if intent is not None:
            new = [ip for ip in loose if str(ip.id) not in intent["before"]]
            if new and world.paid > intent["paid"]:
                yield intent["paid"], intent["purchase_key"], new
        for place, first in enumerate(loose):
            facts = world.before(len(world.extra) - world.extra.index(first))
            keys = keys_of(request, inputs.server_id, inputs.order_attempt or 0, facts)
            yield from ((facts.paid, key, loose[place:]) for key in map(keys.key, range(_GENERATIONS)))

    # 3
    def _buy(
        self, request: Request, inputs: ServerIpInputs, world: World, owners: Owners, generation: int
    ) -> ServerIpState:
        """Pay for one. Raises ``OperationInProgress`` where the server is busy: the world may change by
        that.
        """
        keys = keys_of(request, inputs.server_id, inputs.order_attempt or 0, world.before(0))
        added: m.IpAdded | None = None
        before = sorted(world.everything, key=int)
        while True:
            key = keys.key(generation)
            generation += 1
            owners.intend(key, before, world.paid)
            try:
                added = request.client.servers.ips.add(int(inputs.server_id), idempotency_key=key)
            except IdempotencyInProgress:
                raise
            except OperationInProgress:
                owners.desist()
                raise
            except ApiError as error:
                if error.status < 500:
                    owners.desist()
                    if generation < _GENERATIONS and self._is_of_the_past(request, inputs, error):
                        continue
                    raise
                self._must_have_moved(request, inputs, world, error, key)
            except TransportError as error:
                self._must_have_moved(request, inputs, world, error, key)
            finally:
                request.reads.forget("ips", inputs.server_id)
                request.reads.forget("ip quote", inputs.server_id)
            return ServerIpState(
                id=f"{PENDING}{inputs.server_id}/{world.paid + 1}",
                server_id=inputs.server_id,
                charged=as_text(added.charged) if added else None,
                currency=added.currency if added else None,
                purchase_key=key,
                present_before=before,
            )

    def _must_have_moved(
        self, request: Request, inputs: ServerIpInputs, world: World, error: HostingError, key: str
    ) -> None:
        """After a lost answer: go on if the account shows the purchase, else stop."""
        after = look(request, inputs.server_id)
        if (after.bought, after.paid, after.everything) == (world.bought, world.paid, world.everything):
            raise ResourceError(
                f"{error} — no purchase and no new address show yet. Next: run again; the same purchase is "
                f"repeated, never a second "
                f"(key {key})"
            ) from None

    def _is_of_the_past(self, request: Request, inputs: ServerIpInputs, error: ApiError) -> bool:
        """Whether the key is bound to a refusal that the present state of the account contradicts, or to
        something else.
        """
        if isinstance(error, IdempotencyConflict):
            return True
        if isinstance(error, InsufficientFunds):
            balance = catalog_reads.balance(request, fresh=True)
            return error.required is not None and balance is not None and balance.balance >= error.required
        if isinstance(error, IpLimitReached):
            quote = quote_of(request, inputs.server_id, fresh=True)
            return quote is not None and quote.extra_ips < quote.max_extra_ips
        return False

    # 4
    def settle(self, request: Request, state: ServerIpState, inputs: ServerIpInputs) -> ServerIpState:
        return self.wait(request, state)

    def wait(self, request: Request, state: ServerIpState) -> ServerIpState:
        """Until the address is assigned."""
        wait = request.poller()
        while self.is_provisional(state):
            if arrived := self._arrived(request, state):
                return arrived
            if wait.over:
                raise WaitTimeout(
                    f"the address bought for server {state.server_id} is not assigned after "
                    f"{request.wait_timeout:.0f} s. "
                    "Next: run again; it is waited for, not bought again",
                    id=state.id,
                )
            request.info(f"server {state.server_id}: waiting for the address")
            wait.pause()
        return state

    def _arrived(self, request: Request, state: ServerIpState) -> ServerIpState | None:
        """The new address of the list that is ours. The server itself shows it too and is the cheaper
        question.
        """
        before = frozenset(state.present_before or ())
        try:
            shown = len(request.client.servers.get(int(state.server_id)).ips or ())
        except NotFound:
            raise ResourceError(
                f"server {state.server_id} was deleted meanwhile, its addresses with it. Next: run again"
            ) from None
        if 0 < shown <= len(before):
            return None
        world = look(request, state.server_id)
        owners = Owners(request, state.server_id)
        new = [
            ip
            for ip in self._loose(request, state.server_id, world.extra, owners)
            if str(ip.id) not in before
        ]
        number = state.id.rpartition("/")[2]
        paid = int(number) - 1 if number.isdigit() else max(0, world.paid - 1)
        ip = self._taken(owners, state.server_id, new, world, paid)
        if ip is None:
            return None
        invoice = world.invoice_after(paid)
        owners.record(ip, state.purchase_key, invoice)
        return self._state(request, state.server_id, ip, state).model_copy(update={"invoice_id": invoice})

    @staticmethod
    def _server_is_gone(request: Request, server_id: str) -> bool:
        try:
            return request.client.servers.get(int(server_id)).is_gone
        except NotFound:
            return True

    # --- changing and removing

    def update(
        self, request: Request, state: ServerIpState, inputs: ServerIpInputs, fields: frozenset[str]
    ) -> ServerIpState:
        return self.settle(request, state, inputs)

    def delete(self, request: Request, state: ServerIpState) -> None:
        if self.is_provisional(state):
            if self._server_is_gone(request, state.server_id):
                return
            state = self.wait(request, state)
        server_id, wanted = address_list.split_id(state.id, "an address")
        found = address_list.of_server(request, server_id, fresh=True)
        ip = address_list.pick(found, wanted) if found is not None else None
        if ip is None:
            return
        if ip.primary:
            raise ResourceError(
                f"{ip.address} is the primary address of server {server_id} and cannot be "
                f"released. Next: correct the id"
            )
        self._release(request, server_id, ip)
        Owners(request, server_id).forget(str(ip.id))

    @staticmethod
    def _release(request: Request, server_id: str, ip: m.Ip) -> None:
        """Release it, or raise: after any answer but a success the list decides."""
        wait = request.poller()
        while True:
            try:
                request.client.servers.ips.delete(int(server_id), ip.id)
                return
            except OperationInProgress:
                if wait.over:
                    raise
            except HostingError:
                after = address_list.of_server(request, server_id, fresh=True)
                if after is not None and address_list.pick(after, str(ip.id)) is not None:
                    raise
                return
            finally:
                request.reads.forget("ips", server_id)
            request.info(f"server {server_id}: another operation is running")
            wait.pause()
