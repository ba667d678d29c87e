"""What the tests of the client share: time that only moves when it is slept, scripted answers, and a client
that uses both.
"""

import json
import random
from collections.abc import Callable, Iterable
from typing import Any, cast

import httpx

from pulumi_hosting.api import models as m
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.rate_limit.state_file import WindowsInMemory

KEY = "vk_live_canary0123456789ABCDEF"
BASE = "https://api.example.com/v1"

Step = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


def dice(seed: int = 7) -> random.Random:
    """The same jitter in every run."""
    return random.Random(seed)  # noqa: S311  # nothing secret is drawn


class FakeTime:
    """A clock that stands still except while something sleeps."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Script:
    """Answers one request after the other by a list of steps (the last one again and again), and remembers
    the requests.
    """

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = list(steps)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        step = self.steps[min(len(self.requests), len(self.steps) - 1)]
        self.requests.append(request)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, httpx.Response):
            return httpx.Response(step.status_code, headers=step.headers, content=step.content)
        return step(request)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) if request.content else None for request in self.requests]


def scripted(
    *steps: Step, time: FakeTime | None = None, key: str = KEY, knows_owner: bool = False, **options: Any
) -> tuple[Client, Script]:
    """A client that gets these answers, and the record of what it sent. ``knows_owner``: ``GET /me`` was
    answered before, so that a 404 is believed."""
    script = Script(steps)
    time = time or FakeTime()
    given = {"clock": time.clock, "sleep": time.sleep, "rng": dice(), "base_url": BASE, **options}
    client = Client(key, transport=httpx.MockTransport(script), **given)
    client.rate_limiter.store = WindowsInMemory()  # clients of one test are not about one another
    if knows_owner:
        client.key_owner.told(cast(m.Me, object()))
    return client, script


def answer(status: int = 200, body: Any = None, **headers: str) -> httpx.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json=body, headers=names)


def refusal(
    status: int, code: str, message: str = "no", details: Any = None, **headers: str
) -> httpx.Response:
    error: dict[str, Any] = {"code": code, "message": message, "request_id": "srv-1"}
    if details is not None:
        error["details"] = details
    return answer(status, {"error": error}, **headers)
