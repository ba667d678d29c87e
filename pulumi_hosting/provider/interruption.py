"""The first Ctrl-C in the dynamic form, and the end of a run.

Pulumi's CLI then asks every provider to cancel. The SDK's server for dynamic providers (``pulumi.dynamic``)
does nothing about it, so a wait for an order would go on until ``wait_timeout``, and nothing could be said at
the end. gRPC holds the bound method since the server started, so its code is replaced.

The SDK serves everything on four threads. Four steps that wait take them all, so the request to cancel gets a
thread of its own: gRPC runs a method on its ``experimental_thread_pool`` if it has one, and looks at each
call.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import Any

_MODULE, _SERVER, _METHOD = "pulumi.dynamic", "DynamicResourceProviderServicer", "Cancel"


def _cancel(self: Any, request: Any, context: Any) -> Any:
    # Runs with the names of the SDK's module: everything else is imported here.
    from google.protobuf import empty_pb2

    from pulumi_hosting.provider.interruption import cancel

    cancel()
    return empty_pb2.Empty()


def cancel() -> None:
    """End every wait, and show what this process has charged and credited."""
    from pulumi_hosting.provider.plugin.engine_log import EngineConnection, engine_address
    from pulumi_hosting.provider.provider_session import SESSION

    SESSION.cancel()
    if line := SESSION.money_line():
        engine = EngineConnection()  # what is printed now may come too late to be shown
        engine.connect(engine_address(sys.argv[1:]))
        engine.info("", line)
        engine.close()


def end_waits_on_cancel() -> bool:
    """Have the process's server of dynamic providers end every wait when it is cancelled. False if
    this process is none.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is None or spec.name not in (_MODULE, f"{_MODULE}.__main__"):
        return False
    method = getattr(getattr(main, _SERVER, None), _METHOD, None)
    if (
        not isinstance(method, FunctionType)
        or method.__code__.co_freevars
        or method.__code__.co_argcount != _cancel.__code__.co_argcount
    ):
        return False
    method.__code__ = _cancel.__code__
    vars(method)["experimental_thread_pool"] = ThreadPoolExecutor(1, thread_name_prefix="cancel")
    return True
