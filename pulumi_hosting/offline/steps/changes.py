"""Steps that create, update, replace and delete, and the step that changes nothing."""

from dataclasses import dataclass

from ..errors import InitError, OfflineError
from ..model.state import now
from ..model.urns import is_provider
from ..providers.provider_results import ProviderResult
from .base import Step, StepContext


class DeleteProtected(OfflineError):
    """Deleting a protected resource: fails, but lets independent deletes go on."""


@dataclass(eq=False)
class SameStep(Step):
    skipped: bool = False
    """A create left out because it is not targeted."""
    untargeted: bool = False

    def apply(self, context: StepContext) -> None:
        old, new = self.before, self.after
        new.id, new.outputs = old.id, old.outputs
        new.created, new.modified = old.created, old.modified
        if is_provider(new.type) and not self.skipped and not self.untargeted:
            # The provider reported no change: it is configured with its old inputs.
            context.same_provider(new, old.inputs)


@dataclass(eq=False)
class CreateStep(Step):
    replacing: bool = False
    delete_old_later: bool = False
    """The old resource is deleted at the end; until then it is marked in the state."""

    @property
    def logical(self) -> bool:
        return not self.replacing

    def apply(self, context: StepContext) -> None:
        new = self.after
        failure: InitError | None = None
        answer = ProviderResult("", {})
        if new.custom:
            try:
                answer = context.provider_of(new).create(
                    new.urn, new.inputs, new.custom_timeouts.get("create", 0), preview=context.preview
                )
            except InitError as error:
                failure = error
                answer = ProviderResult(
                    error.id, error.properties or {}, refresh_before_update=error.refresh_before_update
                )
                new.init_errors = error.reasons
        new.id, new.outputs, new.refresh_before_update = (
            answer.id,
            answer.outputs or {},
            answer.refresh_before_update,
        )
        new.created = new.modified = now()
        if self.replacing and self.delete_old_later:
            self.before.delete = True
        if failure is not None:
            self.partial = True
            raise failure


@dataclass(eq=False)
class UpdateStep(Step):
    def apply(self, context: StepContext) -> None:
        old, new = self.before, self.after
        new.id, new.created, new.modified = old.id, old.created, old.modified
        if not new.custom:
            return
        failure: InitError | None = None
        try:
            answer = context.provider_of(new).update(
                new.urn,
                old.id,
                old.inputs,
                old.outputs,
                new.inputs,
                new.custom_timeouts.get("update", 0),
                new.ignore_changes,
                preview=context.preview,
            )
        except InitError as error:
            failure = error
            answer = ProviderResult(
                old.id, error.properties or {}, refresh_before_update=error.refresh_before_update
            )
            new.init_errors = error.reasons
        new.outputs, new.refresh_before_update = answer.outputs or {}, answer.refresh_before_update
        new.modified = now()
        if failure is not None:
            # The update is incomplete: the next diff must compare with the old inputs.
            self.partial = True
            new.inputs = old.inputs
            raise failure


@dataclass(eq=False)
class DeleteStep(Step):
    replacing: bool = False
    pending_replacement: bool = False
    deleted: frozenset[str] | set[str] = frozenset()
    """URNs deleted in this operation, shared with the generator: what is deleted with one of them needs no
    call.
    """

    @property
    def logical(self) -> bool:
        return not self.replacing

    def apply(self, context: StepContext) -> None:
        old = self.before
        if not self.replacing and old.protect:
            raise DeleteProtected(
                f'resource "{old.urn}" cannot be deleted\nbecause it is protected. To unprotect the '
                "resource, either remove the `protect` flag from the resource in your Pulumi program and run "
                "`pulumi up`, or use the command:\n"
                f"`pulumi state unprotect '{old.urn}'`"
            )
        spared = (
            old.external or old.retain_on_delete or (old.deleted_with and old.deleted_with in self.deleted)
        )
        if not context.preview and not spared and old.custom:
            context.provider_of(old).delete(
                old.urn, old.id, old.inputs, old.outputs, old.custom_timeouts.get("delete", 0)
            )
        if self.pending_replacement:
            old.pending_replacement = True


@dataclass(eq=False)
class ReplaceStep(Step):
    """Announces that the create and the delete beside it are one replacement."""


@dataclass(eq=False)
class RemovePendingReplaceStep(Step):
    @property
    def logical(self) -> bool:
        return False

    @property
    def internal(self) -> bool:
        return True
