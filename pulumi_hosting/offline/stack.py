"""A stack of a project, and the operations on it, from start to end: lock, plugins, program, steps, display,
summary. The command line calls the methods of the stack.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partialmethod
from pathlib import Path
from typing import Any

from pulumi.runtime.proto.engine_pb2_grpc import add_EngineServicer_to_server

from .display.engine_events import Events, Listener, write_lines
from .display.terminal import Display
from .engine.deployment import Deployment
from .engine.engine_service import EngineService, serve_grpc
from .engine.program_process import ProgramProcess
from .engine.run_options import Command, Options
from .model.goals import Goal, Targets
from .model.property_values import Properties, hide_secrets
from .model.state import ResourceState, Snapshot
from .model.urns import STACK_TYPE
from .providers.registry import PluginHost, Registry
from .steps.base import NO_CHANGE
from .storage.journal import Journal
from .storage.project import find_python
from .storage.stack_store import StackStore, refuse_unfinished

EXIT_CHANGES = 7
EXIT_CANCELLED = 8


@dataclass(frozen=True)
class StackResult:
    """The outcome of an operation.

    `exit_code` is the command line's: 0 done, 1 failed, 2 wrong configuration, 6 no such stack, 7 changes
    when none were expected, 8 cancelled. `operations` are (operation, URN, changed properties) in the order
    announced; `outputs` hide secrets.
    """

    exit_code: int
    operations: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    outputs: Properties = field(default_factory=dict)


class OfflineStack(StackStore):
    """One stack. `write` takes each line of the display; None displays nothing.

    `listeners` get every engine event.
    """

    def __init__(
        self,
        cwd: str | Path,
        name: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        write: Callable[[str], None] | None = None,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        super().__init__(cwd, name, environ=environ)
        self.write = write
        self.listeners = listeners

    def run(self, command: Command, **options: Any) -> StackResult:
        """Run one operation; `options` are those of `Options`.

        Raises `OfflineError` for mistakes of the caller only.
        """
        return _Operation(self, Options(command, **options)).run()

    up: partialmethod[StackResult] = partialmethod(run, "up")
    preview: partialmethod[StackResult] = partialmethod(run, "preview")
    refresh: partialmethod[StackResult] = partialmethod(run, "refresh")
    destroy: partialmethod[StackResult] = partialmethod(run, "destroy")

    def import_resource(
        self, type: str, name: str, id: str, *, protect: bool = True, preview: bool = True, **options: Any
    ) -> StackResult:
        """Take an existing object under management, as `import TYPE NAME ID` does: preview, then write to the
        state.
        """
        goal = Goal(ResourceState("", type, custom=True, import_id=id, protect=protect), name)
        if preview:
            result = self.run("import", preview_only=True, import_goal=goal, **options)
            if result.exit_code:
                return result
        return self.run("import", import_goal=goal, **options)


@dataclass
class _Operation:
    stack: OfflineStack
    options: Options

    def run(self) -> StackResult:
        """Errors become part of the result; only mistakes of the caller are raised, as `OfflineError`."""
        started = time.monotonic()
        with contextlib.ExitStack() as exit_stack:
            if not self.options.preview:
                exit_stack.enter_context(self.stack.backend.locked(self.stack.name))
            snapshot = self.stack.snapshot()
            self._prepare(snapshot)
            listeners = list(self.stack.listeners)
            display = None
            if self.stack.write is not None:
                display = Display(self.stack.write, stack=self.stack.name, diff=self.options.diff)
                display.start(self.options.command, preview=self.options.preview)
                listeners.append(display)
            if self.options.event_log is not None:
                listeners.append(write_lines(exit_stack.enter_context(self.options.event_log.open("w"))))
            events = Events(listeners)
            result = self._refuse_changes(self._deploy(snapshot, events, started), events)
            events.cancel()
            if display is not None:
                display.end(
                    result.changes,
                    result.outputs,
                    preview=self.options.preview,
                    seconds=time.monotonic() - started,
                    failed=result.exit_code == 1,
                )
            return result

    def _prepare(self, snapshot: Snapshot) -> None:
        """Apply the options that concern the saved state."""
        options = self.options
        if options.command == "destroy":
            targets = Targets(options.targets)
            refuse_unfinished(
                [item.resource for item in snapshot.unfinished() if item.resource.urn in targets]
            )
        if options.replaces:
            replaced = Targets(options.replaces)
            for state in snapshot.resources:
                state.taint = state.taint or state.urn in replaced
        if options.clear_pending_creates:
            snapshot.pending = [item for item in snapshot.pending if item.type != "creating"]
            if not options.preview:
                self.stack.save(snapshot)

    def _refuse_changes(self, result: StackResult, events: Events) -> StackResult:
        """With `--expect-no-changes` a change is an error."""
        changed = any(count for op, count in result.changes.items() if op not in NO_CHANGE)
        if result.exit_code or not self.options.expect_no_changes or not changed:
            return result
        operation = "update" if self.options.command == "up" else self.options.command
        message = f"no changes were expected for {operation} but changes were proposed"
        events.diagnostic("error", message)
        return replace(result, exit_code=EXIT_CHANGES, errors=[*result.errors, message])

    def _deploy(self, snapshot: Snapshot, events: Events, started: float) -> StackResult:
        stack, project, options = self.stack, self.stack.project, self.options
        refreshes = options.command == "refresh" or (project.refresh and options.command != "import")
        config = stack.config().values(stack.crypter())
        events.prelude({key: str(hide_secrets(value)) for key, value in config.items()})
        python = find_python(project, stack.environ)
        log = EngineService(events)
        engine_server, engine_address = serve_grpc(add_EngineServicer_to_server, log, threads=16)
        host = PluginHost(
            python,
            project.root,
            project.directory,
            project.name,
            stack.environ,
            log.plugin_line,
            options.plugin_arguments,
            engine_address,
        )
        try:
            deployment = log.deployment = Deployment(
                stack.name,
                project.name,
                snapshot,
                replace(options, refresh=options.refresh or refreshes),
                Registry(host),
                None if options.preview else Journal(snapshot, stack.save),
                events,
                config,
            )
            program = None
            if options.command in ("up", "preview") or options.run_program:
                program = ProgramProcess(project, python, stack.environ, engine_address)
            succeeded = _interruptible(deployment, host, program)
        finally:
            host.close()
            engine_server.stop(0).wait()
        return self._result(deployment, succeeded, time.monotonic() - started)

    def _result(self, deployment: Deployment, succeeded: bool, seconds: float) -> StackResult:
        steps = deployment.steps
        outcome = "succeeded" if succeeded else "canceled" if steps.cancelled else "failed"
        deployment.events.summary(
            steps.changes,
            seconds=seconds,
            preview=self.options.preview,
            corrupt=steps.corrupt,
            result=outcome,
        )
        journal = deployment.journal
        latest = (
            journal.snapshot().resources if journal else [*deployment.registered(), *deployment.resources]
        )
        outputs: Properties = next((state.outputs for state in latest if state.type == STACK_TYPE), {})
        code = 0 if succeeded else EXIT_CANCELLED if steps.cancelled and not steps.step_failed else 1
        shown = {key: hide_secrets(value) for key, value in outputs.items()}
        return StackResult(code, steps.operations, steps.changes, steps.errors, shown)


def _interruptible(deployment: Deployment, host: PluginHost, program: ProgramProcess | None) -> bool:
    """Run the deployment on a second thread, so that the main one receives Ctrl-C.

    The first Ctrl-C lets the steps under way finish, the second ends the operation at once.
    """
    succeeded: Future[bool] = Future()

    def work() -> None:
        try:
            succeeded.set_result(deployment.run(program))
        except BaseException as error:  # noqa: BLE001  raised again on the main thread
            succeeded.set_exception(error)

    threading.Thread(target=work, name="offline-deployment", daemon=True).start()
    while True:
        try:
            return succeeded.result()
        except KeyboardInterrupt:
            if deployment.steps.cancelled:
                raise
            deployment.steps.cancel()
            host.cancel()
