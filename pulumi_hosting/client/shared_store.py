"""The one store for small values that processes share: the windows of the rate limit, locks, notes, the
journal of purchases, the memory of a run and its snapshots.

:class:`SharedStore` is the interface. :class:`Files` keeps each value in a file of mode 0600, and never
follows a symbolic link. A process that is killed leaves the old value or the new one, and releases its locks.
The other one, for many machines, is :mod:`~pulumi_hosting.client.redis_store`: there a lock is a lease, and
:func:`time_to_write` says before each write whether it still lasts.
"""

import errno
import fnmatch
import json
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from pulumi_hosting.client.private_directory import (
    LocalFilesError,
    directory,
    process_runs,
    refuse_unsafe,
    unusable,
)

T = TypeVar("T")

HELD_SECONDS = 30.0
"""The lock of an open value is held for much less than a millisecond. On a busy machine some of a hundred
processes wait for several seconds all the same; this long only if a stopped one holds it."""
_LARGEST = 1024 * 1024
_POLL = 0.05  # seconds between two attempts to get a lock
_LONGEST_PAUSE = 1.0  # seconds of a wait after which is checked whether the run was cancelled
_PAGE = 4096  # bytes


class LockTimeout(LocalFilesError):
    """Another process of this user held a lock for longer than this one was ready to wait. Nothing was
    sent."""


class StoreUnavailable(LocalFilesError):
    """The shared store does not answer. What was to be done was not sent to the service."""


class StoreRefused(StoreUnavailable):
    """The shared store refuses this user or password: waiting does not help."""


class LeaseLost(LocalFilesError):
    """A lock of the shared store may have ended before a write was sent. The write was not sent."""


class Lease(Protocol):
    """A lock that ends if it is not renewed."""

    def left(self) -> float:
        """The seconds for which it certainly lasts, less a margin."""
        ...


held_leases: ContextVar[tuple[Lease, ...]] = ContextVar("held_leases", default=())
"""Those of this thread."""


def time_to_write(at_least: float) -> float:
    """The seconds within which a write has to end that this thread sends now: those of its leases. Without
    one, there is no end. Raises :class:`LeaseLost` if that is less than ``at_least``."""
    left = min((lease.left() for lease in held_leases.get()), default=float("inf"))
    if left < at_least:
        raise LeaseLost(
            "this run was held up for longer than its lock in the shared store lasts; nothing was sent. "
            "Next: run again"
        )
    return left


Change = Callable[[bytes, float], tuple[bytes, T, Sequence[str]]]
"""What is kept (empty at first) and the time → what to keep, what to return, and whom to wake."""


class OpenValue(Protocol):
    """A value that is changed with every request."""

    def update(self, change: Change[T], now: float) -> T:
        """Replace the value, while no one else does. ``now`` is the caller's time; a store of several
        machines takes its own. ``change`` may be called again if others were faster. Raises ``OSError``
        (``TimeoutError`` among them), ``LocalFilesError``."""
        ...

    def close(self) -> None:
        """Release what is open. The next ``update`` opens it again."""


