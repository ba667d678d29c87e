"""One bought address of a server (API document, "Servers").

The purchase answers "charged" and names no address: that is assigned later and read from the list. So it is bought by these steps, one
purchase per server at a time:

1. *Settle*: wait until every bought address of the server is in the list.
2. *Look*: addresses of the last days that nothing here knows may be what an interrupted run bought. Its key tells: it was made from the
   world as it was before the purchase, which is the present one without them. No proof: stop, and let a person say whose they are.
3. *Buy*, with a key made from the world as it is now; a crash before anything moved repeats it, and buys once.
4. *Wait* until the list grows: exactly one new address is ours. The id is ``<server id>/<address id>``, until then ``pending:…``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.errors import (
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
from pulumi_hosting.resources import addresses, base, catalog
from pulumi_hosting.resources.base import (
    REPLACES,
    WHEN_CREATING,
    Context,
    Cost,
    Foreign,
    IdText,
    NotReady,
    NounError,
    Takeover,
    account,
    as_text,
)
from pulumi_hosting.resources.keys import KeyRing
from pulumi_hosting.resources.proof import NOBODY, is_bound

PENDING = "pending:"
SIMULATED = "sandbox"
_KEY_MEMORY = timedelta(days=7)
_GENERATIONS = 4
_CLAIM_PATIENCE = 30.0  # seconds in which the other declarations of a program may still say which addresses are theirs


class ServerIpInputs(base.Inputs):
    server_id: Annotated[
        IdText, Field(description="Id of the server that gets one more IPv4 address. A change buys another, for that server."), REPLACES
    ]
    adopt_id: Annotated[
        Annotated[str, Field(min_length=1, max_length=64)] | None,
        Field(description="Take over this bought address of the server (its id, or the address itself) instead of buying one."),
        WHEN_CREATING,
    ] = None
    order_attempt: Annotated[
        base.WholeNumber | None,
        Field(description="Raise it to say 'buy another' where the provider stopped beside addresses that it cannot explain."),
        WHEN_CREATING,
    ] = None


class ServerIpState(base.State):
    id: str = Field(description="<server id>/<address id>; pending:<server id>/… until the address is assigned.")
    server_id: str = Field(description="Id of the server.")
    address: str | None = Field(default=None, description="The address; empty until it is assigned.")
    gateway: str | None = Field(default=None, description="Gateway of the address.")
    netmask: str | None = Field(default=None, description="Netmask of the address.")
    price_monthly: str | None = Field(default=None, description="Price per month (decimal, in currency).")
    currency: str | None = Field(default=None, description="ISO 4217 code.")
    charged: str | None = Field(default=None, description="What the purchase cost (decimal, in currency).")
    added_at: str | None = Field(default=None, description="When it was assigned (RFC 3339, UTC).")
    present_before: list[str] | None = Field(
        default=None, description="Ids of the server's addresses just before the purchase, while it is pending."
    )


@dataclass(frozen=True, slots=True)
class _World:
    """A server's addresses as the service counts them."""

    extra: tuple[m.Ip, ...]
    everything: frozenset[str]
    bought: int
    most: int
    paid: int
    newest: m.Invoice | None

    def before(self, unexplained: int) -> "_Facts":
        """What a purchase saw that brought the last ``unexplained`` addresses, or all that followed it."""
        left = len(self.extra) - unexplained
        return _Facts(tuple(ip.id for ip in self.extra[:left]), self.bought - unexplained, self.paid - unexplained)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What keys are made of."""

    present: tuple[int, ...]
    bought: int
    paid: int


class ServerIpNoun(base.Noun[ServerIpInputs, ServerIpState]):
    kind: ClassVar[str] = "server_ip"
    title: ClassVar[str] = "server address"
    Inputs = ServerIpInputs
    State = ServerIpState
    natural_key: ClassVar = ("server_id",)
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:order", "invoices:read"),
        "update": (),
        "delete": ("servers:read", "servers:order"),
    }

    # --- looking

    def find(self, context: Context, inputs: ServerIpInputs) -> ServerIpState | None:
        """The address named by ``adopt_id``; nothing else tells one bought address from another."""
        if inputs.adopt_id is None:
            return None
        found = addresses.of_server(context, inputs.server_id, fresh=True)
        ip = addresses.pick(found, inputs.adopt_id) if found is not None else None
        return self._state(context, inputs.server_id, ip) if ip is not None else None

    def read(self, context: Context, id: str, last: ServerIpState | None = None) -> ServerIpState | None:
        if id.startswith(PENDING):
            if last is None or last.present_before is None:
                raise NounError(f"{id!r} stands for a purchase under way. Next: give <server id>/<address id>")
            return None if self._server_is_gone(context, last.server_id) else self._arrived(context, last) or last
        server_id, wanted = addresses.split_id(id, "an address")
        found = addresses.of_server(context, server_id)
        ip = addresses.pick(found, wanted) if found is not None else None
        return self._state(context, server_id, ip, last) if ip is not None else None

    def all(self, context: Context, *, server_id: str | None = None, **_: Any) -> Iterable[ServerIpState]:
        """The bought ones of one server, or of all."""
        found = addresses.everywhere(context, server_id)
        return (self._state(context, server, ip) for server, ip in found if not ip.primary and ip.version != 6)

    def is_provisional(self, state: ServerIpState) -> bool:
        return state.id.startswith(PENDING)

    def is_simulated(self, id: str) -> bool:
        return id.endswith(f"/{SIMULATED}")

    @staticmethod
    def _state(context: Context, server_id: str, ip: m.Ip, last: ServerIpState | None = None) -> ServerIpState:
        return ServerIpState(
            id=f"{server_id}/{ip.id}",
            server_id=server_id,
            address=addresses.plain_address(ip.address),
            gateway=ip.gateway,
            netmask=ip.netmask,
            price_monthly=as_text(ip.price_monthly),
            currency=last.currency if last else None,
            charged=last.charged if last else None,
            added_at=as_text(ip.added_at),
        )

    # --- asking before

    def validate(self, context: Context, wish: Mapping[str, Any], fields: frozenset[str]) -> dict[str, str]:
        """The server is there and may have one more address."""
        if "server_id" not in wish or wish.get("adopt_id") is not None or context.client.is_test_key:
            return {}
        quote = self._quote(context, wish["server_id"])
        if quote is None:
            return {"server_id": f"there is no server {wish['server_id']} on this account"}
        if quote.extra_ips >= quote.max_extra_ips and not self._unexplained(context, wish["server_id"]):
            return {"server_id": f"server {wish['server_id']} has all of the {quote.max_extra_ips} addresses its tariff allows"}
        return {}

    def _unexplained(self, context: Context, server_id: str) -> bool:
        """Whether an interrupted run may have bought the last address the tariff allows."""
        found = addresses.of_server(context, server_id) or []
        return any(not ip.primary and f"{server_id}/{ip.id}" not in context.claims.of_others(context.identity) for ip in found)

    @staticmethod
    def _quote(context: Context, server_id: str, *, fresh: bool = False) -> m.IpQuote | None:
        if fresh:
            context.reads.forget("ip quote", server_id)

        def fetch() -> m.IpQuote | None:
            try:
                return context.client.servers.ips.quote(int(server_id))
            except NotFound:
                return None

        return context.shared(("ip quote", server_id), fetch)

    def cost(self, context: Context, wish: Mapping[str, Any]) -> Cost | None:
        """Until the server's next due date; it adds to the renewals after that."""
        if "server_id" not in wish or wish.get("adopt_id") is not None:
            return None
        quote = self._quote(context, wish["server_id"])
        if quote is None:
            return None
        balance = catalog.balance(context)
        currency = quote.currency or (balance.currency if balance else "")
        what = f"an address, then {quote.price_monthly} a month"
        return Cost(quote.prorated_now, currency, what, balance.balance if balance else None)

    # --- making

    def create(self, context: Context, inputs: ServerIpInputs) -> ServerIpState:
        if inputs.adopt_id is not None:
            return self._adopt(context, inputs, inputs.adopt_id)
        with context.claims.alone(f"addresses of server {inputs.server_id}"):
            if context.client.is_test_key:
                return self._simulate(context, inputs)
            world = self._settled(context, inputs)
            return self._lost(context, inputs, world) or self._buy(context, inputs, world)

    def _adopt(self, context: Context, inputs: ServerIpInputs, wanted: str) -> ServerIpState:
        found = addresses.of_server(context, inputs.server_id, fresh=True) or []
        ip = addresses.pick(found, wanted)
        if ip is None or ip.primary:
            reason = "is its primary one" if ip is not None else "is none of its addresses"
            raise NounError(f"adopt_id: {wanted} of server {inputs.server_id} {reason}. Next: correct adopt_id, or leave it out to buy one")
        return self._state(context, inputs.server_id, ip)

    def takeover(self, context: Context, inputs: ServerIpInputs) -> Takeover | None:
        if inputs.adopt_id is None:
            return None
        return Takeover(self._adopt(context, inputs, inputs.adopt_id), "adopt_id names it", title=self.title)

    def _simulate(self, context: Context, inputs: ServerIpInputs) -> ServerIpState:
        added = context.client.servers.ips.add(int(inputs.server_id))
        # RFC 5737: addresses of nobody. What needs an address later gets one that looks like it.
        address = f"192.0.2.{1 + int.from_bytes(context.identity.encode()[-4:], 'big') % 254}"
        context.tell(f"simulated: a test key buys no address; {address} stands for it")
        return ServerIpState(
            id=f"{inputs.server_id}/{SIMULATED}",
            server_id=inputs.server_id,
            address=address,
            currency=added.currency,
            charged=as_text(added.charged),
        )

    # 1
    def _settled(self, context: Context, inputs: ServerIpInputs) -> _World:
        wait = context.patience()
        while True:
            world = self._world(context, inputs.server_id)
            if world.bought <= len(world.extra) or (wait.over and inputs.order_attempt):
                return world
            if wait.over:
                invoice = f"invoice {world.newest.id}" if world.newest else "no invoice of it is known"
                raise NounError(
                    f"server {inputs.server_id} counts {world.bought} bought addresses and shows {len(world.extra)} ({invoice}); nothing "
                    f"was bought. Next: run again later, or set order_attempt to {(inputs.order_attempt or 0) + 1} to buy another"
                )
            context.tell(f"server {inputs.server_id}: waiting for an address that was bought before")
            wait.pause()

    def _world(self, context: Context, server_id: str) -> _World:
        found = addresses.of_server(context, server_id, fresh=True)
        quote = self._quote(context, server_id, fresh=True)
        if found is None or quote is None:
            raise NounError(f"server_id: there is no server {server_id} on this account. Next: correct server_id")
        invoices = [
            invoice
            for invoice in self._invoices(context)
            if invoice.paid_at is not None and any(str(item.server_id) == server_id for item in invoice.items)
        ]
        extra = sorted((ip for ip in found if not ip.primary and ip.version != 6 and ":" not in ip.address), key=lambda ip: ip.id)
        newest = max(invoices, key=lambda invoice: invoice.id, default=None)
        everything = frozenset(str(ip.id) for ip in found)
        return _World(tuple(extra), everything, quote.extra_ips, quote.max_extra_ips, len(invoices), newest)

    @staticmethod
    def _invoices(context: Context) -> Iterable[m.Invoice]:
        try:
            return list(context.client.invoices.list(type="ip_purchase"))
        except ApiError as error:
            if error.status != 400:
                raise
            return list(context.client.invoices.list(type="vds_addon"))  # the other name of the same thing

    # 2
    def _lost(self, context: Context, inputs: ServerIpInputs, world: _World) -> ServerIpState | None:
        """The address that an interrupted run of this declaration bought. Raises ``Foreign`` for addresses nobody can explain, unless
        ``order_attempt`` says that another one is wanted beside them."""
        wait = context.patience(_CLAIM_PATIENCE)
        while loose := self._loose(context, inputs, world):
            found = next(
                (ip for ip in loose if self._is_ours(context, inputs, world.before(len(world.extra) - world.extra.index(ip)))), None
            )
            if found is not None:
                context.tell(f"address {found.address} is this declaration's: an earlier run bought it")
                return self._state(context, inputs.server_id, found)
            if inputs.order_attempt:
                return None
            if wait.over:
                named = ", ".join(f"{ip.address} (id {ip.id})" for ip in loose)
                invoice = f", newest invoice {world.newest.id}" if world.newest else ""
                raise Foreign(
                    f"server {inputs.server_id} has addresses of the last seven days that nothing here explains: {named}{invoice}; nothing "
                    "was bought. Next: set adopt_id to the one that is meant, or order_attempt to a new number to buy another",
                    id=f"{inputs.server_id}/{loose[0].id}",
                )
            wait.pause()
        return None

    def _loose(self, context: Context, inputs: ServerIpInputs, world: _World) -> list[m.Ip]:
        since = context.clock.now() - _KEY_MEMORY
        known = context.owned | context.claims.of_others(context.identity)
        invoiced = world.newest is not None and world.newest.paid_at is not None and world.newest.paid_at > since
        return [
            ip
            for ip in world.extra
            if f"{inputs.server_id}/{ip.id}" not in known and (ip.added_at > since if ip.added_at is not None else invoiced)
        ]

    def _is_ours(self, context: Context, inputs: ServerIpInputs, facts: _Facts) -> bool:
        """Whether the purchase that saw these facts was this declaration's: its key is bound, and its replay says "charged"."""
        keys = self._keys(context, inputs, facts)
        for generation in range(_GENERATIONS):
            key = keys.key(generation)
            if not is_bound(partial(context.client.servers.renew, NOBODY, months=1, idempotency_key=key)):
                return False
            try:
                context.client.servers.ips.add(int(inputs.server_id), idempotency_key=key)
            except ApiError:
                continue  # bound to a refusal
            return True
        return False

    @staticmethod
    def _keys(context: Context, inputs: ServerIpInputs, facts: _Facts) -> KeyRing:
        me = account(context.client)
        body = {"server_id": inputs.server_id, "present": list(facts.present), "bought": facts.bought, "paid": facts.paid}
        return KeyRing(me.account_id, me.livemode, context.identity, "add_server_ip", body, inputs.order_attempt or 0)

    # 3
    def _buy(self, context: Context, inputs: ServerIpInputs, world: _World) -> ServerIpState:
        keys = self._keys(context, inputs, world.before(0))
        wait = context.patience()
        added: m.IpAdded | None = None
        generation = 0
        while True:
            key = keys.key(generation)
            generation += 1
            try:
                added = context.client.servers.ips.add(int(inputs.server_id), idempotency_key=key)
            except OperationInProgress:
                if wait.over:
                    raise
                context.tell(f"server {inputs.server_id}: another operation is running")
                wait.pause()
                continue
            except IdempotencyInProgress:
                raise
            except ApiError as error:
                if error.status < 500:
                    if generation < _GENERATIONS and self._is_of_the_past(context, inputs, error):
                        continue
                    raise
                self._must_have_moved(context, inputs, world, error, key)
            except TransportError as error:
                self._must_have_moved(context, inputs, world, error, key)
            finally:
                context.reads.forget("ips", inputs.server_id)
                context.reads.forget("ip quote", inputs.server_id)
            return ServerIpState(
                id=f"{PENDING}{inputs.server_id}/{world.paid + 1}",
                server_id=inputs.server_id,
                charged=as_text(added.charged) if added else None,
                currency=added.currency if added else None,
                present_before=sorted(world.everything, key=int),
            )

    def _must_have_moved(self, context: Context, inputs: ServerIpInputs, world: _World, error: HostingError, key: str) -> None:
        """After a lost answer: go on if the account shows the purchase, else stop."""
        after = self._world(context, inputs.server_id)
        if (after.bought, after.paid, after.everything) == (world.bought, world.paid, world.everything):
            raise NounError(
                f"{error} — no purchase and no new address show yet. Next: run again; the same purchase is repeated, never a second "
                f"(key {key})"
            ) from None

    def _is_of_the_past(self, context: Context, inputs: ServerIpInputs, error: ApiError) -> bool:
        """Whether the key is bound to a refusal that the present state of the account contradicts, or to something else."""
        if isinstance(error, IdempotencyConflict):
            return True
        if isinstance(error, InsufficientFunds):
            balance = catalog.balance(context, fresh=True)
            return error.required is not None and balance is not None and balance.balance >= error.required
        if isinstance(error, IpLimitReached):
            quote = self._quote(context, inputs.server_id, fresh=True)
            return quote is not None and quote.extra_ips < quote.max_extra_ips
        return False

    # 4
    def settle(self, context: Context, state: ServerIpState, inputs: ServerIpInputs) -> ServerIpState:
        return self.wait(context, state)

    def wait(self, context: Context, state: ServerIpState) -> ServerIpState:
        """Until the address is assigned."""
        wait = context.patience()
        while self.is_provisional(state):
            if arrived := self._arrived(context, state):
                return arrived
            if wait.over:
                raise NotReady(
                    f"the address bought for server {state.server_id} is not assigned after {context.wait_timeout:.0f} s. "
                    "Next: run again; it is waited for, not bought again",
                    id=state.id,
                )
            context.tell(f"server {state.server_id}: waiting for the address")
            wait.pause()
        return state

    def _arrived(self, context: Context, state: ServerIpState) -> ServerIpState | None:
        """The one new address of the list. The server itself shows it too and is the cheaper question."""
        before = frozenset(state.present_before or ())
        try:
            shown = len(context.client.servers.get(int(state.server_id)).ips)
        except NotFound:
            raise NounError(f"server {state.server_id} was deleted meanwhile, its addresses with it. Next: run again") from None
        if 0 < shown <= len(before):
            return None
        found = addresses.of_server(context, state.server_id, fresh=True) or []
        others = context.claims.of_others(context.identity)
        new = [ip for ip in found if str(ip.id) not in before and f"{state.server_id}/{ip.id}" not in others]
        if len(new) > 1:
            named = ", ".join(f"{ip.address} (id {ip.id})" for ip in new)
            raise NounError(
                f"server {state.server_id} got several new addresses at once: {named}; which of them this purchase brought is not known. "
                "Next: set adopt_id to the one that is meant"
            )
        return self._state(context, state.server_id, new[0], state) if new else None

    @staticmethod
    def _server_is_gone(context: Context, server_id: str) -> bool:
        try:
            return context.client.servers.get(int(server_id)).is_gone
        except NotFound:
            return True

    # --- changing and removing

    def update(self, context: Context, state: ServerIpState, inputs: ServerIpInputs, fields: frozenset[str]) -> ServerIpState:
        return self.settle(context, state, inputs)

    def delete(self, context: Context, state: ServerIpState) -> None:
        if self.is_provisional(state):
            if self._server_is_gone(context, state.server_id):
                return
            state = self.wait(context, state)
        server_id, wanted = addresses.split_id(state.id, "an address")
        found = addresses.of_server(context, server_id, fresh=True)
        ip = addresses.pick(found, wanted) if found is not None else None
        if ip is None:
            return
        if ip.primary:
            raise NounError(f"{ip.address} is the primary address of server {server_id} and cannot be released. Next: correct the id")
        wait = context.patience()
        while True:
            try:
                context.client.servers.ips.delete(int(server_id), ip.id)
            except NotFound:
                pass
            except OperationInProgress:
                if wait.over:
                    raise
                context.tell(f"server {server_id}: another operation is running")
                wait.pause()
                continue
            except (TransportError, ApiError):
                after = addresses.of_server(context, server_id, fresh=True)
                if after is not None and addresses.pick(after, str(ip.id)) is not None:
                    raise
            finally:
                context.reads.forget("ips", server_id)
            return


SERVER_IP = ServerIpNoun()
