"""The drift callback, enabled as users enable it, under the real ansible-playbook."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ansible_collections.hosting.cloud.tests.unit.plugins.callback.test_drift import *  # noqa: F403  # they count here as well
from pulumi_hosting.cli import main
from tests.ansible.conftest import Ansible, Played
from tests.ansible.test_playbooks import KEY_LINE

CHECK = ("--check", "--diff")
KEY = {"name": "key", "hosting.cloud.ssh_key": {"name": "laptop", "public_key": KEY_LINE}}


def run(
    ansible: Ansible,
    *tasks: Mapping[str, Any],
    arguments: tuple[str, ...] = CHECK,
    handlers: tuple[Mapping[str, Any], ...] = (),
    environ: Mapping[str, str] | None = None,
) -> tuple[Played, dict[str, Any]]:
    playbook = ansible.home / "site.yml"
    play = {
        "name": "site",
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "tasks": list(tasks),
        "handlers": list(handlers),
    }
    playbook.write_text(yaml.safe_dump([play], sort_keys=False))
    return run_files(ansible, playbook, arguments=arguments, environ=environ)


def run_files(
    ansible: Ansible, first: Path, *, arguments: tuple[str, ...], environ: Mapping[str, str] | None = None
) -> tuple[Played, dict[str, Any]]:
    report = ansible.home / "reports" / "drift.json"
    chosen = {
        "ANSIBLE_CALLBACKS_ENABLED": "hosting.cloud.drift,record",
        "HOSTING_DRIFT_REPORT": str(report),
        **(environ or {}),
    }
    played = ansible.finish(ansible.start_file(first, arguments, chosen), well=False)
    assert "Traceback" not in played.output
    warnings = [line for line in played.output.splitlines() if "WARNING" in line]
    of_paid_time = re.compile("paid until|does not renew itself|the balance covers everything")
    assert [line for line in warnings if not of_paid_time.search(line)] == [], played.output
    written: dict[str, Any] = json.loads(report.read_text())
    assert report.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in report.parent.iterdir()] == ["drift.json"]
    return played, written


@pytest.mark.daily
def test_a_check_that_finds_drift_ends_with_3(ansible: Ansible) -> None:
    """Missing: 3, with the difference in the report. Created: 0, with the same change. Checked again: 0, no
    change."""
    junit = ansible.home / "junit"
    as_junit = {
        "JUNIT_OUTPUT_DIR": str(junit),
        "JUNIT_FAIL_ON_CHANGE": "true",
        "JUNIT_HIDE_TASK_ARGUMENTS": "true",
    }
    both = {"ANSIBLE_CALLBACKS_ENABLED": "hosting.cloud.drift,ansible.builtin.junit,record"}
    played, report = run(ansible, KEY, environ={**both, **as_junit})
    assert played.code == 3, played.output
    assert (report["drift"], report["check_mode"], report["playbooks"]) == (
        True,
        True,
        [str(ansible.home / "site.yml")],
    )
    (change,) = report["changes"]
    assert (change["host"], change["play"], change["task"], change["module"]) == (
        "localhost",
        "site",
        "key",
        "hosting.cloud.ssh_key",
    )
    assert change["path"].endswith("site.yml:7")
    assert (
        change["diff"] == [played["key"]["diff"]]
        if isinstance(played["key"]["diff"], dict)
        else played["key"]["diff"]
    )
    assert (report["failures"], report["objects"]) == ([], [])
    assert report["totals"] == {
        "hosts": 1,
        "ok": 1,
        "changed": 1,
        "failures": 0,
        "ignored": 0,
        "rescued": 0,
        "skipped": 0,
        "unreachable": 0,
    }
    assert report["hosts"]["localhost"]["changed"] == 1
    assert set(report["versions"]) == {"ansible_core", "python", "pulumi_hosting"}
    assert report["started_at"] <= report["finished_at"]
    assert report["finished_at"].endswith("Z")
    assert ansible.writes() == []
    # The other callback was called at the end too: its file reports the task with drift as a failure.
    (written,) = junit.glob("*.xml")
    assert len(ElementTree.parse(written).findall(".//failure")) == 1  # noqa: S314  # written by the run above

    played, report = run(ansible, KEY, arguments=("--diff",))
    assert (played.code, report["drift"], report["check_mode"], len(report["changes"])) == (0, True, False, 1)
    played, report = run(ansible, KEY)
    assert (played.code, report["drift"], report["changes"], report["totals"]["ok"]) == (0, False, [], 1)
    (key,) = ansible.objects("ssh_keys")
    named = {"kind": "ssh_key", "id": str(key["id"]), "name": "laptop"}
    assert report["objects"] == [{**named, "mode": "live", "is_kept_paid": False}]


@pytest.mark.emulator(clock="manual")
def test_a_domain_that_has_expired_is_drift_though_nothing_changes(ansible: Ansible) -> None:
    """Its registration says that it does not renew itself; each check names its end, and then that it is
    over."""
    names = {"nameservers": ["ns1.example.net", "ns2.example.net"]}
    task = {"name": "shop", "hosting.cloud.domain": {"name": "shop.com", **names}}
    played, _ = run(ansible, task, arguments=())
    assert (played.code, played["shop"]["changed"]) == (0, True)
    assert "does not renew itself. Next: set auto_renew" in "".join(played["shop"]["warnings"])
    ansible.control("POST", "/clock", {"advance": 362 * 86400})
    played, report = run(ansible, task)
    assert (played.code, report["changes"]) == (0, [])
    said, covers = played["shop"]["warnings"]
    assert covers == "balance 988.00 EUR: the balance covers everything that renews itself"
    assert said.startswith("Urgent: domain 70001 (shop.com) is paid until ")
    assert "hosting.cloud.domain_renew with id: 70001 and until: " in said
    ansible.control("POST", "/clock", {"advance": 8 * 86400})
    played, report = run(ansible, task)
    assert (played.code, report["drift"], played["shop"]["changed"]) == (3, True, False)
    (change,) = report["changes"]
    assert (change["task"], change["ended"]) == ("shop", "expired")
    assert "domain 70001 (shop.com) is expired (it was paid until " in "".join(played["shop"]["warnings"])
    (domain,) = ansible.objects("domains")
    assert (domain["status"], len(ansible.ledger())) == ("expired", 1)


@pytest.mark.slow
@pytest.mark.emulator(clock="manual")
def test_what_ends_within_a_given_time_is_drift(ansible: Ansible) -> None:
    """Only if the setting asks for it, and the object is not paid for."""
    task = {"name": "shop", "hosting.cloud.domain": {"name": "shop.com"}}
    bought, _ = run(ansible, task, arguments=())
    ansible.control("POST", "/clock", {"advance": 360 * 86400})
    for days, code in (("", 0), ("1", 0), ("7", 3)):
        environ = {"HOSTING_DRIFT_ENDS_WITHIN": days} if days else {}
        played, report = run(ansible, task, environ=environ)
        assert (played.code, report["drift"]) == (code, code == 3)
    (change,) = report["changes"]
    until = bought["shop"]["domain"]["expires_at"][:10]
    assert (change["task"], change["ended"]) == ("shop", f"ends {until}")
    (domain,) = ansible.objects("domains")
    assert (domain["status"], len(ansible.ledger())) == ("active", 1)


@pytest.mark.slow
def test_loops_handlers_and_failures(ansible: Ansible) -> None:
    """Items of a loop one by one, ignored failures, a censored task, a handler. Tasks after ``meta:
    end_play`` are absent."""
    loop = {
        "name": "words",
        "ansible.builtin.debug": {"msg": "{{ item.word }}"},
        "changed_when": "item.word != 'same'",
        "failed_when": "item.word == 'bad'",
        "ignore_errors": True,
        "loop": [{"word": "one"}, {"word": "same"}, {"word": "bad"}],
        "loop_control": {"label": "{{ item.word }}"},
        "notify": "handler",
    }
    censored = {
        "name": "hidden",
        "ansible.builtin.debug": {"msg": "Zebra-4711"},
        "changed_when": True,
        "no_log": True,
    }
    censored_loop = {
        **censored,
        "name": "hidden loop",
        "ansible.builtin.debug": {"msg": "{{ item }}"},
        "loop": ["Zebra-4712"],
    }
    refused = {"name": "refused", "hosting.cloud.server": {"id": 4711, "notes": "?"}, "ignore_errors": True}
    rescued = {
        "block": [{"name": "dies", "ansible.builtin.fail": {"msg": "once"}}],
        "rescue": [{"ansible.builtin.debug": {"msg": "saved"}}],
    }
    plain = {"name": "plain", "ansible.builtin.debug": {"msg": "no change"}}
    notifies = {
        "name": "notifies",
        "ansible.builtin.debug": {"msg": "x"},
        "changed_when": True,
        "notify": "handler",
    }
    end: list[dict[str, Any]] = [
        {"name": "end", "ansible.builtin.meta": "end_play"},
        {"name": "never", "ansible.builtin.debug": {"msg": "x"}, "changed_when": True},
    ]
    handler = {"name": "handler", "ansible.builtin.debug": {"msg": "handled"}, "changed_when": True}
    flush = {"name": "flush", "ansible.builtin.meta": "flush_handlers"}
    played, report = run(
        ansible,
        loop,
        censored,
        censored_loop,
        refused,
        rescued,
        plain,
        notifies,
        flush,
        *end,
        handlers=(handler,),
    )
    assert played.code == 3, played.output
    assert [(change["task"], change.get("item")) for change in report["changes"]] == [
        ("words", "one"),
        ("hidden", None),
        ("hidden loop", "(censored due to no_log)"),
        ("notifies", None),
        ("handler", None),
    ]
    words, refusal, dies = report["failures"]
    assert (words["task"], words["item"], words["ignored"]) == ("words", "bad", True)
    assert (refusal["task"], refusal["ignored"], refusal["failure"]) == (
        "refused",
        True,
        played["refused"]["failure"],
    )
    assert refusal["message"] == played["refused"]["msg"]
    assert (dies["task"], dies["ignored"], dies["message"]) == ("dies", False, "once")
    assert (report["totals"]["ignored"], report["totals"]["rescued"], report["totals"]["failures"]) == (
        2,
        1,
        0,
    )
    assert "Zebra" not in json.dumps(report)

    # A failure that is not ignored keeps its exit code. The drift is in the report.
    played, report = run(
        ansible,
        notifies,
        {"name": "fails", "ansible.builtin.fail": {"msg": "no"}, "no_log": True},
        handlers=(handler,),
    )
    assert (played.code, report["drift"], report["totals"]["failures"]) == (2, True, 1)
    assert report["failures"][0]["message"].startswith("the output has been hidden")
    path = str(ansible.home / "reports" / "drift.json")
    for arguments, code in ((["cost", path], 2), (["audit", "--results", path], 1)):
        answer = CliRunner().invoke(main, arguments)
        assert (answer.exit_code, answer.stdout) == (code, "")
        assert "task 'fails' failed on localhost: the output has been hidden" in answer.stderr


@pytest.mark.slow
def test_every_playbook_of_the_command_line_runs(ansible: Ansible) -> None:
    """The first has drift, the second still runs. The exit code is the one of ansible.cfg."""
    first, second = ansible.home / "first.yml", ansible.home / "second.yml"
    for path in (first, second):
        task = {"name": path.stem, "ansible.builtin.debug": {"msg": "x"}, "changed_when": path == first}
        path.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]))
    (ansible.home / "ansible.cfg").write_text("[callback_hosting_drift]\nexit_code = 7\n")
    played, report = run_files(ansible, first, arguments=(str(second), "--check"))
    assert played.code == 7, played.output
    assert [line["task"] for line in played.lines] == ["first", "second"]
    assert [Path(name).name for name in report["playbooks"]] == ["first.yml", "second.yml"]
    assert report["totals"]["ok"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("code", ["0", "256"])
def test_what_cannot_be_written_is_one_warning(ansible: Ansible, code: str) -> None:
    """A report that cannot be written hides no drift. 256, which the system would cut to 0, is not used. 0
    turns it off."""
    task = {"name": "x", "ansible.builtin.debug": {"msg": "x"}, "changed_when": True}
    environ = {
        "ANSIBLE_CALLBACKS_ENABLED": "hosting.cloud.drift",
        "HOSTING_DRIFT_REPORT": "/dev/null/drift.json",
        "HOSTING_DRIFT_EXIT_CODE": code,
    }
    process = ansible.start(task, arguments=("--check",), environ=environ)
    played = ansible.finish(process, well=False)
    assert played.code == {"0": 0, "256": 3}[code], played.output
    assert "could not write its report" in " ".join(played.output.split())
    assert "Traceback" not in played.output


@pytest.mark.slow
def test_the_report_prices_the_run(ansible: Ansible) -> None:
    """What a check run says that it would charge is what the real run then charges."""
    password = str(ansible.home / "web.password")
    declared = {"name": "web", "tariff_id": 1, "os": "debian-12", "root_password_file": password}
    web = {"name": "server", "hosting.cloud.server": declared}
    domain = {"name": "domain", "hosting.cloud.domain": {"name": "shop-example.com"}}
    played, _ = run(ansible, KEY, web, domain)
    assert played.code == 3, played.output
    answer = CliRunner().invoke(
        main, ["cost", str(ansible.home / "reports" / "drift.json"), "--json"], env={"HOSTING_API_KEY": ""}
    )
    assert answer.exit_code == 0, answer.output
    announced = json.loads(answer.stdout)
    rows = {(row["kind"], row["name"]): row for row in announced["resources"]}
    assert rows["server", "web"]["action"] == rows["domain", "shop-example.com"]["action"] == "create"
    assert rows["ssh_key", "laptop"]["charged"] == "0.00"
    assert ansible.ledger() == []

    played, report = run(ansible, KEY, web, domain, arguments=())
    assert played.code == 0, played.output
    assert announced["totals"]["EUR"]["charged"] == str(ansible.moved())
    charges = [Decimal(row["charge"]) for row in report["priced"] if row["charge"]]
    assert sum(charges) == ansible.moved()

    gone = {"name": "server", "hosting.cloud.server": {"name": "web", "state": "absent"}}
    played, report = run(ansible, gone, arguments=("--check",))
    assert played.code == 3, played.output
    (row,) = report["priced"]
    assert (row["kind"], row["name"], row["action"]) == ("server", "web", "delete")
    assert len(ansible.living) == 1
