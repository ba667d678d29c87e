# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check mode: the changes that a task would make to the account, for the later tasks of the run
(:mod:`run_memory`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from .json_types import Json, Values
from .planned_account import NO_ADDRESS
from .run_memory import RunMemory

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.exactly_once import address_list, catalog_reads
    from pulumi_hosting.exactly_once.catalog_reads import service_now, zone_of
    from pulumi_hosting.exactly_once.ownership_tag import carried_on, with_tag
    from pulumi_hosting.exactly_once.server_search import tag_identity
    from pulumi_hosting.planning.apply import Outcome
    from pulumi_hosting.resources.base import AnyResource
    from pulumi_hosting.resources.powers import Refunded, Registered, natural_key, sandbox_of
    from pulumi_hosting.session.request import Request


if TYPE_CHECKING:
    from pulumi_hosting.actions import ActionOutcome

_STATUS = {"running": "active", "stopped": "stopped"}


def of_outcome(
    memory: RunMemory, request: Request, resource: AnyResource, inputs: Any, outcome: Outcome
) -> None:
    """Remember what bringing an object to its state would change."""
    if outcome.action == "unchanged" or (request.mode == "test" and sandbox_of(resource) != "listed"):
        return  # the service does not show afterwards what a test key makes
    if outcome.cost is not None:
        memory.predict(["charge", str(outcome.cost.amount)])
    before, after, given = outcome.before or {}, outcome.after or {}, inputs.given()
    # with what its names stand for, such as the id of a tariff
    given |= {field: after[field] for field in resource.Inputs.named_by() if after.get(field) is not None}
    if outcome.action == "deleted":
        _deleted(memory, request, resource, before)
        return
    if resource.kind == "ptr":
        _ptr(memory, request, resource, before, given)
        return
    if outcome.action == "replaced":
        memory.predict(["delete", resource.kind, str(before["id"])])
        inputs_before = {name: before.get(name) for name in resource.Inputs.model_fields}
        given = {name: value for name, value in inputs_before.items() if value is not None} | given
    if outcome.action == "replaced" or (outcome.action == "created" and not before):
        name = str(given.get(natural_key(resource)[0]) or given.get("name"))
        if resource.parent is not None:
            name = f"{name}/{len(memory.planned_addresses(name)[0])}"
        make = _ITEMS.get(resource.kind, partial(_declared, resource))
        item = make(request, given)
        memory.predict_new(resource.kind, name, item)
    elif outcome.action in ("created", "updated"):
        names = outcome.diff.fields if outcome.action == "updated" else frozenset(given)
        fields = _fields(resource, {name: given[name] for name in names if name in given})
        if resource.kind == "server" and given.keys() & names & resource.Inputs.settings():
            there = before.get("ownership_tag") if outcome.action == "updated" else None
            fields = {**fields, "notes": _tagged_notes(request, before, there, fields)}
        memory.predict_change(resource.kind, before["id"], fields)


def of_action(memory: RunMemory, kind: str, result: ActionOutcome) -> None:
    """Remember what an action would change. ``kind`` is the action's."""
    if not result.changed or not isinstance(result.predicted, Mapping):
        return
    predicted = result.predicted
    if result.cost is not None:
        memory.predict(["charge", str(result.cost.amount)])
    if kind == "server_renew":
        fields = {"billing.next_due_at": result.reaches, "status": predicted["status"]}
        memory.predict_change("server", predicted["id"], {**fields, "flags.suspended": False})
    elif kind == "domain_renew":
        memory.predict_change("domain", predicted["id"], {"expires_at": result.reaches})
    elif kind in ("server_restart", "server_reinstall"):
        memory.predict_change("server", predicted["id"], {"status": "active", "os": predicted["os"]})
    elif kind == "invoice_pay":
        memory.predict_change("invoice", predicted["id"], {"status": "paid"})
    elif kind == "balance_topup":
        shown = {name: predicted[name] for name in ("amount", "currency", "gateway")}
        invoice = {**shown, "type": "topup", "status": "pending", "items": []}
        memory.predict_new("invoice", f"topup/{predicted['amount']}", invoice)
    elif kind == "api_key_revoke":
        memory.predict(["revoke"])


def _deleted(memory: RunMemory, request: Request, resource: AnyResource, before: Values) -> None:
    kind, id = resource.kind, str(before["id"])
    if isinstance(resource, Registered):  # it stays until its time is over
        memory.predict_change(kind, id, {"auto_renew": False})
    elif kind == "ptr":
        memory.predict_change("ptr", id, {"ptr": None})
    elif id.startswith("order:"):
        memory.predict(["delete", "order", id.removeprefix("order:")])
    else:
        memory.predict(["delete", kind, id])
        if refund := refund_of(request, resource, id):
            memory.predict(["charge", str(-refund)])


def refund_of(request: Request, resource: AnyResource, id: str) -> Decimal | None:
    """What deleting it credits now; None where that cannot be known."""
    gone = resource.State.partial({"id": id})
    return resource.refund(request, gone) if isinstance(resource, Refunded) else None


def _fields(resource: AnyResource, given: Values) -> Json:
    """Changed inputs in the API's spelling: those that the API shows."""
    at, traits = resource.State.paths(), {name: resource.Inputs.trait(name) for name in given}
    fields = {
        at[name]: value
        for name, value in given.items()
        if name in at and not (traits[name].trigger or traits[name].when_creating or traits[name].policy)
    }
    return {**fields, **({"status": _STATUS[given["power"]]} if given.get("power") else {})}


def _tagged_notes(request: Request, before: Values, tag: str | None, fields: Values) -> str:
    """The notes of a server after a change of ``fields``. ``tag``: the one that is carried on."""
    name = before.get("name")
    identities = tag_identity(request, name), tag_identity(request, fields.get("name", name))
    return with_tag(fields.get("notes", before.get("notes")), carried_on(tag, *identities))


def _ptr(memory: RunMemory, request: Request, resource: Any, before: Values, given: Values) -> None:
    if before.get("id") and not given.get("server_id"):
        memory.predict_change("ptr", before["id"], {"ptr": given["domain"]})
        return
    found = address_list.of_server(request, str(given["server_id"])) or []
    ip = resource._ip(found, given.get("address"))
    if ip is not None:  # the address is assigned already
        memory.predict_change("ptr", f"{given['server_id']}/{ip.id}", {"ptr": given["domain"]})


# --- new objects, as the API would show them ---


def _server(request: Request, given: Values) -> Json:
    from pulumi_hosting.actions.periods import Period

    tariff = catalog_reads.tariffs(request)[given["tariff_id"]]
    hourly = given.get("hours") is not None or given.get("billing_cycle") == "hourly"
    months, now = given.get("months") or 1, service_now(request)
    period = Period("hours", given.get("hours") or 1) if hourly else Period("months", months)
    # The price of a renewal: the first period may be longer, or cheaper by a promo code.
    quote = catalog_reads.quote(
        request, tariff.id, {"hours": 1, "billing_cycle": "hourly"} if hourly else {"months": months}
    )
    recurring = quote.total if quote else tariff.price_hourly if hourly else tariff.price_monthly * months
    extra = tariff.extra_ip_price_monthly
    return {
        "name": given["name"],
        "status": _STATUS[given.get("power") or "running"],
        "tariff": {"id": tariff.id, "name": tariff.name},
        "location": tariff.location.name if tariff.location else None,
        "os": given["os"],
        "ips": [],
        "flags": {"is_test": request.mode == "test"},
        "notes": _tagged_notes(request, {}, None, given),
        "created_at": _text(now),
        "billing": {
            "cycle": "hourly" if hourly else "monthly",
            "months": None if hourly else months,
            "price_monthly": str(tariff.price_monthly),
            "recurring_amount": str(recurring or tariff.price_monthly),
            "currency": (quote.currency if quote else None) or tariff.currency,
            "next_due_at": _text(period.after(now)),
            "auto_renew": given.get("auto_renew") is not False,
        },
        "_extra_ip_price": None if extra is None else str(extra),
        "_max_extra_ips": 1_000 if tariff.max_extra_ips is None else tariff.max_extra_ips,
    }


def _server_ip(request: Request, given: Values) -> Json:
    quote = request.client.servers.ips.quote(int(given["server_id"]))
    return {
        "server_id": int(given["server_id"]),
        "ip": f"{NO_ADDRESS}1",
        "version": 4,
        "primary": False,
        "ptr": None,
        "price_monthly": str(quote.price_monthly),
        "added_at": _text(service_now(request)),
    }


def _declared(resource: AnyResource, request: Request, given: Values) -> Json:
    """An object of which the API shows what was declared."""
    shown = {"active": True} if resource.kind == "webhook_subscription" else {}
    return {**shown, **_fields(resource, given), "created_at": _text(service_now(request))}


def _domain(request: Request, given: Values) -> Json:
    from pulumi_hosting.actions.periods import Period

    now, zone = service_now(request), zone_of(request, given["name"])
    moves = given.get("auth_code") is not None
    privacy = given["privacy"] if given.get("privacy") is not None else bool(zone and zone.privacy_supported)
    return {
        "name": given["name"],
        "tld": zone.tld if zone else None,
        "status": "transfer_pending" if moves else "active",
        "registered_at": None if moves else _text(now),
        "expires_at": None if moves else _text(Period("years", given.get("years") or 1).after(now)),
        "auto_renew": bool(given.get("auto_renew")) and not moves,
        "privacy": privacy,
        "nameservers": given.get("nameservers") or None,
        "price_renew": str(zone.price_renew) if zone else None,
        "currency": zone.currency if zone else None,
        "created_at": _text(now),
    }


_ITEMS = {"server": _server, "server_ip": _server_ip, "domain": _domain}


def _text(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")
