"""Limits of charges, live and test keys, and orders that take longer than the task waits."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from pulumi_hosting.exactly_once.local_files import account_scope
from pulumi_hosting.session.snapshot_files import SnapshotFiles
from tests.ansible.conftest import Ansible, Played
from tests.ansible.in_process import Play, task_of
from tests.ansible.test_playbooks import KEY_LINE, SERVER, order, refused, server
from tests.support.account import Account
from tests.support.waiting import wait_until

ORDER: dict[str, Any] = {name: value for name, value in SERVER.items() if name != "name"}
CONNECTIONS = Path(__file__).parent / "connection"
AWAY = {"async": 60, "poll": 1}  # the real module does it


def limited(name: str, limit: str, **more: Any) -> dict[str, Any]:
    return {**server(name, name=name, max_charge=limit, **ORDER), "ignore_errors": True, **more}


def outcome(played: Played, task: str) -> str:
    found: str = next(line["outcome"] for line in reversed(played.lines) if line["task"] == task)
    return found


def outcomes(played: Played) -> list[str]:
    return [line["outcome"] for line in played.lines]


@pytest.mark.daily
def test_all_tasks_of_a_run_share_the_limit(ansible: Ansible) -> None:
    """Three servers at 5.00 each and one domain at 12.00: the limit is kept over tasks, over kinds, and in
    check mode just as for real."""
    tasks = [
        limited("a", "10.00"),
        limited("b", "10.00"),
        limited("c", "10.00"),
        {
            "name": "d",
            "hosting.cloud.domain": {"name": "new.com", "max_charge": "20.00"},
            "ignore_errors": True,
        },
        {"name": "e", "hosting.cloud.domain": {"name": "new.com", "max_charge": "22.00"}},
    ]
    before = ansible.writes()
    checked = ansible.play(*tasks, arguments=("--check",))
    assert ansible.writes() == before
    played = ansible.play(*tasks)
    for run in (checked, played):
        assert outcomes(run) == ["ok", "ok", "failed", "failed", "ok"]
        assert "this run would charge 15.00 EUR, more than max_charge 10.00" in run["c"]["msg"]
        assert "this run would charge 22.00 EUR, more than max_charge 20.00" in run["d"]["msg"]
        assert [run[name]["charge"] for name in "abe"] == [
            {"amount": amount, "currency": "EUR"} for amount in ("5.00", "5.00", "12.00")
        ]
    assert len(ansible.server_charges()) == 2
    # What is there costs nothing, whatever the limit; the next run begins at nothing.
    again = ansible.play(limited("a", "0.00"), limited("b", "0.00"), limited("c", "5.00"))
    assert [again[name]["changed"] for name in "abc"] == [False, False, True]


def test_charges_of_modules_count_towards_the_limit(ansible: Ansible) -> None:
    """A module's process knows what the run has charged, and its own charges count afterwards."""
    played = ansible.play(
        limited("a", "10.00"),
        limited("b", "10.00", vars={"ansible_connection": "elsewhere"}),
        limited("c", "10.00", vars={"ansible_connection": "elsewhere"}),
        limited("d", "10.00"),
        environ={"ANSIBLE_CONNECTION_PLUGINS": str(CONNECTIONS)},
    )
    assert outcomes(played) == ["ok", "ok", "failed", "failed"]
    assert "max_charge" in played["c"]["msg"]
    assert "this run would charge 15.00 EUR" in played["d"]["msg"]
    assert len(ansible.server_charges()) == 2


