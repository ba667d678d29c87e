"""One operation on one stack: serves what the program registers, has the steps decided, and runs them.

Every registration is served on its own thread. As in Pulumi, decisions are made under one lock, in the order
of arrival; refreshes, diffs and steps run in parallel.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ..display.engine_events import Events
from ..errors import AlreadyReported, OfflineError
from ..generator import deletions, registrations
from ..generator.decisions import Course, Decision, Decisions, NameClash, Names
from ..model.goals import Goal, Targets
from ..model.graph import Graph, rebuild
from ..model.property_values import Properties
from ..model.provider_results import ProviderDiff
from ..model.state import ResourceState, Snapshot
from ..model.urns import STACK_TYPE, is_provider, make_urn, package_of
from ..providers.registry import Registry, ResourceProvider
from ..steps.base import Step
from ..steps.changes import SameStep
from ..steps.reads import RefreshStep
from ..storage.journal import Journal
from .run_options import Options
from .step_runner import DeploymentClosed, StepRunner

_log = logging.getLogger(__name__)


@dataclass
class Deployment:
    stack: str
    project: str
    base: Snapshot
    options: Options
    registry: Registry
    journal: Journal | None
    events: Events
    config: Properties = field(default_factory=dict)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Called when the operation is over, however it ended."""

    def __post_init__(self) -> None:
        options = self.options
        self.preview = options.preview
        self.targets = Targets(options.targets)
        self.target_dependents = options.target_dependents
        self._set_resources(self.base.resources)
        self.steps = StepRunner(self.events, self.journal, options)
        names = Names(self.stack, self.project)
        self._decisions = Decisions(self, options.mode, options.refresh and options.run_program, names)
        self._deciding = threading.RLock()
        self._stack_outputs: tuple[str, Properties] | None = None

    def _set_resources(self, resources: list[ResourceState]) -> None:
        self.resources = resources
        self.olds = {state.urn: state for state in resources if not state.delete}
        self.graph = Graph(resources)

    # Messages.

    def error(self, message: str, urn: str = "") -> None:
        self.steps.error(message, urn)

    def warn(self, urn: str, message: str) -> None:
        self.events.diagnostic("warning", message, urn)

    def info(self, urn: str, message: str) -> None:
        self.events.diagnostic("info", message, urn)

    # What steps and the generator ask.

    def package_config(self, type: str) -> Properties:
        """The stack's configuration for the package of a type; dynamic providers get all of it."""
        package = package_of(type)
        if package in ("pulumi-python", "pulumi-nodejs"):
            return dict(self.config)
        own = f"{package}:"
        return {key.removeprefix(own): value for key, value in self.config.items() if key.startswith(own)}

    def provider_of(self, state: ResourceState) -> ResourceProvider:
        if is_provider(state.type):
            return self.registry
        return self.registry.loaded(state.provider, self.resources)

    def registered(self) -> list[ResourceState]:
        """What the program registered, as it is now."""
        return list(self._decisions.registered.values())

    # Registrations, called by the monitor on its threads.

    def register(self, goal: Goal) -> Decision:
        """Bring one resource to what the program declares.

        Raises `DeploymentClosed` when the deployment ends before.
        """
        return self._decide(registrations.register(self._decisions, goal))

    def read(self, goal: Goal) -> ResourceState:
        return self._decide(registrations.read(self._decisions, goal)).state

    def _decide(self, deciding: Course[Decision]) -> Decision:
        answer: ProviderDiff | None = None
        try:
            while True:
                with self._deciding:
                    self.steps.check_open()
                    try:
                        work = deciding.send(answer)
                    except StopIteration as stop:
                        decision: Decision = stop.value
                        break
                answer = None
                if callable(work):
                    with self.steps.slots:
                        answer = work()
                else:
                    self.steps.run(work if isinstance(work, list) else [work], self)
            self.steps.run(decision.steps, self)
            return decision
        except DeploymentClosed:
            raise
        except Exception as error:
            self._report(error)
            self.steps.fail()
            raise DeploymentClosed from error

    def _report(self, error: Exception) -> None:
        """Tell the user why a decision failed."""
        if isinstance(error, NameClash):
            self.error(str(error), error.urn)
        elif not isinstance(error, OfflineError):
            self._internal_error(error)
        elif not (isinstance(error, AlreadyReported) or self.steps.failed):
            self.error(str(error))

    def _internal_error(self, error: Exception) -> None:
        """A bug here or in a dependency: the user reads one line, the log has the rest."""
        # Not above debug: without -v there is no handler, and Python would print the traceback itself.
        _log.debug("unexpected", exc_info=error)
        self.error(
            f"internal error of the offline engine ({type(error).__name__}). Next: run "
            "again with -v 9 for details"
        )
        self.steps.fail()

    # Outputs of components and of the stack.

    def register_outputs(self, urn: str, outputs: Properties) -> None:
        """Outputs of a component. Those of the stack are stored at the end: until then the old ones stay."""
        if urn == make_urn(self.stack, self.project, "", STACK_TYPE, f"{self.project}-{self.stack}"):
            self._stack_outputs = (urn, outputs)
            return
        with self._deciding:
            self.steps.check_open()
            step = self.steps.without_outputs.pop(urn, None)
        if step is None or (isinstance(step, SameStep) and step.skipped):
            return
        self._store_outputs(step, outputs)

    def _store_outputs(self, step: Step, outputs: Properties) -> None:
        before = step.old.outputs if step.old is not None else None
        step.after.outputs = outputs
        if self.journal is not None and before != outputs:
            self.journal.write()
        self.events.outputs(step, step.op, planning=self.preview)

    # The phases of an operation.

    def run(self, program: Callable[["Deployment"], None] | None) -> bool:
        """Refresh, program, deletes; true when all went well.

        `program` returns once everything is registered. It raises `AlreadyReported` when it failed.
        """
        try:
            succeeded = self._run(program)
        except Exception as error:  # noqa: BLE001  a bug: one line for the user, the traceback for the log
            self._internal_error(error)
            succeeded = False
        self.steps.drain()
        for end in self.at_end:
            end()
        try:
            self.steps.save(Journal.close)
        except OfflineError:
            return False
        return succeeded

    def _run(self, program: Callable[["Deployment"], None] | None) -> bool:
        self._warn_of_unfinished()
        complete = True
        try:
            complete = self._run_phases(program)
        except DeploymentClosed:
            pass
        except OfflineError as error:
            if not isinstance(error, AlreadyReported):
                self.error(str(error))
            self.steps.fail()
            complete = False
        succeeded = complete and self._succeeded()
        self._store_stack_outputs(succeeded)
        return succeeded

    def _run_phases(self, program: Callable[["Deployment"], None] | None) -> bool:
        """False when a target was not found. Raises `DeploymentClosed` and `OfflineError`."""
        if self._refresh_first():
            return True
        if self.options.import_goal is not None:
            self._decide(registrations.import_resource(self._decisions, self.options.import_goal))
            return True
        if program is not None:
            program(self)
        if self.steps.failed:
            return True
        known = {*self.olds, *self._decisions.names.taken}
        missing = [urn for urn in self.targets.patterns if "*" not in urn and urn not in known]
        self._finish()
        for urn in missing:
            self.error(f"Target '{urn}' could not be found in the stack.")
        return not missing

    def _refresh_first(self) -> bool:
        """Refresh what must be refreshed before anything else. True when the operation ends with that."""
        options = self.options
        if options.refresh and not options.run_program:
            self._refresh_all([state for state in self.resources if state.urn in self.targets])
        elif not options.refresh and (
            marked := [state for state in self.resources if state.refresh_before_update]
        ):
            self._refresh_all(marked)
        else:
            return False
        return options.command == "refresh" or self.steps.step_failed or self.steps.cancelled

    def _refresh_all(self, states: list[ResourceState]) -> None:
        """Refresh resources of the state without a program, and continue with what was found."""
        steps = [RefreshStep("refresh", state, state) for state in states]
        self.steps.run_batch(steps, self, keep_going=True)
        self._set_resources(rebuild(self._found(steps)))
        self.steps.save(lambda journal: journal.rebase(self.resources))

    def _found(self, steps: list[RefreshStep]) -> list[ResourceState]:
        """The state's resources as a refresh found them, without those that are gone."""
        results = {id(step.old): step.result for step in steps}
        found = (results.get(id(state), state) for state in self.resources)
        return [state for state in found if state is not None]

    def _finish(self) -> None:
        """What the program did not declare: refreshed, or deleted."""
        if self.options.mode == "refresh":
            with self._deciding:
                steps = deletions.refreshes(self._decisions)
            self.steps.run_batch(steps, self, keep_going=True)
            if steps:
                self.steps.save(lambda journal: journal.rebase(self._found(steps)))
            return
        with self._deciding:
            sames, batches = deletions.deletions(self._decisions)
        for same in sames:
            self.steps.run([same], self)
        graph = deletions.scheduling_graph(self._decisions)
        for batch in batches:
            failed = (step.before for step in self.steps.failed_steps if step.before in graph)
            blocked = {key for state in failed for key in graph.all_dependencies_of(state)}
            self.steps.run_batch([step for step in batch if id(step.old) not in blocked], self)
            self.steps.check_open()

    def _succeeded(self) -> bool:
        """Whether the operation succeeded; reports it if not."""
        steps = self.steps
        steps.drain()
        operation = "preview" if self.preview else "update"
        if steps.step_failed or self._decisions.errored:
            # A failed decision has given its reason; a failed step is followed by this summary.
            if steps.step_failed or not steps.failed:
                self.error(f"{operation} failed")
            return False
        if steps.cancelled:
            self.error(f"{operation} canceled")
            return False
        return not steps.failed

    def _store_stack_outputs(self, succeeded: bool) -> None:
        """The stack's new outputs: alone after success, on top of the old ones after a failure."""
        if self._stack_outputs is None:
            return
        urn, outputs = self._stack_outputs
        step = self.steps.without_outputs.pop(urn, None)
        if step is not None:
            old = self.olds.get(urn)
            self._store_outputs(step, outputs if succeeded or old is None else old.outputs | outputs)

    def _warn_of_unfinished(self) -> None:
        unfinished = self.base.unfinished()
        if not unfinished:
            return
        lines = "".join(f"\n  * {item.resource.urn}, interrupted while {item.type}" for item in unfinished)
        advice = (
            "A refresh cannot find what they created. Next: run `pulumi-hosting offline up`: it finds what "
            "the interrupted run created. Do not destroy before that."
            if self.options.command == "refresh"
            else "This run finds what was created. `refresh --clear-pending-creates` would only forget it."
        )
        self.warn(
            "",
            f"An earlier run was interrupted in {len(unfinished)} operation(s), and what they created is not "
            f"in the state:{lines}\n{advice}",
        )
