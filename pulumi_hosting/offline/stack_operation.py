"""One operation of a stack from start to end: lock, plugins, program, steps, display, summary."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from .display.engine_events import Events, Listener, write_lines
from .display.terminal import Display
from .engine.deployment import Deployment
from .engine.engine_service import EngineService, add_engine
from .engine.grpc_server import GrpcServer
from .engine.monitor import StackInfo
from .engine.program_process import ProgramProcess
from .engine.run_options import Options
from .generator.decisions import Mode
from .model.goals import Goal, Targets
from .model.property_values import Properties, hide_secrets
from .model.state import Snapshot
from .model.urns import PROVIDER_PREFIX, STACK_TYPE
from .providers.host import DYNAMIC_PACKAGE, PluginHost
from .providers.registry import Registry
from .steps.operations import NO_CHANGE
from .storage.journal import Journal
from .storage.project import find_python
from .storage.stack_store import ORGANIZATION, StackStore, refuse_unfinished

Command = Literal["up", "preview", "refresh", "destroy", "import"]
EXIT_CHANGES = 7
EXIT_CANCELLED = 8


@dataclass(frozen=True)
class StackResult:
    """The outcome of an operation.

    `exit_code` is the command line's: 0 done, 1 failed, 2 wrong configuration, 6 no such stack, 7 changes
    where none were expected, 8 cancelled. `operations` are (operation, URN, changed properties) in the order
    announced; `outputs` hide secrets.
    """

    exit_code: int
    operations: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    outputs: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class RunOptions:
    """Options of a command. Each is the command line's option of the same name."""

    preview_only: bool = False
    refresh: bool = False
    run_program: bool = False
    expect_no_changes: bool = False
    clear_pending_creates: bool = False
    targets: tuple[str, ...] = ()
    target_dependents: bool = False
    replaces: tuple[str, ...] = ()
    parallel: int | None = None
    event_log: Path | None = None
    diff: bool = False
    plugin_arguments: tuple[str, ...] = ()
    import_goal: Goal | None = None
    """The resource to import, for the command `import`."""


