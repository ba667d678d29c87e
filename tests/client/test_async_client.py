"""What only the client for asyncio does: many tasks at once, and tasks that are cancelled. What it has in
common with ``Client`` is tested with the fixture ``both``.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import fakeredis
import httpx
import pytest

from pulumi_hosting import AsyncClient, ConfigurationError, RateLimitTimeout, Secret, TimedOut
from pulumi_hosting.client import httpx_connection
from pulumi_hosting.client.rate_limit.state_file import WindowsInMemory
from pulumi_hosting.client.rate_limit.windows import KeyWindows
from pulumi_hosting.client.redis_store import Redis
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.in_process_transport import Transport
from tests.client.http_server import serving
from tests.client.support import BASE, KEY, answer, refusal
from tests.support.account import START, Account
from tests.support.virtual_loop import VirtualLoop

SERVER = {"id": 1, "name": "a", "status": "active"}


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop(threads=4)
    yield loop
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@pytest.fixture
def account(loop: VirtualLoop) -> Account:
    """An account whose time is that of the loop."""
    return Account(clock=Clock(source=lambda: loop.time() + START))


def client_of(loop: VirtualLoop, account: Account, **options: Any) -> AsyncClient:
    given = {"transport": Transport(account.core), "clock": loop.time, "rate_limit_timeout": 3600.0}
    return AsyncClient(account.live_key, account.base_url, **{**given, **options})


def answered(client: AsyncClient, calls: int) -> Callable[[], Awaitable[list[Any]]]:
    async def all_at_once() -> list[Any]:
        async with client:
            return await asyncio.gather(*(client.balance.get() for _ in range(calls)))

    return all_at_once


def statuses(account: Account) -> Counter[int]:
    return Counter(entry["status"] for entry in account.control("GET", "/requests"))


def test_five_hundred_calls_at_once_wait_with_a_pool_of_four_threads(
    loop: VirtualLoop, account: Account
) -> None:
    """120 in a minute: the last ones wait for four minutes. None is refused."""
    began, told = loop.time(), list[str]()
    client = client_of(loop, account)
    client.rate_limiter.on_wait = told.append
    found = loop.run_until_complete(answered(client, 500)())
    assert len(found) == 500
    assert 240 <= loop.time() - began <= 250
    assert statuses(account) == {200: 500}
    assert told


def test_tasks_wait_with_a_shared_store(
    loop: VirtualLoop, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clock is real, so only a short block is waited for, in the time of the loop."""
    client = client_of(loop, account)
    client.rate_limiter.values = Redis(Secret("redis://store.example.com/0"), fakeredis.FakeRedis())
    pauses = list[str]()
    monkeypatch.setattr(Redis, "pause", lambda *arguments: pauses.append("in a thread"))
    client.rate_limiter.update(
        lambda windows: setattr(windows.windows["normal"], "blocked", windows.at + 0.2)
    )
    assert len(loop.run_until_complete(answered(client, 50)())) == 50
    assert statuses(account) == {200: 50}
    assert pauses == []


def waiting(client: AsyncClient) -> list[int]:
    found: list[int] = client.rate_limiter.update(
        lambda windows: [ticket.number for ticket in windows.windows["normal"].waiting]
    )
    return found


def full(windows: KeyWindows) -> None:
    windows.windows["normal"].blocked = windows.at + 60


def test_a_task_that_is_cancelled_gives_its_place_back(loop: VirtualLoop, account: Account) -> None:
    """Those behind it do not wait for it: neither when it was the first, nor if it is cancelled before it
    knows its place."""
    client = client_of(loop, account)
    client.rate_limiter.store = WindowsInMemory()
    client.rate_limiter.update(full)

    async def cancelled() -> list[int]:
        first, second, last = (asyncio.ensure_future(client.balance.get()) for _ in range(3))
        await asyncio.sleep(1)
        assert len(waiting(client)) == 3
        early = asyncio.ensure_future(client.balance.get())
        await asyncio.sleep(0)
        for task in (first, early):
            task.cancel()
        await asyncio.wait((first, early))
        await asyncio.sleep(1)
        left = waiting(client)
        await asyncio.gather(second, last)
        await client.close()
        return left

    assert len(loop.run_until_complete(cancelled())) == 2
    assert waiting(client) == []
    assert statuses(account) == {200: 2}


