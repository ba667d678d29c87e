"""What the generator works with: the operation it decides for, and what it has decided so far."""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from pulumi.runtime.proto.alias_pb2 import Alias
from pulumi.runtime.proto.provider_pb2 import CheckFailure

from ..errors import AlreadyReported, PluginError
from ..model.goals import Goal, Targets
from ..model.graph import Graph
from ..model.property_values import Properties, SecretValue
from ..model.provider_results import ProviderDiff
from ..model.state import ResourceState
from ..model.urns import STACK_TYPE, make_urn, qualified_type, urn_name, urn_type
from ..providers.registry import ResourceProvider
from ..steps.base import Op, Step, StepContext
from ..steps.changes import DeleteStep, SameStep
from ..steps.reads import ImportStep, RefreshStep

Mode = Literal["update", "refresh", "destroy"]


class Deciding(StepContext, Protocol):
    """The operation that steps are decided for."""

    stack: str
    project: str
    targets: Targets
    target_dependents: bool
    resources: list[ResourceState]
    """The resources of the state, in its order."""
    olds: dict[str, ResourceState]
    """The same by URN, without those that wait for their deletion."""
    graph: Graph

    def error(self, message: str, urn: str = "") -> None: ...
    def package_config(self, type: str) -> Properties: ...


Work = Callable[[], ProviderDiff] | RefreshStep | ImportStep | list[Step]
"""What may take long, and is done without the engine's lock: a diff to ask a provider for, or steps to run
before the decision goes on."""

Result = TypeVar("Result")
Course = Generator[Work, ProviderDiff | None, Result]
"""A decision under way: it yields what may take long, and is sent the diff that it asked for."""


@dataclass(frozen=True)
class Decision:
    """The steps for a resource, and the answer to the program once they are done."""

    steps: list[Step]
    state: ResourceState
    unknown: bool = False


Outcome = Literal["same", "create", "update", "replace", "read", "refresh", "import", "skip"]


class Outcomes:
    """What was decided, by URN. A resource can have several outcomes: refreshed, then unchanged."""

    def __init__(self) -> None:
        self._by_urn: dict[str, set[Outcome]] = defaultdict(set)

    def add(self, outcome: Outcome, *urns: str) -> None:
        for urn in urns:
            self._by_urn[urn].add(outcome)

    def remove(self, outcome: Outcome, urn: str) -> None:
        self._by_urn[urn].discard(outcome)

    def has(self, urn: str, *outcomes: Outcome) -> bool:
        return urn in self._by_urn and not self._by_urn[urn].isdisjoint(outcomes)

    def urns(self, *outcomes: Outcome) -> set[str]:
        return {urn for urn, found in self._by_urn.items() if not found.isdisjoint(outcomes)}


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
        parent = goal.state.parent
        if parent in self._old_of:
            yield self._inherited(goal.state.type, goal.name, parent)
            for urn in own:
                yield self._inherited(urn_type(urn), urn_name(urn), parent)

    def _alias(self, goal: Goal, alias: Alias) -> str:
        if alias.urn:
            return alias.urn
        spec = alias.spec
        parent = self._old_of.get(spec.parentUrn, spec.parentUrn) or goal.state.parent
        if spec.noParent or qualified_type(parent) == STACK_TYPE:
            parent = ""
        stack, project = spec.stack or self._stack, spec.project or self._project
        return make_urn(stack, project, parent, spec.type or goal.state.type, spec.name or goal.name)

    def _inherited(self, type: str, name: str, parent: str) -> str:
        """The old URN of a child. A name that starts with its parent's name started with the old one."""
        old_parent = self._old_of[parent]
        if name.startswith(urn_name(parent)):
            name = urn_name(old_parent) + name.removeprefix(urn_name(parent))
        return make_urn(self._stack, self._project, old_parent, type, name)


