"""One request in the pipeline, and what a handler may do with it.

For a test key every write is simulated (:attr:`Call.simulated`): the same checks and prices, but rows are
copied or never added, no money moves and no event is sent. A handler is written once for both modes: it
changes a :meth:`Call.draft`, adds rows with :meth:`Call.add` and pays through :meth:`Call.purchase`.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

from itsdangerous import BadData, URLSafeSerializer
from pydantic import BaseModel

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.emulator import faults, ledger, pricing, serializers
from pulumi_hosting.emulator import rows as r
from pulumi_hosting.emulator.formats import View, shown_as
from pulumi_hosting.emulator.ledger import Cause
from pulumi_hosting.emulator.messages import Answer, ApiRequest, Refusal, invalid
from pulumi_hosting.emulator.periods import DAY_SECONDS
from pulumi_hosting.emulator.store import Store

T = TypeVar("T", bound=r.Row)

DEFAULT_LIMIT = 50


@dataclass(slots=True)
class Call:
    """A request, what the steps of the pipeline found out about it, and the store to answer it
    from. ``operation`` is set by its step, ``key`` and ``account`` by authentication.
    """

    store: Store
    request: ApiRequest
    request_log: r.RequestLog
    now: float
    request_id: str = ""
    operation: Operation = field(init=False)
    key: r.KeyRow = field(init=False)
    account: r.AccountRow = field(init=False)
    raw_ids: Mapping[str, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    raw_query: dict[str, str] = field(default_factory=dict)
    query: Any = None
    data: View | None = None
    body: Any = None
    idempotency_key: str | None = None
    asked: r.StoredResponse | None = None
    fault: r.Columns = field(default_factory=dict)
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
        return Cause(self.operation.id, self.idempotency_key, self.request_log.id)

    # --- reading

    def own(self, kind: type[T], id: int) -> T:
        """A row of this account; 404 for every other id."""
        row: T | None = self.store.tables[kind.kind].get(id)
        if row is None or getattr(row, "account_id", None) != self.account.id:
            raise Refusal("not_found")
        return row

    def can_see(self, server: r.ServerRow) -> bool:
        """A sandbox server is visible only to the key that created it."""
        return server.account_id == self.account.id and (
            server.owner_key_id is None or server.owner_key_id == self.key.id
        )

    def server(self, *, gone: bool = False) -> r.ServerRow:
        """The server named in the path. Deleted servers are found with ``gone``, or if ``deleted_servers`` is
        ``listed``.
        """
        server = self.store.servers.get(self.ids["server_id"])
        if server is None or not self.can_see(server):
            raise Refusal("not_found")
        if server.is_gone and not gone and self.store.service.readings["deleted_servers"] == "gone":
            raise Refusal("not_found")
        return server

    def changeable(self, *statuses: str, gone: bool = False) -> r.ServerRow:
        """The server named in the path, if it may be changed: not blocked, in one of ``statuses``, with no
        change in progress.
        """
        server = self.server(gone=gone)
        if server.blocked:
            raise Refusal("server_blocked")
        if server.status not in statuses:
            raise Refusal("service_state", details={"status": server.status})
        if server.id in self.store.changing:
            raise Refusal("operation_in_progress")
        if server.busy:
            raise Refusal("operation_in_progress", f"{server.busy} is running")
        return server

    def domain(self, *, change: bool = False) -> r.DomainRow:
        domain = self.own(r.DomainRow, self.ids["domain_id"])
        if change and domain.blocked:
            raise Refusal("domain_blocked")
        return domain

    def check_not_early(self, until: float | None) -> None:
        """``conflict`` if what is paid until then may not be renewed yet."""
        is_early = until is not None and until - self.now > DAY_SECONDS
        if is_early and self.store.service.readings["early_renewal"] == "last_day":
            raise Refusal("conflict", "it is too early: the last day of the paid period has not begun")

    def addresses(self, server: r.ServerRow) -> list[r.AddressRow]:
        return list(self.store.of(r.AddressRow, server.id).values())

    def view(self, row: r.Row) -> View:
        """A row as the API shows it."""
        return serializers.view_of(row, self.store)

    def answer(self, code: int, row: object = None, /, **own: object) -> Answer:
        """An answer with the fields that the operation has for ``code``, its money in the currency of the
        account.
        """
        model: type[BaseModel] = self.operation.responses[code]
        if "currency" in model.model_fields:
            own["currency"] = self.account.currency
        return Answer(code, shown_as(model, row, **own))

    def listing(self, rows: Iterable[r.Row], **more: object) -> Answer:
        """All of ``rows``."""
        return Answer(200, {"data": [self.view(row) for row in rows], **more})

    def page(self, rows: Iterable[r.Row]) -> Answer:
        """The page of ``rows``, which are filtered and sorted newest first, at the cursor of the query.

        Cursors are signed: one is valid only for the operation and its ids, the account, the mode and the
        filters of its list. 400 ``invalid_cursor`` for one that is damaged or of another list.
        """
        # The page size is not signed: it may change between pages.
        filters = {name: self.raw_query[name] for name in sorted({*self.raw_query} - {"cursor", "limit"})}
        facts = (self.operation.id, self.account.id, self.key.mode, {**filters, **self.raw_ids})
        salt, method = json.dumps(facts, separators=(",", ":")), {"digest_method": sha256}
        signed = URLSafeSerializer(f"cursor:{self.store.seed}", salt, signer_kwargs=method)
        if (cursor := self.query.cursor) is not None:
            try:
                after: int = signed.loads(cursor)
            except BadData as error:
                raise Refusal("invalid_cursor") from error
            # base64 has several spellings of the same bytes; only ours is accepted
            if signed.dumps(after) != cursor:
                raise Refusal("invalid_cursor")
            rows = (row for row in rows if row.seq < after)
        limit = self.query.limit or DEFAULT_LIMIT
        found = list(islice(rows, limit + 1))
        next_cursor = str(signed.dumps(found[limit - 1].seq)) if len(found) > limit else None
        return self.listing(found[:limit], next_cursor=next_cursor)

    # --- writing

    def draft(self, row: T) -> T:
        """The row to change: itself, or in a simulation a copy that is dropped after the answer.

        With the behaviour variant ``sandbox_echo: server`` a sandbox server itself is changed, so that later
        reads show it.
        """
        if not self.simulated or (isinstance(row, r.ServerRow) and self.changes(row)):
            return row
        return copy.copy(row)

    def changes(self, server: r.ServerRow) -> bool:
        """Whether a change of this server, its addresses or its reverse DNS is kept."""
        return not self.simulated or (
            server.is_sandbox and self.store.service.readings["sandbox_echo"] == "server"
        )

    def add(self, row: T) -> T:
        """Add a new row, unless this is a simulation."""
        return row if self.simulated else self.store.add(row)

    def assign(self, row: r.Row) -> None:
        """Set the columns that the body of a change has. Null clears the fields that it can clear and leaves
        the others as they are.
        """
        for name in self.body.model_fields_set:
            value = getattr(self.body, name)
            if value is not None:
                setattr(row, name, value)
            elif type(self.body).clears(name):
                setattr(row, name, "")

    def check_promo(self, code: str | None) -> None:
        if code is not None and pricing.promo_problem(self.account, code) is not None:
            raise invalid(promo_code="invalid")

    def use_promo(self, code: str | None) -> None:
        """Note that the account has used this promo code."""
        if code is not None and not self.simulated:
            self.account.promo_used = [*self.account.promo_used, code.upper()]

    def purchase(self, type: str, amount: Decimal, description: str, **columns: Any) -> r.InvoiceRow | None:
        """Pay ``amount`` now, with an invoice; ``None`` in a simulation. 402 when the balance does not cover
        it. ``columns``: ``server_id`` or ``domain_id``, and ``period``.

        The fault ``refunded`` applies here: charged, failed at the panel or registrar, credited back.
        """
        ledger.require(self.account, amount)
        invoice = None
        if not self.simulated:
            invoice = ledger.new_invoice(self.store, self.account, type, amount, description, **columns)
            ledger.pay(self.store, invoice, self.cause)
        if "refunded" in self.fault:
            if invoice is not None:
                ledger.credit_back(self.store, invoice, amount, self.cause)
            raise faults.refusal(self.fault, "refunded")
        return invoice

    def balance_after(self, amount: Decimal) -> Decimal:
        """The balance after paying ``amount``; in a simulation what it would be."""
        return self.account.balance - amount if self.simulated else self.account.balance
