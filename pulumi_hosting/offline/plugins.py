"""Provider processes: finding and starting them, and asking them over gRPC."""

import contextlib
import json
import logging
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from .errors import InitError, PluginError, ProviderError
from .state import package_of, urn_name, urn_type
from .values import (
    Properties,
    UnexpectedUnknown,
    Wire,
    changed_keys,
    contains_unknowns,
    from_struct,
    mark_secrets,
    to_struct,
    without_secrets,
)

_log = logging.getLogger(__name__)

CHANNEL_OPTIONS = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]
DYNAMIC_PACKAGE = "pulumi-python"
_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 5.0
_CORRUPTING = (grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS, grpc.StatusCode.UNKNOWN)

Changes = Literal["none", "some", "unknown"]
LineSink = Callable[[str, bool], None]
"""Takes a line a process printed, and whether it came on stderr."""


@dataclass(frozen=True)
class Diff:
    """What a provider says of a change. `detailed` maps property paths to add, update, delete, each perhaps with `-replace`."""

    changes: Changes
    replaces: tuple[str, ...] = ()
    diffs: tuple[str, ...] = ()
    detailed: Mapping[str, str] | None = None
    delete_before_replace: bool = False
    stables: tuple[str, ...] = ()

    @property
    def replace(self) -> bool:
        return bool(self.replaces) or any(kind.endswith("-replace") for kind in (self.detailed or {}).values())

    def inverted(self) -> "Diff":
        """The same change looked at from the other side."""
        turned = {"add": "delete", "delete": "add", "add-replace": "delete-replace", "delete-replace": "add-replace"}
        detailed = None if self.detailed is None else {path: turned.get(kind, kind) for path, kind in self.detailed.items()}
        return replace(self, detailed=detailed)


@dataclass(frozen=True)
class Failure:
    property: str
    reason: str


@dataclass(frozen=True)
class Checked:
    inputs: Properties
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a provider made, found or changed. `outputs` is None only when a read found nothing."""

    id: str
    outputs: Properties | None
    inputs: Properties | None = None
    refresh_before_update: bool = False


def diff_of_inputs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Diff:
    """The engine's own comparison, for providers that have no opinion."""
    keys = changed_keys(old, new)
    detailed = {key: "add" if key not in old else "delete" if key not in new else "update" for key in keys}
    return Diff("some" if keys else "none", diffs=tuple(keys), detailed=detailed or None)


# Processes.


class PluginProcess:
    """A started provider. It leads its own process group, so that Ctrl-C and a killed engine leave it to finish what it does."""

    def __init__(self, name: str, command: list[str], cwd: Path, environ: Mapping[str, str], on_line: LineSink) -> None:
        self.name = name
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise PluginError(f"could not start the provider plugin {name}: {error.strerror}: {command[0]}") from None
        first: queue.Queue[str] = queue.Queue()
        self._tail: list[str] = []
        self._interrupted = False
        self._readers = [
            threading.Thread(target=self._read, args=(stream, is_error, first, on_line), daemon=True)
            for stream, is_error in ((self._process.stdout, False), (self._process.stderr, True))
        ]
        for reader in self._readers:
            reader.start()
        self.port = self._wait_for_port(first)

    def _read(self, stream: Any, is_error: bool, first: queue.Queue[str], on_line: LineSink) -> None:
        waiting = not is_error
        with stream:
            for raw in stream:
                line = raw.decode(errors="replace").rstrip("\r\n")
                if waiting:
                    first.put(line)
                    waiting = False
                elif line:
                    self._tail = [*self._tail[-20:], line]
                    if not self._interrupted:
                        on_line(line, is_error)
        if waiting:
            first.put("")

    def _wait_for_port(self, first: queue.Queue[str]) -> int:
        try:
            line = first.get(timeout=_START_TIMEOUT)
        except queue.Empty:
            self.stop()
            raise PluginError(f"the provider plugin {self.name} printed no port within {_START_TIMEOUT:.0f} s") from None
        try:
            return int(line)
        except ValueError:
            self.stop()
            said = f": {self._tail[-1]}" if self._tail else (f": it printed {line!r} instead of a port" if line else "")
            raise PluginError(f"the provider plugin {self.name} did not start{said}") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def interrupt(self) -> None:
        """Ask it to end. Once only: a second SIGINT would break into its clean-up."""
        if not self._interrupted and self._process.poll() is None:
            self._interrupted = True
            # Started from a script's background job, we and our children ignore SIGINT: it would be waited for in vain.
            ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM if ignored else signal.SIGINT)

    def stop(self, timeout: float = _STOP_TIMEOUT) -> None:
        self.interrupt()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for reader in self._readers:
            reader.join(1)


# Clients.


