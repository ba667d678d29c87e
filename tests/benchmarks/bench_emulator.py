"""The emulator: its start beside importing its libraries, and writes beside a bare Starlette route that reads
and answers JSON.
"""

import json
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pulumi_hosting.emulator import running
from pulumi_hosting.rehearsal.control_client import Control
from tests.benchmarks.bench_import import run
from tests.benchmarks.measure import Ratio, compare, processes_seconds

ROUNDS = 5
REQUESTS = 1000
LIBRARIES = "import starlette.applications, uvicorn, httptools; from pydantic import BaseModel"
BARE = Path(__file__).parent / "nothing" / "service.py"
ORDER = {"tariff_id": 1, "os": "debian-12", "name": "web-1", "months": 1}
POWER = {"action": "start"}


def ratios() -> Iterator[Ratio]:
    yield compare(
        "start the emulator",
        partial(_emulator, []),
        "importing starlette, uvicorn, httptools and pydantic",
        run(LIBRARIES),
        ROUNDS,
        1.5,
    )
    for what, path, body, at_most in (
        ("a power action", "/servers/20001/actions/power", POWER, 2.0),
        ("an order", "/servers", ORDER, 3.3),
    ):
        ours, base = _per_request(_emulator, path, body), _per_request(_bare, path, body)
        yield Ratio(what, ours, "a bare Starlette route", base, at_most=at_most)


def _per_request(service: Callable[["Requests"], None], path: str, body: dict[str, Any]) -> float:
    """Seconds of the service, without its start and what it loads for the first request."""
    best = {
        count: min(processes_seconds(partial(service, [(path, body)] * count)) for _ in range(ROUNDS))
        for count in (1, 1 + REQUESTS)
    }
    return (best[1 + REQUESTS] - best[1]) / REQUESTS


Requests = list[tuple[str, dict[str, Any]]]


def _emulator(requests: Requests) -> None:
    with running() as emulator:
        if not requests:
            return
        control = Control(emulator.control_url)
        control("PATCH", "/account", {"balance": "1000000000"})
        control("POST", "/servers", {"name": "web-1"})
        key = control(
            "POST",
            "/keys",
            {"mode": "live", "scopes": "full", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6},
        )
        _send(urlsplit(emulator.base_url).port or 0, key["key"], requests)


def _bare(requests: Requests) -> None:
    with subprocess.Popen([sys.executable, str(BARE)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        _send(int(process.stdout.readline()), "", requests)
        process.terminate()


def _send(port: int, key: str, requests: Requests) -> None:
    """POST these over one connection."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        for path, body in requests:
            content = json.dumps(body).encode()
            head = (
                f"POST /v1{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
                f"Idempotency-Key: {uuid.uuid4().hex}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(content)}\r\n\r\n"
            )
            connection.sendall(head.encode() + content)
            status = answers.readline().split()[1]
            assert status.startswith(b"2"), status
            length = 0
            while (line := answers.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            answers.read(length)
