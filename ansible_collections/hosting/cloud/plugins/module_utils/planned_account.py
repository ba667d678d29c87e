# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check mode: the account as the earlier tasks of the run would leave it.

Each task of a check run adds the changes that it would make to the :class:`RunMemory`. Later tasks read the
account through :class:`PlannedTransport`, which stands between the client and the network, sends only reads,
and changes their answers. So a later task finds, prices and refuses what it would find, price and refuse for
real, with the same code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import Any

from .json_types import Json, Values
from .run_memory import RunMemory, is_planned, planned_id, set_fields

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.client.requests import HttpRequest
    from pulumi_hosting.client.results import Damaged
    from pulumi_hosting.client.transport import HttpResponse, HttpTransport
    from pulumi_hosting.resources import RESOURCES
    from pulumi_hosting.resources.powers import natural_key
    from pulumi_hosting.session.account_snapshot import AccountSnapshot, Change, Now, ReadPage
    from pulumi_hosting.session.snapshot_text import plain, row_model


NO_ADDRESS = "0.0.0."
"""The beginning of an address that is not known yet. No host can have an address of 0.0.0.0/8 (RFC 6890)."""

OF_SERVER = {"get_server_status", "get_server_refund_quote", "list_server_ips", "get_server_ip_quote"}
FILTERS = ("status", "type")


@cache
def _kinds() -> Mapping[str, str]:
    """Kind of object by its name in the ids of operations. What is part of a server is read with it."""
    own = {resource.api_name or kind: kind for kind, resource in RESOURCES.items() if resource.parent is None}
    return {**own, "order": "order", "invoice": "invoice"}


def _kind_of_list(operation: str) -> str | None:
    """The kind of object that an operation lists.

    >>> _kind_of_list("list_webhooks"), _kind_of_list("list_server_ips"), _kind_of_list("get_server")
    ('webhook_subscription', None, None)
    """
    return (
        _kinds().get(operation.removeprefix("list_").removesuffix("s")) if operation[:5] == "list_" else None
    )


def _kind_of_item(operation: str) -> str | None:
    """The kind of object of which an operation reads one."""
    verb, _separator, name = operation.partition("_")
    return _kinds().get(name) if verb == "get" else None


def _natural_key(kind: str) -> str | None:
    """The field by which the service tells objects of the kind apart; None where it takes several alike."""
    return next(iter(natural_key(RESOURCES[kind])), None) if kind in RESOURCES else None


def without_planned_ids(value: Any) -> Any:
    """A result with null for what an earlier task could not know yet: ids of objects that do not exist, and
    their addresses."""
    if isinstance(value, Mapping):
        return {name: without_planned_ids(item) for name, item in value.items()}
    if isinstance(value, list):
        return [item for item in map(without_planned_ids, value) if item is not None] if value else value
    if isinstance(value, str) and (
        value.startswith(NO_ADDRESS) or any(is_planned(part) for part in value.split("/", 1))
    ):
        return None
    return None if isinstance(value, int) and not isinstance(value, bool) and is_planned(value) else value


