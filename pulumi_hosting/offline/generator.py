"""Deciding: which steps bring a registered resource to what the program wants. The rules are those of Pulumi's step generator.

`register` is a generator: it runs under the engine's lock, and yields whatever takes time (a refresh, a diff, an import) to be done
without it.
"""

import os
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .errors import Bail, PluginError, ProviderError
from .goals import Goal, ReadGoal, Targets
from .names import Names
from .plugins import Diff, Failure
from .registry import Registry, reference
from .state import (
    PROVIDER_PREFIX,
    STACK_TYPE,
    Graph,
    State,
    is_provider,
    package_of,
    provider_id,
    provider_urn,
)
from .steps import (
    CREATE,
    CREATE_REPLACEMENT,
    DELETE,
    DELETE_REPLACED,
    DISCARD,
    DISCARD_REPLACED,
    IMPORT,
    IMPORT_REPLACEMENT,
    READ,
    READ_REPLACEMENT,
    REFRESH,
    REMOVE_PENDING_REPLACE,
    REPLACE,
    SAME,
    UPDATE,
    CreateStep,
    Crud,
    DeleteStep,
    ImportStep,
    ReadStep,
    RefreshStep,
    RemovePendingReplaceStep,
    ReplaceStep,
    SameStep,
    Step,
    UpdateStep,
    diff_resource,
    ignoring,
)
from .values import UNKNOWN, Properties, Secret, contains_unknowns, parse_path, path_contains, without_secrets

Mode = Literal["update", "refresh", "destroy"]
INIT_ERROR_KEY = "#initerror"


class World(Protocol):
    """What the generator knows of the operation it decides for."""

    stack: str
    project: str
    preview: bool
    targets: Targets
    target_dependents: bool
    registry: Registry
    resources: list[State]
    olds: dict[str, State]
    graph: Graph

    def error(self, message: str, urn: str = "") -> None: ...
    def warn(self, urn: str, message: str) -> None: ...
    def info(self, urn: str, message: str) -> None: ...
    def package_config(self, type: str) -> Properties: ...


@dataclass(frozen=True)
class DiffWork:
    """A diff to be asked for while others go on."""

    ask: Callable[[], Diff]


Work = DiffWork | RefreshStep | ImportStep | list[Step]
"""What may take long: a diff, or steps to run before deciding further."""


@dataclass(frozen=True)
class Decision:
    """The steps for a resource, and what the program is told once they are done."""

    steps: list[Step]
    result: Callable[[], State]
    unknown: bool = False


