"""A provider, called over gRPC as Pulumi's engine calls it."""

import contextlib
import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from ..errors import InitError, ProviderError
from ..model.property_values import (
    Properties,
    UnexpectedUnknown,
    contains_unknowns,
    mark_secrets,
    without_secrets,
)
from ..model.protobuf import WireFormat, from_struct, to_struct
from ..model.urns import package_of, urn_name, urn_type
from .plugin_process import START_TIMEOUT, STOP_TIMEOUT, PluginProcess
from .provider_results import Changes, CheckFailure, CheckResult, ProviderDiff, ProviderResult

_log = logging.getLogger(__name__)

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", 400 << 20),
    ("grpc.max_send_message_length", 400 << 20),
]
_CORRUPTING = (grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS, grpc.StatusCode.UNKNOWN)


class ProviderClient:
    """A provider process, configured or not yet.

    All methods raise `ProviderError` when the provider refuses. Create, read and update raise `InitError`
    when the object exists and is not ready.
    """

    def __init__(self, process: PluginProcess, engine_address: str, root: Path, program: Path) -> None:
        self._process = process
        self._channel = grpc.insecure_channel(f"127.0.0.1:{process.port}", options=CHANNEL_OPTIONS)
        self._stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._wire = WireFormat()
        self._supports_preview = False
        self._handshaken = False
        self._configured: bool | None = None
        """None: not yet. False: with unknown values, so that it cannot be called."""
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
            return ProviderError(
                f"the provider plugin {self.name} went away while it was asked; what "
                "it had begun is not known"
            )
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
            # The first call waits for the connection; later ones fail at once when the process has ended.
            answer = self._stub.Handshake(request, wait_for_ready=True, timeout=START_TIMEOUT)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise self._translate(error) from None
            return
        self._handshaken = True
        self._wire = WireFormat(secrets=answer.accept_secrets, resources=answer.accept_resources)
        self._supports_preview = True

    def check_config(self, urn: str, olds: Properties, news: Properties) -> CheckResult:
        wire = WireFormat()
        request = provider_pb2.CheckRequest(
            urn=urn,
            name=urn_name(urn),
            type=urn_type(urn),
            olds=to_struct(olds, wire),
            news=to_struct(news, wire),
        )
        try:
            answer = self._call("CheckConfig", request)
        except ProviderError as error:
            if _unimplemented(error):
                return CheckResult(news)
            raise
        failures = tuple(CheckFailure(item.property, item.reason) for item in answer.failures)
        return CheckResult(mark_secrets(from_struct(answer.inputs), news), failures)

    def diff_config(
        self, urn: str, old_inputs: Properties, old_outputs: Properties, news: Properties
    ) -> ProviderDiff:
        wire = WireFormat()
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
                return ProviderDiff("unknown")
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
            args=to_struct(inputs, WireFormat(secrets=True, resources=True)),
            variables=variables,
        )
        answer = self._call("Configure", request)
        if not self._handshaken:
            self._wire = WireFormat(secrets=answer.acceptSecrets, resources=answer.acceptResources)
            self._supports_preview = answer.supportsPreview
        self._configured = True

    @property
    def _known(self) -> bool:
        return self._configured is not False

    def _marked(self, properties: Properties, like: Properties) -> Properties:
        return properties if self._wire.secrets else mark_secrets(properties, like)

    def check(
        self, urn: str, olds: Properties, news: Properties, seed: bytes, *, preview: bool
    ) -> CheckResult:
        if not self._known:
            return CheckResult(news)
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
        failures = tuple(CheckFailure(item.property, item.reason) for item in answer.failures)
        inputs = self._received(answer.inputs, preview)
        return CheckResult(self._marked(inputs, news), failures)

    def diff(
        self,
        urn: str,
        id: str,
        old_inputs: Properties,
        old_outputs: Properties,
        news: Properties,
        ignore: Iterable[str],
        *,
        preview: bool,
    ) -> ProviderDiff:
        if not self._known:
            return ProviderDiff("some")
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

    def create(self, urn: str, inputs: Properties, timeout: float, *, preview: bool) -> ProviderResult:
        if preview and not (self._known and self._supports_preview):
            return ProviderResult("", inputs)
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
        return ProviderResult(
            answer.id, self._marked(outputs, inputs), refresh_before_update=answer.refresh_before_update
        )

    def read(
        self, urn: str, id: str, inputs: Properties | None, state: Properties | None, timeout: float
    ) -> ProviderResult:
        """Read an object. None for `inputs` and `state`: an import.

        The result's id is empty when the object is gone.
        """
        if not self._known:
            return ProviderResult(id, {}, {})
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
            error.properties = (
                None if error.properties is None else self._marked(error.properties, state or {})
            )
            error.inputs = None if error.inputs is None else self._marked(error.inputs, inputs or {})
            raise
        outputs = (
            self._marked(self._received(answer.properties, False), state or {})
            if answer.HasField("properties")
            else None
        )
        live = (
            self._marked(self._received(answer.inputs, False), inputs or {})
            if answer.HasField("inputs")
            else None
        )
        return ProviderResult(answer.id, outputs, live, answer.refresh_before_update)

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
    ) -> ProviderResult:
        if preview and not (self._known and self._supports_preview):
            return ProviderResult(id, news)
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
        return ProviderResult(
            id, self._marked(outputs, news), refresh_before_update=answer.refresh_before_update
        )

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

    def invoke(self, token: str, args: Properties, *, preview: bool) -> CheckResult:
        wire = replace(self._wire, unknowns=False)
        answer = self._call(
            "Invoke", provider_pb2.InvokeRequest(tok=token, args=to_struct(args, wire), preview=preview)
        )
        failures = tuple(CheckFailure(item.property, item.reason) for item in answer.failures)
        return CheckResult(from_struct(getattr(answer, "return")), failures)

    def cancel(self) -> None:
        with contextlib.suppress(grpc.RpcError, ValueError):  # ValueError: closed already
            self._stub.Cancel(empty_pb2.Empty(), timeout=STOP_TIMEOUT)

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
            raise ProviderError(
                f"the provider plugin {self.name} answered an {error}", corrupting=True
            ) from None

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


def _diff_from(answer: Any) -> ProviderDiff:
    kinds = provider_pb2.PropertyDiff.Kind
    detailed = {
        path: kinds.Name(item.kind).lower().replace("_", "-") for path, item in answer.detailedDiff.items()
    }
    return ProviderDiff(
        _CHANGES[answer.changes],
        tuple(answer.replaces),
        tuple(answer.diffs),
        detailed if answer.hasDetailedDiff else None,
        answer.deleteBeforeReplace,
        tuple(answer.stables),
    )
