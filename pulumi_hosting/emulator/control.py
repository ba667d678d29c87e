"""The control interface: what staff, billing, the cabinet, the payment gateway and the tests do behind the API's back.

:data:`CALLS` is the whole of it: method, pattern of the path after ``/_control``, function. A function takes the core, the numbers in the
path and the JSON body, and returns JSON; :class:`Wrong` becomes ``{"error": …}``.
"""

import ipaddress
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import parse_qs

from pydantic_core import to_json

from pulumi_hosting.api.models import DOMAIN_STATUSES, EVENT_TYPES, SERVER_STATUSES
from pulumi_hosting.api.operations import PRESETS, SCOPES
from pulumi_hosting.emulator import (
    dialects,
    events,
    faults,
    fulfilment,
    ledger,
    log_redaction,
    periods,
    price_list,
    pricing,
    registrar,
    serializers,
    server_lifecycle,
    webhook_delivery,
)
from pulumi_hosting.emulator.clock import LAST
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from pulumi_hosting.emulator.rows import Account, Address, Domain, Invoice, Order, Server, Subscription
from pulumi_hosting.emulator.store import VARIANTS, Store

log = logging.getLogger("pulumi_hosting.emulator")

MOST_MONEY = Decimal(10) ** 12

Ids = tuple[int, ...]
Body = dict[str, Any]


class Wrong(Exception):
    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


# --- reading the body ------------------------------------------------------------------------------------------------------------


def _only(body: Body, *names: str) -> Body:
    unknown = sorted(set(body) - set(names))
    if unknown:
        raise Wrong(f"unknown field: {', '.join(unknown)}; known: {', '.join(names)}")
    return body


def _typed(body: Body, name: str, kind: type, *, null: bool = False) -> Any:
    value = body.get(name)
    if value is None and null:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Wrong(f"{name} must be {kind.__name__}")
    return value


