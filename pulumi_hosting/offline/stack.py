"""A stack of a project, and the operations on it. The command line is a thin skin over this."""

import contextlib
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .backend import Backend, backend_directory
from .display import Display
from .engine import Deployment, Options
from .errors import Bail, ConfigurationError, OfflineError, PluginError, UnfinishedCreates
from .events import Events, Listener, write_lines
from .goals import Goal, Targets
from .journal import Journal
from .monitor import Engine, Monitor, Server, StackInfo, add_engine, add_monitor
from .plugins import DYNAMIC_PACKAGE, PluginHost
from .project import Project, StackConfig, find_python, load_project
from .registry import Registry
from .secrets import Crypter, passphrase_from
from .state import STACK_TYPE, Snapshot, State, deployment_from_json, deployment_to_text, is_provider, package_of
from .steps import NO_CHANGE
from .values import Properties, Secret, hide_secrets, without_secrets
from .wellformed import problem_of

Command = Literal["up", "preview", "refresh", "destroy", "import"]
ORGANIZATION = "organization"
EXIT_CHANGES = 7
EXIT_CANCELLED = 8
_PROGRAM = Path(__file__).with_name("program.py")
_PROGRAM_END = 5.0
_WORDS = {"up": "update", "preview": "preview", "refresh": "refresh", "destroy": "destroy", "import": "import"}


@dataclass(frozen=True)
class Result:
    """What an operation came to.

    `exit_code` is the command line's: 0 done, 1 failed, 2 wrong configuration, 6 no such stack, 7 changes where none were expected,
    8 cancelled. `operations` are (operation, URN, changed properties) in the order announced; `outputs` hide secrets.
    """

    exit_code: int
    operations: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)


