"""Secrets that the service shows once are written to their files even if the task fails; and check mode of
whole plays."""

import stat
from pathlib import Path
from typing import Any

import pytest

from tests.ansible.conftest import Ansible
from tests.ansible.test_playbooks import SERVER, refused, server

CONNECTIONS = Path(__file__).parent / "connection"
ORDER: dict[str, Any] = {
    name: value for name, value in SERVER.items() if name not in ("name", "password", "ssh_key_ids")
}
URL = "https://hooks.example.com/kept"


def hook(_name: str, **options: Any) -> dict[str, Any]:
    return {
        "name": _name,
        "hosting.cloud.webhook_subscription": {"url": URL, **options},
        "ignore_errors": True,
    }


def fail(ansible: Ansible, method: str, path: str, times: int, after: int = 0) -> None:
    fault = {
        "method": method,
        "path": path,
        "times": times,
        "after": after,
        "action": {"status": 500, "code": "server_error"},
    }
    ansible.control("POST", "/faults", fault)


@pytest.mark.daily
def test_a_root_password_is_written_as_soon_as_it_is_shown(ansible: Ansible) -> None:
    file = ansible.home / "root"
    fail(ansible, "PATCH", "^/servers/", 1)
    desired = {"name": "web-1", "notes": "one", "root_password_file": str(file), **ORDER}
    played = ansible.play(refused("order", **desired), server("again", **desired), server("calm", **desired))
    assert played["order"]["failure"]["code"] == "server_error"
    assert (played["again"]["changed"], played["calm"]["changed"]) == (True, False)
    password = file.read_text().strip()
    assert len(password) >= 8
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert password not in played.output
    # Reinstalled, and then the service fails: the disk is erased, and with which password it begins again
    # must be known.
    ansible.control(
        "POST",
        "/faults",
        {
            "path": "^/servers/[0-9]+$",
            "times": 20,
            "after": 3,
            "action": {"status": 404, "code": "not_found"},
        },
    )
    ansible.play(
        refused(
            "rewritten",
            name="web-1",
            os="debian-12",
            erase="web-1",
            state="reinstalled",
            root_password_file=str(file),
        )
    )
    ansible.control("DELETE", "/faults")
    assert file.read_text().strip() not in ("", password)
    file.unlink()
    played = ansible.play(server("missed", **desired))
    assert played["missed"]["changed"] is False
    (warning,) = played["missed"]["warnings"]
    assert f"hosting.cloud.server_password, options name: web-1 and password_file: {file}" in warning
    assert len(ansible.server_charges()) == 1


def test_a_file_that_cannot_be_written_is_refused_before_the_order(ansible: Ansible) -> None:
    folder = str(ansible.home)
    played = ansible.play(
        refused("root", name="web-1", root_password_file=folder, **ORDER),
        hook("hook", events=["*"], secret_file=folder),
        hook("nowhere", events=["*"], secret_file=f"{folder}/no/such"),
        {
            "name": "reset",
            "hosting.cloud.server_password": {"name": "x", "password_file": folder},
            "ignore_errors": True,
        },
    )
    assert [line["result"]["failure"]["code"] for line in played.lines] == ["invalid_input"] * 4
    assert ansible.writes() == []


def test_the_file_holds_the_signing_secret_of_the_present_subscription(ansible: Ansible) -> None:
    file = ansible.home / "secret"
    made = ansible.play(
        hook("make", events=["*"], secret_file=str(file)), hook("again", events=["*"], secret_file=str(file))
    )
    assert made.changed == [True, False]
    first = file.read_text()
    file.unlink()
    rotated = ansible.play(
        hook("check", secret_file=str(file)) | {"check_mode": True},
        hook("rotate", secret_file=str(file)),
        hook("calm", secret_file=str(file)),
    )
    assert rotated.changed == [True, True, False]
    second = file.read_text()
    # Deleted in the control panel: the new subscription has another secret, which must replace the one in the
    # file.
    (found,) = ansible.client.webhooks.list()
    ansible.control("DELETE", f"/webhooks/{found.id}")
    ansible.play(hook("rewritten", events=["*"], secret_file=str(file)))
    assert len({first, second, file.read_text()}) == 3
    kept = file.read_text()
    simulated = ansible.play(
        hook("simulated", events=["*"], secret_file=str(file)),
        environ={"HOSTING_API_KEY": ansible.emulator.test_key},
    )
    assert file.read_text() == kept
    assert "not written with a test key" in " ".join(simulated["simulated"]["warnings"])


def test_check_mode_of_a_play_that_creates_one_of_everything(ansible: Ansible) -> None:
    """Later tasks act on what earlier ones would make; check mode says what the real run then does."""
    until = "{{ '%Y-%m-%d' | strftime(now(utc=true).timestamp() + 40 * 86400, utc=true) }}"
    tasks: list[dict[str, Any]] = [
        {**server("order", name="web-1", **ORDER), "register": "web"},
        {"name": "renew", "hosting.cloud.server_renew": {"name": "web-1", "until": until}},
        {"name": "address", "hosting.cloud.server_ip": {"server_id": "{{ web.server.id }}"}},
        {"name": "name", "hosting.cloud.ptr": {"server_name": "web-1", "domain": "web-1.example.com"}},
        {
            "name": "reset",
            "hosting.cloud.server_password": {
                "name": "web-1",
                "password_file": str(ansible.home / "password"),
            },
        },
        server("restart", name="web-1", state="restarted"),
        {"name": "domain", "hosting.cloud.domain": {"name": "example-1.com"}},
        {
            "name": "longer",
            "hosting.cloud.domain_renew": {
                "name": "example-1.com",
                "until": "{{ (now(utc=true).year + 2) | string }}-06-01",
            },
        },
        hook("hook", events=["*"], secret_file=str(ansible.home / "secret")),
        {"name": "ping", "hosting.cloud.webhook_test": {"url": URL}, "ignore_errors": True},
    ]
    checked = ansible.play(*tasks, arguments=("--check",))
    assert ansible.writes() == []
    played = ansible.play(*tasks)
    assert checked.changed == played.changed, (checked.output, played.output)
    assert played.changed[:9] == [True] * 9


