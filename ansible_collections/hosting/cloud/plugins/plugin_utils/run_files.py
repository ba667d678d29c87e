# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the memory of a run is kept: a store of files in the run's own directory, shared by Ansible's worker
processes.

Ansible makes the directory when it starts and removes it when it ends. The files of a run that was killed
stay. The next run reports what they say was charged and marks them as reported, since a worker may outlive
its run and still write to them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..module_utils.json_types import Json, Values
from ..module_utils.run_memory import CHARGED, PLANNED, ProcessStorage, spent_in

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.session.snapshot_files import SNAPSHOT, SnapshotFiles

if TYPE_CHECKING:
    from pulumi_hosting.client.shared_store import SharedStore

_RANDOM_LETTERS = 8  # of tempfile, after the process id in the name of the run's directory


class RunFiles(ProcessStorage):
    """Storage of a :class:`RunMemory`: one value for each part. ``folder``: the run's directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def store(self) -> SharedStore:
        from pulumi_hosting.client.shared_store import Files

        return Files(self.folder)

    def open(self, part: str) -> AbstractContextManager[Json]:
        return self.store.changing(_name(part))

    def one_module_at_a_time(self) -> AbstractContextManager[None]:
        """Let modules whose charges are limited run one after the other: each must know what those before it
        charged."""
        return self.store.lock(_name("modules"))

    def snapshot(self, scope: Callable[[], str]) -> SnapshotFiles:
        return SnapshotFiles(self.store, scope)

    def forget_snapshots(self) -> None:
        with suppress(ImportError):  # a controller without pulumi_hosting keeps none
            for name in self.store.names(f"{SNAPSHOT}*.json"):
                self.store.forget(name)

    def forget_planned(self) -> None:
        """Forget what check mode predicted: a task of this run has really changed something since."""
        self.store.forget(_name(PLANNED))

    def charges_of_killed_runs(self) -> list[str]:
        """One line for each earlier run that was killed and had charged something. They are reported once."""
        from pulumi_hosting.client.private_directory import process_runs

        lines = []
        for path in sorted(self.folder.parent.glob(f"ansible-local-*/{_name(CHARGED)}")):
            pid = path.parent.name.removeprefix("ansible-local-")[:-_RANDOM_LETTERS]
            if path.parent == self.folder or not pid.isdigit() or process_runs(int(pid)):
                continue
            with suppress(FileNotFoundError):  # it ended meanwhile, and removed them
                if path.stat().st_uid == os.getuid() and (amounts := RunFiles(path.parent)._unreported()):
                    lines.append(
                        "an earlier run of Ansible was killed after it had charged, or may have charged, "
                        + " and ".join(amounts)
                    )
        return lines

    def _unreported(self) -> list[str]:
        """What the run charged; nothing if it was reported before."""
        with self.open(CHARGED) as content:
            amounts = [] if content.get("reported") else _amounts(content)
            content["reported"] = True
        return amounts


def _name(part: str) -> str:
    return f"hosting.cloud.{part}.json"


def _amounts(content: Values) -> list[str]:
    """What was spent or booked, one text for each account and currency."""
    accounts = {row["account"] for row in (*content.get("spent", ()), *content.get("booked", {}).values())}
    return [
        f"{amount} {currency}"
        for account in sorted(accounts)
        for currency, amount in spent_in(content, account).items()
        if amount
    ]