class StepGenerator:
    def __init__(self, world: World, mode: Mode = "update", *, refresh: bool = False) -> None:
        self._world = world
        self._mode = mode
        self._refresh = refresh
        self.errored = False
        self._names = Names(world.stack, world.project)
        self.deletes: set[str] = set()
        self._reads: set[str] = set()
        self._replaces: set[str] = set()
        self._updates: set[str] = set()
        self._creates: set[str] = set()
        self._sames: set[str] = set()
        self._refreshes: set[str] = set()
        self._imports: set[str] = set()
        self._skipped: set[str] = set()
        self._to_delete: list[State] = []
        self._pending_deletes: set[int] = set()
        self._providers: dict[str, State] = {}
        self._replace_keys: dict[str, tuple[str, ...]] = {}
        self._refreshed: dict[int, State] = {}
        self._targets_actual: set[str] = set()
        self._queued_sames: list[Step] = []
        self._news: dict[str, State] = {}

    def _find_old(self, urn: str, goal: Goal) -> tuple[State | None, str]:
        old, alias = self._names.find_old(urn, goal, self._world.olds)
        if alias:
            self._world.registry.add_alias(urn, alias)
        return old, alias

    # Registrations.

    def register(self, goal: Goal) -> Generator[Work, Any, Decision]:
        world = self._world
        urn = self._names.claim(goal.parent, goal.type, goal.name)
        old, alias = self._find_old(urn, goal)
        new = State(
            urn=urn,
            type=goal.type,
            custom=goal.custom,
            inputs=goal.properties,
            parent=goal.parent,
            protect=bool(goal.protect),
            dependencies=goal.dependencies,
            provider=goal.provider,
            property_dependencies=goal.property_dependencies,
            additional_secret_outputs=goal.additional_secret_outputs,
            aliases=[alias] if alias else [],
            custom_timeouts=goal.custom_timeouts,
            import_id=goal.import_id,
            retain_on_delete=bool(goal.retain_on_delete),
            deleted_with=goal.deleted_with,
            replace_with=goal.replace_with,
            ignore_changes=goal.ignore_changes,
            hide_diff=goal.hide_diff,
            replace_on_changes=goal.replace_on_changes,
            replacement_trigger=goal.replacement_trigger,
            refresh_before_update=old.refresh_before_update if old else False,
            source_position=goal.source_position,
            created=old.created if old else "",
            modified=old.modified if old else "",
        )
        self._news[urn] = new
        if is_provider(goal.type):
            self._providers[urn] = self._providers[alias or urn] = new
        managed = goal.custom and not is_provider(goal.type)

        if old is not None and self._refresh and self._is_targeted(old):
            refresh = RefreshStep(REFRESH, old, new, persisted=True, hidden=not managed)
            self._refreshes.add(urn)
            yield refresh
            before, old = old, refresh.result
            if old is not None:
                world.graph.alias(old, before)
                self._refreshed[id(before)] = old

        if self._mode == "refresh" and (managed or self._has_skipped_dependency(new)):
            if old is None:
                return self._skip_create(new)
            return _nothing_to_do(old)
        if self._mode == "destroy":
            if self._has_skipped_dependency(new) or (managed and old is None):
                if old is not None:
                    new.outputs = old.outputs
                return self._skip_create(new)
            self._to_delete.append(new)
            if managed and old is not None:
                self._sames.add(urn)
                new.inputs = old.inputs
                return Decision([SameStep(SAME, old, new)], lambda: new)

        provider = self._provider_for(new)
        recreating = urn in self.deletes
        old_import_id = (old.import_id or old.id) if old else ""
        if goal.custom and goal.import_id and (old is None or old.external or old_import_id != goal.import_id):
            imported = new.copy()
            replacing = old is not None and not recreating
            step = ImportStep(IMPORT_REPLACEMENT if replacing else IMPORT, None, imported, replacing=replacing, original=old)
            self._imports.add(urn)
            if old is not None and replacing:
                yield [step, ReplaceStep(REPLACE, old, imported)]
            else:
                yield step
            old = step.found or imported
            new.import_id = goal.import_id
            # From here on it is an ordinary comparison of what was found with what the program wants.
            world.graph = Graph([*world.graph.resources, old])
        return (yield from self._compare(goal, old, new, provider, recreating=recreating))

    def _skip_create(self, new: State) -> Decision:
        self._sames.add(new.urn)
        self._skipped.add(new.urn)
        return Decision([SameStep(SAME, new.copy(), new, skipped=True)], lambda: new, unknown=True)

    def _has_skipped_dependency(self, new: State) -> bool:
        return not self._skipped.isdisjoint(new.needed_urns())

    def _provider_for(self, state: State) -> Crud | None:
        if not state.custom:
            return None
        if is_provider(state.type):
            return self._world.registry
        provider = self._world.registry.get(state.provider)
        if provider is None:
            old = self._world.olds.get(provider_urn(state.provider))
            if old is None or old.id != provider_id(state.provider):
                self._world.error(f"unknown provider '{state.provider}' for resource '{state.urn}'", state.urn)
                raise Bail
            self._world.registry.ensure(state.provider, self._world.resources)
            provider = self._world.registry.get(state.provider)
        return provider

    def _compare(
        self, goal: Goal, old: State | None, new: State, provider: Crud | None, *, recreating: bool
    ) -> Generator[Work, Any, Decision]:
        world, urn = self._world, new.urn
        was_external = old is not None and old.external
        targeted = is_provider(new.type) or new.type == STACK_TYPE or self._is_targeted(new)
        seed = os.urandom(32)
        if provider is not None:
            inputs = new.inputs
            if old is not None:
                inputs, failed = ignoring(inputs, old.inputs, goal.ignore_changes)
                if failed:
                    world.info(urn, f'cannot ignore changes in added or removed elements of the path: "{", ".join(failed)}"')
            if not targeted:
                new.inputs = old.inputs if old else {}
            else:
                # What is replaced on demand is checked as if it were new, and no difference is asked for.
                fresh = recreating or was_external or old is None or old.taint
                olds = {} if fresh or old is None else old.inputs
                checked = provider.check(urn, olds, goal.properties if fresh else inputs, seed, preview=world.preview)
                new.inputs = checked.inputs
                if self._report(new, checked.failures):
                    raise Bail(f"resource {urn} is invalid")

        if recreating and old is not None:
            return self._recreate(old, new)
        if was_external and old is not None:
            self._creates.add(urn)
            create = CreateStep(CREATE_REPLACEMENT, old, new, replacing=True, delete_old_later=True)
            return self._decide([create, ReplaceStep(REPLACE, old, new)], new)
        if targeted:
            self._targets_actual.add(urn)
        if old is None:
            if not targeted:
                return self._skip_create(new)
            self._creates.add(urn)
            return self._decide([CreateStep(CREATE, None, new)], new)
        if not targeted:
            return self._leave_untargeted(old, new)
        return (yield from self._diff(goal, old, new, provider, seed))

    def _decide(self, steps: list[Step], new: State) -> Decision:
        return Decision(self._validated(steps), lambda: new)

    def _report(self, new: State, failures: Iterable[Failure]) -> bool:
        """Tell the user what the provider's check found; True when there was something."""
        found = False
        for failure in failures:
            found = True
            if failure.property:
                value = _shown(new.inputs.get(failure.property))
                problem = f": property {failure.property} value {value} has a problem: {failure.reason}"
            else:
                problem = f" has a problem: {failure.reason}"
            self._world.error(f"{new.type} resource '{new.name}'{problem}", new.urn)
        return found

    def _recreate(self, old: State, new: State) -> Decision:
        """It was deleted earlier in this operation because something it depends on is replaced: now it is made again."""
        self.deletes.discard(new.urn)
        self._replaces.add(new.urn)
        keys = self._replace_keys.get(new.urn, ())
        create = CreateStep(CREATE_REPLACEMENT, old, new, keys=keys, replacing=True)
        return self._decide([ReplaceStep(REPLACE, old, new), create], new)

    def _diff(self, goal: Goal, old: State, new: State, provider: Crud | None, seed: bytes) -> Generator[Work, Any, Decision]:
        triggered = False
        if goal.replacement_trigger is not None:
            if not self._world.preview and contains_unknowns(goal.replacement_trigger):
                self._world.error(f"replacement trigger contains unknowns for {new.urn}", new.urn)
                raise Bail
            triggered = without_secrets(goal.replacement_trigger) != without_secrets(old.replacement_trigger)
        if triggered:
            diff = Diff("some")
        else:
            known = self._diff_without_asking(old, new)
            if known is None and provider is None:
                known = Diff("none" if old.inputs == new.inputs else "some")
            elif known is None and provider is not None:
                asked = provider
                known = yield DiffWork(lambda: self._ask_diff(asked, old, new, goal))
                if new.urn in self.deletes:  # another resource's replacement has deleted it meanwhile
                    return self._recreate(old, new)
            diff = known or Diff("none")
        diff = _with_replace_on_changes(diff, goal.replace_on_changes, bool(old.init_errors))
        steps = self._steps_from_diff(goal, old, new, provider, diff, triggered, seed)
        if steps:
            return self._decide(steps, new)
        if new.urn in self._imports:
            return _nothing_to_do(old)
        self._sames.add(new.urn)
        return self._decide([SameStep(SAME, old, new)], new)

    def _ask_diff(self, provider: Crud, old: State, new: State, goal: Goal) -> Diff:
        # The state's own URN may be an alias; the provider is asked about the new one.
        subject = old if old.urn == new.urn else old.copy(urn=new.urn)
        return diff_resource(provider, subject, new.inputs, goal.ignore_changes, preview=self._world.preview)

    def _diff_without_asking(self, old: State, new: State) -> Diff | None:
        """What needs no comparison to say; None when the inputs must be compared."""
        if old.taint:
            return Diff("some", replaces=("id",))
        if any(urn in self._replaces for urn in new.replace_with):
            return Diff("some", replaces=("replaceWith",))
        if new.deleted_with and new.deleted_with in self._replaces:
            return Diff("some", replaces=("deletedWith",))
        if self._provider_changed(old, new):
            return Diff("some", replaces=("provider",))
        return None

    def _provider_changed(self, old: State, new: State) -> bool:
        if old.provider == new.provider:
            return False
        if not old.provider or not new.provider:
            return True
        old_urn, new_urn = provider_urn(old.provider), provider_urn(new.provider)
        if self._names.current(old_urn) == new_urn:
            return False
        provider = self._world.registry.get(new.provider)
        before, after = self._world.olds.get(old_urn), self._providers.get(new_urn)
        if provider is None or before is None or after is None:
            raise PluginError(f"failed to resolve provider reference: {new.provider}")
        return provider.diff_config(new_urn, before.inputs, before.outputs, after.inputs).replace

    def _steps_from_diff(
        self, goal: Goal, old: State, new: State, provider: Crud | None, diff: Diff, triggered: bool, seed: bytes
    ) -> list[Step]:
        if diff.changes == "some" or old.pending_replacement:
            if diff.replace or triggered or old.pending_replacement:
                return self._replacement(goal, old, new, provider, diff, seed)
            self._updates.add(new.urn)
            return [UpdateStep(UPDATE, old, new, diffs=diff.diffs, detailed=diff.detailed)]
        if old.init_errors:
            # Nothing to change, but it never got ready: an empty update goes on with it.
            self._updates.add(new.urn)
            return [UpdateStep(UPDATE, old, new, diffs=diff.diffs, detailed=diff.detailed)]
        return []

    def _replacement(self, goal: Goal, old: State, new: State, provider: Crud | None, diff: Diff, seed: bytes) -> list[Step]:
        world, urn = self._world, new.urn
        if new.protect and old.protect:
            world.error(
                f'unable to replace resource "{urn}"\nas it is currently marked for protection. To unprotect the resource, remove the '
                "`protect` flag from the resource in your Pulumi program and run `pulumi up`",
                urn,
            )
            self.errored = True
            if not world.preview:
                raise Bail
        if goal.import_id:
            message = (
                "previously-imported resources that still specify an ID may not be replaced; please remove the `import` declaration "
                "from your program"
            )
            if not world.preview:
                raise ProviderError(message)
            world.warn(urn, message)
        self._replaces.add(urn)
        if provider is not None and not old.taint:
            # What the first check carried over from the old resource does not hold for its replacement.
            checked = provider.check(urn, {}, goal.properties, seed, preview=world.preview)
            if self._report(new, checked.failures):
                raise Bail
            new.inputs = checked.inputs
        facts: dict[str, Any] = {"keys": diff.replaces, "diffs": diff.diffs, "detailed": diff.detailed}
        replace = ReplaceStep(REPLACE, old, new, **facts)
        delete_first = diff.delete_before_replace if goal.delete_before_replace is None else goal.delete_before_replace
        if not delete_first:
            return [CreateStep(CREATE_REPLACEMENT, old, new, **facts, replacing=True, delete_old_later=True), replace]
        steps = self._delete_dependents(old, urn)
        world.registry.ensure(old.provider, world.resources)
        if not old.pending_replacement:
            self.deletes.add(old.urn)
            steps.append(DeleteStep(DELETE_REPLACED, old, replacing=True, pending_replacement=True, deleted=self.deletes))
        return [*steps, replace, CreateStep(CREATE_REPLACEMENT, old, new, **facts, replacing=True)]

    # Delete before replace: whoever would be replaced with the resource goes first.

    def _delete_dependents(self, old: State, urn: str) -> list[Step]:
        steps: list[Step] = []
        dependents = self._dependent_replacements(old) + [(state, ()) for state in self._cascading(urn)]
        for state, keys in reversed(dependents):
            if id(state) in self._pending_deletes:
                continue
            self._replace_keys[state.urn] = keys
            if state.delete:
                steps.append(DeleteStep(DISCARD if state.external else DELETE, state, deleted=self.deletes))
            else:
                if state.protect:
                    self._world.error(
                        f'unable to replace resource "{state.urn}" as part of replacing "{urn}" as it is currently marked for '
                        "protection. To unprotect the resource, remove the `protect` flag from the resource in your Pulumi program and "
                        f"run `pulumi up`, or use the command:\n`pulumi state unprotect '{state.urn}'`",
                        urn,
                    )
                    self.errored = True
                    raise Bail
                op = DISCARD_REPLACED if state.external else DELETE_REPLACED
                steps.append(DeleteStep(op, state, replacing=True, pending_replacement=True, deleted=self.deletes))
            self.deletes.add(state.urn)
            self._pending_deletes.add(id(state))
        return steps

    def _cascading(self, urn: str) -> list[State]:
        """Resources that said they are deleted or replaced with this one."""
        found: dict[str, State] = {}
        for states in (self._news, self._world.olds):
            for name, state in states.items():
                if name != urn and name not in found and (urn in state.replace_with or state.deleted_with == urn):
                    old = self._world.olds.get(name)
                    if old is not None and not self._is_operated(name):
                        found[name] = old
        return list(found.values())

    def _dependent_replacements(self, root: State) -> list[tuple[State, tuple[str, ...]]]:
        """Dependents that a replacement of `root` would replace too: their provider says so when the values they took are unknown."""
        replaced = {root.urn}
        seen = self._reads | self._creates | self._sames | self._updates | self.deletes | self._replaces
        result = []
        for state in self._world.graph.depending_on(root, seen):
            keys = self._would_be_replaced(state, replaced)
            if keys is not None:
                replaced.add(state.urn)
                result.append((state, keys))
        return result

    def _would_be_replaced(self, state: State, replaced: set[str]) -> tuple[str, ...] | None:
        if not state.custom or state.external:
            return None
        if state.provider and provider_urn(state.provider) in replaced:
            self._world.registry.ensure(state.provider, self._world.resources)
            return ()
        if state.deleted_with in replaced:
            return ()
        touched = {key for key, urns in state.property_dependencies.items() if not replaced.isdisjoint(urns)}
        inputs = {key: UNKNOWN if key in touched else value for key, value in state.inputs.items()}
        if touched.isdisjoint(state.inputs):
            return None
        if is_provider(state.type):
            self._world.registry.same(state, state.inputs)
        else:
            self._world.registry.ensure(state.provider, self._world.resources)
        provider = self._provider_for(state)
        if provider is None:
            return None
        diff = diff_resource(provider, state, inputs, state.ignore_changes, preview=True)
        diff = _with_replace_on_changes(diff, state.replace_on_changes, False)
        return diff.replaces if diff.replace else None

    # Reads and imports.

    def take_over(self, goal: Goal) -> Generator[Work, Any, Decision]:
        """Import a resource that no program declares: below the stack, with the default provider of its package."""
        world = self._world
        yield [SameStep(SAME, state, state.copy(id=""), untargeted=True) for state in world.resources if not state.delete]
        self._names.taken |= set(world.olds)
        stack = next((state.urn for state in world.resources if state.type == STACK_TYPE), "")
        if not stack:
            made = yield from self.register(Goal(STACK_TYPE, f"{world.project}-{world.stack}"))
            yield made.steps
            stack = made.result().urn
        provider_type = f"{PROVIDER_PREFIX}{package_of(goal.type)}"
        provider = next((state for state in world.resources if state.type == provider_type and state.name.startswith("default")), None)
        if provider is not None:
            world.registry.ensure(reference(provider.urn, provider.id), world.resources)
        else:
            made = yield from self.register(Goal(provider_type, "default", custom=True, properties=world.package_config(goal.type)))
            yield made.steps
            provider = made.result()
        urn = self._names.claim(stack, goal.type, goal.name)
        new = State(urn, goal.type, custom=True, parent=stack, protect=bool(goal.protect), import_id=goal.import_id)
        new.provider = reference(provider.urn, provider.id)
        return Decision([ImportStep(IMPORT, None, new, commanded=True)], lambda: new)

    def read(self, goal: ReadGoal) -> Decision:
        urn = self._names.claim(goal.parent, goal.type, goal.name)
        old, alias = self._find_old(urn, Goal(goal.type, goal.name, parent=goal.parent))
        new = State(
            urn=urn,
            type=goal.type,
            custom=True,
            id=goal.id,
            inputs=goal.properties,
            parent=goal.parent,
            external=True,
            dependencies=goal.dependencies,
            provider=goal.provider,
            additional_secret_outputs=goal.additional_secret_outputs,
            aliases=[alias] if alias else [],
            source_position=goal.source_position,
        )
        if not goal.id:
            raise PluginError(f"expected an ID for {urn}")
        if old is not None and not old.external and old.id != goal.id:
            self._replaces.add(urn)
            read = ReadStep(READ_REPLACEMENT, old, new, replacing=True)
            return self._decide([read, ReplaceStep(REPLACE, old, new)], new)
        if self._mode == "destroy":
            self._to_delete.append(new)
        self._reads.add(urn)
        return self._decide([ReadStep(READ, old, new)], new)

    # Targets.

    def _is_targeted(self, state: State) -> bool:
        targets = self._world.targets
        if not targets or state.urn in targets:
            return True
        if not self._world.target_dependents:
            return False
        return not self._targets_actual.isdisjoint(state.needed_urns())

    def _leave_untargeted(self, old: State, new: State) -> Decision:
        """Keep a resource as it is, and before it everything it depends on that the program no longer mentions."""
        steps: list[Step] = []

        def keep(state: State) -> State:
            self._names.taken.add(state.urn)
            self._sames |= {new.urn, state.urn}
            for urn in state.needed_urns():
                if not self._is_operated(urn) and urn in self._world.olds:
                    keep(self._world.olds[urn])
            kept = state.copy(id="")
            if not state.delete:
                steps.append(SameStep(SAME, state, kept, untargeted=True))
            return kept

        kept = keep(old)
        return Decision(steps, lambda: kept)

    def _validated(self, steps: list[Step]) -> list[Step]:
        """Refuse a targeted step that depends on a create left out because it was not targeted."""
        if not self._world.targets:
            return steps
        for step in steps:
            if step.new is None or (isinstance(step, SameStep) and step.skipped):
                continue
            for urn in sorted(self._skipped.intersection(step.new.needed_urns())):
                self._world.error(f"Resource '{step.urn}' depends on '{urn}' which was was not specified in --target list.", step.urn)
                self.errored = True
                if not self._world.preview:
                    raise Bail
                self._skipped.discard(urn)
        return steps

    # What is left when the program has ended.

    @property
    def urns(self) -> set[str]:
        return self._names.taken

    def registered(self) -> list[State]:
        return list(self._news.values())

    def _is_operated(self, urn: str) -> bool:
        urn = self._names.current(urn)
        return any(urn in done for done in (self._sames, self._updates, self._replaces, self._reads, self._refreshes))

    def refreshes(self) -> list[Step]:
        """Refresh steps for what is in the state and was not registered."""
        steps: list[Step] = []
        for state in self._world.resources:
            if not self._is_operated(state.urn) and state.urn in self._world.targets:
                self._world.registry.ensure(state.provider, self._world.resources)
                self._refreshes.add(state.urn)
                steps.append(RefreshStep(REFRESH, state, state))
        return steps

    def deletions(self) -> tuple[list[Step], list[list[Step]]]:
        """Steps that keep what is not targeted, and batches of deletes: each batch may run in parallel, one batch after the other."""
        world = self._world
        allowed = self._deletable() if world.targets else None
        sames: list[Step] = []
        deletes: list[Step] = []
        for res in list(world.resources):
            if allowed is not None and res.urn not in allowed:
                if not self._is_operated(res.urn):
                    sames.append(SameStep(SAME, res, res.copy(id=""), untargeted=True))
                continue
            state = self._refreshed.get(id(res), res)
            if state.delete:
                if id(state) in self._pending_deletes:
                    continue
                self.deletes.add(state.urn)
                op = DISCARD_REPLACED if state.external else DELETE_REPLACED
                deletes.append(DeleteStep(op, state, replacing=True, deleted=self.deletes))
            elif not self._is_operated(state.urn):
                self.deletes.add(state.urn)
                if state.pending_replacement:
                    deletes.append(RemovePendingReplaceStep(REMOVE_PENDING_REPLACE, state))
                else:
                    deletes.append(DeleteStep(DISCARD if state.external else DELETE, state, deleted=self.deletes))
            if state.urn in self.deletes:
                world.registry.ensure(state.provider, world.resources)
        for state in self._to_delete:
            if allowed is None or state.urn in allowed:
                self.deletes.add(state.urn)
                deletes.append(DeleteStep(DISCARD if state.external else DELETE, state, deleted=self.deletes))
        self._refuse_untargeted(deletes)
        return sames, _batches(deletes, self.scheduling_graph())

    def _refuse_untargeted(self, deletes: list[Step]) -> None:
        world = self._world
        if world.target_dependents:
            return
        refused = [step.urn for step in deletes if step.urn not in world.targets]
        for urn in refused:
            world.error(
                f"Resource '{urn}' will be destroyed but was not specified in --target list.\nEither include resource in --target list or "
                "pass --target-dependents to proceed.",
                urn,
            )
            self.errored = True
        if refused and not world.preview:
            raise Bail

    def _deletable(self) -> set[str]:
        """Targets, and whatever cannot stay without them."""
        world = self._world
        graph = self.scheduling_graph()
        found: set[str] = set()
        for root in [state for state in world.resources if state.urn in world.targets]:
            found.add(root.urn)
            found |= {state.urn for state in graph.depending_on(root, with_children=True)}
            found |= {state.urn for state, _ in self._dependent_replacements(root)}
        return found

    def scheduling_graph(self) -> Graph:
        graph = Graph([*self._to_delete, *self._world.resources])
        for before in self._world.resources:
            if id(before) in self._refreshed:
                graph.alias(self._refreshed[id(before)], before)
        return graph


