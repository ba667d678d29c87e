"""Saves the state of a stack while it changes: after every step, and before every step that changes something
outside.
"""

import threading
from collections.abc import Callable

from ..model.graph import rebuild
from ..model.property_values import without_secrets
from ..model.state import PendingOperation, ResourceState, Snapshot
from ..steps.base import DELETES, Step
from ..steps.changes import SameStep
from ..steps.reads import RefreshStep


def _pending(op: str) -> str | None:
    """Pulumi's word for an operation under way that changes or reads something outside; None for others."""
    act = op.partition("-")[0].replace("discard", "delete")
    return f"{act.removesuffix('e')}ing" if act in ("create", "update", "delete", "read", "import") else None


class Journal:
    """The state to save now: the new resources of this operation, then the old ones that no step has handled
    yet.

    `save` must write the whole snapshot. Several steps that wait for a write share one.
    """

    def __init__(self, base: Snapshot, save: Callable[[Snapshot], None]) -> None:
        self._base = base.resources
        # A pending create is kept by every operation: its outcome is unknown until a run finds the resource.
        self._base_pending = [operation for operation in base.pending if operation.type == "creating"]
        self._extra = base.extra
        self._save = save
        self._new: list[ResourceState] = []
        self._done: dict[int, ResourceState] = {}
        """By identity, which is unique as long as the state is kept."""
        self._pending: dict[int, PendingOperation] = {}
        self._refreshing = False
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._changes = 0
        self._written = 0
        self._dirty = base.pending != self._base_pending

    def rebase(self, resources: list[ResourceState]) -> None:
        """Replace the old resources, after a refresh."""
        with self._lock:
            self._base = resources
            self._dirty = True

    def begin(self, step: Step) -> None:
        kind = _pending(step.op)
        if kind is None:
            return
        subject = step.before if kind == "deleting" else step.after
        # A copy without id: an entry with an id counts as finished (see `Snapshot.unfinished`).
        kept = subject.copy(id="") if kind == "creating" else subject
        with self._lock:
            self._pending[id(subject)] = PendingOperation(kind, kept)
        self.write()

    def end(self, step: Step, successful: bool) -> None:
        with self._lock:
            must_write = self._record(step, successful)
        if must_write:
            self.write()

    def _record(self, step: Step, successful: bool) -> bool:
        """Record the outcome of a step. True when it must be written at once."""
        for state in (step.old, step.new):
            if state is not None:
                self._pending.pop(id(state), None)
        if isinstance(step, SameStep):
            return self._record_same(step, successful)
        if isinstance(step, RefreshStep):
            return self._record_refresh(step, successful)
        pending = _pending(step.op) is not None
        if not successful or not (pending or step.op == "remove-pending-replace"):
            return pending
        if step.op in DELETES:
            if not step.before.pending_replacement or step.op == "remove-pending-replace":
                self._done[id(step.before)] = step.before
            return True
        if step.old is not None and (step.op in ("update", "read") or step.old.pending_replacement):
            self._done[id(step.old)] = step.old
        self._new.append(step.after)
        return True

    def _record_same(self, step: SameStep, successful: bool) -> bool:
        if not successful:
            return True
        old, new = step.before, step.after
        self._done[id(old)] = old
        if step.skipped:
            return False
        self._new.append(new)
        unchanged = same_as_saved(old, new)
        if unchanged and old.is_saved_as(new):
            new.saved_text = old.saved_text  # so that unchanged secrets are not encrypted again
        self._dirty = True
        return not unchanged

    def _record_refresh(self, step: RefreshStep, successful: bool) -> bool:
        if not step.persisted:
            return False
        self._refreshing = True
        if successful and step.old is not None:
            self._done[id(step.old)] = step.old
            if step.result is not None:
                self._new.append(step.result)
        return True

    def snapshot(self) -> Snapshot:
        resources = [state for state in (*self._new, *self._base) if id(state) not in self._done]
        if self._refreshing:
            resources = rebuild(resources)
        return Snapshot(resources, [*self._pending.values(), *self._base_pending], self._extra)

    def write(self) -> None:
        """Save what has changed, unless a save that another step has begun since then includes it."""
        with self._lock:
            self._changes += 1
            wanted = self._changes
        with self._write_lock:
            if self._written >= wanted:
                return
            with self._lock:
                written, snapshot = self._changes, self.snapshot()
                self._dirty = False
            self._save(snapshot)
            self._written = written

    def close(self) -> None:
        """Write the changes that were not written at once."""
        if self._dirty:
            self.write()


_COMPARED = (
    *("urn", "type", "custom", "custom_timeouts", "retain_on_delete", "provider", "parent"),
    *("deleted_with", "replace_with", "protect"),
)


def same_as_saved(old: ResourceState, new: ResourceState) -> bool:
    """True when saving `new` in place of `old` would change nothing that matters."""
    return (
        all(getattr(old, name) == getattr(new, name) for name in _COMPARED)
        and sorted(old.dependencies) == sorted(new.dependencies)
        and old.inputs == new.inputs
        and old.outputs == new.outputs
        and without_secrets(old.replacement_trigger) == without_secrets(new.replacement_trigger)
    )
