"""The account over HTTP, for real processes: some are killed at one request, at one point of it."""

import select
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from signal import SIGCONT
from typing import Literal

import httpx

from tests.crash.killing import Point
from tests.support import processes

Victim = Literal["everything", "the engine", "the provider", "the worker"]
"""Which processes are killed.

- ``everything``: the command and every process below it.
- ``the engine``: the command's own process, Pulumi's engine or ansible-playbook. The others live on.
- ``the provider``, ``the worker``: the process that sends the request: Pulumi's plugin, Ansible's worker.
"""
LATE: tuple[Point, ...] = ("late before", "late after")
CUT: tuple[Point, ...] = ("half sent", "half received")


@dataclass(frozen=True, order=True)
class Exchange:
    """A request of a run: the ``occurrence``-th with this method and path, from 0."""

    label: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.label} ({self.occurrence + 1})" if self.occurrence else self.label

    @property
    def is_write(self) -> bool:
        return not self.label.startswith("GET ")


@dataclass
class _OnItsWay:
    """A request that is processed during the next run. ``is_awaited``: its sender lives."""

    request: httpx.Request
    is_awaited: bool
    processed: threading.Event = field(default_factory=threading.Event)
    response: httpx.Response | None = None


class KillingServer(ThreadingHTTPServer):
    """``service``: the account. ``sent``: the exchanges of the present run."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service: httpx.BaseTransport = httpx.MockTransport(lambda request: httpx.Response(503))
        self.sent: list[Exchange] = []
        self._counted = Counter[str]()
        self._kill_at: tuple[Exchange, Point, Victim] | None = None
        self._command: Callable[[], int] = lambda: 0
        self._late: list[_OnItsWay] = []
        self._late_point: Point = "before send"
        self._is_next = True
        """Whether no run has to be killed any more."""
        self._killed: list[int] = []
        """The processes that were killed in the present run."""
        self.left: list[int] = []
        """Processes of the killed run that were not killed."""
        self.gate = threading.Lock()
        """Requests are processed one after the other, and none while a process is killed."""
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def begin(self) -> None:
        """A run that is not killed starts."""
        with self.gate:
            self.sent, self._counted = [], Counter()
            self._kill_at, self._is_next = None, True

    def begin_killed(
        self, exchange: Exchange, point: Point, victim: Victim, command: Callable[[], int]
    ) -> None:
        """A run starts that is to be killed. ``command``: returns the id of its process."""
        self.begin()
        self._killed, self.left, self._is_next = [], [], False
        self._kill_at, self._command = (exchange, point, victim), command

    @property
    def has_killed(self) -> bool:
        """Whether the run that has ended was killed."""
        with self.gate:
            return bool(self._killed)

    def use(self, service: httpx.BaseTransport) -> None:
        """Another account; what was on its way is dropped."""
        with self.gate:
            for late in self._late:
                late.processed.set()
            self._late.clear()
            self.service = service

    def arrive(self) -> bool:
        """What is on its way is processed now. Whether there was anything."""
        with self.gate:
            return self._arrive()

    def _arrive(self) -> bool:
        for late in self._late:
            late.response = self.service.handle_request(late.request)
            late.processed.set()
        was_late = bool(self._late)
        self._late.clear()
        return was_late

    # --- requests, each in a thread of its own

    def serve(self, handler: "_Handler", request: httpx.Request) -> None:
        if request.url.path.startswith("/_control"):
            handler.answer(self.service.handle_request(request))
            return
        with self.gate:
            if handler.is_gone():
                return
            exchange = self._count(request)
            if self._kill_at is not None and self._kill_at[0] == exchange:
                on_its_way = self._kill(handler, request)
                if on_its_way is None:
                    return
            else:
                handler.answer(self._process(request))
                return
        on_its_way.processed.wait()
        if on_its_way.response is not None:
            handler.answer(on_its_way.response)

    def _count(self, request: httpx.Request) -> Exchange:
        label = f"{request.method} {request.url.path}"
        exchange = Exchange(label, self._counted[label])
        self._counted[label] += 1
        self.sent.append(exchange)
        return exchange

    def _process(self, request: httpx.Request) -> httpx.Response:
        if not self._is_next:
            return self.service.handle_request(request)
        is_write = request.method != "GET"
        awaited = any(late.is_awaited for late in self._late)
        # A sender that lives may hold a lock that the next run needs before it writes.
        if self._late_point == "late before" and (is_write or awaited):
            self._arrive()
        response = self.service.handle_request(request)
        if self._late_point == "late after" and is_write:
            self._arrive()
        return response

    def _kill(self, handler: "_Handler", request: httpx.Request) -> _OnItsWay | None:
        """Kill at this request; what is left of it if it is on its way and processed later."""
        assert self._kill_at is not None
        _, point, victim = self._kill_at
        self._kill_at = None
        command = self._command()
        family = processes.stop(command)
        sender = processes.owner(handler.port, family)
        assert sender is not None, f"none of {family} sends {request.method} {request.url.path}"
        chosen = {"everything": family, "the engine": [command]}.get(victim, [sender])
        lives = sender not in chosen

        def kill() -> None:
            processes.kill(chosen)
            self.left = [pid for pid in family if pid not in chosen]
            processes.send(SIGCONT, self.left)
            processes.wait_for_death(chosen)
            self._killed = chosen

        if point in LATE:
            kill()
            self._late_point = point
            self._late.append(_OnItsWay(request, lives))
            return self._late[-1]
        if point in ("before send", "half sent"):
            if point == "half sent" and request.content:
                self._cut(request)
            kill()
            if lives:
                handler.answer(self.service.handle_request(request))
            return None
        response = self.service.handle_request(request)
        if point == "processed":
            kill()
            handler.answer(response)
            return None
        # The engine is stopped, so it saves nothing of the answer.
        processes.send(SIGCONT, [sender] if sender != command else [])
        handler.answer(response, half=point == "half received")
        if sender != command:
            processes.wait_until_read(handler.port)
        kill()
        return None

    def _cut(self, request: httpx.Request) -> None:
        """The service receives half of the body."""
        headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        half = request.content[: len(request.content) // 2]
        self.service.handle_request(httpx.Request(request.method, request.url, headers=headers, content=half))


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: KillingServer

    @property
    def port(self) -> int:
        """The client's."""
        return int(self.client_address[1])

    def handle_one_request(self) -> None:
        try:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        except OSError:
            self.close_connection = True  # the client has ended
            return
        request = httpx.Request(
            self.command, f"http://emulator{self.path}", headers=dict(self.headers.items()), content=body
        )
        self.server.serve(self, request)

    def is_gone(self) -> bool:
        """Whether the client has ended."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def answer(self, response: httpx.Response, *, half: bool = False) -> None:
        """Send the answer; ``half``: of its body, and end the connection."""
        content = response.read()
        lines = [f"HTTP/1.1 {response.status_code} {response.reason_phrase}"]
        lines += [f"{name}: {value}" for name, value in response.headers.items() if name != "content-length"]
        head = "\r\n".join([*lines, f"content-length: {len(content)}", "", ""]).encode("latin-1")
        try:
            self.connection.sendall(head + (content[: len(content) // 2] if half else content))
        except OSError:
            self.close_connection = True  # the client has ended
        self.close_connection = self.close_connection or half

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is printed."""
