"""Decides about the resources that the program did not register: refreshed, kept or deleted."""

from ..errors import AlreadyReported
from ..model.graph import Graph
from ..model.state import ResourceState
from ..steps.base import Step
from ..steps.changes import SameStep
from ..steps.reads import RefreshStep
from .decisions import Decisions
from .dependents import dependent_replacements


def refreshes(decisions: Decisions) -> list[RefreshStep]:
    """Refresh steps for what is in the state and was not registered."""
    operation = decisions.operation
    steps = []
    for state in operation.resources:
        if not decisions.is_done(state.urn) and state.urn in operation.targets:
            operation.registry.ensure(state.provider, operation.resources)
            decisions.outcomes.add("refresh", state.urn)
            steps.append(RefreshStep("refresh", state, state))
    return steps


def deletions(decisions: Decisions) -> tuple[list[Step], list[list[Step]]]:
    """Steps that keep what is not targeted, and batches of deletes.

    The deletes of one batch are independent of each other; the batches run one after the other.
    """
    operation = decisions.operation
    allowed = _deletable(decisions) if operation.targets else None
    sames: list[Step] = []
    deletes: list[Step] = []
    for old in list(operation.resources):
        if allowed is None or old.urn in allowed:
            delete = _delete(decisions, decisions.refreshed.get(id(old), old))
            deletes += [delete] if delete else []
        elif not decisions.is_done(old.urn):
            sames.append(SameStep("same", old, old.copy(id=""), untargeted=True))
    for state in decisions.to_delete:
        if allowed is None or state.urn in allowed:
            deletes.append(decisions.delete(state))
    _refuse_untargeted(decisions, deletes)
    return sames, _batches(deletes, scheduling_graph(decisions))


def _delete(decisions: Decisions, state: ResourceState) -> Step | None:
    """How one resource of the state leaves it; None for one that stays."""
    step: Step | None = None
    if state.delete:
        if id(state) in decisions.pending_deletes:
            return None
        step = decisions.delete(state, replacing=True)
    elif not decisions.is_done(state.urn):
        if state.pending_replacement:
            decisions.deleted.add(state.urn)
            step = Step("remove-pending-replace", state, replacing=True, hidden=True)
        else:
            step = decisions.delete(state)
    if state.urn in decisions.deleted:
        decisions.operation.registry.ensure(state.provider, decisions.operation.resources)
    return step


def _refuse_untargeted(decisions: Decisions, deletes: list[Step]) -> None:
    operation = decisions.operation
    if operation.target_dependents:
        return
    refused = [step.urn for step in deletes if step.urn not in operation.targets]
    for urn in refused:
        operation.error(
            f"Resource '{urn}' will be destroyed but was not specified in --target list.\nEither include "
            "resource in --target list or pass --target-dependents to proceed.",
            urn,
        )
        decisions.errored = True
    if refused and not operation.preview:
        raise AlreadyReported


def _deletable(decisions: Decisions) -> set[str]:
    """Targets, and what cannot stay without them."""
    operation = decisions.operation
    graph = scheduling_graph(decisions)
    found: set[str] = set()
    for root in [state for state in operation.resources if state.urn in operation.targets]:
        found.add(root.urn)
        found |= {state.urn for state in graph.depending_on(root, with_children=True)}
        found |= {state.urn for state, _ in dependent_replacements(decisions, root)}
    return found


def scheduling_graph(decisions: Decisions) -> Graph:
    """Dependencies between the deletes: refreshed states stand for the states they were read from."""
    graph = Graph([*decisions.to_delete, *decisions.operation.resources])
    for before in decisions.operation.resources:
        if id(before) in decisions.refreshed:
            graph.alias(decisions.refreshed[id(before)], before)
    return graph


def _batches(deletes: list[Step], graph: Graph) -> list[list[Step]]:
    """Dependents first: a resource's depth is one more than that of what it depends on; the deepest come
    first.
    """
    depths = graph.depths([step.before for step in deletes])
    batches: dict[int, list[Step]] = {}
    for step in deletes:
        batches.setdefault(depths[id(step.before)], []).append(step)
    return [batches[depth] for depth in sorted(batches, reverse=True)]