def test_the_limit_applies_to_every_way_of_running_a_task(ansible: Ansible) -> None:
    """Async jobs, loops, another user, another host, a rescue, retries: the run never charges more than the
    limit."""
    # else Ansible looks for them in the HOME that the system knows
    jobs = {"ANSIBLE_ASYNC_DIR": str(ansible.home / "jobs")}
    loop = {
        "name": "loop",
        "hosting.cloud.server": {"name": "as-{{ item }}", "max_charge": "12.00", **ORDER},
        "loop": [1, 2, 3, 4],
        **AWAY,
    }
    other_user = {"become": True, "vars": {"ansible_become_exe": "env", "ansible_become_flags": ""}}
    played = ansible.play(
        {**loop, "ignore_errors": True},
        limited("fast", "12.00"),
        limited("user", "12.00", **other_user),
        limited("host", "12.00", vars={"ansible_connection": "elsewhere"}),
        limited("retries", "12.00", retries=2, delay=0, until="false"),
        {
            "name": "block",
            "block": [{**limited("rescued", "12.00"), "ignore_errors": False}],
            "rescue": [limited("rescue", "12.00")],
        },
        limited("there", "12.00") | {"hosting.cloud.server": {"name": "as-1", "max_charge": "12.00"}},
        environ={**jobs, "ANSIBLE_CONNECTION_PLUGINS": str(CONNECTIONS)},
    )
    assert [bool(item.get("failed")) for item in played["loop"]["results"]] == [False, False, True, True]
    for item in (
        *played["loop"]["results"][2:],
        *(played[name] for name in ("fast", "user", "host", "rescued", "rescue")),
    ):
        assert "this run would charge 15.00 EUR, more than max_charge 12.00" in item["msg"]
        assert item["failure"]["code"] == "max_charge"
    assert outcome(played, "retries") == "failed"
    assert outcome(played, "there") == "ok"
    assert [row["name"] for row in ansible.living] == ["as-1", "as-2"]
    assert len(ansible.server_charges()) == 2


def test_a_job_without_a_limit_counts_and_stops_with_the_run(ansible: Ansible) -> None:
    environ = {"ANSIBLE_ASYNC_DIR": str(ansible.home / "jobs")}
    job = server("job", name="job", **ORDER) | AWAY
    played = ansible.play(job, limited("b", "7.00"), environ=environ)
    assert outcomes(played) == ["ok", "failed"], played.output
    assert "this run would charge 10.00 EUR, more than max_charge 7.00" in played["b"]["msg"]
    assert [row["amount"] for row in ansible.server_charges()] == ["5.00"]
    # A charge above its announced price ends the purchases of the run, those of jobs too.
    ansible.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"patch": {"charged": "50.00"}}}
    )
    later = {**server("later", name="later", **ORDER), **AWAY, "ignore_errors": True}
    played = ansible.play(server("c", name="c", **ORDER, max_charge="99.00"), later, environ=environ)
    assert outcomes(played) == ["ok", "failed"], played.output
    assert "this run orders nothing more" in played["later"]["msg"]
    assert [row["name"] for row in ansible.living] == ["job", "c"]
    assert len(ansible.server_charges()) == 2


def test_an_empty_limit_is_an_error(ansible: Ansible) -> None:
    """A variable that was meant to hold the limit, and is not set, must not lift it."""
    tasks = [{**server("fast", name="a", **ORDER), "ignore_errors": True}]
    tasks += [
        {**tasks[0], "name": "host", "vars": {"ansible_connection": "elsewhere"}},
        {**tasks[0], "name": "job", **AWAY},
    ]
    environ = {"HOSTING_MAX_CHARGE": "", "ANSIBLE_CONNECTION_PLUGINS": str(CONNECTIONS)}
    played = ansible.play(*tasks, environ=environ)
    assert [line["result"]["failure"]["fields"].keys() for line in played.lines] == [{"max_charge"}] * 3
    assert ansible.server_charges() == []


def test_an_invalid_limit_is_refused_before_any_request(ansible: Ansible) -> None:
    played = ansible.play(limited("a", "lots"), limited("b", "-1"), limited("c", "NaN"))
    assert outcomes(played) == ["failed"] * 3
    assert {line["result"]["failure"]["code"] for line in played.lines} == {"invalid_input"}
    assert ansible.server_charges() == []


