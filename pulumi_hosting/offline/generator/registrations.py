"""Decides the steps of a resource that the program registers or reads, or that a command imports."""

import os

from ..errors import PluginError
from ..model.goals import Goal
from ..model.graph import Graph
from ..model.state import ResourceState
from ..model.urns import PROVIDER_PREFIX, STACK_TYPE, is_provider, package_of, provider_reference
from ..steps.base import Step, ignoring
from ..steps.changes import CreateStep, SameStep
from ..steps.reads import ImportStep, ReadStep, RefreshStep
from .comparison import Registration, compare, recreate
from .decisions import Course, Decision, Decisions


def register(decisions: Decisions, goal: Goal) -> Course[Decision]:
    urn = decisions.names.claim(goal.state.parent, goal.state.type, goal.name)
    old, alias = decisions.find_old(urn, goal)
    new = goal.state.copy(urn=urn, aliases=[alias] if alias else [])
    if old is not None:
        new.refresh_before_update = old.refresh_before_update
        new.created, new.modified = old.created, old.modified
    decisions.registered[urn] = new
    if old is not None and decisions.refresh and decisions.is_targeted(old):
        old = yield from _refresh(decisions, old, new)
    decision = _decision_of_mode(decisions, old, new)
    if decision is not None:
        return decision
    registration = Registration(
        goal, old, new, decisions.provider_of(new), recreating=urn in decisions.deleted, seed=os.urandom(32)
    )
    if _is_import(registration):
        yield from _import(decisions, registration)
    return (yield from _create_or_compare(decisions, registration))


def _is_managed(state: ResourceState) -> bool:
    return state.custom and not is_provider(state.type)


def _refresh(decisions: Decisions, old: ResourceState, new: ResourceState) -> Course[ResourceState | None]:
    """Read the resource first; what was found takes the place of the old state. None: it is gone."""
    step = RefreshStep("refresh", old, new, persisted=True, hidden=not _is_managed(new))
    decisions.outcomes.add("refresh", new.urn)
    yield step
    if step.result is not None:
        decisions.operation.graph.alias(step.result, old)
        decisions.refreshed[id(old)] = step.result
    return step.result


def _decision_of_mode(decisions: Decisions, old: ResourceState | None, new: ResourceState) -> Decision | None:
    """The decision of a refresh or destroy that runs the program: it creates and updates nothing.

    None: go on.
    """
    skipped = any(decisions.outcomes.has(urn, "skip") for urn in new.needed_urns())
    if decisions.mode == "refresh" and (skipped or _is_managed(new)):
        return decisions.skip_create(new) if old is None else Decision([], old)
    if decisions.mode == "destroy":
        if skipped or (old is None and _is_managed(new)):
            if old is not None:
                new.outputs = old.outputs
            return decisions.skip_create(new)
        decisions.to_delete.append(new)
        if old is not None and _is_managed(new):
            decisions.outcomes.add("same", new.urn)
            new.inputs = old.inputs
            return Decision([SameStep("same", old, new)], new)
    return None


def _is_import(registration: Registration) -> bool:
    """Whether the program asks for an import that was not done yet."""
    new, old = registration.new, registration.old
    if not new.custom or not new.import_id:
        return False
    return old is None or old.external or (old.import_id or old.id) != new.import_id


def _import(decisions: Decisions, registration: Registration) -> Course[None]:
    """Read the object by its id. What was found is then compared with the declaration, as any old state
    is.
    """
    old, new = registration.old, registration.new
    imported = new.copy()
    replacing = old is not None and not registration.recreating
    step = ImportStep(
        "import-replacement" if replacing else "import", None, imported, replacing=replacing, original=old
    )
    decisions.outcomes.add("import", new.urn)
    if old is not None and replacing:
        yield [step, Step("replace", old, imported)]
    else:
        yield step
    registration.old = found = step.found or imported
    decisions.operation.graph = Graph([*decisions.operation.graph.resources, found])


def _create_or_compare(decisions: Decisions, registration: Registration) -> Course[Decision]:
    old, new = registration.old, registration.new
    was_external = old is not None and old.external
    targeted = is_provider(new.type) or new.type == STACK_TYPE or decisions.is_targeted(new)
    _check(decisions, registration, targeted=targeted, was_external=was_external)
    if registration.recreating and old is not None:
        return recreate(decisions, old, new)
    if was_external and old is not None:
        decisions.outcomes.add("create", new.urn)
        create = CreateStep("create-replacement", old, new, replacing=True, delete_old_later=True)
        return decisions.decide([create, Step("replace", old, new)], new)
    if targeted:
        decisions.targeted.add(new.urn)
    if old is None:
        if not targeted:
            return decisions.skip_create(new)
        decisions.outcomes.add("create", new.urn)
        return decisions.decide([CreateStep("create", None, new)], new)
    if not targeted:
        return _leave_untargeted(decisions, old, new)
    return (yield from compare(decisions, registration, old))


