"""Changes made outside the API, by staff, billing or in the control panel: of servers and all that belongs to
an account.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator
from starlette.routing import Route

from pulumi_hosting.api.models.field_types import DOMAIN_STATUSES, EVENT_TYPES, SERVER_STATUSES
from pulumi_hosting.emulator import registrar, serializers, server_lifecycle, webhook_delivery
from pulumi_hosting.emulator.control.body_fields import Amount, account_of, find, one_of
from pulumi_hosting.emulator.control.endpoint import LEFT_OUT, Body, ControlError, endpoint
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.rows import Address, Delivery, Domain, Row, Server, Subscription


def _assign(row: Row, body: Body, *apart: str) -> None:
    """Set the columns that were sent, those in ``apart`` left out."""
    for name, value in body.given().items():
        if name not in apart:
            setattr(row, name, value)


# --- servers and addresses --------------------------------------------------------------------------------


class NewServerBody(Body):
    name: str = "imported"
    tariff_id: int = 1
    os: str = "debian-12"
    synthetic: bool = False
    is_test: bool = False
    account_id: int = LEFT_OUT


def create_server(core: Core, body: NewServerBody) -> Any:
    """A server that no client ordered: imported (``synthetic``) or a free trial (``is_test``)."""
    store, now = core.store, core.clock.now()
    tariff = find(store.tariffs, body.tariff_id, "tariff")
    owner = account_of(core, body.account_id)
    plan = server_lifecycle.monthly_plan(owner.id, body.name, tariff, body.os, now)
    plan |= {"synthetic": body.synthetic, "is_test": body.is_test}
    id = server_lifecycle.new_server_id(store, synthetic=body.synthetic)
    return serializers.server(server_lifecycle.add_server(store, id, plan, now), store)


class ServerBody(Body):
    status: Annotated[str, one_of(*SERVER_STATUSES)] = LEFT_OUT
    name: str = LEFT_OUT
    notes: str | None = LEFT_OUT
    auto_renew: bool = LEFT_OUT
    blocked: bool = LEFT_OUT
    expired: bool = LEFT_OUT
    power: Literal["running", "stopped", "unknown"] = LEFT_OUT
    os: str = LEFT_OUT


def edit_server(core: Core, body: ServerBody, id: int) -> Any:
    """Drift of a server; a change of status sends the event that belongs to it."""
    now = core.clock.now()
    server: Server = find(core.store.servers, id, "server")
    given = body.given()
    _assign(server, body, "status", "notes", "power")
    if "name" in given:
        server.hostname = body.name
    if "notes" in given:
        server.notes = body.notes or ""  # null clears, as in the API
    if "power" in given:
        server.power, server.power_since = body.power, now
    if "status" in given and body.status != server.status:
        _change_status(core, server, body.status, now)
    return serializers.server(server, core.store)


def _change_status(core: Core, server: Server, status: str, now: float) -> None:
    if status == "suspended":
        server_lifecycle.suspend(core.store, server, now)
    elif status in ("cancelled", "terminated"):
        server_lifecycle.end(core.store, server, now, status=status)
    elif server.status == "suspended":
        server.suspended_from = status
        server_lifecycle.resume(core.store, server, now)
    else:
        server.status = status
        if status in ("active", "stopped"):
            server.power = "running" if status == "active" else "stopped"


def delete_server(core: Core, id: int) -> Any:
    server: Server = find(core.store.servers, id, "server")
    if not server.is_gone:
        server_lifecycle.end(core.store, server, core.clock.now())
    return {"deleted": id}


def _address(core: Core, id: int, ip_id: int) -> Address:
    address: Address = find(core.store.addresses, ip_id, "address")
    if address.server_id != id:
        raise ControlError(f"server {id} has no address {ip_id}", 404)
    return address


class AddressBody(Body):
    ptr: str | None = LEFT_OUT


def edit_address(core: Core, body: AddressBody, id: int, ip_id: int) -> Any:
    address = _address(core, id, ip_id)
    _assign(address, body)
    return serializers.address(address)


def delete_address(core: Core, id: int, ip_id: int) -> Any:
    core.store.remove(_address(core, id, ip_id))
    return {"deleted": ip_id}


# --- SSH keys, domains, subscriptions, tariffs ------------------------------------------------------------


class SshKeyBody(Body):
    name: str = LEFT_OUT


def edit_ssh_key(core: Core, body: SshKeyBody, id: int) -> Any:
    key = find(core.store.ssh_keys, id, "SSH key")
    _assign(key, body)
    return serializers.ssh_key(key)


def delete_ssh_key(core: Core, id: int) -> Any:
    core.store.remove(find(core.store.ssh_keys, id, "SSH key"))
    return {"deleted": id}


class DomainBody(Body):
    status: Annotated[str, one_of(*DOMAIN_STATUSES)] = LEFT_OUT
    blocked: bool = LEFT_OUT
    auto_renew: bool = LEFT_OUT
    privacy: bool = LEFT_OUT
    nameservers: list[str] = LEFT_OUT


def edit_domain(core: Core, body: DomainBody, id: int) -> Any:
    """Drift of a domain; a domain that becomes active or expired ends every other row of its name."""
    domain: Domain = find(core.store.domains, id, "domain")
    _assign(domain, body, "status")
    if "status" in body.given() and body.status != domain.status:
        if body.status == "active" and domain.status in ("pending", "transfer_pending"):
            registrar.activate(core.store, domain, core.clock.now())
        domain.status = body.status
        if domain.status in ("active", "expired"):
            registrar.cancel_other_owners(core.store, domain)
    return serializers.domain(domain, core.store)


def delete_domain(core: Core, id: int) -> Any:
    core.store.remove(find(core.store.domains, id, "domain"))
    return {"deleted": id}


def _event_types(events: list[str]) -> list[str]:
    if not set(events) <= {*EVENT_TYPES, "*"}:
        raise ValueError("must hold event types or *")
    return events


def _public_url(url: str) -> str:
    if not url.startswith("https://") or webhook_delivery.url_problem(url):
        raise ValueError("must be a public https address")
    return url


class SubscriptionBody(Body):
    url: Annotated[str, AfterValidator(_public_url)] = LEFT_OUT
    events: Annotated[list[str], AfterValidator(_event_types)] = LEFT_OUT
    description: str = LEFT_OUT
    active: bool = LEFT_OUT


def edit_subscription(core: Core, body: SubscriptionBody, id: int) -> Any:
    row: Subscription = find(core.store.subscriptions, id, "subscription")
    _assign(row, body)
    return serializers.subscription(row)


def delete_subscription(core: Core, id: int) -> Any:
    row: Subscription = find(core.store.subscriptions, id, "subscription")
    for delivery in list(core.store.of(Delivery, row.id).values()):
        core.store.remove(delivery)
    core.store.remove(row)
    return {"deleted": id}


class TariffBody(Body):
    in_stock: bool = LEFT_OUT
    price_monthly: Amount = LEFT_OUT
    disabled: bool = LEFT_OUT


def edit_tariff(core: Core, body: TariffBody, id: int) -> Any:
    """A change of the catalog."""
    tariff = find(core.store.tariffs, id, "tariff")
    _assign(tariff, body)
    return serializers.tariff(tariff, core.store, account_of(core, None))


ROUTES = (
    Route("/servers", endpoint(create_server), methods=["POST"]),
    Route("/servers/{id:int}", endpoint(edit_server), methods=["PATCH"]),
    Route("/servers/{id:int}", endpoint(delete_server), methods=["DELETE"]),
    Route("/servers/{id:int}/ips/{ip_id:int}", endpoint(edit_address), methods=["PATCH"]),
    Route("/servers/{id:int}/ips/{ip_id:int}", endpoint(delete_address), methods=["DELETE"]),
    Route("/ssh-keys/{id:int}", endpoint(edit_ssh_key), methods=["PATCH"]),
    Route("/ssh-keys/{id:int}", endpoint(delete_ssh_key), methods=["DELETE"]),
    Route("/domains/{id:int}", endpoint(edit_domain), methods=["PATCH"]),
    Route("/domains/{id:int}", endpoint(delete_domain), methods=["DELETE"]),
    Route("/webhooks/{id:int}", endpoint(edit_subscription), methods=["PATCH"]),
    Route("/webhooks/{id:int}", endpoint(delete_subscription), methods=["DELETE"]),
    Route("/tariffs/{id:int}", endpoint(edit_tariff), methods=["PATCH"]),
)
