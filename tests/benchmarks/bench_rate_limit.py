"""The rate limit: many callers of one key, beside an ideal scheduler, and beside the same without a limiter."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime

from pulumi_hosting.api.operations import BY_ID, Operation
from pulumi_hosting.emulator import running
from pulumi_hosting.rehearsal.control_client import Control
from tests.benchmarks.measure import Ratio
from tests.support.rate_limit_simulation import EPOCH, Outcome, Service, Simulation

CALLERS = (1, 5, 20, 50, 100)
HOSTS = (2, 3, 5)
PROCESSES = (5, 20)
LIMIT, REQUESTS = 120, 1150
"""Not a multiple of the limit: one request of each window is kept for deletions until its last seconds."""
ORDERS_LIMIT, ORDERS = 20, 100
PHASE = EPOCH + 970.4
_PROGRAM = """
import sys
from pulumi_hosting import Client
with Client(sys.argv[1], sys.argv[2]) as client:
    for _ in range(int(sys.argv[3])):
        client.me()
"""


def ratios() -> Iterator[Ratio]:
    for name, operation, limit, requests in (
        ("reads", BY_ID["get_server"], LIMIT, REQUESTS),
        ("orders", BY_ID["create_server"], ORDERS_LIMIT, ORDERS),
    ):
        for callers in CALLERS:
            for scheduler in ("limiter", "retry"):
                yield _simulated(name, operation, limit, requests, callers, scheduler)
    for hosts in HOSTS:
        found = _run(BY_ID["get_server"], LIMIT, REQUESTS, 20, "limiter", hosts)
        ideal = _run(BY_ID["get_server"], LIMIT, REQUESTS, 20, "ideal", hosts)
        yield Ratio(
            f"{hosts} machines of 20 callers (virtual clock)",
            found.finish,
            "the ideal",
            ideal.finish,
            f"{found.refused} answers 429, at most {found.worst_window} in a window",
        )
    for processes in PROCESSES:
        yield _real(processes)


def _run(
    operation: Operation, limit: int, requests: int, callers: int, scheduler: str, hosts: int = 1
) -> Outcome:
    service = Service(limit, PHASE)
    return Simulation(
        service, callers=callers, hosts=hosts, requests=requests, operation=operation, scheduler=scheduler
    ).run()


def _simulated(
    name: str, operation: Operation, limit: int, requests: int, callers: int, scheduler: str
) -> Ratio:
    found = _run(operation, limit, requests, callers, scheduler)
    ideal = _run(operation, limit, requests, callers, "ideal")
    what = "with the limiter" if scheduler == "limiter" else "without it"
    return Ratio(
        f"{callers} callers, {requests} {name}, {what} (virtual clock)",
        found.finish,
        "the ideal",
        ideal.finish,
        f"{found.refused} answers 429, windows used to {found.utilisation / ideal.utilisation:.1%} of the ideal, "
        f"latest {found.overdue(ideal):.0f} s after its turn",
    )


def _real(processes: int) -> Ratio:
    """Processes with one key and two and a half windows of work, against an emulator in real time. The ideal
    sends the last requests when the third window begins: two minutes after the first one."""
    with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder, running() as emulator:
        control = Control(emulator.control_url)
        limit = 10 * processes
        key = control("POST", "/keys", {"mode": "live", "scopes": "full", "rate_per_minute": limit})["key"]
        environ = {**os.environ, "HOSTING_RUNTIME_DIR": f"{folder}/run"}
        command = [sys.executable, "-c", _PROGRAM, key, emulator.base_url, "25"]
        started = [subprocess.Popen(command, env=environ) for _ in range(processes)]
        failed = sum(process.wait() != 0 for process in started)
        rows = control("GET", "/requests")
        refused = sum(row["status"] == 429 for row in rows)
        moments = [datetime.fromisoformat(row["at"]) for row in rows]
        return Ratio(
            f"{processes} processes, {25 * processes} reads, {limit} a minute (real time)",
            (max(moments) - min(moments)).total_seconds(),
            "the ideal",
            120.0,
            f"{refused} answers 429, {failed} processes failed",
        )
