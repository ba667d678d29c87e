"""One request in the pipeline, and what a handler may do with it.

For a test key every write is simulated (:attr:`Call.simulated`): the same checks and prices, but rows are
copied or never added, no money moves and no event is sent. A handler is written once for both modes: it
changes a :meth:`Call.draft`, adds rows with :meth:`Call.add` and pays through :meth:`Call.purchase`.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.emulator import cursors, faults, ledger
from pulumi_hosting.emulator.ledger import Cause
from pulumi_hosting.emulator.messages import ApiError, Request, Response
from pulumi_hosting.emulator.rows import Account, Address, Domain, Invoice, Key, RequestLog, Row, Server
from pulumi_hosting.emulator.scheduler import Scheduler
from pulumi_hosting.emulator.store import Store

T = TypeVar("T", bound=Row)


@dataclass(slots=True)
class Call:
    """A request, what the steps of the pipeline found out about it, and the store and scheduler to answer it
    from. ``operation`` is set by its step, ``key`` and ``account`` by authentication.
    """

    store: Store
    scheduler: Scheduler
    request: Request
    now: float
    request_id: str = ""
    request_log: RequestLog | None = None
    operation: Operation = field(init=False)
    key: Key = field(init=False)
    account: Account = field(init=False)
    known_key: Key | None = None
    raw_ids: Mapping[str, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    raw_query: dict[str, str] = field(default_factory=dict)
    query: Any = None
    data: Any = None
    body: Any = None
    idempotency_key: str | None = None
    fingerprint: str = ""
    fault: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    # --- caller and operation

    @property
    def dialect(self) -> str:
        return self.store.service.dialect

    @property
    def simulated(self) -> bool:
        """Whether this write is only simulated."""
        return self.key.is_test and self.operation.sandbox == "fake"

    @property
    def cause(self) -> Cause:
        return Cause(
            self.operation.id, self.idempotency_key, self.request_log.id if self.request_log else None
        )

    # --- reading

    def own(self, kind: type[T], id: int) -> T:
        """A row of this account; 404 for every other id."""
        row: T | None = self.store.tables[kind.kind].get(id)
        if row is None or getattr(row, "account_id", None) != self.account.id:
            raise ApiError("not_found")
        return row

    def can_see(self, server: Server) -> bool:
        """A sandbox server is visible only to the key that created it."""
        return server.account_id == self.account.id and (
            server.owner_key_id is None or server.owner_key_id == self.key.id
        )

    def server(self, *, gone: bool = False) -> Server:
        """The server named in the path. Deleted servers are found with ``gone``, or if ``deleted_servers`` is
        ``listed``.
        """
        server = self.store.servers.get(self.ids["server_id"])
        if server is None or not self.can_see(server):
            raise ApiError("not_found")
        if server.is_gone and not gone and self.store.service.variants["deleted_servers"] == "gone":
            raise ApiError("not_found")
        return server

    def changeable(self, *statuses: str, gone: bool = False) -> Server:
        """The server named in the path, if it may be changed: not blocked, in one of ``statuses``, with no
        change in progress.
        """
        server = self.server(gone=gone)
        if server.blocked:
            raise ApiError("server_blocked")
        if server.status not in statuses:
            raise ApiError("service_state", details={"status": server.status})
        if server.id in self.store.changing:
            raise ApiError("operation_in_progress")
        if server.busy:
            raise ApiError("operation_in_progress", f"{server.busy} is running")
        return server

    def domain(self, *, change: bool = False) -> Domain:
        domain = self.own(Domain, self.ids["domain_id"])
        if change and domain.blocked:
            raise ApiError("domain_blocked")
        return domain

    def addresses(self, server: Server) -> list[Address]:
        return list(self.store.of(Address, server.id).values())

    def page(self, rows: Iterable[T], view: Callable[[T], dict[str, Any]]) -> Response:
        """One page of ``rows``, which are filtered and sorted newest first."""
        signed = cursors.Cursors(
            self.store.seed, self.operation.id, self.account.id, self.key.mode, self.raw_query
        )
        after = None if self.query.cursor is None else signed.read(self.query.cursor)
        found, more = cursors.cut(rows, self.query.limit or cursors.DEFAULT_LIMIT, after)
        next_cursor = signed.write(found[-1].seq) if more else None
        return Response(200, {"data": [view(row) for row in found], "next_cursor": next_cursor})

    # --- writing

    def draft(self, row: T) -> T:
        """The row to change: itself, or in a simulation a copy that is dropped after the answer.

        With the behaviour variant ``sandbox_echo: server`` a sandbox server itself is changed, so that later
        reads show it.
        """
        if not self.simulated or (isinstance(row, Server) and self.changes(row)):
            return row
        return copy.copy(row)

    def changes(self, server: Server) -> bool:
        """Whether a change of this server, its addresses or its reverse DNS is kept."""
        return not self.simulated or (
            server.is_sandbox and self.store.service.variants["sandbox_echo"] == "server"
        )

    def add(self, row: T) -> T:
        """Add a new row, unless this is a simulation."""
        return row if self.simulated else self.store.add(row)

    def purchase(
        self,
        type: str,
        amount: Decimal,
        description: str,
        *,
        server_id: int | None = None,
        domain_id: int | None = None,
        period: tuple[float, float] | None = None,
    ) -> Invoice | None:
        """Pay ``amount`` now, with an invoice; ``None`` in a simulation. 402 when the balance does not cover
        it.

        The fault ``refunded`` applies here: charged, failed at the panel or registrar, credited back.
        """
        ledger.require(self.account, amount)
        if self.simulated:
            if "refunded" in self.fault:
                raise faults.refusal(self.fault, "refunded")
            return None
        invoice = ledger.new_invoice(
            self.store,
            self.account,
            type,
            amount,
            description,
            self.now,
            server_id=server_id,
            domain_id=domain_id,
            period=period,
        )
        ledger.pay(self.store, self.account, invoice, self.now, self.cause)
        if "refunded" in self.fault:
            ledger.credit_back(self.store, self.account, invoice, amount, self.now, self.cause)
            raise faults.refusal(self.fault, "refunded")
        return invoice

    def balance_after(self, amount: Decimal) -> Decimal:
        """The balance after paying ``amount``; in a simulation what it would be."""
        return self.account.balance - amount if self.simulated else self.account.balance