def test_a_test_key_changes_no_real_object(ansible: Ansible) -> None:
    """Reading and check mode work; a change is refused in one line; what the sandbox holds can be made,
    changed and deleted."""
    real = ansible.client.servers.create(tariff_id=1, os="debian-12", name="real")
    before = ansible.living
    paid = ansible.server_charges()
    played = ansible.play(
        {"name": "read", "hosting.cloud.server_info": {}},
        server("check", name="real", notes="new") | {"check_mode": True},
        refused("change", name="real", notes="new"),
        refused("delete", name="real", state="absent"),
        refused("restart", name="real", state="restarted"),
        {
            "name": "renew",
            "hosting.cloud.server_renew": {"name": "real", "until": "2099-01-01"},
            "ignore_errors": True,
        },
        refused("guard", name="sandboxed", mode="live", **ORDER),
        server("make", name="sandboxed", mode="test", **ORDER),
        server("again", name="sandboxed", **ORDER),
        server("update", name="sandboxed", notes="simulated"),
        server("remove", name="sandboxed", state="absent"),
        server("gone", name="sandboxed", state="absent"),
        environ={"HOSTING_API_KEY": ansible.emulator.test_key},
    )
    assert real.server is not None  # type: ignore[union-attr]  # no order is slow here
    assert played["check"]["changed"] is True
    for name in ("change", "delete", "restart"):
        assert outcome(played, name) == "failed", name
        assert "test key" in played[name]["msg"], name
        assert "\n" not in played[name]["msg"], name
    assert outcome(played, "renew") == "failed"
    assert "live" in played["guard"]["msg"]
    assert [played[name]["changed"] for name in ("make", "again", "update", "remove", "gone")] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert played["make"]["server"]["mode"] == "test"
    said = "this is a test key: what its tasks report as changed is simulated"
    warned = [line["task"] for line in played.lines if said in str(line["result"].get("warnings"))]
    assert warned == ["make"]
    assert (ansible.living, ansible.server_charges()) == (before, paid)
    assert "Traceback" not in played.output


def test_a_live_key_changes_no_simulated_object(ansible: Ansible) -> None:
    made = ansible.play(
        server("make", name="sandboxed", **ORDER), environ={"HOSTING_API_KEY": ansible.emulator.test_key}
    )
    id = made["make"]["server"]["id"]
    played = ansible.play(
        refused("by id", id=id, notes="real?"),
        refused("guard", name="live-1", mode="test", **ORDER),
        {"name": "me", "hosting.cloud.me_info": {}},
    )
    assert outcome(played, "by id") == "failed"
    assert "mode" in played["guard"]["msg"]
    assert ansible.server_charges() == []


@pytest.mark.emulator(clock="manual", provisioning_delay=60)
def test_an_order_without_waiting(ansible: Ansible) -> None:
    """``wait: false`` ends at once with what is known; run again, it is the same order, and nothing is
    charged twice."""
    ansible.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    )
    played = ansible.play(
        server("order", name="web-1", wait=False, **ORDER),
        server("again", name="web-1", wait=False, **ORDER),
        refused("impatient", name="web-1", wait_timeout=0, **ORDER),
    )
    assert played["order"]["changed"] is True
    assert played["order"]["server"]["status"] == "provisioning"
    assert played["order"]["charge"] == {"amount": "5.00", "currency": "EUR"}
    assert played["again"]["changed"] is False
    assert played["impatient"]["failure"]["code"] == "wait_timeout"
    assert "still provisioning after 0 s" in played["impatient"]["msg"]
    process = ansible.start(server("wait", name="web-1", **ORDER))
    seen = len(ansible.control("GET", "/requests?since=0"))
    wait_until(lambda: len(ansible.control("GET", "/requests?since=0")) >= seen + 2)
    ansible.control("POST", "/clock", {"advance": 61})
    assert ansible.finish(process)["wait"]["server"]["status"] == "active"
    assert len(ansible.server_charges()) == 1
    assert len(ansible.living) == 1


def test_purchases_without_a_price_or_a_limit_count(ansible: Ansible) -> None:
    """A limit holds for what has no known price; a task without one counts towards that of a later one, in
    check mode too; each order counts."""
    ansible.control(
        "POST",
        "/faults",
        {"path": "^/catalog/quote$", "times": 9, "action": {"status": 404, "code": "not_found"}},
    )
    unknown = ansible.play(limited("a", "99.00"))
    assert "its price is not known" in unknown["a"]["msg"]
    assert ansible.server_charges() == []
    ansible.control("DELETE", "/faults")
    tasks = [server("free", name="free", **ORDER), limited("b", "7.00")]
    for arguments in (("--check",), ()):
        played = ansible.play(*tasks, arguments=arguments)
        assert outcomes(played) == ["ok", "failed"], played.output
        assert "this run would charge 10.00 EUR, more than max_charge 7.00" in played["b"]["msg"]
    gone = {"name": "gone", "hosting.cloud.server": {"name": "c", "state": "absent"}}
    twice = ansible.play(limited("c", "7.00"), gone, limited("c", "7.00"))
    assert outcomes(twice) == ["ok", "ok", "failed"]


