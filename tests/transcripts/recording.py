"""Plays scripts side by side, and keeps or compares what was seen."""

import difflib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch
from urllib.error import HTTPError

from pulumi_hosting.emulator import running
from pulumi_hosting.offline.storage.passphrase import WEAK_SECRETS
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.ansible.conftest import BIN
from tests.transcripts.playbooks import Playbooks
from tests.transcripts.player import Player
from tests.transcripts.programs import Programs
from tests.transcripts.scripts import Script, scripts

RECORDED = Path(__file__).parent / "recorded"
PLAYERS = {"dynamic": Programs, "native": Programs, "ansible": Playbooks, "tools": Player}


class Broken(Exception):
    """A script that cannot be played as it is written: it is to be corrected."""


def play(script: Script) -> str:
    """The recording of a script. ``sys.executable`` should be a warm Python."""
    with (
        tempfile.TemporaryDirectory(prefix="transcript-") as name,
        _environment(Path(name)) as folder,
        running(clock="manual", **script.emulator) as emulator,
    ):
        player = PLAYERS[script.form](script, folder, emulator)
        for step in script.steps:
            try:
                player.step(step)
            except (OSError, LookupError, ValueError) as error:
                told = error.read().decode() if isinstance(error, HTTPError) else ""
                raise Broken(f"{script}: {step} cannot be played: {error!r} {told}") from None
    return f"=== {script}\n\n" + "\n".join(player.parts)


def play_all(chosen: Sequence[Script], jobs: int) -> Iterator[tuple[Script, str | Broken]]:
    """Each script with its recording, in order."""
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        python = WarmPython(Path(folder))
        try:
            pool = ProcessPoolExecutor(
                jobs, get_context("spawn"), initializer=_use, initargs=(str(python.command),)
            )
            with pool:
                yield from zip(chosen, pool.map(_played, chosen), strict=True)
        finally:
            python.close()


def _played(script: Script) -> str | Broken:
    try:
        return play(script)
    except Broken as error:
        return error


def _use(python: str) -> None:
    """In a process of the pool: what it starts is warm."""
    sys.executable = python


@contextmanager
def _environment(folder: Path) -> Iterator[Path]:
    """Nothing of the user's environment but where programs are."""
    folder = folder.resolve()
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    kept = {name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}
    own = {
        "PATH": os.pathsep.join([str(BIN), "/usr/bin", "/bin"]),
        "HOME": str(folder / "home"),
        "HOSTING_RUNTIME_DIR": str(folder / "run"),
        "PULUMI_HOME": str(folder / "home" / "pulumi"),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "120",
        WEAK_SECRETS: "1",
    }
    with patch.dict(os.environ, {**kept, **own}, clear=True):
        yield folder


def write(script: Script, text: str) -> None:
    """Keep the recording of one script; the others of its group stay as they are."""
    texts = [
        text if other == script else recorded(other) for other in scripts() if other.group == script.group
    ]
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{script.group}.txt").write_text("\n".join(filter(None, texts)), encoding="utf-8")


def remove_old() -> None:
    """Remove the recordings of groups that are no more."""
    groups = {script.group for script in scripts()}
    for file in RECORDED.glob("*.txt"):
        if file.stem not in groups:
            file.unlink()


def recorded(script: Script, folder: Path | None = None) -> str:
    """The recording of one script; empty where there is none."""
    file = (folder or RECORDED) / f"{script.group}.txt"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    _, found, rest = text.partition(f"=== {script}\n")
    return f"=== {script}\n" + rest.partition("\n=== ")[0].rstrip("\n") + "\n" if found else ""


def difference(script: Script, played: str, folder: Path | None = None) -> list[str]:
    """Lines of a unified diff between what was recorded and what was seen now."""
    before, now = recorded(script, folder).splitlines(), played.rstrip("\n").splitlines()
    return list(difflib.unified_diff(before, now, f"{script.group}.txt", "now", n=6, lineterm=""))
