"""Changes made outside the API, by staff, billing or in the control panel: of servers and all that belongs to
an account.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pulumi_hosting.api.models.field_types import DomainStatus, ServerStatus
from pulumi_hosting.emulator import registrar, serializers, server_lifecycle, webhook_delivery
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.control.endpoint import (
    Amount,
    Body,
    ControlError,
    Route,
    assign,
    columns_of,
    find,
)
from pulumi_hosting.emulator.control.made_by_hand import Events, Power, PublicUrl
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.store import Store

# --- servers ----------------------------------------------------------------------------------------------


def _edit_server(store: Store, server: r.ServerRow, body: Body) -> None:
    """Drift of a server; a change of status sends the event that belongs to it."""
    given = body.given()
    assign(server, body, "status", "notes")
    if "name" in given:
        server.hostname = server.name
    if "notes" in given:
        server.notes = given["notes"] or ""  # null clears, as in the API
    if "power" in given:
        server.power_since = store.now
    if given.get("status", server.status) != server.status:
        _change_status(store, server, given["status"])


def _change_status(store: Store, server: r.ServerRow, status: str) -> None:
    if status == "suspended":
        server_lifecycle.suspend(store, server)
    elif status in r.GONE:
        server_lifecycle.end(store, server, status=status)
    elif server.status == "suspended":
        server.suspended_from = status
        server_lifecycle.resume(store, server)
    else:
        server.status = status
        if status in ("active", "stopped"):
            server.power = "running" if status == "active" else "stopped"


def _delete_server(store: Store, server: r.ServerRow) -> None:
    if not server.is_gone:
        server_lifecycle.end(store, server)


# --- domains, subscriptions -------------------------------------------------------------------------------


def _edit_domain(store: Store, domain: r.DomainRow, body: Body) -> None:
    """Drift of a domain; a domain that becomes active or expired ends every other row of its name."""
    assign(domain, body, "status")
    status = body.given().get("status", domain.status)
    if status != domain.status:
        if status == "active" and domain.status in r.PENDING:
            registrar.activate(store, domain)
        domain.status = status
        if status in ("active", "expired"):
            registrar.cancel_other_owners(store, domain)


def _delete_zone(store: Store, zone: r.ZoneRow) -> None:
    if any(domain.tld == zone.tld for domain in store.domains.values()):
        raise ControlError(f"there are domains in the zone {zone.tld}", 409)
    store.remove(zone)


# --- what can be changed and deleted ----------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """Rows that can be changed and, unless ``delete`` is ``None``, deleted. ``word``: what one is called.
    ``kinds``: types of fields that their columns do not say.
    """

    path: str
    word: str
    row: type[r.Row]
    kinds: dict[str, object] = field(default_factory=dict)
    edit: Callable[[Store, Any, Body], None] = lambda store, row, body: assign(row, body)
    delete: Callable[[Store, Any], None] | None = Store.remove

    def routes(self) -> Iterator[Route]:
        def edit(core: Core, body: Body, **ids: int) -> object:
            row = self._row(core, **ids)
            self.edit(core.store, row, body)
            return serializers.view_of(row, core.store)

        yield Route("PATCH", self.path, edit, columns_of(self.row, **self.kinds))
        if (delete_row := self.delete) is None:
            return

        def delete(core: Core, **ids: int) -> object:
            row = self._row(core, **ids)
            delete_row(core.store, row)
            return {"deleted": row.id}

        yield Route("DELETE", self.path, delete)

    def _row(self, core: Core, id: int, ip_id: int | None = None) -> Any:
        row = find(core.store.tables[self.row.kind], id if ip_id is None else ip_id, self.word)
        if ip_id is not None and row.server_id != id:
            raise ControlError(f"server {id} has no address {ip_id}", 404)
        return row


KINDS = (
    Kind(
        "/servers/{id}",
        "server",
        r.ServerRow,
        {"status": ServerStatus, "notes": str | None, "power": Power},
        _edit_server,
        _delete_server,
    ),
    Kind("/servers/{id}/ips/{ip_id}", "address", r.AddressRow),
    Kind("/ssh-keys/{id}", "SSH key", r.SshKeyRow),
    Kind("/domains/{id}", "domain", r.DomainRow, {"status": DomainStatus}, _edit_domain),
    Kind(
        "/webhooks/{id}",
        "subscription",
        r.SubscriptionRow,
        {
            "url": PublicUrl,
            "events": Events,
        },
        delete=webhook_delivery.remove_subscription,
    ),
    Kind("/tariffs/{id}", "tariff", r.TariffRow, {"price_monthly": Amount}, delete=None),
    Kind("/locations/{id}", "location", r.LocationRow, delete=None),
    Kind("/images/{id}", "image", r.ImageRow),
    Kind("/zones/{id}", "zone", r.ZoneRow, delete=_delete_zone),
)

ROUTES = tuple(route for kind in KINDS for route in kind.routes())
