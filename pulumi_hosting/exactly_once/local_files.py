"""Small private files that the processes of one user on this machine share: locks, and short notes under a
lock.

A purchase stops when its lock cannot be taken. The notes are a help only: without them (another machine, a
new CI job) a run finds less and stops earlier. The directory is the first of:

1. ``HOSTING_RUNTIME_DIR``;
2. ``pulumi-hosting`` below ``XDG_RUNTIME_DIR``, if that directory belongs to this user;
3. ``pulumi-hosting-<uid>`` below the directory for temporary files.

It belongs to this user and has mode 0700, the files have mode 0600; a symbolic link in place of either is
refused. Names are hashes of account id, mode, base URL and purpose. No API key goes into a name or a file.
"""

import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.session.key_owner import account

_POLL = 0.05  # seconds between two attempts to get a lock


class LocalFilesError(HostingError):
    """The private directory or a file in it cannot be used safely. Nothing was sent."""


class LockTimeout(LocalFilesError):
    """Another process of this user held a lock for longer than this one was ready to wait. Nothing was
    sent."""


def check_platform() -> None:
    """Raise :class:`LocalFilesError` on a platform whose file locks do not end with the process that holds
    them."""
    try:
        import fcntl  # noqa: F401  # only whether it is there
    except ImportError:
        raise LocalFilesError(
            f"this platform ({sys.platform}) has no POSIX file locks, without which two runs could buy the "
            "same thing. Next: run it on Linux or macOS, on Windows in WSL 2"
        ) from None


def account_scope(client: Client) -> str:
    """What separates the files of one account from another's: a hash of account id, mode and base URL. Asks
    for the account once per client; raises what that request raises."""
    me = account(client)
    return _hash(str(me.account_id), "live" if me.livemode else "test", client.base_url)


def directory() -> Path:
    """The private directory, made if it is missing. Raises :class:`LocalFilesError`."""
    check_platform()
    path = _location()
    try:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700, parents=True)
        found = path.lstat()
    except OSError as error:
        raise LocalFilesError(
            f"cannot make the directory {path} for lock files: {error.strerror or error}. Next: set "
            "HOSTING_RUNTIME_DIR to a directory that only this user can write to"
        ) from None
    problem = None
    if not stat.S_ISDIR(found.st_mode):
        problem = "is not a directory"  # a symbolic link is none either
    elif found.st_uid != os.geteuid():
        problem = f"belongs to user {found.st_uid}, and this is user {os.geteuid()}"
    elif found.st_mode & 0o077:
        problem = f"can be used by others (mode {stat.S_IMODE(found.st_mode):o})"
    if problem is not None:
        raise LocalFilesError(
            f"the directory {path} for lock files {problem}. Next: chmod 700 it, or set "
            "HOSTING_RUNTIME_DIR to another one"
        )
    return path


@contextmanager
def lock(
    scope: str,
    purpose: str,
    timeout: float,
    *,
    on_wait: Callable[[], None] = lambda: None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Hold the lock ``purpose`` (such as ``server 20001``) of an account (``account_scope``), against every
    other thread and process of this user on this machine. A process that ends, however it ends, releases it.
    Not re-entrant.

    ``timeout``: seconds of real time to wait for it. ``on_wait`` is called once if it has to wait; ``check``
    is called between attempts and may raise to end the wait. Raises :class:`LockTimeout`,
    :class:`LocalFilesError`.
    """
    path = _path(scope, purpose, "lock")
    _refuse_unsafe(path)
    from filelock import FileLock, Timeout  # loaded by those who lock, on a platform that can

    # Never a soft lock, which stays behind when its process is killed.
    held = FileLock(path, mode=0o600, fallback_to_soft=False)
    until = time.monotonic() + timeout
    waiting = False
    while True:
        try:
            held.acquire(timeout=0)
            break
        except Timeout:
            pass
        except OSError as error:
            raise _unusable(path, error) from None
        if time.monotonic() >= until:
            raise LockTimeout(
                f"{purpose}: another process on this machine is working on it and did not finish within "
                f"{timeout:.0f} s; nothing was sent. Next: wait for the other run to end, "
                "or end it, then run again"
            )
        if not waiting:
            waiting = True
            on_wait()
        check()
        time.sleep(_POLL)
    try:
        yield
    finally:
        held.release()


def read(scope: str, purpose: str) -> dict[str, Any]:
    """The note that was written last for ``purpose``; empty if there is none. Raises
    :class:`LocalFilesError`."""
    path = _path(scope, purpose, "json")
    _refuse_unsafe(path)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unusable(path, error) from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise LocalFilesError(f"{path} is damaged. Next: delete that file and run again")
    return found


def write(scope: str, purpose: str, values: Mapping[str, Any]) -> None:
    """Replace the note for ``purpose`` in one step, so that a crash leaves the old one or the new one. Call
    it with the lock held. No secrets. Raises :class:`LocalFilesError`."""
    path = _path(scope, purpose, "json")
    _refuse_unsafe(path)
    made: str | None = None
    try:
        # mode 0600, never through a symbolic link
        file, made = tempfile.mkstemp(prefix=path.stem, suffix=".new", dir=path.parent)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            json.dump(dict(values), out, sort_keys=True)
            out.flush()
            os.fsync(out.fileno())
        os.replace(made, path)
    except OSError as error:
        if made is not None:
            with suppress(OSError):
                os.unlink(made)
        raise _unusable(path, error) from None


def process_runs(pid: int) -> bool:
    """Whether a process of this machine, of any user, still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _location() -> Path:
    if chosen := os.environ.get("HOSTING_RUNTIME_DIR"):
        return Path(chosen).absolute()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    # sudo and su may leave another user's directory in the variable.
    if (
        runtime
        and os.path.isabs(runtime)
        and os.path.isdir(runtime)
        and os.stat(runtime).st_uid == os.geteuid()
    ):
        return Path(runtime, "pulumi-hosting")
    return Path(tempfile.gettempdir(), f"pulumi-hosting-{os.geteuid()}")


def _path(scope: str, purpose: str, kind: str) -> Path:
    return directory() / f"{_hash(scope, purpose)}.{kind}"


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _refuse_unsafe(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(path, error) from None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise LocalFilesError(f"{path} is not a file of this user. Next: remove it and run again")


def _unusable(path: Path, error: OSError) -> LocalFilesError:
    kind = "a directory that only this user can write to"
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
        kind, reason = "a directory on a local disk", f"its file system has no locks ({reason})"
    return LocalFilesError(f"cannot use the file {path}: {reason}. Next: set HOSTING_RUNTIME_DIR to {kind}")
