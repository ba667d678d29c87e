"""What a request of ours means for the snapshot of the account, by its result.

A result that shows the object as it is now replaces it in the snapshot; after any other result of a write, or
where there is none, the object is read again when it is wanted, or the whole list where not even its id is
known.
"""

import json
from collections.abc import Iterator
from typing import Any

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, HostingError, NotFound, RedirectRefused
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS, Change

SERVERS, ORDERS = "list_servers", "list_orders"
SHOWN = {
    "get_server": (ORDERS_AND_SERVERS, SERVERS, m.Server),
    "get_domain": ("domains", "list_domains", m.Domain),
}
"""The part and the list that hold what a read of one object shows, and how the list shows it."""
_CREATES = {"create_webhook": m.Subscription, "update_webhook": m.Subscription, "create_ssh_key": m.SshKey}
_LISTS = {"webhooks": "list_webhooks", "ssh_keys": "list_ssh_keys"}
_ADDRESSES = {"add_server_ip", "delete_server_ip", "set_server_ip_ptr"}


def changes_of(request: HttpRequest, outcome: object) -> Iterator[Change]:
    """``outcome``: the result of the request, or its error."""
    operation, id = request.operation, _id(request.path)
    if not operation.is_write:
        yield from _shown(operation.id, id, outcome)
        return
    if operation.is_keyed or operation.id == "delete_server_ip":  # it may charge, or credit
        yield Change("forget", "balance")
    if operation.id == "create_server":
        yield from _ordered(request, outcome)
    elif operation.path.startswith("/servers/{server_id}"):
        yield from _of_server(operation.id, id, outcome)
    elif operation.path.startswith("/domains"):
        yield from _of_domain(operation.id, id, outcome)
    elif operation.id in ("create_ssh_key", "delete_ssh_key"):
        yield from _of_list("ssh_keys", operation.id, id, outcome)
    elif operation.id in ("create_webhook", "update_webhook", "delete_webhook"):
        yield from _of_list("webhooks", operation.id, id, outcome)
    elif operation.id == "pay_invoice":  # what was suspended may run again
        yield Change("forget", ORDERS_AND_SERVERS)
    elif operation.id == "revoke_api_key":  # the key sees nothing any more
        for part in (ORDERS_AND_SERVERS, "ssh_keys", "domains", "webhooks"):
            yield Change("forget", part)


def _shown(operation: str, id: str, outcome: object) -> Iterator[Change]:
    """What a read of one object shows: the object, or that an order has ended."""
    if operation in SHOWN:
        part, listed, model = SHOWN[operation]
        if isinstance(outcome, NotFound):
            yield Change("delete", part, listed, id)
        elif (row := _row(model, outcome, id)) is not None:
            yield Change("set", part, listed, id, row)
    elif isinstance(outcome, m.Order) and operation == "get_order" and not outcome.is_pending:
        yield Change("delete", ORDERS_AND_SERVERS, ORDERS, id)
        if outcome.server_id is not None:
            yield Change("doubt", ORDERS_AND_SERVERS, SERVERS, str(outcome.server_id))


def _ordered(request: HttpRequest, outcome: object) -> Iterator[Change]:
    if _is_refused(outcome):
        return  # nothing was made
    if isinstance(outcome, m.ServerCreated):
        # A replay shows no password, and its server may be gone by now.
        known = outcome.server if outcome.root_password else None
        yield _set_or_doubt(ORDERS_AND_SERVERS, SERVERS, str(outcome.server.id), known)
    elif isinstance(outcome, m.Order):
        # The list shows the name, by which others wait for it; the answer need not.
        sent = json.loads(request.body or b"{}")
        named = {"server_name": sent.get("name"), "tariff_id": sent.get("tariff_id")}
        order = outcome.model_copy(
            update={name: value for name, value in named.items() if getattr(outcome, name) is None}
        )
        yield Change("set", ORDERS_AND_SERVERS, ORDERS, str(order.invoice_id), order)
    else:
        yield Change("forget", ORDERS_AND_SERVERS)


def _of_server(operation: str, id: str, outcome: object) -> Iterator[Change]:
    # An entry that was written is known to whoever wrote it.
    if operation in _ADDRESSES and (operation != "set_server_ip_ptr" or is_unknown(outcome)):
        yield Change("forget", f"ips {id}")
    if _is_refused(outcome):
        # A renewal is also sent for a server that cannot exist, to probe a key.
        if isinstance(outcome, NotFound) and operation != "renew_server" and operation not in _ADDRESSES:
            yield Change("delete", ORDERS_AND_SERVERS, SERVERS, id)
    elif operation == "delete_server" and not is_unknown(outcome):
        yield Change("delete", ORDERS_AND_SERVERS, SERVERS, id)
    elif operation != "set_server_ip_ptr":
        yield _set_or_doubt(ORDERS_AND_SERVERS, SERVERS, id, _row(m.Server, outcome, id))


def _of_domain(operation: str, id: str, outcome: object) -> Iterator[Change]:
    if _is_refused(outcome):
        return
    if operation in ("register_domain", "transfer_domain"):  # the answer may be a replay of long ago
        yield Change("forget", "domains")
    else:
        yield _set_or_doubt("domains", "list_domains", id, _row(m.Domain, outcome, id))


def _of_list(part: str, operation: str, id: str, outcome: object) -> Iterator[Change]:
    is_create = operation.startswith("create_")
    if isinstance(outcome, NotFound) and not is_create:
        yield Change("delete", part, _LISTS[part], id)
    elif _is_refused(outcome):
        return
    elif operation.startswith("delete_") and not isinstance(outcome, HostingError):
        yield Change("delete", part, _LISTS[part], id)
    elif (row := _row(_CREATES.get(operation), outcome)) is not None:
        yield Change("set", part, _LISTS[part], str(row.id), row)
    else:
        yield Change("forget", part)


def _set_or_doubt(part: str, operation: str, id: str, row: Any) -> Change:
    return Change("doubt" if row is None else "set", part, operation, id, row)


def _is_refused(outcome: object) -> bool:
    """Whether nothing was carried out."""
    return isinstance(outcome, RedirectRefused) or (isinstance(outcome, ApiError) and outcome.status < 500)


def is_unknown(outcome: object) -> bool:
    """Whether something may have been carried out, and no result shows what."""
    return isinstance(outcome, HostingError) and not _is_refused(outcome)


def _id(path: str) -> str:
    """The first id in a path.

    >>> _id("/servers/7/ips")
    '7'
    """
    return [*path.split("/"), "", "", ""][2]


def _row(model: Any, result: object, id: str | None = None) -> Any:
    """The object as a list shows it: without what its ``model`` does not name. None where the result is
    another, or not that with this id."""
    if model is None or not isinstance(result, model) or id not in (None, str(result.id)):
        return None
    return model.model_construct(**{name: getattr(result, name) for name in model.model_fields})
