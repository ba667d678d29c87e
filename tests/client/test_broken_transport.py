"""A connection that breaks at every place: always a typed outcome, never a second mutation."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import TransportError
from tests.client.support import KEY, FakeTime

BODY = b'{"id": 2, "ptr": "host.example.com"}'
WHOLE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-ID: r1\r\nContent-Length: %d\r\n\r\n%s"
) % (len(BODY), BODY)
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"1\r\n%c\r\n" % byte for byte in BODY)
    + b"0\r\n\r\n"
)


@contextmanager
def raw_server(talk: Callable[[socket.socket, int], None]) -> Iterator[tuple[str, list[int]]]:
    """Takes one request per connection, then lets ``talk`` answer as badly as it likes; yields the base URL
    and the connections so far.
    """
    connections: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connections.append(len(connections))
                    received = b""
                    while b"\r\n\r\n" not in received or not received.rstrip().endswith(b"}"):
                        part = connection.recv(65536)
                        if not part:
                            break
                        received += part
                    talk(connection, connections[-1])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", connections
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def client_for(url: str) -> Client:
    time = FakeTime()
    return Client(KEY, url, sleep=time.sleep, timeout=10, deadline=60)


@pytest.mark.parametrize("answer", [WHOLE, CHUNKED], ids=["length", "chunked"])
def test_an_answer_cut_at_every_byte_is_an_unknown_outcome_and_one_request(answer: bytes) -> None:
    with (
        raw_server(lambda connection, number: connection.sendall(answer[:number])) as (url, connections),
        client_for(url) as client,
    ):
        for sent in range(len(answer)):
            with pytest.raises(TransportError) as caught:
                client.servers.ips.set_ptr(1, 2, domain="host.example.com")
            assert caught.value.outcome_unknown
            assert len(connections) == sent + 1
        assert client.servers.ips.set_ptr(1, 2, domain="host.example.com").ptr == "host.example.com"


@pytest.mark.parametrize("answer", [WHOLE, CHUNKED], ids=["length", "chunked"])
def test_an_answer_in_pieces_of_one_byte_is_an_answer(answer: bytes) -> None:
    def talk(connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in answer:
            connection.sendall(bytes([byte]))

    with raw_server(talk) as (url, _), client_for(url) as client:
        assert client.servers.ips.set_ptr(1, 2, domain="host.example.com").id == 2


def test_a_connection_that_is_reset_is_an_unknown_outcome() -> None:
    def talk(connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    with raw_server(talk) as (url, connections), client_for(url) as client:
        with pytest.raises(TransportError) as caught:
            client.servers.ips.set_ptr(1, 2, domain="host.example.com")
        assert caught.value.outcome_unknown
        assert len(connections) == 1


@pytest.mark.parametrize(
    "nonsense",
    [
        WHOLE.replace(b"Content-Length: %d" % len(BODY), b"Content-Length: -1"),
        WHOLE.replace(b"Content-Length: %d" % len(BODY), b"Content-Length: 1, 2"),
        WHOLE.replace(b"Content-Length: %d" % len(BODY), b"Content-Length: 99999999"),
        WHOLE.replace(b"200 OK", b"abc OK"),
        WHOLE.replace(b"X-Request-ID: ", b"X-Request-ID: " + b"x" * 200_000),
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
    ids=[
        "negative length",
        "two lengths",
        "too long",
        "status",
        "header",
        "TLS alert",
        "ssh",
        "only continue",
    ],
)
def test_a_response_that_is_not_http_is_a_transport_error(nonsense: bytes) -> None:
    with (
        raw_server(lambda connection, number: connection.sendall(nonsense)) as (url, connections),
        client_for(url) as client,
    ):
        with pytest.raises(TransportError) as caught:
            client.servers.ips.set_ptr(1, 2, domain="host.example.com")
        assert caught.value.outcome_unknown
        assert len(connections) == 1
