"""A service that gives every request the same answer, in a process of its own: what it costs does not count.

Run: ``answers.py BODY_FILE``.
"""

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

API_KEY = "vk_live_" + "0" * 40

_HEAD = """HTTP/1.1 200 OK\r
Content-Type: application/json\r
Content-Length: {length}\r
Date: Sun, 22 Nov 2026 08:00:00 GMT\r
X-Request-ID: 4be0643f-1d98-573b-97cd-ca98a65347dd\r
X-RateLimit-Limit: 1000000\r
X-RateLimit-Remaining: 999999\r
X-RateLimit-Reset: 1795334460\r
\r
"""


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """The base URL of such a service."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        command = [sys.executable, __file__, file.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
            finally:
                process.kill()


def _serve(body: bytes) -> None:
    answer = _HEAD.format(length=len(body)).encode() + body
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection, answer), daemon=True).start()


def _answer(connection: socket.socket, answer: bytes) -> None:
    request = b""
    while received := connection.recv(65536):
        request += received
        while b"\r\n\r\n" in request:
            request = request.partition(b"\r\n\r\n")[2]
            connection.sendall(answer)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]).read_bytes())
