"""Saves state in a directory with the layout of Pulumi's file backend:

`pulumi login file://DIR` reads the same stacks.
"""

import contextlib
import getpass
import json
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..errors import InvalidConfiguration, StackLocked, StackNotFound
from ..model.property_values import Properties
from .deployment_json import problem_of

DEFAULT_DIRECTORY = ".pulumi-offline"


def backend_directory(environ: Mapping[str, str], project_root: Path) -> Path:
    """The directory of PULUMI_BACKEND_URL (`file://DIR`; `file://~` is the home directory).

    Without the variable: `.pulumi-offline` beside Pulumi.yaml.
    """
    url = environ.get("PULUMI_BACKEND_URL", "")
    if not url:
        return project_root / DEFAULT_DIRECTORY
    parts = urlsplit(url)
    if parts.scheme != "file":
        raise InvalidConfiguration(
            "the offline engine keeps state in files: PULUMI_BACKEND_URL must be "
            f"file://DIR, not {parts.scheme}://…"
        )
    return Path(unquote(parts.netloc + parts.path)).expanduser()


class Backend:
    """The stacks of one project in one directory."""

    def __init__(self, directory: Path, project: str) -> None:
        self.directory = directory
        self.project = project
        self._root = directory / ".pulumi"

    def stack_file(self, stack: str) -> Path:
        return self._root / "stacks" / self.project / f"{stack}.json"

    def stacks(self) -> list[str]:
        return sorted(path.stem for path in (self._root / "stacks" / self.project).glob("*.json"))

    def exists(self, stack: str) -> bool:
        return self.stack_file(stack).exists()

    def check_new(self, stack: str) -> None:
        """Raises `InvalidConfiguration` when there is such a stack already."""
        if self.exists(stack):
            raise InvalidConfiguration(
                f"stack '{stack}' already exists; select it with `stack select {stack}`"
            )

    def check_known(self, stack: str) -> None:
        """Raises `StackNotFound` when there is no such stack."""
        if not self.exists(stack):
            raise _not_found(stack)

    def create(self, stack: str) -> None:
        self.check_new(stack)
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        meta = self._root / "meta.yaml"
        if not meta.exists():
            meta.write_text("version: 1\n")
        self.write(stack, None)

    def read(self, stack: str) -> Properties | None:
        """The saved deployment; None for a stack that never had one.

        Raises `InvalidConfiguration` for an invalid file.
        """
        file = self.stack_file(stack)
        try:
            data = json.loads(file.read_bytes())
        except FileNotFoundError:
            raise _not_found(stack) from None
        except (ValueError, RecursionError) as error:
            raise self.unreadable(stack, f"not valid JSON: {' '.join(str(error).split())}") from None
        except OSError as error:
            raise InvalidConfiguration(f"the state {file} cannot be read: {error.strerror}") from None
        checkpoint = data.get("checkpoint") if isinstance(data, dict) else None
        if not isinstance(checkpoint, dict):
            raise self.unreadable(stack, "it has no checkpoint")
        if data.get("version") != 3:
            raise self.unreadable(stack, "it is not of version 3, the only one that the offline engine reads")
        latest: Properties | None = checkpoint.get("latest")
        if latest is not None and (problem := problem_of(latest)):
            raise self.unreadable(stack, problem)
        return latest

    def unreadable(self, stack: str, problem: str) -> InvalidConfiguration:
        """The error for an invalid state: what is wrong, and which file can replace it."""
        file = self.stack_file(stack)
        saved = Path(f"{file}.bak")
        copy = f"{saved} is the state one save earlier" if saved.exists() else "put a good copy in its place"
        return InvalidConfiguration(
            f"{file} is not a stack's state: {problem}. Nothing was changed. Next: {copy}"
        )

    def write(self, stack: str, deployment: str | None) -> None:
        """Save a deployment, given as JSON text.

        At any time, also after a kill, the file is complete: the old or the new one.
        """
        name = json.dumps(f"organization/{self.project}/{stack}")
        latest = f', "latest": {deployment}' if deployment is not None else ""
        file = self.stack_file(stack)
        write_private(
            file, f'{{"version": 3, "checkpoint": {{"stack": {name}{latest}}}}}\n', backup=Path(f"{file}.bak")
        )

    def remove(self, stack: str) -> None:
        file = self.stack_file(stack)
        file.unlink(missing_ok=True)
        Path(f"{file}.bak").unlink(missing_ok=True)
        if self.selected() == stack:
            self._selection().unlink(missing_ok=True)

    # The stack that commands without --stack use.

    def _selection(self) -> Path:
        return self._root / "offline" / f"{self.project}.json"

    def selected(self) -> str | None:
        name = _object_in(self._selection()).get("stack")
        return name if isinstance(name, str) and name else None

    def select(self, stack: str) -> None:
        self.check_known(stack)
        write_private(self._selection(), json.dumps({"stack": stack}))

    # Locks. They outlive a killed engine on purpose: the user must check what it did before the next
    # operation.

    def lock_directory(self, stack: str) -> Path:
        return self._root / "locks" / "organization" / self.project / stack

    @contextlib.contextmanager
    def locked(self, stack: str) -> Iterator[None]:
        """Hold the stack's lock. Raises `StackLocked` if there is another one, `StackNotFound` if there is no
        such stack.
        """
        self.check_known(stack)
        own = self.lock_directory(stack) / f"{uuid.uuid4()}.json"
        _refuse_others(own)
        holder = {
            "pid": os.getpid(),
            "username": _user(),
            "hostname": socket.gethostname(),
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
        write_private(own, json.dumps(holder))
        try:
            _refuse_others(own)
            yield
        finally:
            own.unlink(missing_ok=True)

    def break_locks(self, stack: str) -> int:
        """Remove every lock of the stack; how many there were."""
        locks = sorted(self.lock_directory(stack).glob("*.json"))
        for path in locks:
            path.unlink(missing_ok=True)
        return len(locks)


def _refuse_others(own: Path) -> None:
    """Raises `StackLocked` if there is another lock beside this one."""
    others = [path for path in sorted(own.parent.glob("*.json")) if path != own]
    if not others:
        return
    lines = [
        f"the stack is currently locked by {len(others)} lock(s). Either wait for the other process(es) "
        "to end or delete the lock file with `pulumi-hosting offline cancel`."
    ]
    for path in others:
        known = _object_in(path)
        user, host, pid, at = (known.get(key, "?") for key in ("username", "hostname", "pid", "timestamp"))
        lines.append(f"  file://{path}: created by {user}@{host} (pid {pid}) at {at}")
    raise StackLocked("\n".join(lines))


def _object_in(file: Path) -> Properties:
    """The JSON object in a file; an empty one if there is none that can be read."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def write_private(path: Path, text: str, *, backup: Path | None = None) -> None:
    """Replace a file atomically, readable by its owner only, synced to the disk.

    ``backup`` becomes its old content.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The name must not end in .json: the file backend takes every such file for a stack.
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".tmp", dir=path.parent)
    copy = f"{temporary}.bak"
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if backup is not None and path.exists():
            os.replace(shutil.copy2(path, copy), backup)
        os.replace(temporary, path)
        _sync_directory(path.parent)
    except BaseException:
        for left in (temporary, copy):
            Path(left).unlink(missing_ok=True)
        raise


def _sync_directory(directory: Path) -> None:
    """Sync the new name, so that it survives a power cut."""
    try:
        handle = os.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return  # this system cannot open directories
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _not_found(stack: str) -> StackNotFound:
    return StackNotFound(
        f"no stack named '{stack}' found. Next: run `pulumi-hosting offline stack init {stack}`"
    )
