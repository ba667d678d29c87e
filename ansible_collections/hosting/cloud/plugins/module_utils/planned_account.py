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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

from .json_types import Json, Values
from .run_memory import RunMemory, is_planned, planned_id, set_fields

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.client.requests import HttpRequest
    from pulumi_hosting.client.transport import HttpResponse, HttpTransport
    from pulumi_hosting.resources import RESOURCES
    from pulumi_hosting.session.account_snapshot import Change, InMemory, Kept, Storage
    from pulumi_hosting.session.snapshot_text import plain, row_model


NO_ADDRESS = "0.0.0."
"""The beginning of an address that is not known yet. No host can have an address of 0.0.0.0/8 (RFC 6890)."""

OF_SERVER = {"get_server_status", "get_server_refund_quote", "list_server_ips", "get_server_ip_quote"}
WITH_BALANCE = {"get_balance", "get_quote"}
FILTERS = ("status", "type")


@cache
def _kinds() -> Mapping[str, str]:
    """Kind of object by its name in the ids of operations. What is part of a server is read with it."""
    own = {resource.api_name or kind: kind for kind, resource in RESOURCES.items() if resource.parent is None}
    return {**own, "order": "order", "invoice": "invoice"}


def _kind(operation: str, verb: str) -> str | None:
    """The kind of object that an operation lists, or of which it reads one (``get``).

    >>> _kind("list_webhooks", "list"), _kind("list_server_ips", "list"), _kind("get_server", "list")
    ('webhook_subscription', None, None)
    """
    found, _separator, name = operation.partition("_")
    return _kinds().get(name.removesuffix("s") if verb == "list" else name) if found == verb else None


def without_planned_ids(value: Any, name: str = "") -> Any:
    """A result with null for what an earlier task could not know yet: ids of objects that do not exist, and
    their addresses. ``name``: that of the field; a text of a user may look like an id."""
    if isinstance(value, Mapping):
        return {field: without_planned_ids(item, field) for field, item in value.items()}
    if isinstance(value, list):
        return [shown for item in value if (shown := without_planned_ids(item, name)) is not None]
    is_id = name == "id" or name.endswith(("_id", "_ids"))
    is_unknown = is_id and any(map(is_planned, str(value).split("/", 1)))
    return None if is_unknown or str(value).startswith(NO_ADDRESS) else value


