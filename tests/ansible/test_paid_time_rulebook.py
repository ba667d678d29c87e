"""The example rulebook `paid_time.yml`: events of paid time top up, pay and renew, within its limits."""

import json
import shutil
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.paid_days import PaidDays
from tests.ansible.conftest import COLLECTION, Ansible, kill_all
from tests.ansible.test_event_source import HOURLY, Program, Subscriber
from tests.support.waiting import wait_until

EXAMPLE = COLLECTION / "examples" / "rulebooks"
EVENTS = {"balance.low", "server.suspended", "invoice.overdue", "domain.expiring"}
KEPT, LEFT = "example.com", "other-example.com"


def rules() -> dict[str, dict[str, Any]]:
    """The playbook that each type of event starts, with its extra variables."""
    (ruleset,) = yaml.safe_load((EXAMPLE / "paid_time.yml").read_text(encoding="utf-8"))
    found = {}
    for rule in ruleset["rules"]:
        left, _, type = rule["condition"].partition(" == ")
        assert left == "event.payload.type"
        found[json.loads(type)] = rule["action"]["run_playbook"]
    return found


def test_each_event_starts_a_playbook_that_is_there() -> None:
    assert set(rules()) == EVENTS
    for started in rules().values():
        (play,) = yaml.safe_load((EXAMPLE / started["name"]).read_text(encoding="utf-8"))
        assert play["vars_files"] == ["limits.yml"]
        # From an event comes the id of its object, and nothing else.
        assert {*started.get("extra_vars", {}).values()} <= {"{{ event.payload.data.object.id }}"}


class Rulebook:
    """Plays what the rulebook starts for each event of an account, without ansible-rulebook."""

    def __init__(self, ansible: Ansible, days: PaidDays) -> None:
        self.ansible, self.days = ansible, days
        self.folder = Path(shutil.copytree(EXAMPLE, ansible.home / "rulebooks"))

    def limit(self, **limits: Any) -> None:
        file = self.folder / "limits.yml"
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text(encoding="utf-8")) | limits))

    def advance(self, days: int) -> list[dict[str, Any]]:
        """Move the clock; the events that came."""
        self.ansible.advance(days * 86400)
        events, self.days.inbox.events = self.days.inbox.events, []
        return [dict(event) for event in events]

    def play(self, *events: dict[str, Any], well: bool = True) -> str:
        """What the playbooks of these events printed."""
        printed = ""
        for event in events:
            started = rules()[event["type"]]
            given = {
                name: jinja2.Template(text).render(event={"payload": event})
                for name, text in started.get("extra_vars", {}).items()
            }
            arguments = ("--extra-vars", json.dumps(given))
            process = self.ansible.start_file(self.folder / started["name"], arguments)
            printed += self.ansible.finish(process, well=well).output
        return printed

    def paid(self) -> list[str]:
        """What was charged by the playbooks."""
        operations = ("pay_invoice", "renew_server", "renew_domain")
        return [row["amount"] for row in self.ansible.ledger() if row["operation"] in operations]


@pytest.mark.slow
def test_what_ends_is_kept_within_the_limits(ansible: Ansible) -> None:
    ansible.client.servers.create(
        tariff_id=1, os="debian-12", name="web", idempotency_key="one-server-for-all"
    )
    for name in (KEPT, LEFT):
        ansible.client.domains.register(name=name, idempotency_key=f"the-domain-{name}")
    ansible.control("PATCH", "/account", {"balance": "1.00"})
    with PaidDays(Control(ansible.emulator.control_url), ansible.emulator.base_url, 400) as days:
        rulebook = Rulebook(ansible, days)

        (low,) = rulebook.advance(24)
        printed = rulebook.play(low, low)  # a rule may fire twice
        (topup,) = [row for row in ansible.objects("invoices") if row["type"] == "topup"]
        assert (topup["status"], topup["amount"]) == ("not_paid", "50.00")
        assert f"Pay here: https://pay.hosting.example/card/{topup['id']}" in printed

        expired, suspended, overdue = rulebook.advance(7)
        assert expired["data"]["object"]["id"] == topup["id"]  # not paid in three days, which may still be
        assert (suspended["type"], overdue["type"]) == ("server.suspended", "invoice.overdue")
        assert "balance" in rulebook.play(suspended, well=False)  # it does not cover the invoice
        assert rulebook.paid() == []
        ansible.control("POST", f"/invoices/{topup['id']}/confirm", {})
        rulebook.limit(max_charge="4.99")
        assert "4.99" in rulebook.play(suspended, well=False)
        assert rulebook.paid() == []
        rulebook.limit(max_charge="20.00")
        rulebook.play(expired, suspended, overdue)
        assert rulebook.paid() == ["5.00"]
        assert [row["status"] for row in ansible.living] == ["active"]

        ansible.control("PATCH", "/account", {"balance": "200.00"})
        events = rulebook.advance(306)
        assert {event["type"] for event in events} == {"domain.expiring"}
        rulebook.play(*events, *events)
        assert rulebook.paid() == ["5.00", "13.00"]
        rulebook.advance(30)
    states = {row["name"]: row["status"] for row in ansible.objects("domains")}
    assert states == {KEPT: "active", LEFT: "expired"}


@pytest.mark.slow
def test_it_runs_under_ansible_rulebook(emulator: Any, tmp_path: Path) -> None:
    subscriber = Subscriber(emulator)
    program = Program(subscriber, tmp_path, "paid_time.yml")
    running = program.start()
    try:
        subscriber.order(HOURLY, hours=24)
        subscriber.control("PATCH", "/account", {"balance": "0.01"})
        subscriber.delivered("balance.low")
        wait_until(lambda: program.said("Pay here: ") == 1)
    finally:
        kill_all(running)
    topups = [row for row in subscriber.control("GET", "/objects")["invoices"] if row["type"] == "topup"]
    assert [(row["status"], row["amount"]) for row in topups] == [("not_paid", "50.00")]
    assert subscriber.emulator.live_key not in program.output.read_text()
