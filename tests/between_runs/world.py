"""An account, a frontend, and what happens to one purchase."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pulumi_hosting.provider.failures import check_failure
from pulumi_hosting.provider.provider_session import ProviderSession
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from tests.between_runs.cases import (
    ADDRESSES,
    DAY,
    DOMAINS,
    EVENTS,
    LATE,
    MEMORY,
    NEVER,
    PLENTY,
    PURCHASES,
    SERVERS,
    TOO_LATE,
    WAIT,
    Call,
    Cell,
)
from tests.simulation.frontends import OutsideControl
from tests.simulation.network import Network
from tests.simulation.playbook import Playbook
from tests.simulation.stack import Stack, StepFailed

GONE = ("cancelled", "terminated")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Look:
    """The account at one moment. ``requests``: how many it has received."""

    objects: Mapping[str, list[dict[str, Any]]]
    ledger: list[dict[str, Any]]
    requests: int

    def rows(self, kind: str, **having: Any) -> list[dict[str, Any]]:
        """The first account's."""
        having = {"account_id": self.objects["accounts"][0]["id"], **having}
        return [
            row
            for row in self.objects[kind]
            if all(row.get(name, value) == value for name, value in having.items())
        ]

    @property
    def servers(self) -> list[dict[str, Any]]:
        return [row for row in self.rows("servers") if row["status"] not in GONE]

    def debits(self, operation: str) -> list[dict[str, Any]]:
        return [row for row in self.ledger if (row["operation"], row["direction"]) == (operation, "debit")]


@dataclass
class Run:
    """A command, what it printed, and the account before and after it.

    ``failure``: None where it ended well. ``charge``: what a task reported. ``writes``: the paths of its
    requests that changed something.
    """

    command: str
    lines: list[str]
    failure: str | None
    before: Look
    after: Look
    charge: str | None = None
    writes: list[str] = field(default_factory=list)

    @property
    def moved(self) -> list[dict[str, Any]]:
        """Movements of money that the run's requests caused."""
        return [row for row in self.after.ledger if (row["request_seq"] or 0) > self.before.requests]

    def debits(self, operation: str | None = None) -> list[dict[str, Any]]:
        rows = [row for row in self.moved if row["direction"] == "debit"]
        return [row for row in rows if operation in (None, row["operation"])]

    @property
    def charged(self) -> Decimal:
        """What was charged, without what was returned at once."""
        paid = {row["invoice_id"] for row in self.debits()}
        rows = [row for row in self.moved if row["invoice_id"] in paid]
        signs = {"debit": 1, "credit": -1}
        return sum((signs[row["direction"]] * Decimal(row["amount"]) for row in rows), Decimal(0))


class _Stack(Stack):
    """Words its refusals as the provider does, and keeps the session of the latest command."""

    session: ProviderSession

    def _process(self) -> ProviderSession:
        self.session = super()._process()
        return self.session

    def _refusal(self, failures: Mapping[str, str]) -> str:
        return "; ".join(check_failure(field, reason) for field, reason in failures.items())