def test_a_limit_of_the_environment_applies_to_modules_and_failed_tasks(ansible: Ansible) -> None:
    away = {"vars": {"ansible_connection": "elsewhere"}}
    environ = {"ANSIBLE_CONNECTION_PLUGINS": str(CONNECTIONS), "HOSTING_MAX_CHARGE": "7.00"}
    ansible.control(
        "POST",
        "/faults",
        {
            "method": "PATCH",
            "path": "^/servers/",
            "times": 9,
            "action": {"status": 500, "code": "server_error"},
        },
    )
    played = ansible.play(
        {**server("a", name="a", notes="x", **ORDER), "ignore_errors": True, **away},
        {**server("b", name="b", **ORDER), "ignore_errors": True, **away},
        environ=environ,
    )
    assert outcomes(played) == ["failed", "failed"]
    assert played["a"]["charge"] == {"amount": "5.00", "currency": "EUR"}
    assert played["b"]["failure"]["code"] == "max_charge"
    assert len(ansible.server_charges()) == 1


def test_the_declared_mode_applies_to_every_action(ansible: Ansible) -> None:
    """With a live key in a play for test keys nothing is paid, made, sent or revoked."""
    invoice = ansible.control("POST", "/invoices", {"type": "other", "amount": "3.00"})
    (order_id,) = order(ansible, "web-1")
    hook = ansible.client.webhooks.create(url="https://hooks.example.com/x", events=["*"])
    me = ansible.client.me()
    before = len(ansible.writes())
    actions: dict[str, dict[str, Any]] = {
        "invoice_pay": {"id": invoice["id"]},
        "balance_topup": {"amount": "50.00", "gateway": "card", "balance_below": "100000"},
        "webhook_test": {"id": hook.id},
        "api_key_revoke": {"key_id": me.key.id},
        "server_renew": {"id": order_id, "until": "2027-12-01"},
        "server_password": {"id": order_id, "password_file": str(ansible.home / "password")},
    }
    gateways = ansible.client.balance.topup_info().gateways
    actions["balance_topup"]["gateway"] = gateways[0]
    actions["server_renew"]["until"] = (
        "{{ '%Y-%m-%d' | strftime(now(utc=true).timestamp() + 40 * 86400, utc=true) }}"
    )
    tasks = [
        {"name": name, f"hosting.cloud.{name}": {**given, "mode": "test"}, "ignore_errors": True}
        for name, given in actions.items()
    ]
    played = ansible.play(*tasks)
    for name in actions:
        assert "the configuration says mode test, and this is a live key" in played[name]["msg"], name
    assert len(ansible.writes()) == before
    # What only reads takes the guard too, so that it can stand in the defaults of the whole group.
    assert (
        ansible.play({"name": "read", "hosting.cloud.me_info": {"mode": "test", "max_charge": "1"}})["read"][
            "me"
        ]["livemode"]
        is True
    )


def test_a_refused_order_is_not_counted(ansible: Ansible) -> None:
    played = ansible.play(
        limited("a", "7.00")
        | {"hosting.cloud.server": {"name": "a", "max_charge": "7.00", "promo_code": "NOPE", **ORDER}},
        limited("b", "7.00"),
    )
    assert outcomes(played) == ["failed", "ok"]
    assert "charge" not in played["a"]["failure"]
    nothing = ansible.play(limited("c", ""))
    assert nothing["c"]["failure"]["fields"].keys() == {"max_charge"}
    ansible.control("PATCH", "/account", {"balance": "1.00"})
    checked = ansible.play(server("d", name="d", **ORDER), arguments=("--check",))
    assert "more than the balance of 1.00" in " ".join(checked["d"]["warnings"])


