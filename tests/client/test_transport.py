"""The wire itself: real sockets on loopback where httpx must do the work, scripted answers where no server
would do such a thing.
"""

import gc
import gzip
import logging
import os
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.client import transport
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import (
    ConfigurationError,
    InvalidResponse,
    RedirectRefused,
    TimedOut,
    TransportError,
    Unauthorized,
)
from tests.client.support import KEY, FakeTime, answer, scripted
from tests.support.waiting import HANG_SECONDS

OK = b'{"status": "ok", "time": "2026-01-01T00:00:00Z", "version": "1"}'
Act = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(act: Act, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server on loopback that answers every request by ``act``; yields its base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, ssl.SSLError):
                self.close_connection = True

        def do_GET(self) -> None:
            act(self)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            act(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on standard error."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up is what is tested here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def send(
    handler: BaseHTTPRequestHandler,
    body: bytes = OK,
    status: int = 200,
    length: int | None = None,
    **headers: str,
) -> None:
    handler.send_response(status)
    for name, value in {
        "Content-Type": "application/json",
        "Content-Length": str(len(body) if length is None else length),
        **headers,
    }.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def client_for(url: str, **options: Any) -> Client:
    time = FakeTime()
    return Client(KEY, url, **{"sleep": time.sleep, "deadline": 20, "timeout": 5, **options})


# --- what comes back


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

    monkeypatch.setattr(transport.zlib, "decompressobj", Counting)  # type: ignore[attr-defined]  # the module that transport imported
    with (
        serving(act) as url,
        client_for(url) as client,
        pytest.raises(InvalidResponse, match="larger than 16 MiB"),
    ):
        client.health()
    assert max(unpacked) <= 1024 * 1024
    assert sum(unpacked) <= 18 * 1024 * 1024


def test_an_in_process_answer_is_held_to_the_same_size() -> None:
    client, _ = scripted(httpx.Response(200, content=b" " * (transport.MAX_ANSWER_BYTES + 1)))
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


def test_a_break_is_survived_where_asking_again_does_no_harm() -> None:
    acts = iter([hang_up, stop_short, send])
    with serving(lambda handler: next(acts)(handler)) as url, client_for(url) as client:
        found = client.health()
    assert found.meta is not None
    assert found.meta.attempts == 3


def test_no_listener_is_a_known_outcome() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with (
        client_for(f"http://127.0.0.1:{port}/v1") as client,
        pytest.raises(TransportError, match="ConnectError") as caught,
    ):
        client.servers.power(1, action="stop")
    assert not caught.value.outcome_unknown
    assert f"127.0.0.1:{port}" in str(caught.value)


def test_silence_is_a_timeout() -> None:
    release = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        release.wait(HANG_SECONDS)
        handler.close_connection = True

    with serving(hang) as url, client_for(url, timeout=0.05, deadline=0.1) as client:
        try:
            with pytest.raises(TimedOut, match="ReadTimeout"):
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
    with pytest.raises(TimedOut, match="no whole answer in time"):
        client.health()
    assert time.now < 1012


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


# --- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that only itself vouches for, and its key."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    pem, secret = folder / "cert.pem", folder / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return pem, secret


def test_a_certificate_is_trusted_only_if_its_issuer_is(certificate: tuple[Path, Path]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    with serving(send, server) as url:
        with client_for(url) as client, pytest.raises(ConfigurationError, match=r"not trusted.*ca_file"):
            client.health()
        with client_for(url, ca_file=certificate[0]) as client:
            assert client.health().status == "ok"
        # The certificate names 127.0.0.1 and nothing else.
        other = url.replace("127.0.0.1", "localhost")
        with (
            client_for(other, ca_file=certificate[0]) as client,
            pytest.raises(ConfigurationError, match="not trusted"),
        ):
            client.health()


def test_the_context_is_strict_and_made_once(certificate: tuple[Path, Path]) -> None:
    context = transport.tls_context(None)
    assert context is transport.tls_context(None)
    assert context is not transport.tls_context(str(certificate[0]))
    for one in (context, transport.tls_context(str(certificate[0]))):
        assert one.verify_mode == ssl.CERT_REQUIRED
        assert one.check_hostname
        assert one.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_file_without_certificates_is_a_configuration_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with (
        client_for("https://127.0.0.1:9/v1", ca_file=empty) as client,
        pytest.raises(ConfigurationError, match="ca_file"),
    ):
        client.health()


# --- processes


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="there is no fork on this system, so there is nothing to be safe against"
)
def test_a_forked_child_opens_connections_of_its_own() -> None:
    opened = []

    class Counting(transport.Transport):
        def _open(self) -> httpx.Client:
            opened.append(os.getpid())
            return super()._open()

    client, _ = scripted(lambda request: httpx.Response(200, content=OK))
    wire = client.transport
    client.transport = Counting(wire._settings, wire._clock, wire._transport)
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

    monkeypatch.setattr(httpx, "Client", refuse)
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
