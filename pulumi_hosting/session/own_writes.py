"""What a write of ours means for the snapshot of the account, told by its answer.

An answer that shows the object as it is now replaces it in the snapshot; after any other answer, or none, the
object is read again when it is wanted, or the whole list where not even its id is known.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from pulumi_hosting.api import models as m
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.client.transport import HttpResponse
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS, Change

SERVERS, ORDERS = "list_servers", "list_orders"

SHOWING = ("get_server", "get_order")
"""The reads that show what a write in doubt has done."""
_ADDRESSES = {"add_server_ip", "delete_server_ip", "set_server_ip_ptr"}
_DOMAINS = {"update_domain", "set_domain_nameservers"}


def changes_of(request: HttpRequest, response: HttpResponse | None) -> Iterator[Change]:
    """``response``: None where there was none, so that the write may have been carried out."""
    operation = request.operation
    if not operation.is_write:
        return
    if operation.is_keyed or operation.id == "delete_server_ip":  # it may charge, or credit
        yield Change("forget", "balance")
    found = None if response is None or response.status >= 500 else response
    if operation.id == "create_server":
        yield from _ordered(request, found)
    elif operation.path.startswith("/servers/{server_id}"):
        yield from _of_server(operation.id, _id(request.path), found)
    elif operation.id in ("create_ssh_key", "delete_ssh_key"):
        yield from _of_key(operation.id, _id(request.path), found)
    elif operation.path.startswith("/domains"):
        yield from _of_domain(operation.id, _id(request.path), found)
    elif operation.path.startswith("/webhooks"):
        yield from _of_webhook(operation.id, _id(request.path), found)
    elif operation.id == "pay_invoice":  # what was suspended may run again
        yield Change("forget", ORDERS_AND_SERVERS)
    elif operation.id == "revoke_api_key":  # the key sees nothing any more
        for part in (ORDERS_AND_SERVERS, "ssh_keys", "domains", "webhooks"):
            yield Change("forget", part)


def _ordered(request: HttpRequest, found: HttpResponse | None) -> Iterator[Change]:
    if found is not None and found.status >= 300:
        return  # refused: nothing was made
    if found is not None and found.status == 201:
        body = _body(found)
        server = _row(m.Server, body.get("server"))
        if server is not None:
            # A replay shows no password, and its server may be gone by now.
            is_first = bool(body.get("root_password"))
            yield Change("set" if is_first else "doubt", ORDERS_AND_SERVERS, SERVERS, str(server.id), server)
            return
    if found is not None and found.status == 202:
        # The list shows the name, by which others wait for it; the answer need not.
        sent = json.loads(request.body or b"{}")
        named = {"server_name": sent.get("name"), "tariff_id": sent.get("tariff_id")}
        order = _row(m.Order, {**named, **{k: v for k, v in _body(found).items() if v is not None}})
        if order is not None:
            yield Change("set", ORDERS_AND_SERVERS, ORDERS, str(order.invoice_id), order)
            return
    yield Change("forget", ORDERS_AND_SERVERS)


def _of_server(operation: str, id: str, found: HttpResponse | None) -> Iterator[Change]:
    # An entry that was written is known to whoever wrote it.
    if operation in _ADDRESSES and (operation != "set_server_ip_ptr" or found is None):
        yield Change("forget", f"ips {id}")
    if found is not None and found.status >= 300:
        # Refused. A renewal is also sent for a server that cannot exist, to probe a key.
        if found.status == 404 and operation != "renew_server" and operation not in _ADDRESSES:
            yield Change("delete", ORDERS_AND_SERVERS, SERVERS, id)
    elif found is not None and operation == "delete_server":
        yield Change("delete", ORDERS_AND_SERVERS, SERVERS, id)
    elif found is not None and operation == "update_server":
        server = _row(m.Server, _body(found))
        known = server is not None and str(server.id) == id
        yield Change("set" if known else "doubt", ORDERS_AND_SERVERS, SERVERS, id, server if known else None)
    elif operation != "set_server_ip_ptr":
        yield Change("doubt", ORDERS_AND_SERVERS, SERVERS, id)


def _of_key(operation: str, id: str, found: HttpResponse | None) -> Iterator[Change]:
    if found is not None and 300 <= found.status < 500 and found.status != 404:
        return
    if found is not None and operation == "delete_ssh_key":
        yield Change("delete", "ssh_keys", "list_ssh_keys", id)
        return
    key = None if found is None else _row(m.SshKey, _body(found))
    if key is None:
        yield Change("forget", "ssh_keys")
    else:
        yield Change("set", "ssh_keys", "list_ssh_keys", str(key.id), key)


def _of_webhook(operation: str, id: str, found: HttpResponse | None) -> Iterator[Change]:
    if operation not in ("create_webhook", "update_webhook", "delete_webhook"):
        return  # a secret, a test or a delivery is not part of the list
    if found is not None and found.status >= 300 and (found.status != 404 or operation == "create_webhook"):
        return  # refused
    if found is not None and (operation == "delete_webhook" or found.status == 404):
        yield Change("delete", "webhooks", "list_webhooks", id)
        return
    made = None if found is None else _row(m.Subscription, {**_body(found), "secret": None})
    if made is None:
        yield Change("forget", "webhooks")
    else:
        yield Change("set", "webhooks", "list_webhooks", str(made.id), made)


def _of_domain(operation: str, id: str, found: HttpResponse | None) -> Iterator[Change]:
    if found is not None and found.status >= 300:
        return  # refused
    if operation in ("register_domain", "transfer_domain"):  # the answer may be a replay of long ago
        yield Change("forget", "domains")
        return
    domain = _row(m.Domain, _body(found)) if found is not None and operation in _DOMAINS else None
    known = domain is not None and str(domain.id) == id
    yield Change("set" if known else "doubt", "domains", "list_domains", id, domain if known else None)


def shown_again(request: HttpRequest, response: HttpResponse | None) -> Iterator[Change]:
    """What a read of one object shows: a server, or that an order has ended."""
    if response is None:
        return
    id = _id(request.path)
    if request.operation.id == "get_server" and response.status == 404:
        yield Change("delete", ORDERS_AND_SERVERS, SERVERS, id)
    elif request.operation.id == "get_server" and response.status == 200:
        server = _row(m.Server, _body(response))
        if server is not None and str(server.id) == id:
            yield Change("set", ORDERS_AND_SERVERS, SERVERS, id, server)
    elif request.operation.id == "get_order" and response.status == 200:
        order = _row(m.Order, _body(response))
        if order is not None and not order.is_pending:
            yield Change("delete", ORDERS_AND_SERVERS, ORDERS, id)
            if order.server_id is not None:
                yield Change("doubt", ORDERS_AND_SERVERS, SERVERS, str(order.server_id))


def _id(path: str) -> str:
    """The first id in a path.

    >>> _id("/servers/7/ips")
    '7'
    """
    return [*path.split("/"), "", "", ""][2]


def _body(response: HttpResponse) -> Mapping[str, Any]:
    try:
        found = json.loads(response.body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _row(model: Any, data: Any) -> Any:
    """The object, without what the model does not name; None where it cannot be read."""
    if not isinstance(data, Mapping):
        return None
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError:
        return None
