"""The engine that started the plugin: its log, which people read, and whether it still runs."""

import contextlib
import threading
from collections.abc import Callable, Collection

import grpc

from pulumi_hosting.provider.plugin.protocol import engine_pb2, engine_pb2_grpc

_LOG_TIMEOUT = 5.0  # seconds; a lost line is better than a step that hangs


def engine_address(arguments: Collection[str]) -> str:
    """``host:port`` among the engine's other arguments: ``[--logtostderr] [-v=N] [--tracing X] ADDRESS``."""
    found, value_of_a_flag = "", False
    for argument in arguments:
        if not value_of_a_flag and not argument.startswith("-"):
            found = argument
        value_of_a_flag = argument in ("--tracing", "-tracing")
    return found


class EngineConnection:
    """Not connected until :meth:`connect`; lines logged until then are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._stub: engine_pb2_grpc.EngineStub | None = None
        self._last_lines: dict[str, str] = {}
        self._announced: dict[str, dict[str, None]] = {}
        self.address: str | None = None
        """The engine's ``host:port``: another one for each of its runs."""

    def connect(self, address: str) -> None:
        """Lines go to the engine at ``host:port`` from now on. The first address stays."""
        with self._lock:
            if self._channel is None and address:
                self.address = address
                # Both processes are on one machine: no proxy.
                self._channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
                self._stub = engine_pb2_grpc.EngineStub(self._channel)

    def watch(self, on_end: Callable[[], None]) -> None:
        """Call ``on_end`` when the engine has ended. One that was killed did not end its plugins."""
        channel, connected = self._channel, threading.Event()
        if channel is None:
            return

        def nothing(state: grpc.ChannelConnectivity) -> None:
            pass

        def changed(state: grpc.ChannelConnectivity) -> None:
            if state is grpc.ChannelConnectivity.READY:
                connected.set()
            elif state is grpc.ChannelConnectivity.IDLE:
                # Nothing was sent for long, or the engine has ended: only connecting again tells which.
                channel.subscribe(nothing, try_to_connect=True)
                channel.unsubscribe(nothing)
            elif state is not grpc.ChannelConnectivity.CONNECTING and connected.is_set():
                on_end()

        channel.subscribe(changed, try_to_connect=True)

    def info(self, urn: str, line: str) -> None:
        """Information under the resource. A repeated line is shown, and kept once."""
        with self._lock:
            repeated = self._last_lines.get(urn) == line
            self._last_lines[urn] = line
        self._log(engine_pb2.INFO, urn, line, ephemeral=repeated)

    def announce(self, urn: str, line: str) -> None:
        """Information on what is about to be charged: shown only if the run turns out to be a preview
        (:meth:`previewed`). An update shows what was charged; a line more for each order takes as long as a
        request."""
        self._announced.setdefault(urn, {})[line] = None

    def previewed(self, urn: str) -> None:
        """The run is a preview: what was announced for the resource is shown."""
        for line in self._announced.pop(urn, ()):
            self.info(urn, line)

    def warn(self, urn: str, line: str) -> None:
        self._log(engine_pb2.WARNING, urn, line)

    def close(self) -> None:
        with self._lock:
            if self._channel is not None:
                self._channel.close()
                self._channel = self._stub = None

    def _log(
        self, severity: engine_pb2.LogSeverity.ValueType, urn: str, line: str, *, ephemeral: bool = False
    ) -> None:
        stub = self._stub
        if stub is not None:
            with contextlib.suppress(grpc.RpcError, ValueError):  # ValueError: closed meanwhile
                stub.Log(
                    engine_pb2.LogRequest(severity=severity, message=line, urn=urn, ephemeral=ephemeral),
                    timeout=_LOG_TIMEOUT,
                )
