"""Which objects a run replaces, as far as this process knows.

An engine never says that it replaces something, nor in which order: ``delete_before_replace`` reaches no
provider. It asks for a check with the former inputs, a comparison, and a check without former inputs; then it
creates the new object and deletes the old one, or deletes first. What depends on an object that is deleted
first may be deleted, too, before the program declares it again: of that there is a comparison alone, with
values that are not known.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pulumi_hosting.provider.names import PropertyValues
from pulumi_hosting.resources.base import AnyResource, State


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
    wanted: Callable[[], PropertyValues] | None = None
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


class Replacements:
    """Thread-safe. ``label``: what tells a declaration from the others of the program (see ``Request``)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: dict[str, Declaring] = {}
        self._deleted: list[tuple[str, State]] = []

    def found(
        self,
        label: str,
        resource: AnyResource,
        state: State,
        changed: frozenset[str] = frozenset(),
    ) -> None:
        """The stack has this object of the declaration, with these fields ``changed``."""
        with self._lock:
            declared = self._declared.setdefault(label, Declaring(resource))
            declared.state, declared.made, declared.changed = state, False, changed

    def checked(
        self,
        label: str,
        resource: AnyResource,
        identity: str,
        wanted: Callable[[], PropertyValues] | None,
        *,
        known: bool = True,
    ) -> None:
        """The program declares it: as a new object, of the values ``wanted``, or (None) with former inputs.
        ``known``: whether those are all its values.
        """
        with self._lock:
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


def _is_of(declared: Declaring, resource: AnyResource, id: str) -> bool:
    state = declared.state
    return state is not None and (declared.resource.kind, state.id) == (resource.kind, id)