@dataclass
class Decisions:
    """Everything decided in one operation. Read and written under the engine's lock."""

    operation: Deciding
    mode: Mode
    refresh: bool
    """Refresh every registered resource first."""
    names: Names
    outcomes: Outcomes = field(default_factory=Outcomes)
    registered: dict[str, ResourceState] = field(default_factory=dict)
    """The new state of every registered resource, by URN."""
    deleted: set[str] = field(default_factory=set)
    """URNs with a delete step; shared with the delete steps themselves."""
    pending_deletes: set[int] = field(default_factory=set)
    """Identities of the states that a delete-before-replace deletes."""
    to_delete: list[ResourceState] = field(default_factory=list)
    """What a destroy has registered by running the program."""
    replace_keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refreshed: dict[int, ResourceState] = field(default_factory=dict)
    """From the identity of a state to what a refresh found."""
    targeted: set[str] = field(default_factory=set)
    errored: bool = False

    def find_old(self, urn: str, goal: Goal) -> tuple[ResourceState | None, str]:
        """The resource in the state, and the old URN if it was found by an alias."""
        old, alias = self.names.find_old(urn, goal, self.operation.olds)
        if alias:
            self.operation.registry.add_alias(urn, alias)
        return old, alias

    def is_done(self, urn: str) -> bool:
        """Whether a resource of the state was dealt with."""
        return self.outcomes.has(self.names.current(urn), "same", "update", "replace", "read", "refresh")

    def is_targeted(self, state: ResourceState) -> bool:
        targets = self.operation.targets
        if not targets or state.urn in targets:
            return True
        return self.operation.target_dependents and not self.targeted.isdisjoint(state.needed_urns())

    def provider_of(self, state: ResourceState) -> ResourceProvider | None:
        """The provider of a resource; None for a component."""
        return self.operation.provider_of(state) if state.custom else None

    def report(self, new: ResourceState, failures: Sequence[CheckFailure]) -> None:
        """Tell the user what the provider's check found. Raises `AlreadyReported` when there is something."""
        for failure in failures:
            if failure.property:
                value = shown(new.inputs.get(failure.property))
                problem = f": property {failure.property} value {value} has a problem: {failure.reason}"
            else:
                problem = f" has a problem: {failure.reason}"
            self.operation.error(f"{new.type} resource '{new.name}'{problem}", new.urn)
        if failures:
            raise AlreadyReported(f"resource {new.urn} is invalid")

    def refuse(self, urn: str, message: str, *, in_previews: bool = False) -> None:
        """Report a decision that fails the operation. Raises `AlreadyReported`; a preview may go on instead,
        and show the rest.
        """
        self.operation.error(message, urn)
        self.errored = True
        if in_previews or not self.operation.preview:
            raise AlreadyReported

    # Decisions that many paths end with.

    def delete(self, state: ResourceState, *, replacing: bool = False, pending: bool = False) -> DeleteStep:
        """The delete of a resource. `pending`: it stays in the state until its replacement is there."""
        self.deleted.add(state.urn)
        op: Op = "discard" if state.external else "delete"
        if replacing:
            op = "discard-replaced" if state.external else "delete-replaced"
        return DeleteStep(op, state, replacing=replacing, pending_replacement=pending, deleted=self.deleted)

    def decide(self, steps: list[Step], new: ResourceState) -> Decision:
        """These steps, unless one depends on a create that was skipped because it was not targeted."""
        if self.operation.targets:
            for step in steps:
                if step.new is not None and not (isinstance(step, SameStep) and step.skipped):
                    self._refuse_skipped(step, step.new)
        return Decision(steps, new)

    def _refuse_skipped(self, step: Step, new: ResourceState) -> None:
        for urn in sorted(self.outcomes.urns("skip").intersection(new.needed_urns())):
            message = (
                f"Resource '{step.urn}' depends on '{urn}' which was was not specified in --target list."
            )
            self.refuse(step.urn, message)
            self.outcomes.remove("skip", urn)

    def unchanged(self, old: ResourceState, new: ResourceState) -> Decision:
        self.outcomes.add("same", new.urn)
        return self.decide([SameStep("same", old, new)], new)

    def skip_create(self, new: ResourceState) -> Decision:
        """Leave out a create that is not targeted."""
        self.outcomes.add("same", new.urn)
        self.outcomes.add("skip", new.urn)
        return Decision([SameStep("same", new.copy(), new, skipped=True)], new, unknown=True)


def shown(value: object) -> str:
    """A refused value as Pulumi prints it. Secrets stay hidden; Pulumi would print them."""
    if isinstance(value, SecretValue):
        return "[secret]"
    return "{<nil>}" if value is None else f"{{{value}}}"
