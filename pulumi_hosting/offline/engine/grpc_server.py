"""A gRPC server on the loopback interface."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import grpc

from ..providers.provider_client import CHANNEL_OPTIONS


class GrpcServer:
    """Listens on a free port; `address` is what clients are given."""

    def __init__(self, services: Iterable[Callable[[grpc.Server], None]], threads: int) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="offline-rpc"), options=CHANNEL_OPTIONS
        )
        for add in services:
            add(self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait()