def test_missing_ssh_keys_are_reported_before_the_order(ansible: Ansible) -> None:
    for arguments in (("--check",), ()):
        played = ansible.play(
            refused("order", name="web-1", ssh_key_ids=["999"], **ORDER), arguments=arguments
        )
        assert played["order"]["failure"]["fields"] == {
            "ssh_key_ids": "there is no SSH key 999 on this account"
        }
    assert ansible.writes() == []


def test_a_wrong_id_is_reported_in_one_line(ansible: Ansible) -> None:
    played = ansible.play(
        {"name": "a", "hosting.cloud.webhook_subscription": {"id": "99"}, "ignore_errors": True},
        {"name": "b", "hosting.cloud.server_ip": {"server_id": "abc"}, "ignore_errors": True},
        {"name": "c", "hosting.cloud.server_ip_info": {"server_id": "abc"}, "ignore_errors": True},
        {"name": "d", "hosting.cloud.ptr": {"id": "1/99", "domain": "a.example.com"}, "ignore_errors": True},
    )
    assert "there is no webhook subscription with id 99" in played["a"]["msg"]
    for task in ("b", "c"):  # what is no id is a name
        assert "there is no server named 'abc' on this account" in played[task]["msg"]
    assert "defect" not in played.output


def test_check_mode_knows_objects_that_earlier_tasks_would_create(ansible: Ansible) -> None:
    tasks = [
        server("order", name="web-1", **ORDER),
        server("describe", name="web-1", notes="two"),
        refused("typo", name="web-2", notes="two"),
    ]
    checked, played = ansible.play(*tasks, arguments=("--check",)), ansible.play(*tasks)
    for run in (checked, played):
        assert [run[name]["changed"] for name in ("order", "describe")] == [True, True]
        assert run["typo"]["failure"]["fields"] == {
            "tariff_id": "is required, unless tariff names it",
            "os": "is required",
        }


def test_a_stale_id_deletes_nothing(ansible: Ansible) -> None:
    (made,) = ansible.play(server("order", name="web-1", **ORDER)).results
    id = made["server"]["id"]
    played = ansible.play(
        refused("other", id=id, name="web-2", state="absent"),
        refused("again", id=id, name="web-2", erase="web-1", state="reinstalled"),
        {
            "name": "primary",
            "hosting.cloud.server_ip": {"server_id": id, "address": made["server"]["ip"], "state": "absent"},
            "ignore_errors": True,
        },
        server("right", id=id, name="web-1", state="absent"),
    )
    assert [line["outcome"] for line in played.lines] == ["failed", "failed", "failed", "ok"]
    assert "has name 'web-1', not 'web-2'; nothing was removed" in played["other"]["msg"]


def test_a_password_file_is_never_overwritten(ansible: Ansible) -> None:
    file = ansible.home / "root"
    ansible.play(*(server(name, name=name, root_password_file=str(file), **ORDER) for name in ("a", "b")))
    kept = list(ansible.home.glob("root*"))
    assert len(kept) == 2
    assert len({path.read_text() for path in kept}) == 2


def test_every_failure_has_facts(ansible: Ansible) -> None:
    wrong = {"name": "wrong", "hosting.cloud.server": {"name": "web-1", "months": 2}, "ignore_errors": True}
    unknown = {"name": "unknown", "hosting.cloud.server": {"nmae": "web-1"}, "ignore_errors": True}
    played = ansible.play(
        wrong,
        unknown,
        {"name": "wait", "hosting.cloud.server": {"name": "x", "wait_timeout": -1}, "ignore_errors": True},
    )
    assert [line["result"]["failure"]["code"] for line in played.lines] == ["invalid_input"] * 3


def test_check_mode_knows_tasks_of_the_controller_and_of_modules(ansible: Ansible) -> None:
    away = {"vars": {"ansible_connection": "elsewhere"}}
    until = "{{ '%Y-%m-%d' | strftime(now(utc=true).timestamp() + 40 * 86400, utc=true) }}"
    tasks: list[dict[str, Any]] = [
        server("order", name="web-1", **ORDER),
        {**server("describe", name="web-1", notes="two"), **away},
        {
            "name": "renew",
            "hosting.cloud.server_renew": {"name": "web-1", "until": until, "max_charge": "30.00"},
            **away,
        },
        {**server("remove", name="web-1", state="absent"), **away},
        {**server("gone", name="web-1", notes="three"), "ignore_errors": True},
        {**server("another", name="web-2", **ORDER), **away},
        server("there", name="web-2", notes="four"),
    ]
    environ = {"ANSIBLE_CONNECTION_PLUGINS": str(CONNECTIONS)}
    checked = ansible.play(*tasks, arguments=("--check",), environ=environ)
    assert ansible.writes() == []
    played = ansible.play(*tasks, environ=environ)
    for one, other in zip(checked.lines, played.lines, strict=True):
        facts = [
            (line["outcome"], line["result"].get("changed"), line["result"].get("charge"))
            for line in (one, other)
        ]
        assert facts[0] == facts[1], one["task"]
    assert played["gone"]["failure"]["fields"] == {
        "tariff_id": "is required, unless tariff names it",
        "os": "is required",
    }
    assert "_hosting" not in checked.output + played.output + str(played.results)
