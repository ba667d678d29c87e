"""timeout and deadline bound a call whatever the peer does: real sockets, real time, peers that would hold a
call for ever.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import TimedOut, TransportError
from tests.client.support import KEY

SOON = 30.0
"""Seconds in which a call has ended, also on a busy machine. Its peer would hold it for ever."""

Talk = Callable[[socket.socket, threading.Event], None]


@contextmanager
def peer(talk: Talk) -> Iterator[str]:
    """A server that lets ``talk`` speak to each connection until the test is over; yields its base URL."""
    over = threading.Event()
    threads: list[threading.Thread] = []
    connections: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                talk(connection, over)
            except OSError:
                return  # the client hung up

    def accept() -> None:
        while not over.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for connection in connections:
                # Ends a handshake whose client left before it began.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def drip(first: bytes, again: bytes, pause: float = 0.05) -> Talk:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(first)
        while not over.wait(pause):
            connection.sendall(again)

    return talk


def never_read(connection: socket.socket, over: threading.Event) -> None:
    over.wait()


PEERS = {
    "slow headers": drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
    "slow status": drip(b"HTTP/1.1 200 ", b"O"),
    "endless 100": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.0005),
    "slow 103": drip(b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
    "slow body": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
    "slow chunks": drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "silence": never_read,
}


@pytest.mark.parametrize("name", PEERS)
def test_an_attempt_ends_with_its_timeout(name: str) -> None:
    with peer(PEERS[name]) as url, Client(KEY, url, timeout=0.2, deadline=60) as client:
        began = time.monotonic()
        with pytest.raises(TimedOut, match="may have been processed") as caught:
            client.servers.power(1, action="stop")
        assert time.monotonic() - began < SOON
        assert caught.value.attempts == 1


@pytest.mark.parametrize("name", PEERS)
def test_a_call_ends_with_its_deadline(name: str) -> None:
    with peer(PEERS[name]) as url, Client(KEY, url, timeout=0.2, deadline=0.6) as client:
        began = time.monotonic()
        with pytest.raises(TimedOut) as caught:
            client.me()
        assert caught.value.attempts <= 3  # of 0.2 seconds each
        assert time.monotonic() - began < SOON


def test_a_large_request_to_a_peer_that_does_not_read_ends_too() -> None:
    with peer(never_read) as url, Client(KEY, url, timeout=0.2, deadline=0.5) as client:
        began = time.monotonic()
        with pytest.raises(TimedOut):
            client.servers.update(1, notes="x" * 60_000)
        assert time.monotonic() - began < SOON


def test_a_handshake_that_does_not_end_is_ended(certificate: tuple[Path, Path]) -> None:
    with (
        peer(drip(b"", b"\x16\x03\x03")) as url,
        Client(
            KEY, url.replace("http:", "https:"), timeout=0.2, deadline=0.5, ca_file=certificate[0]
        ) as client,
    ):
        began = time.monotonic()
        with pytest.raises(TransportError) as caught:
            client.servers.power(1, action="stop")
        assert not caught.value.outcome_unknown
        assert time.monotonic() - began < SOON


def test_slow_headers_inside_of_tls_are_cut_off(certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def talk(connection: socket.socket, over: threading.Event) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x")(secure, over)

    with (
        peer(talk) as url,
        Client(
            KEY, url.replace("http:", "https:"), timeout=0.5, deadline=1, ca_file=certificate[0]
        ) as client,
    ):
        began = time.monotonic()
        with pytest.raises(TimedOut):
            client.health()
        assert time.monotonic() - began < SOON
