"""The emulator: its start beside importing its libraries, and writes beside a bare Starlette route that reads
and answers JSON.
"""

import json
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pulumi_hosting.emulator import running
from pulumi_hosting.rehearsal.control_client import Control
from tests.benchmarks.bench_import import run
from tests.benchmarks.measure import Ratio, compare, process_seconds

ROUNDS = 5
BATCHES = 30
REQUESTS = 100
LIBRARIES = "import uvicorn, httptools; from pydantic import BaseModel"
BARE = Path(__file__).parent / "nothing" / "service.py"
ORDER = {"tariff_id": 1, "os": "debian-12", "name": "web-1", "months": 1}
POWER = {"action": "start"}


def ratios() -> Iterator[Ratio]:
    yield compare(
        "start the emulator",
        _start,
        "importing uvicorn, httptools and pydantic",
        run(LIBRARIES),
        ROUNDS,
        1.5,
    )
    for what, path, body, at_most in (
        ("a power action", "/servers/20001/actions/power", POWER, 2.0),
        ("an order", "/servers", ORDER, 3.3),
    ):
        with _emulator() as emulator, _bare() as bare:
            ours, base = (partial(service.post, path, body) for service in (emulator, bare))
            ours(), base()  # what a service loads for its first requests
            seconds = [(ours(), base()) for _ in range(BATCHES)]
        best_ours, best_base = (min(batches) / REQUESTS for batches in zip(*seconds, strict=True))
        yield Ratio(what, best_ours, "a bare Starlette route", best_base, at_most=at_most)


@dataclass
class Service:
    """A running service, and one connection to it."""

    pid: int
    key: str
    connection: socket.socket
    answers: BufferedReader

    def post(self, path: str, body: dict[str, Any]) -> float:
        """POST :data:`REQUESTS` times; the processor seconds of the service."""
        began = process_seconds(self.pid)
        for _ in range(REQUESTS):
            self._post(path, json.dumps(body).encode())
        return process_seconds(self.pid) - began

    def _post(self, path: str, content: bytes) -> None:
        head = (
            f"POST /v1{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n"
            f"Idempotency-Key: {uuid.uuid4().hex}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self.connection.sendall(head.encode() + content)
        status = self.answers.readline().split()[1]
        assert status.startswith(b"2"), status
        length = 0
        while (line := self.answers.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        self.answers.read(length)


def _start() -> None:
    with running():
        pass


@contextmanager
def _emulator() -> Iterator[Service]:
    with running() as emulator:
        control = Control(emulator.control_url)
        control("PATCH", "/account", {"balance": "1000000000"})
        control("POST", "/servers", {"name": "web-1"})
        key = control(
            "POST",
            "/keys",
            {"mode": "live", "scopes": "full", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6},
        )
        with _connected(emulator.pid, urlsplit(emulator.base_url).port or 0, key["key"]) as service:
            yield service


@contextmanager
def _bare() -> Iterator[Service]:
    with subprocess.Popen([sys.executable, str(BARE)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with _connected(process.pid, int(process.stdout.readline()), "") as service:
            yield service
        process.terminate()


@contextmanager
def _connected(pid: int, port: int, key: str) -> Iterator[Service]:
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        yield Service(pid, key, connection, answers)
