"""One emulated account: its objects, its ledger, its requests, its clock and its faults."""

import itertools
from collections.abc import Callable
from decimal import Decimal
from json import dumps, loads
from typing import Any

import httpx

from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.emulator.messages import Refusal
from pulumi_hosting.emulator.middleware import route
from pulumi_hosting.emulator.site import CONTROL, other_response, request_of
from pulumi_hosting.emulator.webhook_delivery import Attempt, AttemptOutcome

# 2029-04-15T08:00:00Z: the first month from here has 30 days, the next one 31, the first two years 365.
START = 1_870_934_400.0
GONE = ("cancelled", "terminated")
"""States of servers that are deleted."""


class AccountView:
    """What an account holds and what moved on it, as its emulator's control interface shows it."""

    control: Callable[..., Any]
    """Calls the control interface, as ``control("GET", "/objects")``."""

    def advance(self, seconds: float) -> None:
        """Move the account's clock."""
        self.control("POST", "/clock", {"advance": seconds})

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """``servers``, ``addresses``, ``domains``, ``ssh_keys``, ``subscriptions``, ``orders`` or
        ``invoices``, as the emulator stores them.
        """
        return list(self.control("GET", "/objects")[kind])

    @property
    def living(self) -> list[dict[str, Any]]:
        """Servers that are not deleted."""
        return [server for server in self.objects("servers") if server["status"] not in GONE]

    @property
    def living_ids(self) -> list[str]:
        return [str(server["id"]) for server in self.living]

    def ledger(self) -> list[dict[str, Any]]:
        """Every movement of money."""
        return list(self.control("GET", "/ledger"))

    def moved(self, *types: str) -> Decimal:
        """What was charged, less what was credited."""
        rows = [row for row in self.ledger() if row["type"] in (types or ("payment", "refund"))]
        return sum(
            (Decimal(row["amount"]) * (1 if row["direction"] == "debit" else -1) for row in rows), Decimal(0)
        )

    @property
    def charges(self) -> int:
        """Purchases less refunds, counted."""
        rows = [row for row in self.ledger() if row["type"] in ("payment", "refund")]
        return sum(1 if row["direction"] == "debit" else -1 for row in rows)

    def requested(self, method: str) -> list[str]:
        """Paths of the requests with this method."""
        return [entry["path"] for entry in self.control("GET", "/requests") if entry["method"] == method]


class Account(AccountView):
    """A fresh account on an emulator in this process, with a manual clock. ``api(…)`` calls it with the live
    key, ``test(…)`` with the test key.
    """

    base_url = "http://127.0.0.1:1/v1"
    """What clients of ``transport()`` are given; nothing listens there."""

    def __init__(self, clock: Clock | None = None, **options: Any) -> None:
        self.clock = clock or Clock(manual=True, start=START)
        self.core = Core(clock=self.clock, **options)
        self.core.announce("http://emulator/v1", "http://emulator/_control", 1)
        self.live_key: str = self.core.ready_line["live_key"]
        self.test_key: str = self.core.ready_line["test_key"]
        self.slept: list[float] = []
        # Called while a response is delayed.
        self.while_waiting: Callable[[], object] = lambda: None
        self.http = httpx.Client(
            transport=Transport(self.core, sleep=self._sleep), base_url="http://emulator"
        )
        self._numbers = itertools.count(1)
        # The answer of webhook receivers, and what they received; no network.
        self.sent: list[Attempt] = []
        self.receiver_status: int | None = 200
        self.core.send = self.receive

    def transport(self) -> httpx.BaseTransport:
        """A client's way to the account. What the emulator delays is not waited for."""
        return Transport(self.core, sleep=lambda seconds: None)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.while_waiting()

    def receive(self, attempt: Attempt) -> AttemptOutcome:
        self.sent.append(attempt)
        if attempt.target is None or self.receiver_status is None:
            return AttemptOutcome(None, "the connection failed", None, 1)
        ok = 200 <= self.receiver_status < 300
        return AttemptOutcome(
            self.receiver_status, None if ok else f"the receiver answered {self.receiver_status}", "text", 1
        )

    def idempotency_key(self) -> str:
        return f"test-key-{next(self._numbers):016d}"

    def call(
        self, token: str | None, method: str, path: str, json: Any = None, **options: Any
    ) -> httpx.Response:
        """``key=`` is the Idempotency-Key; keyed operations get a fresh one when none is given (``key=None``:
        none).
        """
        headers = dict(options.pop("headers", {}))
        if token is not None:
            headers.setdefault("Authorization", f"Bearer {token}")
        key = options.pop("key", "" if _is_keyed(method, path) else None)
        if key is not None:
            headers["Idempotency-Key"] = key or self.idempotency_key()
        if json is not None:
            options["json"] = json
        return self.http.request(method, f"/v1{path}", headers=headers, **options)

    def api(self, method: str, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.call(self.live_key, method, path, json, **options)

    def test(self, method: str, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.call(self.test_key, method, path, json, **options)

    def control(self, method: str, path: str, json: Any = None, status: int = 200) -> Any:
        """The control interface, without HTTP around it: a third of the cost."""
        path, _, query = f"{CONTROL}{path}".partition("?")
        body = b"" if json is None else dumps(json).encode()
        request, _ = request_of(method, path, query, {"content-type": "application/json"}, body, "127.0.0.1")
        answer = other_response(self.core, request)
        assert answer.status == status, answer.content
        return loads(answer.content)

    def fault(self, action: dict[str, Any], **options: Any) -> None:
        self.control("POST", "/faults", {"action": action, **options})

    def variant(self, **variants: Any) -> None:
        self.control("PATCH", "/service", {"readings": variants})

    def new_key(self, mode: str = "live", **options: Any) -> str:
        key: str = self.control("POST", "/keys", {"mode": mode, **options})["key"]
        return key

    def order(self, token: str | None = None, **body: Any) -> dict[str, Any]:
        """Order a server; the answer to the order."""
        response = self.call(
            token or self.live_key,
            "POST",
            "/servers",
            {"tariff_id": 1, "os": "debian-12", "name": "web", **body},
        )
        assert response.status_code == 201, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def server(self, **body: Any) -> int:
        server: int = self.order(**body)["server"]["id"]
        return server

    def register(self, name: str = "example.com", **body: Any) -> dict[str, Any]:
        response = self.api("POST", "/domains", {"name": name, **body})
        assert response.status_code in (201, 202), response.text
        answer: dict[str, Any] = response.json()
        return answer

    def domain(self, name: str = "example.com", **body: Any) -> int:
        self.register(name, **body)
        domain: int = next(
            row["id"] for row in self.api("GET", "/domains").json()["data"] if row["name"] == name
        )
        return domain

    def subscribe(self, *events: str) -> dict[str, Any]:
        """A subscription with a route for its deliveries."""
        self.control("PUT", "/webhook-routes", {"https://hooks.example.org": "http://127.0.0.1:9"})
        body = {"url": "https://hooks.example.org/in?a=1", "events": list(events) or ["*"]}
        response = self.api("POST", "/webhooks", body)
        assert response.status_code == 201, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def balance(self) -> str:
        text: str = self.api("GET", "/balance").json()["balance"]
        return text


def _is_keyed(method: str, path: str) -> bool:
    try:
        return route(method, path)[0].is_keyed
    except Refusal:
        return False
