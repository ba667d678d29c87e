"""What every command does with the account's rate limit: it says that it waits, and keeps to the bound."""

import logging
from pathlib import Path

import pytest

from pulumi_hosting.cli.connection import connect
from pulumi_hosting.cli.progress import ProgressLine
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.emulator import Running
from pulumi_hosting.resources import RESOURCES
from tests.reports.conftest import Command, Owner

LINE = "rate limit reached: waiting 41 s, 12 requests ahead"


@pytest.fixture
def environ(emulator: Running, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("HOSTING_API_KEY", emulator.live_key)
    monkeypatch.setenv("HOSTING_BASE_URL", emulator.base_url)
    return monkeypatch


def test_a_wait_is_told_on_standard_error(
    environ: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with connect(ProgressLine()) as client:
        client.rate_limiter.on_wait(LINE)
    assert capsys.readouterr() == ("", f"{LINE}\n")


def test_commands_that_read_the_account_say_how_far_they_are(
    command: Command, owner: Owner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[int, int | None, str]] = []
    monkeypatch.setattr(ProgressLine, "step", lambda self, *step: steps.append(step))
    for arguments in (("audit",), ("import", tmp_path)):
        steps.clear()
        assert command(*arguments).exit_code == 0
        assert steps == [
            (number, len(RESOURCES), f"reading every {resource.title}")
            for number, resource in enumerate(RESOURCES.values(), 1)
        ]
    (tmp_path / "preview.json").write_text('{"steps": []}')
    steps.clear()
    assert command("cost", tmp_path / "preview.json").exit_code == 0
    assert steps == [(1, None, "asking the account for prices")]


def test_a_program_of_a_user_is_told_by_a_warning(
    environ: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Client() as client:
        client.rate_limiter.on_wait(LINE)
    assert caplog.record_tuples == [("pulumi_hosting", logging.WARNING, LINE)]


def test_the_wait_of_a_command_has_a_bound(
    command: Command, owner: Owner, environ: pytest.MonkeyPatch
) -> None:
    key = owner.control("POST", "/keys", {"mode": "live", "rate_per_minute": 1})["key"]
    environ.setenv("HOSTING_RATE_LIMIT_TIMEOUT", "2")
    for _ in range(2):
        answer = command("audit", key=key)
    assert answer.exit_code == 1
    assert "leaves no room for another request within 2 s" in answer.stderr
    environ.setenv("HOSTING_RATE_LIMIT_TIMEOUT", "soon")
    with pytest.raises(ConfigurationError, match="HOSTING_RATE_LIMIT_TIMEOUT must be a number of seconds"):
        connect(ProgressLine())
