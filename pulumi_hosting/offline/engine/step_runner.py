"""Runs steps: announces, applies and saves each, at most `parallel` at a time.

After the first failure nothing new starts; the steps under way finish and are saved.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..display.engine_events import Events
from ..errors import OfflineError, ProviderError
from ..steps.base import Step, StepContext, mark_secret_outputs
from ..steps.changes import DeleteProtected, DeleteStep
from ..steps.reads import ReadStep, RefreshStep
from ..storage.journal import Journal
from .run_options import Options


class DeploymentClosed(Exception):
    """The deployment has failed or was cancelled: no request is served any more."""


class StepRunner:
    def __init__(self, events: Events, journal: Journal | None, options: Options) -> None:
        self._events = events
        self._journal = journal
        self._options = options
        self.slots = threading.Semaphore(options.at_a_time)
        """One is held while a provider works, so that at most `parallel` do."""
        self._counting = threading.Lock()
        self.operations: list[tuple[str, str, tuple[str, ...]]] = []
        """(operation, URN, changed properties) in the order announced."""
        self.changes: dict[str, int] = {}
        self.errors: list[str] = []
        self.step_failed = False
        self.corrupt = False
        """A provider failed in a way that leaves open what it did."""
        self.failed_steps: list[Step] = []
        """Deletes of protected resources: they fail, and independent deletes go on."""
        self.without_outputs: dict[str, Step] = {}
        """Steps whose resource may still register outputs, by URN."""
        self.cancelled = False
        self.failed = False
        """Something went wrong, or the operation was cancelled; nothing new starts."""
        self._on_failure: list[Callable[[], None]] = []

    # Failing.

    def fail(self) -> None:
        self.failed = True
        for wake in self._on_failure:
            wake()

    def on_failure(self, wake: Callable[[], None]) -> None:
        """Call this when the operation fails; at once if it has."""
        self._on_failure.append(wake)
        if self.failed:
            wake()

    def cancel(self) -> None:
        """Ctrl-C: finish what is under way, start nothing new."""
        self.cancelled = True
        self.fail()

    def check_open(self) -> None:
        if self.failed:
            raise DeploymentClosed

    def error(self, message: str, urn: str = "") -> None:
        self.errors.append(message)
        self._events.diagnostic("error", message, urn)

    # Running.

    def run(self, steps: list[Step], context: StepContext, *, keep_going: bool = False) -> None:
        """Run steps one after the other. Raises `DeploymentClosed` when one fails."""
        if not steps:
            return
        with self.slots:
            for step in steps:
                if not keep_going or self.cancelled:
                    self.check_open()
                try:
                    self._execute(step, context)
                except OfflineError as error:
                    self.step_failed = True
                    if isinstance(error, DeleteProtected):
                        self.failed_steps.append(step)
                        return
                    if not keep_going:
                        self.fail()
                    raise DeploymentClosed from error

    def run_batch(self, steps: Sequence[Step], context: StepContext, *, keep_going: bool = False) -> None:
        """Run independent steps in parallel and wait for all."""
        if not steps:
            return
        with ThreadPoolExecutor(min(self._options.at_a_time, len(steps))) as pool:
            futures = [pool.submit(self.run, [step], context, keep_going=keep_going) for step in steps]
        for future in futures:
            error = future.exception()
            if error is not None and not isinstance(error, DeploymentClosed):
                raise error

    def drain(self) -> None:
        """Wait until every step under way is done and saved: what is being created is recorded although
        another failed.
        """
        for _ in range(self._options.at_a_time):
            self.slots.acquire()
        self.slots.release(self._options.at_a_time)

    def _execute(self, step: Step, context: StepContext) -> None:
        if not step.internal:
            with self._counting:
                self.operations.append((step.op, step.urn, tuple(step.diffs)))
            self._events.pre(step, planning=self._options.preview)
        self.save(lambda journal: journal.begin(step))
        failure: OfflineError | None = None
        try:
            step.apply(context)
        except OfflineError as error:
            failure = error
        result = step.result if isinstance(step, RefreshStep) else step.new
        if result is not None and (failure is None or step.partial):
            mark_secret_outputs(result)
        if failure is None:
            self._count(step)
            if step.logical and step.new is not None:
                self.without_outputs[step.urn] = step
        else:
            self._report(step, failure)
        self.save(lambda journal: journal.end(step, failure is None or step.partial))
        if failure is not None:
            raise failure

    def save(self, write: Callable[[Journal], None]) -> None:
        """Write to the journal, if there is one.

        Raises `OfflineError`, which was reported, when the state cannot be saved.
        """
        if self._journal is None:
            return
        try:
            write(self._journal)
        except OfflineError as error:
            self.error(str(error))
            raise

    def _count(self, step: Step) -> None:
        if step.internal:
            return
        op, counted = step.op, step.logical
        if isinstance(step, RefreshStep) and self._options.command == "refresh":
            op, counted = step.result_op, True
        if isinstance(step, ReadStep) and step.op == "read":
            counted = step.changed
        if counted:
            with self._counting:
                self.changes[op] = self.changes.get(op, 0) + 1
        if step.res.custom or isinstance(step, RefreshStep | DeleteStep) or self._options.preview:
            self._events.outputs(step, op, planning=self._options.preview)

    def _report(self, step: Step, error: OfflineError) -> None:
        if isinstance(error, ProviderError) and error.corrupting:
            self.corrupt = True
        prefix = "Preview failed: " if self._options.preview else ""
        self.error(f"{prefix}{error}", "" if step.internal else step.urn)
        if not self._options.preview and not step.internal:
            self._events.failed(step, sum(self.changes.values()))
