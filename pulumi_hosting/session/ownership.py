"""Which resource owns which object, so that two resources never take the same one.

An engine requests many creations at once and never says which objects a resource already has. A process
therefore records every id with the identity of its resource, and lets only one of several resources of the
same natural key search at a time.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Ownership:
    """Ids by identity, and one lock per natural key. Thread-safe. For ids of one kind: see ``of_kind``."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._ids: dict[str, set[str]] = {}
        self._owners: dict[str, list[str]] = {}
        """The identities of each id."""
        self._names: dict[str, str] = {}
        self._labels: dict[str, set[str]] = {}
        """Labels of the declarations that have an id."""
        self._declared: dict[str, str] = {}
        """The label of an identity that declares a natural key."""
        self._locks: dict[str, threading.Lock] = {}
        self._kinds: dict[str, Ownership] = {}

    def of_kind(self, kind: str) -> "Ownership":
        """The ownership of one kind of object: an SSH key and a server may have the same id."""
        with self._guard:
            return self._kinds.setdefault(kind, Ownership())

    def add(self, identity: str, id: str, label: str = "") -> None:
        """``label``: what tells the declaration that has it from the others of the program."""
        with self._guard:
            if label:
                self._labels.setdefault(id, set()).add(label)
            if id not in self._ids.setdefault(identity, set()):
                self._ids[identity].add(id)
                self._owners.setdefault(id, []).append(identity)

    def of(self, identity: str) -> frozenset[str]:
        """The ids recorded with ``identity``."""
        with self._guard:
            return frozenset(self._ids.get(identity, ()))

    def is_of_another(self, identity: str, id: str) -> bool:
        """Whether the id is recorded with another identity. Without the lock: a list only grows, and an order
        asks this of every server of the account."""
        return any(owner != identity for owner in self._owners.get(id, ()))

    def labels(self, id: str) -> frozenset[str]:
        """The labels of the declarations that have this id, as far as they are known."""
        with self._guard:
            return frozenset(self._labels.get(id, ()))

    def name(self, identity: str, name: str, label: str = "") -> frozenset[str]:
        """Record the natural key that ``identity`` declares now; the labels of the other declarations of the
        same one. A renamed declaration may have two identities, and has one label.
        """
        with self._guard:
            self._names[identity], self._declared[identity] = name, label or identity
            others = {self._declared[owner] for owner, known in self._names.items() if known == name}
            return frozenset(others - {label or identity})

    def owner(self, id: str) -> str | None:
        """An identity that has this id, the first one."""
        return next(iter(self._owners.get(id, ())), None)

    def named(self, identity: str) -> str | None:
        """The natural key that ``identity`` declares now, if that is known."""
        with self._guard:
            return self._names.get(identity)

    @contextmanager
    def lock(self, natural_key: str) -> Iterator[None]:
        """Hold the natural key during a search and the creation that follows it."""
        with self._guard:
            lock = self._locks.setdefault(natural_key, threading.Lock())
        with lock:
            yield
