"""Where the windows of a key are kept: in the store that the processes of one user on this machine share, or
the memory of this process if there can be none.

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
from pulumi_hosting.client.rate_limit.windows import KeyWindows
from pulumi_hosting.client.shared_store import Files

T = TypeVar("T")

_AHEAD = 5.0  # a file from that many seconds in the future is from before the machine was started again


def store_name(api_key: Secret, base_url: str) -> str:
    """What the windows of a key at an address are kept under."""
    secret = api_key.reveal().encode()
    return hmac.new(secret, f"rate limit\0{base_url}".encode(), hashlib.sha256).hexdigest()[:32]


class StateFile:
    """In the store."""

    def __init__(self, name: str) -> None:
        self._value = Files().open(f"{name}.rate", "the rate limit")

    def update(self, change: Callable[[KeyWindows], T], now: float) -> T:
        """What ``change`` returns. Raises ``OSError``, ``TimeoutError`` among them."""

        def changed(content: bytes) -> tuple[bytes, T]:
            windows = _loaded(content, now)
            result = change(windows)
            windows.at = now
            return to_json(windows), result

        return self._value.update(changed)

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

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows = KeyWindows()

    def update(self, change: Callable[[KeyWindows], T], now: float) -> T:
        with self._lock:
            if self._windows.at > now + _AHEAD:
                self._windows = KeyWindows()
            self._windows.at = now
            return change(self._windows)

    def close(self) -> None:
        """Nothing is open."""


WindowStore = StateFile | WindowsInMemory
"""What gives one caller at a time the windows of a key."""
_memories: dict[str, WindowsInMemory] = {}


def memory(name: str) -> WindowsInMemory:
    """The one of this process under this name."""
    return _memories.setdefault(name, WindowsInMemory())
