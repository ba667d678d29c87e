"""The rate limit: many callers of one key, beside an ideal scheduler, and beside the same without a limiter."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import product

from pulumi_hosting.api.operations import BY_ID, WINDOW_SECONDS
from pulumi_hosting.emulator import running
from pulumi_hosting.rehearsal.control_client import Control
from tests.benchmarks.measure import Ratio
from tests.support.rate_limit_simulation import EPOCH, Outcome, Service, Simulation

CALLERS = (1, 5, 20, 50, 100)
HOSTS = (2, 3, 5)
PROCESSES = (1, 5, 20, 50, 100)
WORK = (
    ("reads", "get_server", 120, (1150, 1200)),
    ("orders", "create_server", 20, (90, 100)),
)
"""What the simulated callers send: limits, and how many requests in all. The second number is a multiple of the
limit, where one request more in a window would save a whole one."""
LIMIT, REQUESTS = 120, 1150
AT_MOST = 1.02
WINDOWS, READS, READS_PER_WINDOW = 2, 25, 10
"""Of each real process: it sends its reads in so many full windows and a half."""
PHASE = EPOCH + 970.4
_PROGRAM = """
import sys
from pulumi_hosting import Client
with Client(sys.argv[1], sys.argv[2]) as client:
    for _ in range(int(sys.argv[3])):
        client.me()
"""


def ratios() -> Iterator[Ratio]:
    for name, operation, limit, sizes in WORK:
        for requests, callers in product(sizes, CALLERS):
            for scheduler in ("limiter", "retry"):
                yield _simulated(name, operation, limit, requests, callers, scheduler)
    for hosts in HOSTS:
        found = _run("get_server", LIMIT, REQUESTS, 20, "limiter", hosts)
        ideal = _run("get_server", LIMIT, REQUESTS, 20, "ideal", hosts)
        yield Ratio(
            f"{hosts} machines of 20 callers (virtual clock)",
            found.finish,
            "the ideal",
            ideal.finish,
            f"{found.refused} answers 429, at most {found.worst_window} in a window",
        )
    for processes in PROCESSES:
        yield _real(processes)


@cache
def _run(operation: str, limit: int, requests: int, callers: int, scheduler: str, hosts: int = 1) -> Outcome:
    service = Service(limit, PHASE)
    return Simulation(
        service,
        callers=callers,
        hosts=hosts,
        requests=requests,
        operation=BY_ID[operation],
        scheduler=scheduler,
    ).run()


def _simulated(name: str, operation: str, limit: int, requests: int, callers: int, scheduler: str) -> Ratio:
    found = _run(operation, limit, requests, callers, scheduler)
    ideal = _run(operation, limit, requests, callers, "ideal")
    has_limiter = scheduler == "limiter"
    return Ratio(
        f"{callers} callers, {requests} {name}, {'with the limiter' if has_limiter else 'without it'} "
        f"(virtual clock)",
        found.finish,
        "the ideal",
        ideal.finish,
        f"{found.refused} answers 429, windows used to {found.utilisation:.1%}, "
        f"latest {found.overdue(ideal):.0f} s after its turn",
        AT_MOST if has_limiter else None,
    )


def _real(processes: int) -> Ratio:
    """Processes with one key and two and a half windows of work, against an emulator in real time. The ideal
    sends the last requests when the third window begins: two minutes after the first one."""
    with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder, running() as emulator:
        control = Control(emulator.control_url)
        limit = READS_PER_WINDOW * processes
        key = control("POST", "/keys", {"mode": "live", "scopes": "full", "rate_per_minute": limit})["key"]
        environ = {**os.environ, "HOSTING_RUNTIME_DIR": f"{folder}/run"}
        command = [sys.executable, "-c", _PROGRAM, key, emulator.base_url, str(READS)]
        started = [subprocess.Popen(command, env=environ) for _ in range(processes)]
        failed = sum(process.wait() != 0 for process in started)
        rows = control("GET", "/requests")
        refused = sum(row["status"] == 429 for row in rows)
        moments = sorted(datetime.fromisoformat(row["at"]) for row in rows)
        ideal = timedelta(seconds=WINDOWS * WINDOW_SECONDS)
        over = moments[0].replace(microsecond=0) + ideal  # the emulator's windows begin with a full second
        used = (sum(at < over for at in moments) - refused) / (WINDOWS * limit)
        return Ratio(
            f"{processes} processes, {len(rows) - refused} reads, {limit} a minute (real time)",
            (moments[-1] - moments[0]).total_seconds(),
            "the ideal",
            ideal.total_seconds(),
            f"{refused} answers 429, windows used to {used:.1%}, {failed} processes failed",
            AT_MOST,
        )