def test_a_wait_that_is_too_long_does_not_begin(loop: VirtualLoop, account: Account) -> None:
    client = client_of(loop, account, rate_limit_timeout=59.0)
    client.rate_limiter.store = WindowsInMemory()
    client.rate_limiter.update(full)
    with pytest.raises(RateLimitTimeout, match="leaves no room for another request within 59 s"):
        loop.run_until_complete(client.balance.get())
    loop.run_until_complete(client.close())
    assert waiting(client) == []


def test_tasks_share_the_question_whose_key_it_is(loop: VirtualLoop, account: Account) -> None:
    asked, me = list[str](), answer(200, account.api("GET", "/me").json())

    async def act(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        await asyncio.sleep(1)
        return me if request.url.path.endswith("/me") else refusal(404, "not_found")

    client = AsyncClient(KEY, BASE, transport=httpx.MockTransport(act), clock=loop.time)
    client.rate_limiter.store = WindowsInMemory()

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(
            *(client.servers.get(number) for number in range(1, 21)), return_exceptions=True
        )

    assert {type(error).__name__ for error in loop.run_until_complete(all_at_once())} == {"NotFound"}
    assert asked.count("/v1/me") == 1


def test_an_exchange_ends_with_its_timeout(loop: VirtualLoop) -> None:
    async def never(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(3600)
        raise AssertionError

    client = AsyncClient(KEY, BASE, transport=httpx.MockTransport(never), clock=loop.time, timeout=5)
    client.rate_limiter.store = WindowsInMemory()
    began = loop.time()
    with pytest.raises(TimedOut, match="no whole answer from api") as caught:
        loop.run_until_complete(client.servers.power(1, action="stop"))
    assert caught.value.outcome_unknown
    assert loop.time() - began == pytest.approx(5)


def test_one_loop_after_the_other_has_a_client_over_real_connections() -> None:
    def act(handler: Any) -> None:
        body = b'{"status": "ok", "time": "2026-01-01T00:00:00Z", "version": "1"}'
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with serving(act) as url:

        async def health() -> str:
            async with AsyncClient(KEY, url) as client:
                return (await client.health()).status

        assert [asyncio.run(health()), asyncio.run(health())] == ["ok", "ok"]


def test_an_http_client_of_the_caller_is_used_and_stays_open() -> None:
    async def named() -> list[str]:
        seen = list[str]()

        def act(request: httpx.Request) -> httpx.Response:
            seen.append(request.headers["X-Team"])
            return answer(200, SERVER)

        http_client = httpx.AsyncClient(transport=httpx.MockTransport(act), headers={"X-Team": "blue"})
        async with AsyncClient(KEY, BASE, http_client=http_client) as client:
            client.rate_limiter.store = WindowsInMemory()
            await client.servers.get(1)
        assert not http_client.is_closed
        await http_client.aclose()
        return seen

    assert asyncio.run(named()) == ["blue"]
    with pytest.raises(ConfigurationError, match=r"must be an httpx\.AsyncClient"):
        AsyncClient(KEY, BASE, http_client=httpx.Client())  # type: ignore[arg-type]  # what is refused


def test_the_program_of_the_documentation_runs(
    account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "name": "old"})
    page = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    orders, test = re.findall(r"```python\n(.*?)```", page.partition("## asyncio")[2], re.DOTALL)
    monkeypatch.setenv("HOSTING_API_KEY", account.live_key)
    monkeypatch.setenv("HOSTING_BASE_URL", account.base_url)
    monkeypatch.setattr(httpx_connection, "async_opened", lambda *_: Transport(account.core))
    exec(orders, {})  # noqa: S102  # what the page tells users to write
    assert sorted(row["name"] for row in account.living) == ["old", "web-1", "web-2", "web-3"]
    assert account.charges == 4
    assert "old" in capsys.readouterr().out
    known: dict[str, Any] = {"AsyncClient": AsyncClient}
    exec(test, known)  # noqa: S102  # the same
    assert asyncio.run(known["client"].me()).scopes
