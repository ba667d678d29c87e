"""Calls that change a server, and the waits that belong to them. They know the API's objects only, no
inputs and no state.
"""

import uuid
from collections.abc import Callable
from typing import Any, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import (
    CallError,
    Conflict,
    NotFound,
    OperationInProgress,
    ServerError,
    ServiceState,
    TransportError,
    Unavailable,
)
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.idempotency_keys import SCHEME
from pulumi_hosting.exactly_once.order_facts import (
    after_order,
    became_of,
    has_ended,
    how_order_ended,
    pending_orders,
)
from pulumi_hosting.resources.server_reads import addresses_along, living_server
from pulumi_hosting.session.errors import (
    AWAITED,
    OrderFailed,
    ResourceError,
    StillOrdered,
    WaitTimeout,
    failing_with,
)
from pulumi_hosting.session.request import Request


def order_id(id: str) -> int:
    """The invoice id in the id of a server that is still being ordered."""
    return int(id.removeprefix(ORDER_PREFIX))


def wait_for_order(request: Request, id: str, name: str | None) -> m.Server:
    """The server of an order. Raises ``OrderFailed``, ``WaitTimeout``, and ``ResourceError`` if the
    server was deleted meanwhile.
    """
    wait = request.poller()
    while True:
        # All waiting resources share one list. An order that left the list is read on its own.
        if order_id(id) in pending_orders(request, wait.next * 0.9) and not wait.over:
            request.info(f"server {name}: order {order_id(id)} is provisioning")
            wait.pause()
            continue
        order = request.client.orders.get(order_id(id))
        if order.is_active and order.server_id:
            server = living_server(request, str(order.server_id))
            if server is None:
                raise ResourceError(
                    f"server {order.server_id} of order {order.invoice_id} was deleted meanwhile. Next: run "
                    "again to order another one"
                )
            return server
        if has_ended(request, order):
            ended = how_order_ended(request, order, name)
            raise OrderFailed(f"{ended}. Next: {after_order(request, order)}")
        if wait.over:
            raise WaitTimeout(
                f"order {order.invoice_id} for server {name!r} is still {order.status} after "
                f"{request.wait_timeout:.0f} s. Next: {AWAITED}",
                id=id,
            )
        request.info(f"server {name}: order {order.invoice_id} is {order.status}")
        wait.pause()


def forget_order(request: Request, id: str, name: str | None) -> None:
    """Forget an order of which no server came. Raises ``StillOrdered`` if one may still come, or its charge
    is kept."""
    order = request.client.orders.get(order_id(id))
    verdict, what = became_of(request, order), f"order {order.invoice_id} for server {name!r}"
    # The service returns what an ended order charged (API document, "States and transitions").
    is_returned = order.is_failed and verdict.payment is None
    if not (verdict.may_be_forgotten or is_returned):
        raise StillOrdered("server", id, verdict.sentence(what))
    if order.is_failed or not verdict.is_over:
        request.warn(f"{verdict.sentence(what)}; nothing is left to delete")
    else:
        request.warn(f"{how_order_ended(request, order, name)}; if its server still arrives, no state has it")


def wait_until(request: Request, id: str, done: Callable[[m.Server], bool], seconds: float) -> m.Server:
    """The server once ``done``; after ``seconds`` as it is, since not every deployment shows the change."""
    wait = request.poller(seconds)
    while True:
        server = living_server(request, id)
        if server is None:
            raise ResourceError(f"server {id} was deleted meanwhile. Next: run again")
        # A simulated change is accepted and may never show.
        if done(server) or request.client.is_test_key or wait.over:
            return server
        request.info(f"server {id}: waiting for the change to show")
        wait.pause()


def send_power(
    request: Request, id: str, power: Literal["running", "stopped"], status: str, shown: str | None
) -> None:
    """Start or stop it. ``shown``: its power now; None, at some ``status``, if it can be neither started
    nor stopped.
    """
    if shown is None:
        raise ResourceError(
            f"server {id} is {status} and cannot be {'started' if power == 'running' else 'stopped'}. Next: "
            "see why in the control panel (an unpaid renewal, perhaps), or leave power out"
        )
    request.client.servers.power(int(id), action="start" if power == "running" else "stop")


def send_reinstall(request: Request, id: str, os: str, body: dict[str, Any]) -> m.ReinstallResult:
    """Install ``os`` on it. Sent once: if the response is lost, a person must look at the server."""
    request.warn(f"server {id} is reinstalled with {os}: its disk is erased")
    try:
        result = request.client.servers.reinstall(int(id), os=os, **body)
    except CallError as error:
        if not error.outcome_unknown:
            raise
        raise ResourceError(
            f"{error.summary} — whether server {id} was reinstalled is not known. Next: look at it before "
            "running again: a run that still shows the change erases the disk once more"
        ) from None
    return result


def delete_server(request: Request, server: m.Server) -> None:
    """Delete it, wait while another operation runs, and report the credit and the addresses that are
    deleted with it.
    """
    id = str(server.id)
    along = addresses_along(request, server)
    wait = request.poller()
    while True:
        try:
            # A new key each time: a stored failure would otherwise block the deletion for seven days.
            result = request.client.servers.delete(
                server.id, idempotency_key=f"{SCHEME}-delete-{uuid.uuid4().hex}"
            )
        except NotFound:
            request.gone.add(id)
            return
        except OperationInProgress:
            if wait.over:
                raise
            request.info(f"server {id}: another operation is running")
            wait.pause()
            continue
        except (ServiceState, TransportError, Unavailable, ServerError, Conflict) as error:
            with failing_with(error):
                left = living_server(request, id)
            if left is None:
                return
            raise
        if result.refunded is not None or along:
            credit = ""
            if result.refunded is not None:
                request.credited(result.refunded, result.currency)
                credit = (
                    f"{';' if along else ','} {result.refunded} {result.currency or ''}"
                ).rstrip() + " credited"
            request.info(f"server {id} deleted{along}{credit}")
        return
