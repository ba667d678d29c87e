"""What a request of ours changes in the snapshot of the account, by its result.

A result that shows the object as it is now replaces it in the snapshot; after any other result of a write, or
if there is none, the object is read again when it is wanted, or the whole list if not even its id is
known.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.client.exceptions import ApiError, HostingError, NotFound, RedirectRefused
from pulumi_hosting.client.requests import HttpRequest
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS, UNPAID, Change

SERVERS, ORDERS = "list_servers", "list_orders"


class _Listed(NamedTuple):
    """Where the snapshot has the objects of a path: the list, its part, and the model of one, by name: few
    processes need all. ``read_again``: whether one in doubt is read singly; else the list is asked for again.
    """

    part: str
    operation: str
    model: str
    read_again: bool = False


_LISTED = {
    "servers": _Listed(ORDERS_AND_SERVERS, SERVERS, "Server", read_again=True),
    "domains": _Listed("domains", "list_domains", "Domain", read_again=True),
    "ssh-keys": _Listed("ssh_keys", "list_ssh_keys", "SshKey"),
    "webhooks": _Listed("webhooks", "list_webhooks", "Subscription"),
}
"""By the first part of a path."""
_UNLISTED = {"set_server_ip_ptr", "rotate_webhook_secret", "test_webhook", "redeliver_webhook"}
"""Writes that change nothing of what the list of the path shows."""
_ADDRESSES = {"add_server_ip", "delete_server_ip", "set_server_ip_ptr"}


def changes_of(request: HttpRequest, outcome: object) -> Iterator[Change]:
    """``outcome``: the result of the request, or its error."""
    operation, (_, group, *rest) = request.operation, request.path.split("/")
    id = rest[0] if operation.path.startswith(f"/{group}/{{") else ""
    if operation.is_keyed or operation.id == "delete_server_ip":  # it may charge, or credit
        yield Change("forget", "balance")
        yield Change("forget", UNPAID)
    # An entry that was written is known to whoever wrote it.
    if operation.id in _ADDRESSES and (operation.id != "set_server_ip_ptr" or is_unknown(outcome)):
        yield Change("forget", f"ips {rest[0]}")
    if operation.id == "create_server":
        yield from _ordered(request, outcome)
    elif group in _LISTED and operation.id not in _UNLISTED:
        yield from _of_object(_LISTED[group], operation, id, outcome)
    elif isinstance(outcome, m.Order) and operation.id == "get_order" and not outcome.is_pending:
        yield Change("delete", ORDERS_AND_SERVERS, ORDERS, id)
        if outcome.server_id is not None:
            yield Change("doubt", ORDERS_AND_SERVERS, SERVERS, str(outcome.server_id))
    elif operation.id == "pay_invoice":  # what was suspended may run again
        yield Change("forget", ORDERS_AND_SERVERS)
    elif operation.id == "revoke_api_key":  # the key sees nothing any more
        for listed in _LISTED.values():
            yield Change("forget", listed.part)


def _ordered(request: HttpRequest, outcome: object) -> Iterator[Change]:
    if _is_refused(outcome):
        return  # nothing was made
    if isinstance(outcome, m.ServerCreated):
        # A replay shows no password, and its server may be gone by now.
        row = outcome.server if outcome.root_password else None
        place = (ORDERS_AND_SERVERS, SERVERS, str(outcome.server.id))
        yield Change("doubt", *place) if row is None else Change("set", *place, row)
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


def _of_object(listed: _Listed, operation: Operation, id: str, outcome: object) -> Iterator[Change]:
    """What a write to an object of the list, or a read of one, shows. The ``id`` of a new one is empty, and
    so is that of a request which was made by its path."""
    place, model = (listed.part, listed.operation, id), getattr(m, listed.model)
    is_deletion = operation.path.count("/") == 2 and operation.method == "DELETE"
    if isinstance(outcome, NotFound) and id and operation.path.count("{") == 1:
        yield Change("delete", *place)
    elif _is_refused(outcome):
        return
    elif is_deletion and id and not isinstance(outcome, HostingError):
        yield Change("delete", *place)
    elif isinstance(outcome, model) and id in ("", str(outcome.id)):
        # without what the list does not show
        row = model.model_construct(**{name: getattr(outcome, name) for name in model.model_fields})
        yield Change("set", listed.part, listed.operation, str(row.id), row)
    elif operation.is_write:
        yield Change("doubt", *place) if id and listed.read_again else Change("forget", listed.part)


def _is_refused(outcome: object) -> bool:
    """Whether nothing was carried out."""
    return isinstance(outcome, RedirectRefused) or (isinstance(outcome, ApiError) and outcome.status < 500)


def is_unknown(outcome: object) -> bool:
    """Whether something may have been carried out, and no result shows what."""
    return isinstance(outcome, HostingError) and not _is_refused(outcome)