class PlannedTransport:
    """Answers a client's reads as they would be answered after the planned changes. ``inner`` is the client's
    transport."""

    def __init__(self, inner: HttpTransport, memory: RunMemory) -> None:
        self.inner, self._memory = inner, memory
        self.shows_real = False
        """Whether answers stay as they are."""

    def send(self, request: HttpRequest, request_id: str, stop_at: float) -> HttpResponse:
        operation, ids = request.operation, _ids(request.operation.path, request.path)
        if self.shows_real or not self._memory.effects or operation.method != "GET":
            return self.inner.send(request, request_id, stop_at)
        if operation.auth and self._memory.key_is_revoked:
            return _error(401, "an earlier task of this check run would have revoked the key")
        if ids and (made := self._of_a_new_object(operation.id, ids[0])):
            return made
        answer = self.inner.send(request, request_id, stop_at)
        if answer.status != 200:
            return answer
        found = json.loads(answer.body)
        changed = self._changed(operation.id, ids, dict(request.query), found)
        return answer if changed is None else HttpResponse(200, answer.headers, json.dumps(changed).encode())

    def close(self) -> None:
        self.inner.close()

    def _of_a_new_object(self, operation: str, id: str) -> HttpResponse | None:
        """The answer about an object that does not exist yet, or no longer; None for any other."""
        if operation == "list_webhook_deliveries" and is_planned(id):
            return _answer({"data": []})
        kind = "server" if operation in OF_SERVER else _kind(operation, "get")
        if kind is None:
            return None
        added, _changed, deleted = self._memory.planned_objects(kind)
        if id in deleted or (is_planned(id) and id not in added):
            return _error(404, "an earlier task of this check run would have deleted it")
        if id not in added:
            return None
        item = added[id]
        if operation == "get_server_status":
            power = "running" if item["status"] == "active" else "stopped"
            return _answer({"server_id": int(id), "power": power})
        if operation == "get_server_refund_quote":
            return _error(404, "the server does not exist yet")
        if operation == "list_server_ips":
            primary = {"id": planned_id("primary", id), "ip": f"{NO_ADDRESS}0", "primary": True, "ptr": None}
            return _answer({"data": self._addresses(id, [primary])})
        if operation == "get_server_ip_quote":
            price, most = item["_extra_ip_price"], item["_max_extra_ips"]
            if price is None:
                return _error(404, "the tariff has no price for addresses")
            quote = {"price_monthly": price, "prorated_now": price, "max_extra_ips": most, "extra_ips": 0}
            return _answer({"server_id": int(id), **self._with_bought(id, quote)})
        return _answer(self._item(kind, _shown(item)))

    def _with_bought(self, id: str, quote: Json) -> Json:
        bought, released = self._memory.planned_addresses(id)
        return {**quote, "extra_ips": quote["extra_ips"] + len(bought) - len(released)}

    def _changed(self, operation: str, ids: list[str], query: dict[str, str], found: Json) -> Json | None:
        """A real answer as it would be; None where nothing of it would differ."""
        if (kind := _kind(operation, "list")) is not None:
            return self._list(kind, query, found)
        if (kind := _kind(operation, "get")) is not None:
            return self._item(kind, found)
        if operation == "list_server_ips":
            return {**found, "data": self._addresses(ids[0], found["data"])}
        if operation == "get_server_ip_quote":
            return self._with_bought(ids[0], found)
        if operation in WITH_BALANCE and found.get("balance") is not None:
            return {**found, "balance": str(Decimal(str(found["balance"])) - self._memory.planned_charges)}
        return None

    def _list(self, kind: str, query: dict[str, str], found: Json) -> Json:
        real = {str(_id(item)): item for item in found["data"]}
        rows = {**real, **dict(self._differing(kind, real))}
        is_last = found.get("next_cursor") is None and "ip" not in query
        wanted = {name: query[name] for name in FILTERS if name in query}
        data = [
            row
            for id, row in rows.items()
            if row is not None and (id in real or (is_last and wanted.items() <= row.items()))
        ]
        return {**found, "data": data}

    def planned_rows(self, operation: str, rows: Mapping[str, Any]) -> Iterator[tuple[str, Json | None]]:
        """The rows of a list, or of a price, that would differ, with their keys; None for one that would be
        gone. ``rows``: the real ones."""
        if (kind := _kind(operation, "list")) is not None:
            yield from self._differing(kind, rows)
        elif operation in WITH_BALANCE:
            for key, row in rows.items():
                if (changed := self._changed(operation, [], {}, plain(row))) is not None:
                    yield key, changed

    def _differing(self, kind: str, rows: Mapping[str, Any]) -> Iterator[tuple[str, Json | None]]:
        added, changed, deleted = self._memory.planned_objects(kind)
        yield from ((id, None) for id in deleted)
        if kind == "server":  # they show the addresses that would be bought
            bought = self._memory.planned_objects("server_ip")[0].values()
            changed = {**changed, **{str(ip["server_id"]): {} for ip in bought}}
        yield from ((id, self._item(kind, plain(rows[id]))) for id in changed if id in rows)
        yield from ((id, self._item(kind, _shown(item))) for id, item in added.items())

    def _item(self, kind: str, item: Json) -> Json:
        item = dict(item)
        set_fields(item, self._memory.planned_objects(kind)[1].get(str(_id(item)), {}))
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


class PlannedStorage:
    """Where the snapshot of an account is kept, seen as it would be after the planned changes: each is a
    :class:`Change`, as a write is. What is kept is the real account."""

    def __init__(self, real: Storage, memory: RunMemory, transport: PlannedTransport) -> None:
        self._real, self._memory, self._transport = real, memory, transport
        self._of_servers = InMemory()
        """Addresses and their price may be those of a server that is planned."""

    def load(self, part: str) -> Kept:
        return self._planned(part, self._place(part).load(part))

    def change(self, part: str, after: Callable[[Kept], Kept]) -> Kept:
        return self._planned(part, self._place(part).change(part, after))

    @contextmanager
    def asking(self, part: str) -> Iterator[None]:
        place = self._place(part)
        with place.asking(part):
            self._transport.shows_real = place is self._real
            try:
                yield
            finally:
                self._transport.shows_real = False

    def _place(self, part: str) -> Storage:
        return self._of_servers if part.startswith(("ips ", "ip quote ")) else self._real

    def _planned(self, part: str, kept: Kept) -> Kept:
        planned = kept
        for operation, rows in kept.rows.items() if self._place(part) is self._real else ():
            model = row_model(operation)
            for key, row in self._transport.planned_rows(operation, rows):
                shown = None if row is None else model.model_validate_json(json.dumps(row))
                action: Any = "delete" if row is None else "set"
                planned = planned.after(Change(action, part, operation, key, shown))
        return replace(planned, doubted=kept.doubted)


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


def _error(status: int, message: str) -> HttpResponse:
    code = {401: "invalid_token", 404: "not_found"}[status]
    return _answer({"error": {"code": code, "message": message, "request_id": "check-mode"}}, status)


def _answer(body: Json, status: int = 200) -> HttpResponse:
    return HttpResponse(status, {"Content-Type": "application/json"}, json.dumps(body).encode())