def test_simultaneous_hosts_report_each_change_once(ansible: Ansible) -> None:
    """Five hosts make, order, renew and delete the same at the same moment: one result reports each."""
    for method, path in ("POST", "^/(servers|ssh-keys)$"), ("DELETE", "^/(servers|ssh-keys)/"):
        fault = {"method": method, "path": path, "times": 9, "action": {"delay": 1}}
        ansible.control("POST", "/faults", fault)
    hosts = [f"h{number}" for number in range(5)]
    renewal = {
        "name": "web-1",
        "until": "{{ '%Y-%m-%d' | strftime(now(utc=true).timestamp() + 40 * 86400, utc=true) }}",
    }
    play = {
        "hosts": "all",
        "gather_facts": False,
        "connection": "local",
        "module_defaults": {"group/hosting.cloud.all": {"max_charge": "16.00"}},
        "tasks": [
            {"name": "key", "hosting.cloud.ssh_key": {"name": "laptop", "public_key": KEY_LINE}},
            {"name": "order", "hosting.cloud.server": {"name": "web-1", "ssh_key_ids": ["laptop"], **ORDER}},
            {"name": "renew", "hosting.cloud.server_renew": renewal},
            {"name": "no server", "hosting.cloud.server": {"name": "web-1", "state": "absent"}},
            {"name": "no key", "hosting.cloud.ssh_key": {"name": "laptop", "state": "absent"}},
        ],
    }
    playbook = ansible.home / "hosts.yml"
    playbook.write_text(yaml.safe_dump([play], sort_keys=False))
    played = ansible.finish(ansible.start_file(playbook, ("-i", ",".join(hosts), "--forks", "5")))
    assert len(played.lines) == 25
    paid = [Decimal(row["amount"]) for row in ansible.ledger() if row["direction"] == "debit"]
    reported = [Decimal(result["charge"]["amount"]) for result in played.results if result.get("charge")]
    assert sorted(reported) == sorted(paid)
    assert len(paid) == 2
    assert sum(result["changed"] for result in played.results) == 5
    assert not ansible.living
    assert ansible.writes().count("POST /ssh-keys") == 1


def test_the_tasks_of_a_play_take_the_same_turn(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one asks whose key it is, and other processes read its answer in a file of the run."""
    play, scopes = Play(account), []
    for _ in range(2):
        monkeypatch.setattr(SnapshotFiles, "_read", {})
        task = task_of(play, "ssh_key", {"name": "laptop", "public_key": KEY_LINE})
        scopes.append(account_scope(task.client(read_only=False)))
    assert account.requested("GET") == ["/me"]
    assert scopes[0] == scopes[1]


def test_an_unpaid_invoice_has_a_payment_link_and_a_paid_one_needs_none(account: Account) -> None:
    id = str(account.control("POST", "/invoices", {"type": "other", "amount": "3.00"})["id"])
    planned = Play(account, check_mode=True)("invoice_payment_link", id=id)
    assert (planned["changed"], planned["link"]["payment_url"]) == (False, None)
    play = Play(account)
    asked = play("invoice_payment_link", id=id, gateway="card")
    assert asked["changed"] is False
    assert asked["link"]["payment_url"].startswith("https://")
    assert asked["link"]["gateway"] == "card"
    assert account.ledger() == []
    play("invoice_pay", id=id)
    paid = play("invoice_payment_link", id=id)
    assert (paid["link"]["payment_url"], paid["note"]) == (None, f"invoice {id} is paid")
    assert play("invoice_payment_link", id="999999")["failure"]["code"] == "not_found"
    assert [row["amount"] for row in account.ledger()] == ["3.00"]


def test_check_mode_warns_of_a_store_without_which_nothing_can_be_bought(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTING_STORE", "redis://team:hunter2@127.0.0.1:1/0")
    planned = Play(account, check_mode=True)("server", name="web", tariff_id=1, os="debian-12")
    (line,) = [line for line in planned["warnings"] if "nothing can be bought" in line]
    assert line.startswith("nothing can be bought: the shared store redis://127.0.0.1:1 cannot be used: ")
    assert "hunter2" not in line
