"""A receiver of webhooks on a port of this machine, to which a proxy or a tunnel with TLS leads."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pulumi_hosting.certify.settings import WebhookDelivery

LARGEST = 1_000_000


class HttpReceiver:
    """Listens until the end of the context. Raises ``OSError`` if it cannot listen."""

    def __init__(self, url: str, host: str, port: int) -> None:
        self.url, self.answer = url, 200
        self._seen: list[WebhookDelivery] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = self.headers.get("Content-Length", "0")
                size = int(length) if length.isdecimal() else 0
                headers = {name.lower(): text for name, text in self.headers.items()}
                receiver._seen.append(WebhookDelivery(headers, self.rfile.read(min(size, LARGEST))))
                self.send_response(receiver.answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer((host, port), Handler)
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "HttpReceiver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def deliveries(self) -> list[WebhookDelivery]:
        return list(self._seen)
