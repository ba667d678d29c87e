"""A gRPC server on the loopback interface."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import grpc

from ..providers.provider_client import CHANNEL_OPTIONS

Servicer = TypeVar("Servicer")


class GrpcServer:
    """Serves one service. Listens on a free port; `address` is what clients are given."""

    def __init__(
        self, add: Callable[[Servicer, grpc.Server], None], servicer: Servicer, threads: int
    ) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="offline-rpc"), options=CHANNEL_OPTIONS
        )
        add(servicer, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait()
