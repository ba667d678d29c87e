"""An ``httpx.Client`` of the caller's own."""

import os
import socket
import threading
import time

import httpx
import pytest

from pulumi_hosting import Client
from pulumi_hosting.client.exceptions import ConfigurationError, TimedOut, TransportError
from pulumi_hosting.client.rate_limit.state_file import WindowsInMemory
from tests.client.support import BASE, KEY, Script, answer

HEALTH = {"status": "ok", "time": "2026-01-02T03:04:05Z", "version": "1"}


def own(http_client: httpx.Client, base_url: str = BASE, timeout: float = 30.0) -> Client:
    client = Client(KEY, base_url, http_client=http_client, timeout=timeout, deadline=timeout)
    client.rate_limiter.store = WindowsInMemory()
    return client


def test_its_headers_and_hooks_are_used_and_its_identity_is_not() -> None:
    script = Script([answer(200, HEALTH, Set_Cookie="a=b")])
    seen: list[str] = []
    http_client = httpx.Client(
        transport=httpx.MockTransport(script),
        headers={
            "X-Team": "blue",
            "Authorization": "Bearer other",
            "User-Agent": "browser",
            "Idempotency-Key": "the-same-for-every-order",
        },
        cookies={"session": "1"},
        params={"debug": "1"},
        auth=("user", "password"),
        base_url="https://other.example.org",
        event_hooks={
            "request": [lambda request: seen.append(f"to {request.url.path}")],
            "response": [lambda response: seen.append(f"{response.status_code}")],
        },
    )
    found = own(http_client)
    found.health()
    found.health()
    request = script.requests[-1]
    assert request.headers["X-Team"] == "blue"
    assert request.headers["User-Agent"].startswith("pulumi-hosting/")
    assert "Cookie" not in request.headers
    assert "Authorization" not in request.headers  # health() needs no key
    assert "Idempotency-Key" not in request.headers
    assert str(request.url) == f"{BASE}/health"
    assert seen == ["to /v1/health", "200"] * 2


def test_the_key_is_ours() -> None:
    script = Script([answer(200, {"data": [], "next_cursor": None})])
    http_client = httpx.Client(transport=httpx.MockTransport(script), auth=("user", "password"))
    assert own(http_client).servers.list().all() == []
    assert script.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_redirects_are_not_followed() -> None:
    script = Script([httpx.Response(307, headers={"Location": "https://other.example.org/"})])
    http_client = httpx.Client(transport=httpx.MockTransport(script), follow_redirects=True)
    with pytest.raises(TransportError, match=r"redirects to other\.example\.org"):
        own(http_client).health()
    assert len(script.requests) == 1


def test_it_stays_open_and_may_be_shared() -> None:
    http_client = httpx.Client(transport=httpx.MockTransport(Script([answer(200, HEALTH)])))
    with own(http_client) as first, own(http_client) as second:
        first.health()
        second.health()
    assert not http_client.is_closed
    with pytest.raises(ConfigurationError, match="this client is closed; nothing was sent"):
        first.health()


def test_the_deadline_holds_against_a_service_that_sends_headers_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(5)
                try:
                    connection.sendall(b"HTTP/1.1 200 OK\r\n")
                    while not over.wait(0.02):
                        connection.sendall(b"X: y\r\n")
                except OSError:
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with httpx.Client(timeout=None) as http_client:  # noqa: S113  # ours is what counts
            began = time.monotonic()
            with pytest.raises(TimedOut):
                own(http_client, f"http://127.0.0.1:{listener.getsockname()[1]}/v1", timeout=0.4).health()
        over.set()
        thread.join()
        assert time.monotonic() - began < 60  # without the bound it would never end


@pytest.mark.parametrize("other", [{"transport": httpx.MockTransport(Script([]))}, {"ca_file": __file__}])
def test_options_that_it_brings_itself_are_refused(other: dict[str, object]) -> None:
    with httpx.Client() as http_client, pytest.raises(ConfigurationError, match="Next: leave out"):
        Client(KEY, BASE, http_client=http_client, **other)  # type: ignore[arg-type]  # any of them


def test_an_asynchronous_client_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not asynchronous"):
        Client(KEY, BASE, http_client=httpx.AsyncClient())  # type: ignore[arg-type]  # refused at run time too


def test_a_forked_process_does_not_use_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([answer(200, HEALTH)])
    client = own(httpx.Client(transport=httpx.MockTransport(script)))
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    with pytest.raises(ConfigurationError, match="forked"):
        client.health()
    assert script.requests == []
