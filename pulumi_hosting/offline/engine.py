"""The engine: takes what the program registers, has the steps decided, and does them, saving after each.

Every registration is served on a thread of its own. Deciding happens under one lock, in the order of arrival, as in Pulumi; refreshes,
diffs and steps run beside each other, at most `parallel` at a time. The first failure closes the deployment: steps under way
finish and are saved, nothing new begins.
"""

import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .errors import Bail, OfflineError, ProviderError
from .events import Events
from .generator import Decision, DiffWork, Mode, StepGenerator, Work
from .goals import Goal, ReadGoal, Targets
from .journal import Journal
from .names import NameClash
from .registry import Registry
from .state import Graph, PendingOperation, Snapshot, State, is_provider, package_of, rebuild
from .steps import (
    READ,
    REFRESH,
    DeleteProtected,
    DeleteStep,
    Readable,
    ReadStep,
    RefreshStep,
    SameStep,
    Step,
    mark_secret_outputs,
)
from .values import Properties

_log = logging.getLogger(__name__)


class Closed(Exception):
    """The deployment has failed or was cancelled: whoever still asks gets no answer."""


@dataclass(frozen=True)
class Options:
    preview: bool = False
    parallel: int = 16
    refresh: bool = False
    """Refresh before (without a program) or while the program runs."""
    refresh_only: bool = False
    run_program: bool = True
    """False: refresh and destroy look at the state alone."""
    mode: Mode = "update"
    targets: Targets = field(default_factory=Targets)
    target_dependents: bool = False
    take_over: Goal | None = None
    """A resource to import, and nothing else."""


@dataclass
class Registered:
    """What the program is told of a resource."""

    state: State
    unknown: bool = False


