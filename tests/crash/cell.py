"""One cell of the kill matrix: run, kill, wait, run again, compare the account."""

import os
import re
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from tests.crash import machines
from tests.crash.account import charged_twice, charges, differences, objects
from tests.crash.cases import AUTH_CODE, PASSWORD, Case
from tests.crash.killing import READ_POINTS, WRITE_POINTS, KillingNetwork, Point
from tests.crash.result import RERUNS, Result
from tests.simulation.network import Killed
from tests.simulation.playbook import Playbook
from tests.simulation.stack import Stack, StepFailed

DAY = 86400.0
DELAYS = (0.0, 6.9 * DAY, 7.1 * DAY, 30 * DAY)
"""Seconds between the kill and the next run; keys are remembered for seven days."""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "live dialect": {"dialect": "live"},
    "refusals not stored": {"readings": {"refusals_stored": False}},
    "busy refusals not stored": {"readings": {"transient_refusals_stored": False}},
    "stored request id": {"readings": {"replay_request_id": "stored"}},
    "memory per key": {"readings": {"key_memory": "key"}},
    "bodies compared as bytes": {"readings": {"body_comparison": "bytes"}},
    "deleted servers listed": {"readings": {"deleted_servers": "listed"}},
    "a key twice is two keys": {"readings": {"duplicate_ssh_key": "second"}},
}
"""Behaviour variants of the service: bodies of ``PATCH /service`` (docs/emulator-control.md)."""
_PAID_ACTIONS = {
    "server_renew": "renew_server",
    "domain_renew": "renew_domain",
    "invoice_pay": "pay_invoice",
}
_ADOPT = re.compile(r"adopt_id(?: to |=)\"?([0-9]+)")
_ADOPT_THAT = re.compile(r"\(id ([0-9]+)\).*set adopt_id to that one")
_SEVERAL = re.compile(r"several objects: ids ([0-9, ]+)\. Next: give .* of the one you mean")
_NOTHING_TO_DO = "nothing is owed for it any more"
_CANCELLED = re.compile(r"invoice ([0-9]+) is cancelled")
_ANOTHER = re.compile(r"order_attempt(?: to |=)([0-9]+)")


@dataclass(frozen=True, order=True)
class Cell:
    """``exchange``: the number of the request at which the command is killed."""

    case: Case
    exchange: int
    point: Point
    variant: str = "default"
    delay: float = 0.0

    def __str__(self) -> str:
        days = f", {self.delay / DAY:g} days" if self.delay else ""
        variant = f", {self.variant}" if self.variant != "default" else ""
        return f"{self.case} at {self.exchange} {self.point}{variant}{days}"