def _amount(value: Any, name: str, *, least: Decimal = Decimal(0)) -> Decimal:
    """A money string (or number) of at most four fraction digits, from ``least`` to 10^12."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation as error:
        raise Wrong(f"{name} must be a money string") from error
    if isinstance(value, bool) or not amount.is_finite() or not least <= amount <= MOST_MONEY:
        raise Wrong(f"{name} must be a money string from {least} to {MOST_MONEY}")
    if amount != amount.quantize(Decimal("0.0001")):
        raise Wrong(f"{name} must not have more than four fraction digits")
    return amount


def _moment(value: Any, name: str) -> float | None:
    if value is None:
        return None
    try:
        moment = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else parse_timestamp(value)
        format_timestamp(moment)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise Wrong(f"{name} must be an RFC 3339 timestamp") from error
    return moment


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Wrong(f"{name} must be a list of texts")
    return value


def _rate(body: Body, name: str) -> int | None:
    value: int | None = _typed(body, name, int, null=True)
    if value is not None and not 0 <= value <= 1_000_000:
        raise Wrong(f"{name} must be from 0 to 1000000")
    return value


def _row(table: Mapping[int, Any], id: int, what: str) -> Any:
    if not isinstance(id, int) or isinstance(id, bool):
        raise Wrong(f"the id of a {what} must be int")
    row = table.get(id)
    if row is None:
        raise Wrong(f"there is no {what} {id}", 404)
    return row


def _assign(row: Any, body: Body, kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        if name in body:
            setattr(row, name, _typed(body, name, kind))


# --- the emulator itself ---------------------------------------------------------------------------------------------------------


def ready(core: Core, ids: Ids, body: Body) -> Any:
    return {**core.ready_line, "now": format_timestamp(core.clock.now())}


def reset(core: Core, ids: Ids, body: Body) -> Any:
    core.reset()
    return {"now": format_timestamp(core.clock.now())}


def clock(core: Core, ids: Ids, body: Body) -> Any:
    seconds = _only(body, "advance").get("advance")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds <= 100 * 366 * 86400:
        raise Wrong("advance must be a number of seconds, 0 or more, and at most 100 years")
    if core.clock.now() + seconds > LAST:
        raise Wrong("the clock goes no further than the year 9000")
    core.advance(float(seconds))
    return {"now": format_timestamp(core.clock.now())}


def service(core: Core, ids: Ids, body: Body) -> Any:
    _only(body, "api_enabled", "sandbox_enabled", "dialect", "readings")
    settings = core.store.service
    variants = body.get("readings", {})
    if not isinstance(variants, dict):
        raise Wrong("readings must be an object")
    for name, value in variants.items():
        if name not in VARIANTS or not any(type(value) is type(known) and value == known for known in VARIANTS[name]):
            raise Wrong(f"{name}: {value!r} is not a reading; known: {VARIANTS.get(name, tuple(VARIANTS))}")
    if "dialect" in body and body["dialect"] not in dialects.NAMES:
        raise Wrong(f"dialect must be one of {', '.join(dialects.NAMES)}")
    _assign(settings, body, {"api_enabled": bool, "sandbox_enabled": bool, "dialect": str})
    settings.variants = {**settings.variants, **variants}
    return {
        "api_enabled": settings.api_enabled,
        "sandbox_enabled": settings.sandbox_enabled,
        "dialect": settings.dialect,
        "readings": settings.variants,
    }


def arm_fault(core: Core, ids: Ids, body: Body) -> Any:
    try:
        return {"id": faults.arm(core.store, body).id}
    except ValueError as error:
        raise Wrong(str(error)) from error


def clear_faults(core: Core, ids: Ids, body: Body) -> Any:
    cleared = list(core.store.faults.values())
    for fault in cleared:
        core.store.remove(fault)
    return {"cleared": len(cleared)}


def webhook_routes(core: Core, ids: Ids, body: Body) -> Any:
    try:
        core.store.service.routes = webhook_delivery.check_routes(body)
    except ValueError as error:
        raise Wrong(str(error)) from error
    return core.store.service.routes


# --- accounts and keys -----------------------------------------------------------------------------------------------------------


def new_key(core: Core, ids: Ids, body: Body) -> Any:
    names = (
        "mode",
        "name",
        "scopes",
        "ip_allowlist",
        "not_before",
        "expires_at",
        "rate_per_minute",
        "rate_expensive_per_minute",
        "account_id",
    )
    _only(body, *names)
    if body.get("mode") not in ("live", "test"):
        raise Wrong("mode must be live or test")
    scopes = body.get("scopes", list(SCOPES))
    granted: list[str] = []
    for scope in _texts([scopes] if isinstance(scopes, str) else scopes, "scopes"):
        if scope not in SCOPES and scope not in PRESETS:
            raise Wrong(f"{scope!r} is neither a scope nor a preset ({', '.join(PRESETS)})")
        granted += [name for name in PRESETS.get(scope, (scope,)) if name not in granted]
    networks = _texts(body.get("ip_allowlist", []), "ip_allowlist")
    try:
        for network in networks:
            ipaddress.ip_network(network, strict=False)
    except ValueError as error:
        raise Wrong("ip_allowlist must hold addresses or networks") from error
    account = _account(core, body)
    key = core.store.new_key(
        account,
        body["mode"],
        core.clock.now(),
        name=str(body.get("name", f"{body['mode']} key")),
        scopes=granted,
        ip_allowlist=list(networks),
        not_before=_moment(body.get("not_before"), "not_before"),
        expires_at=_moment(body.get("expires_at"), "expires_at"),
        rate_per_minute=_rate(body, "rate_per_minute"),
        rate_expensive_per_minute=_rate(body, "rate_expensive_per_minute"),
    )
    events.of_key(core.store, "key.created", key, core.clock.now())
    return {"id": key.id, "key": key.token}


def revoke_key(core: Core, ids: Ids, body: Body) -> Any:
    key = _row(core.store.keys, ids[0], "key")
    if key.revoked_at is None:
        key.revoked_at, key.revoked_reason = core.clock.now(), "revoked by staff"
        events.of_key(core.store, "key.revoked", key, core.clock.now())
    return {"id": key.id}


def new_account(core: Core, ids: Ids, body: Body) -> Any:
    _only(body, "balance", "currency")
    account = core.store.new_account(
        core.clock.now(),
        balance=_amount(body.get("balance", "1000.00"), "balance", least=-MOST_MONEY),
        currency=str(body.get("currency", "EUR")),
    )
    keys = {key.mode: key.token for key in core.store.keys.values() if key.account_id == account.id}
    return {"account_id": account.id, "live_key": keys["live"], "test_key": keys["test"]}


def _account(core: Core, body: Body) -> Account:
    if "account_id" in body:
        account: Account = _row(core.store.accounts, _typed(body, "account_id", int), "account")
        return account
    return next(iter(core.store.accounts.values()))


def edit_account(core: Core, ids: Ids, body: Body) -> Any:
    """A new balance is a movement like any other (an adjustment), so that the ledger always adds up."""
    names = ("email_verified", "suspended", "api_enabled_for_account")
    _only(body, "account_id", "balance", "group_discount_percent", "loyalty_discount_percent", *names)
    account, now = _account(core, body), core.clock.now()
    for name in names:
        if name in body:
            setattr(account, "api_enabled" if name == "api_enabled_for_account" else name, _typed(body, name, bool))
    for name in ("group_discount_percent", "loyalty_discount_percent"):
        if name in body:
            percent = _amount(body[name], name)
            if not 0 <= percent <= 100:
                raise Wrong(f"{name} must be between 0 and 100")
            setattr(account, name, percent)
    if "balance" in body:
        change = _amount(body["balance"], "balance", least=-MOST_MONEY) - account.balance
        if change:
            ledger.move(core.store, account, change, "adjustment", "Adjusted by staff", now, ledger.CONTROL)
    return {**serializers.account(account), "balance": str(account.balance)}


# --- servers and what belongs to them --------------------------------------------------------------------------------------------


def new_server(core: Core, ids: Ids, body: Body) -> Any:
    """A server that nobody ordered: imported (``synthetic``) or a gratis trial (``is_test``)."""
    _only(body, "account_id", "name", "synthetic", "is_test", "tariff_id", "os")
    store, now, account = core.store, core.clock.now(), _account(core, body)
    synthetic = bool(body.get("synthetic", False))
    tariff = _row(store.tariffs, body.get("tariff_id", 1), "tariff")
    plan: dict[str, Any] = {
        "account_id": account.id,
        "name": str(body.get("name", "imported")),
        "hostname": str(body.get("name", "imported")),
        "tariff_id": tariff.id,
        "os": str(body.get("os", "debian-12")),
        "cycle": "monthly",
        "months": 1,
        "next_due_at": periods.months_after(now, 1),
        "synthetic": synthetic,
        "is_test": bool(body.get("is_test", False)),
    }
    server, addresses = server_lifecycle.build(store, server_lifecycle.new_server_id(store, synthetic=synthetic), plan, now)
    server_lifecycle.put_into_service(store, server, addresses, now)
    return serializers.server(server, store)


def edit_server(core: Core, ids: Ids, body: Body) -> Any:
    """Drift made outside; the event that goes with a change of status is emitted."""
    _only(body, "status", "name", "notes", "auto_renew", "blocked", "expired", "power", "os")
    store, now = core.store, core.clock.now()
    server: Server = _row(store.servers, ids[0], "server")
    status, power = body.get("status"), body.get("power")
    if status is not None and status not in SERVER_STATUSES:
        raise Wrong(f"status must be one of {', '.join(SERVER_STATUSES)}")
    if power is not None and power not in ("running", "stopped", "unknown"):
        raise Wrong("power must be running, stopped or unknown")
    if body.get("notes", "") is None:
        body = {**body, "notes": ""}  # null clears, as in the API
    _assign(server, body, {"notes": str, "auto_renew": bool, "blocked": bool, "expired": bool, "os": str})
    if "name" in body:
        server.name = server.hostname = _typed(body, "name", str)
    if power is not None:
        server.power, server.power_since = power, now
    if status is not None and status != server.status:
        _new_status(core, server, status, now)
    return serializers.server(server, store)


def _new_status(core: Core, server: Server, status: str, now: float) -> None:
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


def drop_server(core: Core, ids: Ids, body: Body) -> Any:
    server: Server = _row(core.store.servers, ids[0], "server")
    if not server.is_gone:
        server_lifecycle.end(core.store, server, core.clock.now())
    return {"deleted": server.id}


def _address(core: Core, ids: Ids) -> Any:
    address = _row(core.store.addresses, ids[1], "address")
    if address.server_id != ids[0]:
        raise Wrong(f"server {ids[0]} has no address {ids[1]}", 404)
    return address


def drop_address(core: Core, ids: Ids, body: Body) -> Any:
    core.store.remove(_address(core, ids))
    return {"deleted": ids[1]}


def edit_address(core: Core, ids: Ids, body: Body) -> Any:
    address = _address(core, ids)
    if "ptr" in _only(body, "ptr"):
        address.ptr = _typed(body, "ptr", str, null=True)
    return serializers.address(address)


def drop_ssh_key(core: Core, ids: Ids, body: Body) -> Any:
    core.store.remove(_row(core.store.ssh_keys, ids[0], "SSH key"))
    return {"deleted": ids[0]}


def edit_ssh_key(core: Core, ids: Ids, body: Body) -> Any:
    key = _row(core.store.ssh_keys, ids[0], "SSH key")
    _assign(key, _only(body, "name"), {"name": str})
    return serializers.ssh_key(key)


# --- domains, webhooks, catalog, invoices ----------------------------------------------------------------------------------------


def edit_domain(core: Core, ids: Ids, body: Body) -> Any:
    _only(body, "status", "blocked", "auto_renew", "privacy", "nameservers")
    domain: Domain = _row(core.store.domains, ids[0], "domain")
    if "status" in body and body["status"] not in DOMAIN_STATUSES:
        raise Wrong(f"status must be one of {', '.join(DOMAIN_STATUSES)}")
    if "nameservers" in body:
        _texts(body["nameservers"], "nameservers")
    _assign(domain, body, {"blocked": bool, "auto_renew": bool, "privacy": bool, "nameservers": list})
    if "status" in body and body["status"] != domain.status:
        if body["status"] == "active" and domain.status in ("pending", "transfer_pending"):
            registrar.activate(core.store, domain, core.clock.now())
        domain.status = body["status"]
        if domain.status in ("active", "expired"):
            registrar.cancel_other_owners(core.store, domain)
    return serializers.domain(domain, core.store)


def drop_domain(core: Core, ids: Ids, body: Body) -> Any:
    core.store.remove(_row(core.store.domains, ids[0], "domain"))
    return {"deleted": ids[0]}


def drop_webhook(core: Core, ids: Ids, body: Body) -> Any:
    row = _row(core.store.subscriptions, ids[0], "subscription")
    for delivery in [delivery for delivery in core.store.deliveries.values() if delivery.subscription_id == row.id]:
        core.store.remove(delivery)
    core.store.remove(row)
    return {"deleted": ids[0]}


def edit_webhook(core: Core, ids: Ids, body: Body) -> Any:
    _only(body, "url", "events", "description", "active")
    row: Subscription = _row(core.store.subscriptions, ids[0], "subscription")
    if "events" in body and not set(_texts(body["events"], "events")) <= {*EVENT_TYPES, "*"}:
        raise Wrong("events must hold event types or *")
    if "url" in body and (not _typed(body, "url", str).startswith("https://") or webhook_delivery.url_problem(body["url"])):
        raise Wrong("url must be a public https address")
    _assign(row, body, {"url": str, "events": list, "description": str, "active": bool})
    return serializers.subscription(row)


def edit_tariff(core: Core, ids: Ids, body: Body) -> Any:
    _only(body, "in_stock", "price_monthly", "disabled")
    tariff = _row(core.store.tariffs, ids[0], "tariff")
    _assign(tariff, body, {"in_stock": bool, "disabled": bool})
    if "price_monthly" in body:
        tariff.price_monthly = _amount(body["price_monthly"], "price_monthly")
    return serializers.tariff(tariff, core.store, _account(core, {}))


def confirm_invoice(core: Core, ids: Ids, body: Body) -> Any:
    invoice: Invoice = _row(core.store.invoices, ids[0], "invoice")
    if invoice.status != "not_paid":
        raise Wrong(f"invoice {invoice.id} is {invoice.status}", 409)
    fulfilment.confirm(core.scheduler, invoice, core.clock.now())
    return serializers.invoice(invoice, core.store)


def new_invoice(core: Core, ids: Ids, body: Body) -> Any:
    """An unpaid invoice made in the cabinet: ``other`` with an amount, or ``vds_purchase``, which orders a server once it is paid."""
    _only(body, "account_id", "type", "amount", "description", "tariff_id", "os", "name")
    store, now, account = core.store, core.clock.now(), _account(core, body)
    due = now + 3 * 86400
    if body.get("type", "other") == "other":
        amount = _amount(body.get("amount", "1.00"), "amount")
        return serializers.invoice(
            ledger.new_invoice(store, account, "other", amount, str(body.get("description", "Other")), now, gateway=None, due_at=due), store
        )
    if body["type"] != "vds_purchase":
        raise Wrong("type must be other or vds_purchase")
    tariff = _row(store.tariffs, body.get("tariff_id", 1), "tariff")
    name, os = str(body.get("name", "cabinet")), str(body.get("os", "debian-12"))
    if os not in price_list.IMAGES:
        raise Wrong("os must be an image of the catalog")
    price = pricing.price(store, account, tariff, months=1)
    invoice = ledger.new_invoice(store, account, "vds_purchase", price.total, f"Server {name}", now, gateway=None, due_at=due)
    plan = {
        "account_id": account.id,
        "name": name,
        "hostname": name,
        "tariff_id": tariff.id,
        "os": os,
        "cycle": "monthly",
        "months": 1,
        "next_due_at": periods.months_after(now, 1),
    }
    store.add(
        store.make(
            Order,
            id=invoice.id,
            account_id=account.id,
            status="invoice_created",
            outcome="active",
            tariff_id=tariff.id,
            server_name=name,
            amount=price.total,
            created_at=now,
            updated_at=now,
            plan=plan,
        )
    )
    return serializers.invoice(invoice, store)


# --- what happened ---------------------------------------------------------------------------------------------------------------


def requests(core: Core, ids: Ids, body: Body) -> Any:
    since = body.get("since", "0")
    if not str(since).isdigit():
        raise Wrong("since must be a number")
    return [log_redaction.request_log(row) for row in core.store.requests if row.id > int(since)]


def movements(core: Core, ids: Ids, body: Body) -> Any:
    return [serializers.ledger_entry(row) for row in core.store.movements.values()]


def objects(core: Core, ids: Ids, body: Body) -> Any:
    """All that exists by kind, secrets masked; a server's row carries what the API shows of it besides. Deleted servers do not exist."""
    store = core.store
    found: dict[str, Any] = {}
    for kind, table in store.tables.items():
        if kind not in ("stored", "tasks", "faults", "movements"):
            found[kind] = [
                {"kind": kind, **log_redaction.masked(asdict(row)), **_shown_of(row, store)}
                for row in table.values()
                if not (isinstance(row, Server) and row.is_gone)
            ]
    return found