class SharedStore(ABC):
    """Values under names. A value is not a secret, and a name tells nothing of one.

    ``survives``, in the methods: whether a value must outlast a loss of power, so that it is waited for until
    it is on the disk. One that only processes of this moment read need not.

    - ``where``: of which processes the values are, for messages. ``wakes``: whether :meth:`pause` can end
      early. ``held_for``: seconds for which a process that was killed keeps its locks.
    - ``spans_machines``: whether processes of several machines may share it, whose clocks differ.
    - ``process``: the number of this process among those that share the store.
    """

    where: ClassVar[str] = "on this machine"
    wakes: ClassVar[bool] = False
    spans_machines: ClassVar[bool] = False
    held_for: ClassVar[float] = 0.0

    @property
    def process(self) -> int:
        return os.getpid()

    def living(self) -> Callable[[int], bool]:
        """Whether the process with that number still runs."""
        return process_runs

    def pause(self, name: str, seconds: float) -> bool:
        """Wait for that long, or until ``name`` is woken. Whether it was."""
        time.sleep(seconds)
        return False

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """What was written last; None if there is nothing. Needs no lock."""

    @abstractmethod
    def write(self, name: str, data: bytes, *, survives: bool = False) -> None:
        """Replace the value in one step, so that a crash leaves the old one or the new one."""

    @abstractmethod
    def forget(self, name: str) -> None:
        """Remove the value, if there is one."""

    @abstractmethod
    def names(self, pattern: str) -> list[str]:
        """The names of the values that match, such as ``*.order``."""

    @abstractmethod
    def attempts(self, name: str) -> AbstractContextManager[Callable[[], float]]:
        """What takes the lock of a name if it is free: 0.0, or the seconds after which to try again. It is
        held until the end of the context. A process that ends, however it ends, releases it."""

    @abstractmethod
    def open(self, name: str, what: str) -> OpenValue:
        """A value that is changed often, and may be lost. ``what`` it is, for errors."""

    @abstractmethod
    def damaged(self, name: str) -> LocalFilesError:
        """What to say of a value that cannot be read."""

    @contextmanager
    def lock(
        self,
        name: str,
        timeout: float | None = None,
        *,
        what: str = "",
        on_wait: Callable[[], None] = lambda: None,
        check: Callable[[], None] = lambda: None,
    ) -> Iterator[None]:
        """Hold the lock of a name against every other thread and process that shares the store. Not
        re-entrant.

        ``timeout``: seconds of real time to wait for it, None without end; :class:`LockTimeout` then says
        ``what`` is locked. ``on_wait`` is called once if it has to wait; ``check`` is called between attempts
        and may raise to end the wait.
        """
        with self.attempts(name) as take:
            began, waiting = time.monotonic(), False
            again = take()
            while again > 0.0:
                if timeout is not None and time.monotonic() >= began + timeout:
                    raise LockTimeout(
                        f"{what}: another process {self.where} is working on it and did not finish within "
                        f"{timeout:.0f} s; nothing was sent. Next: wait for the other run to end, "
                        "or end it, then run again"
                    )
                if not waiting:
                    waiting = True
                    on_wait()
                check()
                pause = min(again, _LONGEST_PAUSE)
                again = 0.0 if self.pause(f"{name}.lock", pause) else again - pause
                if again <= 0.0:
                    again = take()
            yield

    def note(self, name: str, *, survives: bool = False) -> dict[str, object]:
        """A value that is a JSON object; empty if there is none. ``survives``: as it was written."""
        data = self.read(name)
        # a machine that lost its power leaves a file empty, or NUL bytes
        if data is None or not (survives or data.strip(b"\0")):
            return {}
        with suppress(ValueError):
            found = json.loads(data)
            if isinstance(found, dict):
                return found
        raise self.damaged(name)

    def keep(self, name: str, values: Mapping[str, object], *, survives: bool = False) -> None:
        """Write a value as JSON. Hold a lock if several write it."""
        self.write(name, json.dumps(dict(values)).encode(), survives=survives)

    @contextmanager
    def changing(
        self, name: str, timeout: float | None = None, *, what: str = "", survives: bool = False
    ) -> Iterator[dict[str, Any]]:
        """A JSON object, for one process at a time. Changes of it are kept, unless an error ends them.
        ``timeout``, ``what``: as in :meth:`lock`."""
        with self.lock(name, timeout, what=what):
            values = self.note(name, survives=survives)
            before = json.dumps(values)
            yield values
            if json.dumps(values) != before:
                self.keep(name, values, survives=survives)


