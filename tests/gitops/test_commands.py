"""What the pipeline gives the commands that it starts, and what it says of those that fail. They are small
scripts here, which note their arguments and variables.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pipeline
import plan
import pytest

Script = Callable[[str, str], None]
"""``script("PULUMI", "exit 1")``: the lines of a shell that run in place of the command of this setting."""
NOT_MADE = "not made, as it is not known what is managed: "


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[tuple[str, str]]]:
    """The arguments and the limit of each command that was started so far."""
    for name in [name for name in os.environ if name.startswith(("GIT", "PULUMI", "HOSTING"))]:
        monkeypatch.delenv(name)
    settings = {"STACK": "prod", "HOSTING_LIVE_KEY": "vk_live_1", "HOSTING_TEST_KEY": "vk_test_1"}
    for name, value in {**settings, "PULL_REQUEST": "7", "HOSTING_MAX_CHARGE": "25.00"}.items():
        monkeypatch.setenv(name, value)

    def read() -> list[tuple[str, str]]:
        lines = (tmp_path / "calls").read_text().splitlines()
        return [(arguments, limit) for arguments, _, limit in (line.partition("#") for line in lines)]

    return read


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    def write(setting: str, body: str) -> None:
        path = tmp_path / setting
        noted = f'echo "$*#${{HOSTING_MAX_CHARGE-none}}" >> {tmp_path}/calls'
        path.write_text(f"#!/bin/sh\n{noted}\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setenv(setting, str(path))

    return write


def test_the_limit_is_that_of_the_live_account_alone(
    calls: Callable[[], list[tuple[str, str]]], script: Script
) -> None:
    """A rehearsal, and the stack of a pull request, create the whole program, not only the change."""
    script("PULUMI_HOSTING", "true")
    script("PULUMI", "[ $1 = preview ] && echo '{}' || echo '[]'")
    pipeline.pull_request()
    limits = {(arguments.partition(" ")[0], limit) for arguments, limit in calls()}
    assert limits >= {("rehearse", "none"), ("preview", "25.00"), ("up", "1000000.00")}  # above Pulumi.yaml's
    assert {command for command, limit in limits if limit == "25.00"} == {"preview"}


def test_the_table_names_why_a_check_failed(
    calls: Callable[[], list[tuple[str, str]]], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["FAILED up   creates them", "       | update failed", "       | server 'web': no tariff 98"]
    report = "; ".join(f'echo "{line}"' for line in (*steps, "rehearsal: not as expected: up"))
    script("PULUMI_HOSTING", f"{report}; exit 1")
    failure = "echo \"error: server 'web': no tariff 99\"; echo 'error: update failed'; exit 1"
    script(
        "PULUMI",
        f"case $1 in up) {failure};; preview) echo '{{}}';; stack) [ $2 != ls ] || echo '[]';; esac",
    )
    assert pipeline.pull_request() == 1
    printed = capsys.readouterr().out
    assert "**failed**: `rehearsal: not as expected: up; server 'web': no tariff 98` |" in printed
    assert (
        "| stack pr-7, in the sandbox | **failed**: `pulumi up: error: server 'web': no tariff 99` |"
        in printed
    )


def test_a_stack_that_cannot_be_destroyed_is_forgotten(
    calls: Callable[[], list[tuple[str, str]]], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its objects are simulated: left behind, it would stop the jobs of every later push."""
    script("PULUMI_HOSTING", "true")
    stack = """[ "$2" != ls ] || echo '[{"name": "pr-7"}]'"""
    cause = "echo 'error: no scope. Next: give it'; exit 1"
    script("PULUMI", f"case $1 in stack) {stack};; preview) echo '{{}}';; destroy) {cause};; esac")
    assert pipeline.closed() == 0
    assert pipeline.pull_request() == 1
    failed = "| stack pr-7, in the sandbox | **failed**: `pulumi destroy: error: no scope. Next: give it` |"
    assert failed in capsys.readouterr().out
    made = [arguments for arguments, _ in calls()]
    assert made.count("stack rm --yes --force pr-7 --non-interactive") == 3
    ordered = [row.partition(" --")[0] for row in made if row.startswith(("state", "destroy"))]
    assert ordered == ["state unprotect", "destroy"] * 3