@dataclass
class Deployment:
    """One operation on one stack."""

    stack: str
    project: str
    base: Snapshot
    options: Options
    registry: Registry
    journal: Journal | None
    events: Events
    config: Properties = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    operations: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    corrupt: bool = False
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Called when the operation is over, however it ended."""

    def __post_init__(self) -> None:
        self.preview = self.options.preview
        self.targets = self.options.targets
        self.target_dependents = self.options.target_dependents
        self._set_resources(self.base.resources)
        self.failed = threading.Event()
        """Something went wrong; nothing new begins."""
        self.step_failed = False
        self.cancelled = False
        refresh = self.options.refresh and self.options.run_program
        self._generator = StepGenerator(self, self.options.mode, refresh=refresh)
        self._deciding = threading.RLock()
        self._counting = threading.Lock()
        self._slots = threading.Semaphore(self.options.parallel)
        self._outputs_pending: dict[str, Step] = {}
        self._stack_outputs: tuple[str, Properties] | None = None
        self._failed_steps: list[Step] = []
        self._refresh_counts = self.options.refresh_only

    def _set_resources(self, resources: list[State]) -> None:
        self.resources = resources
        self.olds = {state.urn: state for state in resources if not state.delete}
        self.graph = Graph(resources)

    # Telling people.

    def error(self, message: str, urn: str = "") -> None:
        self.errors.append(message)
        self.events.diagnostic("error", message, urn)

    def warn(self, urn: str, message: str) -> None:
        self.events.diagnostic("warning", message, urn)

    def info(self, urn: str, message: str) -> None:
        self.events.diagnostic("info", message, urn)

    def package_config(self, type: str) -> Properties:
        """The stack's configuration for the package of a type; dynamic providers get all of it."""
        package = package_of(type)
        if package in ("pulumi-python", "pulumi-nodejs"):
            return dict(self.config)
        own = f"{package}:"
        return {key.removeprefix(own): value for key, value in self.config.items() if key.startswith(own)}

    # For steps.

    def provider_of(self, state: State) -> Readable:
        if is_provider(state.type):
            return self.registry  # type: ignore[return-value]  # providers are never read
        provider = self.registry.get(state.provider)
        if provider is None:
            raise ProviderError(f"the provider of {state.urn} is not at hand: {state.provider}")
        return provider

    def same_provider(self, state: State, inputs: Properties) -> None:
        self.registry.same(state, inputs)

    # Registrations, called by the monitor on its threads.

    def register(self, goal: Goal) -> Registered:
        """Bring one resource to what the program wants. Raises `Closed` when the deployment is over before that is done."""
        decision = self._decide(self._generator.register(goal))
        return Registered(decision.result(), decision.unknown)

    def read(self, goal: ReadGoal) -> State:
        def decide() -> Generator[Work, Any, Decision]:
            return self._generator.read(goal)
            yield  # a generator without a pause

        return self._decide(decide()).result()

    def take_over(self, goal: Goal) -> None:
        """Import a resource that no program declares. Raises `Closed` when that failed."""
        self._decide(self._generator.take_over(goal))

    def _decide(self, deciding: Generator[Work, Any, Decision]) -> Decision:
        answer: Any = None
        try:
            while True:
                with self._deciding:
                    self._check_open()
                    try:
                        work = deciding.send(answer)
                    except StopIteration as stop:
                        decision: Decision = stop.value
                        break
                answer = self._work(work)
            self._run_chain(decision.steps)
            return decision
        except Closed:
            raise
        except NameClash as error:
            self.error(str(error), error.urn)
            self.fail()
            raise Closed from error
        except Bail as error:
            self.fail()
            raise Closed from error
        except OfflineError as error:
            if not self.failed.is_set():
                self.error(str(error))
            self.fail()
            raise Closed from error
        except Exception as error:  # a bug of ours or in a dependency: the user reads one line, the log has the rest
            self._stumble(error)
            raise Closed from error

    def _stumble(self, error: Exception) -> None:
        # Not above debug: without -v nobody listens, and Python would print the traceback itself.
        _log.debug("unexpected", exc_info=error)
        self.error(f"the offline engine stumbled over an error of its own ({type(error).__name__}); run again with -v 9 for more")
        self.fail()

    def _work(self, work: Work) -> Any:
        if isinstance(work, DiffWork):
            with self._slots:
                return work.ask()
        self._run_chain(work if isinstance(work, list) else [work])
        return None

    def register_outputs(self, urn: str, outputs: Properties) -> None:
        """Outputs of a component. Those of the stack wait for the end: until then the old ones stand."""
        if self._stack_urn == urn:
            self._stack_outputs = (urn, outputs)
            return
        with self._deciding:
            self._check_open()
            step = self._outputs_pending.pop(urn, None)
        if step is None or (isinstance(step, SameStep) and step.skipped):
            return
        self._store_outputs(step, outputs)

    def _store_outputs(self, step: Step, outputs: Properties) -> None:
        before = step.old.outputs if step.old is not None else None
        step.after.outputs = outputs
        if self.journal is not None and before != outputs:
            self.journal.outputs_changed()
        self.events.outputs(step, step.op, planning=self.preview)

    @property
    def _stack_urn(self) -> str:
        return f"urn:pulumi:{self.stack}::{self.project}::pulumi:pulumi:Stack::{self.project}-{self.stack}"

    # Steps.

    def _check_open(self) -> None:
        if self.failed.is_set():
            raise Closed

    def fail(self) -> None:
        self.failed.set()

    def cancel(self) -> None:
        """Ctrl-C: finish what is under way, begin nothing new."""
        self.cancelled = True
        self.failed.set()

    def _run_chain(self, steps: list[Step], *, keep_going: bool = False) -> None:
        if not steps:
            return
        with self._slots:
            for step in steps:
                if not keep_going or self.cancelled:
                    self._check_open()
                try:
                    self._execute(step)
                except OfflineError as error:
                    self.step_failed = True
                    if isinstance(error, DeleteProtected):
                        self._failed_steps.append(step)
                        return
                    if not keep_going:
                        self.fail()
                    raise Closed from error

    def _execute(self, step: Step) -> None:
        with self._counting:
            if not step.internal:
                self.operations.append((step.op, step.urn, tuple(step.diffs)))
        if not step.internal:
            self.events.pre(step, planning=self.preview)
        self._save(lambda journal: journal.begin(step))
        failure: OfflineError | None = None
        try:
            step.apply(self)
        except OfflineError as error:
            failure = error
        result = step.result if isinstance(step, RefreshStep) else step.new
        if result is not None and (failure is None or step.partial):
            mark_secret_outputs(result)
        if failure is None:
            self._count(step)
            if step.logical and step.new is not None:
                self._outputs_pending[step.urn] = step
        else:
            self._report_failure(step, failure)
        self._save(lambda journal: journal.end(step, failure is None or step.partial))
        if failure is not None:
            raise failure

    def _save(self, write: Callable[[Journal], None]) -> None:
        if self.journal is None:
            return
        try:
            write(self.journal)
        except OfflineError as error:
            self.error(str(error))
            raise

    def _count(self, step: Step) -> None:
        op, counted = step.op, step.logical
        if isinstance(step, RefreshStep) and self._refresh_counts:
            op, counted = step.result_op, True
        if isinstance(step, ReadStep) and step.op == READ:
            counted = step.changed
        if step.internal:
            return
        if counted:
            with self._counting:
                self.changes[op] = self.changes.get(op, 0) + 1
        if step.res.custom or isinstance(step, RefreshStep | DeleteStep) or self.preview:
            self.events.outputs(step, op, planning=self.preview)

    def _report_failure(self, step: Step, error: OfflineError) -> None:
        if isinstance(error, ProviderError) and error.corrupting:
            self.corrupt = True
        prefix = "Preview failed: " if self.preview else ""
        self.error(f"{prefix}{error}", "" if step.internal else step.urn)
        if not self.preview and not step.internal:
            self.events.failed(step, sum(self.changes.values()))

    def _run_batch(self, steps: list[Step], *, keep_going: bool = False) -> None:
        """Run independent steps beside each other and wait for all."""
        if not steps:
            return
        with ThreadPoolExecutor(min(self.options.parallel, len(steps))) as pool:
            futures = [pool.submit(self._run_chain, [step], keep_going=keep_going) for step in steps]
        for future in futures:
            error = future.exception()
            if error is not None and not isinstance(error, Closed):
                raise error

    # The course of an operation.

    def run(self, program: Callable[["Deployment"], None] | None) -> bool:
        """Refresh, program, deletes; true when all went well. `program` returns once everything is registered, and raises `Bail` when
        it failed.
        """
        try:
            succeeded = self._run(program)
        except Exception as error:  # noqa: BLE001  as above: nobody reads our tracebacks
            self._stumble(error)
            succeeded = False
        self._drain()
        for end in self.at_end:
            end()
        try:
            self._save(Journal.close)
        except OfflineError:
            return False
        return succeeded

    def _drain(self) -> None:
        """Wait until every step under way is done and saved: what is being made must not be forgotten because something else failed."""
        for _ in range(self.options.parallel):
            self._slots.acquire()
        self._slots.release(self.options.parallel)

    def news(self) -> list[State]:
        """What the program registered, as it is now."""
        return self._generator.registered()

    def _run(self, program: Callable[["Deployment"], None] | None) -> bool:
        options = self.options
        marked = [state for state in self.resources if state.refresh_before_update]
        unfinished = self.base.unfinished()
        if unfinished:
            self.warn("", _pending_warning(unfinished, looks_only=options.refresh_only))
        try:
            if options.refresh and not options.run_program:
                self._refresh_all([state for state in self.resources if state.urn in self.targets])
                if options.refresh_only or self.step_failed or self.cancelled:
                    return self._concluded()
            elif marked and not options.refresh:
                self._refresh_all(marked)
                if self.step_failed or self.cancelled:
                    return self._concluded()
            if options.take_over is not None:
                self.take_over(options.take_over)
                return self._concluded()
            unknown = [urn for urn in self.targets.patterns if "*" not in urn]
            if program is not None:
                program(self)
            if not self.failed.is_set():
                missing = [urn for urn in unknown if urn not in self.olds and urn not in self._generator.urns]
                self._finish()
                for urn in missing:
                    self.error(f"Target '{urn}' could not be found in the stack.")
                if missing:
                    return self._finalize(False)
        except Closed:
            pass
        except Bail:
            self.fail()
            return self._finalize(False)
        except OfflineError as error:
            self.error(str(error))
            self.fail()
            return self._finalize(False)
        return self._finalize(self._concluded())

    def _concluded(self) -> bool:
        self._drain()
        if self.step_failed or self._generator.errored:
            if self._says_failed():
                self.error(f"{'preview' if self.preview else 'update'} failed")
            return False
        if self.cancelled:
            self.error(f"{'preview' if self.preview else 'update'} canceled")
            return False
        return not self.failed.is_set()

    def _says_failed(self) -> bool:
        # When deciding failed, the reason was the last word; a failed step is followed by this summary.
        return self.step_failed or not self.failed.is_set()

    def _finalize(self, succeeded: bool) -> bool:
        """Give the stack its outputs: the new ones alone after success, on top of the old ones after a failure."""
        if self._stack_outputs is not None:
            urn, outputs = self._stack_outputs
            step = self._outputs_pending.pop(urn, None)
            if step is not None:
                old = self.olds.get(urn)
                self._store_outputs(step, outputs if succeeded or old is None else old.outputs | outputs)
        return succeeded

    def _refresh_all(self, states: list[State]) -> None:
        """Refresh resources of the state without a program, and go on from what was found."""
        for state in states:
            self.registry.ensure(state.provider, self.resources)
        steps = {id(state): RefreshStep(REFRESH, state, state) for state in states}
        self._run_batch(list(steps.values()), keep_going=True)
        refreshed = [steps[id(state)].result if id(state) in steps else state for state in self.resources]
        self._set_resources(rebuild(state for state in refreshed if state is not None))
        if self.journal is not None:
            self.journal.rebase(self.resources)

    def _finish(self) -> None:
        """What the program did not mention: refreshed, or deleted."""
        if self.options.mode == "refresh":
            with self._deciding:
                steps = self._generator.refreshes()
            self._run_batch(steps, keep_going=True)
            refreshed = {id(step.old): step.result for step in steps if isinstance(step, RefreshStep)}
            if refreshed and self.journal is not None:
                kept = [refreshed.get(id(state), state) for state in self.resources]
                self.journal.rebase([state for state in kept if state is not None])
            return
        with self._deciding:
            sames, batches = self._generator.deletions()
        for same in sames:
            self._run_chain([same])
        graph = self._generator.scheduling_graph()
        for batch in batches:
            blocked = {key for step in self._failed_steps if step.before in graph for key in graph.all_dependencies_of(step.before)}
            self._run_batch([step for step in batch if id(step.old) not in blocked])
            self._check_open()


def _pending_warning(unfinished: list[PendingOperation], *, looks_only: bool) -> str:
    lines = "".join(f"\n  * {item.resource.urn}, interrupted while {item.type}" for item in unfinished)
    advice = (
        "A refresh cannot find what they made. Next: run `pulumi-hosting offline up`, which finds what was bought; run it before `destroy`."
        if looks_only
        else "This run finds what was bought. `refresh --clear-pending-creates` would only forget it."
    )
    return f"An earlier run was interrupted in {len(unfinished)} operation(s), and what they made is not in the state:{lines}\n{advice}"
