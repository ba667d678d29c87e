"""Ports for processes that are told which one to listen on."""

import secrets
import socket
from contextlib import suppress

_NEVER_GIVEN_OUT = range(20_000, 32_768)
"""Below those that the kernel gives to connections and to servers that ask for any port."""


def free_port() -> int:
    """A port of 127.0.0.1 at which nothing listens. No other process gets it by chance before the one that is
    told it listens, or while that one is started again.
    """
    while True:
        port = secrets.choice(_NEVER_GIVEN_OUT)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
