"""Steps that create, update and delete, and the step that changes nothing."""

from dataclasses import dataclass

from ..errors import OfflineError
from ..model.provider_results import ProviderResult
from ..model.state import now
from ..model.urns import is_provider
from .base import Step, StepContext, attempt


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
            context.registry.same(new, old.inputs)


@dataclass(eq=False)
class CreateStep(Step):
    delete_old_later: bool = False
    """The old resource is deleted at the end; until then it is marked in the state."""

    def apply(self, context: StepContext) -> None:
        new = self.after
        answer, failure = ProviderResult("", {}), None
        if new.custom:
            provider = context.provider_of(new)
            answer, failure = attempt(lambda: provider.create(new, preview=context.preview))
        new.id, new.outputs = answer.id, answer.outputs or {}
        new.refresh_before_update = answer.refresh_before_update
        new.created = new.modified = now()
        if self.replacing and self.delete_old_later:
            self.before.delete = True
        self.fail_partly(failure)


@dataclass(eq=False)
class UpdateStep(Step):
    def apply(self, context: StepContext) -> None:
        old, new = self.before, self.after
        new.id, new.created, new.modified = old.id, old.created, old.modified
        if not new.custom:
            return
        provider = context.provider_of(new)
        answer, failure = attempt(lambda: provider.update(old, new, preview=context.preview))
        new.outputs, new.refresh_before_update = answer.outputs or {}, answer.refresh_before_update
        new.modified = now()
        if failure is not None:
            # The update is incomplete: the next diff must compare with the old inputs.
            new.inputs = old.inputs
        self.fail_partly(failure)


@dataclass(eq=False)
class DeleteStep(Step):
    pending_replacement: bool = False
    deleted: frozenset[str] | set[str] = frozenset()
    """URNs deleted in this operation, shared with the generator: what is deleted with one of them needs no
    call.
    """

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
        if old.custom:
            provider = context.provider_of(old)  # as in Pulumi, loaded also if it is not asked
            if not context.preview and not spared:
                provider.delete(old)
        if self.pending_replacement:
            old.pending_replacement = True
