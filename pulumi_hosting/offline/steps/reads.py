"""Steps that read a real object: `get` of a program, refresh, import."""

import os
from dataclasses import dataclass, field

from ..errors import InitError, ProviderError
from ..model.property_values import UNKNOWN_STRING, Properties, changed_keys
from ..model.provider_results import ProviderDiff, ProviderResult
from ..model.state import ResourceState, now
from ..model.urns import is_provider, package_of
from .base import Op, Step, StepContext, attempt, diff_resource


def _read(
    context: StepContext, state: ResourceState, id: str, inputs: Properties | None, outputs: Properties | None
) -> tuple[ProviderResult, InitError | None]:
    provider, timeout = context.provider_of(state), state.custom_timeouts.get("read", 0)
    return attempt(lambda: provider.read(state.urn, id, inputs, outputs, timeout))


@dataclass(eq=False)
class ReadStep(Step):
    """Reads a resource that the program does not manage (`get`)."""

    def apply(self, context: StepContext) -> None:
        old, new = self.old, self.after
        failure = None
        if new.id != UNKNOWN_STRING:
            answer, failure = _read(context, new, new.id, new.inputs, new.inputs)
            if answer.outputs is None:
                raise ProviderError(f"resource '{new.id}' does not exist")
            new.outputs = answer.outputs
            new.id = answer.id or new.id
        if self.replacing and old is not None:
            old.delete = True
        if old is not None:
            new.created, new.modified = old.created, old.modified
            if changed_keys(old.inputs, new.inputs) or changed_keys(old.outputs, new.outputs):
                new.modified = now()
        self.fail_partly(failure)

    @property
    def changed(self) -> bool:
        """Counted only when what it read has changed."""
        return self.old is not None and bool(changed_keys(self.old.outputs, self.after.outputs))


@dataclass(eq=False)
class RefreshStep(Step):
    """Reads the real resource. `persisted`: it belongs to a running program and is saved at once."""

    persisted: bool = False
    gone: bool = field(default=False, init=False)
    diff: ProviderDiff = field(default_factory=lambda: ProviderDiff("none"), init=False)

    @property
    def logical(self) -> bool:
        return False

    @property
    def result(self) -> ResourceState | None:
        return None if self.gone else self.new

    @property
    def result_op(self) -> Op:
        """What was found, as an operation: same, update, or delete for a resource that is gone."""
        old, new = self.before, self.after
        if self.gone:
            return "delete"
        if old.external:
            return "update" if new is not old and changed_keys(old.outputs, new.outputs) else "same"
        return "update" if new is not old and self.diff.changes == "some" else "same"

    def apply(self, context: StepContext) -> None:
        old, new = self.before, self.after
        if not old.custom or is_provider(old.type) or old.pending_replacement:
            if self.persisted:
                self.new = old.copy()
            return
        answer, failure = _read(context, old.copy(urn=new.urn), old.id, old.inputs, old.outputs)
        init_errors = failure.reasons if failure else []
        if failure is not None:
            context.warn(
                old.urn, "Refreshed resource is in an unhealthy state:\n* " + "\n* ".join(init_errors)
            )
        if not answer.id or answer.outputs is None:
            self.gone = True
            return
        inputs = old.inputs if answer.inputs is None else answer.inputs
        moved = changed_keys(old.inputs, inputs) or changed_keys(old.outputs, answer.outputs)
        self.new = new.copy(
            id=answer.id,
            init_errors=init_errors,
            refresh_before_update=answer.refresh_before_update,
            inputs=inputs,
            outputs=answer.outputs,
            created=old.created,
            modified=now() if moved else old.modified,
        )
        if not old.external:
            provider = context.provider_of(new)
            diff = diff_resource(provider, self.new, old.inputs, old.ignore_changes, preview=context.preview)
            self.diff = diff.inverted()
            self.diffs, self.detailed = self.diff.diffs, self.diff.detailed


@dataclass(eq=False)
class ImportStep(Step):
    """Take an existing thing under management, by its id."""

    original: ResourceState | None = None
    commanded: bool = False
    """For the `import` command: no program declares the resource, so the inputs found are checked."""
    found: ResourceState | None = field(default=None, init=False)
    """As it was found: the program's inputs are compared with it next."""

    def apply(self, context: StepContext) -> None:
        new = self.after
        answer, failure = _read(context, new, new.import_id, None, None)
        new.init_errors = failure.reasons if failure else []
        if answer.outputs is None:
            raise ProviderError(f"resource '{new.import_id}' does not exist")
        if answer.inputs is None:
            raise ProviderError(
                f"provider does not support importing resources; please try updating the "
                f"'{package_of(new.type)}' plugin"
            )
        new.id, new.inputs, new.outputs = answer.id, answer.inputs, answer.outputs
        new.refresh_before_update = answer.refresh_before_update
        new.created = new.modified = now()
        self.found = new.copy(additional_secret_outputs=[], aliases=[])
        if self.commanded:
            new.import_id = ""
            checked = context.provider_of(new).check(
                new.urn, answer.inputs, answer.inputs, os.urandom(32), preview=context.preview
            )
            for refused in checked.failures:
                context.warn(
                    new.urn, f"an imported input would be refused: {refused.property}: {refused.reason}"
                )
        if self.replacing and self.original is not None:
            self.original.delete = True
