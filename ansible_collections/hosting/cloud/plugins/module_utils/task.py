# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One task: its options, the client that it uses, and what it has done so far.

The same :class:`ModuleTask` is run by the controller and by a module's process. Documentation and options of
the modules must be readable where ``pulumi_hosting`` is not installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from .failures import words
from .json_types import Json, Values
from .planned_account import PlannedStorage, PlannedTransport
from .run_memory import RunMemory
from .version import VERSION

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.api import models as m
    from pulumi_hosting.client.client import Client
    from pulumi_hosting.client.exceptions import HostingError, InvalidInput
    from pulumi_hosting.client.requests import HttpRequest
    from pulumi_hosting.client.shared_store import Scope
    from pulumi_hosting.exactly_once import purchase_journal
    from pulumi_hosting.planning.budget import Budget, Limit
    from pulumi_hosting.planning.monthly_budget import MonthlyBudget
    from pulumi_hosting.session.account_snapshot import AccountSnapshot
    from pulumi_hosting.session.cost import Cost
    from pulumi_hosting.session.errors import LimitExceeded
    from pulumi_hosting.session.own_writes import is_unknown
    from pulumi_hosting.session.request import Request
    from pulumi_hosting.session.session import Session
    from pulumi_hosting.session.shared_reads import Reads


PAYMENTS = frozenset({"renew_server", "renew_domain", "pay_invoice"})
PURCHASES = frozenset({"create_server", "add_server_ip", "register_domain", "transfer_domain"})


@dataclass(frozen=True)
class TaskProgress:
    """What a task has done so far, should it fail later. ``what``: in words, such as ``server 20001 exists``.
    ``result``: what its result says of it (``changed``, ``charge``, the object)."""

    what: str
    result: Callable[[], Json]


def new_client(params: Values, read_only: bool) -> Client:
    """A client for a task's options."""
    return Client(
        params["api_key"],
        params["base_url"],
        timeout=params["timeout"],
        rate_limit_timeout=params["rate_limit_timeout"],
        store=params.get("store"),
        read_only=read_only,
        user_agent=f"ansible hosting.cloud/{VERSION}",
    )


