"""Mutate the code of one area and run the tests that belong to it: ``make mutation ARGS=keys``.

mutmut makes the mutants and runs them. The areas stand in ``areas.toml``. The survivors that no test can
notice, or should, stand in ``explained.toml`` beside this file, each with its reason; the percentage counts
the others only. Everything mutmut makes is in ``build/mutation/<area>``; a second run goes on where the first
was, and tries the survivors again. Delete the folder to start over.
"""

import fnmatch
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.named_tests import ROOT

LINKS = ("pulumi_hosting", "tests", "ansible_collections", "examples")
KILLED = (1, 3, 36, 24, -24, 152, 255)
"""What mutmut notes for a mutant: a test failed, or ran on without end."""

_TEXT = r'(?<!f)"([^"]*)"'
"""A text that is no template."""


@dataclass(frozen=True)
class Survivor:
    """A mutant that no test noticed: its name, and the lines it takes away and puts in."""

    name: str
    before: str
    after: str

    def is_wording(self) -> bool:
        """Whether only letters of a text with spaces differ: tests compare what messages tell, not each
        word."""
        (before, texts), (after, changed) = (
            (re.sub(_TEXT, "", line), re.findall(_TEXT, line)) for line in (self.before, self.after)
        )
        return (
            self.before != self.after
            and before == after
            and len(texts) == len(changed)
            and all(
                new == old or (" " in old and (new == f"XX{old}XX" or new.lower() == old.lower()))
                for old, new in zip(texts, changed, strict=True)
            )
        )


def areas() -> dict[str, dict[str, list[str]]]:
    """Area → ``files`` and ``tests``."""
    found: dict[str, dict[str, list[str]]] = _toml(Path(__file__).with_name("areas.toml"))
    return found


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def prepare(area: str) -> Path:
    """The folder in which mutmut works: links to the code, and its settings."""
    folder = ROOT / "build" / "mutation" / area
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*LINKS, "pyproject.toml"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(ROOT / name)
    chosen = areas()[area]
    settings = {
        "source_paths": ["pulumi_hosting"],
        "only_mutate": chosen["files"],
        "also_copy": [name for name in LINKS if name != "pulumi_hosting"],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": chosen["tests"],
        "use_git_change_detection": ["false"],
        "track_dependencies": ["false"],
        "on_dependency_change": ["ignore"],
    }
    lines = [f"{name} =\n  " + "\n  ".join(values) for name, values in settings.items() if len(values) > 1]
    lines += [f"{name} = {values[0]}" for name, values in settings.items() if len(values) == 1]
    (folder / "setup.cfg").write_text("[mutmut]\n" + "\n".join(lines) + "\n", "utf-8")
    return folder


def results(folder: Path) -> dict[str, int | None]:
    """Mutant → what mutmut noted."""
    return {
        name: code
        for path in sorted(folder.glob("mutants/**/*.meta"))
        for name, code in json.loads(path.read_text("utf-8"))["exit_code_by_key"].items()
    }


def survived(found: dict[str, int | None]) -> set[str]:
    return {name for name, code in found.items() if code is not None and code not in KILLED}


def _run_mutmut(folder: Path, names: Iterable[str]) -> None:
    program = Path(sys.executable).with_name("mutmut")
    subprocess.run([program, "run", "--max-children", "1", *names], cwd=folder, check=True)


def survivors(folder: Path, names: set[str]) -> Iterator[Survivor]:
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # half a second, in each process of the tests

    for name in sorted(names):
        with chdir(folder):
            shown = get_diff_for_mutant(name).splitlines()
        lines = [line for line in shown if not line.startswith(("+++", "---"))]
        before, after = (
            " ".join(" ".join(line[1:].split()) for line in lines if line.startswith(sign)) for sign in "-+"
        )
        yield Survivor(name.rpartition("__mutmut_")[0], before, after)


def main() -> int:
    """Exit 1 where less than 95 % of the mutants that are not explained are killed."""
    area, *names = sys.argv[1:] or [""]
    if area not in areas():
        print(f"no area {area!r}. Next: make mutation ARGS=<one of {', '.join(areas())}>", file=sys.stderr)
        return 2
    folder = prepare(area)
    shutil.rmtree(folder / "mutants" / "tests", ignore_errors=True)
    (folder / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)  # which test runs which function
    before = survived(results(folder))
    _run_mutmut(folder, names)
    if again := before & results(folder).keys() - {*names}:
        _run_mutmut(folder, again)
    found = results(folder)
    alive = survived(found)
    explained, unexplained = 0, []
    reasons = _toml(Path(__file__).with_name("explained.toml")).get("survivor", [])
    for survivor in survivors(folder, alive):
        if survivor.is_wording() or any(
            fnmatch.fnmatchcase(survivor.name, reason["in"]) and survivor.after in reason["after"]
            for reason in reasons
        ):
            explained += 1
        else:
            unexplained.append(survivor)
    for survivor in unexplained:
        print(f"{survivor.name}\n  - {survivor.before}\n  + {survivor.after}")
    killed, counted = len(found) - len(alive), len(found) - explained
    percent = 100 * killed / counted
    print(
        f"{area}: {len(found)} mutants, {killed} killed, {explained} explained, {len(unexplained)} survived: "
        f"{percent:.1f} % of {counted} killed"
    )
    return 0 if percent >= 95 else 1


if __name__ == "__main__":
    sys.exit(main())
