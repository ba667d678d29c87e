"""Decides which steps bring resources to what the program declares, by the rules of Pulumi's step
generator.
"""

from collections.abc import Generator
from typing import Any

from ..model.goals import Goal, ReadGoal
from ..model.graph import Graph
from ..model.state import ResourceState
from ..steps.base import Step
from . import deletions, read_decisions, registrations
from .decisions import Deciding, Decision, Decisions, Mode, Work
from .urn_names import Names


class StepGenerator:
    """Decides for one operation. Every method runs under the engine's lock.

    `register` and `import_resource` are generators: they yield what takes time (a refresh, a diff, an
    import), and the engine does it without the lock.
    """

    def __init__(self, operation: Deciding, mode: Mode = "update", *, refresh: bool = False) -> None:
        self._decisions = Decisions(operation, mode, refresh, Names(operation.stack, operation.project))

    @property
    def errored(self) -> bool:
        """Whether a decision failed and a preview went on after it."""
        return self._decisions.errored

    @property
    def urns(self) -> set[str]:
        return self._decisions.names.taken

    def registered(self) -> list[ResourceState]:
        return list(self._decisions.registered.values())

    def register(self, goal: Goal) -> Generator[Work, Any, Decision]:
        return registrations.register(self._decisions, goal)

    def read(self, goal: ReadGoal) -> Decision:
        return read_decisions.read(self._decisions, goal)

    def import_resource(self, goal: Goal) -> Generator[Work, Any, Decision]:
        return read_decisions.import_resource(self._decisions, goal)

    def refreshes(self) -> list[Step]:
        return deletions.refreshes(self._decisions)

    def deletions(self) -> tuple[list[Step], list[list[Step]]]:
        return deletions.deletions(self._decisions)

    def scheduling_graph(self) -> Graph:
        return deletions.scheduling_graph(self._decisions)