def _shown_of(row: Any, store: Store) -> Body:
    """What an account check wants to know besides the columns: what the object costs, in which currency, of which account."""
    if isinstance(row, Server):
        view = serializers.server(row, store)
        cost = {"price_monthly": view["billing"]["price_monthly"], "currency": view["billing"]["currency"]}
        return {**view, **cost, "is_sandbox": row.is_sandbox}
    if isinstance(row, Address):
        server = store.servers[row.server_id]
        return {"account_id": server.account_id, "currency": store.accounts[server.account_id].currency}
    if isinstance(row, Domain):
        view = serializers.domain(row, store)
        return {"price_renew": view["price_renew"], "currency": view["currency"]}
    return {}


CALLS: tuple[tuple[str, str, Callable[[Core, Ids, Body], Any]], ...] = (
    ("GET", r"/?", ready),
    ("POST", r"/reset", reset),
    ("POST", r"/clock", clock),
    ("POST", r"/keys", new_key),
    ("DELETE", r"/keys/([0-9]+)", revoke_key),
    ("POST", r"/accounts", new_account),
    ("PATCH", r"/account", edit_account),
    ("PATCH", r"/service", service),
    ("POST", r"/servers", new_server),
    ("PATCH", r"/servers/([0-9]+)", edit_server),
    ("DELETE", r"/servers/([0-9]+)", drop_server),
    ("DELETE", r"/servers/([0-9]+)/ips/([0-9]+)", drop_address),
    ("PATCH", r"/servers/([0-9]+)/ips/([0-9]+)", edit_address),
    ("PATCH", r"/domains/([0-9]+)", edit_domain),
    ("DELETE", r"/domains/([0-9]+)", drop_domain),
    ("PATCH", r"/ssh-keys/([0-9]+)", edit_ssh_key),
    ("DELETE", r"/ssh-keys/([0-9]+)", drop_ssh_key),
    ("PATCH", r"/webhooks/([0-9]+)", edit_webhook),
    ("DELETE", r"/webhooks/([0-9]+)", drop_webhook),
    ("PATCH", r"/tariffs/([0-9]+)", edit_tariff),
    ("PUT", r"/webhook-routes", webhook_routes),
    ("POST", r"/invoices", new_invoice),
    ("POST", r"/invoices/([0-9]+)/confirm", confirm_invoice),
    ("POST", r"/faults", arm_fault),
    ("DELETE", r"/faults", clear_faults),
    ("GET", r"/requests", requests),
    ("GET", r"/ledger", movements),
    ("GET", r"/objects", objects),
)

