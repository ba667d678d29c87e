"""Ordering a server so that it is bought once, whatever is killed, cut or repeated.

The order of steps, for one declaration (``POST /servers`` is keyed; names are not unique; a 202 order is not
among the servers yet):

0. *Turn*: one order of a name at a time, among the processes of this user on this machine.
1. *Quiesce*: wait for orders of this name that are still provisioning, since it cannot be seen yet what they
   become.
2. *Look*: walk the living servers. One with our ownership tag is ours, and is taken over while the keys are
   remembered; after that it takes a person's word, since nothing else tells a lost server from another
   backend's. Where the name itself is the identity, the server of that name is meant. Any other of the name
   must be *proven* ours, or we stop: a second server is never bought beside an unexplained one.
3. *Order*: keys of generation 0, 1, 2 …; normally one request. Every accepted id is read before it is
   believed; a generation is left behind only when its outcome is proven to be of the past. Where the name is
   the identity, the keys are made of the name alone, so that of two different orders of one name at the same
   time the second meets a conflict, looks again, and finds the first one's server.

*Proof* costs nothing and can buy nothing: the key of our order is sent to another operation for a server that
cannot exist. Answer ``idempotency_conflict`` means that the key is bound, so repeating the order with it
replays the first answer, which names the server.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import (
    ApiError,
    Forbidden,
    HostingError,
    IdempotencyConflict,
    IdempotencyInProgress,
    InsufficientFunds,
    InvalidResponse,
    NotFound,
    TransportError,
)
from pulumi_hosting.client.polling import Poller
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.key_probe import key_is_used, nonexistent_id
from pulumi_hosting.exactly_once.server_search import (
    ORDER_PREFIX,
    SNAPSHOT_AGE,
    TAGGED,
    candidates,
    find_tagged,
    may_be_proven,
    must_be_allowed,
    name_conflict,
    orders_and_servers,
    pending_orders,
    refuse_renamed_order,
)
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.errors import AmbiguousMatch, ResourceConflict, ResourceError, WaitTimeout
from pulumi_hosting.session.key_owner import account
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import if_renamed

GENERATIONS = 16
_MONEY_WINDOW = timedelta(minutes=5)  # how far before our first request a movement of money is looked at
_CLOCKS_DIFFER = timedelta(seconds=5)  # what two clocks of the service may differ by, with rounding
_TURN = 60.0  # seconds to wait at least for another process that orders a server of the same name
# seconds for which another process's request for an order may be under way without showing anywhere
_UNDER_WAY = 30.0
_PROCESS = uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Ordered:
    """What an order came to: a server, or an order still under way. The password only where this answer
    showed it.

    ``found``: it was there and is taken over, for this ``reason``. ``by_name``: its name alone is the reason.
    """

    server: m.Server | None
    order: m.Order | None = None
    root_password: Secret | None = None
    charged: Decimal | None = None
    invoice_id: int | None = None
    found: bool = False
    by_name: bool = False
    reason: str = ""
    attempts: int = 1
    """How often the request was sent that brought the answer: a replay after several attempts may be of
    the first of them.
    """


class KeyState(Enum):
    """What an answer to an order means for the generation it was sent with."""

    CONSUMED = "bound to something of the past: the next generation"
    REFUSED = "a refusal that holds: report it"
    CONFLICT = "bound to another request: look once more, then the next generation"
    UNKNOWN = "the service failed: look at the money, then once more"


def classify(error: ApiError, contradicted: Callable[[ApiError], bool]) -> KeyState:
    """Decide about a refused order. ``contradicted`` tells whether the account's present state shows a
    refusal to be a stored, old one.

    >>> classify(IdempotencyConflict(status=409, code="idempotency_conflict", message=""), lambda e: False)
    <KeyState.CONFLICT: 'bound to another request: look once more, then the next generation'>
    """
    if error.outcome_unknown and error.status not in (500, 502):
        # an earlier attempt may still be carried out under this key: another key could order a second time
        return KeyState.REFUSED
    if isinstance(error, IdempotencyConflict):
        # Quiesce and look have found no living server of ours: what the key is bound to is dead, was refused,
        # was only probed, or is an
        # order with another password that a killed run sent a moment ago and that is not visible yet.
        return KeyState.CONFLICT
    if isinstance(error, IdempotencyInProgress) or error.code == "api_disabled":
        return KeyState.REFUSED
    if error.status >= 500:
        return KeyState.UNKNOWN
    return KeyState.CONSUMED if contradicted(error) else KeyState.REFUSED


@dataclass
class ServerOrder:
    """One declaration's order. ``body`` is what ``POST /servers`` is sent, with a name; its password stays
    outside the keys.
    """

    request: Request
    body: m.ServerCreate
    attempt: int = 0
    began: float | None = field(default=None, init=False)
    """When the first request was sent, by the monotonic clock."""

    @property
    def name(self) -> str:
        """The name of the server; a declaration always has one."""
        return self.body.name or ""

    def keys(self) -> Iterator[str]:
        """The key of each generation."""
        me = account(self.request.client)
        ring = KeyRing(
            account_id=me.account_id,
            livemode=me.livemode,
            identity=self.request.identity,
            operation="create_server",
            body=self.body.model_dump(
                exclude_unset=True,
                include={"name"} if self.request.name_is_identity else None,
                exclude={"password"},
            ),
            attempt=self.attempt,
        )
        for generation in range(GENERATIONS):
            yield ring.key(generation)

    # --- the steps

    def place(self) -> Ordered:
        """Find what an interrupted run bought, else buy. Raises ResourceConflict, AmbiguousMatch,
        WaitTimeout, LocalFilesError, what ``request.approve`` raises, or the service's refusal.
        """
        with self._name_lock():
            if found := self._found():
                return found
            self.request.approve()
            looked_again = False
            self.request.clock.raise_if_cancelled()
            self.began = self.request.clock.monotonic()
            for key in self.keys():
                try:
                    answer = self.request.client.call("create_server", body=self.body, idempotency_key=key)
                except InvalidResponse as error:
                    if accepted := self._accepted_in_part(error):
                        return accepted
                    raise
                except ApiError as error:
                    found, looked_again = self._after_refusal(error, looked_again=looked_again)
                    if found is not None:
                        return found
                    continue
                if accepted := self._accepted(answer):
                    return accepted
        raise ResourceError(
            f"{GENERATIONS} orders of server {self.name!r} within seven days are used up. Next: wait for "
            "the oldest to be forgotten, or set order_attempt to a new number"
        )

    @contextmanager
    def _name_lock(self) -> Iterator[None]:
        """Hold the name against other threads and processes, so that each sees what the one before it has
        ordered.
        """
        request, purpose = self.request, f"server name {self.name}"
        with request.ownership.lock(f"server {self.name}"):
            scope = local_files.account_scope(request.client)
            waiting = f"another run on this machine is ordering a server named {self.name!r}: waiting for it"
            with local_files.lock(
                scope,
                purpose,
                max(request.wait_timeout, _TURN),
                on_wait=lambda: request.info(waiting),
                check=lambda: request.clock.sleep(0.0),
            ):
                # Told to processes that hold a snapshot from before; none of them outlasts the machine.
                last = local_files.read(scope, purpose, survives=False)
                own = f"{_PROCESS}-{os.getpid()}"
                if (
                    last.get("process") != own
                    and abs(time.time() - float(last.get("at") or 0)) < 2 * SNAPSHOT_AGE
                ):
                    request.reads.forget(ORDERS_AND_SERVERS)
                local_files.write(scope, purpose, {"process": own, "at": time.time()}, survives=False)
                try:
                    yield
                finally:
                    with suppress(local_files.LocalFilesError):  # an accepted order is returned
                        local_files.write(scope, purpose, {"process": own, "at": time.time()}, survives=False)

    def _found(self, *, after_sending: bool = False) -> Ordered | None:
        """``after_sending``: this call has sent an order itself, and may find its result."""
        self._wait_for_pending_orders()
        same_name = [server for server in candidates(self.request) if server.name == self.name]
        if self.request.name_is_identity:
            if len(same_name) > 1:
                raise AmbiguousMatch(f"server name {self.name!r}", [str(server.id) for server in same_name])
            reason = "it has the name"
            return Ordered(same_name[0], found=True, by_name=True, reason=reason) if same_name else None
        own = find_tagged(self.request, self.body, attempt=self.attempt, lenient=after_sending)
        if own is not None:
            return Ordered(own, found=True, reason=TAGGED)
        if not same_name or self.attempt > 0:
            return None
        proven = self._proven() if any(may_be_proven(self.request, server) for server in same_name) else None
        if proven is None:
            raise name_conflict(self.request, same_name[0], self.attempt)
        if proven.server is not None and not after_sending:
            must_be_allowed(
                self.request, proven.server, "is named by this resource's idempotency key", self.attempt
            )
        return proven

    def _wait_for_pending_orders(self) -> None:
        wait = self.request.poller(self.request.wait_timeout)
        is_seen_now = False  # else the snapshot, some seconds old, says so
        while pending := [
            order for order in orders_and_servers(self.request)[0] if self._may_become_ours(order)
        ]:
            known = ", ".join(str(order.invoice_id) for order in pending)
            if is_seen_now:
                if wait.over:
                    raise WaitTimeout(
                        f"order {known} for a server named {self.name!r} is still {pending[0].status} after "
                        f"{self.request.wait_timeout:.0f} s; nothing was ordered. Next: run "
                        "again, it will be waited for",
                        id=f"{ORDER_PREFIX}{pending[0].invoice_id}",
                    )
                self.request.info(f"waiting for order {known} ({pending[0].status})")
                wait.pause()
            # one list for all that wait
            under_way = pending_orders(self.request, wait.next * 0.9 if is_seen_now else 0.0)
            is_seen_now = True
            if any(order.invoice_id not in under_way for order in pending):
                self.request.reads.forget(ORDERS_AND_SERVERS)

    def _may_become_ours(self, order: m.Order) -> bool:
        if (
            self.request.client.is_test_key  # these are real orders
            or not order.is_pending
            or f"{ORDER_PREFIX}{order.invoice_id}" in self.request.ownership.of_others(self.request.identity)
        ):
            return False
        return order.server_name == self.name or (
            order.server_name is None and order.tariff_id in (None, self.body.tariff_id)
        )

    def _after_refusal(self, error: ApiError, *, looked_again: bool) -> tuple[Ordered | None, bool]:
        """What came of an order that the service refused, or None where the next generation's key is to be
        tried; and whether the account was looked at once more for it."""
        state = classify(error, self._contradicted)
        if state is KeyState.REFUSED and error.outcome_unknown:
            raise ResourceError(
                f"{error.summary} — whether the order was carried out is not known. Next: run again; the "
                "same order is repeated, never a second one"
            ) from None
        if state is KeyState.REFUSED:
            raise error
        if state is KeyState.CONFLICT and (found := self._look_again()):
            return found, looked_again
        if state is not KeyState.UNKNOWN:
            return None, looked_again
        if not self._money_unmoved():
            raise ResourceError(
                f"{error.summary} — whether the order was carried out is not known; nothing was repeated. "
                "Next: run again, and compare invoices and servers before ordering by hand"
            ) from None
        if looked_again:
            raise ResourceError(
                f"{error.summary} — no money moved and no server was made. Next: run again later"
            ) from None
        self.request.reads.forget(ORDERS_AND_SERVERS)
        return self._found(after_sending=True), True

    def _look_again(self) -> Ordered | None:
        """What the request came to that a key is bound to, once it shows. Where keys are made of the name
        alone, another run's order may be under way at this moment and show nowhere until it is carried out.
        """
        request = self.request
        wait = Poller(request.clock, _UNDER_WAY if request.name_is_identity else 0.0, request.poll_interval)
        while True:
            request.clock.sleep(request.poll_interval)
            request.reads.forget(ORDERS_AND_SERVERS)
            if found := self._found(after_sending=True):
                return found
            if wait.over:
                return None

    # --- parts

    def _accepted(self, answer: m.ServerCreated | m.Order) -> Ordered | None:
        """An accepted order, read before it is believed: None when it is bound to a dead server, an order
        that failed before this call, or one that is ours. One that this call placed and that failed already
        is handed on like one under way, so that whoever waits for it reports it: only the user starts a
        second purchase.
        """
        if isinstance(answer, m.Order):
            try:
                order = self.request.client.orders.get(answer.invoice_id)
            # it is paid for all the same: what waits for it looks again, and by then it is recorded
            except HostingError:
                order = answer
            if order.is_failed and not self._was_just_placed(order):
                self.request.info(
                    f"an earlier order for server {self.name!r}, {order.invoice_id}, ended as "
                    f"{order.status} and its charge was returned: ordering again"
                )
                return None
            if order.is_active and order.server_id is not None:
                server = self._alive(order.server_id, order.server_name)
                return (
                    Ordered(server, order, charged=order.amount, invoice_id=order.invoice_id)
                    if server
                    else None
                )
            self.request.ownership.add(self.request.identity, f"{ORDER_PREFIX}{order.invoice_id}")
            return Ordered(None, order, charged=order.amount, invoice_id=order.invoice_id)
        if answer.root_password is not None and answer.root_password.reveal():
            # A replay shows no secret, so this is the first answer: it need not be read to be believed, and
            # reading could only lose it. Whoever has the name's turn next must see whose it is.
            self.request.ownership.add(self.request.identity, str(answer.server.id))
            return Ordered(answer.server, None, answer.root_password, answer.charged, answer.invoice_id)
        server = self._alive(answer.server.id, answer.server.name)
        if server is None:
            return None
        reason, attempts = (
            "this resource's idempotency key names it",
            answer.meta.attempts if answer.meta else 1,
        )
        return Ordered(
            server,
            None,
            None,
            answer.charged,
            answer.invoice_id,
            found=True,
            reason=reason,
            attempts=attempts,
        )

    def _was_just_placed(self, order: m.Order) -> bool:
        """Whether this call placed the order: its answer may be a replay to a key of an earlier run."""
        return (
            self.began is not None
            and order.created_at is not None
            and order.created_at > self._started() - _CLOCKS_DIFFER
        )

    def _started(self) -> datetime:
        """When the first request was sent, by the service's clock; now, if none was. Not asked for before
        that, since hardly anybody needs it."""
        clock, began = self.request.clock, self.began
        return self.request.service_now() - timedelta(
            seconds=0.0 if began is None else clock.monotonic() - began
        )

    def _accepted_in_part(self, error: InvalidResponse) -> Ordered | None:
        """What an accepted order came to whose answer could be read in part, by the ids in it; None where
        they do not lead on.
        """
        server_id, invoice_id = error.partial.get("server_id"), error.partial.get("invoice_id")
        try:
            if server_id is not None:
                server = self._alive(server_id, None)
                return (
                    Ordered(server, None, error.partial.get("root_password"), error.charged, invoice_id)
                    if server
                    else None
                )
            if invoice_id is not None:
                return self._accepted(self.request.client.orders.get(invoice_id))
        except (ApiError, InvalidResponse):
            return None
        return None

    def _alive(self, server_id: int, ordered_as: str | None) -> m.Server | None:
        """The server an answer names, if it lives and is still what was ordered. Raises ResourceConflict
        for one that was renamed since.
        """
        if str(server_id) in self.request.owned | self.request.ownership.of_others(self.request.identity):
            return None
        try:
            server = self.request.client.servers.get(server_id)
        except NotFound:
            return None
        if server.is_gone:
            return None
        if ordered_as and server.name != ordered_as:
            if self.request.name_is_identity:
                refuse_renamed_order(self.request, self.name, server, self.attempt)
                return None  # under its new name it is another declaration's
            # A replay cannot tell whether it was lost and renamed by hand, or belongs to a declaration that
            # was renamed with it.
            raise ResourceConflict(
                f"this resource's order already created server {server.id}, now named {server.name!r}; "
                f"nothing was ordered. Next: {if_renamed(server.name)}set adopt_id to {server.id} to take it "
                f"over, or order_attempt to {self.attempt + 1} to order another",
                id=str(server.id),
            )
        return server

    def _proven(self) -> Ordered | None:
        """The server an interrupted run of this declaration ordered, shown by its key; None without proof.

        An order goes out with a key only where all keys before it are bound, so the first key that is not
        bound ends the search. Asking binds that one key; the next probe and the next order see it as bound
        and go on.
        """
        for key in self.keys():
            if not self._is_bound(key):
                return None
            try:
                answer = self.request.client.call("create_server", body=self.body, idempotency_key=key)
            except ApiError:
                continue  # bound to a refusal, or to another body: no proof in this generation
            if accepted := self._accepted(answer):
                self.request.info(f"order {accepted.invoice_id} of an interrupted run was found by its key")
                return accepted
        return None

    def _is_bound(self, key: str) -> bool:
        return key_is_used(
            lambda: self.request.client.servers.renew(nonexistent_id(), months=1, idempotency_key=key)
        )

    def _contradicted(self, error: ApiError) -> bool:
        client = self.request.client
        try:
            if isinstance(error, InsufficientFunds):
                return error.required is not None and client.balance.get().balance >= error.required
            if error.code in ("no_capacity", "tariff_unavailable"):
                return client.catalog.tariff(self.body.tariff_id).in_stock is True
            if error.code == "os_not_allowed":
                return any(
                    image.slug == self.body.os
                    for image in client.catalog.os_images(tariff_id=self.body.tariff_id)
                )
        except (Forbidden, NotFound):
            return False
        return False

    def _money_unmoved(self) -> bool:
        """Whether no money is missing for a server that does not exist: every purchase since we began
        names its server or was returned.
        """
        try:
            return not list(self._unexplained_invoices())
        except (ApiError, TransportError):
            return False

    def _unexplained_invoices(self) -> Iterator[int]:
        net: dict[int, Decimal] = {}
        started = self._started()
        for movement in self.request.client.balance.transactions(since=started - _MONEY_WINDOW):
            if movement.invoice_id is not None:
                sign = 1 if movement.direction == "debit" else -1
                net[movement.invoice_id] = net.get(movement.invoice_id, Decimal(0)) + sign * movement.amount
        for invoice_id, amount in net.items():
            if amount > 0:
                invoice = self.request.client.invoices.get(invoice_id)
                if invoice.type == "vds_purchase" and not any(item.server_id for item in invoice.items or ()):
                    yield invoice_id
