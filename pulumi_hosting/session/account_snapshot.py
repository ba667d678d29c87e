"""One snapshot of the account, shared by everything that works on it for a while.

A snapshot has parts, each asked for when it is wanted first: orders and servers together
(``ORDERS_AND_SERVERS``), domains, SSH keys, webhook subscriptions, the catalog, a price. A part is as old as
its oldest answer. Own writes are applied to it, so that it need not be asked for again; neither they nor
reads renew its age. One asks at a time; the others wait and read.

A part is asked for whole, or page by page. An engine wants one object after the other and never says how
many there will be; a page shows a hundred for one request. The rule of :meth:`AccountSnapshot.find`:

- The first page is read for the first object (``at_once``). An object on a page that was read costs nothing.
- An object on none of them is read singly, until three were, of all kinds together in a process. Then 16
  pages may be read, and four times as many after each further single read. Objects that others wait for at
  this moment count as read singly.
- An object that a whole list does not show is read singly: only that answer shows that it is absent.

So ``n`` objects of a list of ``p`` pages cost at most one page and ``n`` single reads if ``n`` is 3 or
less. Else they cost at most ``p`` pages and 3 single reads if ``p`` is at most 16, and at most 4 single reads
if it is at most 64. That is more than ``n`` requests only if ``n`` is less than ``p``: a stack with less
than one hundredth of the account's objects.

Where it is kept is a :class:`Storage`: the memory of a process, or files that several processes share.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol

from pulumi_hosting.api.models import Page
from pulumi_hosting.client.results import Damaged

ORDERS_AND_SERVERS = "orders_and_servers"
"""The part that holds ``list_orders`` and ``list_servers``."""
UNPAID = "unpaid invoices"
"""The part that holds ``list_invoices``, of those that are not paid."""

KEYS = {"list_orders": "invoice_id", "list_os_images": "slug", "list_zones": "tld"}
"""The field that tells the objects of a list apart, if it is not ``id``."""

SINGLE_READS = 3
_PAGES, _TIMES = 16, 4

Rows = dict[str, Any]
"""Objects by their key; by their position if nothing tells them apart."""


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
    - ``cursor``: where the pages that were not read begin, ``""`` before the first; None: all were.
    - ``pages``: how many were read one by one; 0 if the part was asked for whole. ``single``: how many
      objects had to be read singly since.
    """

    at: float | None = None
    rows: Mapping[str, Rows] = field(default_factory=dict)
    doubted: frozenset[tuple[str, str]] = frozenset()
    is_asked: bool = False
    changes: tuple[Change, ...] = ()
    cursor: str | None = None
    pages: int = 0
    single: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether every list of the part is known: what is read page by page may be one of several."""
        return self.cursor is None and not self.pages

    def row(self, operation: str, key: str) -> Any:
        """The object; None if it is not known, or in doubt."""
        found = self.rows.get(operation, {}).get(key)
        return None if isinstance(found, Damaged) or (operation, key) in self.doubted else found

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

    def answered(self, answers: "Answers", **facts: Any) -> "Kept":
        """The same with these objects, after the writes that came while they were asked for: those may or may
        not be in the answer."""
        rows = dict(self.rows)
        for operation, found in answers.items():
            name, listed = KEYS.get(operation, "id"), dict(rows.get(operation, {}))
            for position, row in enumerate(found):
                # One that could not be read keeps its place: something must not be taken for absent there.
                place = f"#{position}" if isinstance(row, Damaged) else position
                key = getattr(row, "known_id" if isinstance(row, Damaged) else name, None)
                listed[str(place if key is None else key)] = row
            rows[operation] = listed
        new = replace(self, rows=rows, is_asked=False, changes=(), **facts)
        for change in self.changes:
            new = new.after(change)
        return new


class Storage(Protocol):
    """Where the parts are kept. Each method may be called by any thread or process that shares it."""

    def load(self, part: str) -> Kept:
        """What is known now, without waiting."""

    def change(self, part: str, after: Callable[[Kept], Kept]) -> Kept:
        """What is known ``after`` a change of it; no other process changes it meanwhile."""

    def asking(self, part: str) -> AbstractContextManager[object]:
        """Hold the right to ask for the part."""


class InMemory:
    """The memory of one process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: dict[str, Kept] = {}
        self._locks: dict[str, threading.Lock] = {}

    def load(self, part: str) -> Kept:
        return self._kept.get(part) or Kept()

    def change(self, part: str, after: Callable[[Kept], Kept]) -> Kept:
        with self._guard:
            kept = self._kept[part] = after(self.load(part))
            return kept

    def asking(self, part: str) -> AbstractContextManager[object]:
        with self._guard:
            return self._locks.setdefault(part, threading.Lock())


Answers = Mapping[str, Sequence[Any]]
"""The objects of each list of a part."""
Now = Callable[[], float]
AskAgain = Callable[[str, str], Any] | None
"""Reads one doubted object, given its list and key; None if it is gone."""


class ReadPage(Protocol):
    """Asks for the page of a list at a cursor; None: the first."""

    def __call__(self, operation: str, /, *, cursor: str | None) -> Page[Any]: ...


