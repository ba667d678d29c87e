"""The transport: real sockets on loopback where httpx does the work, scripted answers elsewhere."""

import gc
import gzip
import logging
import os
import socket
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.client import httpx_connection, requests
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import (
    InvalidResponse,
    RedirectRefused,
    TimedOut,
    TransportError,
    Unauthorized,
)
from tests.client.http_server import OK, Act, client_for, send, serving
from tests.client.support import KEY, FakeTime, answer, scripted
from tests.support.ports import free_port
from tests.support.waiting import HANG_SECONDS


def test_an_answer_over_a_real_connection() -> None:
    with serving(send) as url, client_for(url) as client:
        assert client.health().status == "ok"
        assert client.health().version == "1"


def test_gzip_is_asked_for_and_unpacked() -> None:
    asked = []

    def act(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.headers["Accept-Encoding"])
        send(handler, gzip.compress(OK), Content_Encoding="gzip")

    with serving(act) as url, client_for(url) as client:
        assert client.health().status == "ok"
    assert asked == ["gzip"]


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(zlib.compress(OK), "deflate"), (OK, "br"), (b"not gzip", "gzip"), (gzip.compress(OK)[:-9], "gzip")],
    ids=["deflate", "brotli", "no gzip", "half a gzip"],
)
def test_an_encoding_that_cannot_be_read_is_no_answer(body: bytes, encoding: str) -> None:
    def act(handler: BaseHTTPRequestHandler) -> None:
        send(handler, body, Content_Encoding=encoding)

    with serving(act) as url, client_for(url) as client, pytest.raises(TransportError):
        client.health()


def test_all_members_of_a_gzip_are_read() -> None:
    def act(handler: BaseHTTPRequestHandler) -> None:
        send(
            handler,
            gzip.compress(OK[:20]) + gzip.compress(b"") + gzip.compress(OK[20:]),
            Content_Encoding="gzip",
        )

    with serving(act) as url, client_for(url) as client:
        assert client.health().status == "ok"


@pytest.mark.parametrize(
    "location", ["http://[half", "https://a:b:c/", "http://\x7f/", "//", "https://other.example.com/"]
)
def test_a_redirect_is_refused_at_once_also_if_its_target_is_unreadable(location: str) -> None:
    client, script = scripted(httpx.Response(302, headers={"Location": location}))
    with pytest.raises(RedirectRefused, match="check the base URL"):
        client.health()
    assert len(script.requests) == 1


def test_an_answer_that_is_too_large_is_not_read_to_its_end() -> None:
    sent = []

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for number in range(64):
            handler.wfile.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
            sent.append(number)

    with (
        serving(act) as url,
        client_for(url) as client,
        pytest.raises(InvalidResponse, match="larger than 16 MiB"),
    ):
        client.health()
    assert len(sent) < 64


def test_a_small_answer_that_unpacks_to_a_large_one_is_not_unpacked_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bomb = gzip.compress(b" " * (64 * 1024 * 1024), 6)
    assert len(bomb) < 100_000
    unpacked = []
    real = zlib.decompressobj

    class Counting:
        """The decompressor, with a look at how much it is let to unpack."""

        def __init__(self, window: int) -> None:
            self._real = real(window)

        def decompress(self, raw: bytes, most: int) -> bytes:
            part = self._real.decompress(raw, most)
            unpacked.append(len(part))
            return part

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

    def act(handler: BaseHTTPRequestHandler) -> None:
        send(handler, bomb, Content_Encoding="gzip")

    monkeypatch.setattr(httpx_connection.zlib, "decompressobj", Counting)  # type: ignore[attr-defined]  # the module that transport imported
    with (
        serving(act) as url,
        client_for(url) as client,
        pytest.raises(InvalidResponse, match="larger than 16 MiB"),
    ):
        client.health()
    assert max(unpacked) <= 1024 * 1024
    assert sum(unpacked) <= 18 * 1024 * 1024