class Stack:
    """One stack. `cwd` is the project's directory (or one below it); `environ` stands for the process environment.

    `write` takes every line of the display; None keeps silent. `listeners` get every engine event.
    """

    def __init__(
        self,
        cwd: str | Path,
        name: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        backend: Path | None = None,
        write: Callable[[str], None] | None = None,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.project: Project = load_project(Path(cwd))
        self.backend = Backend(backend or backend_directory(self.environ, self.project.root), self.project.name)
        self._name = _checked_name(name, self.project.name) if name else self.backend.selected()
        self._write = write
        self._listeners = listeners
        self._crypter: Crypter | None = None

    @property
    def name(self) -> str:
        if self._name is None:
            raise ConfigurationError("no stack selected; name one with --stack, or use `stack select NAME`")
        return self._name

    # Stacks and their configuration.

    def init(self) -> None:
        """Create the stack, with its own encryption salt, and select it. Raises `ConfigurationError` when it exists."""
        self.backend.check_new(self.name)
        self.config().ensure_crypter(passphrase_from(self.environ))
        self.backend.create(self.name)
        self.backend.select(self.name)

    def config(self) -> StackConfig:
        return StackConfig.load(self.project, self.name)

    def set_config(self, key: str, value: str, *, secret: bool = False) -> None:
        config = self.config()
        config.set(key, value, config.ensure_crypter(passphrase_from(self.environ)) if secret else None)
        config.save()

    def get_config(self, key: str) -> str:
        """One value, decrypted. Raises `ConfigurationError` when it is not set."""
        config = self.config()
        values = config.values(config.crypter(passphrase_from(self.environ)))
        if config.key(key) not in values:
            raise ConfigurationError(f"configuration key '{key}' not found for stack '{self.name}'; set it with `config set {key} VALUE`")
        return str(without_secrets(values[config.key(key)]))

    def list_config(self, *, show_secrets: bool = False) -> dict[str, tuple[str, bool]]:
        """Every value with whether it is secret; keys of the project without its name, secrets as `[secret]` unless shown."""
        config = self.config()
        values = config.values(config.crypter(passphrase_from(self.environ)))
        own = f"{self.project.name}:"
        return {
            key.removeprefix(own): (str(without_secrets(value) if show_secrets else hide_secrets(value)), isinstance(value, Secret))
            for key, value in values.items()
        }

    def remove_config(self, key: str) -> None:
        """Take one value out of the stack's settings; nothing happens where it is not set."""
        config = self.config()
        if (config.data.get("config") or {}).pop(config.key(key), None) is not None:
            config.save()

    def crypter(self) -> Crypter:
        """What the stack's secrets are encrypted with: the salt of its config file, else of its state, else a new one."""
        if self._crypter is None:
            config, passphrase = self.config(), passphrase_from(self.environ)
            if config.crypter(passphrase) is None:
                saved = ((self.backend.read(self.name) or {}).get("secrets_providers") or {}).get("state", {}).get("salt")
                if saved:
                    config.data = {"encryptionsalt": saved} | config.data
                    config.save()
            self._crypter = config.ensure_crypter(passphrase)
        return self._crypter

    # State.

    def _state_crypter(self, data: dict[str, Any]) -> Crypter | None:
        provider = data.get("secrets_providers") or {}
        if provider and provider.get("type") != "passphrase":
            raise ConfigurationError(
                f"the stack's secrets are kept by {provider.get('type')!r}; the offline engine opens passphrase secrets only"
            )
        salt = (provider.get("state") or {}).get("salt")
        if not salt:
            return self.crypter()
        own = self.crypter()
        return own if own.state == salt else Crypter(passphrase_from(self.environ), salt)

    def snapshot(self) -> Snapshot:
        """The saved state, secrets decrypted. Raises `StackNotFound`, `ConfigurationError`."""
        data = self.backend.read(self.name) or {}
        snapshot = deployment_from_json(data, self._state_crypter(data))
        salt = (data.get("secrets_providers") or {}).get("state", {}).get("salt")
        if salt and salt != self.crypter().state:
            for state in (*snapshot.resources, *(item.resource for item in snapshot.pending)):
                state._written = None  # encrypted under another salt: write anew
        return snapshot

    def _save(self, snapshot: Snapshot) -> None:
        text = deployment_to_text(snapshot, self.crypter())
        try:
            self.backend.write(self.name, text)
        except OSError as error:
            raise OfflineError(f"the state could not be saved to {self.backend.stack_file(self.name)}: {error.strerror}") from None

    def export(self, *, show_secrets: bool = False) -> dict[str, Any]:
        """The deployment as `stack export` prints it; with `show_secrets` with every secret laid open."""
        data = self.backend.read(self.name)
        if data is None:
            return {"version": 3}
        if show_secrets:
            data = json.loads(deployment_to_text(self.snapshot(), None))
        return {"version": 3, "deployment": data}

    def import_state(self, data: Any) -> None:
        """Replace the state by an exported deployment, without its pending operations, as Pulumi's import does."""
        if not isinstance(data, dict) or data.get("version") != 3:
            raise ConfigurationError("this is not an exported deployment of version 3")
        deployment = {} if data.get("deployment") is None else data["deployment"]
        if problem := problem_of(deployment):
            raise ConfigurationError(f"this is not an exported deployment: {problem}")
        snapshot = deployment_from_json(deployment, self._state_crypter(deployment))
        wrong = [state.urn for state in snapshot.resources if not state.urn.startswith(f"urn:pulumi:{self.name}::{self.project.name}::")]
        if wrong:
            raise ConfigurationError(f"the deployment belongs to another stack or project: {wrong[0]}")
        for state in snapshot.resources:
            state._written = None
        with self._locked():
            self._save(Snapshot(snapshot.resources, [], snapshot.extra))

    def forget(self, urn: str) -> None:
        """Take one resource out of the state and leave it as it is, as `state delete` does."""
        with self._locked():
            snapshot = self.snapshot()
            found = [state for state in snapshot.resources if state.urn == urn]
            if len(found) != 1:
                what = "is not in the state" if not found else "names several resources of the state"
                raise OfflineError(f"{urn} {what}; `stack export` shows what it holds")
            for state in snapshot.resources:
                needed = {state.parent, state.deleted_with, state.provider.rpartition("::")[0], *state.dependencies}
                if state is not found[0] and urn in needed:
                    raise OfflineError(f"{urn} is needed by {state.urn}; delete that first")
            self._save(Snapshot([state for state in snapshot.resources if state is not found[0]], snapshot.pending, snapshot.extra))

    def outputs(self, *, show_secrets: bool = False) -> dict[str, Any]:
        for state in self.snapshot().resources:
            if state.type == STACK_TYPE:
                shown: dict[str, Any] = without_secrets(state.outputs) if show_secrets else hide_secrets(state.outputs)
                return shown
        return {}

    def remove(self, *, force: bool = False) -> None:
        """Remove an empty stack, or with `force` any."""
        data = self.backend.read(self.name) or {}
        if not force:
            _refuse_unfinished([item.resource for item in self.snapshot().unfinished()])
        if data.get("resources") and not force:
            raise OfflineError(f"'{self.name}' still has resources; destroy them first, or remove it with --force and forget them")
        self.backend.remove(self.name)
        self.project.stack_file(self.name).unlink(missing_ok=True)

    def cancel(self) -> int:
        """Remove the locks that a killed engine left. How many there were."""
        self.backend.read(self.name)
        return self.backend.break_locks(self.name)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.backend.lock(self.name)
        try:
            yield
        finally:
            lock.release()

    # Operations.

    def up(self, **options: Any) -> Result:
        return self.run("up", **options)

    def preview(self, **options: Any) -> Result:
        return self.run("preview", **options)

    def refresh(self, **options: Any) -> Result:
        return self.run("refresh", **options)

    def destroy(self, **options: Any) -> Result:
        return self.run("destroy", **options)

    def import_resource(self, type: str, name: str, id: str, *, protect: bool = True, preview: bool = True, **options: Any) -> Result:
        """Take an existing thing under management, as `import TYPE NAME ID` does: looked at first, then written to the state."""
        goal = Goal(type, name, custom=True, import_id=id, protect=protect)
        if preview:
            result = self.run("import", preview_only=True, take_over=goal, **options)
            if result.exit_code:
                return result
        return self.run("import", take_over=goal, **options)

    def run(
        self,
        command: Command,
        *,
        preview_only: bool = False,
        refresh: bool = False,
        run_program: bool = False,
        expect_no_changes: bool = False,
        clear_pending_creates: bool = False,
        targets: tuple[str, ...] = (),
        target_dependents: bool = False,
        replaces: tuple[str, ...] = (),
        parallel: int | None = None,
        event_log: Path | None = None,
        diff: bool = False,
        plugin_arguments: tuple[str, ...] = (),
        take_over: Goal | None = None,
    ) -> Result:
        """Run one operation. Errors become part of the result; only the caller's own mistakes are raised, as `OfflineError`."""
        preview = preview_only or command == "preview"
        snapshot = self.snapshot()
        program = command in ("up", "preview") or run_program
        options = Options(
            preview=preview,
            parallel=parallel or 4 * (os.cpu_count() or 1),
            refresh=refresh or command == "refresh" or (self.project.refresh and command != "import"),
            refresh_only=command == "refresh",
            run_program=program and (command in ("refresh", "destroy") or run_program),
            mode="refresh" if command == "refresh" else "destroy" if command == "destroy" and program else "update",
            targets=Targets(targets),
            target_dependents=target_dependents,
            take_over=take_over,
        )
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            if not preview:
                stack.enter_context(self._locked())
                snapshot = self.snapshot()
            if command == "destroy":
                _refuse_unfinished([item.resource for item in snapshot.unfinished() if item.resource.urn in options.targets])
            for state in snapshot.resources:
                state.taint = state.taint or (bool(replaces) and state.urn in Targets(replaces))
            if clear_pending_creates:
                snapshot.pending = [item for item in snapshot.pending if item.type != "creating"]
                if not preview:
                    self._save(snapshot)
            listeners = list(self._listeners)
            display = Display(self._write, stack=self.name, diff=diff) if self._write else None
            if display is not None:
                display.start(command, preview=preview)
                listeners.append(display)
            if event_log is not None:
                listeners.append(write_lines(stack.enter_context(event_log.open("w"))))
            events = Events(listeners)
            result = self._operate(command, options, snapshot, events, program=program, plugin_arguments=plugin_arguments, started=started)
            if result.exit_code == 0 and expect_no_changes and any(count for op, count in result.changes.items() if op not in NO_CHANGE):
                message = f"no changes were expected for {_WORDS[command]} but changes were proposed"
                events.diagnostic("error", message)
                result = Result(EXIT_CHANGES, result.operations, result.changes, [*result.errors, message], result.outputs)
            events.cancel()
            if display is not None:
                display.end(
                    result.changes, result.outputs, preview=preview, seconds=time.monotonic() - started, failed=result.exit_code == 1
                )
            return result

    def _operate(
        self,
        command: Command,
        options: Options,
        snapshot: Snapshot,
        events: Events,
        *,
        program: bool,
        plugin_arguments: tuple[str, ...],
        started: float,
    ) -> Result:
        config = self.config().values(self.crypter())
        events.prelude({key: str(hide_secrets(value)) for key, value in config.items()})
        deployments: list[Deployment] = []

        def log(severity: str, message: str, urn: str, ephemeral: bool) -> None:
            failed = bool(deployments) and deployments[0].failed.is_set()
            if severity == "error" and deployments and not failed:
                deployments[0].error(message, urn)
            elif not (severity == "error" and failed):
                # After a failure the program is cut off in the middle: what it says of that is no news.
                events.diagnostic(severity, message, urn, ephemeral=ephemeral)

        def plugin_line(package: str, line: str, is_error: bool) -> None:
            # Dynamic providers are part of the program and may speak; what other plugins print is for debugging them.
            severity = ("info#err" if is_error else "info") if package == DYNAMIC_PACKAGE else "debug"
            events.diagnostic(severity, line)

        engine_server = Server([add_engine(Engine(log))], threads=16)
        python = find_python(self.project, self.environ)
        host = PluginHost(
            python,
            self.project.root,
            self.project.directory,
            self.project.name,
            self.environ,
            plugin_line,
            plugin_arguments,
            engine_server.address,
        )
        try:
            deployment = Deployment(
                self.name,
                self.project.name,
                snapshot,
                options,
                Registry(host, preview=options.preview),
                None if options.preview else Journal(snapshot, self._save),
                events,
                config,
            )
            deployments.append(deployment)
            if program:
                for package in {package_of(state.type) for state in snapshot.resources if is_provider(state.type)}:
                    if package == DYNAMIC_PACKAGE:
                        host.start_early(package)
            if command == "destroy" and not program and not snapshot.resources:
                succeeded = deployment.run(None)
            else:
                runner = _Program(self, python, engine_server.address, config, options) if program else None
                succeeded = _interruptible(deployment, host, lambda: deployment.run(runner))
        finally:
            host.close()
            engine_server.stop()
        outcome = "succeeded" if succeeded else "canceled" if deployment.cancelled else "failed"
        events.summary(
            deployment.changes, seconds=time.monotonic() - started, preview=options.preview, corrupt=deployment.corrupt, result=outcome
        )
        outputs: Properties = next((state.outputs for state in _latest(deployment) if state.type == STACK_TYPE), {})
        code = 0 if succeeded else EXIT_CANCELLED if deployment.cancelled and not deployment.step_failed else 1
        return Result(code, deployment.operations, deployment.changes, deployment.errors, hide_secrets(outputs))


def _refuse_unfinished(creates: list[State]) -> None:
    """Destroying would report success and leave what an interrupted run made: nothing in the state leads to it."""
    if creates:
        names = ", ".join(f"{state.type} {state.name}" for state in creates)
        raise UnfinishedCreates(
            f"an interrupted run was creating {names}; what it made may exist and cost money, and is not in the state. "
            "Next: run `pulumi-hosting offline up`, which finds what was bought, then destroy "
            "(`pulumi-hosting offline refresh --clear-pending-creates` forgets it instead)"
        )


def _checked_name(name: str, project: str) -> str:
    """A stack's name, given alone or in full: `organization/<project>/<stack>`."""
    name = name.removeprefix(f"{ORGANIZATION}/{project}/").removeprefix(f"{ORGANIZATION}/")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name) or name.startswith("."):
        raise ConfigurationError(f"'{name}' is not a stack name; it may have letters, digits, '-', '_' and '.'")
    return name