class AccountSnapshot:
    """Thread-safe. ``now`` is any monotonic time in seconds, the same for all calls."""

    def __init__(self, storage: Storage | None = None) -> None:
        self._storage: Storage = storage or InMemory()
        self._guard, self._waiting, self._single = threading.Lock(), 0, 0

    def get(
        self, part: str, ask: Callable[[], Answers], now: Now, max_age: float, ask_again: AskAgain = None
    ) -> dict[str, list[Any]]:
        """The objects of a part, by list. At most ``max_age`` seconds old, or asked for after this call by
        whoever held the right to ask; else all of it is asked for. Without ``ask_again`` what is in doubt is
        gone.
        """
        called = now()
        kept = self._storage.load(part)
        if kept.is_whole and kept.is_fresh(called, max_age) and not kept.doubted:
            return _lists(kept)
        with self._storage.asking(part):
            kept = self._storage.load(part)
            if not (kept.is_whole and _is_usable(kept, called, now(), max_age)):
                began = now()
                with self._asking(part):
                    answers = ask()
                return _lists(
                    self._storage.change(
                        part, lambda kept: Kept(began, changes=kept.changes).answered(answers)
                    )
                )
            for operation, key in sorted(kept.doubted):
                row = ask_again(operation, key) if ask_again else None
                self.apply(Change("delete" if row is None else "set", part, operation, key, row))
            return _lists(self._storage.load(part))

    def find(
        self, part: str, operation: str, key: str, max_age: float, page: ReadPage, now: Now, at_once: int = 1
    ) -> Any:
        """One object as a list shows it, at most ``max_age`` seconds old; None: it must be read singly, and
        what that shows must be applied. ``at_once``: the pages that are read before anything is singly."""

        def is_enough(kept: Kept) -> bool:
            single = max(kept.single, self._single) + self._waiting - 1
            allowed = at_once if single < SINGLE_READS else _PAGES * _TIMES ** (single - SINGLE_READS)
            is_known = key in kept.rows[operation] or (operation, key) in kept.doubted
            return is_known or kept.pages >= allowed

        with self._guard:
            self._waiting += 1
        try:
            kept = self._read(part, operation, page, now, max_age, is_enough)
        finally:
            with self._guard:
                self._waiting -= 1
        if kept.cursor is not None and key not in kept.rows[operation]:
            with self._guard:
                self._single += 1
            self._storage.change(part, lambda kept: replace(kept, single=kept.single + 1))
        return kept.row(operation, key)

    def listed(self, part: str, operation: str, page: ReadPage, now: Now, max_age: float) -> list[Any]:
        """One list; what could not be read is ``Damaged`` in it."""
        kept = self._read(part, operation, page, now, max_age, lambda kept: False)
        return [*kept.rows[operation].values()]

    def row(self, part: str, operation: str, key: str, now: float, max_age: float) -> Any:
        """One object as it is known; None if it is not, or only as it was longer ago. Asks nothing."""
        kept = self._storage.load(part)
        return kept.row(operation, key) if kept.is_fresh(now, max_age) else None

    def forget(self, part: str) -> None:
        """Ask for the whole part again when it is wanted next."""
        self.apply(Change("forget", part))

    def apply(self, change: Change) -> None:
        """A write of ours has been answered, or a read of one object."""
        kept = self._storage.load(change.part)
        if kept.at is None and not kept.is_asked:
            return  # nothing is known that it could have changed
        self._storage.change(change.part, lambda kept: kept.after(change))

    def _read(
        self,
        part: str,
        operation: str,
        page: ReadPage,
        now: Now,
        max_age: float,
        is_enough: Callable[[Kept], bool],
    ) -> Kept:
        """The part, with as many pages of a list as are enough."""
        called = now()
        kept = self._storage.load(part)
        if kept.is_fresh(called, max_age) and (kept.cursor is None or is_enough(kept)):
            return kept
        with self._storage.asking(part):
            kept = self._storage.load(part)
            if not _is_usable(kept, called, now(), max_age):
                kept = Kept()
            while kept.cursor is not None or kept.at is None:
                if kept.at is None:  # never asked for, or forgotten meanwhile
                    kept = self._storage.change(part, partial(_begun, operation, now()))
                if is_enough(kept):
                    break
                try:
                    with self._asking(part):
                        found = page(operation, cursor=kept.cursor or None)
                except BaseException:
                    self.forget(part)
                    raise
                with_page = partial(
                    Kept.answered,
                    answers={operation: found.data},
                    cursor=found.next_cursor or None,
                    pages=kept.pages + 1,
                )
                kept = self._storage.change(part, with_page)
            return kept

    @contextmanager
    def _asking(self, part: str) -> Iterator[None]:
        """While the part is asked for, its changes are noted."""
        self._storage.change(part, lambda kept: replace(kept, is_asked=True, changes=()))
        try:
            yield
        except BaseException:
            self._storage.change(part, lambda kept: replace(kept, is_asked=False, changes=()))
            raise


def _is_usable(kept: Kept, called: float, now: float, max_age: float) -> bool:
    """Whether it is young enough, or was asked for since ``called``."""
    return kept.is_fresh(now, max_age) or (kept.at is not None and kept.at > called)


def _begun(operation: str, at: float, kept: Kept) -> Kept:
    return Kept(at, {operation: {}}, cursor="")


def _lists(kept: Kept) -> dict[str, list[Any]]:
    return {operation: list(rows.values()) for operation, rows in kept.rows.items()}
