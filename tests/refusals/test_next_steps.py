"""What a next step names is run: the commands and modules of the tables of words, and every command of ours
that a text of the product names."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ansible_collections.hosting.cloud.plugins.module_utils import failures
from pulumi_hosting.cli import connection, main
from pulumi_hosting.client import words
from tests.ansible.in_process import Play
from tests.refusals.worlds import CommandLine
from tests.support.account import Account
from tests.support.texts import texts
from tests.test_advice import PACKAGE

STEPS = ("renew server", "renew domain", "top_up", "pay", "reset")


def stand(account: Account, folder: Path, step: str) -> dict[str, str]:
    """What the step is about is there; what stands in the place of its names."""
    name, _, kind = step.partition(" ")
    id = account.domain("old.com") if kind == "domain" else account.server(name="web")
    if name == "pay":
        id = account.control("POST", "/invoices", {"amount": "3.00"})["id"]
    until = "2030-04-20" if kind == "domain" else "2029-05-20"
    values = {"id": str(id), "kind": kind, "until": until, "FILE": str(folder / "password")}
    return {**values, "amount": "25.00", "due": "5000.00", "gateway": "card"}


def filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], text).replace("FILE", values["FILE"])


def run(account: Account, patch: pytest.MonkeyPatch, *typed: str) -> Result:
    patch.setattr(connection, "Client", CommandLine(account)._client)
    return CliRunner().invoke(main, typed)


@pytest.mark.parametrize("step", STEPS)
def test_a_command_of_a_table_does_what_it_says(
    step: str, account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = filled(getattr(words.COMMAND_LINE, step.partition(" ")[0]), stand(account, tmp_path, step))
    typed = command.removeprefix("pulumi-hosting ").split()
    before = len(account.requested("POST"))
    looked = run(account, monkeypatch, *typed, "--preview-only")  # what the table calls a read
    assert (looked.exit_code, len(account.requested("POST"))) == (0, before), looked.output
    done = run(account, monkeypatch, *typed, "--yes")
    assert (done.exit_code, len(account.requested("POST")) > before) == (0, True), done.output


@pytest.mark.parametrize("step", STEPS)
def test_a_module_of_a_table_does_what_it_says(step: str, account: Account, tmp_path: Path) -> None:
    values = stand(account, tmp_path, step)
    text = filled(getattr(failures.words(), step.partition(" ")[0]), values)
    name, _, given = text.removeprefix("hosting.cloud.").partition(" with ")
    options: dict[str, Any] = dict(re.findall(r"(\w+): ([\w./-]+)", given))
    named = set(re.findall(r"\w+(?=: )|(?<= and )\w+$", given))
    options |= dict.fromkeys(named - options.keys(), values["FILE"])
    if "amount" in options:
        options["gateway"] = "card"
    result = Play(account)(name, **options)
    assert (result["failed"], result["changed"]) == (False, True), result


READS: dict[str, Callable[[Path], list[list[str]]]] = {
    "renewals": lambda folder: [[]],
    "import": lambda folder: [
        [str(folder / form), "--form", form] for form in ("dynamic", "native", "ansible")
    ],
}
"""Commands that a text names and that only read: what is typed behind them."""
OTHERS = {
    "action": "run above",
    "certify": "a program of its own, run by tests/certify",
    "emulator": "serves until it is stopped: tests/emulator/test_process.py",
    "offline": "an engine: tests/offline",
    "plugin": "installs: tests/provider/test_plugin_process.py",
    "recover": "reads the export of a stack: tests/reports/test_recover.py",
    "rehearse": "an engine: tests/test_rehearsal.py",
}


@pytest.mark.parametrize("command", READS)
def test_a_command_that_reads_answers(
    command: str, account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.server(name="web")
    account.domain("shop.com")
    sent = len(account.requested("POST"))
    for typed in READS[command](tmp_path):
        answer = run(account, monkeypatch, command, *typed)
        assert answer.exit_code == 0, answer.output
    assert len(account.requested("POST")) == sent


def test_every_command_that_a_text_names_is_run() -> None:
    said = {
        found
        for _, text in texts(PACKAGE)
        for found in re.findall(r"pulumi-hosting ([a-z]+)", text)
        if found in main.list_commands(None)  # type: ignore[arg-type]  # it needs no context
    }
    assert said - READS.keys() == OTHERS.keys()
