"""Locks between the processes of one user on this machine, and short notes under a lock, as files of the
private directory (:mod:`~pulumi_hosting.client.private_directory`).

A purchase stops when its lock cannot be taken. The notes are a help only: without them (another machine, a
new CI job) a run finds less and stops earlier. Names are hashes of account id, mode, base URL and purpose.
"""

import errno
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.private_directory import LocalFilesError as LocalFilesError
from pulumi_hosting.client.private_directory import check_platform as check_platform
from pulumi_hosting.client.private_directory import directory as directory
from pulumi_hosting.client.private_directory import name_of, refuse_unsafe, unusable
from pulumi_hosting.session.key_owner import account

_POLL = 0.05  # seconds between two attempts to get a lock
_PAGE = 4096  # bytes


class LockTimeout(LocalFilesError):
    """Another process of this user held a lock for longer than this one was ready to wait. Nothing was
    sent."""


def account_scope(client: Client) -> str:
    """What separates the files of one account from another's: a hash of account id, mode and base URL. Asks
    for the account once per client; raises what that request raises."""
    me = account(client)
    return name_of(str(me.account_id), "live" if me.livemode else "test", client.base_url)


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
    refuse_unsafe(path)
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
            raise unusable(path, error) from None
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


def read(scope: str, purpose: str, *, survives: bool = True, kind: str = "json") -> dict[str, Any]:
    """The note that was written last for ``purpose``; empty if there is none. ``survives``, ``kind``: as it
    was written. Raises :class:`LocalFilesError`."""
    path = _path(scope, purpose, kind)
    refuse_unsafe(path)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            text = file.read()
        # a machine that lost its power leaves the file empty, or NUL bytes
        found = json.loads(text) if survives or text.strip("\0") else {}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise unusable(path, error) from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise LocalFilesError(f"{path} is damaged. Next: delete that file and run again")
    return found


def write(
    scope: str, purpose: str, values: Mapping[str, Any], *, survives: bool = True, kind: str = "json"
) -> None:
    """Replace the note for ``purpose`` in one step, so that a crash leaves the old one or the new one. Call
    it with the lock held. No secrets. ``kind``: the ending of the file's name. Raises
    :class:`LocalFilesError`.

    ``survives``: whether the note must outlast a loss of power, so that it is waited for until it is on the
    disk. One that only processes of this moment read, and that fits into a page of memory, need not.
    """
    path = _path(scope, purpose, kind)
    refuse_unsafe(path)
    text = json.dumps(dict(values), sort_keys=True)
    if survives or len(text) > _PAGE:
        _replace(path, text)
    else:
        _overwrite(path, text)


def remove(scope: str, purpose: str, *, kind: str = "json") -> None:
    """Remove the note for ``purpose``, if there is one. Raises :class:`LocalFilesError`."""
    path = _path(scope, purpose, kind)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from None


def any_of(kind: str) -> bool:
    """Whether there is a note of this kind, of any account. Raises :class:`LocalFilesError`."""
    return next(directory().glob(f"*.{kind}"), None) is not None


def _overwrite(path: Path, text: str) -> None:
    """In one call, which a signal does not divide, and with nothing left of a longer text."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            before = os.fstat(file).st_size
            if before <= _PAGE:
                data = text.ljust(before).encode()
                if os.pwrite(file, data, 0) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)
    except OSError as error:
        raise unusable(path, error) from None
    if before > _PAGE:
        _replace(path, text)


def _replace(path: Path, text: str) -> None:
    made: str | None = None
    try:
        # mode 0600, never through a symbolic link
        file, made = tempfile.mkstemp(prefix=path.stem, suffix=".new", dir=path.parent)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(made, path)
    except OSError as error:
        if made is not None:
            with suppress(OSError):
                os.unlink(made)
        raise unusable(path, error) from None


def _path(scope: str, purpose: str, kind: str) -> Path:
    return directory() / f"{name_of(scope, purpose)}.{kind}"