@dataclass
class ModuleTask:
    """One task.

    - ``params``: its options. ``written``: those that it names, since "not given" and "null" differ.
    - ``diff``: whether the result shows what changes. ``refusal``: why the options cannot be used; None if
      they can.
    - ``memory``: what the tasks of the run know of each other.
    - ``open_client``: makes a client for the options; the flag says whether it only reads.
    - ``tell``: shows a line at once, for the person who waits; None where only the result is shown.
    - ``warnings``, ``secrets``: lines to show with the result, and values to mask in it.
    """

    params: Values
    written: frozenset[str]
    check_mode: bool
    diff: bool
    memory: RunMemory
    refusal: str | None = None
    open_client: Callable[[Values, bool], Client] = new_client
    tell: Callable[[str], None] | None = None
    warnings: list[str] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)

    given: Values = field(init=False)
    """The options that it names, without nulls: templates omit options with a null."""
    charge_name: str | None = None
    """What names the task's charge among those of the run: an invoice, or the object that was bought."""
    booking: tuple[str, Cost] | None = None
    """The purchase that was booked last: its identity, and its announced price."""
    unreported: list[tuple[Scope, str]] = field(default_factory=list)
    """The entries of the journal about purchases that the task's result reports."""
    progress: TaskProgress | None = None
    wrote: bool = False
    """Whether a request of the task, other than an order or a payment, has changed something."""
    in_doubt: bool = False
    """Whether the last order or payment may have been carried out though no answer says so."""
    lost_answer: bool = False
    """Whether that was so of any of them."""
    payment: Values | None = None
    """The answer of the task's payment: a renewal, or an invoice."""
    refund: Json | None = None
    """What the task's deletion credited to the balance."""
    replayed: bool = False
    """Whether the last order was one that another process had sent: the password in its answer was blank."""

    own_reads: list[Reads] = field(default_factory=list)
    """The reads of its requests that share none with other tasks. They follow the task's writes too."""

    def __post_init__(self) -> None:
        self.given = {
            name: value for name, value in self.params.items() if name in self.written and value is not None
        }

    def chosen(self, names: Iterable[str]) -> Json:
        """Those of its options that have a value, given or by default."""
        return {name: value for name in names if (value := self.params.get(name)) is not None}

    def warn(self, warning: str) -> None:
        """Show a line with the result."""
        self.warnings.append(warning)

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these values in the result and in messages."""
        self.secrets.update(secrets)

    def hide_secrets_of(self, record: Any) -> None:
        """Mask the secret fields of a state or of an action's result."""
        secret = record.secret_fields()
        self.hide(str(value) for name, value in record.values().items() if name in secret and value)

    def client(self, read_only: bool) -> Client:
        """A client for the task's key and address, whose requests the task observes."""
        client = self.open_client(self.params, read_only)
        client.rate_limiter.on_wait = self.tell or self.warn
        client.words = words()
        transport: Any = client.transport
        if isinstance(transport, PlannedTransport):  # of an earlier task: loop items share a client
            transport = transport.inner
        # What check mode is shown is not what the account has.
        client.observer = None if self.check_mode else self.observe
        client.key_owner.ask = lambda: self.memory.owner_of(client)
        planned: Any = PlannedTransport(transport, self.memory)
        client.transport = planned if self.check_mode else transport
        return client

    def observe(self, request: HttpRequest, outcome: object) -> None:
        """Remember what an attempt of a request has done: bought, paid or changed something, or perhaps
        bought something."""
        operation, failed = request.operation, isinstance(outcome, HostingError)
        self.memory.observe(request, outcome)
        for reads in self.own_reads:
            reads.observe(request, outcome)
        if operation.id in PURCHASES | PAYMENTS:
            self.in_doubt = is_unknown(outcome)
            self.lost_answer |= self.in_doubt
        if operation.id in PURCHASES:
            if isinstance(outcome, m.ServerCreated):
                # A replay shows no secret (API document, "Idempotency").
                password = (outcome.raw or {}).get("root_password")
                given = "password" in json.loads(request.body or b"{}")
                self.replayed = not password and (password == "" or not given)
        elif not failed and operation.id in PAYMENTS:
            self.payment = getattr(outcome, "raw", None) or {}
        elif not failed and operation.is_write:
            self.wrote = True

    def request(self, what: str, *, read_only: bool | None = None, shared: bool = False) -> Request:
        """The task as ``pulumi_hosting`` sees it. ``what`` names its object, so that an interrupted run is
        recognised.

        Raises ``InvalidInput``.
        """
        params = self.params
        if (params.get("wait_timeout") or 0) < 0:
            raise InvalidInput({"wait_timeout": "must be seconds: 0 or more"})
        client = self.client(self.check_mode if read_only is None else read_only)
        if shared:
            reads = self._shared_reads(client.transport)
        else:
            reads = Reads()
            self.own_reads.append(reads)
        session = Session(client, reads=reads, declared_mode=params.get("mode"))
        session.paying = MonthlyBudget.of(params).paying
        return Request(
            session,
            identity=f"ansible:{params.get('idempotency_scope') or ''}/{what}",
            name_is_identity=True,
            keeps_secrets=bool(params.get("root_password_file")),
            unreported=self.unreported,
            wait_timeout=0.0 if params.get("wait") is False else params.get("wait_timeout") or 0.0,
            is_declared=self.memory.is_declared,
            warn=self.warn,
            is_first=self.memory.is_first,
        )

    def _shared_reads(self, transport: Any) -> Reads:
        """The reads of the run; in check mode as they would be after the planned changes."""
        if not (self.check_mode and self.memory.effects):
            return self.memory.reads
        if self.memory.key_is_revoked:  # it is refused, whatever is known
            return Reads()
        reads = copy(self.memory.reads)
        reads.snapshot = AccountSnapshot(PlannedStorage(self.memory.snapshots, self.memory, transport))
        return reads

    @property
    def budget(self) -> Budget:
        """The task's share of what the run may charge."""
        limit = replace(Limit.of(self.params), booked=self.memory.allowance)
        return Budget(limit, self.memory, MonthlyBudget.of(self.params))

    def approve(self, identity: str, budget: Budget, cost: Cost | None) -> None:
        """Book a charge before it is made. Raises ``LimitExceeded`` if it would exceed the limit."""
        refusal = budget.unpriced() if cost is None else budget.book(identity, cost)
        if self.check_mode and cost is not None and refusal is None:
            refusal = budget.beyond_month(identity, self.client(True), cost)
        if refusal and not (cost is None and self.client(True).is_test_key):
            raise LimitExceeded(refusal)
        self.booking = None if cost is None else (identity, cost)

    def was_reported(self) -> None:
        """Its result says what was bought: the journal need not."""
        if self.unreported:
            purchase_journal.reported(self.unreported)

    def only_priced(self) -> ModuleTask:
        """The same task in check mode, to learn and book its price. Files belong to the process that does the
        work."""
        return replace(
            self,
            check_mode=True,
            params={name: None if name.endswith("_file") else value for name, value in self.params.items()},
            memory=self.memory.without_planned(),
        )
