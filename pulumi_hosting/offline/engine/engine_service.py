"""The Engine service: takes the log of programs and providers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2 as pb
from pulumi.runtime.proto import engine_pb2_grpc

from ..display.engine_events import Events
from ..providers.provider_client import CHANNEL_OPTIONS
from ..providers.registry import DYNAMIC_PACKAGE
from .deployment import Deployment


class EngineService(engine_pb2_grpc.EngineServicer):
    def __init__(self, events: Events) -> None:
        self._events = events
        self.deployment: Deployment | None = None
        """An error that is logged fails it, once there is one."""

    def Log(self, request: pb.LogRequest, context: object) -> empty_pb2.Empty:
        severity = pb.LogSeverity.Name(request.severity).lower()
        if severity != "error" or self.deployment is None:
            self._events.diagnostic(severity, request.message, request.urn, ephemeral=request.ephemeral)
        elif not self.deployment.steps.failed:  # after a failure the program is interrupted and logs that
            self.deployment.error(request.message, request.urn)
        return empty_pb2.Empty()

    def plugin_line(self, package: str, line: str, is_error: bool) -> None:
        """A line that a provider printed.

        Dynamic providers are part of the program; lines of others are for debugging.
        """
        severity = ("info#err" if is_error else "info") if package == DYNAMIC_PACKAGE else "debug"
        self._events.diagnostic(severity, line)

    def RequirePulumiVersion(self, request: object, context: object) -> pb.RequirePulumiVersionResponse:
        return pb.RequirePulumiVersionResponse()


Servicer = TypeVar("Servicer")


def serve_grpc(
    add: Callable[[Servicer, grpc.Server], None], servicer: Servicer, threads: int
) -> tuple[grpc.Server, str]:
    """Serve one service on a free port of the loopback interface; the address is what clients are given."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="offline-rpc")
    server = grpc.server(pool, options=CHANNEL_OPTIONS)
    add(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"
