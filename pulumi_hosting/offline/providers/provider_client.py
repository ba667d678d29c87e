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
    WireFormat,
    contains_unknowns,
    from_struct,
    mark_secrets,
    to_struct,
    without_secrets,
)
from ..model.provider_results import Changes, CheckResult, ProviderDiff, ProviderResult
from ..model.state import ResourceState
from ..model.urns import package_of, urn_name, urn_type
from .plugin_process import START_TIMEOUT, STOP_TIMEOUT, PluginProcess

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
        self._known = True
        """False: it is to be configured with unknown values, so that it cannot be called."""
        self._handshake(engine_address, root, program)

    @property
    def name(self) -> str:
        return self._process.name

    def _call(self, method: str, request: object, urn: str = "", *like: Properties | None) -> Any:
        """The answer. `like` marks what a failed call leaves: see `_result`."""
        _log.debug("%s: %s %s", self.name, method, urn)
        try:
            return getattr(self._stub, method)(request)
        except grpc.RpcError as error:
            raise self._translate(error, *like) from None

    def _ask(self, method: str, urn: str, *like: Properties | None, **fields: Any) -> Any:
        """The answer to a call about a resource, which every such call names in three ways."""
        message = getattr(provider_pb2, f"{method.removesuffix('Config')}Request")
        request = message(urn=urn, name=urn_name(urn), type=urn_type(urn), **fields)
        return self._call(method, request, urn, *like)

    def _ask_if_implemented(self, method: str, urn: str, **fields: Any) -> Any:
        """The answer; None from a provider without this method."""
        try:
            return self._ask(method, urn, **fields)
        except _Refused as error:
            if error.code is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            return None

    def _translate(self, error: grpc.RpcError, *like: Properties | None) -> ProviderError:
        for item in error.trailing_metadata() or ():
            if item.key == "grpc-status-details-bin":
                for detail in status_pb2.Status.FromString(item.value).details:
                    failed = provider_pb2.ErrorResourceInitFailed()
                    if detail.Unpack(failed):
                        return InitError(list(failed.reasons), self._result(failed, *like, preview=True))
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
        self._wire = WireFormat(secrets=answer.accept_secrets, resources=answer.accept_resources)
        self._supports_preview = True

    def check_config(self, urn: str, olds: Properties, news: Properties) -> CheckResult:
        answer = self._ask_if_implemented("CheckConfig", urn, olds=to_struct(olds), news=to_struct(news))
        if answer is None:
            return CheckResult(news)
        return CheckResult(mark_secrets(from_struct(answer.inputs), news), answer.failures)

    def diff_config(
        self, urn: str, old_inputs: Properties, old_outputs: Properties, news: Properties
    ) -> ProviderDiff:
        values = {
            "old_inputs": to_struct(old_inputs),
            "olds": to_struct(old_outputs),
            "news": to_struct(news),
        }
        answer = self._ask_if_implemented("DiffConfig", urn, **values)
        return ProviderDiff("unknown") if answer is None else _diff_from(answer)

    def configure(self, urn: str, id: str, inputs: Properties) -> None:
        known = {key: value for key, value in inputs.items() if key != "version"}
        self._known = not contains_unknowns(known)
        if not self._known:
            return
        package = package_of(urn_type(urn))
        answer = self._ask(
            "Configure",
            urn,
            id=id,
            acceptSecrets=True,
            acceptResources=True,
            sends_old_inputs=True,
            sends_old_inputs_to_delete=True,
            args=to_struct(inputs, WireFormat(secrets=True, resources=True)),
            variables={f"{package}:config:{key}": _config_text(value) for key, value in known.items()},
        )
        if not self._supports_preview:  # there was no handshake
            self._wire = WireFormat(secrets=answer.acceptSecrets, resources=answer.acceptResources)
            self._supports_preview = answer.supportsPreview

    def check(
        self, urn: str, olds: Properties, news: Properties, seed: bytes, *, preview: bool
    ) -> CheckResult:
        if not self._known:
            return CheckResult(news)
        wire = replace(self._wire, unknowns=preview)
        before, after = to_struct(olds, replace(wire, nulls=False)), to_struct(news, wire)
        answer = self._ask("Check", urn, olds=before, news=after, randomSeed=seed)
        return CheckResult(self._received(answer.inputs, news, preview), answer.failures)

    def diff(
        self, old: ResourceState, news: Properties, ignore: Iterable[str], *, preview: bool
    ) -> ProviderDiff:
        if not self._known:
            return ProviderDiff("some")
        wire = replace(self._wire, unknowns=preview)
        values = {"old_inputs": old.inputs, "olds": old.outputs, "news": news}
        sent = {name: to_struct(value, wire) for name, value in values.items()}
        return _diff_from(self._ask("Diff", old.urn, id=old.id, ignoreChanges=ignore, **sent))

    def create(self, new: ResourceState, *, preview: bool) -> ProviderResult:
        if preview and not (self._known and self._supports_preview):
            return ProviderResult("", new.inputs)
        properties = to_struct(new.inputs, replace(self._wire, unknowns=preview))
        timeout = new.custom_timeouts.get("create", 0)
        answer = self._ask(
            "Create", new.urn, new.inputs, properties=properties, timeout=timeout, preview=preview
        )
        if not answer.id and not preview:
            raise ProviderError(f"plugin returned empty resource.ID from create '{new.urn}'", corrupting=True)
        return self._result(answer, new.inputs, preview=preview)

    def read(
        self, urn: str, id: str, inputs: Properties | None, outputs: Properties | None, timeout: float
    ) -> ProviderResult:
        """Read an object. None for `inputs` and `outputs`: an import.

        The result's id is empty when the object is gone.
        """
        if not self._known:
            return ProviderResult(id, {}, {})
        wire = replace(self._wire, unknowns=False)
        known = {
            "properties": to_struct(outputs or {}, wire),
            "inputs": None if inputs is None else to_struct(inputs, wire),
        }
        answer = self._ask("Read", urn, outputs, inputs, id=id, timeout=timeout, **known)
        return self._result(answer, outputs, inputs)

    def update(self, old: ResourceState, new: ResourceState, *, preview: bool) -> ProviderResult:
        if preview and not (self._known and self._supports_preview):
            return ProviderResult(old.id, new.inputs)
        wire = replace(self._wire, unknowns=preview)
        answer = self._ask(
            "Update",
            new.urn,
            new.inputs,
            id=old.id,
            old_inputs=to_struct(old.inputs, wire),
            olds=to_struct(old.outputs, wire),
            news=to_struct(new.inputs, wire),
            timeout=new.custom_timeouts.get("update", 0),
            ignoreChanges=new.ignore_changes,
            preview=preview,
        )
        return self._result(answer, new.inputs, preview=preview)

    def delete(self, old: ResourceState) -> None:
        wire = replace(self._wire, unknowns=False)
        outputs, inputs = to_struct(old.outputs, wire), to_struct(old.inputs, wire)
        timeout = old.custom_timeouts.get("delete", 0)
        self._ask("Delete", old.urn, id=old.id, properties=outputs, old_inputs=inputs, timeout=timeout)

    def invoke(self, token: str, args: Properties, *, preview: bool) -> CheckResult:
        sent = to_struct(args, replace(self._wire, unknowns=False))
        request = provider_pb2.InvokeRequest(tok=token, args=sent, preview=preview)
        answer: provider_pb2.InvokeResponse = self._call("Invoke", request)
        return CheckResult(from_struct(getattr(answer, "return")), answer.failures)

    def cancel(self) -> None:
        with contextlib.suppress(grpc.RpcError, ValueError):  # ValueError: closed already
            self._stub.Cancel(empty_pb2.Empty(), timeout=STOP_TIMEOUT)

    def _result(
        self,
        answer: Any,
        outputs: Properties | None = None,
        inputs: Properties | None = None,
        *,
        preview: bool = False,
    ) -> ProviderResult:
        """What an answer says of an object, marked secret wherever `outputs` and `inputs` are."""
        found = self._received(answer.properties, outputs, preview) if answer.HasField("properties") else None
        has_inputs = "inputs" in answer.DESCRIPTOR.fields_by_name and answer.HasField("inputs")
        live = self._received(answer.inputs, inputs, preview) if has_inputs else None
        return ProviderResult(getattr(answer, "id", ""), found, live, answer.refresh_before_update)

    def _received(self, struct: struct_pb2.Struct, like: Properties | None, preview: bool) -> Properties:
        received = from_struct(struct)
        if not preview and contains_unknowns(received):  # the real thing exists
            raise ProviderError(
                f"the provider plugin {self.name} answered an unexpected unknown property value",
                corrupting=True,
            )
        return received if self._wire.secrets else mark_secrets(received, like or {})

    def close(self) -> None:
        self._channel.close()
        self._process.stop()


class _Refused(ProviderError):
    def __init__(self, message: str, code: grpc.StatusCode) -> None:
        super().__init__(message, corrupting=code in _CORRUPTING)
        self.code = code


def _config_text(value: object) -> str:
    bare = without_secrets(value)
    return bare if isinstance(bare, str) else json.dumps(bare)


_CHANGES: tuple[Changes, ...] = ("unknown", "none", "some")
"""By their numbers in the protocol."""


def _diff_from(answer: provider_pb2.DiffResponse) -> ProviderDiff:
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
    )
