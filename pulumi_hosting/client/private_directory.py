"""The private directory for small files that the processes of one user on this machine share: locks, notes,
windows of the rate limit. It is the first of:

1. ``HOSTING_RUNTIME_DIR``;
2. ``pulumi-hosting`` below ``XDG_RUNTIME_DIR``, if that directory belongs to this user;
3. ``pulumi-hosting-<uid>`` below the directory for temporary files.

It belongs to this user and has mode 0700, the files have mode 0600; a symbolic link in place of either is
refused. Names are hashes. No API key goes into a name or a file.
"""

import errno
import hashlib
import os
import stat
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from pulumi_hosting.client.call_errors import HostingError


class LocalFilesError(HostingError):
    """The private directory or a file in it cannot be used safely. Nothing was sent."""


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


def directory() -> Path:
    """The private directory, made if it is missing. Raises :class:`LocalFilesError`."""
    check_platform()
    path = _location(os.environ.get("HOSTING_RUNTIME_DIR"), os.environ.get("XDG_RUNTIME_DIR"))
    try:
        try:
            found = path.lstat()
        except FileNotFoundError:
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


def name_of(*parts: str) -> str:
    """The name of a file about ``parts``, which it does not show."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def refuse_unsafe(path: Path) -> None:
    """Raise :class:`LocalFilesError` if something else than a file of this user is in its place."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable(path, error) from None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise LocalFilesError(f"{path} is not a file of this user. Next: remove it and run again")


def unusable(path: Path, error: OSError) -> LocalFilesError:
    """What a failed operation on a file means, and what to do about it."""
    kind = "a directory that only this user can write to"
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
        kind, reason = "a directory on a local disk", f"its file system has no locks ({reason})"
    step = f"set HOSTING_RUNTIME_DIR to {kind}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        step = "free some space there"
    return LocalFilesError(f"cannot use the file {path}: {reason}. Next: {step}")


def process_runs(pid: int) -> bool:
    """Whether a process of this machine, of any user, still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


@lru_cache(maxsize=8)
def _location(chosen: str | None, runtime: str | None) -> Path:
    """Where these two variables put it: worked out once, since each request asks."""
    if chosen:
        return Path(chosen).absolute()
    # sudo and su may leave another user's directory in the variable.
    is_usable = runtime and os.path.isabs(runtime) and os.path.isdir(runtime)
    if runtime and is_usable and os.stat(runtime).st_uid == os.geteuid():
        return Path(runtime, "pulumi-hosting")
    import tempfile  # slow to load, and rarely needed

    return Path(tempfile.gettempdir(), f"pulumi-hosting-{os.geteuid()}")