class World:
    """An account, a frontend, and the case that is run on it."""

    def __init__(self, case: Case, variant: str) -> None:
        self.case, self.subject = case, case.declared
        self.network = KillingNetwork(
            1, provisioning_delay=self.subject.provisioning_delay, ip_delay=self.subject.ip_delay
        )
        machines.joined(self.network)
        control: Any = self.network
        self.account = AccountCheck(control.control)
        self.network.control("PATCH", "/account", {"balance": "100000.00"})
        if VARIANTS[variant]:
            self.network.control("PATCH", "/service", dict(VARIANTS[variant]))
        self.stack = Stack(self.network, "dev", native=case.frontend == "native")
        self.playbook = Playbook(self.network)
        self._found: dict[str, str] = {}
        self.killed_operations: frozenset[str] = frozenset()
        """Paid actions of the killed run, which nothing has reported."""
        self.overrides: dict[str, Any] = {}
        """What a person sets because a message says so."""
        for fault in self.subject.faults:
            self.network.control("POST", "/faults", dict(fault))
        self.set_stock(False)

    def set_stock(self, in_stock: bool) -> None:
        """Of the tariff that is out of stock at first."""
        if self.subject.sold_out is not None:
            self.network.control("PATCH", f"/tariffs/{self.subject.sold_out}", {"in_stock": in_stock})

    # --- before the command

    def prepare(self) -> None:
        """Make what the case needs: other objects, and the object itself where it is not created."""
        needs = self.subject.needs
        if self.case.frontend == "ansible":
            self.playbook.run([*needs.values()])
        else:
            self._converge(needs)
        if self.subject.is_unpaid:
            self.network.control("PATCH", "/account", {"balance": "0.00"})
            self.network.sleep(31 * DAY)
        if self.case.change != "create":
            if self.case.frontend == "ansible":
                self._with_retries(lambda: self.playbook.run([self._task(self.subject.make)]))
            else:
                self._converge({**needs, "it": (self.subject.kind, self._filled(self.subject.make))})
            self.network.sleep(self.subject.aged * DAY)
        if self.subject.is_unpaid or self.subject.balance != "100000.00":
            self.network.control("PATCH", "/account", {"balance": self.subject.balance})
        assert self.problems() == []

    def _converge(self, declared: Any) -> None:
        self._with_retries(lambda: self.stack.up(declared))

    @staticmethod
    def _with_retries(run: Any) -> None:
        """Dynamic resources cannot hold an order that is under way: the next run finds it."""
        try:
            run()
        except StepFailed:
            run()

    def _filled(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """With the address of a server for ``@name``, a bought one for ``@bought``, the unpaid invoice for
        ``@invoice`` and a file for ``@file``.
        """
        filled = {}
        for name, value in inputs.items():
            if isinstance(value, str) and value.startswith("@"):
                if value not in self._found:
                    self._found[value] = self._find(value[1:])
                filled[name] = self._found[value]
            else:
                filled[name] = value
        return filled

    def _find(self, what: str) -> str:
        if what == "file":
            return os.environ["HOSTING_RUNTIME_DIR"] + ".password"
        found = self.network.control("GET", "/objects")
        if what == "invoice":
            return str(next(row["id"] for row in found["invoices"] if row["status"] == "not_paid"))
        if what == "bought":
            return str(next(row["address"] for row in found["addresses"] if row["bought"]))
        return str(next(row["primary_ip"] for row in found["servers"] if row["name"] == what))

    # --- the command

    def run(self) -> None:
        """The command of the case. Raises ``Killed`` or ``StepFailed``."""
        if self.case.frontend == "ansible":
            self.playbook.run([self._task(self._desired())])
        elif self.case.command == "destroy":
            self.stack.destroy()
        elif self.case.command == "refresh":
            self.stack.refresh()
        else:
            desired = dict(self.subject.needs)
            if self.case.change != "delete":
                desired["it"] = (self.subject.kind, {**self._filled(self._desired()), **self.overrides})
            self.stack.up(desired)

    def _desired(self) -> Mapping[str, Any]:
        if self.case.command == "absent":
            return self.subject.absent or {}
        return self.subject.changes.get(self.case.change, self.subject.make)

    def _task(self, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        kind = self.subject.kind
        return kind, {**self._filled(options), **self.overrides}

    def failure_of_run(self) -> str | None:
        """The message of a run that is not killed; None where it ends well."""
        self.network.begin()
        try:
            self.run()
        except StepFailed as error:
            return str(error)
        return None

    def forget_results(self) -> None:
        """Ansible keeps no state: only the next run reports what the killed one was to change."""
        kept = self.subject.needs if self.case.frontend == "ansible" else {}
        del self.playbook.results[len(kept) :]
        verb = _PAID_ACTIONS.get(self.subject.kind)
        self.killed_operations = frozenset({verb}) if verb else frozenset()

    def delete(self, id: str) -> None:
        """Delete an object as a person does who was told to."""
        self.playbook.run([(self.subject.kind, {"id": id, "state": "absent"})])

    # --- what is there

    def problems(self) -> list[str]:
        """How the account differs from what the frontend manages."""
        managed = ManagedObjects.of_results(self.playbook.results)
        managed += ManagedObjects(tuple(self.stack.managed), self.killed_operations)
        return self.account.check(managed, printed=" ".join(self.printed))

    @property
    def printed(self) -> list[str]:
        results = [f"{result.get('msg')} {result['warnings']}" for result in self.playbook.results]
        return [*self.stack.messages, *results]

    def leaks(self) -> list[str]:
        """Secrets in what was printed, in the files that the runs left, and in the service's log of
        requests, which has every header but the key.
        """
        folder = Path(os.environ["HOSTING_RUNTIME_DIR"])
        kept = [f"{path.name} {path.read_text()}" for path in folder.rglob("*") if path.is_file()]
        text = " ".join([*self.printed, *kept, str(self.network.control("GET", "/requests"))])
        secrets = {"the API key": self.network.live_key, "a password": PASSWORD, "an auth code": AUTH_CODE}
        return [f"{name} was shown or kept" for name, secret in secrets.items() if secret in text]


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run of a case sends, charges and leaves."""

    sent: tuple[str, ...]
    charges: Counter[str]
    objects: Counter[str]

    def points(self, exchange: int) -> tuple[Point, ...]:
        return READ_POINTS if self.sent[exchange].startswith("GET ") else WRITE_POINTS


@cache
def reference(case: Case, variant: str = "default", later: bool = False) -> Reference:
    """The undisturbed run. ``later``: and one more when what was ordered is there, since what is still being
    delivered cannot be changed.
    """
    with own_runtime_directory():
        world = World(case, variant)
        world.prepare()
        failure = world.failure_of_run()
        sent = tuple(world.network.sent)
        if failure is not None:  # dynamic resources report an order that is under way as a failure
            failure = world.failure_of_run()
        if later and failure is None:
            world.network.sleep(DAY)
            failure = world.failure_of_run()
        problems = world.problems()
        assert failure is None, f"{case}: {failure}"
        assert not problems, f"{case}: {problems}"
        return Reference(sent, charges(world.network.control), objects(world.network.control))


def run(cell: Cell) -> Result:
    """Run one cell. A defect is a broken promise too."""
    result = Result(str(cell))
    try:
        with own_runtime_directory():
            _run(cell, result)
    except Exception:  # noqa: BLE001  # reported with the cell that repeats it
        result.problems.append(traceback.format_exc(limit=-8))
    return result


def _run(cell: Cell, result: Result) -> None:
    is_delivered = bool(cell.delay and cell.case.declared.provisioning_delay)
    expected = reference(cell.case, cell.variant, is_delivered)
    world = World(cell.case, cell.variant)
    world.prepare()
    network = world.network
    network.begin(cell.exchange, cell.point)
    with network.no_notes_after_death():
        try:
            world.run()
            result.problems.append("the command was not killed: it sent fewer requests than before")
            return
        except Killed:
            pass
        except StepFailed:
            if not network.is_dead and cell.exchange < len(network.sent) - 1:
                result.problems.append("the command failed before it was killed")
                return
    network.begin()
    world.set_stock(True)
    machines.another()
    world.forget_results()
    network.sleep(cell.delay)
    failure: str | None = None
    left: list[str] = []
    for number in range(1, RERUNS + 1):
        result.reruns = number
        failure = world.failure_of_run()
        late = network.arrive()
        left = [] if failure else _differences(world, expected)
        if failure is None and not left and not late:
            break
        network.sleep(60)
    result.problems += world.leaks()
    if failure is None and left and is_delivered:
        network.sleep(DAY)
        failure = world.failure_of_run()
        left = [] if failure else _differences(world, expected)
    if failure is None:
        result.problems += left
        return
    result.stop = failure
    _stopped(result, world, expected)


def _stopped(result: Result, world: World, expected: Reference) -> None:
    """A stop must come before any second charge, name a next step, and that step must help."""
    stop = str(result.stop)
    result.problems += charged_twice(world.network.control, expected.charges)
    if "Next:" not in stop:
        result.problems.append(f"a stop without a next step: {stop}")
        return
    if _NOTHING_TO_DO in stop:
        result.resolved_by = "nothing to do"
        result.problems += _still_owed(world, stop)
        return
    if several := _SEVERAL.search(stop):
        first, *others = several[1].split(", ")
        for other in others:
            world.delete(other)
        result.resolved_by = f"deleting all but {first}"
    elif adopt := _ADOPT.search(stop) or _ADOPT_THAT.search(stop):
        world.overrides["adopt_id"] = adopt[1]
    elif another := _ANOTHER.search(stop):
        world.overrides["order_attempt"] = int(another[1])
    settings = [f"{name}={value}" for name, value in world.overrides.items()]
    result.resolved_by = result.resolved_by or ", ".join(settings) or "run again"
    failure = world.failure_of_run()
    if failure is not None:
        result.problems.append(f"{result.resolved_by} did not help: {failure}")
        return
    result.problems += _differences(world, expected)


def _still_owed(world: World, stop: str) -> list[str]:
    """What contradicts that nothing is owed for the invoice that the message names."""
    found = _CANCELLED.search(stop)
    rows = world.network.control("GET", "/objects")["invoices"]
    owed = [
        row["id"] for row in rows if found and str(row["id"]) == found[1] and row["status"] != "cancelled"
    ]
    return [f"invoice {id} is not cancelled" for id in owed] if found else [f"no invoice is named: {stop}"]


def _differences(world: World, expected: Reference) -> list[str]:
    """How the account differs from what the frontend manages, and from an undisturbed run."""
    return [*world.problems(), *differences(world.network.control, expected.charges, expected.objects)]


@contextmanager
def own_runtime_directory() -> Iterator[None]:
    before = os.environ.get("HOSTING_RUNTIME_DIR")
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        os.environ["HOSTING_RUNTIME_DIR"] = f"{folder}/run"
        try:
            with machines.sharing(Path(folder)) if machines.VARIABLE in os.environ else nullcontext():
                yield
        finally:
            if before is None:
                del os.environ["HOSTING_RUNTIME_DIR"]
            else:
                os.environ["HOSTING_RUNTIME_DIR"] = before


def at(cell: Cell, **changes: Any) -> Cell:
    """The cell with something else in one dimension."""
    return replace(cell, **changes)