def _latest(deployment: Deployment) -> list[State]:
    if deployment.journal is not None:
        return deployment.journal.snapshot().resources
    return [*deployment.news(), *deployment.resources]


def _interruptible(deployment: Deployment, host: PluginHost, run: Callable[[], bool]) -> bool:
    """Run beside the main thread, so that Ctrl-C is heard: the first one lets the steps under way finish, the second ends at once."""
    outcome: list[bool | BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(run())
        except BaseException as error:  # noqa: BLE001  it is raised again, on the thread that waits
            outcome.append(error)
        done.set()

    threading.Thread(target=work, name="offline-deployment", daemon=True).start()
    while not done.is_set():
        try:
            done.wait(0.5)
        except KeyboardInterrupt:
            if deployment.cancelled:
                raise
            deployment.cancel()
            host.cancel()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


@dataclass
class _Program:
    """Runs the program against a monitor of its own, until it has registered everything; lets it end when the deployment is over."""

    stack: Stack
    python: str
    engine_address: str
    config: dict[str, Any]
    options: Options

    def __call__(self, deployment: Deployment) -> None:
        info = StackInfo(self.stack.project.name, self.stack.name, ORGANIZATION, self.config, self.options.preview, self.options.parallel)
        monitor = Monitor(deployment, info)
        server = Server([add_monitor(monitor)], threads=4 * self.options.parallel + 8)
        process = self._start(server.address, info)
        lines = [
            threading.Thread(target=_forward, args=(stream, severity, deployment), daemon=True)
            for stream, severity in ((process.stdout, "info"), (process.stderr, "info#err"))
        ]
        for thread in lines:
            thread.start()
        ended = threading.Event()

        def watch() -> None:
            process.wait()
            ended.set()
            monitor.finished.set()

        threading.Thread(target=watch, daemon=True).start()
        deployment.at_end.append(lambda: _end(monitor, server, process, lines))
        while not monitor.finished.wait(0.05):
            if deployment.failed.is_set():
                return
        if ended.is_set() and not deployment.failed.is_set():
            if process.returncode == 32:
                raise Bail
            if process.returncode != 0:
                for thread in lines:
                    thread.join(1)
                raise PluginError(f"program exited with non-zero exit code: {process.returncode}")

    def _start(self, monitor_address: str, info: StackInfo) -> subprocess.Popen[bytes]:
        project = self.stack.project
        environ = {
            **self.stack.environ,
            "PULUMI_CONFIG": json.dumps(info.plain_config()),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(info.secret_keys()),
        }
        arguments = {
            "monitor": monitor_address,
            "engine": self.engine_address,
            "project": project.name,
            "stack": info.stack,
            "organization": info.organization,
            "root": str(project.root),
            "pwd": str(project.directory),
            "parallel": str(info.parallel),
        }
        command = [self.python, "-u", str(_PROGRAM), *(part for key, value in arguments.items() for part in (f"--{key}", value))]
        command += ["--preview"] if info.preview else []
        try:
            return subprocess.Popen(
                [*command, str(project.program)],
                cwd=project.directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise PluginError(
                f"could not run {self.python}: {error.strerror}; set PULUMI_PYTHON_CMD or the virtualenv of Pulumi.yaml"
            ) from None


def _forward(stream: Any, severity: str, deployment: Deployment) -> None:
    for raw in stream:
        line = raw.decode(errors="replace").rstrip("\r\n")
        # A program that is cut off prints the traceback of its interruption, which is the engine's doing and nobody's concern.
        if line and not deployment.failed.is_set():
            deployment.events.diagnostic(severity, line)


def _end(monitor: Monitor, server: Server, process: subprocess.Popen[bytes], lines: list[threading.Thread]) -> None:
    monitor.release()
    try:
        process.wait(_PROGRAM_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for thread in lines:
        thread.join(1)
    server.stop()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
