# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the memory of a run is kept: private files in the run's own directory, shared by Ansible's worker
processes.

Ansible makes the directory when it starts and removes it when it ends. The files of a run that was killed
stay. The next run reports what they say was charged and marks them as reported, since a worker may outlive
its run and still write to them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible_collections.hosting.cloud.plugins.module_utils.run_memory import CHARGED, PLANNED, spent_in

_RANDOM_LETTERS = 8  # of tempfile, after the process id in the name of the run's directory


class RunFiles:
    """Storage of a :class:`RunMemory`: one JSON file for each part. ``folder``: the run's directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def open(self, part: str) -> Iterator[dict[str, Any]]:
        """The content of one part, for one process at a time. Changes of it are kept."""
        path = self._path(part)
        with self._locked(path):
            text = ""
            with (
                suppress(FileNotFoundError),
                os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file,
            ):
                text = file.read()
            content: dict[str, Any] = json.loads(text) if text else {}
            yield content
            changed = json.dumps(content)
            if changed not in (text, "{}"):
                handle, draft = tempfile.mkstemp(dir=self.folder)  # mode 0600
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(changed)
                os.replace(draft, path)

    @contextmanager
    def one_module_at_a_time(self) -> Iterator[None]:
        """Let modules whose charges are limited run one after the other: each must know what those before it
        charged."""
        with self._locked(self._path("modules")):
            yield

    def forget_planned(self) -> None:
        """Forget what check mode predicted: a task of this run has really changed something since."""
        self._path(PLANNED).unlink(missing_ok=True)

    def charges_of_killed_runs(self) -> list[str]:
        """One line for each earlier run that was killed and had charged something. They are reported once."""
        from pulumi_hosting.exactly_once.local_files import process_runs

        lines = []
        for path in sorted(self.folder.parent.glob(f"ansible-local-*/{self._path(CHARGED).name}")):
            pid = path.parent.name.removeprefix("ansible-local-")[:-_RANDOM_LETTERS]
            if (
                path.parent == self.folder
                or not pid.isdigit()
                or path.stat().st_uid != os.getuid()
                or process_runs(int(pid))
            ):
                continue
            with RunFiles(path.parent).open(CHARGED) as content:
                amounts = [] if content.get("reported") else _amounts(content)
                content["reported"] = True
            if amounts:
                what = " and ".join(amounts)
                lines.append(
                    f"an earlier run of Ansible was killed after it had charged, or may have charged, {what}"
                )
        return lines

    def _path(self, part: str) -> Path:
        return self.folder / f"hosting.cloud.{part}.json"

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        # a dependency of pulumi_hosting, which may be missing in the controller
        from filelock import FileLock

        with FileLock(f"{path}.lock", mode=0o600):
            yield


def _amounts(content: Mapping[str, Any]) -> list[str]:
    """What was spent or booked, one text for each account and currency."""
    accounts = {row["account"] for row in (*content.get("spent", ()), *content.get("booked", {}).values())}
    return [
        f"{amount} {currency}"
        for account in sorted(accounts)
        for currency, amount in spent_in(content, account).items()
        if amount
    ]
