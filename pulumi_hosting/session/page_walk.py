"""Reading objects one by one: by single requests, or by the pages of a list.

An engine asks for one object after the other and never says how many there will be. A page shows a hundred
for one request; a thousand servers are ten pages, or a thousand single reads. The rule:

- The first page is read for the first object. An object on a page that was read costs nothing.
- An object on none of them is read singly, until three were, of all kinds together. Then 16 pages may be
  read, and four times as many after each further single read. Objects that others wait for at this moment
  count as read singly.
- An object that a whole list does not show is read singly: only that answer shows that it is absent.

So ``n`` objects of a list of ``p`` pages cost at most one page and ``n`` single reads where ``n`` is 3 or
less. Else they cost at most ``p`` pages and 3 single reads if ``p`` is at most 16, and at most 4 single reads
if it is at most 64. That is more than ``n`` requests only where ``n`` is less than ``p``: a stack with less
than one hundredth of the account's objects.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from pulumi_hosting.api.models import Page
from pulumi_hosting.client.results import Damaged

SINGLE_READS = 3
_PAGES, _TIMES = 16, 4


class SingleReads:
    """How many objects were read singly, of all kinds."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.count = 0

    def add(self) -> None:
        with self._guard:
            self.count += 1


class PageWalk:
    """The pages of one list, read as far as they were needed. Thread-safe.

    ``single``: shared by the walks of a process.
    """

    def __init__(self, single: SingleReads) -> None:
        self._single = single
        self._lock, self._guard = threading.Lock(), threading.Lock()
        self._asking = 0
        self._begin(None, iter(()))

    def forget(self) -> None:
        """Begin again with the next object: what was read may be untrue by now."""
        self._is_forgotten = True

    def _begin(self, at: float | None, pages: Iterator[Page[Any]]) -> None:
        self._at, self._pages = at, pages
        self._found: dict[str, Any] = {}
        self._written: set[str] = set()
        self._count = 0
        self._is_whole = self._is_forgotten = False

    def remember(self, id: str, found: Any) -> None:
        """What a read of one object showed; None: that must be asked for, since it was written."""
        self._written.add(id)
        if found is None:
            self._found.pop(id, None)
        else:
            self._found[id] = found

    def known(self, id: str, now: float, max_age: float) -> Any:
        """The object as a page showed it at most ``max_age`` seconds ago; None if none did. Asks nothing."""
        with self._lock:
            is_fresh = not self._is_forgotten and self._at is not None and now - self._at <= max_age
            return self._found.get(id) if is_fresh else None

    def find(
        self, id: str, pages: Callable[[], Iterator[Page[Any]]], now: Callable[[], float], max_age: float
    ) -> Any:
        """The object on a page at most ``max_age`` seconds old by the monotonic clock ``now``; None: it must
        be read singly. ``pages`` begins a walk of the list."""
        with self._guard:
            self._asking += 1
        try:
            with self._lock:
                if self._is_forgotten or self._at is None or now() - self._at > max_age:
                    self._begin(now(), pages())
                while not (id in self._found or id in self._written or self._is_whole):
                    if self._count >= self._allowed():
                        self._single.add()
                        return None
                    self._read_page()
                return self._found.get(id)
        finally:
            with self._guard:
                self._asking -= 1

    def whole(
        self, pages: Callable[[], Iterator[Page[Any]]], now: Callable[[], float], max_age: float
    ) -> list[Any]:
        """All objects of the list but those that were written since."""
        with self._lock:
            if self._is_forgotten or self._at is None or now() - self._at > max_age:
                self._begin(now(), pages())
            while not self._is_whole:
                self._read_page()
            return list(self._found.values())

    def _allowed(self) -> int:
        """How many pages may be read for the objects that were asked for so far."""
        single = self._single.count + self._asking - 1
        return 1 if single < SINGLE_READS else _PAGES * _TIMES ** (single - SINGLE_READS)

    def _read_page(self) -> None:
        try:
            page = next(self._pages)
        except BaseException:
            self.forget()
            raise
        self._count += 1
        self._is_whole = not page.next_cursor
        for item in page.data:
            if not isinstance(item, Damaged) and str(item.id) not in self._written:
                self._found[str(item.id)] = item