def test_an_in_process_answer_is_held_to_the_same_size() -> None:
    client, _ = scripted(httpx.Response(200, content=b" " * (requests.MAX_ANSWER_BYTES + 1)))
    with pytest.raises(InvalidResponse, match="larger than 16 MiB"):
        client.health()


def test_cookies_are_not_kept() -> None:
    seen = []

    def act(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers["Cookie"])
        send(handler, Set_Cookie="session=1; Path=/")

    with serving(act) as url, client_for(url) as client:
        client.health()
        client.health()
    assert seen == [None, None]


# --- what does not come back


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def stop_short(handler: BaseHTTPRequestHandler) -> None:
    send(handler, OK[:20], length=len(OK))
    handler.close_connection = True


def talk_nonsense(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
    handler.close_connection = True


@pytest.mark.parametrize("act", [hang_up, stop_short, talk_nonsense])
def test_a_broken_answer_leaves_the_outcome_of_a_write_unknown(act: Act) -> None:
    calls = []

    def counted(handler: BaseHTTPRequestHandler) -> None:
        calls.append(handler.path)
        act(handler)

    with serving(counted) as url, client_for(url) as client:
        with pytest.raises(TransportError, match="may have been processed") as caught:
            client.servers.ips.set_ptr(1, 2, domain="host.example.com")
        assert caught.value.outcome_unknown
        assert caught.value.__context__ is None
        assert len(calls) == 1
        with pytest.raises(TransportError) as read:
            client.health()
        assert not read.value.outcome_unknown
        assert len(calls) == 7


def test_a_broken_connection_is_retried_where_repeating_is_safe() -> None:
    acts = iter([hang_up, stop_short, send])
    with serving(lambda handler: next(acts)(handler)) as url, client_for(url) as client:
        found = client.health()
    assert found.meta is not None
    assert found.meta.attempts == 3


def test_a_refused_connection_has_a_known_outcome() -> None:
    port = free_port()
    with (
        client_for(f"http://127.0.0.1:{port}/v1") as client,
        pytest.raises(TransportError, match=r"cannot reach 127\.0\.0\.1.*ConnectError") as caught,
    ):
        client.servers.power(1, action="stop")
    assert not caught.value.outcome_unknown
    assert f"127.0.0.1:{port}" in str(caught.value)


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    release = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        release.wait(HANG_SECONDS)
        handler.close_connection = True

    with serving(hang) as url, client_for(url, timeout=0.05, deadline=0.1) as client:
        try:
            with pytest.raises(TimedOut, match="no whole answer from 127"):
                client.health()
            with pytest.raises(TimedOut, match="may have been processed") as caught:
                client.servers.ips.set_ptr(1, 2, domain="host.example.com")
            assert caught.value.outcome_unknown
        finally:
            release.set()


def test_an_answer_that_trickles_is_cut_off_at_the_deadline() -> None:
    time = FakeTime()

    class Trickle(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(100):
                time.now += 1
                yield b" "

    class Slow(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(200, stream=Trickle())

    client = Client(
        KEY, "https://api.example.com/v1", transport=Slow(), clock=time.clock, sleep=time.sleep, deadline=10
    )
    with pytest.raises(TimedOut, match=r"no whole answer from api\.example\.com in time"):
        client.health()
    assert time.now < 1012


@pytest.mark.parametrize(
    ("late", "what"),
    [
        (httpx.ConnectTimeout, "no connection to api.example.com in time. Nothing was changed"),
        (httpx.PoolTimeout, "no free connection to api.example.com in time. Nothing was changed"),
        (
            httpx.WriteTimeout,
            "the request could not be sent to api.example.com in time. The request may have",
        ),
        (httpx.ReadTimeout, "no whole answer from api.example.com in time. The request may have"),
    ],
)
def test_what_was_late_is_said_in_words(late: type[httpx.TimeoutException], what: str) -> None:
    client, _ = scripted(late("too late"))
    with pytest.raises(TimedOut) as caught:
        client.servers.update(1, name="a")
    assert str(caught.value).startswith(f"server 1: {what}")
    assert "Timeout" not in str(caught.value)


# --- where a request may go


def test_neither_netrc_nor_a_proxy_sees_a_request_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password else\ndefault login other password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(netrc.read_text())
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    seen = []

    def act(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers["Authorization"])
        send(handler, b'{"error": {"code": "invalid_token", "message": "no", "request_id": "r"}}', 401)

    with serving(act) as url, client_for(url) as client:
        with pytest.raises(Unauthorized):
            client.me()
        with pytest.raises(Unauthorized):
            client.call("get_health")
    assert seen == [f"Bearer {KEY}", None]


def test_https_goes_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy is asked to connect and sees no key; it refuses, so nothing was sent."""
    asked = []

    def proxy(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            asked.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:proxy-canary@127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        thread = threading.Thread(target=proxy, args=(listener,))
        thread.start()
        with (
            client_for("https://api.example.com/v1") as client,
            pytest.raises(TransportError, match="ProxyError") as caught,
        ):
            client.servers.power(1, action="stop")
        thread.join()
    assert not caught.value.outcome_unknown
    assert asked[0].startswith(b"CONNECT api.example.com:443")
    assert KEY.encode() not in asked[0]
    assert "proxy-canary" not in str(caught.value)


@pytest.mark.parametrize("excepted", ["*", "api.example.com", ".example.com"])
def test_https_to_an_excepted_host_goes_past_the_proxy(
    monkeypatch: pytest.MonkeyPatch, excepted: str
) -> None:
    monkeypatch.setenv("https_proxy", "proxy.example:3128")
    monkeypatch.setenv("no_proxy", "other.example")
    assert httpx_connection._proxy("api.example.com") == "http://proxy.example:3128"
    monkeypatch.setenv("no_proxy", excepted)
    assert httpx_connection._proxy("api.example.com") is None


# --- processes


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="there is no fork on this system, so there is nothing to be safe against"
)
def test_a_forked_child_opens_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, really = [], httpx_connection.opened

    def counted(*arguments: Any) -> httpx.BaseTransport:
        opened.append(os.getpid())
        return really(*arguments)

    monkeypatch.setattr(httpx_connection, "opened", counted)
    client, _ = scripted(lambda request: httpx.Response(200, content=OK))
    client.health()
    client.health()
    assert opened == [os.getpid()]
    # Without a real fork, which the test runner's threads would not survive: a child is a process with
    # another id.
    client.transport._pid = -1
    client.health()
    assert len(opened) == 2


def test_making_a_client_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("opened")

    monkeypatch.setattr(httpx, "HTTPTransport", refuse)
    client = Client(KEY, "https://api.example.com/v1")
    assert "api.example.com" in repr(client)
    client.close()


def test_logs_of_all_libraries_at_full_verbosity_hold_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = b'{"server_id": 1, "status": "reinstalling", "root_password": "canary-root-9"}'
    with serving(lambda handler: send(handler, body)) as url, client_for(url) as client:
        assert client.call("get_openapi")["status"] == "reinstalling"
        found = client.servers.ips.set_ptr
        assert found is not None
    assert "httpcore" in {record.name.split(".")[0] for record in caplog.records}
    assert KEY not in caplog.text
    assert "canary" not in caplog.text


def test_a_mock_answers_without_a_socket() -> None:
    client, script = scripted(answer(200, {"status": "ok", "time": "2026-01-01T00:00:00Z", "version": "1"}))
    assert client.health().status == "ok"
    assert str(script.requests[0].url) == "https://api.example.com/v1/health"


def test_a_forgotten_client_closes_its_connections() -> None:
    closed = []

    class Watched(httpx.MockTransport):
        def close(self) -> None:
            closed.append(True)

    client = Client(
        KEY, "https://api.example.com/v1", transport=Watched(lambda request: httpx.Response(200, content=OK))
    )
    client.health()
    assert closed == []
    del client
    gc.collect()
    assert closed == [True]