def test_a_command_is_named_when_it_begins_while_it_runs_and_when_it_ends(
    calls: Callable[[], list[tuple[str, str]]],
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A job that is killed in the middle shows what it was doing. The command waits until it was named."""
    monkeypatch.setattr(plan, "PROGRESS_SECONDS", 0.01)
    script("PULUMI", f"until [ -e {tmp_path}/named ]; do sleep 0.01; done; echo out; echo err >&2; exit 3")
    named: list[str] = []

    def note(text: str, **_: object) -> None:
        named.append(text)
        if "so far" in text:
            (tmp_path / "named").touch()

    monkeypatch.setattr(plan, "print", note, raising=False)
    secret = ["--secret", "value"]
    done = plan.run([os.environ["PULUMI"], "config", "set", "--path", "name", *secret], tmp_path, {})
    assert done == (3, "out\n", "err\n")
    assert named[0] == "$ PULUMI config set name"
    assert named[1].startswith("  PULUMI config set name: ")
    assert named[-1].startswith("  exit code 3 after ")
    assert "value" not in "".join(named)


@pytest.mark.parametrize("drift", [0, 7])
def test_without_every_export_there_is_no_audit(
    calls: Callable[[], list[tuple[str, str]]],
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    drift: int,
) -> None:
    """It would name the commands that delete what the misspelled stack manages."""
    script("PULUMI_HOSTING", "echo remove: all; exit 7")
    script(
        "PULUMI",
        f"case $* in refresh*) exit {drift};; "
        "*--stack\\ stagin\\ *) echo 'error: no stack stagin. Next: x' >&2; exit 255;; *) echo '{}';; esac",
    )
    monkeypatch.setenv("OTHER_STACKS", "staging stagin")
    assert pipeline.nightly() == 1
    printed = capsys.readouterr().out
    assert f"| drift of prod | {'**found**' if drift else 'nothing found'} |" in printed
    reason = "stack stagin cannot be exported: error: no stack stagin. Next: correct STACK or OTHER_STACKS"
    assert f"| audit of the account | **failed**: `{NOT_MADE}{reason}` |" in printed
    assert not any(arguments.startswith("audit") for arguments, _ in calls())
    monkeypatch.setenv("OTHER_STACKS", "staging")
    assert pipeline.nightly() == 7
    assert [arguments.count("--stack") for arguments, _ in calls() if arguments.startswith("audit")] == [2]


def test_each_of_several_stacks_with_similar_names_is_audited(
    calls: Callable[[], list[tuple[str, str]]],
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    names = ["acme/web-eu", "acme-web/eu", "acme/web/eu"]
    monkeypatch.setenv("STACK", names[0])
    monkeypatch.setenv("OTHER_STACKS", " ".join(names[1:]))
    script("PULUMI", '[ $1 = refresh ] || echo "$4"')  # each stack exports its own name
    script("PULUMI_HOSTING", f'[ $1 != audit ] || cat "$3" "$5" "$7" > {tmp_path}/audited')
    assert pipeline.nightly() == 0
    assert (tmp_path / "audited").read_text().split() == names
    assert [arguments.count("--stack") for arguments, _ in calls() if arguments.startswith("audit")] == [3]


def test_after_a_failed_check_run_there_is_no_audit(
    calls: Callable[[], list[tuple[str, str]]],
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("STACK", "")
    monkeypatch.setenv("PLAYBOOK", "site.yml")
    script("PULUMI_HOSTING", "echo remove: all; exit 7")
    failure = {"task": "web", "message": "no tariff 99", "failure": {"code": "not_found"}}
    written = json.dumps({"failures": [failure]})
    ends = "echo '[ERROR]: no tariff 98'; exit 2"
    for body, reason in (
        (f"echo '{written}' > $HOSTING_DRIFT_REPORT; {ends}", "web: no tariff 99 (not_found)"),
        (
            f"echo '{written.replace('99', '99 (404 not_found, x)')}' > $HOSTING_DRIFT_REPORT; {ends}",
            "web: no tariff 99 (404 not_found, x)",
        ),
        (ends, "[ERROR]: no tariff 98"),
    ):
        script("ANSIBLE_PLAYBOOK", body)
        assert pipeline.nightly() == 1
        reason = f"{NOT_MADE}the check run of site.yml failed: {reason}"
        assert f"| audit of the account | **failed**: `{reason}` |" in capsys.readouterr().out
    assert not any(arguments.startswith("audit") for arguments, _ in calls())


def test_what_ends_is_found_and_a_warning_is_shown_though_all_is_well(
    calls: Callable[[], list[tuple[str, str]]], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    script("PULUMI", "echo 'warning: server web ends on Friday'; [ $1 != stack ] || echo '{}'")
    script("PULUMI_HOSTING", "true")
    assert pipeline.nightly() == 0
    printed = capsys.readouterr().out
    assert "| drift of prod | nothing found |" in printed
    assert "server web ends on Friday" in printed
    assert "Paid time of the account: nothing found" in printed
    script("PULUMI_HOSTING", "[ $1 != renewals ] || { echo 'ends: server 20001'; exit 7; }")
    assert pipeline.nightly() == 7
    printed = capsys.readouterr().out
    assert "Paid time of the account: **found**" in printed
    assert "ends: server 20001" in printed


@pytest.mark.parametrize(
    ("setting", "name", "command"),
    [
        ("STACK", "prod", "pulumi up --refresh --stack prod"),
        ("PLAYBOOK", "site.yml", "ansible-playbook -i hosts site.yml"),
    ],
)
def test_the_issue_names_the_command_that_repairs_drift(
    calls: Callable[[], list[tuple[str, str]]],
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    setting: str,
    name: str,
    command: str,
) -> None:
    monkeypatch.setenv("STACK", "")
    monkeypatch.setenv(setting, name)
    monkeypatch.setenv("PLAYBOOK_ARGS", "-i hosts")
    monkeypatch.setenv("OTHER_STACKS", "staging")
    script("PULUMI_HOSTING", "true")
    script("PULUMI", "[ $1 != refresh ] || exit 7")
    script("ANSIBLE_PLAYBOOK", "echo '{\"failures\": []}' > $HOSTING_DRIFT_REPORT; exit 3")
    assert pipeline.nightly() == 7
    assert f"Repair the drift of {name}: `{command}`, or declare" in capsys.readouterr().out
    script("PULUMI", "true")
    script("ANSIBLE_PLAYBOOK", "echo '{\"failures\": []}' > $HOSTING_DRIFT_REPORT")
    assert pipeline.nightly() == 0
    assert "Repair" not in capsys.readouterr().out
    audits = [arguments for arguments, _ in calls() if arguments.startswith("audit ")]
    assert len(audits) == 2
    assert all("/1.json" in arguments for arguments in audits)  # beside a playbook too
    monkeypatch.setenv("OTHER_STACKS", "")
    assert pipeline.nightly() == 0
    *_, (last, _) = calls()
    assert last.endswith(" --form ansible") is (setting == "PLAYBOOK")  # no stack has to be given
