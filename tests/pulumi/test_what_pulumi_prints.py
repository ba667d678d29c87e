"""What Pulumi's own CLI prints around a program, and our lines beside it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import PULUMI, Run, choose
from tests.support.programs import Program, make_program
from tests.transcripts import recording
from tests.transcripts.programs import Programs
from tests.transcripts.scripts import Script, scripts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.program("pulumi"),
]


@pytest.fixture
def program(emulator: Running, tmp_path: Path) -> Program:
    return make_program(choose(PULUMI), emulator, tmp_path / "program", tmp_path / "home", "native")


def test_the_code_that_an_import_prints_is_right_with_the_line_of_ours(program: Program) -> None:
    program.write("")
    with Client(program.emulator.live_key, program.emulator.base_url) as client:
        ordered = client.servers.create(tariff_id=1, os="debian-12", name="web").server  # type: ignore[union-attr]  # no order is slow here
    assert ordered is not None
    imported = program.stack.run("import", "hosting:index:Server", "web", str(ordered.id), "--yes")
    assert imported.exit_code == 0, imported.output
    mistaken, right = re.findall(r"`(import \S+ as hosting)`", imported.output)[1::-1]
    code = imported.output[imported.output.index("import pulumi\n") :]
    assert mistaken in code
    pasted = code.replace(mistaken, right)
    (program.directory / "__main__.py").write_text(pasted, encoding="utf-8")
    program.run(program.stack.preview("--expect-no-changes"), changed={})
    assert program.living_ids == [str(ordered.id)]


def test_a_program_whose_plugin_is_missing_names_the_command_that_installs_it(
    program: Program, tmp_path: Path
) -> None:
    program.declare({"web": ("Server", {"tariff_id": 1, "os": "debian-12"})})
    program.stack.environ["PATH"] = os.environ["PATH"]
    program.stack.environ["PULUMI_HOME"] = str(tmp_path / "empty")
    program.stack.environ["PULUMI_IGNORE_AMBIENT_PLUGINS"] = "true"
    for _ in range(9):  # Pulumi may end the program before it can print anything
        run = program.stack.up()
        assert run.exit_code != 0
        assert "no resource plugin" in run.output
        assert "Traceback" not in run.output
        if "run `pulumi-hosting plugin install`" in run.output:
            break
    else:
        pytest.fail(run.output)
    assert program.living_ids == []


class OnPulumi(Programs):
    """A script on Pulumi's CLI. Its diagnostics are written down as the offline engine prints them."""

    def printed(self, run: Run) -> Iterator[str]:
        assert "Traceback" not in run.output, run.output
        where: str | None = None
        for line in run.output.splitlines():
            if line in ("Diagnostics:", "Resources:"):
                where = "" if line == "Diagnostics:" else None
            elif where is None:
                continue
            elif header := re.fullmatch(r"  (\S+ \(\S+\):)", line):
                where = "" if header[1].startswith("pulumi:pulumi:Stack ") else f"{header[1]} "
            elif line.startswith("    "):
                yield f"    {where}{line[4:]}"


LINE = re.compile(r"\|     (?!\S* ?\d+ (?:to \w+|\w+)$)(?:(\S+ \(\S+\)): )?(\S.*)")
OF_THE_ENGINE = re.compile(r"error: (?:update|preview) failed(?:: .*)?|Pulumi ended the program; .*")
"""The program prints the second one or not: the CLI may end it before."""


def lines_of_ours(transcript: str) -> list[tuple[str, dict[str, list[str]]]]:
    """Each command with the lines that come from us, in their order, by the resource that they stand under;
    the errors together, which the engines do not always put under one."""
    found: list[tuple[str, dict[str, list[str]]]] = []
    for line in transcript.splitlines():
        if line.startswith("$ "):
            found.append((line, {}))
        elif (shown := LINE.fullmatch(line)) and not OF_THE_ENGINE.fullmatch(shown[2]):
            under = "" if shown[2].startswith("error: ") else shown[1] or ""
            found[-1][1].setdefault(under, []).append(shown[2])
    return found


def recorded_lines() -> list[Script]:
    return [script for script in scripts() if script.group.startswith("lines")]


@pytest.mark.parametrize("script", recorded_lines(), ids=str)
def test_every_line_of_ours_is_the_recorded_one(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the offline engine are in ``tests/transcripts/recorded/lines.txt``."""
    monkeypatch.setattr(OnPulumi, "engine", choose(PULUMI))  # it is not on the PATH of a script
    monkeypatch.setitem(recording.PLAYERS, script.form, OnPulumi)
    assert lines_of_ours(recording.play(script)) == lines_of_ours(recording.recorded(script))
