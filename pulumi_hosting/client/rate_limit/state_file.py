"""Where the windows of a key are kept: in the store that the processes of one user on this machine share, or
those of several machines, or the memory of this process if there can be none.

The name is an HMAC of the base URL with the API key, so that live and test keys have windows of their own,
and nothing tells the key. What cannot be read counts as empty: the next response fills it again.
"""

import hashlib
import hmac
import threading
from collections.abc import Callable
from typing import TypeVar

from pydantic_core import from_json, to_json

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.rate_limit.windows import KeyWindows, Ticket
from pulumi_hosting.client.shared_store import Files, SharedStore

T = TypeVar("T")

_AHEAD = 5.0  # a file from that many seconds in the future is from before the machine was started again


def store_name(api_key: Secret, base_url: str) -> str:
    """What the windows of a key at an address are kept under."""
    secret = api_key.reveal().encode()
    return hmac.new(secret, f"rate limit\0{base_url}".encode(), hashlib.sha256).hexdigest()[:32]


class StateFile:
    """In the store. ``wakes``: whether :meth:`pause` ends when the ticket is granted."""

    wakes = False

    def __init__(self, name: str, values: SharedStore | None = None) -> None:
        self._values, self._name = values or Files(), f"{name}.rate"
        self._value, self.wakes = self._values.open(self._name, "the rate limit"), self._values.wakes

    def update(self, change: Callable[[KeyWindows], T], now: float) -> T:
        """What ``change`` returns; ``windows.at`` tells it the time. Raises ``OSError`` (``TimeoutError``
        among them), ``LocalFilesError``."""

        def changed(content: bytes, now: float) -> tuple[bytes, T, list[str]]:
            windows = _loaded(content, now)
            windows.at = now
            waiting = windows.tickets("waiting") if self.wakes else set()
            result = change(windows)
            granted = waiting & windows.tickets("sent") if waiting else ()
            return to_json(windows), result, [self._waiter(*ticket) for ticket in granted]

        return self._value.update(changed, now)

    def pause(self, ticket: Ticket, seconds: float) -> bool:
        """Wait for that long, or until the ticket is granted. Whether it was. Raises ``LocalFilesError``."""
        return self._values.pause(self._waiter(ticket.number, ticket.pid), seconds)

    def _waiter(self, number: int, pid: int) -> str:
        return f"{self._name}.{pid}.{number}"

    def close(self) -> None:
        self._value.close()


def _loaded(content: bytes, now: float) -> KeyWindows:
    try:
        windows = KeyWindows.load(from_json(content))
    except (KeyError, TypeError, ValueError):
        return KeyWindows()
    return windows if windows.at <= now + _AHEAD else KeyWindows()


class WindowsInMemory:
    """The windows of a key in this process alone."""

    wakes = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows = KeyWindows()

    def update(self, change: Callable[[KeyWindows], T], now: float) -> T:
        with self._lock:
            if self._windows.at > now + _AHEAD:
                self._windows = KeyWindows()
            self._windows.at = now
            return change(self._windows)

    def pause(self, ticket: Ticket, seconds: float) -> bool:
        """Nothing wakes."""
        return False

    def close(self) -> None:
        """Nothing is open."""


WindowStore = StateFile | WindowsInMemory
"""What gives one caller at a time the windows of a key."""
_memories: dict[str, WindowsInMemory] = {}


def memory(name: str) -> WindowsInMemory:
    """The one of this process under this name."""
    return _memories.setdefault(name, WindowsInMemory())
