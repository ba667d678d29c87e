"""What goes with a server in the end: nothing, if the engine does not delete the server (``protect``,
``retain_on_delete``).

A program gives options in the declaration, to a parent, in transformations and in transforms. Only the
engine has the result. It shows each registration to the stack's transforms, and the last of them is ours.
"""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

import grpc
import pulumi
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc, resource_pb2
from pulumi.runtime.settings import get_monitor

from pulumi_hosting.provider.names import class_of, dynamic_token, token

_SERVERS = (token(class_of("server")), dynamic_token("server"))
_OURS = tuple(name.removesuffix("Server") for name in _SERVERS)
_OF_A_SERVER = tuple(package + class_of(kind) for package in _OURS for kind in ("server_ip", "ptr"))
_STACK = "pulumi:pulumi:Stack"
_ANY_SIZE = [("grpc.max_receive_message_length", -1)]  # resources of other packages may be large
_Declaration = tuple[str, ...]
"""The types in a URN, and the name."""


class LastTransform(callback_pb2_grpc.CallbacksServicer):
    """Takes ``deleted_with`` from what does not go with that. An engine asks no provider about it, so it
    would be reported as deleted, stay, and be billed. Without the option it is really deleted, or really
    kept.

    Only what belongs to a server goes with it, and only if the engine deletes the server.
    """

    def __init__(self) -> None:
        self._stays: dict[_Declaration, bool] = {}
        """Server → whether it stays."""
        self._context = copy_context()  # which engine a line goes to
        pool = ThreadPoolExecutor(4, thread_name_prefix="hosting-options")
        self._server = grpc.server(pool, options=_ANY_SIZE)
        callback_pb2_grpc.add_CallbacksServicer_to_server(self, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._target = f"127.0.0.1:{port}"
        self._token = ""
        self._server.start()

    def register(self, monitor: Any) -> None:
        """Make it the last transform of the stack. Transforms run in the order of their registration; one
        that the program registers later would change options after this one has seen them, so this one is
        registered again.
        """
        register = monitor.RegisterStackTransform

        def register_last() -> None:
            self._token = uuid4().hex
            register(callback_pb2.Callback(token=self._token, target=self._target))

        def register_before_ours(callback: Any) -> Any:
            answer = register(callback)
            register_last()
            return answer

        register_last()
        monitor.RegisterStackTransform = register_before_ours

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:
        asked = resource_pb2.TransformRequest.FromString(request.request)
        if request.token != self._token or not asked.type.startswith(_OURS):
            return callback_pb2.CallbackInvokeResponse()  # an empty answer changes nothing
        options = asked.options
        if asked.type in _SERVERS:
            self._stays[_declaration(asked)] = options.protect or options.retain_on_delete
        if not options.deleted_with:
            return callback_pb2.CallbackInvokeResponse()
        server = _in_urn(options.deleted_with)
        is_of_it = asked.type in _OF_A_SERVER and options.deleted_with in options.depends_on
        if is_of_it and self._stays.get(server) is False:
            if (
                options.retain_on_delete and not options.protect
            ):  # engines keep the server of what is protected
                self._warn(
                    f"{asked.name}: retain_on_delete does not keep it if its server {server[-1]} is deleted. "
                    f"Next: give {server[-1]} retain_on_delete too, or remove it here"
                )
            return callback_pb2.CallbackInvokeResponse()
        if not is_of_it:
            self._warn(
                f"{asked.name}: deleted_with {server[-1]} is ignored: deleting that does not delete it. "
                "Next: remove the option"
            )
        options.deleted_with = ""
        answer = resource_pb2.TransformResponse(options=options)
        return callback_pb2.CallbackInvokeResponse(response=answer.SerializeToString())

    def _warn(self, line: str) -> None:
        self._context.copy().run(pulumi.log.warn, line)


_BY_MONITOR: "WeakKeyDictionary[Any, LastTransform | None]" = WeakKeyDictionary()


def watch() -> bool:
    """Let the final options of what is declared from now on decide. False if the engine knows no transforms:
    then the options of the declaration decide.

    ``pulumi.runtime.register_resource_transform`` cannot be used: it waits until everything that was declared
    so far is registered, for ever if one of that waits for the callback that declares the server.
    """
    monitor = get_monitor()
    if monitor is None or mocked():
        return False
    if monitor not in _BY_MONITOR:
        known = monitor.SupportsFeature(resource_pb2.SupportsFeatureRequest(id="transforms")).hasSupport
        _BY_MONITOR[monitor] = LastTransform() if known else None
        if last := _BY_MONITOR[monitor]:
            last.register(monitor)
    return _BY_MONITOR[monitor] is not None


# --- parts -------------------------------------------------------------------------------------------------


def _in_urn(urn: str) -> _Declaration:
    return tuple(urn.split("::", 3)[2:])


def _declaration(asked: Any) -> _Declaration:
    """As in the URN that the engine makes of it."""
    types = _in_urn(asked.parent)[0] if asked.parent else _STACK
    return (asked.type if types == _STACK else f"{types}${asked.type}", asked.name)


def mocked() -> bool:
    """Whether the program runs in a unit test: ``pulumi.runtime.set_mocks`` stands in for Pulumi's engine."""
    return isinstance(get_monitor(), MockMonitor)
