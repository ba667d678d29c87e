"""`pulumi-hosting rehearse --days`: what the report says of the days after the first `up` is what the account
held.
"""

import json
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine, Run, Stack
from pulumi_hosting.rehearsal.outcome import Loss, RehearsalOutcome
from pulumi_hosting.rehearsal.playbooks import Playbook, ansible
from pulumi_hosting.rehearsal.runner import Rehearsal
from pulumi_hosting.rehearsal.warm_python import WarmPython

ROOT = Path(__file__).parents[1]
EVENTS_OF_A_SUSPENSION = {"server.suspended": 0, "invoice.overdue": 0}


@dataclass
class Account:
    """What the emulator held at the end of the days."""

    objects: dict[str, Any] = field(default_factory=dict)
    ledger: list[dict[str, Any]] = field(default_factory=list)

    def lost(self) -> dict[tuple[str, str], datetime]:
        """What is suspended or expired now, and until when it was paid."""
        rows = [("server", row, row["next_due_at"]) for row in self.objects["servers"]]
        rows += [("domain", row, row["expires_at"]) for row in self.objects["domains"]]
        return {
            (kind, str(row["id"])): datetime.fromtimestamp(until, UTC)
            for kind, row, until in rows
            if row["status"] in ("suspended", "expired")
        }

    def renewals(self) -> list[str]:
        return [row["amount"] for row in self.ledger if row["operation"] == "billing"]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """Filled right before the stack of a rehearsal is destroyed, or after the last run of a playbook."""
    found, destroy = Account(), Stack.destroy

    def look(stack: Stack | Playbook) -> None:
        control = Control(stack.environ["HOSTING_BASE_URL"].replace("/v1", "/_control"))
        found.objects, found.ledger = control("GET", "/objects"), control.ledger()

    def look_and_destroy(stack: Stack, *flags: str) -> Run:
        look(stack)
        return destroy(stack, *flags)

    monkeypatch.setattr(Stack, "destroy", look_and_destroy)
    monkeypatch.setattr(Playbook, "remove", look)
    return found


def program(folder: Path, *lines: str) -> Path:
    (folder / "Pulumi.yaml").write_text("name: year\nruntime: python\n", encoding="utf-8")
    text = "\n".join(["from pulumi_hosting import Domain, Server", *lines])
    (folder / "__main__.py").write_text(text + "\n", encoding="utf-8")
    return folder


def server(name: str, auto_renew: bool) -> str:
    return f"Server({name!r}, tariff_id=1, os='debian-12', auto_renew={auto_renew})"


def domain(name: str, auto_renew: bool) -> str:
    return f"Domain({name!r}, name='{name}.com', auto_renew={auto_renew})"


def titles(outcome: RehearsalOutcome) -> list[str]:
    return [step.title for step in outcome.steps]


def losses(outcome: RehearsalOutcome, name: str) -> dict[str, Loss]:
    return {loss.became: loss for loss in outcome.losses if loss.name == name}


def test_the_report_says_what_the_account_lost(engine: Engine, tmp_path: Path, account: Account) -> None:
    """One server does not renew itself, and the balance covers the other one for a month."""
    lines: list[str] = []
    source = program(tmp_path, server("alone", False), server("web", True))
    outcome = Rehearsal(engine, source, lines.append, days=62, balance=Decimal("15.00")).run()
    assert outcome.passed, lines
    # 10 days before a month ends the warning of a server begins.
    looks = [20, 23, 29, 30, 44, 51, 54, 60, 61]  # 14 days after its suspension a server is terminated
    previews = [title for title in titles(outcome) if "preview" in title]
    assert previews == ["preview", *(f"day {day}: preview" for day in looks)]
    alone, web = losses(outcome, "alone"), losses(outcome, "web")
    assert (set(alone), set(web)) == ({"suspended", "terminated"}, {"suspended"})
    assert web["suspended"].announced == {
        **{"preview": 31, "up": 31, "nightly job": 14, "balance.low": 7},
        **EVENTS_OF_A_SUSPENSION,
    }
    assert alone["suspended"].announced == {"nightly job": 14, "preview": 10, **EVENTS_OF_A_SUSPENSION}
    assert (alone["terminated"].at - alone["suspended"].at).days == 14
    assert alone["terminated"].announced["server.terminated"] == 0
    # The account: the one is terminated, the other suspended on the day that the report says.
    assert account.lost() == {("server", web["suspended"].id): web["suspended"].at}
    assert account.renewals() == ["5.00"]
    # The preview of that day names it, and neither that nor the next `up` buys another one.
    gone = f"server {alone['suspended'].id} (alone) is gone from the account"
    assert sum(gone in line for line in lines) == 1
    assert [row["type"] for row in account.ledger if row["type"] == "payment"] == ["payment"] * 3
    said = "\n".join(lines)
    for word in ("Soon", "Urgent", "Last day"):
        assert said.count(f"{word}: server {web['suspended'].id} (web) is paid until") == 1
    assert f"LOST   {web['suspended']}" in lines


