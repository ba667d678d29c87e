"""Which objects a run replaces, and which entries of the stack's state hold which object, as far as this
process knows.

An engine never says that it replaces something, nor in which order: ``delete_before_replace`` reaches no
provider. It asks for a check with the former inputs, a comparison, and a check without former inputs; then it
creates the new object and deletes the old one, or deletes first. What depends on an object that is deleted
first may be deleted, too, before the program declares it again: of that there is a comparison alone, with
values that are not known.

An engine never says either which of two entries of its state is the newer one: after a replacement whose
creation found the old object, both name it, and one of them is to be deleted. Each creation therefore stamps
its entry (``__entry`` among the outputs). A deletion is held back only by *another* entry with the same
object: one made in this process, or one that the program keeps. Nothing else decides about a deletion.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from pulumi_hosting.planning.diff import Diff
from pulumi_hosting.provider.names import PropertyValues
from pulumi_hosting.resources.base import AnyResource, State

Wanted = Callable[[], PropertyValues] | None
"""The values that an object is to be made of."""


@dataclass
class Declaring:
    """A declaration of the program, and the object that the stack has of it.

    - ``state``: the object as it was read or compared; None if there is none, or if it is deleted.
    - ``wanted``: the values that another one is to be made of, until it is made; ``known``: all of them.
    - ``made``: another one was made.
    - ``changed``: the fields that a comparison found changed, and that replace nothing.
    """

    resource: AnyResource
    identity: str = ""
    state: State | None = None
    wanted: Wanted = None
    known: bool = True
    made: bool = False
    changed: frozenset[str] = frozenset()

    @property
    def is_replaced(self) -> bool:
        return self.state is not None and (self.made or self.wanted is not None)

    def values(self) -> PropertyValues:
        return self.wanted() if self.wanted else {}

    def __str__(self) -> str:
        return f"{self.resource.title} {self.state.id}" if self.state else self.resource.title


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


class Replacements:
    """Thread-safe. ``label``: what tells a declaration from the others of the program (see ``Request``)."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._declared: dict[str, Declaring] = {}
        self._deleted: list[tuple[str, State]] = []
        self._holders: dict[Held, list[Holder]] = {}
        self._checked: set[str] = set()
        self._tags: dict[Held, dict[str | None, str | None]] = {}

    # --- declarations and their objects

    def checked(
        self, label: str, resource: AnyResource, identity: str, wanted: Wanted, *, known: bool = True
    ) -> None:
        """The program declares it: as a new object, of the values ``wanted``, or (None) with former inputs.
        ``known``: whether those are all its values; else it was only compared.
        """
        with self._lock:
            if known:  # a comparison from now on is with the program, not that of a refresh
                self._checked.add(identity)
            declared = self._declared.setdefault(label, Declaring(resource))
            declared.identity, declared.wanted, declared.known = identity, wanted, known

    def made(self, label: str) -> None:
        """The object that was ``wanted`` is there."""
        with self._lock:
            if declared := self._declared.get(label):
                declared.wanted, declared.made = None, True

    def deleted(self, resource: AnyResource, state: State) -> None:
        with self._lock:
            self._deleted.append((resource.title, state))
            for declared in self._declared.values():
                if _is_of(declared, resource, state.id):
                    declared.state = None

    def under_way(self) -> list[Declaring]:
        """The declarations whose objects are replaced, and not deleted yet."""
        with self._lock:
            return [declared for declared in self._declared.values() if declared.is_replaced]

    def of(self, label: str) -> Declaring | None:
        with self._lock:
            return self._declared.get(label)

    def has_newer(self, label: str, id: str) -> bool:
        """Whether the stack has a newer entry of the declaration than the one of this object."""
        declared = self.of(label)
        return declared is not None and (declared.made or getattr(declared.state, "id", id) != id)

    def awaited(self, resource: AnyResource, id: str, label: str) -> Declaring | None:
        """The declaration of the object, if another one is to be made in its place and is not there yet."""
        with self._lock:
            for declared in self._declared.values():
                if declared.wanted is not None and _is_of(declared, resource, id):
                    return declared
            demanded = self._declared.get(label)  # replaced on demand, without a comparison
            if demanded is None or demanded.wanted is None or demanded.state is not None:
                return None
            return demanded

    def deleted_of_server(self, id: str) -> list[str]:
        """What was on the server and this process has deleted."""
        with self._lock:
            return [
                f"{title} {getattr(state, 'address', None) or state.id}"
                for title, state in self._deleted
                if getattr(state, "server_id", None) == id
            ]

    # --- entries and the objects that they hold

    def created(self, held: Held, identity: str, label: str, adopted: str | None) -> str:
        """A creation returned the object: the stamp of its new entry."""
        holder = Holder(uuid4().hex[:16], identity, True, label, adopted)
        with self._lock:
            self._holders.setdefault(held, []).append(holder)
        return str(holder.entry)

    def compared(
        self, label: str, resource: AnyResource, state: State, entry: str | None, identity: str, found: Diff
    ) -> None:
        """The entry was compared with what is declared."""
        with self._lock:
            declared = self._declared.setdefault(label, Declaring(resource))
            declared.state, declared.made = state, False
            declared.changed = frozenset() if found.replaces else found.fields
            holders = self._holders.setdefault((resource.kind, state.id), [])
            holders[:] = [holder for holder in holders if holder.created or holder.entry != entry]
            if not found.replaces and identity in self._checked:
                holders.append(Holder(entry, identity, created=False))

    def read(self, label: str, resource: AnyResource, state: State, entry: str | None) -> None:
        """The entry was refreshed."""
        with self._lock:
            declared = self._declared.setdefault(label, Declaring(resource))
            declared.state, declared.made, declared.changed = state, False, frozenset()
            tags = self._tags.setdefault((resource.kind, state.id), {})
            tags[entry] = getattr(state, "ownership_tag", None)

    def is_recorded(self, held: Held, tag: str | None, but: str | None) -> bool:
        """Whether another entry than ``but`` was refreshed in this process and records the ownership tag, so
        that it is the one that took over.
        """
        with self._lock:
            entries = self._tags.get(held, {}).items()
            return tag is not None and any(known == tag for entry, known in entries if entry != but)

    def other(self, held: Held, entry: str | None) -> Holder | None:
        """Another entry with the same object; one that was created here before one that was kept."""
        with self._lock:
            others = [holder for holder in self._holders.get(held, ()) if holder.entry != entry]
        return min(others, key=lambda holder: not holder.created, default=None)


def _is_of(declared: Declaring, resource: AnyResource, id: str) -> bool:
    state = declared.state
    return state is not None and (declared.resource.kind, state.id) == (resource.kind, id)
