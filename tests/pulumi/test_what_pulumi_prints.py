"""What Pulumi's own CLI prints around a native program, and our line beside it."""

import os
import re
from pathlib import Path

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import PULUMI, choose
from tests.support.programs import Program, make_program

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
    run = program.stack.up()
    assert run.exit_code != 0
    assert "no resource plugin" in run.output
    assert "run `pulumi-hosting plugin install`" in run.output
    assert "Traceback" not in run.output
    assert program.living_ids == []
