"""The way to the account: requests are lost, answered late or cut, and processes die, as a seed decides."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.emulator.webhook_delivery import Attempt, AttemptOutcome

START = 1_870_934_400.0  # 2029-04-15T08:00:00Z
BASE_URL = "http://127.0.0.1:1/v1"

FAULTS = (
    "killed before",
    "killed after",
    "lost before",
    "lost after",
    "late",
    "cut",
    "429",
    "502",
    "503",
    "504",
)
"""What may happen to one request. Killed: the process ends before the request leaves, or once it was
processed. Lost: the connection fails before, or after, it was processed. Late: the connection fails and the
request is processed later. Cut: the answer stops short. A number: that status, and nothing was processed."""


_PASSWORD = re.compile(r'"(?:root_password|secret)": ?"([^"]{8,})"')


class Killed(BaseException):
    """The process was killed here; nothing of it may catch this."""


class Delivered:
    """The receiver of webhooks takes everything."""

    def __call__(self, attempt: Attempt) -> AttemptOutcome:
        return AttemptOutcome(200, None, "", 1)


@dataclass
class Network(httpx.BaseTransport):
    """A transport for the clients of one account. ``fault_rate``: how likely each request meets a fault."""

    seed: int
    provisioning_delay: float = 0.0
    ip_delay: float = 0.0
    fault_rate: float = 0.0
    late: list[httpx.Request] = field(default_factory=list)
    """Requests that were sent and are not processed yet."""
    happened: list[str] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    """The faults that the next requests meet; "" is none. Beside ``FAULTS``: 500, and "timeout before" or
    "timeout after" it was processed."""
    killed_at_save: int | None = None
    """The process is killed after so many further answers, before what they mean is saved."""

    def __post_init__(self) -> None:
        self.clock = Clock(manual=True, start=START)
        self.core = Core(
            clock=self.clock,
            seed=self.seed,
            provisioning_delay=self.provisioning_delay,
            ip_delay=self.ip_delay,
        )
        self.core.announce(BASE_URL, "http://emulator/_control", 1)
        self.core.send = Delivered()
        self.live_key: str = self.core.ready_line["live_key"]
        self.service = Transport(self.core, sleep=lambda seconds: None)
        self.http = httpx.Client(transport=self.service, base_url="http://emulator")
        self.rng = random.Random(self.seed)  # noqa: S311  # repeatable on purpose
        self.secrets = {self.live_key}
        """The key, and the passwords that were answered."""

    # --- what a client sees

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.late and self.rng.random() < 0.3:
            self.process_late()
        fault = self.planned.pop(0) if self.planned else ""
        if not fault and self.rng.random() < self.fault_rate:
            fault = self.rng.choice(FAULTS)
        return self._meet(fault, request) if fault else self._processed(request)

    def _meet(self, fault: str, request: httpx.Request) -> httpx.Response:
        self.happened.append(f"{request.method} {request.url.path}: {fault}")
        if fault == "killed before":
            raise Killed
        if fault == "lost before":
            raise httpx.ConnectError("refused", request=request)
        if fault == "timeout before":
            raise httpx.ReadTimeout("silent", request=request)
        if fault == "late":
            self.late.append(request)
            raise httpx.ReadError("reset", request=request)
        if fault.isdigit():
            retry = {"Retry-After": "1"} if fault in ("429", "503") else {}
            codes = {"429": "rate_limited", "500": "server_error", "502": "upstream_error"}
            code = codes.get(fault, "upstream_unavailable")
            body = {"error": {"code": code, "message": "simulated", "request_id": "req_simulated"}}
            return httpx.Response(int(fault), json=body, headers=retry, request=request)
        response = self._processed(request)
        if fault == "killed after":
            raise Killed
        if fault == "lost after":
            raise httpx.RemoteProtocolError("closed", request=request)
        if fault == "timeout after":
            raise httpx.ReadTimeout("silent", request=request)
        content = response.read()
        return httpx.Response(
            response.status_code,
            headers={"Content-Type": "application/json"},
            content=content[: len(content) // 2],
            request=request,
        )

    def _processed(self, request: httpx.Request) -> httpx.Response:
        response = self.service.handle_request(request)
        self.secrets.update(_PASSWORD.findall(response.read().decode(errors="replace")))
        return response

    def process_late(self) -> None:
        """The service processes what it received a while ago; no process receives the answers."""
        for request in self.late:
            self.happened.append(f"{request.method} {request.url.path}: processed now")
            self.service.handle_request(request)
        self.late.clear()

    def may_die(self) -> None:
        """The process may be killed here, after an answer and before what it means is saved."""
        if self.killed_at_save is not None:
            self.killed_at_save -= 1
        if self.killed_at_save == -1 or self.rng.random() < self.fault_rate / 2:
            self.killed_at_save = None
            self.happened.append("killed before the state was saved")
            raise Killed

    # --- what the test does

    def sleep(self, seconds: float) -> None:
        """Time passes on the account, and on no other clock."""
        if seconds > 0:
            self.control("POST", "/clock", {"advance": seconds})

    def monotonic(self) -> float:
        return self.clock.now()

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """The control interface of the emulator."""
        response = self.http.request(method, f"/_control{path}", json=body)
        assert response.status_code == 200, response.text
        return response.json()


Say = Callable[[str], None]
