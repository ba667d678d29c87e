"""``pulumi-hosting action``: each action of the API from a shell, once, and asked for before it is paid."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pulumi_hosting.actions import ACTIONS, ActionOutcome, act
from pulumi_hosting.cli import main
from pulumi_hosting.cli.action import ACTIONS as COMMANDS
from tests.reports.conftest import Command, Owner

RENEW = ("action", "server-renew", "--name", "web", "--until")


def ledger(owner: Owner) -> list[str]:
    return [row["type"] for row in owner.ledger()]


def test_every_action_is_a_command() -> None:
    assert {name.replace("-", "_") for name in COMMANDS} == set(ACTIONS)


def until(owner: Owner) -> str:
    """The day after the server's paid time."""
    (server,) = owner.living
    due = owner.client.servers.get(server["id"]).billing
    assert due is not None
    assert due.next_due_at is not None
    return f"{due.next_due_at + timedelta(days=1):%Y-%m-%d}"


def test_a_renewal_is_asked_for_and_paid_once(command: Command, owner: Owner) -> None:
    owner.order("web")
    before, end = ledger(owner), until(owner)
    refused = command(*RENEW, end)
    assert refused.exit_code == 2
    assert "It would charge 5.00 EUR (server web, 1 month from " in refused.stderr
    assert "nothing was done: it must ask, and standard input is not a terminal" in refused.stderr
    assert "Next: add --yes" in refused.stderr
    shown = command(*RENEW, end, "--preview-only")
    assert (shown.exit_code, "would be done" in shown.stdout, shown.stdout.count("months: ")) == (0, True, 1)
    costly = command(*RENEW, end, "--yes", "--max-charge", "4.99")
    assert costly.exit_code == 1
    assert costly.stderr.startswith("error: server 'web': with 5.00 EUR for 1 month from "), costly.stderr
    assert "more than --max-charge 4.99; it is not ordered. Next: raise --max-charge" in costly.stderr
    assert ledger(owner) == before
    done = command(*RENEW, end, "--yes", "--max-charge", "5")
    assert done.exit_code == 0, done.output
    assert "renewal of a server: done" in done.stdout
    assert "charged: 5.00" in done.stdout
    assert len(ledger(owner)) == len(before) + 1
    again = command(*RENEW, end, "--yes", "--json")
    facts = json.loads(again.stdout)
    assert (again.exit_code, facts["changed"], facts["charge"]) == (0, False, None)
    assert len(ledger(owner)) == len(before) + 1


def test_a_key_of_the_other_mode_is_refused(command: Command, owner: Owner) -> None:
    owner.order("web")
    before = ledger(owner)
    answer = command(*RENEW, until(owner), "--yes", HOSTING_MODE="test")
    assert (answer.exit_code, "HOSTING_MODE" in answer.stderr or "live key" in answer.stderr) == (1, True), (
        answer.output
    )
    assert ledger(owner) == before
    wrong = command(*RENEW, until(owner), "--yes", HOSTING_MODE="tset")
    assert (wrong.exit_code, "HOSTING_MODE must be live or test" in wrong.stderr) == (1, True)


