"""What a bought address can do beside the four methods: see ``powers``."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from pulumi_hosting.exactly_once import address_list
from pulumi_hosting.exactly_once.address_facts import bought, is_new, quote_of
from pulumi_hosting.exactly_once.address_owners import Owners
from pulumi_hosting.exactly_once.order_facts import living_server
from pulumi_hosting.resources.base import Takeover
from pulumi_hosting.resources.powers import Adoptable, Findable, Priced, Provisioned, Sandboxed, Validated
from pulumi_hosting.resources.server_ip import (
    PENDING,
    ServerIpBase,
    ServerIpInputs,
    ServerIpState,
    _from_api,
)
from pulumi_hosting.session.request import Request


class ServerIpResource(
    ServerIpBase,
    Findable[ServerIpInputs, ServerIpState],
    Adoptable[ServerIpInputs],
    Validated,
    Priced,
    Provisioned[ServerIpInputs, ServerIpState],
    Sandboxed[ServerIpState],
):
    """A bought address as resource: see ``server_ip`` for its inputs, its state and its methods."""

    natural_key: ClassVar = ("server_id",)

    def find(self, request: Request, inputs: ServerIpInputs) -> ServerIpState | None:
        """The address named by ``adopt_id``; nothing else tells one bought address from another."""
        if inputs.adopt_id is None:
            return None
        ip = address_list.pick(address_list.of_server(request, inputs.server_id, fresh=True), inputs.adopt_id)
        return _from_api(inputs.server_id, ip) if ip is not None else None

    def all(self, request: Request, *, server_id: str | None = None, **_: Any) -> Iterable[ServerIpState]:
        """The bought ones of one server, or of all."""
        found = address_list.everywhere(request, server_id)
        return (_from_api(server, ip) for server, ip in found if not ip.primary and ip.version != 6)

    def takeover(self, request: Request, inputs: ServerIpInputs) -> Takeover | None:
        """What ``create`` would take over. The reason says where only a key can prove whose an address is:
        ``create`` does not pay then.
        """
        if inputs.adopt_id is not None:
            return self._taken_over(self._adopt(request, inputs, inputs.adopt_id), "adopt_id names it")
        if request.client.is_test_key:
            return None
        quote = quote_of(request, inputs.server_id)
        server = living_server(request, inputs.server_id) if quote is not None else None
        if quote is None or server is None:
            return None
        owners = Owners(request, inputs.server_id)
        extra = bought(address_list.of_shown(request, server))
        unowned = owners.unowned(extra)
        missing = max(0, quote.extra_ips - len(extra))
        intent = owners.intent()
        mine = next(filter(owners.is_noted_as_mine, unowned), None)
        if mine is None and intent is not None:
            since = [ip for ip in unowned if is_new(ip, intent["before"])]
            is_only_one = len(since) == 1 and not missing
            mine = next((ip for ip in since if is_only_one or not owners.is_old(ip)), None)
        if mine is not None:
            owners.must_be_adoptable(mine)
            return self._taken_over(_from_api(inputs.server_id, mine), "an earlier run bought it")
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
            return self._taken_over(_from_api(inputs.server_id, unowned[-1]), unclear)
        state = ServerIpState(id=f"{PENDING}{inputs.server_id}", server_id=inputs.server_id)
        return self._taken_over(state, "an address was bought for the server before and is not assigned yet")

    def _taken_over(self, state: ServerIpState, reason: str) -> Takeover:
        added_at = None if state.added_at is None else datetime.fromisoformat(state.added_at)
        price = None if state.price_monthly is None else Decimal(state.price_monthly)
        return Takeover(
            state, reason, added_at, currency=state.currency, price_monthly=price, title=self.title
        )

    def validate(
        self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]
    ) -> dict[str, str]:
        """The server is there and may have one more address."""
        if "server_id" not in desired or desired.get("adopt_id") is not None or request.client.is_test_key:
            return {}
        quote = quote_of(request, desired["server_id"])
        if quote is None:
            return {"server_id": f"there is no server {desired['server_id']} on this account"}
        if quote.extra_ips >= quote.max_extra_ips and not self._has_unowned(request, desired["server_id"]):
            allowed = f"all of the {quote.max_extra_ips} addresses its tariff allows"
            return {"server_id": f"server {desired['server_id']} has {allowed}"}
        return {}

    @staticmethod
    def _has_unowned(request: Request, server_id: str) -> bool:
        found = address_list.of_server(request, server_id) or []
        return bool(Owners(request, server_id).unowned(bought(found)))

    def is_simulated(self, id: str) -> bool:
        return id.endswith(f"/{address_list.SIMULATED}")


SERVER_IP = ServerIpResource()
