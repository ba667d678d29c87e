"""Ordering a server once (API document, "Servers" and "Orders"): what is special about it.

``POST /servers`` is keyed; names are not unique; a 202 order is not among the servers yet. So the look of
:class:`~pulumi_hosting.exactly_once.purchase.Purchase` has three steps:

1. *Quiesce*: wait for orders of this name that are still provisioning, since it cannot be seen yet what they
   become.
2. *Walk* the living servers. One with our ownership tag is ours, and is taken over while the keys are
   remembered; after that it takes a person's word, since nothing else tells a lost server from another
   backend's. If the name itself is the identity, the server of that name is meant.
3. *Prove* that any other of the name is ours, or stop: a second server is never bought beside an unexplained
   one. A free question shows which keys are bound to an order; the last of them is sent once more with its
   order, whose replay names the server.

Of several tariffs, the next one is ordered if the service says that it cannot sell this one. Each goes under
its own key, the next of the same declaration. Whichever a killed run has ordered, its key is bound, and a
proof sends it with the body of every tariff. So a list buys once too, whatever is in stock again by then, and
in whatever order it is written.

The first key is that of the generation that this machine remembers, else 0: one request if the name is new,
or its last server is gone and this machine knows that; three at most.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import (
    ApiError,
    CallError,
    Forbidden,
    HostingError,
    InvalidResponse,
    NoCapacity,
    NotFound,
)
from pulumi_hosting.exactly_once import catalog_reads, generation, order_facts, server_search
from pulumi_hosting.exactly_once.generation import ORDER_PREFIX
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing, KeyWalk, ask
from pulumi_hosting.exactly_once.purchase import Purchase, When
from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS
from pulumi_hosting.session.errors import AmbiguousMatch, Failed, ResourceConflict
from pulumi_hosting.session.request import Request

_NAMED_BY_KEY = "this resource's idempotency key names it"


@dataclass(frozen=True, slots=True)
class Ordered:
    """What an order came to. ``made``: the server, or its order while that is under way. The password only if
    this answer showed it.

    ``found``: it was there and is taken over, for this ``reason``. ``by_name``: its name alone is the reason.
    """

    made: m.Server | m.Order
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

    @property
    def server(self) -> m.Server | None:
        return self.made if isinstance(self.made, m.Server) else None

    @property
    def id(self) -> str:
        """That of the server; of its order while there is none."""
        made = self.made
        return f"{ORDER_PREFIX}{made.invoice_id}" if isinstance(made, m.Order) else str(made.id)


def _is_of_an_order(invoice: m.Invoice) -> bool:
    return invoice.type == "vds_purchase" and not any(item.server_id for item in invoice.items or ())


@dataclass(init=False, repr=False)
class ServerOrder(Purchase[m.ServerCreated | m.Order, Ordered]):
    """One declaration's order. ``body`` is what ``POST /servers`` is sent, with a name; ``others``: the
    tariffs that are ordered if its own cannot be, in order of preference.

    ``carry_out`` finds what an interrupted run bought, else buys. It raises what ``Purchase`` raises,
    ResourceConflict, AmbiguousMatch, WaitTimeout or LocalFilesError.
    """

    body: m.ServerCreate
    send: Callable[..., m.ServerCreated | m.Order]
    turn: Callable[[], AbstractContextManager[object]]
    under_way = 30.0

    def __init__(
        self, request: Request, body: m.ServerCreate, attempt: int = 0, others: Sequence[int] = ()
    ) -> None:
        self.attempt, self.name, self.os = attempt, body.name or "", body.os
        self.bodies = [body, *(body.model_copy(update={"tariff_id": id}) for id in others)]
        super().__init__(request, f"order of server {self.name!r}", "server", concerns=_is_of_an_order)
        self._choose([])
        self.turn = partial(order_facts.turn_of_name, request, self.name)

    @property
    def keys(self) -> KeyRing:
        """The keys of this declaration. What is ordered is no part of them."""
        return KeyRing.of(self.request.client, self.request.identity, "create_server", attempt=self.attempt)

    def accept(self, answer: m.ServerCreated | m.Order, walk: KeyWalk) -> Ordered | None:
        """An accepted order, whose key this machine remembers."""
        ordered = self._accepted(answer)
        if ordered is not None:
            generation.remember(self.request, self.attempt, walk.generation, ordered.id)
        return ordered

    @property
    def tariff_id(self) -> list[int]:
        """Those of which a server is this declaration's."""
        return [body.tariff_id for body in self.bodies]

    def sends(self) -> Iterable[Callable[..., m.ServerCreated | m.Order]]:
        """The orders of all tariffs."""
        return [partial(self.request.client.call, "create_server", body=body) for body in self.bodies]

    def _choose(self, refused: list[str]) -> None:
        """Send the first tariff after those that were refused."""
        self._refused, self.body = refused, self.bodies[len(refused)]
        self.send = partial(self.request.client.call, "create_server", body=self.body)

    def instead(self, error: CallError) -> bool:
        """The next tariff, if this one cannot be had. Raises ``Failed`` if it was the last of several."""
        if not isinstance(error, NoCapacity) or len(self.bodies) == 1:
            return False
        named = catalog_reads.tariff_called(self.request, self.body.tariff_id)
        refused = [*self._refused, f"{named}: {error.args[0]} ({error.status} {error.code})"]
        if len(refused) == len(self.bodies):
            what = f"server {self.name!r}: none of its tariffs can be ordered: {'; '.join(refused)}"
            step = "Next: add another tariff at the end of the list, or run again later"
            raise self._decided(Failed(f"{what}; nothing was ordered. {step}", error))
        self._choose(refused)
        now = catalog_reads.tariff_called(self.request, self.body.tariff_id)
        self.request.tell(f"{refused[-1]}; ordering {now} instead")
        return True

    def walk(self) -> KeyWalk:
        self._choose([])
        known = self.request.owned | self.request.gone
        first = generation.first(self.request, self.attempt, known)
        return KeyWalk(self.keys, first, ask(self.request.client))

    # --- the steps

    def look(self, when: When) -> Ordered | None:
        if when == "lost":
            return None  # the same key, sent again by the next run, tells all
        if when != "before":
            self.request.reads.forget(ORDERS_AND_SERVERS)
        found = self._found(is_ours=when != "before")
        if found is not None and when == "conflict":
            self._refuse_another_order(found.server)
        return found

    def _refuse_another_order(self, server: m.Server | None) -> None:
        """Of two different orders for one declaration at the same moment the second stops."""
        if server and not self.request.name_is_identity and self.is_of_this_call(server.created_at):
            raise ResourceConflict(
                f"another run ordered server {server.id} ({server.name}) for this resource at the same "
                f"moment, with other inputs; nothing was ordered. Next: run again with the inputs of that "
                f"run, or set adopt_id={server.id} to take it over",
                id=str(server.id),
            )

    def _found(self, *, is_ours: bool) -> Ordered | None:
        """``is_ours``: what carries the tag may be of this call, whatever its age."""
        request = self.request
        order_facts.wait_for_orders(request, self)
        order_facts.refuse_late_order(request, self.name, self.attempt)
        same_name = server_search.candidates(request, lambda server: server.name == self.name)
        if request.name_is_identity:
            if len(same_name) > 1:
                raise AmbiguousMatch(f"server name {self.name!r}", [str(server.id) for server in same_name])
            reason = "it has the name"
            return Ordered(same_name[0], found=True, by_name=True, reason=reason) if same_name else None
        own = server_search.find_tagged(request, self, attempt=self.attempt, lenient=is_ours)
        if own is not None:
            return Ordered(own, found=True, reason=server_search.TAGGED)
        if not same_name or self.attempt > 0 or request.client.is_test_key:
            return None
        may_be = any(server_search.may_be_proven(request, server) for server in same_name)
        proven = self._proven() if may_be else None
        if proven is None:
            raise server_search.name_conflict(request, same_name[0], self.attempt)
        if proven.server is not None and not is_ours:
            server_search.must_be_allowed(
                request, proven.server, "is named by this resource's idempotency key", self.attempt
            )
        return proven

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
            is_new = self.is_of_this_call(order.created_at)  # else the answer is a replay
            if order.is_failed and not is_new:
                self.request.warn(
                    f"an earlier order for server {self.name!r}, {order.invoice_id}, ended as "
                    f"{order.status} and its charge was returned: ordering again"
                )
                return None
            ordered = Ordered(order, None, order.amount, order.invoice_id, not is_new, reason=_NAMED_BY_KEY)
            if order.is_active and order.server_id is not None:
                server = self._alive(order.server_id, order.server_name)
                return replace(ordered, made=server) if server else None
            self.request.ownership.add(self.request.identity, ordered.id)
            return ordered
        if answer.root_password:
            # A replay shows no secret, so this is the first answer: it need not be read to be believed, and
            # reading could only lose it. Whoever has the name's turn next must see whose it is.
            self.request.ownership.add(self.request.identity, str(answer.server.id))
            return Ordered(answer.server, answer.root_password, answer.charged, answer.invoice_id)
        server = self._alive(answer.server.id, answer.server.name)
        paid, attempts = (answer.charged, answer.invoice_id), answer.meta.attempts if answer.meta else 1
        return Ordered(server, None, *paid, True, False, _NAMED_BY_KEY, attempts) if server else None

    def in_part(self, error: InvalidResponse) -> Ordered | None:
        """What an accepted order came to whose answer could be read in part, by the ids in it; None if
        they do not lead on.
        """
        server_id, invoice_id = error.partial.get("server_id"), error.partial.get("invoice_id")
        with suppress(ApiError, InvalidResponse):
            if server_id is not None:
                server, password = self._alive(server_id, None), error.partial.get("root_password")
                return Ordered(server, password, error.charged, invoice_id) if server else None
            if invoice_id is not None:
                return self._accepted(self.request.client.orders.get(invoice_id))
        return None

    def _alive(self, server_id: int, ordered_as: str | None) -> m.Server | None:
        """The server an answer names, if it lives and is still what was ordered. Raises ResourceConflict
        for one that was renamed since.
        """
        if self.request.has_owner(str(server_id)):
            return None
        server = order_facts.living_server(self.request, str(server_id))
        if server is not None and ordered_as and server.name != ordered_as:
            server_search.refuse_renamed_order(self.request, self.name, server, self.attempt)
            return None  # under its new name it is another declaration's
        return server

    def _proven(self) -> Ordered | None:
        """The server that an interrupted run of this declaration ordered, shown by its key; None without
        proof.
        """
        first = generation.first(self.request, self.attempt, frozenset())
        for answer, walk in self.replays(KeyWalk(self.keys, first, ask(self.request.client)), 3):
            if accepted := self.accept(answer, walk):
                self.request.info(f"order {accepted.invoice_id} of an interrupted run was found by its key")
                return accepted
        return None

    def is_outdated(self, error: ApiError, /) -> bool:
        catalog = self.request.client.catalog
        with suppress(Forbidden, NotFound):
            if isinstance(error, NoCapacity):
                return catalog.tariff(self.body.tariff_id).in_stock is True
            if error.code == "os_not_allowed":
                images = catalog.os_images(tariff_id=self.body.tariff_id)
                return any(image.slug == self.body.os for image in images)
        return False
