"""One snapshot of the account, shared by everything that works on it for a while.

A snapshot has parts, each asked for when it is wanted first: orders and servers together
(``ORDERS_AND_SERVERS``), domains, SSH keys, webhook subscriptions, the catalog, a price. A part is as old as
its oldest answer. Own writes are applied to it, so that it need not be asked for again; neither they nor
reads renew its age. One asks at a time; the others wait and read.

Where it is kept is a :class:`Storage`: the memory of a process, or files that several processes share.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from pulumi_hosting.client.results import Damaged

ORDERS_AND_SERVERS = "orders_and_servers"
"""The part that holds ``list_orders`` and ``list_servers``."""

KEYS = {"list_orders": "invoice_id", "list_os_images": "slug", "list_zones": "tld"}
"""The field that tells the objects of a list apart, where it is not ``id``."""

Rows = dict[str, Any]
"""Objects by their key; by their position where nothing tells them apart."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a write of ours did to one list (``operation``) of a part.

    - ``set``: the object with this key is ``row`` now; it is new, or changed.
    - ``delete``: there is none with this key.
    - ``doubt``: the object has changed, and the answer did not show how: it must be read again.
    - ``forget``: the whole part must be asked for again.
    """

    action: Literal["set", "delete", "doubt", "forget"]
    part: str
    operation: str = ""
    key: str = ""
    row: Any = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known of one part.

    - ``at``: when it was asked for, by a monotonic clock that all its users share; None: never, or forgotten.
    - ``rows``: the objects of each list, in the order of the service.
    - ``doubted``: list and key of the objects that must be read again.
    - ``is_asked``: whether the part is being asked for now; then ``changes`` are those made meanwhile.
    """

    at: float | None = None
    rows: Mapping[str, Rows] = field(default_factory=dict)
    doubted: frozenset[tuple[str, str]] = frozenset()
    is_asked: bool = False
    changes: tuple[Change, ...] = ()

    def is_fresh(self, now: float, max_age: float) -> bool:
        return self.at is not None and 0 <= now - self.at <= max_age

    def after(self, change: Change) -> "Kept":
        """The same after one write."""
        changes = (*self.changes, change) if self.is_asked else ()
        if change.action == "forget":
            return replace(self, at=None, changes=changes)
        rows = dict(self.rows.get(change.operation, {}))
        place = (change.operation, change.key)
        doubted = self.doubted - {place}
        if change.action == "doubt":
            doubted |= {place}
        elif change.action == "delete":
            rows.pop(change.key, None)
        elif change.key in rows:
            rows[change.key] = change.row
        else:  # newest first, as the service lists them
            rows = {change.key: change.row, **rows}
        return replace(self, rows={**self.rows, change.operation: rows}, doubted=doubted, changes=changes)


class Storage(Protocol):
    """Where the parts are kept. Each method may be called by any thread or process that shares it."""

    def load(self, part: str) -> Kept:
        """What is known now, without waiting."""

    def changing(self, part: str) -> AbstractContextManager["Box"]:
        """Change what is known; no other process changes it meanwhile."""

    def asking(self, part: str) -> AbstractContextManager[object]:
        """Hold the right to ask for the part."""


@dataclass
class Box:
    """What is known, to be replaced."""

    kept: Kept


class InMemory:
    """The memory of one process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: dict[str, Kept] = {}
        self._locks: dict[str, threading.Lock] = {}

    def load(self, part: str) -> Kept:
        return self._kept.get(part) or Kept()

    @contextmanager
    def changing(self, part: str) -> Iterator[Box]:
        with self._guard:
            box = Box(self.load(part))
            yield box
            self._kept[part] = box.kept

    @contextmanager
    def asking(self, part: str) -> Iterator[None]:
        with self._guard:
            lock = self._locks.setdefault(part, threading.Lock())
        with lock:
            yield


Answers = Mapping[str, Sequence[Any]]
"""The objects of each list of a part."""


class AccountSnapshot:
    """Thread-safe. Times are seconds of a monotonic clock, the same for all calls."""

    def __init__(self, storage: Storage | None = None) -> None:
        self._storage: Storage = storage or InMemory()

    def get(
        self,
        part: str,
        ask: Callable[[], Answers],
        now: Callable[[], float],
        max_age: float,
        ask_again: Callable[[str, str], Any] = lambda operation, key: None,
    ) -> dict[str, list[Any]]:
        """The objects of a part, by list. At most ``max_age`` seconds old, or asked for after this call by
        whoever held the right to ask; else all of it is asked for.

        ``ask_again``: reads one doubted object, given its list and key; None where it is gone.
        """
        called = now()
        kept = self._storage.load(part)
        if kept.is_fresh(called, max_age) and not kept.doubted:
            return _lists(kept)
        with self._storage.asking(part):
            kept = self._storage.load(part)
            is_new = kept.at is not None and kept.at > called
            if not is_new and not kept.is_fresh(now(), max_age):
                return _lists(self._asked(part, ask, now))
            for operation, key in sorted(kept.doubted):
                row = ask_again(operation, key)
                self.apply(Change("delete" if row is None else "set", part, operation, key, row))
            return _lists(self._storage.load(part))

    def row(self, part: str, operation: str, key: str, now: float, max_age: float) -> Any:
        """One object as it is known; None where it is not, or only as it was longer ago. Asks nothing."""
        kept = self._storage.load(part)
        if not kept.is_fresh(now, max_age) or (operation, key) in kept.doubted:
            return None
        found = kept.rows.get(operation, {}).get(key)
        return None if isinstance(found, Damaged) else found

    def forget(self, part: str) -> None:
        """Ask for the whole part again when it is wanted next."""
        self.apply(Change("forget", part))

    def apply(self, change: Change) -> None:
        """A write of ours has been answered."""
        kept = self._storage.load(change.part)
        if kept.at is None and not kept.is_asked:
            return  # nothing is known that the write could have changed
        with self._storage.changing(change.part) as box:
            box.kept = box.kept.after(change)

    def _asked(self, part: str, ask: Callable[[], Answers], now: Callable[[], float]) -> Kept:
        with self._storage.changing(part) as box:
            box.kept = replace(box.kept, is_asked=True, changes=())
        began = now()
        try:
            answers = ask()
        except BaseException:
            with self._storage.changing(part) as box:
                box.kept = replace(box.kept, is_asked=False, changes=())
            raise
        new = Kept(began, {operation: _by_key(operation, rows) for operation, rows in answers.items()})
        with self._storage.changing(part) as box:
            # A write that came while the answer was under way may or may not be in it.
            for change in box.kept.changes:
                new = new.after(change)
            box.kept = new
        return new


def _lists(kept: Kept) -> dict[str, list[Any]]:
    return {operation: list(rows.values()) for operation, rows in kept.rows.items()}


def _by_key(operation: str, rows: Sequence[Any]) -> Rows:
    name = KEYS.get(operation, "id")
    return {_key(row, name, position): row for position, row in enumerate(rows)}


def _key(row: Any, name: str, position: int) -> str:
    """A row that could not be read keeps its place: something must not be taken for absent there."""
    if isinstance(row, Damaged):
        return f"#{position}" if row.known_id is None else str(row.known_id)
    return str(getattr(row, name, position))
