"""Machines with processes that order servers, all of them with one key and one store.

A machine is a private directory of its own; its processes are forked from this one, and are really killed and
stopped. What became of each order is read from the account.
"""

import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pulumi_hosting.client import redis_store
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.exactly_once import purchase_journal
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.monthly_budget import MonthlyBudget
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.powers import Priced
from pulumi_hosting.session.clock import RunClock
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session

DAY = 86400.0


class _Clock(RunClock):
    """Of a machine whose date is wrong."""

    def __init__(self, days_off: float) -> None:
        self.off = timedelta(days=days_off)

    def now(self) -> datetime:
        return super().now() + self.off


Work = Callable[[Session, str], None]
"""One thing that a process does; the name says what for."""


@dataclass
class Process:
    """One process of a machine, and what it still has to do. ``stop_at``: the request before which it is
    stopped; None for one that is not. ``service_port``: where it reaches the service; None: directly."""

    machine: int
    names: list[str]
    store: str
    days_off: float = 0.0
    stop_at: int | None = None
    service_port: int | None = None
    pid: int = 0
    runs: int = 0


@dataclass
class Fleet:
    """``work`` is done for each name. ``folder``: of the machines. ``lease``: seconds, not a minute."""

    emulator: Running
    key: str
    folder: Path
    work: Work
    lease: float | None = None
    failures: list[str] = field(default_factory=list)
    stopped: int = 0
    """How many processes were stopped for longer than a lease lasts."""

    def start(self, process: Process) -> None:
        process.runs += 1
        process.pid = os.fork()
        if process.pid == 0:
            code = 1
            try:
                code = self._child(process)
            finally:
                os._exit(code)

    def _child(self, process: Process) -> int:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ["HOSTING_RUNTIME_DIR"] = str(self.folder / f"machine-{process.machine}")
        if self.lease is not None:
            redis_store.LEASE_SECONDS, redis_store.MARGIN_SECONDS = self.lease, self.lease / 10
            redis_store._BEAT_SECONDS = self.lease / 4
            redis_store.Redis.held_for = self.lease
        real, connect = time.time, socket.create_connection

        def connected(address: tuple[str, int], *given: Any, **options: Any) -> socket.socket:
            return connect((address[0], process.service_port or address[1]), *given, **options)

        with (
            patch("time.time", lambda: real() + process.days_off * DAY),
            patch("socket.create_connection", connected),
        ):
            return self._work_off(process)

    def _work_off(self, process: Process) -> int:
        # A write is over before a lease is.
        timeout = 30.0 if self.lease is None else self.lease / 3
        client = Client(
            self.key, self.emulator.base_url, store=process.store, timeout=timeout, rate_limit_timeout=3600
        )
        if process.stop_at is not None:
            _stop_before(client, process.stop_at)
        for name in process.names:
            if not self._done(name).exists():
                try:
                    self.work(Session(client, clock=_Clock(process.days_off), poll_interval=0.5), name)
                except Exception as error:  # noqa: BLE001  # the proof counts it
                    self._done(f"{name}.{process.runs}.failed").write_text(f"{type(error).__name__}: {error}")
                    return 1
                self._done(name).write_text("done")
        return 0

    def _done(self, name: str) -> Path:
        return self.folder / f"{name}.done"

    def finish(
        self, processes: list[Process], *, disturb: Callable[[float, list[Process]], None], most_runs: int
    ) -> float:
        """Run them all; one that fails or is killed is run again. The seconds that it took."""
        began = time.monotonic()
        for process in processes:
            self.start(process)
        alive, stopped = [*processes], dict[int, float]()
        while alive:
            disturb(time.monotonic() - began, alive)
            time.sleep(0.02)
            for pid, since in [*stopped.items()]:
                if time.monotonic() - since > 1.5 * (self.lease or 0.0):
                    del stopped[pid]
                    os.kill(pid, signal.SIGCONT)
            for process in [*alive]:
                pid, status = os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED)
                if not pid:
                    continue
                if os.WIFSTOPPED(status):
                    self.stopped += 1
                    stopped[pid] = time.monotonic()
                    continue
                stopped.pop(pid, None)
                alive.remove(process)
                if status == 0:
                    continue
                process.stop_at = None
                if process.runs >= most_runs:
                    self.failures.append(f"{process.names} after {process.runs} runs: {self.errors()[-1:]}")
                else:
                    self.start(process)
                    alive.append(process)
        return time.monotonic() - began

    def errors(self) -> list[str]:
        """What runs reported that did not end well, in their order."""
        found = sorted(self.folder.glob("*.failed.done"), key=lambda path: path.stat().st_mtime)
        return [path.read_text() for path in found]


def _stop_before(client: Client, number: int) -> None:
    """Stop this process before its request of that number; the fleet lets it go on."""
    send, sent = client.transport.send, 0

    def stopping(*given: Any) -> Any:
        nonlocal sent
        sent += 1
        if sent == number:
            os.kill(os.getpid(), signal.SIGSTOP)
        return send(*given)

    watched: Any = client.transport
    watched.send = stopping


def make(kind: str, inputs: dict[str, Any], budget: str | None = None) -> Work:
    """Creates a resource: ``{}`` in its inputs is the name."""

    def work(session: Session, name: str) -> None:
        given = {field: name if value == "{}" else value for field, value in inputs.items()}
        checked = check(RESOURCES[kind], given)
        assert not checked.failures, checked.failures
        request = Request(session, f"pulumi:teams/dev/{kind}/{name}", info=_quiet, warn=_quiet)
        resource, month = RESOURCES[kind], MonthlyBudget(budget)
        if month and isinstance(resource, Priced):
            cost = resource.cost(request, checked.inputs.given())
            request.approve = partial(month.paying, request, cost)
        apply.create(request, resource, checked.inputs)
        purchase_journal.reported(request.unreported)

    return work


def _quiet(line: str) -> None:
    """A line that is not shown."""


def roomy_key(control: Control, orders_a_minute: int = 10**6) -> str:
    limits = {"rate_per_minute": 10**6, "rate_expensive_per_minute": orders_a_minute}
    key: str = control("POST", "/keys", {"mode": "live", "scopes": "full", **limits})["key"]
    return key


def refused(control: Control) -> int:
    """The 429s."""
    return sum(1 for row in control("GET", "/requests?since=0") if row["status"] == 429)


def between_orders(control: Control) -> float:
    """Seconds from the first order to the last one, as they came to the service."""
    rows = control("GET", "/requests?since=0")
    at = [datetime.fromisoformat(row["at"]) for row in rows if row["status"] == 201]
    return (max(at) - min(at)).total_seconds()


def servers(control: Control) -> Counter[str]:
    """Names of the living ones."""
    return Counter(row["name"] for row in control("GET", "/objects")["servers"])


def charged(control: Control) -> int:
    """Purchases that were paid, less those that were returned."""
    rows = [row for row in control("GET", "/ledger") if row["operation"] not in ("billing", "control")]
    return sum(1 if row["direction"] == "debit" else -1 for row in rows)
