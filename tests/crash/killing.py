"""A way to the account on which the process is killed at one request, at one point of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest.mock import patch

import httpx

from pulumi_hosting.exactly_once import local_files
from tests.simulation.network import Killed, Network

Point = Literal[
    "before send", "half sent", "processed", "half received", "not saved", "late before", "late after"
]
READ_POINTS: tuple[Point, ...] = ("before send", "half received", "not saved")
"""Where a process may be killed at a GET: that it was processed changes nothing on the account."""
WRITE_POINTS: tuple[Point, ...] = (
    "before send",
    "half sent",
    "processed",
    "half received",
    "not saved",
    "late before",
    "late after",
)
"""Where a process may be killed at any other request.

- ``half sent``: the service receives half of the body, and handles that as it can.
- ``processed``: the service has processed it and nothing of the answer has arrived.
- ``not saved``: the answer has arrived; the process ends before its next request, note or state.
- ``late before``, ``late after``: it is on its way when the process ends, and processed just before, or
  just after, the first write of the next run.
"""


class _HalfBody(httpx.SyncByteStream):
    """Half of an answer; the process is killed while it waits for the rest."""

    def __init__(self, network: "KillingNetwork", content: bytes) -> None:
        self._network, self._content = network, content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content[: len(self._content) // 2]
        self._network.die()


@dataclass
class KillingNetwork(Network):
    """``kill_at``: the number of the request at which the process is killed, the first is 0."""

    kill_at: int | None = None
    point: Point = "before send"
    sent: list[str] = field(default_factory=list)
    """Methods and paths of the present process."""
    is_dead: bool = False
    _is_dying: bool = False
    _to_process: Point | None = None
    """When the request that is on its way is processed."""

    def begin(self, kill_at: int | None = None, point: Point = "before send") -> None:
        """A new process starts."""
        self.kill_at, self.point = kill_at, point
        self.sent, self.is_dead, self._is_dying = [], False, False

    def die(self) -> None:
        """The process ends here. Whatever is unwound afterwards sends and writes nothing any more."""
        self.is_dead = True
        raise Killed

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.may_die()
        number, is_write = len(self.sent), request.method != "GET"
        self.sent.append(f"{request.method} {request.url.path}")
        if number != self.kill_at:
            if is_write and self._to_process == "late before":
                self.arrive()
            response = self.service.handle_request(request)
            if is_write and self._to_process == "late after":
                self.arrive()
            return response
        return self._killed_at(request)

    def _killed_at(self, request: httpx.Request) -> httpx.Response:
        if self.point in ("late before", "late after"):
            request.read()
            self.late.append(request)
            self._to_process = self.point
        if self.point == "half sent" and (body := request.read()):
            headers = {name: value for name, value in request.headers.items() if name != "content-length"}
            cut = httpx.Request(request.method, request.url, headers=headers, content=body[: len(body) // 2])
            self.service.handle_request(cut)
        if self.point in ("before send", "half sent", "late before", "late after"):
            self.die()
        response = self.service.handle_request(request)
        if self.point == "processed":
            self.die()
        if self.point == "half received":
            content = response.read()
            headers = {"Content-Type": response.headers.get("Content-Type", "application/json")}
            return httpx.Response(
                response.status_code, headers=headers, stream=_HalfBody(self, content), request=request
            )
        self._is_dying = True
        return response

    def arrive(self) -> bool:
        """What is on its way is processed now. Whether there was anything."""
        was_late, self._to_process = bool(self.late), None
        self.process_late()
        return was_late

    def may_die(self) -> None:
        if self.is_dead or self._is_dying:
            self.die()

    @contextmanager
    def no_notes_after_death(self) -> Iterator[None]:
        """Within, a killed process writes no local file either."""
        write = local_files.write

        def guarded(*arguments: Any, **keywords: Any) -> None:
            self.may_die()
            write(*arguments, **keywords)

        with patch.object(local_files, "write", guarded):
            yield
