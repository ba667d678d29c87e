"""The dependency graph: a resource only ever depends on resources before it in the list."""

from collections.abc import Iterable

from .state import ResourceState


class Graph:
    def __init__(self, resources: Iterable[ResourceState]) -> None:
        self.resources = list(resources)
        self._index = {id(state): position for position, state in enumerate(self.resources)}
        self._standing: dict[int, int] = {}
        self._by_urn: dict[str, list[int]] = {}
        self._children: dict[str, list[int]] = {}
        for position, state in enumerate(self.resources):
            self._by_urn.setdefault(state.urn, []).append(position)
            if state.parent:
                self._children.setdefault(state.parent, []).append(position)

    def alias(self, new: ResourceState, old: ResourceState) -> None:
        """Let `new` stand where `old` stands."""
        self._index[id(new)] = self._index[id(old)]
        self._standing[id(old)] = id(new)

    def __contains__(self, state: ResourceState) -> bool:
        return id(state) in self._index

    def dependencies_of(self, state: ResourceState) -> list[ResourceState]:
        """What must outlive a resource: its dependencies (with the children of components), its provider, its
        parent.
        """
        at = self._index[id(state)]
        urns = state.needed_urns(with_parent=False)
        needed_positions = (self._by_urn.get(urn, ()) for urn in (urns | {state.parent}))
        found = {position for positions in needed_positions for position in positions if position < at}
        for position in list(found):
            needed = self.resources[position]
            if not needed.custom and needed.urn in urns:
                found |= {child for child in self._descendants(needed.urn) if child < at}
        return [self.resources[position] for position in sorted(found)]

    def _descendants(self, urn: str) -> set[int]:
        found: set[int] = set()
        todo = [urn]
        while todo:
            for child in self._children.get(todo.pop(), ()):
                if child not in found:
                    found.add(child)
                    todo.append(self.resources[child].urn)
        return found

    def all_dependencies_of(self, state: ResourceState) -> set[int]:
        """Identities (`id()`) of everything this resource depends on, near or far."""
        found: set[int] = set()
        todo = [state]
        while todo:
            for needed in self.dependencies_of(todo.pop()):
                if id(needed) not in found:
                    found.add(id(needed))
                    todo.append(needed)
        return found

    def depths(self, states: Iterable[ResourceState]) -> dict[int, int]:
        """The depth of each state among the given ones, by identity: 0 for one that depends on none of the
        others.
        """
        depths: dict[int, int] = {}
        # What a state depends on comes before it, so its depth is known when it is needed.
        for state in sorted(states, key=lambda state: self._index[id(state)]):
            needed = (self._standing.get(id(other), id(other)) for other in self.dependencies_of(state))
            depths[id(state)] = max((depths[key] for key in needed if key in depths), default=-1) + 1
        return depths

    def depending_on(
        self, root: ResourceState, ignore: Iterable[str] = (), *, with_children: bool = False
    ) -> list[ResourceState]:
        """Resources that depend on `root`, near or far, in order."""
        if root not in self:
            return []
        ignored = set(ignore)
        depended = {root.urn}
        found = []
        for state in self.resources[self._index[id(root)] + 1 :]:
            if state.urn in ignored:
                continue
            if not depended.isdisjoint(state.needed_urns(with_parent=with_children)):
                found.append(state)
                depended.add(state.urn)
        return found


def rebuild(resources: Iterable[ResourceState]) -> list[ResourceState]:
    """The same resources without references to removed ones; an orphan gets its parent's parent."""
    result: list[ResourceState] = []
    present: set[str] = set()
    parents: dict[str, str] = {}
    for state in resources:
        if not state.depends_on() <= present:
            state.dependencies = [urn for urn in state.dependencies if urn in present]
            state.property_dependencies = {
                key: kept
                for key, urns in state.property_dependencies.items()
                if (kept := [urn for urn in urns if urn in present])
            }
            state.replace_with = [urn for urn in state.replace_with if urn in present]
            state.deleted_with = state.deleted_with if state.deleted_with in present else ""
        parent = state.parent
        while parent and parent not in present:
            parent = parents.get(parent, "")
        if parent != state.parent:
            state.parent = parent
        parents[state.urn] = parent
        present.add(state.urn)
        result.append(state)
    return result
