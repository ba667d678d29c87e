"""ansible-playbook and all its processes killed after the service took the order and before its answer
arrived: one server, one charge."""

import json
import subprocess
from typing import Any

import pytest

from tests.ansible.conftest import Ansible, kill_all, kill_workers
from tests.ansible.test_kept import ORDER
from tests.ansible.test_money import CONNECTIONS
from tests.ansible.test_playbooks import SERVER, server
from tests.support.waiting import HANG_SECONDS, wait_until


def orders_of(ansible: Ansible) -> int:
    return sum(
        request["method"] == "POST" and request["path"] == "/servers"
        for request in ansible.control("GET", "/requests?since=0")
    )


def killed_once(ansible: Ansible, process: "subprocess.Popen[str]") -> None:
    """Wait until the money has moved, then kill."""
    wait_until(lambda: len(ansible.server_charges()) == 1)
    assert process.poll() is None
    kill_all(process)


def bought_once(ansible: Ansible, played: Any) -> None:
    (row,) = ansible.living
    assert played["server"]["server"]["id"] == str(row["id"])
    assert played["server"]["server"]["status"] == "active"
    assert len(ansible.server_charges()) == 1


@pytest.mark.emulator(own=True)
def test_killed_before_the_answer(ansible: Ansible, dialect: str) -> None:
    ansible.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"delay": 30}})
    file = ansible.home / "root"
    desired = {"name": "web-1", **ORDER, "notes": "kept", "root_password_file": str(file)}
    killed_once(ansible, ansible.start(server(**desired, max_charge="7.00"), cold=True))
    ansible.control("DELETE", "/faults")
    played = ansible.play(
        server(**desired, max_charge="7.00"),
        server("calm", **desired, max_charge="7.00"),
    )
    bought_once(ansible, played)
    # The limit begins at nothing again; what the killed run may have charged is reported once.
    reported = [
        "was killed after it had charged, or may have charged, 5.00 EUR" in str(result.get("warnings"))
        for result in played.results
    ]
    assert reported == [True, False]
    reset = f"hosting.cloud.server_password, options name: web-1 and password_file: {file}"
    assert reset in str(played["calm"]["warnings"])
    assert not file.exists()
    assert played["server"]["server"]["notes"] == "kept"
    assert orders_of(ansible) == 1


@pytest.mark.slow
@pytest.mark.emulator(own=True)
def test_only_the_workers_killed(ansible: Ansible) -> None:
    """ansible-playbook lives, and reports it."""
    ansible.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"delay": 30}})
    process = ansible.start(server(**SERVER), cold=True)
    wait_until(lambda: len(ansible.server_charges()) == 1)
    kill_workers(process)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode != 0
    ansible.control("DELETE", "/faults")
    bought_once(ansible, ansible.play(server(**SERVER)))


def test_charges_of_killed_runs_are_reported_for_every_way_of_running_a_task(ansible: Ansible) -> None:
    ways: dict[str, dict[str, Any]] = {
        "host": {"vars": {"ansible_connection": "elsewhere"}},
        "user": {"become": True, "vars": {"ansible_become_exe": "env", "ansible_become_flags": ""}},
        "job": {"async": 60, "poll": 1},
        "left alone": {"async": 60, "poll": 0},
    }
    ended = subprocess.Popen(["true"])
    ended.wait()
    tasks: list[dict[str, Any]] = []
    for number, (way, keywords) in enumerate(ways.items(), start=1):
        folder = ansible.home / ".ansible" / "tmp" / f"ansible-local-{ended.pid}abcdefg{number}"
        left = {
            "booked": {
                "one web-1": {"account": "one", "amount": f"{number}.00", "currency": "EUR", "holders": []}
            }
        }
        tasks += [
            {
                "name": "folder",
                "ansible.builtin.file": {"path": str(folder), "state": "directory", "mode": "0700"},
            },
            {
                "name": "left",
                "ansible.builtin.copy": {
                    "dest": f"{folder}/hosting.cloud.charged.json",
                    "content": json.dumps(left),
                },
            },
            server(way, name="missing", state="absent", max_charge="7.00") | keywords,
        ]
    environ = {
        "ANSIBLE_CONNECTION_PLUGINS": str(CONNECTIONS),
        "ANSIBLE_ASYNC_DIR": str(ansible.home / "jobs"),
    }
    played = ansible.play(*tasks, environ=environ)
    printed = " ".join(played.output.split())
    for number in range(1, len(ways) + 1):
        assert (f"was killed after it had charged, or may have charged, {number}.00 EUR") in printed, (
            played.output
        )
    assert ansible.server_charges() == []


@pytest.mark.daily
@pytest.mark.emulator(clock="manual", provisioning_delay=60, own=True)
def test_killed_while_the_order_is_carried_out(ansible: Ansible) -> None:
    ansible.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    )
    killed_once(ansible, ansible.start(server(**SERVER), cold=True))
    assert ansible.living == []
    process = ansible.start(server(**SERVER))
    seen = len(ansible.control("GET", "/requests?since=0"))
    wait_until(lambda: len(ansible.control("GET", "/requests?since=0")) > seen + 1)
    ansible.control("POST", "/clock", {"advance": 61})
    bought_once(ansible, ansible.finish(process))
    assert orders_of(ansible) == 1


def test_the_answer_is_lost(ansible: Ansible) -> None:
    """Nothing is killed: the client repeats the order with its idempotency key, and the service recognises
    it."""
    ansible.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"drop": "after"}})
    bought_once(ansible, ansible.play(server(**SERVER)))
    assert orders_of(ansible) == 2
