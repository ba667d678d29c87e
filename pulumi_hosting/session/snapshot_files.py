"""Where the snapshot of an account is kept for several processes, all of one run or one after the other: a
value for each part, in a store.

One process at a time asks the service; the others wait for the value and read it. Nothing in it is a secret.
If the store has no locks, each process asks for itself.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

from pulumi_hosting.client.shared_store import SharedStore
from pulumi_hosting.session.account_snapshot import InMemory, Kept
from pulumi_hosting.session.snapshot_text import from_text, to_text

SNAPSHOT = "snapshot-"


class SnapshotFiles:
    """A :class:`~pulumi_hosting.session.account_snapshot.Storage` in ``store``. ``scope``: names
    the account and its key's rights; called when it is needed."""

    _read: ClassVar[dict[tuple[SharedStore, str], tuple[bytes, Any, dict[int, tuple[Any, str]]]]] = {}
    """Of this process, by store and name: the text that was read or written last, what it says, and the texts
    of its objects."""

    def __init__(self, store: SharedStore, scope: Callable[[], str]) -> None:
        self._store, self._scope = store, scope
        self._unshared: InMemory | None = None
        """What this process knows, if nothing can be shared."""

    def load(self, part: str) -> Kept:
        if self._unshared is not None:
            return self._unshared.load(part)
        name = self._name(part)
        text = self._store.read(name)
        if not text:
            return Kept()
        known = self._read.get((self._store, name))
        if known is not None and known[0] == text:
            kept: Kept = known[1]
            return kept
        texts: dict[int, tuple[Any, str]] = {}
        try:
            kept = from_text(text.decode(), texts)
        except ValueError:  # written by another version, perhaps: it says nothing
            return Kept()
        self._read[self._store, name] = (text, kept, texts)
        return kept

    def change(self, part: str, after: Callable[[Kept], Kept]) -> Kept:
        name = self._name(part)
        with self._hold(name):
            if self._unshared is not None:
                return self._unshared.change(part, after)
            before = self.load(part)
            kept = after(before)
            if kept is not before:
                place = self._store, name
                texts = self._read[place][2] if place in self._read else {}
                text = to_text(kept, texts).encode()
                self._store.write(name, text)
                self._read[place] = (text, kept, texts)
            return kept

    @contextmanager
    def asking(self, part: str) -> Iterator[None]:
        with self._hold(f"{self._name(part).removesuffix('.json')}.asking"):
            yield

    @contextmanager
    def _hold(self, name: str) -> Iterator[None]:
        """Hold the lock of a value, where the store has locks."""
        with ExitStack() as held:
            if self._unshared is None:
                try:
                    held.enter_context(self._store.lock(name))
                except OSError:
                    self._unshared = InMemory()
            yield

    def _name(self, part: str) -> str:
        digest = hashlib.sha256(f"{self._scope()}\0{part}".encode()).hexdigest()[:32]
        return f"{SNAPSHOT}{digest}.json"
