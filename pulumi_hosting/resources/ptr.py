"""Reverse DNS of one address of a server, the primary one too (API document, "Servers").

Setting it is setting it: the last write wins, and doing it twice is the same as once. The id is ``<server
id>/<address id>``.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import check_host_name, id_number
from pulumi_hosting.client.exceptions import NotFound, ServiceState
from pulumi_hosting.exactly_once import address_list
from pulumi_hosting.exactly_once.order_facts import SNAPSHOT_AGE, living_server
from pulumi_hosting.resources import base
from pulumi_hosting.resources.base import REPLACES, IdText
from pulumi_hosting.resources.drift_fields import Drift
from pulumi_hosting.resources.powers import Findable, Sandboxed, Validated
from pulumi_hosting.session.account_snapshot import Change
from pulumi_hosting.session.errors import NoSuchObject, ResourceError
from pulumi_hosting.session.request import Request

# seconds until an address that was just bought, or just came with its server, must be listed
_LISTED_SECONDS = 30.0


def _plain_host(name: str) -> str:
    return check_host_name(name).rstrip(".").lower()


class PtrInputs(base.Inputs):
    server_id: Annotated[IdText, REPLACES] = Field(
        description="Id of the server that the address belongs to. A change makes another record."
    )
    address: Annotated[Annotated[str, AfterValidator(address_list.plain_address)] | None, REPLACES] = (
        m.optional(
            "An IPv4 or IPv6 address of the server; by default the primary one. A change makes another "
            "record."
        )
    )
    domain: Annotated[
        Annotated[str, AfterValidator(_plain_host)], Drift(lambda value: "elsewhere.example.net", "ptr")
    ] = Field(description="Host name the address resolves to; case and a dot at the end do not matter.")


class PtrState(base.State):
    id: str = Field(description="<server id>/<address id>.")
    server_id: str = Field(description="Id of the server whose address has the record.")
    address: Annotated[str | None, base.ALWAYS] = m.optional("The IPv4 or IPv6 address that is looked up.")
    domain: Annotated[str | None, base.ALWAYS] = m.optional("Host name that the address resolves to.")


def _state(server_id: str, ip: m.Ip, domain: str | None) -> PtrState:
    return PtrState(
        id=f"{server_id}/{ip.id}",
        server_id=server_id,
        address=address_list.plain_address(ip.address),
        domain=domain,
    )


def _domain(ip: m.Ip) -> str | None:
    return ip.ptr.rstrip(".").lower() if ip.ptr else None


def _shown(server_id: str, ip: m.Ip | None) -> PtrState | None:
    """The state of the address's record, if it has one."""
    return _state(server_id, ip, _domain(ip)) if ip is not None and ip.ptr else None


def _remember(request: Request, server_id: str, ip_id: int, domain: str | None) -> None:
    """Write it into the list that is shared: reading the list again is expensive on some deployments."""
    part, operation, key = address_list.part_of(server_id), "list_server_ips", str(ip_id)
    snapshot = request.reads.snapshot
    known = snapshot.row(part, operation, key, request.clock.monotonic(), address_list.FRESH)
    if known is not None:
        snapshot.apply(Change("set", part, operation, key, known.model_copy(update={"ptr": domain})))


