"""Decides reads (`get` of a program) and imports that a command asks for."""

from ..errors import PluginError
from ..model.goals import Goal
from ..model.state import ResourceState
from ..model.urns import PROVIDER_PREFIX, STACK_TYPE, package_of, provider_reference
from ..steps.base import Step
from ..steps.changes import SameStep
from ..steps.reads import ImportStep, ReadStep
from .decisions import Course, Decision, Decisions
from .registrations import new_state, register


def read(decisions: Decisions, goal: Goal) -> Course[Decision]:
    yield from ()  # nothing takes long before the step itself
    urn = decisions.names.claim(goal.parent, goal.type, goal.name)
    old, alias = decisions.find_old(urn, goal)
    new = new_state(goal, urn, alias).copy(external=True)
    if not goal.id:
        raise PluginError(f"expected an ID for {urn}")
    if old is not None and not old.external and old.id != goal.id:
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
        stack = (
            yield from _create(decisions, Goal(STACK_TYPE, f"{operation.project}-{operation.stack}"))
        ).urn
    provider_type = f"{PROVIDER_PREFIX}{package_of(goal.type)}"
    existing = (
        state
        for state in operation.resources
        if state.type == provider_type and state.name.startswith("default")
    )
    provider = next(existing, None)
    if provider is not None:
        operation.registry.ensure(provider_reference(provider.urn, provider.id), operation.resources)
    else:
        declared = Goal(provider_type, "default", custom=True, properties=operation.package_config(goal.type))
        provider = yield from _create(decisions, declared)
    urn = decisions.names.claim(stack, goal.type, goal.name)
    new = ResourceState(
        urn, goal.type, custom=True, parent=stack, protect=bool(goal.protect), import_id=goal.import_id
    )
    new.provider = provider_reference(provider.urn, provider.id)
    return Decision([ImportStep("import", None, new, commanded=True)], new)


def _create(decisions: Decisions, goal: Goal) -> Course[ResourceState]:
    decision = yield from register(decisions, goal)
    yield decision.steps
    return decision.state