def test_days_on_which_no_run_can_say_anything_are_skipped(
    warm: WarmPython, tmp_path: Path, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(warm.command))
    source = program(tmp_path, server("web", True))
    options = ["--engine", "offline", "--days", "100", "--json"]
    done = CliRunner().invoke(main, ["rehearse", str(source), *options])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert [step["title"] for step in facts["steps"]] == ["preview", "up", "destroy"]
    assert facts["losses"] == []
    assert (account.lost(), account.renewals()) == ({}, ["5.00"] * 3)


@pytest.mark.slow
def test_what_is_kept_paid_is_not_lost(warm: WarmPython, tmp_path: Path, account: Account) -> None:
    engine = Engine("offline", "", ("-m", "pulumi_hosting.cli", "offline"))
    kept = server("web", False).replace(")", ", keep_paid='7d')")
    outcome = Rehearsal(engine, program(tmp_path, kept), days=50).run()
    assert (outcome.passed, outcome.losses) == (True, [])
    assert titles(outcome)[2:-1] == ["day 20: preview", "day 23: preview", "day 23: up"]
    assert [row["amount"] for row in account.ledger if row["operation"] == "renew_server"] == ["5.00"]
    assert [row["status"] for row in account.objects["servers"]] == ["active"]


@pytest.mark.parametrize("options", [("--balance", "a lot"), ("--balance", "-1"), ("--days", "0")])
def test_wrong_values_are_refused(options: tuple[str, str], tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["rehearse", str(program(tmp_path)), *options])
    assert refused.exit_code == 2
    assert f"Invalid value for {options[0]}:" in refused.stderr.replace("'", "")


PLAYBOOK = """
- hosts: localhost
  gather_facts: false
  vars:
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
  tasks:
    - hosting.cloud.server: {name: web, tariff_id: 1, os: debian-12, auto_renew: false}
    - hosting.cloud.server:
        {name: kept, tariff_id: "{{ tariff }}", os: debian-12, auto_renew: false, keep_paid: 7d}
"""


@pytest.mark.slow
def test_a_playbook_is_checked_on_the_days_on_which_it_may_say_something(
    tmp_path: Path, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", str(ROOT))
    site = tmp_path / "site.yml"
    site.write_text(PLAYBOOK, encoding="utf-8")
    lines: list[str] = []
    outcome = Rehearsal(ansible(), site, lines.append, config={"tariff": "1"}, days=35).run()
    assert outcome.passed, lines
    looks = [title for title in titles(outcome) if title.endswith("check")]
    assert looks == ["check", *(f"day {day}: check" for day in (20, 23, 29, 30))]
    lost = losses(outcome, "web")["suspended"]
    assert lost.announced == {"nightly job": 14, "check": 10, "run": 7, **EVENTS_OF_A_SUSPENSION}
    assert account.lost() == {("server", lost.id): lost.at}
    assert [row["amount"] for row in account.ledger if row["operation"] == "renew_server"] == ["5.00"]


def test_a_playbook_is_refused_without_days(tmp_path: Path) -> None:
    site = tmp_path / "site.yml"
    site.write_text(PLAYBOOK, encoding="utf-8")
    refused = CliRunner().invoke(main, ["rehearse", str(site)])
    assert (refused.exit_code, "Next: add --days" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_a_year_of_ten_objects(tmp_path: Path, account: Account) -> None:
    """Each loss was announced a week before. `make bench ARGS=rehearse` measures a year of the same kind."""
    servers = [server(f"web-{number}", number > 0) for number in range(5)]
    domains = [domain(f"shop-{number}", number > 1) for number in range(5)]
    source = program(tmp_path, *servers, *domains)
    engine = Engine("offline", "", ("-m", "pulumi_hosting.cli", "offline"))
    outcome = Rehearsal(engine, source, days=400, balance=Decimal("150.00")).run()
    assert outcome.passed
    assert account.lost() == {
        (loss.kind, loss.id): loss.at for loss in outcome.losses if loss.became == "expired"
    }
    for loss in outcome.losses:
        known = max(loss.announced["nightly job"], loss.announced["preview"])
        assert known >= 7, loss
    assert [row["id"] for row in account.objects["servers"]] == []
    assert len([loss for loss in outcome.losses if loss.became == "terminated"]) == 5