class PtrResource(
    base.Resource[PtrInputs, PtrState], Findable[PtrInputs, PtrState], Validated, Sandboxed[PtrState]
):
    kind: ClassVar[str] = "ptr"
    title: ClassVar[str] = "PTR record"
    natural_key: ClassVar = ("server_id", "address")
    parent = "server"
    early_deletion = "destroy clears the record before it deletes the server, which would remove it anyway"
    control_path = "/servers/{}/ips/{}"
    control_removal: ClassVar = {"ptr": None}
    replacement = "free"
    id_form: ClassVar[str] = address_list.ID_FORM
    scopes: ClassVar = dict.fromkeys(("create", "update", "delete"), ("servers:read", "servers:manage")) | {
        "read": ("servers:read",)
    }

    def is_id(self, id: str) -> bool:
        return address_list.is_id(id)

    def read(self, request: Request, id: str, last: PtrState | None = None) -> PtrState | None:
        server_id, wanted = address_list.split_id(id)
        ip = address_list.find(request, server_id, wanted)
        if ip is not None and last is not None:
            kept = "the state stays as it was"
            address_list.must_be_recorded(request, self.title, id, ip, last.address, kept)
        return _shown(server_id, ip)

    def create(self, request: Request, inputs: PtrInputs) -> PtrState:
        wait = request.poller(_LISTED_SECONDS)
        fresh = False
        while True:
            found = address_list.of_server(request, inputs.server_id, fresh=fresh)
            ip = self._ip(found, inputs.address)
            if ip is not None:
                return self._set(request, inputs.server_id, ip, inputs.domain)
            if request.client.is_test_key:
                request.info("the address is only simulated, and so is its reverse DNS")
                return PtrState(
                    id=f"{inputs.server_id}/{address_list.SIMULATED}",
                    server_id=inputs.server_id,
                    address=inputs.address,
                    domain=inputs.domain,
                )
            if found is None or wait.over:
                break
            request.info(f"server {inputs.server_id}: waiting for {inputs.address or 'its primary address'}")
            wait.pause()
            fresh = True
        if found is None:
            raise NoSuchObject(
                f"server_id: there is no server {inputs.server_id} on this account. Next: correct server_id"
            )
        known = ", ".join(ip.address for ip in found) or "none"
        raise ResourceError(
            f"address: server {inputs.server_id} has no address {inputs.address or '(primary)'}; it has "
            f"{known}. Next: correct address"
        )

    @staticmethod
    def _set(request: Request, server_id: str, ip: m.Ip, domain: str) -> PtrState:
        if _domain(ip) != domain:
            request.client.servers.ips.set_ptr(int(server_id), ip.id, domain=domain)
            _remember(request, server_id, ip.id, domain)
        return _state(server_id, ip, domain)

    def update(
        self, request: Request, state: PtrState, inputs: PtrInputs, fields: frozenset[str]
    ) -> PtrState:
        server_id, wanted = address_list.split_id(state.id)
        if id_number(wanted) is None:
            return self.create(request, inputs)
        self._must_be_recorded(request, state, server_id, wanted, "nothing was changed")
        request.client.servers.ips.set_ptr(int(server_id), int(wanted), domain=inputs.domain)
        _remember(request, server_id, int(wanted), inputs.domain)
        return state.model_copy(update={"domain": inputs.domain})

    def _must_be_recorded(
        self,
        request: Request,
        state: PtrState,
        server_id: str,
        wanted: str,
        outcome: str,
        max_age: float = SNAPSHOT_AGE,
    ) -> None:
        """Raise ``NotOurs`` if the number in its id is that of another address, by a list of this age at
        most: such a list is an expensive question on some deployments."""
        if request.name_is_identity:
            return
        ip = address_list.find(request, server_id, wanted, max_age=max_age)
        if ip is not None:
            address_list.must_be_recorded(request, self.title, state.id, ip, state.address, outcome)

    def delete(self, request: Request, state: PtrState) -> None:
        server_id, wanted = address_list.split_id(state.id)
        if id_number(wanted) is None:
            ip = address_list.find(request, server_id, wanted, fresh=True)
            if ip is None:
                return
            wanted = str(ip.id)
        self._must_be_recorded(request, state, server_id, wanted, "nothing was deleted", max_age=0.0)
        try:
            request.client.servers.ips.set_ptr(int(server_id), int(wanted), domain=None)
        except (NotFound, ServiceState):
            # The address or its server is gone, and the record with it: only the account shows that.
            ip = address_list.find(request, server_id, wanted, fresh=True)
            if ip is not None and ip.ptr and living_server(request, server_id) is not None:
                raise
            return
        _remember(request, server_id, int(wanted), None)
        request.info(f"PTR record {state.domain} of {state.address} cleared")

    def find(self, request: Request, inputs: PtrInputs) -> PtrState | None:
        """By server and address."""
        found = address_list.of_server(request, inputs.server_id, fresh=True)
        return _shown(inputs.server_id, self._ip(found, inputs.address))

    @staticmethod
    def _ip(found: list[m.Ip] | None, address: str | None) -> m.Ip | None:
        if address is not None:
            return address_list.pick(found, address)
        primary = [ip for ip in found or () if ip.primary]
        return min(primary, key=lambda ip: (ip.version == 6, ip.id), default=None)

    def all(self, request: Request, *, server_id: str | None = None, **_: Any) -> Iterable[PtrState]:
        """Those of one server, or of all."""
        everywhere = address_list.everywhere(request, server_id)
        return (state for server, ip in everywhere if (state := _shown(server, ip)) is not None)

    def validate(self, request: Request, desired: Mapping[str, Any], fields: frozenset[str]) -> base.Reasons:
        """The server is there, and the address is one of its."""
        if "server_id" not in desired or not fields & {"server_id", "address"} or request.client.is_test_key:
            return {}
        try:
            server = request.client.servers.get(int(desired["server_id"]))
        except NotFound:
            return {"server_id": f"there is no server {desired['server_id']} on this account"}
        known = {address_list.plain_address(text) for text in server.ips or ()}
        if known and desired.get("address") is not None and desired["address"] not in known:
            choices = f"choose one of {', '.join(sorted(known))}"
            return {"address": f"server {server.id} has no address {desired['address']}: {choices}"}
        return {}

    def is_simulated(self, id: str) -> bool:
        return id.endswith(f"/{address_list.SIMULATED}")


PTR = PtrResource()