def test_what_an_interrupted_run_paid_is_reported(
    command: Command, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.order("web")
    end = until(owner)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr("pulumi_hosting.actions.action.purchase_journal.reported", killed)
        assert command(*RENEW, end, "--yes").exit_code != 0
    again = command(*RENEW, end, "--yes", "--json")
    facts = json.loads(again.stdout)
    assert (facts["changed"], facts["charge"]["amount"]) == (True, "5.00"), again.output
    assert ledger(owner) == ["payment", "payment"]
    last = json.loads(command(*RENEW, end, "--yes", "--json").stdout)
    assert (last["changed"], last["charge"]) == (False, None)


def test_a_renewal_that_becomes_due_after_the_first_look_is_not_paid(
    command: Command, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look found nothing to do, so no one was asked."""
    owner.order("web")
    end = until(owner)
    looks = iter([True, False])

    def first_finds_nothing(*given: Any, **more: Any) -> ActionOutcome:
        found = act(*given, **more)
        return replace(found, changed=False, cost=None) if next(looks) else found

    monkeypatch.setattr("pulumi_hosting.cli.run_action.act", first_finds_nothing)
    answer = command(*RENEW, end)
    assert answer.exit_code == 1
    assert "it is not ordered" in answer.stderr
    assert ledger(owner) == ["payment"]


def test_a_price_that_rises_while_a_person_reads_is_not_paid(
    command: Command, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.order("web")
    before = ledger(owner)

    def agree(*_: object, **__: object) -> bool:
        owner.control("PATCH", "/tariffs/1", {"price_monthly": "7.00"})
        return True

    monkeypatch.setattr("pulumi_hosting.cli.run_action.click.confirm", agree)
    monkeypatch.setattr("pulumi_hosting.cli.run_action._is_terminal", lambda: True)
    answer = command(*RENEW, until(owner))
    assert answer.exit_code == 1, answer.output
    assert "more than --max-charge 5.00; it is not ordered" in answer.stderr
    assert ledger(owner) == before


def test_a_password_goes_to_a_new_private_file_only(command: Command, owner: Owner, tmp_path: Path) -> None:
    owner.order("web")
    file = tmp_path / "web.password"
    reset = ("action", "server-password", "--name", "web", "--password-file", file, "--yes")
    done = command(*reset)
    assert done.exit_code == 0, done.output
    password = file.read_text().strip()
    assert len(password) >= 8
    assert password not in done.output
    assert file.stat().st_mode & 0o777 == 0o600
    again = command(*reset)
    assert (again.exit_code, "already exists. Next: give --password-file" in again.stderr) == (2, True)
    assert file.read_text().strip() == password
    other = tmp_path / "other"
    missing = command("action", "server-password", "--name", "x", "--password-file", other, "--yes")
    assert (missing.exit_code, other.exists()) == (1, False)


def test_the_other_actions(command: Command, owner: Owner) -> None:
    owner.order("web")
    owner.control("PATCH", "/account", {"balance": "1.00"})
    top = command(
        "action", "balance-topup", "--amount", 9, "--balance-below", 10, "--gateway", "card", "--yes"
    )
    assert (top.exit_code, "payment_url: http" in top.stdout) == (0, True), top.output
    restart = command("action", "server-restart", "--name", "web", "--yes")
    assert (restart.exit_code, "restart of a server: done" in restart.stdout) == (0, True)
    unknown = command("action", "server-restart", "--id", 999, "--yes")
    assert (unknown.exit_code, "there is no server with id 999" in unknown.stderr) == (1, True)
    wrong = command("action", "server-restart", "--id", "web", "--yes")
    assert wrong.exit_code == 2
    assert wrong.stderr.endswith("id: must be a positive integer. Next: correct --id\n")
    hook = owner.control("POST", "/webhooks", {"url": "https://hooks.example.com/"})["id"]
    gone = command("action", "webhook-redeliver", "--id", hook, "--delivery-id", 999)
    assert "Next: correct --delivery-id; " in gone.stderr
    typo = CliRunner().invoke(main, ["action", "server-renw"])
    assert (typo.exit_code, "Did you mean 'server-renew'?" in typo.output) == (2, True)


def test_a_ping_that_the_receiver_did_not_take_has_failed(command: Command, owner: Owner) -> None:
    hook = owner.control("POST", "/webhooks", {"url": "https://hooks.example.com/"})["id"]
    answer = command("action", "webhook-test", "--id", hook)
    assert answer.stdout.startswith("test of a webhook subscription: failed. Next: look at the receiver")
    assert (answer.exit_code, "ok: False\n" in answer.stdout) == (1, True)
    assert "nothing to do" not in answer.output
    preview = command("action", "webhook-test", "--id", hook, "--preview-only").stdout
    assert preview.startswith("test of a webhook subscription: would be done\n")