def _leave_untargeted(decisions: Decisions, old: ResourceState, new: ResourceState) -> Decision:
    """Keep a resource as it is, and everything it depends on that the program no longer declares."""
    steps: list[Step] = []

    def keep(state: ResourceState) -> ResourceState:
        decisions.names.taken.add(state.urn)
        decisions.outcomes.add("same", new.urn, state.urn)
        for urn in state.needed_urns():
            if not decisions.is_done(urn) and urn in decisions.operation.olds:
                keep(decisions.operation.olds[urn])
        kept = state.copy(id="")
        if not state.delete:
            steps.append(SameStep("same", state, kept, untargeted=True))
        return kept

    kept = keep(old)
    return Decision(steps, kept)


def _check(decisions: Decisions, registration: Registration, *, targeted: bool, was_external: bool) -> None:
    """Have the provider check the inputs. Raises `AlreadyReported` when it refuses them."""
    goal, old, new, provider = registration.goal, registration.old, registration.new, registration.provider
    if provider is None:
        return
    inputs = new.inputs
    if old is not None:
        inputs, failed = ignoring(inputs, old.inputs, new.ignore_changes)
        if failed:
            paths = ", ".join(failed)
            decisions.operation.info(
                new.urn, f'cannot ignore changes in added or removed elements of the path: "{paths}"'
            )
    if not targeted:
        new.inputs = old.inputs if old else {}
        return
    # A resource to be replaced on demand is checked as a new one, and the provider is not asked for a diff.
    as_new = registration.recreating or was_external or old is None or old.taint
    olds = {} if as_new or old is None else old.inputs
    preview = decisions.operation.preview
    checked = provider.check(
        new.urn, olds, goal.state.inputs if as_new else inputs, registration.seed, preview=preview
    )
    new.inputs = checked.inputs
    decisions.report(new, checked.failures)


# --- reads (`get` of a program), and imports that a command asks for


def read(decisions: Decisions, goal: Goal) -> Course[Decision]:
    yield from ()  # nothing takes long before the step itself
    urn = decisions.names.claim(goal.state.parent, goal.state.type, goal.name)
    old, alias = decisions.find_old(urn, goal)
    new = goal.state.copy(urn=urn, aliases=[alias] if alias else [], external=True)
    if not new.id:
        raise PluginError(f"expected an ID for {urn}")
    if old is not None and not old.external and old.id != new.id:
        decisions.outcomes.add("replace", urn)
        return decisions.decide(
            [ReadStep("read-replacement", old, new, replacing=True), Step("replace", old, new)], new
        )
    if decisions.mode == "destroy":
        decisions.to_delete.append(new)
    decisions.outcomes.add("read", urn)
    return decisions.decide([ReadStep("read", old, new)], new)


def import_resource(decisions: Decisions, goal: Goal) -> Course[Decision]:
    """Import a resource that no program declares.

    Its parent is the stack, its provider the default of its package.
    """
    operation = decisions.operation
    yield [
        SameStep("same", state, state.copy(id=""), untargeted=True)
        for state in operation.resources
        if not state.delete
    ]
    decisions.names.taken |= set(operation.olds)
    stack = next((state.urn for state in operation.resources if state.type == STACK_TYPE), "")
    if not stack:
        name = f"{operation.project}-{operation.stack}"
        stack = (yield from _create(decisions, Goal(ResourceState("", STACK_TYPE), name))).urn
    provider_type = f"{PROVIDER_PREFIX}{package_of(goal.state.type)}"
    existing = (
        state
        for state in operation.resources
        if state.type == provider_type and state.name.startswith("default")
    )
    provider = next(existing, None)
    if provider is None:
        config = operation.package_config(goal.state.type)
        declared = ResourceState("", provider_type, custom=True, inputs=config)
        provider = yield from _create(decisions, Goal(declared, "default"))
    urn = decisions.names.claim(stack, goal.state.type, goal.name)
    reference = provider_reference(provider.urn, provider.id)
    new = goal.state.copy(urn=urn, parent=stack, provider=reference)
    return Decision([ImportStep("import", None, new, commanded=True)], new)


def _create(decisions: Decisions, goal: Goal) -> Course[ResourceState]:
    decision = yield from register(decisions, goal)
    yield decision.steps
    return decision.state
