"""A tenth of the scripts shows what is recorded; the comparison can fail; no recording holds a secret."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.resources import RESOURCES
from tests.ansible.test_specs import MODULES
from tests.transcripts import __main__ as command
from tests.transcripts import recording
from tests.transcripts.changes import changes
from tests.transcripts.normal import Names
from tests.transcripts.recording import RECORDED, difference, play, recorded
from tests.transcripts.scripts import Script, sample, scripts

SECRET = re.compile(r"vk_(live|test)_\w{8}|whsec_\w{8}|[0-9a-f]{17}A7#|PRIVATE KEY-----")
"""Keys, webhook secrets and root passwords as the emulator makes them."""
SECRET_FIELDS = ("password", "auth_code", "api_key")


@pytest.mark.slow
@pytest.mark.parametrize("script", sample(), ids=str)
@pytest.mark.usefixtures("warm")
def test_a_sample_shows_what_is_recorded(script: Script) -> None:
    found = difference(script, play(script))
    assert not found, "\n".join(found)


def test_every_script_has_a_recording_and_every_recording_a_script() -> None:
    assert [str(script) for script in scripts() if not recorded(script)] == []
    titles = [
        line.removeprefix("=== ")
        for file in sorted(RECORDED.glob("*.txt"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("=== ")
    ]
    assert titles == [str(script) for script in scripts()]
    assert len(set(titles)) == len(titles)


def _values(value: Any, *names: str) -> Iterator[str]:
    """Texts below these names."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in names and isinstance(item, str):
                yield item
            yield from _values(item, *names)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _values(item, *names)


def test_no_recording_holds_a_secret() -> None:
    declared = {
        secret for script in scripts() for secret in _values([script.declare, script.steps], *SECRET_FIELDS)
    }
    assert declared
    for file in RECORDED.glob("*.txt"):
        text = file.read_text(encoding="utf-8")
        assert [found[0] for found in SECRET.finditer(text)] == []
        assert [secret for secret in declared if secret in text] == []


def test_every_resource_and_every_module_is_in_a_script() -> None:
    declared = {
        kind
        for script in scripts()
        for given in [script.declare, *_values_of(script, "declare")]
        for kind, _ in given.values()
    }
    assert {"".join(part.title() for part in kind.split("_")) for kind in RESOURCES} <= declared
    played = {
        name
        for script in scripts()
        for kind in ("run", "check")
        for tasks in _values_of(script, kind)
        for task in tasks
        for name in task
    }
    assert set(MODULES) <= played


def _values_of(script: Script, kind: str) -> list[Any]:
    return [step[kind] for step in script.steps if not isinstance(step, str) and kind in step]


def test_another_message_is_reported(tmp_path: Path) -> None:
    script = scripts()[0]
    copy = tmp_path / "recorded"
    shutil.copytree(RECORDED, copy)
    file = copy / f"{script.group}.txt"
    before = file.read_text(encoding="utf-8")
    message = next(line for line in before.splitlines() if line.startswith("| "))
    file.write_text(before.replace(message, f"{message}, so it was", 1), encoding="utf-8")
    assert difference(script, recorded(script)) == []
    found = difference(script, recorded(script), copy)
    assert [line for line in found if re.match(r"[-+](?![-+])", line)] == [
        f"-{message}, so it was",
        f"+{message}",
    ]


@pytest.mark.slow
def test_the_command_ends_with_1_at_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = next(script for script in scripts() if script.form == "tools")
    copy = tmp_path / "recorded"
    shutil.copytree(RECORDED, copy)
    monkeypatch.setattr("sys.argv", ["transcripts", "--only", str(script), "--jobs", "1"])
    assert command.main() == 0
    monkeypatch.setattr(recording, "RECORDED", copy)
    file = copy / f"{script.group}.txt"
    file.write_text(file.read_text(encoding="utf-8").replace("exit 1", "exit 3", 1), encoding="utf-8")
    assert command.main() == 1
    assert "\n-exit 3\n+exit 1\n" in capsys.readouterr().out


def test_values_keep_their_names() -> None:
    names = Names({"/var/x/dir": "<dir>", "/var/x": "<folder>"})
    key = names.know_key("iac-0123456789")
    assert names.normal("server 20007 and 20003, iac-0123456789 in /var/x/dir/a") == (
        f"server <server-1> and <server-2>, {key} in <dir>/a"
    )
    assert names.normal("server 20003, invoice 40001, due 2029-05-15T08:00:00Z, at 2026-11-23 09:15") == (
        "server <server-2>, invoice <invoice-1>, due <day 30>, at <time>"
    )
    assert names.normal("GET /x?since=2029-04-16T07%3A59%3A41.98Z, POST /servers/9006960851469585/renew") == (
        "GET /x?since=<day 1>, POST /servers/<no-server>/renew"
    )
    assert names.normal("198.18.1.1, 20001.00 EUR, pulumi 3.272.0, http://127.0.0.1:40123/v1") == (
        "198.18.1.1, 20001.00 EUR, pulumi <version>, http://<emulator>/v1"
    )


def test_changes_name_what_came_and_went() -> None:
    before = {"web": {"a": 1, "b": {"c": 1, "d": 2}, "e": {"f": 1}}, "old": {}}
    after = {"web": {"a": 2, "e": None, "g": ["x"]}, "new": {"h": True}}
    assert list(changes(before, after)) == [
        "~ web",
        "  - b",
        "  ~ a = 2",
        "  + e = null",
        '  + g = ["x"]',
        "- old",
        "+ new",
        "  + h = true",
    ]
