"""What this process knows to belong to whom, so that two declarations never take the same object.

Engines ask for many creations at once and never say which objects a declaration already has at that moment; a
process therefore remembers every id that it saw with a declaration, and lets only one of several declarations
of the same natural key search at a time.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Ownership:
    """Ids by declaration, and one lock per natural key. Thread-safe. Ids of one kind say nothing of
    another's: see ``of_kind``.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._ids: dict[str, set[str]] = {}
        self._names: dict[str, str] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._kinds: dict[str, Ownership] = {}

    def of_kind(self, kind: str) -> "Ownership":
        """The claims of one kind of object: an SSH key and a server may have the same number."""
        with self._guard:
            return self._kinds.setdefault(kind, Ownership())

    def add(self, identity: str, id: str) -> None:
        with self._guard:
            self._ids.setdefault(identity, set()).add(id)

    def of(self, identity: str) -> frozenset[str]:
        """Ids that ``identity`` was seen with."""
        with self._guard:
            return frozenset(self._ids.get(identity, ()))

    def of_others(self, identity: str) -> frozenset[str]:
        with self._guard:
            return frozenset(id for owner, ids in self._ids.items() if owner != identity for id in ids)

    def name(self, identity: str, name: str) -> frozenset[str]:
        """Record the natural key that ``identity`` declares now; the other identities that declare the
        same one.
        """
        with self._guard:
            self._names[identity] = name
            return frozenset(
                owner for owner, known in self._names.items() if owner != identity and known == name
            )

    def owner(self, id: str) -> str | None:
        """An identity that was seen with this id."""
        with self._guard:
            return next((owner for owner, ids in self._ids.items() if id in ids), None)

    def named(self, identity: str) -> str | None:
        """The natural key that ``identity`` declares now, if that is known."""
        with self._guard:
            return self._names.get(identity)

    @contextmanager
    def lock(self, natural_key: str) -> Iterator[None]:
        """Hold the natural key for the length of a look and the creation that follows it."""
        with self._guard:
            lock = self._locks.setdefault(natural_key, threading.Lock())
        with lock:
            yield
