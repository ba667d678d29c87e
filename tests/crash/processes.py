"""The kill matrix with real processes: the command, the provider, the engine or Ansible's worker is
killed at a request, and the command is run again.
"""

import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

from pulumi_hosting.offline.storage.passphrase import WEAK_SECRETS
from pulumi_hosting.rehearsal import engines
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.crash.account import charges, differences, objects
from tests.crash.killing import READ_POINTS, WRITE_POINTS, Point
from tests.crash.killing_server import Exchange, KillingServer, Victim
from tests.crash.real_frontends import ANSIBLE, COMMANDS, AnsibleFrontend, Frontend, PulumiFrontend
from tests.crash.result import RERUNS, Result
from tests.support import processes
from tests.support.programs import FORMS

ENGINE_POINTS: tuple[Point, ...] = ("before send", "processed", "not saved", "late before")
"""Points that differ when the engine is killed: the sender of the request lives and is answered."""
_OF_CLI = 3
TRIES = 3
"""Resources that are made at the same time share reads, and which ones depends on the order: a run may do
without one. It is tried so often."""


@dataclass(frozen=True, order=True)
class ProcessCell:
    """A run of ``frontend`` in which the victim is killed at an exchange."""

    frontend: str
    command: str
    exchange: Exchange
    point: Point
    victim: Victim

    def __str__(self) -> str:
        return f"{self.frontend}, processes, {self.command}: {self.victim} at {self.exchange}, {self.point}"


@dataclass(frozen=True)
class Undisturbed:
    """What a run sends, charges in all and leaves, undisturbed."""

    sent: tuple[Exchange, ...]
    charges: Counter[str]
    objects: Counter[str]


def frontends() -> list[str]:
    """Each form on each engine that is installed, and Ansible."""
    found = [f"{form} on {engine.name}" for engine in engines.available() for form in FORMS]
    return [*found, ANSIBLE]


# --- which cells


def cells_of(frontend: str) -> list[ProcessCell]:
    """Every exchange of every command with every point and with every victim; every pair of point and victim
    somewhere. A third of them on Pulumi's own CLI, whose runs take three times as long.
    """
    found = [
        ProcessCell(frontend, command, exchange, point, victim)
        for command in COMMANDS
        for number, exchange in enumerate(undisturbed(frontend, command).sent)
        for point, victim in chosen(exchange, number, sender(frontend))
    ]
    return found[::_OF_CLI] if frontend.endswith(engines.PULUMI) else found


def sender(frontend: str) -> Victim:
    """The process that sends requests."""
    return "the worker" if frontend == ANSIBLE else "the provider"


def chosen(exchange: Exchange, number: int, sender: Victim) -> Iterator[tuple[Point, Victim]]:
    """Each point once, and each victim at least once. ``number``: turns the victims round the points."""
    points = WRITE_POINTS if exchange.is_write else READ_POINTS
    possible = [point for point in ENGINE_POINTS if point in points]
    of_the_engine = {possible[number % len(possible)], possible[(number + 2) % len(possible)]}
    others: tuple[Victim, ...] = ("everything", sender)
    turn = number // len(possible)
    for point in points:
        if point in of_the_engine:
            yield point, "the engine"
        else:
            yield point, others[turn % 2]
            turn += 1


# --- one cell


def run(cell: ProcessCell) -> Result:
    """Run one cell. A defect is a broken promise too."""
    result = Result(str(cell))
    try:
        for _ in range(TRIES):
            if _run(cell, result):
                return result
        result.is_reached = False
    except Exception:  # noqa: BLE001  # reported with the cell that repeats it
        result.problems.append(traceback.format_exc(limit=-8))
    return result


def _run(cell: ProcessCell, result: Result) -> bool:
    """Whether the exchange came."""
    expected = undisturbed(cell.frontend, cell.command)
    frontend = _frontend(cell.frontend)
    server = frontend.server
    frontend.restore(cell.command)
    started: Future[int] = Future()
    server.begin_killed(cell.exchange, cell.point, cell.victim, started.result)
    process = frontend.start(cell.command)
    started.set_result(process.pid)
    try:
        frontend.wait(process)
        if not server.has_killed:
            return False
        frontend.after_kill()
        _run_again(frontend, cell, result, expected)
    finally:
        processes.kill(server.left)
    return True


def _run_again(frontend: Frontend, cell: ProcessCell, result: Result, expected: Undisturbed) -> None:
    failure: str | None = None
    left: list[str] = []
    for number in range(1, RERUNS + 1):
        result.reruns = number
        frontend.server.begin()
        failure = frontend.run(cell.command)
        late = frontend.server.arrive()
        left = [] if failure else _differences(frontend, expected)
        if failure is None and not left and not late:
            break
    result.problems += frontend.leaks()
    result.problems += left if failure is None else [failure]


def _differences(frontend: Frontend, expected: Undisturbed) -> list[str]:
    """How the account differs from what the frontend manages, and from an undisturbed run."""
    return [
        *frontend.problems(),
        *differences(frontend.control, expected.charges, expected.objects),
    ]


# --- what each process of the matrix keeps


@cache
def _resources() -> tuple[KillingServer, WarmPython, Path]:
    """What all frontends of this process share: its port, since local files name accounts by it."""
    stack = ExitStack()
    Finalize(None, stack.close, exitpriority=1)  # a process of a pool ends without atexit
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="processes-")))
    warm = WarmPython(folder)
    stack.callback(warm.close)
    os.environ[WEAK_SECRETS] = "1"
    return KillingServer(), warm, folder


@cache
def _frontend(name: str) -> Frontend:
    server, warm, folder = _resources()
    place = folder / name.replace(" ", "-")
    sys.executable = str(warm.command)
    if name == ANSIBLE:
        frontend: Frontend = AnsibleFrontend(server, place, warm)
    else:
        form, _, engine = name.partition(" on ")
        frontend = PulumiFrontend(form, engine, server, place)
    frontend.prepare()
    return frontend


@cache
def undisturbed(frontend: str, command: str) -> Undisturbed:
    """The run that is not killed."""
    found = _frontend(frontend)
    found.restore(command)
    found.server.begin()
    failure = found.run(command)
    assert failure is None, failure
    assert found.problems() == []
    return Undisturbed(tuple(found.server.sent), charges(found.control), objects(found.control))
