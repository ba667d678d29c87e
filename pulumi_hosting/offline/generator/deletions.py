"""Decides about the resources that the program did not register: refreshed, kept or deleted."""

from collections.abc import Iterable
from dataclasses import replace

from ..errors import AlreadyReported
from ..model.graph import Graph
from ..model.property_values import UNKNOWN, parse_path, path_contains
from ..model.provider_results import ProviderDiff
from ..model.state import ResourceState
from ..model.urns import is_provider, provider_urn
from ..steps.base import Step, diff_resource
from ..steps.changes import SameStep
from ..steps.reads import RefreshStep
from .decisions import Decisions


def refreshes(decisions: Decisions) -> list[RefreshStep]:
    """Refresh steps for what is in the state and was not registered."""
    operation = decisions.operation
    steps = []
    for state in operation.resources:
        if not decisions.is_done(state.urn) and state.urn in operation.targets:
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
    if state.delete:
        return None if id(state) in decisions.pending_deletes else decisions.delete(state, replacing=True)
    if decisions.is_done(state.urn):
        return None
    if not state.pending_replacement:
        return decisions.delete(state)
    decisions.deleted.add(state.urn)
    return Step("remove-pending-replace", state, replacing=True, hidden=True)


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


# --- delete before replace: what would be replaced with another resource is deleted before it


INIT_ERROR_KEY = "#initerror"


def delete_dependents(decisions: Decisions, root: ResourceState, urn: str) -> list[Step]:
    """Deletes of everything that goes before `root` (now called `urn`) is replaced."""
    steps: list[Step] = []
    dependents = dependent_replacements(decisions, root) + [
        (state, ()) for state in _bound_to(decisions, urn)
    ]
    for state, keys in reversed(dependents):
        if id(state) in decisions.pending_deletes:
            continue
        decisions.replace_keys[state.urn] = keys
        if state.protect and not state.delete:
            _refuse_protected(decisions, state, urn)
        steps.append(decisions.delete(state, replacing=not state.delete, pending=not state.delete))
        decisions.pending_deletes.add(id(state))
    return steps


def _refuse_protected(decisions: Decisions, state: ResourceState, urn: str) -> None:
    message = (
        f'unable to replace resource "{state.urn}" as part of replacing "{urn}" as it is currently marked '
        "for protection. To unprotect the resource, remove the `protect` flag from the resource in your "
        f"Pulumi program and run `pulumi up`, or use the command:\n`pulumi state unprotect '{state.urn}'`"
    )
    decisions.refuse(urn, message, in_previews=True)


def _bound_to(decisions: Decisions, urn: str) -> list[ResourceState]:
    """Resources whose options say that they are deleted or replaced with this one."""
    olds = decisions.operation.olds
    found: dict[str, ResourceState] = {}
    for states in (decisions.registered, olds):
        for name, state in states.items():
            if name != urn and name not in found and (urn in state.replace_with or state.deleted_with == urn):
                old = olds.get(name)
                if old is not None and not decisions.is_done(name):
                    found[name] = old
    return list(found.values())


def dependent_replacements(
    decisions: Decisions, root: ResourceState
) -> list[tuple[ResourceState, tuple[str, ...]]]:
    """Dependents that a replacement of `root` would replace too, and the properties that cause it."""
    replaced = {root.urn}
    done = decisions.outcomes.urns("read", "create", "same", "update", "replace") | decisions.deleted
    result = []
    for state in decisions.operation.graph.depending_on(root, done):
        keys = _would_be_replaced(decisions, state, replaced)
        if keys is not None:
            replaced.add(state.urn)
            result.append((state, keys))
    return result


def _would_be_replaced(
    decisions: Decisions, state: ResourceState, replaced: set[str]
) -> tuple[str, ...] | None:
    """Ask the provider whether it would replace the resource if the values from replaced resources were
    unknown.
    """
    operation = decisions.operation
    if not state.custom or state.external:
        return None
    if provider_urn(state.provider) in replaced or state.deleted_with in replaced:
        return ()
    touched = {key for key, urns in state.property_dependencies.items() if not replaced.isdisjoint(urns)}
    inputs = {key: UNKNOWN if key in touched else value for key, value in state.inputs.items()}
    if touched.isdisjoint(state.inputs):
        return None
    if is_provider(state.type):
        operation.registry.same(state, state.inputs)
    diff = diff_resource(operation.provider_of(state), state, inputs, state.ignore_changes, preview=True)
    diff = with_replace_on_changes(diff, state.replace_on_changes, False)
    return diff.replaces if diff.replace else None


def with_replace_on_changes(diff: ProviderDiff, paths: Iterable[str], init_errors: bool) -> ProviderDiff:
    """The diff with a replacement if the program's `replace_on_changes` asks for one."""
    wanted = [parse_path(path) for path in paths]
    if not wanted or (diff.changes != "some" and not init_errors):
        return diff
    detailed = diff.detailed
    if detailed is not None:
        detailed = {
            path: f"{kind.removesuffix('-replace')}-replace"
            if any(path_contains(outer, parse_path(path)) for outer in wanted)
            else kind
            for path, kind in detailed.items()
        }
    keys = [key for key in diff.diffs if any(path_contains(outer, [key]) for outer in wanted)]
    changes = diff.changes
    if init_errors and any(path_contains(outer, [INIT_ERROR_KEY]) for outer in wanted):
        keys.append(INIT_ERROR_KEY)
        changes = "some"
    replaces = tuple(dict.fromkeys((*diff.replaces, *keys)))
    return replace(diff, changes=changes, replaces=replaces, detailed=detailed)
