"""Compares a registered resource with its state: unchanged, updated or replaced."""

from dataclasses import dataclass
from functools import partial

from ..errors import AlreadyReported, PluginError, ProviderError
from ..model.goals import Goal
from ..model.property_values import Properties, contains_unknowns, without_secrets
from ..model.provider_results import ProviderDiff
from ..model.state import ResourceState
from ..model.urns import provider_urn
from ..providers.registry import ResourceProvider
from ..steps.base import Step, diff_resource
from ..steps.changes import CreateStep, UpdateStep
from .decisions import Course, Decision, Decisions
from .deletions import delete_dependents, with_replace_on_changes


@dataclass
class Registration:
    """One resource that the program registers."""

    goal: Goal
    old: ResourceState | None
    new: ResourceState
    provider: ResourceProvider | None
    recreating: bool
    """It was deleted earlier in this operation, because a resource it depends on is replaced."""
    seed: bytes
    """What the provider makes random names from: the same in every check of this registration."""


def recreate(decisions: Decisions, old: ResourceState, new: ResourceState) -> Decision:
    """Create a resource again that was deleted before the replacement of what it depends on."""
    decisions.deleted.discard(new.urn)
    decisions.outcomes.add("replace", new.urn)
    create = CreateStep(
        "create-replacement", old, new, keys=decisions.replace_keys.get(new.urn, ()), replacing=True
    )
    return decisions.decide([Step("replace", old, new), create], new)


def compare(decisions: Decisions, registration: Registration, old: ResourceState) -> Course[Decision]:
    new = registration.new
    triggered = _is_triggered(decisions, old, new)
    if triggered:
        diff = ProviderDiff("some")
    else:
        known = _diff_without_provider(decisions, registration, old)
        if known is None and registration.provider is not None:
            preview = decisions.operation.preview
            known = yield partial(_ask, registration.provider, old, new, new.ignore_changes, preview=preview)
            if new.urn in decisions.deleted:  # the replacement of another resource has deleted it meanwhile
                return recreate(decisions, old, new)
        diff = known or ProviderDiff("none")
    diff = with_replace_on_changes(diff, new.replace_on_changes, bool(old.init_errors))
    steps = _steps(decisions, registration, old, diff, triggered)
    if steps:
        return decisions.decide(steps, new)
    if decisions.outcomes.has(new.urn, "import"):
        return Decision([], old)
    return decisions.unchanged(old, new)


def _is_triggered(decisions: Decisions, old: ResourceState, new: ResourceState) -> bool:
    """Whether the program's replacement trigger has changed."""
    if new.replacement_trigger is None or old.replacement_trigger is None:
        return False  # as in Pulumi, adding or removing one is no change of it
    if not decisions.operation.preview and contains_unknowns(new.replacement_trigger):
        decisions.operation.error(f"replacement trigger contains unknowns for {new.urn}", new.urn)
        raise AlreadyReported
    return bool(without_secrets(new.replacement_trigger) != without_secrets(old.replacement_trigger))


def _ask(
    provider: ResourceProvider, old: ResourceState, new: ResourceState, ignore: list[str], *, preview: bool
) -> ProviderDiff:
    # The URN in the state may be an alias; the provider is asked about the new one.
    subject = old if old.urn == new.urn else old.copy(urn=new.urn)
    return diff_resource(provider, subject, new.inputs, ignore, preview=preview)


def _diff_without_provider(
    decisions: Decisions, registration: Registration, old: ResourceState
) -> ProviderDiff | None:
    """The diff if the provider need not be asked; None if it must."""
    new, outcomes = registration.new, decisions.outcomes
    if old.taint:
        return ProviderDiff("some", replaces=("id",))
    if any(outcomes.has(urn, "replace") for urn in new.replace_with):
        return ProviderDiff("some", replaces=("replaceWith",))
    if new.deleted_with and outcomes.has(new.deleted_with, "replace"):
        return ProviderDiff("some", replaces=("deletedWith",))
    if _provider_changed(decisions, old, new):
        return ProviderDiff("some", replaces=("provider",))
    if registration.provider is None:
        return ProviderDiff("none" if old.inputs == new.inputs else "some")
    return None


def _provider_changed(decisions: Decisions, old: ResourceState, new: ResourceState) -> bool:
    """Whether the resource moves to a provider that says it must be replaced for that."""
    if old.provider == new.provider:
        return False
    if not old.provider or not new.provider:
        return True
    old_urn, new_urn = provider_urn(old.provider), provider_urn(new.provider)
    if decisions.names.current(old_urn) == new_urn:
        return False
    provider = decisions.operation.registry.get(new.provider)
    before, after = decisions.operation.olds.get(old_urn), decisions.registered.get(new_urn)
    if provider is None or before is None or after is None:
        raise PluginError(f"failed to resolve provider reference: {new.provider}")
    return provider.diff_config(new_urn, before.inputs, before.outputs, after.inputs).replace


def _steps(
    decisions: Decisions, registration: Registration, old: ResourceState, diff: ProviderDiff, triggered: bool
) -> list[Step]:
    new = registration.new
    changed = diff.changes == "some" or old.pending_replacement
    if changed and (diff.replace or triggered or old.pending_replacement):
        return _replacement(decisions, registration, old, diff)
    # A resource that was created but is not ready gets an update without changes.
    if changed or old.init_errors:
        decisions.outcomes.add("update", new.urn)
        return [UpdateStep("update", old, new, diffs=diff.diffs, detailed=diff.detailed)]
    return []


def _replacement(
    decisions: Decisions, registration: Registration, old: ResourceState, diff: ProviderDiff
) -> list[Step]:
    goal, new, operation = registration.goal, registration.new, decisions.operation
    _refuse_replacement(decisions, old, new)
    decisions.outcomes.add("replace", new.urn)
    if registration.provider is not None and not old.taint:
        # The first check may have copied inputs of the old resource; the replacement must not have them.
        checked = registration.provider.check(
            new.urn, {}, goal.state.inputs, registration.seed, preview=operation.preview
        )
        decisions.report(new, checked.failures)
        new.inputs = checked.inputs
    facts: Properties = {"keys": diff.replaces, "diffs": diff.diffs, "detailed": diff.detailed}
    replace = Step("replace", old, new, **facts)
    delete_first = (
        diff.delete_before_replace if goal.delete_before_replace is None else goal.delete_before_replace
    )
    if not delete_first:
        return [
            CreateStep("create-replacement", old, new, **facts, replacing=True, delete_old_later=True),
            replace,
        ]
    steps = delete_dependents(decisions, old, new.urn)
    if not old.pending_replacement:
        steps.append(decisions.delete(old, replacing=True, pending=True))
    return [*steps, replace, CreateStep("create-replacement", old, new, **facts, replacing=True)]


def _refuse_replacement(decisions: Decisions, old: ResourceState, new: ResourceState) -> None:
    """Raises if the resource must not be replaced; a preview goes on and shows the rest."""
    operation = decisions.operation
    if new.protect and old.protect:
        message = (
            f'unable to replace resource "{new.urn}"\nas it is currently marked for protection. To unprotect '
            "the resource, remove the `protect` flag from the resource in your Pulumi program and run "
            "`pulumi up`"
        )
        decisions.refuse(new.urn, message)
    if new.import_id:
        message = (
            "previously-imported resources that still specify an ID may not be replaced; please remove the "
            "`import` declaration from your program"
        )
        if not operation.preview:
            raise ProviderError(message)
        operation.warn(new.urn, message)
