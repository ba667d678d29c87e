# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the snapshot of an account is kept for all tasks and worker processes of a run: a private file for
each part, in the run's own directory.

One process at a time asks the service; the others wait for the file and read it. Nothing in it is a secret.
Where the directory's file system has no locks, each process asks for itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ansible_collections.hosting.cloud.plugins.plugin_utils.private_files import (
    locked,
    read_private,
    write_private,
)

if TYPE_CHECKING:
    from pulumi_hosting.session.account_snapshot import Box, Kept

SNAPSHOT = "hosting.cloud.snapshot-"


class SnapshotFiles:
    """A :class:`~pulumi_hosting.session.account_snapshot.Storage` in ``folder``. ``scope``: what tells the
    account and its key's rights from others; asked for when it is needed."""

    _read: ClassVar[dict[Path, tuple[str, Any, dict[int, tuple[Any, str]]]]] = {}
    """Of this process, by file: the text that was read or written last, what it says, and the texts of its
    objects."""

    def __init__(self, folder: Path, scope: Callable[[], str]) -> None:
        self._folder, self._scope = folder, scope
        self._unshared: dict[Path, Kept] | None = None
        """What this process knows, where nothing can be shared."""

    def load(self, part: str) -> Kept:
        from pulumi_hosting.session.account_snapshot import Kept
        from pulumi_hosting.session.snapshot_text import from_text

        path = self._path(part)
        if self._unshared is not None:
            return self._unshared.get(path) or Kept()
        text = read_private(path)
        if not text:
            return Kept()
        known = self._read.get(path)
        if known is not None and known[0] == text:
            kept: Kept = known[1]
            return kept
        texts: dict[int, tuple[Any, str]] = {}
        try:
            kept = from_text(text, texts)
        except ValueError:  # written by another version, perhaps: it says nothing
            return Kept()
        self._read[path] = (text, kept, texts)
        return kept

    @contextmanager
    def changing(self, part: str) -> Iterator[Box]:
        from pulumi_hosting.session.account_snapshot import Box
        from pulumi_hosting.session.snapshot_text import to_text

        path = self._path(part)
        with self._hold(path):
            box = Box(self.load(part))
            before = box.kept
            yield box
            if self._unshared is not None:
                self._unshared[path] = box.kept
            elif box.kept is not before:
                texts = self._read[path][2] if path in self._read else {}
                text = to_text(box.kept, texts)
                write_private(path, text)
                self._read[path] = (text, box.kept, texts)

    @contextmanager
    def asking(self, part: str) -> Iterator[None]:
        with self._hold(self._path(part).with_suffix(".asking")):
            yield

    @contextmanager
    def _hold(self, path: Path) -> Iterator[None]:
        """Hold the lock of a file, where the file system has locks."""
        with ExitStack() as held:
            if self._unshared is None:
                try:
                    held.enter_context(locked(path))
                except OSError:
                    self._unshared = {}
            yield

    def _path(self, part: str) -> Path:
        name = hashlib.sha256(f"{self._scope()}\0{part}".encode()).hexdigest()[:32]
        return self._folder / f"{SNAPSHOT}{name}.json"
