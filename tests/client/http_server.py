"""An HTTP server on loopback, and clients for it."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pulumi_hosting.client.client import Client
from tests.client.support import KEY, FakeTime

OK = b'{"status": "ok", "time": "2026-01-01T00:00:00Z", "version": "1"}'


Act = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(act: Act, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server on loopback that answers every request by ``act``; yields its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, ssl.SSLError):
                self.close_connection = True

        def do_GET(self) -> None:
            act(self)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            act(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on standard error."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up is what is tested here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def send(
    handler: BaseHTTPRequestHandler,
    body: bytes = OK,
    status: int = 200,
    length: int | None = None,
    **headers: str,
) -> None:
    handler.send_response(status)
    for name, value in {
        "Content-Type": "application/json",
        "Content-Length": str(len(body) if length is None else length),
        **headers,
    }.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def client_for(url: str, **options: Any) -> Client:
    time = FakeTime()
    return Client(KEY, url, **{"sleep": time.sleep, "deadline": 20, "timeout": 5, **options})
