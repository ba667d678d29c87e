"""What the account shows of orders of servers: which are under way, and what became of the others."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError, HostingError, NotFound
from pulumi_hosting.client.shared_store import SharedStore
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.local_files import turn
from pulumi_hosting.exactly_once.payments import payment
from pulumi_hosting.exactly_once.purchase import Evidence, Verdict, judge
from pulumi_hosting.session import errors
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.request import Request

_PROCESS = uuid.uuid4().hex
SNAPSHOT_AGE = 30.0  # seconds for which orders and servers, once listed, are believed by an order


class Wanted(Protocol):
    """What is declared or ordered; of several tariffs any. In a preview what is not known yet is None."""

    @property
    def name(self) -> str | None: ...
    @property
    def tariff_id(self) -> int | list[int]: ...
    @property
    def os(self) -> str: ...


def orders_and_servers(
    request: Request, max_age: float = SNAPSHOT_AGE
) -> tuple[list[m.Order], list[m.Server]]:
    """Orders under way, then servers: an order that was carried out in between is in both, never in neither.
    Shared for half a minute, so that a program of a thousand servers looks once and not a thousand times;
    an own order is recognised by its claim."""

    def ask() -> dict[str, list[Any]]:
        return {
            "list_orders": list(request.client.orders.list()),
            "list_servers": list(request.client.servers.list()),
        }

    def ask_again(operation: str, id: str) -> m.Server | None:
        if (shown := server_by_id(request, id)) is None:
            return None
        # as the list shows it
        return m.Server.model_construct(**{name: getattr(shown, name) for name in m.Server.model_fields})

    found = request.session.snapshot(ORDERS_AND_SERVERS, ask, max_age, ask_again)
    return found["list_orders"], found["list_servers"]


@contextmanager
def turn_of_name(request: Request, name: str) -> Iterator[None]:
    """The turn to order a server of this name. Processes that hold a snapshot from before the end of another
    one's turn read again; no snapshot outlasts the machine. Raises ``LocalFilesError``."""
    purpose = f"server name {name}"
    with turn(request, purpose, f"ordering a server named {name!r}"):
        scope = local_files.account_scope(request.client)
        last, own = local_files.read(scope, purpose, survives=False), f"{_PROCESS}-{scope.store.process}"
        now = _time_of_all(request, scope.store).timestamp()
        since = abs(now - float(last.get("at") or 0))
        if last.get("process") != own and since < 2 * SNAPSHOT_AGE:
            # Times of the service are rounded. One that was killed in its turn may have sent an order since.
            rounded = 2.0 if scope.store.spans_machines else 0.0
            orders_and_servers(request, since - rounded if last.get("ended") else -1.0)
        local_files.write(scope, purpose, {"process": own, "at": now}, survives=False)
        try:
            yield
        finally:
            note = {"process": own, "at": _time_of_all(request, scope.store).timestamp(), "ended": True}
            with suppress(local_files.LocalFilesError):  # an accepted order is returned
                local_files.write(scope, purpose, note, survives=False)


def _time_of_all(request: Request, store: SharedStore) -> datetime:
    """The time on which all agree who share the store: of this machine, or of the service."""
    if store.spans_machines:
        return request.client.known_time or request.service_now()
    return datetime.now(UTC)


def living_servers(request: Request) -> list[m.Server]:
    """The servers of the account, as of half a minute ago at most."""
    return [server for server in orders_and_servers(request)[1] if not server.is_gone]


def is_under_way(request: Request, order: m.Order) -> bool:
    """Whether the service is working on the order, and it is waited for."""
    return order.is_pending and not has_ended(request, order)


def has_ended(request: Request, order: m.Order) -> bool:
    """Whether the order is not waited for any more: it failed, or is older than the memory for keys."""
    return judge(_evidence(request, order)).is_over


def _evidence(request: Request, order: m.Order) -> Evidence:
    return Evidence(
        is_there=order.is_active and order.server_id is not None,
        status="failed" if order.is_failed and order.status != "cancelled" else order.status,
        age=request.age_of(order.created_at),
    )


def became_of(request: Request, order: m.Order) -> Verdict:
    """What became of an order, and where its money is."""
    paid = payment(request.client, order.invoice_id)
    return judge(replace(_evidence(request, order), payment=paid))


def how_order_ended(request: Request, order: m.Order, name: str | None) -> str:
    """What became of an order of which no server comes, and where its money is."""
    what, became = f"order {order.invoice_id} for server {name!r}", became_of(request, order)
    if not order.is_failed:
        money = f"; {became.payment.sentence}" if became.payment else ""
        return f"{what} is still {order.status} after more than seven days{money}"
    reason = f" ({order.failure_reason})" if order.failure_reason else ""
    return became.sentence(f"{what} ended as {order.status}{reason}: it")


def after_order(request: Request, order: m.Order) -> str:
    """The next step after an order that is not waited for any more."""
    return judge(_evidence(request, order)).next_step(request.client.words.read_and_apply, "order")


def pending_orders(request: Request, max_age: float) -> frozenset[int]:
    """Invoices of the orders under way, shared by everybody who waits: one request per poll, however many
    wait.
    """

    def fetch() -> frozenset[int]:
        listed = request.client.orders.list()
        return frozenset(order.invoice_id for order in listed if is_under_way(request, order))

    return request.shared(("orders",), fetch, max_age)


