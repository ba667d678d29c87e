# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Files in the run's own directory that only this user can read (mode 0600), shared by processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def read_private(path: Path) -> str:
    """The text of a file, as it was written last; empty where there is none."""
    with (
        suppress(FileNotFoundError),
        os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file,
    ):
        return file.read()
    return ""


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step: whoever reads sees the old text or the new one."""
    handle, draft = tempfile.mkstemp(dir=path.parent)  # mode 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file against all other processes. A process that ends releases it."""
    # a dependency of pulumi_hosting, which may be missing in the controller
    from filelock import FileLock

    with FileLock(f"{path}.lock", mode=0o600):
        yield