def _batches(deletes: list[Step], graph: Graph) -> list[list[Step]]:
    """Dependents first. A resource's depth is one more than that of what it depends on; the deepest are deleted first."""
    condemned = [step.before for step in deletes]
    depths = graph.depths(condemned)
    batches: dict[int, list[Step]] = {}
    for step in deletes:
        batches.setdefault(depths[id(step.before)], []).append(step)
    return [batches[depth] for depth in sorted(batches, reverse=True)]


def _nothing_to_do(state: State) -> Decision:
    return Decision([], lambda: state)


def _with_replace_on_changes(diff: Diff, paths: Iterable[str], init_errors: bool) -> Diff:
    """The diff with replacement asked for where the program's `replace_on_changes` says so."""
    wanted = [parse_path(path) for path in paths]
    if not wanted or (diff.changes != "some" and not init_errors):
        return diff
    detailed = diff.detailed
    if detailed is not None:
        detailed = {
            path: f"{kind.removesuffix('-replace')}-replace" if any(path_contains(outer, parse_path(path)) for outer in wanted) else kind
            for path, kind in detailed.items()
        }
    keys = [key for key in diff.diffs if any(path_contains(outer, [key]) for outer in wanted)]
    changes = diff.changes
    if init_errors and any(path_contains(outer, [INIT_ERROR_KEY]) for outer in wanted):
        keys.append(INIT_ERROR_KEY)
        changes = "some"
    replaces = tuple(dict.fromkeys((*diff.replaces, *keys)))
    return Diff(changes, replaces, diff.diffs, detailed, diff.delete_before_replace, diff.stables)


def _shown(value: Any) -> str:
    """A refused value as Pulumi prints it; secrets stay hidden, where Pulumi would show them."""
    if isinstance(value, Secret):
        return "[secret]"
    if value is None:
        return "{<nil>}"
    return f"{{{value}}}"
