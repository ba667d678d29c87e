"""What the tests of the client share: time that only moves when it is slept, scripted answers, and a client
that uses both.
"""

import asyncio
import inspect
import json
import random
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Any

import httpx
import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.async_services.client import AsyncClient
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.rate_limit.state_file import WindowsInMemory
from pulumi_hosting.client.results import AsyncPages
from pulumi_hosting.client.service_base import Service

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


LOOP = asyncio.new_event_loop()


class OnLoop:
    """An ``AsyncClient``, or a part of one, as if it were synchronous: what it awaits runs to its end."""

    def __init__(self, of: Any) -> None:
        vars(self)["of"] = of

    def __getattr__(self, name: str) -> Any:
        return _run(getattr(self.of, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.of, name, value)

    def __reduce_ex__(self, protocol: object) -> Any:
        return self.of.__reduce_ex__(protocol) if isinstance(self.of, AsyncClient) else (OnLoop, (self.of,))

    def __iter__(self) -> Iterator[Any]:
        walk = aiter(self.of)
        while (item := LOOP.run_until_complete(anext(walk, walk))) is not walk:
            yield item

    def __bool__(self) -> bool:
        return bool(self.of)

    def __repr__(self) -> str:
        return repr(self.of)

    def __enter__(self) -> "OnLoop":
        return OnLoop(LOOP.run_until_complete(self.of.__aenter__()))

    def __exit__(self, *error: Any) -> None:
        LOOP.run_until_complete(self.of.__aexit__(*error))


def _run(value: Any) -> Any:
    if inspect.iscoroutine(value):
        return _run(LOOP.run_until_complete(value))
    if inspect.ismethod(value):
        return lambda *arguments, **options: _run(value(*arguments, **options))
    return OnLoop(value) if isinstance(value, Service | AsyncPages | AsyncIterable) else value


def on_loop(*arguments: Any, sleep: Callable[[float], None] | None = None, **options: Any) -> Any:
    """An ``AsyncClient`` made with the arguments of a ``Client``."""

    async def awaited(seconds: float) -> None:
        assert sleep is not None
        sleep(seconds)

    if sleep is not None:
        options["sleep"] = awaited
    return OnLoop(AsyncClient(*arguments, **options))


FORMS: dict[str, Callable[..., Any]] = {"Client": Client, "AsyncClient": on_loop}
CLIENT_ONLY = pytest.mark.parametrize("both", ["Client"], indirect=True)
"""For a test of what only the synchronous form has: threads, its connections, indexes of a list."""
made: Callable[..., Any] = Client
"""How clients are made: the fixture ``both`` has each test run with both clients."""


def scripted(
    *steps: Step, time: FakeTime | None = None, key: str = KEY, knows_owner: bool = False, **options: Any
) -> tuple[Client, Script]:
    """A client that gets these answers, and the record of what it sent. ``knows_owner``: ``GET /me`` was
    answered before, so that a 404 is believed."""
    script = Script(steps)
    time = time or FakeTime()
    given = {"clock": time.clock, "sleep": time.sleep, "rng": dice(), "base_url": BASE, **options}
    client: Client = made(key, transport=httpx.MockTransport(script), **given)
    client.rate_limiter.store = WindowsInMemory()  # clients of one test are not about one another
    if knows_owner:
        client.key_owner.observe(None, object.__new__(m.Me))
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