@dataclass(frozen=True)
class Files(SharedStore):
    """One file for each value in the private directory (:mod:`~pulumi_hosting.client.private_directory`), or
    in the ``folder`` of a run.

    In the private directory, anything but a file of this user is refused, and :class:`LocalFilesError` says
    what a failure means. The folder of a run has no advice of its own: its failures are ``OSError``.
    """

    folder: Path | None = None

    def read(self, name: str) -> bytes | None:
        path = self.path(name)
        with (
            self._failing(path),
            suppress(FileNotFoundError),
            os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file,
        ):
            return file.read()
        return None

    def write(self, name: str, data: bytes, *, survives: bool = False) -> None:
        path = self.path(name)
        with self._failing(path):
            # Files of a run are large, or read without their lock.
            if survives or self.folder is not None or not _overwritten(path, data):
                _replace(path, data, survives=survives)

    def forget(self, name: str) -> None:
        path = self._directory() / name
        with self._failing(path):
            path.unlink(missing_ok=True)

    def names(self, pattern: str) -> list[str]:
        directory = self._directory()
        with self._failing(directory), suppress(FileNotFoundError):
            return fnmatch.filter(os.listdir(directory), pattern)
        return []

    @contextmanager
    def attempts(self, name: str) -> Iterator[Callable[[], float]]:
        path = self.path(f"{name}.lock")
        from filelock import FileLock, Timeout  # loaded by those who lock, on a platform that can

        # Never a soft lock, which stays behind when its process is killed; but one in the folder of a run is
        # better than none, and ends with the folder.
        lock = FileLock(path, mode=0o600, fallback_to_soft=self.folder is not None)

        def take() -> float:
            with self._failing(path), suppress(Timeout):
                lock.acquire(timeout=0)
                return 0.0
            return _POLL

        try:
            yield take
        finally:
            lock.release()

    def open(self, name: str, what: str) -> "OpenFile":
        return OpenFile(self, name, what)

    def damaged(self, name: str) -> LocalFilesError:
        return LocalFilesError(f"{self.path(name)} is damaged. Next: delete that file and run again")

    def path(self, name: str) -> Path:
        """Where the value is kept. Raises :class:`LocalFilesError` if it may not be."""
        path = self._directory() / name
        if self.folder is None:
            refuse_unsafe(path)
        return path

    def _directory(self) -> Path:
        return self.folder or directory()

    @contextmanager
    def _failing(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self.folder is not None:
                raise
            raise unusable(path, error) from None


class Scope(str):
    """What separates the values of one account from another's, and the ``store`` that has them: by default
    the files of this machine."""

    store: SharedStore = Files()


class OpenFile:
    """A file that stays open, and is locked itself. Opened once per process; a forked child opens its own,
    for a lock belongs to who opened it."""

    def __init__(self, files: Files, name: str, what: str) -> None:
        self._files, self._name, self._what = files, name, what
        self._threads = threading.Lock()
        self._closing: weakref.finalize[[int], OpenFile] | None = None
        self._open()
        # On a platform that can: it warns on others.
        from filelock import lock_descriptor, unlock_descriptor

        self._lock, self._unlock = partial(lock_descriptor, blocking=False), unlock_descriptor

    def update(self, change: Change[T], now: float) -> T:
        if self._pid != os.getpid():
            self._threads = threading.Lock()  # a thread of the parent may have held it
        with self._threads:
            file = self._locked()
            try:
                before = os.pread(file, _LARGEST, 0)
                after, result, _ = change(before, now)
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
        until, pause = time.monotonic() + HELD_SECONDS, 0.0002
        while not self._lock(self._file):
            if time.monotonic() > until:
                raise TimeoutError(f"another process holds the file of {self._what}")
            # from half to all of it; the generator of the module random is the program's
            time.sleep(pause * (0.5 + os.urandom(1)[0] / 510))
            pause = min(pause * 2, 0.01)
        return self._file

    def _open(self) -> None:
        self._close()
        path = self._files.path(self._name)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        self._pid = os.getpid()
        self._closing = weakref.finalize(self, _close, self._file)

    def _close(self) -> None:
        if self._closing is not None:
            self._closing()
        self._closing = None


def _close(file: int) -> None:
    with suppress(OSError):
        os.close(file)


def _overwritten(path: Path, data: bytes) -> bool:
    """Write in one call, which a signal does not divide, and with nothing left of a longer text. False if the
    old or the new one does not fit into a page of memory, and nothing was written."""
    if len(data) > _PAGE:
        return False
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        before = os.fstat(file).st_size
        if before > _PAGE:
            return False
        data = data.ljust(before)
        if os.pwrite(file, data, 0) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return True
    finally:
        os.close(file)


def _replace(path: Path, data: bytes, *, survives: bool) -> None:
    import tempfile  # slow to load, and not needed for the rate limit

    # mode 0600, never through a symbolic link
    file, made = tempfile.mkstemp(prefix=path.stem, suffix=".new", dir=path.parent)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
            out.flush()
            if survives:
                os.fsync(out.fileno())
        os.replace(made, path)
    except OSError:
        with suppress(OSError):
            os.unlink(made)
        raise
