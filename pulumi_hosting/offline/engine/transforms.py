"""Transforms: functions of the program that change what it registers. The program serves them, and the engine
asks them in Pulumi's order: the resource's own, those of its parents, those of the stack.
"""

import threading
from collections.abc import Iterable

import grpc
from google.protobuf.message import Message
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc, resource_pb2

from ..errors import OfflineError
from ..model.property_values import WireFormat, from_struct, to_struct
from ..providers.provider_client import CHANNEL_OPTIONS

_RENAMED = {
    "dependsOn": "dependencies",
    "hideDiff": "hideDiffs",
    "import": "importId",
    "pluginDownloadUrl": "pluginDownloadURL",
}
_FIELDS = {field.json_name: field.name for field in resource_pb2.RegisterResourceRequest.DESCRIPTOR.fields}
_OPTIONS = {
    option.name: _FIELDS[known]
    for option in resource_pb2.TransformResourceOptions.DESCRIPTOR.fields
    if (known := _RENAMED.get(option.json_name, option.json_name)) in _FIELDS
    and option.name != "delete_before_replace"  # a registration says in another field whether it is given
}
"""An option of a transform → the same one of a registration. Most have one name in both."""


class Transforms:
    """Those of one program. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_the_stack: list[callback_pb2.Callback] = []
        self._of_resources: dict[str, list[callback_pb2.Callback]] = {}
        self._stubs: dict[str, callback_pb2_grpc.CallbacksStub] = {}

    def add(self, callback: callback_pb2.Callback) -> None:
        """One of the stack: for what is registered from now on."""
        with self._lock:
            self._of_the_stack.append(callback)

    def registered(self, urn: str, request: resource_pb2.RegisterResourceRequest) -> None:
        """The resource has its URN now: its transforms change its children too."""
        with self._lock:
            self._of_resources[urn] = list(request.transforms)

    def apply(self, request: resource_pb2.RegisterResourceRequest, parents: Iterable[str]) -> None:
        """Change the registration as they say. Raises ``OfflineError`` if one raised."""
        with self._lock:
            inherited = [callback for urn in parents for callback in self._of_resources.get(urn, ())]
            callbacks = [*request.transforms, *inherited, *self._of_the_stack]
            for target in {callback.target for callback in callbacks} - self._stubs.keys():
                channel = grpc.insecure_channel(target, options=CHANNEL_OPTIONS)
                self._stubs[target] = callback_pb2_grpc.CallbacksStub(channel)
        if not callbacks:
            return
        asked = _question(request)
        for callback in callbacks:
            call = callback_pb2.CallbackInvokeRequest(token=callback.token, request=asked.SerializeToString())
            try:
                answer = self._stubs[callback.target].Invoke(call).response
            except grpc.RpcError as error:
                raise OfflineError(f"invoke transform: {error.details()}") from None
            changed = resource_pb2.TransformResponse.FromString(answer)
            for part in ("properties", "options"):
                if changed.HasField(part):
                    getattr(asked, part).CopyFrom(getattr(changed, part))
        request.object.CopyFrom(asked.properties)
        for option, field in _OPTIONS.items():
            _copy(asked.options, option, request, field)
        request.deleteBeforeReplaceDefined = asked.options.HasField("delete_before_replace")
        request.deleteBeforeReplace = asked.options.delete_before_replace


def _question(request: resource_pb2.RegisterResourceRequest) -> resource_pb2.TransformRequest:
    asked = resource_pb2.TransformRequest(
        type=request.type,
        name=request.name,
        custom=request.custom,
        parent=request.parent,
        properties=to_struct(from_struct(request.object), WireFormat(resources=True, outputs=True)),
        options=resource_pb2.TransformResourceOptions(),
    )
    for option, field in _OPTIONS.items():
        _copy(request, field, asked.options, option)
    if request.deleteBeforeReplaceDefined:
        asked.options.delete_before_replace = request.deleteBeforeReplace
    return asked


def _copy(source: Message, name: str, target: Message, other: str) -> None:
    """The field of one message as that of the other, and absent if it is absent."""
    target.ClearField(other)
    if source.DESCRIPTOR.fields_by_name[name].has_presence and not source.HasField(name):
        return
    value = getattr(source, name)
    if hasattr(value, "MergeFrom"):
        getattr(target, other).MergeFrom(value)  # a message, a list or a map
    else:
        setattr(target, other, value)
