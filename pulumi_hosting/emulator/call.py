"""One request on its way through the gates, and what a handler may do with it.

For a test key every write is simulated (``fake``): the same checks and prices, but rows are copies or never added, no money moves, no
event is told. Handlers are written once: they ask for a :meth:`Call.draft` of what they change and pay through :meth:`Call.purchase`.
"""

import copy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.emulator import faults, ledger
from pulumi_hosting.emulator.cursors import DEFAULT_LIMIT, binding, cut, seal, unseal
from pulumi_hosting.emulator.ledger import Cause
from pulumi_hosting.emulator.messages import ApiError, Request, Response
from pulumi_hosting.emulator.rows import Account, Address, Domain, Invoice, Key, RequestLog, Row, Server
from pulumi_hosting.emulator.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pulumi_hosting.emulator.core import Core

T = TypeVar("T", bound=Row)


@dataclass(slots=True)
class Call:
    core: "Core"
    request: Request
    now: float
    request_id: str = ""
    request_log: RequestLog | None = None
    _operation: Operation | None = None
    _key: Key | None = None
    raw_ids: dict[str, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    raw_query: dict[str, str] = field(default_factory=dict)
    query: Any = None
    data: Any = None
    body: Any = None
    idempotency_key: str | None = None
    fingerprint: str = ""
    fault: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    # --- who calls what

    @property
    def store(self) -> Store:
        return self.core.store

    @property
    def dialect(self) -> str:
        return self.core.store.service.dialect

    @property
    def operation(self) -> Operation:
        if self._operation is None:
            raise RuntimeError("the operation is not known before its step")
        return self._operation

    @property
    def key(self) -> Key:
        if self._key is None:
            raise RuntimeError("the key is not known before its step")
        return self._key

    @property
    def known_key(self) -> Key | None:
        return self._key

    @property
    def account(self) -> Account:
        return self.store.accounts[self.key.account_id]

    @property
    def simulated(self) -> bool:
        """Whether this write is only simulated."""
        return self.key.is_test and self.operation.sandbox == "fake"

    @property
    def cause(self) -> Cause:
        return Cause(self.operation.id, self.idempotency_key, self.request_log.id if self.request_log else None)

    # --- what it may see

    def own(self, kind: type[T], id: int) -> T:
        """A row of this account; whatever else does not exist."""
        row: T | None = self.store.tables[kind.kind].get(id)
        if row is None or getattr(row, "account_id", None) != self.account.id:
            raise ApiError("not_found")
        return row

    def can_see(self, server: Server) -> bool:
        """Sandbox servers exist for the key that made them only."""
        return server.account_id == self.account.id and (server.owner_key_id is None or server.owner_key_id == self.key.id)

    def server(self, *, gone: bool = False) -> Server:
        """The server of the path. Deleted ones are found when ``gone``, or when the reading says that they stay listed."""
        server = self.store.servers.get(self.ids["server_id"])
        if server is None or not self.can_see(server):
            raise ApiError("not_found")
        if server.is_gone and not gone and self.store.service.variants["deleted_servers"] == "gone":
            raise ApiError("not_found")
        return server

    def changeable(self, *statuses: str, gone: bool = False) -> Server:
        """The server of the path, if it may be changed now: not blocked, in one of ``statuses``, nothing else running on it."""
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

    def page(self, rows: "Iterable[T]", view: "Callable[[T], dict[str, Any]]") -> Response:
        """One page of ``rows`` (newest first, filtered already)."""
        bound = binding(self.operation.id, self.account.id, self.key.mode, self.raw_query)
        after = None if self.query.cursor is None else unseal(self.store.seed, bound, self.query.cursor)
        found, more = cut(rows, self.query.limit or DEFAULT_LIMIT, after)
        cursor = seal(self.store.seed, bound, found[-1].seq) if more else None
        return Response(200, {"data": [view(row) for row in found], "next_cursor": cursor})

    # --- what it may change

    def draft(self, row: T) -> T:
        """The row to change: itself, or in a simulation a copy that nobody sees afterwards.

        A sandbox server is really changed when the reading ``sandbox_echo`` says that its later reads show it.
        """
        if not self.simulated:
            return row
        if isinstance(row, Server) and row.is_sandbox and self.sandbox_changes_visible:
            return row
        return copy.copy(row)

    @property
    def sandbox_changes_visible(self) -> bool:
        return bool(self.store.service.variants["sandbox_echo"] == "server")

    def changes(self, server: Server) -> bool:
        """Whether changes beside the server's row itself (addresses, reverse DNS) really happen."""
        return not self.simulated or (server.is_sandbox and self.sandbox_changes_visible)

    def keep(self, row: T) -> T:
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
        """Pay ``amount`` now, with an invoice; ``None`` in a simulation. 402 when the balance does not cover it.

        The fault ``refunded`` strikes here: charged, failed at the panel or registrar, credited back.
        """
        ledger.require(self.account, amount)
        if self.simulated:
            if "refunded" in self.fault:
                raise faults.refusal(self.fault, "refunded")
            return None
        invoice = ledger.new_invoice(
            self.store, self.account, type, amount, description, self.now, server_id=server_id, domain_id=domain_id, period=period
        )
        ledger.pay(self.store, self.account, invoice, self.now, self.cause)
        if "refunded" in self.fault:
            ledger.credit_back(self.store, self.account, invoice, amount, self.now, self.cause)
            raise faults.refusal(self.fault, "refunded")
        return invoice

    def balance_after(self, amount: Decimal) -> Decimal:
        """The balance after paying ``amount``; in a simulation what it would be."""
        return self.account.balance - amount if self.simulated else self.account.balance

    def addresses(self, server: Server) -> list[Address]:
        return list(self.store.of(Address, server.id).values())
