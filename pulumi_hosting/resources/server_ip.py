"""One bought address of a server (API document, "Servers").

Bought once: see ``exactly_once.address_purchase``. The id is ``<server id>/<address id>``; until the address
is assigned, ``pending:…``.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number
from pulumi_hosting.client.exceptions import HostingError, OperationInProgress
from pulumi_hosting.exactly_once import address_list, catalog_reads
from pulumi_hosting.exactly_once.address_purchase import AddressPurchase, Owners
from pulumi_hosting.exactly_once.local_files import taken_again
from pulumi_hosting.exactly_once.order_facts import living_server
from pulumi_hosting.exactly_once.purchase import Fate, Verdict
from pulumi_hosting.resources import base
from pulumi_hosting.resources.api_fields import At, shown
from pulumi_hosting.resources.base import ADOPTS, REPLACES_AND_PRICES, WHEN_CREATING, IdText
from pulumi_hosting.resources.powers import Adoptable, Findable, Priced, Provisioned, Sandboxed, Validated
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session import errors
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

PENDING = "pending:"


class ServerIpInputs(base.Inputs):
    server_id: Annotated[IdText, REPLACES_AND_PRICES] = Field(
        description="Id of the server that gets one more IPv4 address. A change buys another, for that "
        "server."
    )
    adopt_id: Annotated[Annotated[str, Field(min_length=1, max_length=64)] | None, ADOPTS] = m.optional(
        "Take over this bought address of the server (its id, or the address itself) instead of buying one."
    )
    order_attempt: Annotated[base.WholeNumber | None, WHEN_CREATING] = m.optional(
        "Buy even if the server has up to this many addresses of unknown origin. They stay untouched."
    )


class ServerIpState(base.State):
    api = m.Ip
    id: str = Field(
        description="<server id>/<address id>; pending:<server id>/… until the address is assigned."
    )
    server_id: str = Field(description="Id of the server that has the address.")
    address: Annotated[str | None, base.ALWAYS] = m.optional("The address; empty until it is assigned.")
    gateway: Annotated[str | None, At()] = None
    netmask: Annotated[str | None, At()] = None
    price_monthly: Annotated[str | None, At()] = m.optional(
        "What the address adds to each month (decimal, in currency)."
    )
    currency: str | None = m.optional("ISO 4217 code of the currency of the amounts, such as EUR.")
    charged: str | None = m.optional("What the purchase cost (decimal, in currency).")
    added_at: Annotated[str | None, At()] = m.optional(
        "When the address was assigned to the server (RFC 3339, UTC); empty until then."
    )
    purchase_key: str | None = m.optional("Idempotency key of the purchase; it holds no secret.")
    invoice_id: str | None = m.optional("Id of the purchase's invoice, if known.")
    present_before: list[str] | None = m.optional(
        "The server's addresses just before the purchase, while it is pending."
    )


def _from_api(server_id: str, ip: m.Ip, last: ServerIpState | None = None) -> ServerIpState:
    kept = ("currency", "charged", "purchase_key", "invoice_id") if last else ()
    return ServerIpState(
        id=f"{server_id}/{ip.id}",
        server_id=server_id,
        address=address_list.plain_address(ip.address),
        **shown(ServerIpState, ip),
        **{name: getattr(last, name) for name in kept},
    )


def _from_purchase(
    server_id: str, purchased: address_list.Purchased, last: ServerIpState | None = None
) -> ServerIpState:
    if purchased.ip is not None:
        state = _from_api(server_id, purchased.ip, last)
        return state.model_copy(update={"purchase_key": purchased.key, "invoice_id": purchased.invoice_id})
    return ServerIpState(
        id=f"{PENDING}{server_id}/{purchased.number}",
        server_id=server_id,
        charged=as_text(purchased.charged),
        currency=purchased.currency,
        purchase_key=purchased.key,
        present_before=list(purchased.present_before),
    )


def _number(state: ServerIpState) -> int | None:
    return id_number(state.id.rpartition("/")[2])


def _ordered(state: ServerIpState) -> str:
    return f"the purchase of an address for server {state.server_id}"


def _next_step(request: Request, verdict: Verdict) -> str:
    return verdict.next_step(request.client.words.read_and_apply, "buy")


class ServerIpResource(
    base.Resource[ServerIpInputs, ServerIpState],
    Findable[ServerIpInputs, ServerIpState],
    Adoptable[ServerIpInputs],
    Validated,
    Priced,
    Provisioned[ServerIpInputs, ServerIpState],
    Sandboxed[ServerIpState],
):
    kind: ClassVar[str] = "server_ip"
    title: ClassVar[str] = "server address"
    natural_key: ClassVar = ("server_id",)
    parent = "server"
    id_form: ClassVar[str] = address_list.ID_FORM
    early_deletion = (
        "destroy releases the address before its server, and only an address that goes "
        "with its server is refunded"
    )
    control_path = "/servers/{}/ips/{}"
    scopes: ClassVar = {
        "read": ("servers:read",),
        "create": ("servers:read", "servers:order", "invoices:read"),
        "update": (),
        "delete": ("servers:read", "servers:order"),
    }

    def is_id(self, id: str) -> bool:
        server, slash, number = id.removeprefix(PENDING).partition("/")
        if id.startswith(PENDING):
            return id_number(server) is not None and (not slash or id_number(number) is not None)
        return address_list.is_id(id)

    def read(self, request: Request, id: str, last: ServerIpState | None = None) -> ServerIpState | None:
        if id.startswith(PENDING):
            if last is None or last.present_before is None:
                raise errors.ResourceError(
                    f"{id!r} stands for a purchase under way. Next: give <server id>/<address id>"
                )
            if living_server(request, last.server_id) is None:
                return None
            if (arrived := self._arrived(request, last)) is not None:
                return arrived
            verdict = address_list.became_of(request, last.server_id, _number(last))
            if not verdict.is_over:
                return last
            again = "another is bought if it is still declared"
            then = _next_step(request, verdict) if verdict.fate is Fate.NEVER_ARRIVED else again
            request.warn(f"{verdict.sentence(_ordered(last))}; {then}")
            return None
        server_id, wanted = address_list.split_id(id)
        ip = address_list.find(request, server_id, wanted)
        if ip is not None and last is not None:
            kept = "the state stays as it was"
            address_list.must_be_recorded(request, self.title, id, ip, last.address, kept)
        return _from_api(server_id, ip, last) if ip is not None else None

    @taken_again
    def create(self, request: Request, inputs: ServerIpInputs) -> ServerIpState:
        request.session.addresses_to_buy[inputs.server_id].discard(request.identity)
        if inputs.adopt_id is not None:
            return _from_api(inputs.server_id, self._adoptable(request, inputs.server_id, inputs.adopt_id))
        if request.client.is_test_key:
            return self._simulate(request, inputs)
        purchase = AddressPurchase(request, inputs.server_id, inputs.order_attempt or 0)

        with purchase.owners.turn():
            purchased = purchase.carry_out()
            state = _from_purchase(inputs.server_id, purchased)
            if purchased.ip is not None:  # it was there
                request.taken_over.add(state.id)
            if self.is_provisional(state):
                request.save(state)
                try:
                    state = self.wait(request, state)
                except errors.WaitTimeout:
                    if request.wait_timeout:
                        raise  # otherwise there is nothing to wait for
            return state

    def _adoptable(self, request: Request, server_id: str, wanted: str) -> m.Ip:
        ip = address_list.find(request, server_id, wanted, fresh=True)
        if ip is None or ip.primary:
            reason = "is its primary one" if ip is not None else "is none of its addresses"
            raise errors.ResourceError(
                f"adopt_id: {wanted} of server {server_id} {reason}. Next: correct adopt_id, "
                "or leave it out to buy one"
            )
        id = f"{server_id}/{ip.id}"
        owners = Owners(request, server_id)
        if request.is_of_another(id) or owners.is_held_by_a_running_process(ip):
            raise errors.ResourceError(
                f"adopt_id: another resource has {self.title} {id} already; nothing was "
                "changed. Next: correct adopt_id"
            )
        return ip

    def _simulate(self, request: Request, inputs: ServerIpInputs) -> ServerIpState:
        added = request.client.servers.ips.add(int(inputs.server_id))
        # RFC 5737: documentation addresses. What needs an address later gets one that looks like it.
        address = f"192.0.2.{1 + int.from_bytes(request.identity.encode()[-4:], 'big') % 254}"
        request.info(f"simulated: a test key buys no address; {address} stands for it")
        return ServerIpState(
            id=f"{inputs.server_id}/{address_list.SIMULATED}",
            server_id=inputs.server_id,
            address=address,
            currency=added.currency,
            charged=as_text(added.charged),
        )

    def update(
        self, request: Request, state: ServerIpState, inputs: ServerIpInputs, fields: frozenset[str]
    ) -> ServerIpState:
        return self.wait(request, state)

    def delete(self, request: Request, state: ServerIpState) -> None:
        if self.is_provisional(state):
            if living_server(request, state.server_id) is None:
                return
            try:
                state = self.wait(request, state)
            except (errors.WaitTimeout, errors.OrderFailed):
                self._forget_purchase(request, state)
                return
        server_id, wanted = address_list.split_id(state.id)
        ip = address_list.find(request, server_id, wanted, fresh=True)
        if ip is None:
            return
        if ip.primary:
            raise errors.ResourceError(
                f"{ip.address} is the primary address of server {server_id} and cannot be "
                "released. Next: correct the id"
            )
        address_list.must_be_recorded(request, self.title, state.id, ip, state.address, "nothing was deleted")
        self._release(request, server_id, ip)
        Owners(request, server_id).forget(str(ip.id))
        request.info(
            f"address {ip.address} (id {ip.id}) of server {server_id} released; nothing is refunded for it"
        )

    def _forget_purchase(self, request: Request, state: ServerIpState) -> None:
        """Forget a purchase of which no address came, or raise if one may still come."""
        verdict = address_list.became_of(request, state.server_id, _number(state))
        if verdict.may_be_forgotten:
            request.warn(f"{verdict.sentence(_ordered(state))}; nothing is left to remove")
        elif request.stays("server", state.server_id):
            raise errors.StillOrdered("server address", state.id, verdict.sentence(_ordered(state)))
        else:
            request.warn(
                f"{verdict.sentence(_ordered(state))}; if it still comes, it goes when server "
                f"{state.server_id} is deleted"
            )

    @staticmethod
    def _release(request: Request, server_id: str, ip: m.Ip) -> None:
        """Release it, or raise: after any answer but a success the list decides."""
        release = partial(request.client.servers.ips.delete, int(server_id), ip.id)
        try:
            request.when_free(f"server {server_id}", release)
        except OperationInProgress:
            raise
        except HostingError as error:
            with errors.failing_with(error):
                left = address_list.find(request, server_id, str(ip.id), fresh=True)
            if left is not None:
                raise
        finally:
            request.reads.forget("ips", server_id)
            address_list.forget_quote(request, server_id)

    def find(self, request: Request, inputs: ServerIpInputs) -> ServerIpState | None:
        """The address named by ``adopt_id``; nothing else tells one bought address from another."""
        if inputs.adopt_id is None:
            return None
        ip = address_list.find(request, inputs.server_id, inputs.adopt_id, fresh=True)
        return _from_api(inputs.server_id, ip) if ip is not None else None

    def all(self, request: Request, *, server_id: str | None = None, **_: Any) -> Iterable[ServerIpState]:
        """The bought ones of one server, or of all."""
        found = address_list.everywhere(request, server_id)
        return (_from_api(server, ip) for server, ip in found if not ip.primary and ip.version != 6)

    def takeover(self, request: Request, inputs: ServerIpInputs) -> Takeover | None:
        """What ``create`` would take over. If only a key can prove whose an address is, the reason says so:
        ``create`` does not pay then.
        """
        if inputs.adopt_id is not None:
            adopted = self._adoptable(request, inputs.server_id, inputs.adopt_id)
            return self._taken_over(inputs.server_id, adopted, "adopt_id names it")
        if request.client.is_test_key:
            return None
        quote = address_list.quote_of(request, inputs.server_id)
        server = living_server(request, inputs.server_id) if quote is not None else None
        if quote is None or server is None:
            return None
        owners = Owners(request, inputs.server_id)
        extra = address_list.bought(address_list.of_shown(request, server))
        unowned = owners.unowned(extra)
        missing = max(0, quote.extra_ips - len(extra))
        intent = owners.intent()
        mine = next(filter(owners.is_noted_as_mine, unowned), None)
        if mine is None and intent is not None:
            since = [ip for ip in unowned if address_list.is_new(ip, intent["before"])]
            is_only_one = len(since) == 1 and not missing
            mine = next((ip for ip in since if is_only_one or not owners.is_old(ip)), None)
        if mine is not None:
            owners.must_be_adoptable(mine)
            return self._taken_over(inputs.server_id, mine, "an earlier run bought it")
        if len(unowned) + missing <= (inputs.order_attempt or 0):
            return None
        if unowned:
            follows = (
                "the run will stop: it is older than the 7 days of its key"
                if all(map(owners.is_old, unowned))
                else "the run will stop where its key does not prove that"
            )
            unclear = (
                "this machine does not know whose it is: an interrupted run of this resource may have "
                "bought it; nothing is paid before that is known, and unless another "
                f"resource here has it, {follows}"
            )
            return self._taken_over(inputs.server_id, unowned[-1], unclear)
        state = ServerIpState(id=f"{PENDING}{inputs.server_id}", server_id=inputs.server_id)
        reason = "an address was bought for the server before and is not assigned yet"
        return Takeover(state, reason, title=self.title)

    def _taken_over(self, server_id: str, ip: m.Ip, reason: str) -> Takeover:
        state = _from_api(server_id, ip)
        return Takeover(state, reason, ip.added_at, price_monthly=ip.price_monthly, title=self.title)

    def cost(self, request: Request, desired: Mapping[str, Any]) -> Cost | None:
        """Until the server's next due date; it adds to the renewals after that."""
        if "server_id" not in desired or desired.get("adopt_id") is not None:
            return None
        quote = address_list.quote_of(request, desired["server_id"])
        if quote is None:
            return None
        what = f"an address, then {quote.price_monthly} a month"
        return catalog_reads.charge(request, quote.prorated_now, quote.currency, what)

    def validate(self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]) -> base.Reasons:
        """The server is there or planned, and may have one more address, beside those that this run is to buy
        before."""
        if desired.get("adopt_id") is not None:
            return {}
        if "server_id" not in desired:
            if request.parent is None or "server_id" not in fields:
                return {}
            label, server = request.parent
            wanted = server.get("tariff_id")
            ids = wanted if isinstance(wanted, list) else [wanted]
            found = [one.max_extra_ips for one in catalog_reads.tariffs(request).values() if one.id in ids]
            limits = [most for most in found if most is not None]
            is_known = len(limits) == len(ids)
            return (
                self._beyond(request, label, f"server {server.get('name')}", 0, max(limits))
                if is_known
                else {}
            )
        if request.client.is_test_key:
            return {}
        id = desired["server_id"]
        quote = address_list.quote_of(request, id)
        if quote is None:
            return {"server_id": f"there is no server {id} on this account"}
        return self._beyond(request, id, f"server {id}", quote.extra_ips, quote.max_extra_ips)

    @staticmethod
    def _beyond(request: Request, key: str, server: str, has: int, most: int) -> base.Reasons:
        """Why the run is to buy no further one; what an interrupted run may have bought is counted once.
        ``key``: the id of the server; the label of its declaration, while it is planned."""
        planned = request.session.addresses_to_buy[key]
        planned.add(request.identity)
        if (beyond := has + len(planned) - most) <= 0:
            return {}
        extra = address_list.bought(address_list.of_server(request, key) or []) if has else []
        if beyond <= len(Owners(request, key).unowned(extra)):
            return {}
        planned.discard(request.identity)
        counted = f", counting {len(planned)} more of this run" if planned else ""
        why = f"{server} has all of the {most} addresses its tariff allows{counted}"
        return {"server_id": f"{why}. Next: leave this one out"}

    def settle(self, request: Request, state: ServerIpState, inputs: ServerIpInputs) -> ServerIpState:
        return self.wait(request, state)

    def wait(self, request: Request, state: ServerIpState) -> ServerIpState:
        """Until the address is assigned. Raises ``OrderFailed`` if it never will be."""
        wait, looks = request.poller(), 0
        while self.is_provisional(state):
            if arrived := self._arrived(request, state):
                return arrived
            looks += 1
            if wait.over or looks & (looks - 1) == 0:  # its money is looked at less and less often
                verdict = address_list.became_of(request, state.server_id, _number(state))
                if verdict.is_over:
                    raise errors.OrderFailed(
                        f"{verdict.sentence(_ordered(state))}. Next: {_next_step(request, verdict)}"
                    )
            if wait.over:
                raise errors.WaitTimeout(
                    f"the address bought for server {state.server_id} is not assigned after "
                    f"{request.wait_timeout:.0f} s. Next: {errors.AWAITED}",
                    id=state.id,
                )
            request.info(f"server {state.server_id}: waiting for the address")
            wait.pause()
        return state

    def _arrived(self, request: Request, state: ServerIpState) -> ServerIpState | None:
        """The new address of the list that is ours. The server itself shows it too and is the cheaper
        question.
        """
        server = living_server(request, state.server_id)
        if server is None:
            raise errors.ResourceError(
                f"server {state.server_id} was deleted meanwhile, its addresses with it. Next: run again"
            )
        purchase = AddressPurchase(request, state.server_id)
        present = state.present_before or ()
        arrived = purchase.assigned(server, state.purchase_key, present, _number(state))
        return None if arrived is None else _from_purchase(state.server_id, arrived, state)

    def is_provisional(self, state: ServerIpState) -> bool:
        return state.id.startswith(PENDING)

    def is_simulated(self, id: str) -> bool:
        return id.endswith(f"/{address_list.SIMULATED}")


SERVER_IP = ServerIpResource()