class World:
    """``overrides``: what a person sets because a message says so. ``story``: what happened."""

    def __init__(self, cell: Cell) -> None:
        self.cell, self.subject, self.purchase = cell, cell.subject, PURCHASES[cell.purchase]
        self.event = EVENTS[cell.event]
        late = TOO_LATE if cell.event == "arrives too late" else LATE
        provisioning = NEVER if cell.event == "never arrives" else late
        self.network = Network(
            1,
            provisioning_delay=provisioning if cell.purchase == "server 202" else 0.0,
            ip_delay=LATE if cell.purchase == "late server_ip" else 0.0,
        )
        self.key = self.network.live_key
        self.control: Any = OutsideControl(self.network, set())
        self.account = AccountCheck(self.control)
        self.stack = _Stack(self.network, "dev", native=cell.form == "native")
        self.playbook = Playbook(self.network)
        self.playbook.defaults = {"wait_timeout": WAIT}
        self.overrides: dict[str, Any] = {}
        self.story: list[str] = []
        self.runs: list[Run] = []
        self.announced: Decimal | None = None
        """What the latest preview said that will be charged, until a run follows."""
        self.orders_again = False
        """Whether a refresh said that the next run orders a server again."""
        self.is_left = False
        """Whether a person took it out of the state, as a message said."""
        self.is_removed = False
        """Whether a person removed the task, as a message said."""
        self.has_waited = False
        """Whether a person waited for what was ordered, as a message said."""
        self._found: dict[str, str] = {}
        self._latest = 0

    def look(self) -> Look:
        latest = self.control("GET", "/requests?last=1")
        return Look(
            self.control("GET", "/objects"),
            self.control("GET", "/ledger"),
            latest[0]["seq"] if latest else 0,
        )

    def prepare(self) -> None:
        """Make what the purchase needs, and arm what the account does with it."""
        self.control("PATCH", "/account", PLENTY)
        if self.cell.form == "ansible":
            self.playbook.run([*self.subject.needs.values()])
        else:
            self.stack.up(self.subject.needs)
        if self.subject.is_unpaid:
            self.control("PATCH", "/account", {"balance": "0.00"})
            self.network.sleep(31 * DAY)
        is_short = self.subject.is_unpaid and self.cell.event == "paid late"
        self.control("PATCH", "/account", {"balance": "0.00" if is_short else self.subject.balance})
        self.stack.messages.clear()
        if action := {**(self.purchase.pending or {}), **(self.event.fault or {})}:
            fault = {"method": "POST", "path": self.purchase.path, "action": action}
            self.control("POST", "/faults", fault)

    def wait(self) -> None:
        """Do nothing for as long as what was ordered may come."""
        self.network.sleep(MEMORY)
        self.has_waited = True

    def remove(self) -> None:
        """Leave the task out of the playbook."""
        self.is_removed = True

    # --- commands

    def run(self, command: str) -> Run:
        """Run a command; what it printed and did is kept."""
        before, stack, book = self.look(), self.stack, self.playbook
        said, self._latest = len(stack.messages), len(book.results)
        try:
            self._run(command)
            failure = None
        except StepFailed as error:
            failure = str(error)
        if self.cell.apply == "up" and (line := stack.session.money_line()):
            stack.messages.append(line)
        results = book.results[self._latest :]
        lines = stack.messages[said:] + [line for result in results for line in result["warnings"]]
        # a step's error is among its messages already, without the name of its resource
        if failure and not any(failure.endswith(line) for line in lines):
            lines.append(failure)
        lines += [str(result["msg"]) for result in results if result.get("msg") and not result["failed"]]
        charge = next((result["charge"]["amount"] for result in results if result.get("charge")), None)
        if command == "check":
            del book.results[self._latest :]
        requests = self.control("GET", f"/requests?since={before.requests}")
        writes = [row["path"] for row in requests if row["method"] != "GET" and row["status"] < 400]
        made = Run(command, lines, failure, before, self.look(), charge, writes)
        self.story += [f"{command}: {failure or 'ended'}", *(f"    {line}" for line in dict.fromkeys(lines))]
        self.story += [f"    {row['direction']} {row['amount']} {row['operation']}" for row in made.moved]
        self.runs.append(made)
        return made

    def _run(self, command: str) -> None:
        it = {**self._inputs(self.subject.make), "wait_timeout": WAIT}
        declared = {**self.subject.needs, "it": (self.subject.kind, it)}
        if command in ("task", "check", "absent"):
            options = (self.subject.absent or {}) if command == "absent" else self.subject.make
            self.playbook.check_mode, self.playbook.key = command == "check", self.network.live_key
            self.playbook.run([] if self.is_removed else [(self.subject.kind, self._inputs(options))])
        elif command == "preview":
            self.stack.preview(declared)
        elif command == "refresh":
            self.stack.refresh()
        elif command == "destroy":
            self.stack.destroy()
        else:
            if command == "up --refresh":
                self.stack.refresh()
            self.stack.up(self.subject.needs if command == "removed" else declared)

    def _inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """With the address and the invoice as they were when the playbook was written."""
        for value in {"@bought", "@invoice"} & set(map(str, inputs.values())) - self._found.keys():
            addresses = self.look().rows("addresses", bought=True)
            self._found[value] = (
                str(addresses[-1]["address"]) if value == "@bought" else self._ids()["invoice"]
            )
        found = {name: self._found.get(str(value), value) for name, value in inputs.items()}
        return {name: value for name, value in {**found, **self.overrides}.items() if value is not None}

    # --- what the account does

    def happens(self, calls: tuple[Call, ...]) -> None:
        """The control calls, one after the other."""
        if self.cell.command == "absent" and self.cell.purchase in ADDRESSES and calls:
            self._inputs(self.subject.absent or {})
        for method, path, body in calls:
            where = path.format_map(self._ids())
            self.story.append(f"the account: {method} {where} {body or ''}")
            if method == "DELETE":
                _, kind, id, *of_server = where.split("/")
                deleted = ("server_ip", f"{id}/{of_server[-1]}") if of_server else (kind.rstrip("s"), id)
                self.control.outside.add(deleted)
            made = self.control("POST" if method == "KEY" else method, where, body)
            if method == "KEY":
                self.network.live_key = made.get("live_key") or made["key"]

    def _ids(self) -> dict[str, str]:
        look = self.look()
        servers, domains = look.servers, look.rows("domains")
        webs = [row for row in servers if row["name"] == "web"] or servers
        server = f"/servers/{webs[-1]['id']}" if webs else ""
        paid = [row["invoice_id"] for row in look.debits(self.purchase.operation)]
        paid += [row["id"] for row in look.rows("invoices", type="topup")]
        unpaid = [row["id"] for row in look.rows("invoices", status="not_paid")]
        invoice = str([0, *paid, *unpaid][-1])
        addresses = look.rows("addresses", bought=True)
        it = server
        if self.cell.purchase in ADDRESSES:
            it = f"{server}/ips/{addresses[-1]['id']}" if addresses else ""
        elif domains:
            it = f"/domains/{domains[-1]['id']}"
        return {"it": it, "server": server.rpartition("/")[2], "invoice": invoice}

    # --- what is there

    def holdings(self) -> int:
        """How many of what was bought are there or on their way."""
        look, purchase = self.look(), self.cell.purchase
        if purchase in SERVERS:
            return len(look.servers) + len(look.rows("orders", status="provisioning"))
        if purchase in ADDRESSES:
            coming = [int(row["addresses_coming"]) for row in look.servers]
            return sum(coming, start=len(look.rows("addresses", bought=True)))
        if purchase in DOMAINS:
            return sum(row["status"] not in GONE for row in look.rows("domains"))
        if purchase == "top-up":
            return sum(row["status"] in ("not_paid", "paid") for row in look.rows("invoices", type="topup"))
        return self.spent()

    def has_come(self, look: Look) -> bool:
        """Whether what was bought first was there at that moment."""
        if self.cell.purchase in SERVERS:
            return bool(look.servers)
        if self.cell.purchase in ADDRESSES:
            return bool(look.rows("addresses", bought=True))
        if "until" in self.subject.make:
            return not self._short(look)
        return any(row["status"] == "active" for row in look.rows("domains"))

    def spent(self) -> int:
        """How many purchases were charged and not returned."""
        look, operation = self.look(), self.purchase.operation
        returned = {row["id"] for row in look.rows("invoices", status="refunded")}
        kept = [row for row in look.debits(operation) if row["invoice_id"] not in returned]
        # the invoice of a payment that failed stays unpaid
        failed = [
            row for row in look.ledger if (row["operation"], row["direction"]) == ("pay_invoice", "credit")
        ]
        return len(kept) - (len(failed) if operation == "pay_invoice" else 0)

    def unmet(self) -> list[str]:
        """How far a renewal is from what is declared."""
        until = self.subject.make.get("until")
        if until is None or self.event.loses or (self.cell.pause == 0 and self.spent()):
            return []  # none can come, or it is on its way
        return self._short(self.look())

    def _short(self, look: Look) -> list[str]:
        until = self.subject.make["until"]
        ends = [row["next_due_at"] for row in look.servers] + [
            row["expires_at"] for row in look.rows("domains")
        ]
        reached = datetime.fromtimestamp(max(ends), UTC).date().isoformat()
        return [] if reached >= until else [f"paid until {reached}, declared {until}"]

    def problems(self) -> list[str]:
        """How the account differs from what the frontend manages; what the account lost is no problem."""
        # Ansible keeps no state: what is managed is what the latest run says.
        results = self.playbook.results
        managed = ManagedObjects.of_results([*results[: len(self.subject.needs)], *results[self._latest :]])
        managed += ManagedObjects(tuple(self.stack.managed), frozenset({self.purchase.operation}))
        printed = " ".join(line for run in self.runs for line in run.lines)
        expected = ["that no charge of 0", "tool's to delete"]  # paid by a gateway, or by billing
        if self.event.loses:
            expected += ["was not refunded", "paid and in no state", "was never in a state"]
            expected += ["is being delivered and in no state"]
        if self.may_be_unlisted:
            expected.append("is in a state and not on the account")
        if self.said_to_stay:
            expected += ["live and in no state", "is being delivered and in no state"]
        found = self.account.check(managed, printed=printed)
        return [line for line in found if not any(text in line for text in expected)]

    @property
    def may_be_unlisted(self) -> bool:
        """Whether a domain that is not listed may still be one that the registrar has not confirmed."""
        return self.event.loses and self.cell.purchase in DOMAINS and self.cell.pause < 7 * DAY

    @property
    def said_to_stay(self) -> bool:
        """Whether a line says that it stays, and what it costs, or a person left it to another resource."""
        return self.is_left or any("stays and costs" in line for run in self.runs for line in run.lines)