class StackOperation:
    def __init__(
        self,
        stack: StackStore,
        command: Command,
        options: RunOptions,
        *,
        write: Callable[[str], None] | None,
        listeners: tuple[Listener, ...],
    ) -> None:
        self._stack = stack
        self._command = command
        self._options = options
        self._write = write
        self._listeners = listeners
        self._preview = options.preview_only or command == "preview"
        self._with_program = command in ("up", "preview") or options.run_program
        mode: Mode = "update"
        if command == "refresh" or (command == "destroy" and options.run_program):
            mode = command
        self._engine_options = Options(
            preview=self._preview,
            parallel=options.parallel or 4 * (os.cpu_count() or 1),
            refresh=options.refresh
            or command == "refresh"
            or (stack.project.refresh and command != "import"),
            refresh_only=command == "refresh",
            run_program=options.run_program,
            mode=mode,
            targets=Targets(options.targets),
            target_dependents=options.target_dependents,
            import_goal=options.import_goal,
        )

    def run(self) -> StackResult:
        """Errors become part of the result; only mistakes of the caller are raised, as `OfflineError`."""
        started = time.monotonic()
        snapshot = self._stack.snapshot()  # raises before the stack is locked
        with contextlib.ExitStack() as exit_stack:
            if not self._preview:
                exit_stack.enter_context(self._stack.locked())
                snapshot = self._stack.snapshot()
            self._prepare(snapshot)
            listeners = list(self._listeners)
            display = (
                Display(self._write, stack=self._stack.name, diff=self._options.diff) if self._write else None
            )
            if display is not None:
                display.start(self._command, preview=self._preview)
                listeners.append(display)
            if self._options.event_log is not None:
                listeners.append(write_lines(exit_stack.enter_context(self._options.event_log.open("w"))))
            events = Events(listeners)
            result = self._refuse_changes(self._deploy(snapshot, events, started), events)
            events.cancel()
            if display is not None:
                seconds = time.monotonic() - started
                display.end(
                    result.changes,
                    result.outputs,
                    preview=self._preview,
                    seconds=seconds,
                    failed=result.exit_code == 1,
                )
            return result

    def _prepare(self, snapshot: Snapshot) -> None:
        """Apply the options that concern the saved state."""
        if self._command == "destroy":
            refuse_unfinished(
                [
                    item.resource
                    for item in snapshot.unfinished()
                    if item.resource.urn in self._engine_options.targets
                ]
            )
        if self._options.replaces:
            replaced = Targets(self._options.replaces)
            for state in snapshot.resources:
                state.taint = state.taint or state.urn in replaced
        if self._options.clear_pending_creates:
            snapshot.pending = [item for item in snapshot.pending if item.type != "creating"]
            if not self._preview:
                self._stack.save(snapshot)

    def _refuse_changes(self, result: StackResult, events: Events) -> StackResult:
        """With `--expect-no-changes` a change is an error."""
        changed = any(count for op, count in result.changes.items() if op not in NO_CHANGE)
        if result.exit_code or not self._options.expect_no_changes or not changed:
            return result
        operation = "update" if self._command == "up" else self._command
        message = f"no changes were expected for {operation} but changes were proposed"
        events.diagnostic("error", message)
        return replace(result, exit_code=EXIT_CHANGES, errors=[*result.errors, message])

    def _deploy(self, snapshot: Snapshot, events: Events, started: float) -> StackResult:
        stack, options = self._stack, self._engine_options
        config = stack.config().values(stack.crypter())
        events.prelude({key: str(hide_secrets(value)) for key, value in config.items()})
        log = _Log(events)
        engine_server = GrpcServer([add_engine(EngineService(log))], threads=16)
        python = find_python(stack.project, stack.environ)
        host = PluginHost(
            python,
            stack.project.root,
            stack.project.directory,
            stack.project.name,
            stack.environ,
            log.plugin_line,
            self._options.plugin_arguments,
            engine_server.address,
        )
        try:
            journal = None if options.preview else Journal(snapshot, stack.save)
            deployment = Deployment(
                stack.name, stack.project.name, snapshot, options, Registry(host), journal, events, config
            )
            log.deployment = deployment
            succeeded = self._run(deployment, host, python, engine_server.address)
        finally:
            host.close()
            engine_server.stop()
        return self._result(deployment, succeeded, time.monotonic() - started)

    def _run(self, deployment: Deployment, host: PluginHost, python: str, engine_address: str) -> bool:
        if not self._with_program:
            return _interruptible(deployment, host, lambda: deployment.run(None))
        if any(state.type == f"{PROVIDER_PREFIX}{DYNAMIC_PACKAGE}" for state in deployment.resources):
            host.start_early(DYNAMIC_PACKAGE)
        stack, options = self._stack, self._engine_options
        info = StackInfo(
            stack.project.name, stack.name, ORGANIZATION, deployment.config, options.preview, options.parallel
        )
        program = ProgramProcess(stack.project, python, stack.environ, engine_address, info)
        return _interruptible(deployment, host, lambda: deployment.run(program))

    def _result(self, deployment: Deployment, succeeded: bool, seconds: float) -> StackResult:
        steps = deployment.steps
        outcome = "succeeded" if succeeded else "canceled" if steps.cancelled else "failed"
        deployment.events.summary(
            steps.changes, seconds=seconds, preview=self._preview, corrupt=steps.corrupt, result=outcome
        )
        journal = deployment.journal
        latest = (
            journal.snapshot().resources if journal else [*deployment.registered(), *deployment.resources]
        )
        outputs: Properties = next((state.outputs for state in latest if state.type == STACK_TYPE), {})
        code = 0 if succeeded else EXIT_CANCELLED if steps.cancelled and not steps.step_failed else 1
        shown = {key: hide_secrets(value) for key, value in outputs.items()}
        return StackResult(code, steps.operations, steps.changes, steps.errors, shown)


class _Log:
    """Takes what programs and providers log."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.deployment: Deployment | None = None

    def __call__(self, severity: str, message: str, urn: str, ephemeral: bool) -> None:
        deployment = self.deployment
        if severity != "error" or deployment is None:
            self._events.diagnostic(severity, message, urn, ephemeral=ephemeral)
        elif not deployment.steps.failed:  # after a failure the program is interrupted and logs that
            deployment.error(message, urn)

    def plugin_line(self, package: str, line: str, is_error: bool) -> None:
        """A line that a provider printed.

        Dynamic providers are part of the program; lines of others are for debugging.
        """
        severity = ("info#err" if is_error else "info") if package == DYNAMIC_PACKAGE else "debug"
        self._events.diagnostic(severity, line)


def _interruptible(deployment: Deployment, host: PluginHost, run: Callable[[], bool]) -> bool:
    """Run on a second thread, so that the main one receives Ctrl-C.

    The first Ctrl-C lets the steps under way finish, the second ends the operation at once.
    """
    outcome: list[bool | BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(run())
        except BaseException as error:  # noqa: BLE001  raised again on the main thread
            outcome.append(error)
        done.set()

    threading.Thread(target=work, name="offline-deployment", daemon=True).start()
    while not done.is_set():
        try:
            done.wait()
        except KeyboardInterrupt:
            if deployment.steps.cancelled:
                raise
            deployment.steps.cancel()
            host.cancel()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
