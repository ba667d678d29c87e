"""Objects of every kind made outside the API: by control calls, and by an account file, which lists them.

Nothing is charged. Columns that are left out have their usual values; with ``id`` an object gets this id.
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model

from pulumi_hosting.api.models.field_types import (
    EVENT_TYPES,
    MONTHS,
    SYNTHETIC_SERVER_IDS,
    DomainStatus,
    ServerStatus,
)
from pulumi_hosting.api.values import check_public_key, fingerprint
from pulumi_hosting.emulator import events, periods, price_list, registrar, serializers, server_lifecycle
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.control.endpoint import (
    LEFT_OUT,
    Balance,
    Body,
    ControlError,
    Moment,
    Route,
    Timestamp,
    find,
)
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.store import Store
from pulumi_hosting.emulator.webhook_delivery import url_problem

Power = Literal["running", "stopped", "unknown"]


def _event_types(events: list[str]) -> list[str]:
    if not set(events) <= {*EVENT_TYPES, "*"}:
        raise ValueError("must hold event types or *")
    return events


def _public_url(url: str) -> str:
    if url_problem(url) is not None:
        raise ValueError("must be a public https address")
    return url


def _ip_address(text: str) -> str:
    try:
        return ipaddress.ip_address(text).compressed
    except ValueError:
        raise ValueError("must be an IPv4 or IPv6 address") from None


Address = Annotated[str, AfterValidator(_ip_address)]
Events = Annotated[list[str], AfterValidator(_event_types)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
PublicKey = Annotated[str, AfterValidator(check_public_key)]
Tld = Annotated[str, AfterValidator(lambda text: text.lstrip(".").lower())]

# --- one function per kind: the row of what was given ------------------------------------------------------


def _must_be_free(store: Store, kind: str, given: r.Columns) -> None:
    """409 if the given id is that of another row."""
    if given.get("id") in store.tables[kind]:
        raise ControlError(f"id: there is a row {given['id']} among the {kind} already", 409)


def _plain(row: type[r.Row], **usual: object) -> "Make":
    return lambda store, given: store.add(row(**{**usual, **given}))


def _tariff(store: Store, given: r.Columns) -> r.Row:
    find(store.locations, given.get("location_id", 1), "location")
    small: r.Columns = {"description": "", "location_id": 1, "cpu_cores": 1, "ram_mb": 1024, "disk_gb": 20}
    return store.add(r.TariffRow(**{**small, **given}))


def _ssh_key(store: Store, given: r.Columns) -> r.Row:
    text = given["public_key"]
    return store.add(r.SshKeyRow(type=text.split()[0], fingerprint=fingerprint(text), **given))


def _server(store: Store, given: r.Columns) -> r.ServerRow:
    """With the addresses ``ips``, or with one of each version."""
    ips = given.pop("ips", None)
    synthetic = (given.get("id") or 0) in SYNTHETIC_SERVER_IDS
    given = {"name": "imported", "tariff_id": 1, "os": "debian-12", "synthetic": synthetic, **given}
    find(store.tariffs, given["tariff_id"], "tariff")
    month = {"cycle": "monthly", "months": 1, "next_due_at": periods.months_after(store.now, 1)}
    given = {"hostname": given["name"], "power_since": store.now, **month, **given}
    given.setdefault("expired", given["next_due_at"] <= store.now)
    if given.get("status") in ("stopped", "suspended"):
        given.setdefault("power", "stopped")
    id = given.pop("id", 0) or server_lifecycle.new_server_id(store, synthetic=given["synthetic"])
    server = store.add(r.ServerRow(id=id, **given))
    if ips is None:
        server_lifecycle.add_address(store, server, primary=True)
        server_lifecycle.add_address(store, server, version=6)
    for columns in ips or ():
        _address(store, server, columns.given())
    if server.next_due_at > store.now:
        server_lifecycle.schedule_due_date(store, server)
    return server


def _address(store: Store, server: r.ServerRow, given: r.Columns) -> r.AddressRow:
    _must_be_free(store, r.AddressRow.kind, given)
    version = given.pop("version", 4)
    if "address" in given:
        version = ipaddress.ip_address(given["address"]).version
    if given.get("bought"):
        given.setdefault("price_monthly", store.tariffs[server.tariff_id].extra_ip_price)
    return server_lifecycle.add_address(store, server, version, **given)


def _domain(store: Store, given: r.Columns) -> r.Row:
    name = registrar.look_up(store, given["name"])
    if name.zone is None:
        raise ControlError(f"name: {given['name']!r} is in no zone of the catalog. Next: add the zone")
    usual: r.Columns = {"status": "active", "years": 1, "auto_renew": True, "privacy": False}
    usual |= {"nameservers": list(price_list.NAMESERVERS)}
    row = r.DomainRow(**{**usual, **given, "name": name.text, "tld": name.zone.tld})
    if row.status not in r.PENDING:
        row.registered_at = row.registered_at or store.now
        row.expires_at = row.expires_at or periods.months_after(store.now, 12 * row.years)
    store.add(row)
    if row.status == "active" and (row.expires_at or 0.0) > store.now:
        registrar.schedule_expiry(store, row)
    return row


def _subscription(store: Store, given: r.Columns) -> r.Row:
    usual: r.Columns = {"events": ["*"], "description": "", "secret": store.webhook_secret()}
    return store.add(r.SubscriptionRow(**{**usual, **given}))


# --- the kinds ---------------------------------------------------------------------------------------------

Make = Callable[[Store, r.Columns], r.Row]


_CHECKED: dict[object, object] = {float: Moment, float | None: Timestamp, Decimal: Balance}
"""The types of columns that are checked otherwise than their own type says."""


def _body(row: type[r.Row], required: str = "", apart: str = "", **kinds: object) -> type[Body]:
    """A body with the columns of ``row`` but for those ``apart``. ``kinds``: types of fields that their
    columns do not say.
    """
    known: dict[str, object] = {"id": Annotated[int, Field(ge=1)]}
    for column in fields(row):
        if column.name not in ("id", "seq", *apart.split()):
            known[column.name] = _CHECKED.get(column.type, column.type)
    given: dict[str, Any] = {name: (kind, LEFT_OUT) for name, kind in {**known, **kinds}.items()}
    given |= {name: (given[name][0], ...) for name in required.split()}
    return create_model(f"New{row.__name__}", __base__=Body, **given)


@dataclass(frozen=True)
class Makeable:
    """Objects that can be made: the ``section`` of an account file, and the ``body`` of each of its entries.
    ``event``: what a call sends; a file sends none.
    """

    section: str
    body: type[Body]
    make: Make
    event: str | None = None
    path: str = ""

    def add(self, store: Store, body: Body) -> Any:
        """Make the object. Raises ``ControlError`` if it cannot be, as when its id is taken."""
        given = body.given()
        if "account_id" in type(body).model_fields:
            given.setdefault("account_id", next(iter(store.accounts)))
            find(store.accounts, given["account_id"], "account")
        _must_be_free(store, self.section, given)
        return self.make(store, given)

    def route(self) -> Route:
        def make(core: Core, body: Body) -> object:
            row = self.add(core.store, body)
            if self.event is not None and row.status == "active":
                events.of(core.store, self.event, row)
            return {"id": row.id, **serializers.view_of(row, core.store)}

        return Route("POST", self.path or f"/{self.section}", make, self.body)


AddressBody = _body(r.AddressRow, apart="server_id invoice_id", address=Address, version=Literal[4, 6])
ServerBody = _body(
    r.ServerRow,
    apart="owner_key_id busy addresses_coming power_since suspended_from ssh_key_ids",
    status=ServerStatus,
    power=Power,
    cycle=Literal["monthly", "hourly"],
    months=Literal[MONTHS],
    ips=list[AddressBody],  # type: ignore[valid-type]  # made of columns
)
KINDS = (
    Makeable("locations", _body(r.LocationRow, "code name country city"), _plain(r.LocationRow)),
    Makeable("tariffs", _body(r.TariffRow, "name price_monthly"), _tariff),
    Makeable("images", _body(r.ImageRow, "slug name"), _plain(r.ImageRow)),
    Makeable("zones", _body(r.ZoneRow, "tld price_register price_renew", tld=Tld), _plain(r.ZoneRow)),
    Makeable(
        "ssh_keys",
        _body(r.SshKeyRow, "name public_key", "type fingerprint", public_key=PublicKey),
        _ssh_key,
        path="/ssh-keys",
    ),
    Makeable("servers", ServerBody, _server, "server.created"),
    Makeable("domains", _body(r.DomainRow, "name", "tld", status=DomainStatus), _domain, "domain.registered"),
    Makeable(
        "subscriptions",
        _body(
            r.SubscriptionRow,
            "url",
            "secret failures_in_row disabled_at disabled_reason last_delivery_at last_status",
            url=PublicUrl,
            events=Events,
        ),
        _subscription,
        path="/webhooks",
    ),
)
INVOICES = Makeable(
    "invoices", _body(r.InvoiceRow, "type status amount"), _plain(r.InvoiceRow, description="")
)
"""Of an account file alone: a control call makes an invoice that can be paid."""


def add_address(core: Core, id: int, body: Body) -> object:
    """An address that was not bought through the API."""
    address = _address(core.store, find(core.store.servers, id, "server"), body.given())
    return serializers.view_of(address, core.store)


ROUTES = (*(kind.route() for kind in KINDS), Route("POST", "/servers/{id}/ips", add_address, AddressBody))
