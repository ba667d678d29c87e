"""Where state lives: a directory in the layout of Pulumi's own file backend, so that `pulumi login file://DIR` reads the same stacks."""

import getpass
import json
import os
import socket
import tempfile
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .errors import ConfigurationError, StackLocked, StackNotFound

DEFAULT_DIRECTORY = ".pulumi-offline"


def backend_directory(environ: Mapping[str, str], project_root: Path) -> Path:
    """PULUMI_BACKEND_URL where it is `file://DIR` (`file://~` is the home directory); `.pulumi-offline` beside Pulumi.yaml without it."""
    url = environ.get("PULUMI_BACKEND_URL", "")
    if not url:
        return project_root / DEFAULT_DIRECTORY
    parts = urlsplit(url)
    if parts.scheme != "file":
        raise ConfigurationError(f"the offline engine keeps state in files: PULUMI_BACKEND_URL must be file://DIR, not {parts.scheme}://…")
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
        """Raises `ConfigurationError` when there is such a stack already."""
        if self.exists(stack):
            raise ConfigurationError(f"stack '{stack}' already exists; select it with `stack select {stack}`")

    def create(self, stack: str) -> None:
        self.check_new(stack)
        _make_private(self._root)
        meta = self._root / "meta.yaml"
        if not meta.exists():
            meta.write_text("version: 1\n")
        self.write(stack, None)

    def read(self, stack: str) -> dict[str, Any] | None:
        """The deployment as saved, None for a stack that never had one."""
        try:
            data = json.loads(self.stack_file(stack).read_text())
        except FileNotFoundError:
            raise StackNotFound(f"no stack named '{stack}' found; create it with `stack init {stack}`") from None
        except ValueError as error:
            raise ConfigurationError(f"{self.stack_file(stack)} is not valid JSON: {error}") from None
        latest: dict[str, Any] | None = data.get("checkpoint", {}).get("latest")
        return latest

    def write(self, stack: str, deployment: str | None) -> None:
        """Save a deployment, given as JSON text. A reader, or a kill at any time, meets either the old file or the new one, whole."""
        name = json.dumps(f"organization/{self.project}/{stack}")
        latest = f', "latest": {deployment}' if deployment is not None else ""
        write_private(self.stack_file(stack), f'{{"version": 3, "checkpoint": {{"stack": {name}{latest}}}}}\n')

    def remove(self, stack: str) -> None:
        self.stack_file(stack).unlink(missing_ok=True)
        if self.selected() == stack:
            self._selection().unlink(missing_ok=True)

    # The stack that commands without --stack mean.

    def _selection(self) -> Path:
        return self._root / "offline" / f"{self.project}.json"

    def selected(self) -> str | None:
        try:
            name = json.loads(self._selection().read_text()).get("stack")
        except (OSError, ValueError):
            return None
        return str(name) if name else None

    def select(self, stack: str) -> None:
        if not self.exists(stack):
            raise StackNotFound(f"no stack named '{stack}' found; create it with `stack init {stack}`")
        write_private(self._selection(), json.dumps({"stack": stack}))

    # Locks. They outlive a killed engine on purpose: somebody must look before the next one goes on.

    def lock_directory(self, stack: str) -> Path:
        return self._root / "locks" / "organization" / self.project / stack

    def lock(self, stack: str) -> "Lock":
        lock = Lock(self.lock_directory(stack))
        lock.check()
        lock.take()
        try:
            lock.check()
        except StackLocked:
            lock.release()
            raise
        return lock

    def break_locks(self, stack: str) -> int:
        """Remove every lock of the stack; how many there were."""
        locks = sorted(self.lock_directory(stack).glob("*.json"))
        for path in locks:
            path.unlink(missing_ok=True)
        return len(locks)


class Lock:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / f"{uuid.uuid4()}.json"

    def check(self) -> None:
        others = [path for path in sorted(self._directory.glob("*.json")) if path != self._path]
        if not others:
            return
        lines = [
            f"the stack is currently locked by {len(others)} lock(s). Either wait for the other process(es) to end or delete the lock file "
            "with `pulumi cancel`."
        ]
        for path in others:
            try:
                holder = json.loads(path.read_text())
            except (OSError, ValueError):
                holder = {}
            who = f"{holder.get('username', '?')}@{holder.get('hostname', '?')} (pid {holder.get('pid', '?')})"
            lines.append(f"  file://{path}: created by {who} at {holder.get('timestamp', '?')}")
        raise StackLocked("\n".join(lines))

    def take(self) -> None:
        holder = {
            "pid": os.getpid(),
            "username": _user(),
            "hostname": socket.gethostname(),
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
        write_private(self._path, json.dumps(holder))

    def release(self) -> None:
        self._path.unlink(missing_ok=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _make_private(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)


def write_private(path: Path, text: str) -> None:
    """Replace a file as a whole, readable by its owner only."""
    _make_private(path.parent)
    # The name must not end in .json: the file backend takes every such file for a stack.
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
