"""The command line: Pulumi's commands, options and exit codes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from pulumi_hosting.offline.display.terminal import BANNER
from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.offline.conftest import Command, MakeProject, write
from tests.offline.replay import HERE

PROGRAM = """
a = Thing("a", {"name": "a", "size": "s"})
pulumi.export("id", a.id)
pulumi.export("once", a.secretOut)
pulumi.export("list", [1, 2])
"""


@pytest.fixture
def command(make_project: MakeProject) -> Command:
    return Command(make_project(PROGRAM))


def lines(result: Result) -> list[str]:
    return [line.strip() for line in result.output.splitlines()]


def test_preview_up_refresh_and_destroy(command: Command) -> None:
    preview = command("preview", "--non-interactive")
    assert preview.exit_code == 0, preview.output
    assert lines(preview)[:2] == [BANNER, "Previewing update (dev):"]
    assert "+ 2 to create" in lines(preview)
    up = command("up", "--yes", "--skip-preview", "--diff", "--parallel", "2")
    assert up.exit_code == 0, up.output
    assert lines(up)[0] == BANNER
    assert "+  pulumi-python:dynamic/toy:Thing a created" in lines(up)
    assert "once: [secret]" in lines(up)
    assert "once-a#1" not in up.output
    assert "2 unchanged" in lines(command("up", "-y", "-f", "--expect-no-changes"))
    write(command.project, PROGRAM.replace('"size": "s"', '"size": "s", "note": "n"'))
    changed = command("preview", "--expect-no-changes", "--diff")
    assert changed.exit_code == 7
    assert {
        "~  pulumi-python:dynamic/toy:Thing a update [diff: +note]",
        '+ note: "n"',
        "~ 1 to update",
    } <= set(lines(changed))
    assert "error: no changes were expected for preview but changes were proposed" in lines(changed)
    assert command("refresh", "--preview-only", "--expect-no-changes").exit_code == 0
    assert "- 2 to delete" in lines(command("destroy", "--preview-only"))
    destroyed = command("destroy", "--yes")
    assert destroyed.exit_code == 0, destroyed.output
    assert "- 2 deleted" in lines(destroyed)


def test_outputs_state_and_removal(command: Command, tmp_path: Path) -> None:
    assert command("up", "--yes").exit_code == 0
    assert lines(command("stack", "output")) == ["id\ta#1", "list\t[1, 2]", "once\t[secret]"]
    assert json.loads(command("stack", "output", "--json", "--show-secrets").output) == {
        "id": "a#1",
        "once": "once-a#1",
        "list": [1, 2],
    }
    assert command("stack", "output", "id").output == "a#1\n"
    assert command("stack", "output", "list").output == "[1, 2]\n"
    missing = command("stack", "output", "nothing")
    assert (missing.exit_code, missing.output) == (
        1,
        "error: current stack does not have output property 'nothing'\n",
    )
    file = tmp_path / "state.json"
    assert command("stack", "export", "--show-secrets", "--file", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    missing_file = str(tmp_path / "missing" / "file.json")
    for arguments in (["stack", "export", "--file"], ["preview", "--event-log"]):
        refused = command(*arguments, missing_file)
        line = f"error: {missing_file}: No such file or directory. Next: name another file\n"
        assert (refused.exit_code, line in refused.output) == (2, True)
    assert "once-a#1" in file.read_text()
    assert command("stack", "import", "--file", str(file)).output == "Import complete.\n"
    assert "once-a#1" not in command("stack", "export").output
    assert command("stack", "import", input=file.read_text()).exit_code == 0
    assert command("stack", "import", input="{").exit_code == 2
    kept = command("stack", "rm", "--yes")
    assert kept.exit_code == 1
    assert "still has resources" in kept.output
    assert command("stack", "rm", "dev", "--force", "--yes").exit_code == 0
    gone = command("up", "--yes")
    assert (gone.exit_code, gone.output) == (
        2,
        "error: no stack found. Next: run `pulumi-hosting offline stack init dev`\n",
    )


def test_stacks(command: Command) -> None:
    assert command("stack", "init", "prod").output == "Created stack 'prod'\n"
    assert command("stack", "init", "prod").exit_code == 2
    assert command("stack", "ls").output == "dev\nprod*\n"
    assert command("stack", "select", "dev").exit_code == 0
    assert command("stack", "select", "third", "--create").exit_code == 0
    assert json.loads(command("stack", "ls", "--json").output)[0] == {"name": "dev", "current": False}
    missing = command("stack", "select", "fourth")
    assert (missing.exit_code, missing.output) == (
        6,
        "error: no stack named 'fourth' found. Next: run `pulumi-hosting offline stack init fourth`\n",
    )
    assert command("up", "--yes", "--stack", "fourth").exit_code == 6
    assert command("stack", "init").exit_code == 2
    assert "not a stack name" in command("stack", "init", "../dev").output
    assert command("stack", "output", "--stack", "organization/toys/dev").exit_code == 0
    assert command("stack", "output", "--stack", "dev").output == ""
    assert json.loads(command("stack", "export", "--stack", "dev").output) == {"version": 3}
    assert command("stack", "rm", "third", "--yes").exit_code == 0
    assert command("preview").output == (
        "error: no stack selected; there is dev, prod. Next: add --stack dev, or run "
        "`pulumi-hosting offline stack select dev`\n"
    )


def test_configuration(command: Command) -> None:
    assert command("config", "set", "toy:apiKey", "hush", "--secret").exit_code == 0
    assert command("config", "set", "size", "--plaintext", input="large\n").exit_code == 0
    assert command("config", "get", "toy:apiKey").output == "hush\n"
    assert command("config", "get", "toys:size").output == "large\n"
    assert "hush" not in (command.project.directory / "Pulumi.dev.yaml").read_text()
    assert command("config", "get", "nothing").exit_code == 2
    assert command("config", "set", "a", "b", "--secret", "--plaintext").exit_code == 2
    assert command("config", "set", "a", "b", "--stack", "nowhere").exit_code == 6


def test_a_preview_as_json_is_one_object(command: Command) -> None:
    seen = command("preview", "--json")
    assert seen.exit_code == 0
    digest = json.loads(seen.output)
    assert digest["changeSummary"] == {"create": 2}
    assert [(step["op"], step["newState"]["type"]) for step in digest["steps"]] == [
        ("create", "pulumi:pulumi:Stack"),
        ("create", "pulumi-python:dynamic/toy:Thing"),
    ]
    assert {"config", "diagnostics", "duration"} <= digest.keys()


def test_configuration_is_listed_and_removed(command: Command) -> None:
    command("config", "set", "plan", "small")
    command("config", "set", "--secret", "hosting:key", "hush")
    assert lines(command("config"))[:3] == [
        "KEY          VALUE",
        "hosting:key  [secret]",
        "plan         small",
    ]
    assert "hush" not in command("config", "--json").output
    assert json.loads(command("config", "--json", "--show-secrets").output)["hosting:key"] == {
        "value": "hush",
        "secret": True,
    }
    assert command("config", "rm", "plan").exit_code == 0
    assert command("config", "rm", "plan").exit_code == 0
    assert "plan" not in command("config").output


def test_events_as_json_and_in_a_file(command: Command, tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    result = command("up", "--yes", "--skip-preview", "--json", "--event-log", str(log))
    assert result.exit_code == 0, result.output
    printed = [json.loads(line) for line in result.output.splitlines()]
    assert printed == [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [next(key for key in event if key.endswith("Event")) for event in printed]
    assert (kinds[0], kinds[-1]) == ("preludeEvent", "cancelEvent")
    assert {"resourcePreEvent", "resOutputsEvent", "summaryEvent"} <= set(kinds)
    assert "once-a#1" not in result.output


@pytest.mark.slow
def test_import(make_project: MakeProject) -> None:
    command = Command(make_project('Thing("z", {"name": "z", "size": "s"})', form="native"))
    thing = {"name": "z", "size": "s", "status": "running", "secretOut": "q"}
    (command.project.service / "world.json").write_text(json.dumps({"things": {"z#7": thing}, "counts": {}}))
    missing = command("import", "toy:index:Thing", "z", "z#8", "--yes")
    assert missing.exit_code == 1
    assert "toy:index:Thing (z): error: Preview failed: resource 'z#8' does not exist" in lines(missing)
    imported = command("import", "toy:index:Thing", "z", "z#7", "--yes", "--generate-code=false")
    assert imported.exit_code == 0, imported.output
    assert {"=  toy:index:Thing z imported", "= 1 imported"} <= set(lines(imported))
    (state,) = [item for item in command.project.state()["resources"] if item["name"] == "z"]
    assert state["protect"]
    assert "once" not in imported.output
    changed = command("up", "--yes")
    assert changed.exit_code == 0, changed.output
    assert "2 unchanged" in lines(changed)
    assert list(command.project.things()) == ["z#7"]


def test_a_locked_stack(command: Command) -> None:
    locks = command.project.stack().backend.lock_directory("dev")
    locks.mkdir(parents=True)
    (locks / "killed.json").write_text("{}")
    locked = command("up", "--yes")
    assert locked.exit_code == 1
    assert "currently locked by 1 lock(s)" in locked.output
    assert command("preview").exit_code == 0
    assert command("cancel", "--yes").output == "The currently running update for 'dev' has been canceled!\n"
    assert command("up", "--yes").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("up", "--bogus"), "No such option"),
        (("up", "--preview-only", "--yes"), "--preview-only cannot be combined"),
        (("up", "--parallel", "0"), "Invalid value"),
        (("fly",), "No such command"),
    ],
)
def test_a_wrong_command_line(command: Command, arguments: tuple[str, ...], problem: str) -> None:
    result = command(*arguments)
    assert result.exit_code == 2
    assert problem in result.output
    assert "Traceback" not in result.output


def test_failures_are_shown_on_their_resources(command: Command) -> None:
    command.project.set_faults(create_a="raise")
    result = command("up", "--yes", "-v", "3", "--logtostderr")
    assert result.exit_code == 1
    assert "+  pulumi-python:dynamic/toy:Thing a failed" in lines(result)
    assert "RuntimeError: create refused" in lines(result)
    assert "error: update failed" in lines(result)


def test_it_runs_as_a_module_on_a_plain_python(command: Command) -> None:
    environ: dict[str, Any] = {**command.project.environ, "PYTHONPATH": str(HERE.parent.parent)}
    environ |= {key: value for key, value in os.environ.items() if key.startswith("COV")}
    del environ["PULUMI_PYTHON_CMD"]
    call = [PYTHON, "-m", "pulumi_hosting.cli", "offline", "preview", "--stack", "dev"]
    done = subprocess.run(
        call, cwd=command.project.directory, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(BANNER)


@pytest.mark.parametrize(("operation", "exit_code"), [("up", 2), ("destroy", 2), ("refresh", 1)])
def test_a_change_needs_confirmation(command: Command, operation: str, exit_code: int) -> None:
    for flags in ((), ("--non-interactive",)):
        refused = command(operation, *flags)
        assert refused.exit_code == exit_code
        assert "--yes or --skip-preview or --preview-only must be passed in" in refused.output
    assert command("stack", "output", "--json").output.strip() == "{}"


@pytest.mark.parametrize(("answer", "made"), [("y", True), ("n", False)])
def test_a_terminal_shows_the_preview_and_asks(
    command: Command, monkeypatch: pytest.MonkeyPatch, answer: str, made: bool
) -> None:
    monkeypatch.setattr("pulumi_hosting.cli.offline.operations._is_terminal", lambda: True)
    asked = command("up", input=f"{answer}\n")
    assert "+ 2 to create" in lines(asked)
    assert "Do you want to perform this update?" in asked.output
    assert asked.exit_code == (0 if made else 1)
    assert (command("stack", "output", "--json").output.strip() != "{}") is made
