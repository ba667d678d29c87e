"""Words of Pulumi's own, on its CLI: ``pulumi:autonaming``, ``preview --import-file``, and a rotated key."""

import json
from pathlib import Path

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import PULUMI, choose
from tests.support.processes import descendants, kill
from tests.support.programs import FORMS, ROOMY, Program, make_program, messages
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.program("pulumi")]

PATTERN = "pulumi:autonaming.providers.hosting.pattern"
LATE = {"delay": 20}
SERVER = {"tariff_id": 1, "os": "debian-12"}


@pytest.fixture
def program(emulator: Running, tmp_path: Path) -> Program:
    return make_program(choose(PULUMI), emulator, tmp_path / "program", tmp_path / "home", "native")


def configure(program: Program, *arguments: str) -> None:
    program.run(program.stack.run("config", "set", *arguments))


def names(program: Program) -> list[str]:
    return sorted(server["name"] for server in program.living)


# --- names


@pytest.mark.emulator(own=True)
def test_a_name_of_a_pattern_is_found_again_and_a_random_one_is_refused(program: Program) -> None:
    program.declare({"web": ("Server", SERVER), "old": ("Server", {**SERVER, "name": "given"})})
    configure(program, "--path", "pulumi:autonaming.pattern", "${name}-${hex(4)}")
    refused = program.stack.up()
    assert refused.exit_code != 0
    (line,) = [line for line in messages(refused).splitlines() if "may be random" in line]
    assert names(program) in ([], ["given"])
    command = line.partition("Next: pulumi config set ")[2].partition(", or give")[0]
    assert command == "--path pulumi:autonaming.providers.hosting.pattern '${name}-${stack}'"
    configure(program, "--path", PATTERN, "${name}-${stack}")
    # Killed between purchase and answer, and run again.
    program.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "times": 2, "action": LATE})
    running = program.start_cold()
    wait_until(lambda: program.charges == 2, running)
    kill([*descendants(running.pid), running.pid])
    running.wait()
    program.stack.cancel()
    program.control("POST", "/clock", {"advance": 601})
    program.run(program.stack.up())
    assert names(program) == ["given", "web-dev"]
    assert program.charges == 2
    program.run(program.stack.up("--expect-no-changes"), {})


def test_what_exists_keeps_its_name_and_a_disabled_naming_asks_for_one(program: Program) -> None:
    program.declare({"web": ("Server", SERVER)})
    program.run(program.stack.up())
    configure(program, "--path", PATTERN, "${stack}-${name}")
    program.run(program.stack.up("--expect-no-changes"), {})
    configure(program, "--path", PATTERN.replace("pattern", "mode"), "disabled")
    program.run(program.stack.run("config", "rm", "--path", PATTERN))
    program.declare({"web": ("Server", SERVER), "new": ("Server", SERVER)})
    refused = program.stack.up()
    assert "name: is required, since pulumi:autonaming is disabled. Next: give a name" in refused.output
    assert names(program) == ["web"]


# --- a rotated key


@pytest.mark.parametrize("form", FORMS)
def test_a_key_that_is_rotated_in_the_configuration(form: str, emulator: Running, tmp_path: Path) -> None:
    """The engine refreshes and destroys with the key of the last ``up``, unless it runs the program."""
    program = make_program(choose(PULUMI), emulator, tmp_path / "program", tmp_path / "home", form)
    first, second = (program.control("POST", "/keys", ROOMY) for _ in range(2))
    del program.stack.environ["HOSTING_API_KEY"], program.stack.environ["HOSTING_BASE_URL"]
    program.declare({"web": ("Server", SERVER)})
    configure(program, "hosting:baseUrl", program.emulator.base_url)
    configure(program, "--secret", "hosting:apiKey", first["key"])
    program.run(program.stack.up())
    program.control("DELETE", f"/keys/{first['id']}")
    configure(program, "--secret", "hosting:apiKey", second["key"])
    refused = program.stack.refresh()
    assert refused.exit_code != 0
    assert "(refresh and destroy see a new one with --run-program)" in messages(refused)
    look = ("refresh", "--preview-only", "--expect-no-changes", "--run-program")
    looked = program.run(program.stack.run(*look))
    assert "[diff" not in looked.output
    program.run(program.stack.preview("--expect-no-changes"), {})
    program.run(program.stack.up("--expect-no-changes"), {})
    # That was enough for the commands that do not run it.
    program.run(program.stack.refresh(), {})
    assert first["key"] not in json.dumps(program.stack.export("--show-secrets"))
    program.run(program.stack.destroy())
    assert program.living == []