class PlannedTransport:
    """Answers a client's reads as they would be answered after the planned changes. ``inner`` is the client's
    transport."""

    def __init__(self, inner: HttpTransport, memory: RunMemory) -> None:
        self.inner, self._memory = inner, memory
        self.shows_real = False
        """Whether answers stay as they are."""

    def send(self, request: HttpRequest, request_id: str, stop_at: float) -> HttpResponse:
        operation, path = request.operation, request.path
        if self.shows_real or not self._memory.effects or operation.method != "GET":
            return self.inner.send(request, request_id, stop_at)
        if operation.auth and self._memory.key_is_revoked:
            return _answer(
                401, _error("invalid_token", "an earlier task of this check run would have revoked the key")
            )
        ids = _ids(operation.path, path)
        if ids and (made := self._of_a_new_object(operation.id, ids)):
            return made
        answer = self.inner.send(request, request_id, stop_at)
        if answer.status != 200:
            return answer
        found = json.loads(answer.body)
        changed = self._changed(operation.id, ids, dict(request.query), found)
        return answer if changed is None else HttpResponse(200, answer.headers, json.dumps(changed).encode())

    def close(self) -> None:
        self.inner.close()

    def _of_a_new_object(self, operation: str, ids: list[str]) -> HttpResponse | None:
        """The answer about an object that does not exist yet, or no longer; None for any other."""
        kind = "server" if operation in OF_SERVER else _kind_of_item(operation)
        if kind is None:
            return (
                _answer(200, {"data": []})
                if operation == "list_webhook_deliveries" and is_planned(ids[0])
                else None
            )
        added, _changed, deleted = self._memory.planned_objects(kind)
        if ids[0] in deleted or (is_planned(ids[0]) and ids[0] not in added):
            return _answer(
                404, _error("not_found", "an earlier task of this check run would have deleted it")
            )
        if ids[0] not in added:
            return None
        item = added[ids[0]]
        if operation == "get_server_status":
            power = "running" if item["status"] == "active" else "stopped"
            return _answer(200, {"server_id": int(ids[0]), "power": power})
        if operation == "get_server_refund_quote":
            return _answer(404, _error("not_found", "the server does not exist yet"))
        if operation == "list_server_ips":
            primary = {
                "id": planned_id("primary", ids[0]),
                "ip": f"{NO_ADDRESS}0",
                "primary": True,
                "ptr": None,
            }
            return _answer(200, {"data": self._addresses(ids[0], [primary])})
        if operation == "get_server_ip_quote":
            bought, _released = self._memory.planned_addresses(ids[0])
            price = item["_extra_ip_price"]
            if price is None:
                return _answer(404, _error("not_found", "the tariff has no price for addresses"))
            quote = {
                "price_monthly": price,
                "prorated_now": price,
                "extra_ips": len(bought),
                "max_extra_ips": item["_max_extra_ips"],
            }
            return _answer(200, {"server_id": int(ids[0]), **quote})
        return _answer(200, self._with_addresses(_shown(item)) if kind == "server" else _shown(item))

    def changed_list(self, operation: str, rows: list[Json]) -> list[Json]:
        """A whole list, or a price, as it would be."""
        if operation in ("get_quote", "get_balance"):
            return [self._changed(operation, [], {}, row) or row for row in rows]
        found = self._changed(operation, [], {}, {"data": rows, "next_cursor": None})
        return rows if found is None else list(found["data"])

    def _changed(self, operation: str, ids: list[str], query: dict[str, str], found: Json) -> Json | None:
        """A real answer as it would be; None where nothing of it would differ."""
        if (kind := _kind_of_list(operation)) is not None:
            return self._list(kind, query, found)
        if (kind := _kind_of_item(operation)) is not None:
            return self._item(kind, found)
        if operation == "list_server_ips":
            return {**found, "data": self._addresses(ids[0], found["data"])}
        if operation == "get_server_ip_quote":
            bought, released = self._memory.planned_addresses(ids[0])
            return {**found, "extra_ips": found["extra_ips"] + len(bought) - len(released)}
        if operation in ("get_balance", "get_quote") and found.get("balance") is not None:
            return {**found, "balance": str(Decimal(str(found["balance"])) - self._memory.planned_charges)}
        return None

    def _list(self, kind: str, query: dict[str, str], found: Json) -> Json:
        added, _changed, deleted = self._memory.planned_objects(kind)
        data = [self._item(kind, item) for item in found["data"] if str(_id(item)) not in deleted]
        if found.get("next_cursor") is None and "ip" not in query:
            key = _natural_key(kind)
            known = {item.get(key) for item in data} if key else set()
            wanted = {name: query[name] for name in FILTERS if name in query}
            data += [
                self._with_addresses(_shown(item)) if kind == "server" else _shown(item)
                for item in added.values()
                if (key is None or item.get(key) not in known)
                and all(item.get(name) == value for name, value in wanted.items())
            ]
        return {**found, "data": data}

    def _item(self, kind: str, item: Json) -> Json:
        fields = self._memory.planned_objects(kind)[1].get(str(_id(item)))
        if fields:
            item = dict(item)
            set_fields(item, fields)
        return self._with_addresses(item) if kind == "server" else item

    def _with_addresses(self, server: Json) -> Json:
        """A server that shows the planned addresses, and whose renewal costs what they add to it."""
        bought, _released = self._memory.planned_addresses(str(_id(server)))
        if not bought:
            return server
        if server.get("ips"):
            server = {**server, "ips": [*server["ips"], *(item["ip"] for item in bought)]}
        billing = server.get("billing")
        if not isinstance(billing, Mapping) or billing.get("cycle") != "monthly":
            return server
        monthly = sum((Decimal(str(item.get("price_monthly") or 0)) for item in bought), Decimal(0))
        amount = Decimal(str(billing["recurring_amount"])) + monthly * (billing.get("months") or 1)
        return {**server, "billing": {**billing, "recurring_amount": str(amount)}}

    def _addresses(self, server_id: str, listed: list[Json]) -> list[Json]:
        bought, released = self._memory.planned_addresses(server_id)
        changed = self._memory.planned_objects("ptr")[1]
        whole = [dict(item) for item in listed if str(item["id"]) not in released] + [
            _shown(item) for item in bought
        ]
        for item in whole:
            set_fields(item, changed.get(f"{server_id}/{item['id']}", {}))
        return whole