class Provider:
    """A configured or still unconfigured provider process, asked as the engine asks it.

    All methods raise `ProviderError` when the provider refuses; create, read and update raise `InitError` when it made
    something that is not ready.
    """

    def __init__(self, process: PluginProcess, engine_address: str, root: Path, program: Path) -> None:
        self._process = process
        self._channel = grpc.insecure_channel(f"127.0.0.1:{process.port}", options=CHANNEL_OPTIONS)
        self._stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._wire = Wire()
        self._supports_preview = False
        self._handshaken = False
        self._configured: bool | None = None
        """None: not yet; False: with unknown values, so that it can be asked nothing."""
        self._handshake(engine_address, root, program)

    @property
    def name(self) -> str:
        return self._process.name

    def _call(self, method: str, request: Any) -> Any:
        _log.debug("%s: %s %s", self.name, method, getattr(request, "urn", ""))
        try:
            return getattr(self._stub, method)(request)
        except grpc.RpcError as error:
            raise self._translate(error) from None

    def _translate(self, error: grpc.RpcError) -> ProviderError:
        metadata: Any = error.trailing_metadata() or ()
        for key, value in metadata:
            if key == "grpc-status-details-bin":
                status = status_pb2.Status.FromString(value)
                for detail in status.details:
                    failed = provider_pb2.ErrorResourceInitFailed()
                    if detail.Unpack(failed):
                        return InitError(
                            list(failed.reasons),
                            failed.id,
                            from_struct(failed.properties) if failed.HasField("properties") else None,
                            from_struct(failed.inputs) if failed.HasField("inputs") else None,
                            failed.refresh_before_update,
                        )
        code = error.code()
        if code is grpc.StatusCode.UNAVAILABLE:
            return ProviderError(f"the provider plugin {self.name} went away while it was asked; what it had begun is not known")
        return _Refused(error.details() or code.name, code)

    def _handshake(self, engine_address: str, root: Path, program: Path) -> None:
        request = provider_pb2.ProviderHandshakeRequest(
            engine_address=engine_address,
            root_directory=str(root),
            program_directory=str(program),
            configure_with_urn=True,
            supports_refresh_before_update=True,
        )
        try:
            # The very first call waits for the connection; every later one fails at once when the process is gone.
            answer = self._stub.Handshake(request, wait_for_ready=True, timeout=_START_TIMEOUT)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise self._translate(error) from None
            return
        self._handshaken = True
        self._wire = Wire(secrets=answer.accept_secrets, resources=answer.accept_resources)
        self._supports_preview = True

    def check_config(self, urn: str, olds: Properties, news: Properties) -> Checked:
        wire = Wire()
        request = provider_pb2.CheckRequest(
            urn=urn, name=urn_name(urn), type=urn_type(urn), olds=to_struct(olds, wire), news=to_struct(news, wire)
        )
        try:
            answer = self._call("CheckConfig", request)
        except ProviderError as error:
            if _unimplemented(error):
                return Checked(news)
            raise
        failures = tuple(Failure(item.property, item.reason) for item in answer.failures)
        return Checked(mark_secrets(from_struct(answer.inputs), news), failures)

    def diff_config(self, urn: str, old_inputs: Properties, old_outputs: Properties, news: Properties) -> Diff:
        wire = Wire()
        request = provider_pb2.DiffRequest(
            urn=urn,
            name=urn_name(urn),
            type=urn_type(urn),
            old_inputs=to_struct(old_inputs, wire),
            olds=to_struct(old_outputs, wire),
            news=to_struct(news, wire),
        )
        try:
            return _diff_from(self._call("DiffConfig", request))
        except ProviderError as error:
            if _unimplemented(error):
                return Diff("unknown")
            raise

    def configure(self, urn: str, id: str, inputs: Properties) -> None:
        known = {key: value for key, value in inputs.items() if key != "version"}
        if contains_unknowns(known):
            self._configured = False
            return
        package = package_of(urn_type(urn))
        variables = {f"{package}:config:{key}": _config_text(value) for key, value in known.items()}
        request = provider_pb2.ConfigureRequest(
            urn=urn,
            name=urn_name(urn),
            type=urn_type(urn),
            id=id,
            acceptSecrets=True,
            acceptResources=True,
            sends_old_inputs=True,
            sends_old_inputs_to_delete=True,
            args=to_struct(inputs, Wire(secrets=True, resources=True)),
            variables=variables,
        )
        answer = self._call("Configure", request)
        if not self._handshaken:
            self._wire = Wire(secrets=answer.acceptSecrets, resources=answer.acceptResources)
            self._supports_preview = answer.supportsPreview
        self._configured = True

    @property
    def _known(self) -> bool:
        return self._configured is not False

    def _marked(self, properties: Properties, like: Properties) -> Properties:
        return properties if self._wire.secrets else mark_secrets(properties, like)

    def check(self, urn: str, olds: Properties, news: Properties, seed: bytes, *, preview: bool) -> Checked:
        if not self._known:
            return Checked(news)
        wire = replace(self._wire, unknowns=preview)
        answer = self._call(
            "Check",
            provider_pb2.CheckRequest(
                urn=urn,
                name=urn_name(urn),
                type=urn_type(urn),
                olds=to_struct(olds, wire, keep_null=False),
                news=to_struct(news, wire),
                randomSeed=seed,
            ),
        )
        failures = tuple(Failure(item.property, item.reason) for item in answer.failures)
        inputs = self._received(answer.inputs, preview)
        return Checked(self._marked(inputs, news), failures)

    def diff(
        self, urn: str, id: str, old_inputs: Properties, old_outputs: Properties, news: Properties, ignore: Iterable[str], *, preview: bool
    ) -> Diff:
        if not self._known:
            return Diff("some")
        wire = replace(self._wire, unknowns=preview)
        return _diff_from(
            self._call(
                "Diff",
                provider_pb2.DiffRequest(
                    id=id,
                    urn=urn,
                    name=urn_name(urn),
                    type=urn_type(urn),
                    old_inputs=to_struct(old_inputs, wire),
                    olds=to_struct(old_outputs, wire),
                    news=to_struct(news, wire),
                    ignoreChanges=ignore,
                ),
            )
        )

    def create(self, urn: str, inputs: Properties, timeout: float, *, preview: bool) -> Answer:
        if preview and not (self._known and self._supports_preview):
            return Answer("", inputs)
        request = provider_pb2.CreateRequest(
            urn=urn,
            name=urn_name(urn),
            type=urn_type(urn),
            properties=to_struct(inputs, replace(self._wire, unknowns=preview)),
            timeout=timeout,
            preview=preview,
        )
        answer = self._call_marking("Create", request, inputs)
        if not answer.id and not preview:
            raise ProviderError(f"plugin returned empty resource.ID from create '{urn}'", corrupting=True)
        outputs = self._received(answer.properties, preview)
        return Answer(answer.id, self._marked(outputs, inputs), refresh_before_update=answer.refresh_before_update)

    def read(self, urn: str, id: str, inputs: Properties | None, state: Properties | None, timeout: float) -> Answer:
        """What is there now. None for `inputs` and `state` asks for an import. `Answer.id` is empty when nothing is there."""
        if not self._known:
            return Answer(id, {}, {})
        wire = replace(self._wire, unknowns=False)
        request = provider_pb2.ReadRequest(
            id=id,
            urn=urn,
            name=urn_name(urn),
            type=urn_type(urn),
            properties=to_struct(state or {}, wire),
            inputs=None if inputs is None else to_struct(inputs, wire),
            timeout=timeout,
        )
        try:
            answer = self._call("Read", request)
        except InitError as error:
            error.properties = None if error.properties is None else self._marked(error.properties, state or {})
            error.inputs = None if error.inputs is None else self._marked(error.inputs, inputs or {})
            raise
        outputs = self._marked(self._received(answer.properties, False), state or {}) if answer.HasField("properties") else None
        live = self._marked(self._received(answer.inputs, False), inputs or {}) if answer.HasField("inputs") else None
        return Answer(answer.id, outputs, live, answer.refresh_before_update)

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
    ) -> Answer:
        if preview and not (self._known and self._supports_preview):
            return Answer(id, news)
        wire = replace(self._wire, unknowns=preview)
        request = provider_pb2.UpdateRequest(
            id=id,
            urn=urn,
            name=urn_name(urn),
            type=urn_type(urn),
            old_inputs=to_struct(old_inputs, wire),
            olds=to_struct(old_outputs, wire),
            news=to_struct(news, wire),
            timeout=timeout,
            ignoreChanges=ignore,
            preview=preview,
        )
        answer = self._call_marking("Update", request, news)
        outputs = self._received(answer.properties, preview)
        return Answer(id, self._marked(outputs, news), refresh_before_update=answer.refresh_before_update)

    def delete(self, urn: str, id: str, inputs: Properties, outputs: Properties, timeout: float) -> None:
        wire = replace(self._wire, unknowns=False)
        self._call(
            "Delete",
            provider_pb2.DeleteRequest(
                id=id,
                urn=urn,
                name=urn_name(urn),
                type=urn_type(urn),
                properties=to_struct(outputs, wire),
                old_inputs=to_struct(inputs, wire),
                timeout=timeout,
            ),
        )

    def invoke(self, token: str, args: Properties, *, preview: bool) -> Checked:
        wire = replace(self._wire, unknowns=False)
        answer = self._call("Invoke", provider_pb2.InvokeRequest(tok=token, args=to_struct(args, wire), preview=preview))
        failures = tuple(Failure(item.property, item.reason) for item in answer.failures)
        return Checked(from_struct(getattr(answer, "return")), failures)

    def cancel(self) -> None:
        with contextlib.suppress(grpc.RpcError):
            self._stub.Cancel(empty_pb2.Empty(), timeout=1)

    def _call_marking(self, method: str, request: Any, like: Properties) -> Any:
        try:
            return self._call(method, request)
        except InitError as error:
            error.properties = self._marked(error.properties or {}, like)
            raise

    def _received(self, struct: struct_pb2.Struct, preview: bool) -> Properties:
        try:
            return from_struct(struct, allow_unknown=preview)
        except UnexpectedUnknown as error:
            raise ProviderError(f"the provider plugin {self.name} answered an {error}", corrupting=True) from None

    def close(self) -> None:
        self._channel.close()
        self._process.stop()


