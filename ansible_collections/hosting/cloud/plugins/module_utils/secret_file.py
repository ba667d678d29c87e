# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Secrets that the service shows once, kept in private files. A registered variable would print or mask
them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .json_types import Json

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.client.exceptions import InvalidInput


class SecretFile:
    """A file of mode 0600 that holds one secret. If it exists, the secret is known."""

    def __init__(self, option: str, path: str) -> None:
        self.option = option
        self.path = Path(os.path.expandvars(os.path.expanduser(path)))

    @property
    def exists(self) -> bool:
        return self.path.is_file()

    def keep(self, secret: str | None, mode: str, warn: Callable[[str], None]) -> None:
        """Write the secret. One of a test key is not written: it belongs to nothing, and would be taken for a
        real one later."""
        if secret and mode == "test":
            reason = "what it would hold is only simulated"
            warn(f"{self.option}: {self.path} is not written with a test key, since {reason}")
        elif secret:
            if self.exists and not self._holds(secret):
                former = self.path.with_name(f"{self.path.name}.{self.path.stat().st_mtime_ns}")
                os.replace(self.path, former)
                warn(f"{self.option}: {self.path} held another secret, which is kept in {former}")
            write_privately(self.path, secret)

    def _holds(self, secret: str) -> bool:
        with suppress(OSError):  # a file that cannot be read is kept, as one with another secret
            return self.path.read_bytes().strip() == secret.encode()
        return False

    def in_diff(self, result: Json) -> Json:
        """The result of a task that writes the file, which its difference shows."""
        diff = result.get("diff") or {"before": {}, "after": {}}
        return {**result, "diff": {**diff, "after": {**diff["after"], self.option: str(self.path)}}}

    def must_be_writable(self) -> None:
        """Raise ``InvalidInput`` for the option before a secret is made that cannot be kept."""
        folder = self.path.parent
        if not folder.is_dir():
            raise InvalidInput({self.option: f"there is no directory {folder}"})
        try:
            if self.path.is_dir():
                raise IsADirectoryError
            handle, draft = tempfile.mkstemp(prefix=".", dir=folder)
            os.close(handle)
            os.unlink(draft)
        except OSError:
            raise InvalidInput({self.option: f"{self.path} cannot be written"}) from None


def write_privately(path: Path, text: str) -> None:
    """Write a file of mode 0600 in one step: no reader sees half of it, and two writers do not mix."""
    handle, draft = tempfile.mkstemp(prefix=".", dir=path.parent)  # 0600 from the first byte
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
