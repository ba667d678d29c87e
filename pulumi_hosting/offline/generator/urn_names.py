"""The URNs of an operation, and the old URNs that aliases lead to."""

from collections.abc import Iterable, Mapping

from ..errors import AlreadyReported, PluginError
from ..model.goals import Alias, Goal
from ..model.state import ResourceState
from ..model.urns import STACK_TYPE, make_urn, qualified_type, urn_name, urn_type


class NameClash(AlreadyReported):
    """Two resources have one URN or alias. `urn` is the one registered second."""

    def __init__(self, message: str, urn: str) -> None:
        super().__init__(message)
        self.urn = urn


class Names:
    """The URNs given out so far, and the old URNs they stand for."""

    def __init__(self, stack: str, project: str) -> None:
        self._stack = stack
        self._project = project
        self.taken: set[str] = set()
        self._new_of: dict[str, str] = {}
        """Old URN -> new URN."""
        self._old_of: dict[str, str] = {}

    def claim(self, parent: str, type: str, name: str) -> str:
        """The URN of a new resource. Raises `NameClash` when another one has it."""
        if parent and parent not in self.taken:
            raise PluginError(f"could not find parent resource {parent}")
        urn = make_urn(self._stack, self._project, parent, type, name)
        if urn in self.taken:
            raise NameClash(f"Duplicate resource URN '{urn}'; try giving it a unique name", urn)
        self.taken.add(urn)
        return urn

    def current(self, urn: str) -> str:
        """The new URN of an old one."""
        return self._new_of.get(urn, urn)

    def find_old(
        self, urn: str, goal: Goal, olds: Mapping[str, ResourceState]
    ) -> tuple[ResourceState | None, str]:
        """The old state, and its old URN if that was another.

        Raises `NameClash` when two resources have the same alias.
        """
        if urn in self._new_of:
            raise NameClash(
                f"Duplicate resource URN '{urn}' conflicting with alias on resource with URN "
                f"'{self._new_of[urn]}'",
                urn,
            )
        if urn in olds:
            return olds[urn], ""
        for candidate in self._aliases(goal):
            if candidate not in olds:
                continue
            if candidate in self.taken or candidate in self._new_of:
                other = self._new_of.get(candidate, candidate)
                raise NameClash(
                    f"Duplicate resource alias '{candidate}' applied to resource with URN '{urn}' "
                    f"conflicting with '{other}'",
                    urn,
                )
            self._new_of[candidate] = urn
            self._old_of[urn] = candidate
            return olds[candidate], candidate
        return None, ""

    def _aliases(self, goal: Goal) -> Iterable[str]:
        own = [self._alias(goal, alias) for alias in goal.aliases]
        yield from own
        # A renamed parent renames its children: their old URNs follow from its old URN.
        if goal.parent in self._old_of:
            yield self._inherited(goal.type, goal.name, goal.parent)
            for urn in own:
                yield self._inherited(urn_type(urn), urn_name(urn), goal.parent)

    def _alias(self, goal: Goal, alias: Alias) -> str:
        if alias.urn:
            return alias.urn
        parent = self._old_of.get(alias.parent, alias.parent) if alias.parent else goal.parent
        if alias.no_parent or qualified_type(parent) == STACK_TYPE:
            parent = ""
        stack, project = alias.stack or self._stack, alias.project or self._project
        return make_urn(stack, project, parent, alias.type or goal.type, alias.name or goal.name)

    def _inherited(self, type: str, name: str, parent: str) -> str:
        """The old URN of a child. A name that starts with its parent's name started with the old one."""
        old_parent = self._old_of[parent]
        if name.startswith(urn_name(parent)):
            name = urn_name(old_parent) + name.removeprefix(urn_name(parent))
        return make_urn(self._stack, self._project, old_parent, type, name)