_CALLS = tuple((method, re.compile(pattern), function) for method, pattern, function in CALLS)


def handle(core: Core, method: str, path: str, query: str = "", raw: bytes = b"") -> tuple[int, Any]:
    """One control call: status and JSON. ``path`` is what follows ``/_control``."""
    try:
        body = {name: values[-1] for name, values in parse_qs(query).items()} if method == "GET" else _read(raw)
        function, ids = _find(method, path)
        if function is clock:
            # It waits for deliveries, so it takes the lock in small pieces itself.
            return 200, function(core, ids, body)
        with core.lock:
            core.run_due()
            now = core.clock.now()
            with events.low_balance_events(core.store, now, now):
                result = function(core, ids, body)
            core.save()
        core.wake()
        return 200, result
    except Wrong as error:
        return error.status, {"error": str(error)}
    except Exception as error:  # a bug becomes an answer, and the emulator goes on
        log.exception("control call %s %s failed", method, path)
        return 500, {"error": f"the emulator failed: {type(error).__name__}; its log says more"}


def _read(raw: bytes) -> Body:
    try:
        body = json.loads(raw) if raw.strip() else {}
        # What cannot be written again (half a surrogate pair, a hundred brackets) would break every answer it is part of.
        to_json(body)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise Wrong("the body must be a JSON object")
    return body


def _find(method: str, path: str) -> tuple[Callable[[Core, Ids, Body], Any], Ids]:
    known = False
    for own, pattern, function in _CALLS:
        found = pattern.fullmatch(path)
        if found:
            known = True
            if own == method:
                return function, tuple(int(id) for id in found.groups())
    raise Wrong(f"{method} is not supported here" if known else f"there is no control call {path}", 405 if known else 404)
