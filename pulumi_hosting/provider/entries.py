"""Which entries of the stack's state hold which object, as far as this process knows.

An engine never says which of two entries of its state is the newer one: after a replacement whose creation
found the old object, both name it, and one of them is to be deleted. Each creation therefore stamps its entry
(``__entry`` among the outputs). A deletion is held back only by *another* entry with the same object: one
made in this process, or one that the program keeps. Nothing else decides about a
deletion.
"""

import threading
from dataclasses import dataclass
from uuid import uuid4

Held = tuple[str, str]
"""An object: its kind and id."""


@dataclass(frozen=True, slots=True)
class Holder:
    """An entry that holds an object. ``created``: its creation in this process returned the object; else
    the program kept it. ``label``: what tells it from the others of the program (see ``Request``);
    ``adopted``: the input of its declaration that names the object, if one does.
    """

    entry: str | None
    identity: str
    created: bool
    label: str = ""
    adopted: str | None = None

    def replaces(self, identity: str | None, label: str) -> bool:
        """Whether the entry was created in place of one with this identity and label. After a rename that was
        taken back there are two of one identity: one that is declared no more, and a new one.
        """
        return self.created and self.identity == identity and self.label == label


class Entries:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[Held, list[Holder]] = {}
        self._checked: set[str] = set()
        self._tags: dict[Held, dict[str | None, str | None]] = {}

    def checked(self, identity: str) -> None:
        """The program declares this resource: a comparison from now on is with the program, not that of a
        refresh.
        """
        with self._lock:
            self._checked.add(identity)

    def created(self, held: Held, identity: str, label: str, adopted: str | None) -> str:
        """A creation returned the object: the stamp of its new entry."""
        holder = Holder(uuid4().hex[:16], identity, True, label, adopted)
        with self._lock:
            self._holders.setdefault(held, []).append(holder)
        return str(holder.entry)

    def compared(self, held: Held, entry: str | None, identity: str, *, kept: bool) -> None:
        """The entry was compared with what is declared; ``kept``: it is not to be replaced."""
        with self._lock:
            holders = self._holders.setdefault(held, [])
            holders[:] = [holder for holder in holders if holder.created or holder.entry != entry]
            if kept and identity in self._checked:
                holders.append(Holder(entry, identity, created=False))

    def read(self, held: Held, entry: str | None, tag: str | None) -> None:
        """The entry was refreshed, and records this ownership tag."""
        with self._lock:
            self._tags.setdefault(held, {})[entry] = tag

    def is_recorded(self, held: Held, tag: str | None, but: str | None) -> bool:
        """Whether another entry than ``but`` was refreshed in this process and records the tag, so that
        it is the one that took over.
        """
        with self._lock:
            return tag is not None and any(
                known == tag for entry, known in self._tags.get(held, {}).items() if entry != but
            )

    def other(self, held: Held, entry: str | None) -> Holder | None:
        """Another entry with the same object; one that was created here before one that was kept."""
        with self._lock:
            others = [holder for holder in self._holders.get(held, ()) if holder.entry != entry]
        return min(others, key=lambda holder: not holder.created, default=None)
