"""Reads that many resources of one process share: sent once, and valid for a while.

Engines ask about resources one by one. A thousand servers are ten pages of a list and a thousand requests
otherwise, so the first to ask fetches the list and the others wait for it. The code that writes
forgets the reads that are no longer true.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
Key = tuple[object, ...]

FEW = 4
"""So many objects of a kind are read one by one; from then on the whole list is cheaper."""


@dataclass
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    at: float | None = None
    """When it was read; None: never, or forgotten."""
    forgotten: int = 0


class Reads:
    """Thread-safe. ``now`` in the methods is any monotonic time in seconds, the same for all calls."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._entries: dict[Key, _Entry] = {}
        self._asked: dict[str, int] = {}

    def get(self, key: Key, fetch: Callable[[], T], now: Callable[[], float], max_age: float) -> T:
        """What ``fetch`` answered at most ``max_age`` seconds ago, or answers now; several askers of one
        key wait for one answer.
        """
        with self._guard:
            entry = self._entries.setdefault(key, _Entry())
        with entry.lock:
            if entry.at is None or now() - entry.at > max_age:
                with self._guard:
                    before = entry.forgotten
                began = now()
                value = fetch()
                with self._guard:
                    entry.value = value
                    # A write that came while the answer was under way may or may not be in it.
                    entry.at = began if entry.forgotten == before else None
                return value
            found: T = entry.value
            return found

    def forget(self, *prefix: object) -> None:
        """Every answer whose key begins so."""
        with self._guard:
            for key, entry in self._entries.items():
                if key[: len(prefix)] == prefix:
                    entry.at = None
                    entry.forgotten += 1

    def amend(self, key: Key, change: Callable[[T], T]) -> None:
        """Bring a remembered answer up to date with a write whose effect on it is known, where reading
        again is expensive.
        """
        with self._guard:
            entry = self._entries.get(key)
            if entry is not None and entry.at is not None:
                entry.value = change(entry.value)

    def many(self, kind: str) -> bool:
        """Count one more single read of ``kind``; whether they are so many by now that a list is cheaper."""
        with self._guard:
            self._asked[kind] = self._asked.get(kind, 0) + 1
            return self._asked[kind] > FEW
