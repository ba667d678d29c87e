"""Where the windows of a key are kept: a small file that the processes of one user on this machine share, or
the memory of this process where there can be none.

The file is in the private directory, has mode 0600, and is locked with every use. Its name is an HMAC of the
base URL with the API key, so that live and test keys have windows of their own, and nothing tells the key. A
file that cannot be read counts as empty: the next response fills it again.
"""

import hashlib
import hmac
import os
import random
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic_core import from_json, to_json

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.private_directory import directory, refuse_unsafe
from pulumi_hosting.client.rate_limit.windows import KeyWindows

T = TypeVar("T")

LOCKED_SECONDS = 30.0
"""A lock is held for much less than a millisecond. On a busy machine some of a hundred processes wait for
several seconds all the same; this long only where a stopped one holds it."""
_LARGEST = 1024 * 1024
_AHEAD = 5.0  # a file from that many seconds in the future is from before the machine was started again


class Store(Protocol):
    """Gives one caller at a time the windows of a key."""

    def update(self, change: Callable[[KeyWindows], T], now: float) -> T:
        """What ``change`` returns. Raises ``OSError``, ``TimeoutError`` among them."""
        ...

    def close(self) -> None:
        """Release what is open."""


def store_name(api_key: Secret, base_url: str) -> str:
    """What the windows of a key at an address are kept under."""
    secret = api_key.reveal().encode()
    return hmac.new(secret, f"rate limit\0{base_url}".encode(), hashlib.sha256).hexdigest()[:32]


class StateFile:
    """The file. Opened once per process; a forked child opens its own, for a lock belongs to who opened
    it."""

    def __init__(self, name: str) -> None:
        self._path: Path = directory() / f"{name}.rate"
        # On a platform that can: it warns on others.
        from filelock import lock_descriptor, unlock_descriptor

        self._lock, self._unlock = partial(lock_descriptor, blocking=False), unlock_descriptor
        self._threads = threading.Lock()
        self._closing: weakref.finalize[[int], StateFile] | None = None
        self._open()

    def update(self, change: Callable[[KeyWindows], T], now: float) -> T:
        if self._pid != os.getpid():
            self._threads = threading.Lock()  # a thread of the parent may have held it
        with self._threads:
            file = self._locked()
            try:
                before = os.pread(file, _LARGEST, 0)
                windows = _loaded(before, now)
                result = change(windows)
                windows.at = now
                after = to_json(windows.dump())
                if after != before:
                    os.pwrite(file, after, 0)
                    if len(after) < len(before):
                        os.ftruncate(file, len(after))
                return result
            finally:
                self._unlock(file)

    def close(self) -> None:
        with self._threads:
            self._close()

    def _locked(self) -> int:
        if self._pid != os.getpid() or self._closing is None or not os.fstat(self._file).st_nlink:
            self._open()
        until, pause = time.monotonic() + LOCKED_SECONDS, 0.0002
        while not self._lock(self._file):
            if time.monotonic() > until:
                raise TimeoutError("another process holds the file of the rate limit")
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # a pause, not a secret
            pause = min(pause * 2, 0.01)
        return self._file

    def _open(self) -> None:
        self._close()
        directory()
        refuse_unsafe(self._path)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        self._pid = os.getpid()
        self._closing = weakref.finalize(self, _close, self._file)

    def _close(self) -> None:
        if self._closing is not None:
            self._closing()
        self._closing = None


def _close(file: int) -> None:
    with suppress(OSError):
        os.close(file)


def _loaded(content: bytes, now: float) -> KeyWindows:
    try:
        windows = KeyWindows.load(from_json(content))
    except (KeyError, TypeError, ValueError):
        return KeyWindows()
    return windows if windows.at <= now + _AHEAD else KeyWindows()


class Memory:
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


_memories: dict[str, Memory] = {}


def memory(name: str) -> Memory:
    """The one of this process under this name."""
    return _memories.setdefault(name, Memory())