def pending_order(request: Request, name: str) -> m.Order | None:
    """The order of a server of this name that is under way and that no declaration of this run is known
    to have placed.
    """
    for order in _orders_of(request, name):
        if f"{ORDER_PREFIX}{order.invoice_id}" not in request.owned and is_under_way(request, order):
            return order
    return None


def late_order(request: Request, name: str) -> m.Order | None:
    """An order of this name that the account shows as under way though it is older than the memory for keys:
    whether its server still comes is not known here."""
    late = (order for order in _orders_of(request, name) if order.is_pending and has_ended(request, order))
    return next(late, None)


def refuse_late_order(request: Request, name: str, attempt: int) -> None:
    """Raise ``ResourceConflict`` for a :func:`late_order`, unless an ``attempt`` says that another one is
    wanted."""
    order = None if attempt else late_order(request, name)
    if order is not None:
        ended, step = how_order_ended(request, order, name), after_order(request, order)
        raise errors.ResourceConflict(
            f"{ended}; nothing was ordered. Next: {step}", id=f"{ORDER_PREFIX}{order.invoice_id}"
        )


def wait_for_orders(request: Request, wanted: Wanted) -> None:
    """Wait for the orders under way that may become a server of this name: it cannot be seen yet what they
    become. Raises ``WaitTimeout``."""
    name = wanted.name or ""
    wait = request.poller(request.wait_timeout)
    is_seen_now = False  # else the snapshot, some seconds old, says so
    while pending := [order for order in _orders_of(request, name, wanted) if is_under_way(request, order)]:
        known = ", ".join(str(order.invoice_id) for order in pending)
        if is_seen_now:
            if wait.over:
                raise errors.WaitTimeout(
                    f"order {known} for a server named {name!r} is still {pending[0].status} after "
                    f"{request.wait_timeout:.0f} s; nothing was ordered. Next: {errors.AWAITED}",
                    id=f"{ORDER_PREFIX}{pending[0].invoice_id}",
                )
            request.info(f"waiting for order {known} ({pending[0].status})")
            wait.pause()
        # one list for all that wait
        under_way = pending_orders(request, wait.last * 0.9 if is_seen_now else 0.0)
        is_seen_now = True
        if any(order.invoice_id not in under_way for order in pending):
            request.reads.forget(ORDERS_AND_SERVERS)


def _orders_of(request: Request, name: str, wanted: Wanted | None = None) -> Iterator[m.Order]:
    """Orders of this name that no other declaration of this run is known to have placed. With what is
    ``wanted``, also those that show no name and may be it. None with a test key: orders are real."""
    if request.client.is_test_key:
        return
    for order in orders_and_servers(request)[0]:
        is_meant = order.server_name == name
        if order.server_name is None and wanted is not None:
            ids = wanted.tariff_id
            is_meant = order.tariff_id in (None, *(ids if isinstance(ids, list) else (ids,)))
        if is_meant and not request.is_of_another(f"{ORDER_PREFIX}{order.invoice_id}"):
            yield order


def server_by_id(request: Request, id: str) -> m.Server | None:
    """The server; None if nothing shows it any more."""
    try:
        return request.client.servers.get(int(id))
    except NotFound:
        return None


def living_server(request: Request, id: str) -> m.Server | None:
    """The server, unless it is gone."""
    server = server_by_id(request, id)
    return None if server is None or server.is_gone else server


def is_outdated(request: Request, id: str, error: ApiError) -> bool:
    """Whether a refusal that speaks of the server's state is an old one, by what the server shows now."""
    speaks_of_it = error.code in ("server_blocked", "cancel_pending", "service_state")
    if not speaks_of_it or (server := living_server(request, id)) is None:
        return False
    if error.code == "server_blocked":
        return server.flags is not None and server.flags.blocked is False
    if error.code == "cancel_pending":
        return server.status != "pending_cancel"
    return server.status in ("active", "stopped")


def purchase_of(request: Request, server: m.Server) -> m.Invoice | None:
    """The invoice of the order of a server, if it is among the latest purchases and the key may see them; one
    request, shared.
    """

    def fetch() -> dict[int, m.Invoice]:
        try:
            latest = islice(request.client.invoices.list(type="vds_purchase", limit=100), 100)
            return {
                item.server_id: invoice
                for invoice in latest
                for item in invoice.items or ()
                if item.server_id is not None
            }
        except HostingError:
            return {}

    return request.shared(("purchases",), fetch).get(server.id)


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
        if order_id(id) in pending_orders(request, wait.last * 0.9) and not wait.over:
            request.info(f"server {name}: order {order_id(id)} is provisioning")
            wait.pause()
            continue
        order = request.client.orders.get(order_id(id))
        if order.is_active and order.server_id:
            server = living_server(request, str(order.server_id))
            if server is None:
                raise errors.ResourceError(
                    f"server {order.server_id} of order {order.invoice_id} was deleted meanwhile. Next: run "
                    "again to order another one"
                )
            return server
        if has_ended(request, order):
            ended = how_order_ended(request, order, name)
            raise errors.OrderFailed(f"{ended}. Next: {after_order(request, order)}")
        if wait.over:
            raise errors.WaitTimeout(
                f"order {order.invoice_id} for server {name!r} is still {order.status} after "
                f"{request.wait_timeout:.0f} s. Next: {errors.AWAITED}",
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
        raise errors.StillOrdered("server", id, verdict.sentence(what))
    if order.is_failed or not verdict.is_over:
        request.warn(f"{verdict.sentence(what)}; nothing is left to delete")
    else:
        request.warn(f"{how_order_ended(request, order, name)}; if its server still arrives, no state has it")
