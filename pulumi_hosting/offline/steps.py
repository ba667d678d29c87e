"""Steps: what is done to one resource. The generator decides them, the engine announces, applies and saves them."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .errors import InitError, OfflineError, ProviderError
from .plugins import Answer, Checked, Diff, diff_of_inputs
from .state import State, is_provider, now, package_of
from .values import UNKNOWN_STRING, Properties, Secret, changed_keys, parse_path, reset_path, without_secrets

SAME = "same"
CREATE = "create"
UPDATE = "update"
DELETE = "delete"
REPLACE = "replace"
CREATE_REPLACEMENT = "create-replacement"
DELETE_REPLACED = "delete-replaced"
READ = "read"
READ_REPLACEMENT = "read-replacement"
REFRESH = "refresh"
DISCARD = "discard"
DISCARD_REPLACED = "discard-replaced"
REMOVE_PENDING_REPLACE = "remove-pending-replace"
IMPORT = "import"
IMPORT_REPLACEMENT = "import-replacement"

NO_CHANGE = frozenset({SAME, READ, DISCARD, READ_REPLACEMENT})
"""Operations that `--expect-no-changes` allows."""


class Crud(Protocol):
    """What steps ask of a provider; the registry answers for provider resources."""

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes, *, preview: bool) -> Checked: ...
    def diff(
        self, urn: str, id: str, old_inputs: Properties, old_outputs: Properties, news: Properties, ignore: Iterable[str], *, preview: bool
    ) -> Diff: ...
    def create(self, urn: str, inputs: Properties, timeout: float, *, preview: bool) -> Answer: ...
    def update(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        timeout: float,
        ignore: Iterable[str],
        *,
        preview: bool,
    ) -> Answer: ...
    def delete(self, urn: str, id: str, inputs: Properties, outputs: Properties, timeout: float) -> None: ...


class Readable(Crud, Protocol):
    def read(self, urn: str, id: str, inputs: Properties | None, state: Properties | None, timeout: float) -> Answer: ...


class Context(Protocol):
    """What a step may use while it is applied."""

    preview: bool

    def provider_of(self, state: State) -> Readable: ...
    def same_provider(self, state: State, inputs: Properties) -> None: ...
    def warn(self, urn: str, message: str) -> None: ...
    def info(self, urn: str, message: str) -> None: ...


class DeleteProtected(OfflineError):
    """Deleting a protected resource: fails, but lets independent deletes go on."""


def ignoring(inputs: Properties, old: Properties, paths: Iterable[str]) -> tuple[Properties, list[str]]:
    """Inputs with every ignored path put back to its old value, and the paths where that could not be done."""
    failed = []
    for path in paths:
        try:
            inputs, done = reset_path(parse_path(path), old, inputs)
        except ValueError:
            continue
        if not done:
            failed.append(path)
    return inputs, failed


def diff_resource(provider: Crud, state: State, news: Properties, ignore: Iterable[str], *, preview: bool) -> Diff:
    """The provider's opinion of a change; the engine's own comparison of inputs where it has none."""
    ignore = list(ignore)
    diff = provider.diff(state.urn, state.id, state.inputs, state.outputs, news, ignore, preview=preview)
    if diff.changes != "unknown":
        return diff
    own = diff_of_inputs(state.inputs, ignoring(news, state.inputs, ignore)[0])
    return Diff(own.changes, diff.replaces, own.diffs, own.detailed, diff.delete_before_replace, diff.stables)


@dataclass(eq=False)
class Step:
    """One announced operation. `partial` is set when the provider failed after having made something that is now in `new`."""

    op: str
    old: State | None = None
    new: State | None = None
    keys: tuple[str, ...] = ()
    diffs: tuple[str, ...] = ()
    detailed: Any = None
    partial: bool = field(default=False, init=False)

    @property
    def before(self) -> State:
        """The old state, of a step that has one."""
        if self.old is None:
            raise TypeError(f"a {self.op} step has no old state")
        return self.old

    @property
    def after(self) -> State:
        """The new state, of a step that has one."""
        if self.new is None:
            raise TypeError(f"a {self.op} step has no new state")
        return self.new

    @property
    def res(self) -> State:
        return self.new or self.before

    @property
    def urn(self) -> str:
        return self.res.urn

    @property
    def logical(self) -> bool:
        """Counted in the summary; the physical halves of a replacement are not."""
        return True

    @property
    def internal(self) -> bool:
        """Not shown: default providers, and bookkeeping."""
        return is_provider(self.res.type) and self.res.name.startswith("default")

    def apply(self, context: Context) -> None:
        """Do it. Raises `ProviderError`; afterwards `new` is the state to save."""


@dataclass(eq=False)
class SameStep(Step):
    skipped: bool = False
    """A create left out because it is not targeted."""
    untargeted: bool = False

    def apply(self, context: Context) -> None:
        old, new = self.before, self.after
        new.id, new.outputs = old.id, old.outputs
        new.created, new.modified = old.created, old.modified
        if is_provider(new.type) and not self.skipped and not self.untargeted:
            # The provider decided that it is the same: it goes on with what it was configured with before.
            context.same_provider(new, old.inputs)


@dataclass(eq=False)
class CreateStep(Step):
    replacing: bool = False
    delete_old_later: bool = False
    """The old one is to be deleted at the end: marked in the state now, so that it is never forgotten."""

    @property
    def logical(self) -> bool:
        return not self.replacing

    def apply(self, context: Context) -> None:
        new = self.after
        failure: InitError | None = None
        answer = Answer("", {})
        if new.custom:
            try:
                answer = context.provider_of(new).create(new.urn, new.inputs, new.custom_timeouts.get("create", 0), preview=context.preview)
            except InitError as error:
                failure = error
                answer = Answer(error.id, error.properties or {}, refresh_before_update=error.refresh_before_update)
                new.init_errors = error.reasons
        new.id, new.outputs, new.refresh_before_update = answer.id, answer.outputs or {}, answer.refresh_before_update
        new.created = new.modified = now()
        if self.replacing and self.delete_old_later:
            self.before.delete = True
        if failure is not None:
            self.partial = True
            raise failure


@dataclass(eq=False)
class UpdateStep(Step):
    def apply(self, context: Context) -> None:
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
            answer = Answer(old.id, error.properties or {}, refresh_before_update=error.refresh_before_update)
            new.init_errors = error.reasons
        new.outputs, new.refresh_before_update = answer.outputs or {}, answer.refresh_before_update
        new.modified = now()
        if failure is not None:
            # Half done: the new inputs are not in force, so the next diff must see the old ones.
            self.partial = True
            new.inputs = old.inputs
            raise failure


@dataclass(eq=False)
class DeleteStep(Step):
    replacing: bool = False
    pending_replacement: bool = False
    deleted: frozenset[str] | set[str] = frozenset()
    """URNs deleted in this operation, shared with the generator: who is deleted with one of them needs no call."""

    @property
    def logical(self) -> bool:
        return not self.replacing

    def apply(self, context: Context) -> None:
        old = self.before
        if not self.replacing and old.protect:
            raise DeleteProtected(
                f'resource "{old.urn}" cannot be deleted\nbecause it is protected. To unprotect the resource, either remove the `protect` '
                "flag from the resource in your Pulumi program and run `pulumi up`, or use the command:\n"
                f"`pulumi state unprotect '{old.urn}'`"
            )
        spared = old.external or old.retain_on_delete or (old.deleted_with and old.deleted_with in self.deleted)
        if not context.preview and not spared and old.custom:
            context.provider_of(old).delete(old.urn, old.id, old.inputs, old.outputs, old.custom_timeouts.get("delete", 0))
        if self.pending_replacement:
            old.pending_replacement = True


@dataclass(eq=False)
class ReplaceStep(Step):
    """Says only that the two physical steps beside it belong together."""


@dataclass(eq=False)
class RemovePendingReplaceStep(Step):
    @property
    def logical(self) -> bool:
        return False

    @property
    def internal(self) -> bool:
        return True


@dataclass(eq=False)
class ReadStep(Step):
    """A resource the program only looks at (`get`)."""

    replacing: bool = False

    @property
    def logical(self) -> bool:
        return not self.replacing

    def apply(self, context: Context) -> None:
        old, new = self.old, self.after
        failure: InitError | None = None
        if new.id != UNKNOWN_STRING:
            try:
                answer = context.provider_of(new).read(new.urn, new.id, new.inputs, new.inputs, new.custom_timeouts.get("read", 0))
            except InitError as error:
                failure = error
                answer = Answer(error.id, error.properties)
                new.init_errors = error.reasons
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
        if failure is not None:
            self.partial = True
            raise failure

    @property
    def changed(self) -> bool:
        """Counted only when what it read has changed."""
        return self.old is not None and self.new is not None and bool(changed_keys(self.old.outputs, self.new.outputs))


@dataclass(eq=False)
class RefreshStep(Step):
    """Look how a resource really is. `persisted` ones belong to a running program and are saved at once."""

    persisted: bool = False
    hidden: bool = False
    gone: bool = field(default=False, init=False)
    diff: Diff = field(default_factory=lambda: Diff("none"), init=False)

    @property
    def logical(self) -> bool:
        return False

    @property
    def internal(self) -> bool:
        return self.hidden or super().internal

    @property
    def result(self) -> State | None:
        return None if self.gone else self.new

    @property
    def result_op(self) -> str:
        """What was found out, in the words of an update: same, update, or delete for a vanished one."""
        old, new = self.before, self.after
        if self.gone:
            return DELETE
        if old.external:
            return UPDATE if new is not old and changed_keys(old.outputs, new.outputs) else SAME
        return UPDATE if new is not old and self.diff.changes == "some" else SAME

    def apply(self, context: Context) -> None:
        old, new = self.before, self.after
        if not old.custom or is_provider(old.type) or old.pending_replacement:
            if self.persisted:
                self.new = old.copy()
            return
        provider = context.provider_of(new)
        init_errors: list[str] = []
        try:
            answer = provider.read(new.urn, old.id, old.inputs, old.outputs, old.custom_timeouts.get("read", 0))
        except InitError as error:
            init_errors = error.reasons
            answer = Answer(error.id, error.properties, error.inputs, error.refresh_before_update)
            context.warn(old.urn, "Refreshed resource is in an unhealthy state:\n* " + "\n* ".join(init_errors))
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
            self.diff = diff_resource(provider, self.new, old.inputs, old.ignore_changes, preview=context.preview).inverted()
            self.diffs, self.detailed = self.diff.diffs, self.diff.detailed


@dataclass(eq=False)
class ImportStep(Step):
    """Take an existing thing under management, by its id."""

    replacing: bool = False
    original: State | None = None
    commanded: bool = False
    """Asked for by the `import` command: no program says what it should be like, so the inputs found are checked as if it did."""
    found: State | None = field(default=None, init=False)
    """As it was found: what the program's inputs are compared with next."""

    @property
    def logical(self) -> bool:
        return not self.replacing

    def apply(self, context: Context) -> None:
        new = self.after
        try:
            answer = context.provider_of(new).read(new.urn, new.import_id, None, None, new.custom_timeouts.get("read", 0))
        except InitError as error:
            new.init_errors = error.reasons
            answer = Answer(error.id, error.properties, error.inputs, error.refresh_before_update)
        if answer.outputs is None:
            raise ProviderError(f"resource '{new.import_id}' does not exist")
        if answer.inputs is None:
            raise ProviderError(f"provider does not support importing resources; please try updating the '{package_of(new.type)}' plugin")
        new.id, new.inputs, new.outputs = answer.id, answer.inputs, answer.outputs
        new.refresh_before_update = answer.refresh_before_update
        new.created = new.modified = now()
        self.found = new.copy(additional_secret_outputs=[], aliases=[])
        if self.commanded:
            new.import_id = ""
            checked = context.provider_of(new).check(new.urn, answer.inputs, answer.inputs, os.urandom(32), preview=context.preview)
            for failure in checked.failures:
                context.warn(new.urn, f"an imported input would be refused: {failure.property}: {failure.reason}")
        if self.replacing and self.original is not None:
            self.original.delete = True


def mark_secret_outputs(state: State) -> None:
    """Outputs named in `additional_secret_outputs`, and those whose input of the same name is secret, become secret."""
    marked = {
        key: Secret(value)
        for key, value in state.outputs.items()
        if not isinstance(value, Secret) and (key in state.additional_secret_outputs or isinstance(state.inputs.get(key), Secret))
    }
    if marked:
        state.outputs = state.outputs | marked


_SAVED = ("urn", "type", "custom", "custom_timeouts", "retain_on_delete", "provider", "parent", "deleted_with", "replace_with", "protect")


def same_as_saved(old: State, new: State) -> bool:
    """True when saving `new` in place of `old` would change nothing that matters."""
    return (
        all(getattr(old, name) == getattr(new, name) for name in _SAVED)
        and sorted(old.dependencies) == sorted(new.dependencies)
        and old.inputs == new.inputs
        and old.outputs == new.outputs
        and without_secrets(old.replacement_trigger) == without_secrets(new.replacement_trigger)
    )
