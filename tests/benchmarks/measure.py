"""How the benchmarks measure: two things in turns, the best of each, and their ratio."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """``ours`` and ``base`` in seconds, the best of all rounds; ``note``: what else was counted."""

    what: str
    ours: float
    base_name: str
    base: float
    note: str = ""

    def __str__(self) -> str:
        both = f"{_readable(self.ours)} to {_readable(self.base)}"
        return (
            f"{self.what}: {self.ours / self.base:.2f} times {self.base_name} "
            f"({', '.join(filter(None, (both, self.note)))})"
        )


def compare(
    what: str, ours: Callable[[], object], base_name: str, base: Callable[[], object], rounds: int = 7
) -> Ratio:
    """Runs both in turns, so that a busy moment of the machine meets both; the best round is the one
    least disturbed.
    """
    best_ours = best_base = float("inf")
    for _ in range(rounds):
        best_ours = min(best_ours, seconds(ours))
        best_base = min(best_base, seconds(base))
    return Ratio(what, best_ours, base_name, best_base)


def seconds(work: Callable[[], object]) -> float:
    """How long one round takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _readable(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"