class PlannedSnapshot:
    """The snapshot of an account as it would be after the planned changes. What is kept is the real one."""

    def __init__(self, real: AccountSnapshot, memory: RunMemory, transport: PlannedTransport) -> None:
        self._real, self._memory, self._transport = real, memory, transport

    def get(self, part: str, ask: Any, now: Now, max_age: float, ask_again: Any) -> dict[str, list[Any]]:
        # A revoked key is refused. Addresses and their price may be those of a server that is planned.
        of_a_server = part.startswith(("ips ", "ip quote "))
        if self._memory.key_is_revoked or (self._memory.effects and of_a_server):
            return dict(ask())
        found = self._real.get(part, self._for_real(ask), now, max_age, self._for_real(ask_again))
        return {operation: self._planned(operation, rows) for operation, rows in found.items()}

    def row(self, part: str, operation: str, key: str, now: float, max_age: float) -> Any:
        return self._one(operation, key, lambda: self._real.row(part, operation, key, now, max_age))

    def find(self, part: str, operation: str, key: str, page: ReadPage, *rest: Any) -> Any:
        real = self._for_real(page)
        return self._one(operation, key, lambda: self._real.find(part, operation, key, real, *rest))

    def listed(self, part: str, operation: str, page: ReadPage, now: Now, max_age: float) -> list[Any]:
        found = self._real.listed(part, operation, self._for_real(page), now, max_age)
        return self._planned(operation, found)

    def _one(self, operation: str, key: str, find: Any) -> Any:
        """The object as it would be; None where it must be read singly: whoever has a revoked key is refused
        then."""
        found = None if self._memory.key_is_revoked or is_planned(key) else find()
        rows = [] if found is None else self._planned(operation, [found])
        return next((row for row in rows if str(row.id) == key), None)

    def apply(self, change: Change) -> None:
        self._real.apply(change)

    def forget(self, part: str) -> None:
        self._real.forget(part)

    def _for_real(self, ask: Any) -> Any:
        def asked(*given: Any, **named: Any) -> Any:
            self._transport.shows_real = True
            try:
                return ask(*given, **named)
            finally:
                self._transport.shows_real = False

        return asked

    def _planned(self, operation: str, rows: list[Any]) -> list[Any]:
        if not self._memory.effects:
            return rows
        damaged = [row for row in rows if isinstance(row, Damaged)]
        before = [plain(row) for row in rows if not isinstance(row, Damaged)]
        after = self._transport.changed_list(operation, before)
        model = row_model(operation)
        return [model.model_validate_json(json.dumps(row)) for row in after] + damaged


def _id(item: Values) -> Any:
    return item.get("id", item.get("invoice_id"))


def _shown(item: Values) -> Json:
    """An object as the service would show it."""
    return {name: value for name, value in item.items() if not name.startswith("_")}


def _ids(template: str, path: str) -> list[str]:
    """The ids in a path.

    >>> _ids("/servers/{server_id}/ips", "/servers/7/ips")
    ['7']
    """
    return [
        part
        for named, part in zip(template.split("/"), path.split("/"), strict=False)
        if named.startswith("{")
    ]


def _error(code: str, message: str) -> Json:
    return {"error": {"code": code, "message": message, "request_id": "check-mode"}}


def _answer(status: int, body: Json) -> HttpResponse:
    return HttpResponse(status, {"Content-Type": "application/json"}, json.dumps(body).encode())