class _Refused(ProviderError):
    def __init__(self, message: str, code: grpc.StatusCode) -> None:
        super().__init__(message, corrupting=code in _CORRUPTING)
        self.code = code


def _unimplemented(error: ProviderError) -> bool:
    return isinstance(error, _Refused) and error.code is grpc.StatusCode.UNIMPLEMENTED


def _config_text(value: Any) -> str:
    bare = without_secrets(value)
    return bare if isinstance(bare, str) else json.dumps(bare)


_CHANGES: dict[int, Changes] = {
    provider_pb2.DiffResponse.DIFF_UNKNOWN: "unknown",
    provider_pb2.DiffResponse.DIFF_NONE: "none",
    provider_pb2.DiffResponse.DIFF_SOME: "some",
}


def _diff_from(answer: Any) -> Diff:
    kinds = provider_pb2.PropertyDiff.Kind
    detailed = {path: kinds.Name(item.kind).lower().replace("_", "-") for path, item in answer.detailedDiff.items()}
    return Diff(
        _CHANGES[answer.changes],
        tuple(answer.replaces),
        tuple(answer.diffs),
        detailed if answer.hasDetailedDiff else None,
        answer.deleteBeforeReplace,
        tuple(answer.stables),
    )


# Starting them.


@dataclass
class PluginHost:
    """Finds and starts provider plugins for one operation, and stops them all at its end."""

    python: str
    root: Path
    directory: Path
    project: str
    environ: Mapping[str, str]
    on_line: Callable[[str, str, bool], None]
    arguments: tuple[str, ...] = ()
    engine_address: str = ""

    def __post_init__(self) -> None:
        self._providers: list[Provider] = []
        self._lock = threading.Lock()
        self._early: dict[str, queue.Queue[PluginProcess | PluginError]] = {}

    def command(self, package: str) -> list[str]:
        if package == DYNAMIC_PACKAGE:
            return [self.python, "-u", "-m", "pulumi.dynamic"]
        executable = f"pulumi-resource-{package}"
        found = shutil.which(executable, path=self.environ.get("PATH"))
        if found is None:
            raise PluginError(f"no resource plugin '{executable}' found on PATH; the offline engine downloads none, so install it first")
        return [found]

    def _start(self, package: str) -> PluginProcess:
        environ = {**self.environ, "PULUMI_PROJECT": self.project}
        command = [*self.command(package), *self.arguments, self.engine_address]
        return PluginProcess(package, command, self.directory, environ, lambda line, error: self.on_line(package, line, error))

    def start_early(self, package: str) -> None:
        """Start a plugin that will be needed, while something else takes its time."""
        result: queue.Queue[PluginProcess | PluginError] = queue.Queue()
        with self._lock:
            if package in self._early:
                return
            self._early[package] = result

        def start() -> None:
            try:
                result.put(self._start(package))
            except PluginError as error:
                result.put(error)

        threading.Thread(target=start, daemon=True).start()

    def load(self, package: str) -> Provider:
        with self._lock:
            early = self._early.pop(package, None)
        process = early.get() if early is not None else self._start(package)
        if isinstance(process, PluginError):
            raise process
        provider = Provider(process, self.engine_address, self.root, self.directory)
        with self._lock:
            self._providers.append(provider)
        return provider

    def cancel(self) -> None:
        for provider in list(self._providers):
            provider.cancel()

    def close(self) -> None:
        """Stop every plugin: all are asked at once, then waited for."""
        processes = [provider._process for provider in self._providers]
        for early in self._early.values():
            process = early.get()
            if isinstance(process, PluginProcess):
                processes.append(process)
        for provider in self._providers:
            provider._channel.close()
        for process in processes:
            process.interrupt()
        deadline = time.monotonic() + _STOP_TIMEOUT
        for process in processes:
            process.stop(max(0.1, deadline - time.monotonic()))
        self._providers.clear()
        self._early.clear()
