"""How the benchmarks measure: two things in turns, the best of each, and their ratio.

Seconds are those of the processor. On a machine that does other things they say what the work costs, where the
clock says how long it waited.
"""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """``ours`` and ``base`` in seconds, the best of all rounds; ``note``: what else was counted; ``at_most``:
    the goal.
    """

    what: str
    ours: float
    base_name: str
    base: float
    note: str = ""
    at_most: float | None = None

    def __str__(self) -> str:
        both = f"{_readable(self.ours)} to {_readable(self.base)}"
        goal = "" if self.at_most is None else f"at most {self.at_most}"
        return (
            f"{self.what}: {self.ours / self.base:.2f} times {self.base_name} "
            f"({', '.join(filter(None, (goal, both, self.note)))})"
        )


def compare(
    what: str,
    ours: Callable[[], object],
    base_name: str,
    base: Callable[[], object],
    rounds: int = 7,
    at_most: float | None = None,
) -> Ratio:
    """Runs both in turns, so that a busy moment of the machine meets both; the best round is the one
    least disturbed.
    """
    best_ours = best_base = float("inf")
    for _ in range(rounds):
        best_ours = min(best_ours, cpu_seconds(ours))
        best_base = min(best_base, cpu_seconds(base))
    return Ratio(what, best_ours, base_name, best_base, at_most=at_most)


def cpu_seconds(work: Callable[[], object]) -> float:
    """What one round takes in this thread, and in the processes that it starts and waits for."""
    began = _used()
    work()
    return _used() - began


def process_seconds(pid: int) -> float:
    """What a running process has taken so far (Linux: its clock in the form of clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)


def _used() -> float:
    return time.thread_time() + _used_by_processes()


def _used_by_processes() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _readable(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"
