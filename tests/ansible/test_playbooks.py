"""Playbooks beyond the ladder of each resource: ambiguous names, slow orders, refusals, check mode."""

import re
from collections import Counter
from typing import Any

import pytest
import yaml

from tests.ansible.conftest import Ansible
from tests.support.waiting import wait_until

SERVER: dict[str, Any] = {"name": "web-1", "tariff_id": 1, "os": "debian-12", "password": "Correct-Horse-7"}
OTHER_LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGsPdPBXBbbXdAsFpUIWkqvVfOdO5bZkRmOoJ2xWoKqS other"
KEY_LINE = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti first@example.com"
)


def server(_name: str = "", **options: Any) -> dict[str, Any]:
    """A task; ``_name`` names it."""
    return {"name": _name or "server", "hosting.cloud.server": options}


def refused(_name: str, **options: Any) -> dict[str, Any]:
    return {**server(_name, **options), "ignore_errors": True}


def order(ansible: Ansible, *names: str) -> list[int]:
    """Servers that exist before the playbook runs."""
    found = [ansible.client.servers.create(tariff_id=1, os="debian-12", name=name) for name in names]
    return [answer.server.id for answer in found]  # type: ignore[union-attr]  # no order is slow here


def test_ambiguous_and_missing_names_change_nothing(ansible: Ansible) -> None:
    """Renames to a name in use, names of several servers, ids of no server."""
    first, second, _, twin_1, twin_2 = order(ansible, "a", "b", "c", "twin", "twin")
    before = ansible.writes()
    played = ansible.play(
        refused("double", id=str(first), name="b"),
        refused("twins", name="twin", notes="which?"),
        refused("absent twins", name="twin", state="absent"),
        refused("missing", id="4000000", notes="?"),
        refused("no id", id="web", notes="?"),
        server("missing absent", id="4000000", state="absent"),
    )
    assert played["double"]["failure"]["code"] == "resource_conflict"
    assert (
        f"server {first} cannot become 'b': server {second} already has that name; nothing was changed"
    ) in played["double"]["msg"]
    for task in ("twins", "absent twins"):
        assert played[task]["failure"]["code"] == "ambiguous_match"
        assert {str(twin_1), str(twin_2)} <= set(
            played[task]["msg"].replace(",", " ").replace(".", " ").split()
        )
    assert "there is no server with id 4000000" in played["missing"]["msg"]
    assert "'web' is not an id" in played["no id"]["msg"]
    assert played["missing absent"]["changed"] is False
    assert ansible.writes() == before
    # As the message advises: an id selects one of them.
    played = ansible.play(server("meant", id=str(twin_1), name="twin", notes="this one"))
    assert played["meant"]["changed"]
    assert "diff" not in played["meant"]
    assert {row["id"]: row["notes"] for row in ansible.living}[twin_1].startswith("this one [iac2:")


def test_check_mode_sends_nothing_but_reads(ansible: Ansible) -> None:
    order(ansible, "old")
    ansible.client.ssh_keys.create(name="laptop", public_key=KEY_LINE)
    before = ansible.writes()
    played = ansible.play(
        server("create", **SERVER),
        server("update", name="old", notes="new"),
        server("delete", name="old", state="absent"),
        {
            "name": "new key",
            "hosting.cloud.ssh_key": {"name": "new", "public_key": OTHER_LINE},
            "register": "new",
        },
        server("create with it", **{**SERVER, "name": "web-2"}, ssh_key_ids=["{{ new.ssh_key.id }}"]),
        {"name": "replace", "hosting.cloud.ssh_key": {"name": "renamed", "public_key": KEY_LINE}},
        arguments=("--check", "--diff"),
    )
    assert played.changed == [True] * 6
    assert ansible.writes() == before
    assert played["create"]["server"]["id"] is None
    assert played["create"]["server"]["os"] == "debian-12"
    assert played["update"]["server"]["notes"] == "new"
    assert played["delete"]["server"] is None
    assert played["replace"]["diff"]["before"]["name"] == "laptop"
    amounts = [line for line in played.output.splitlines() if line.startswith(("charge: ", "refund: "))]
    price = ansible.server_charges()[0]["amount"]
    # without -v; a planned deletion may leave less of a discount
    assert amounts == [f"charge: {price} EUR", f"refund: {price} EUR", f"charge: at least {price} EUR"]
    assert "Correct-Horse-7" not in played.output


@pytest.mark.daily
@pytest.mark.emulator(clock="manual", provisioning_delay=60)
def test_an_order_that_is_slow(ansible: Ansible) -> None:
    """202: not ready in time is said, and the next run goes on waiting for the same order."""
    ansible.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    )
    played = ansible.play(
        refused("first", **SERVER, wait_timeout=0), server("check", **SERVER) | {"check_mode": True}
    )
    assert played["first"]["failure"]["code"] == "wait_timeout"
    assert "still provisioning after 0 s" in played["first"]["msg"]
    assert played["check"]["changed"] is False
    assert played["check"]["server"]["status"] == "provisioning"
    assert ansible.living == []

    process = ansible.start(server("second", **SERVER, notes="late"))
    seen = len(ansible.control("GET", "/requests?since=0"))
    wait_until(lambda: len(ansible.control("GET", "/requests?since=0")) >= seen + 2)
    ansible.control("POST", "/clock", {"advance": 61})
    played = ansible.finish(process)
    assert played["second"]["server"]["status"] == "active"
    assert played["second"]["server"]["notes"] == "late"
    assert [row["name"] for row in ansible.living] == ["web-1"]
    assert len(ansible.server_charges()) == 1


def test_refusals_of_the_service_are_facts(ansible: Ansible, dialect: str) -> None:
    """One line, the API's code, its request id; no traceback, and Ansible's own words around it stay few."""
    ansible.control("PATCH", "/account", {"balance": "1.00"})
    played = ansible.play(
        refused("poor", **SERVER),
        {
            "name": "wrong key",
            "hosting.cloud.server_info": {"api_key": "vk_live_wrongwrongwrongwrongwrongwrong"},
            "ignore_errors": True,
        },
        {
            "name": "no address",
            "hosting.cloud.server_info": {"base_url": "ftp://nowhere"},
            "ignore_errors": True,
        },
    )
    poor = played["poor"]["failure"]
    assert (poor["code"], poor["status"]) == ("insufficient_funds", 402)
    assert poor["request_id"]
    assert "4.00 EUR short" in played["poor"]["msg"]
    assert played["wrong key"]["failure"]["status"] == 401
    assert played["no address"]["failure"]["code"] == "configuration_error"
    assert "Traceback" not in played.output
    assert all("\n" not in result["msg"] for result in played.results)
    assert ansible.living == []
    assert ansible.server_charges() == []


def test_a_generated_password_is_not_returned_and_a_warning_says_so(ansible: Ansible) -> None:
    played = ansible.play(server("order", name="web-1", tariff_id=1, os="debian-12"), arguments=("-v",))
    assert "root_password" not in played["order"]["server"]
    assert "its generated root password was discarded" in " ".join(played["order"]["warnings"])
    # As a field of a result; the warning names the option root_password_file.
    assert '"root_password"' not in played.output


@pytest.mark.daily
def test_the_tasks_and_hosts_of_a_run_share_one_snapshot(ansible: Ansible) -> None:
    """Four hosts at a time, each in a process of its own. The files go with the run."""
    order(ansible, "old")
    declared = {"name": "{{ inventory_hostname }}-{{ item }}", "tariff_id": 1, "os": "debian-12"}
    play: dict[str, Any] = {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        "tasks": [
            {**server("order", **declared), "loop": [1, 2]},
            {**server("again", **declared), "loop": [1, 2]},
            server("rename", name="{{ inventory_hostname }}-1", notes="changed"),
            server("remove", name="{{ inventory_hostname }}-2", state="absent"),
            server("gone", name="{{ inventory_hostname }}-2", state="absent"),
        ],
    }
    playbook = ansible.home / "hosts.yml"
    playbook.write_text(yaml.safe_dump([play]), encoding="utf-8")
    since = len(ansible.control("GET", "/requests?since=0"))
    temporary = {"ANSIBLE_LOCAL_TEMP": str(ansible.home / "tmp")}
    played = ansible.finish(
        ansible.start_file(playbook, ("-i", "a,b,c,d,", "--forks", "4"), temporary), well=False
    )
    assert played.code == 0, played.output
    sent = Counter(
        f"{row['method']} {re.sub('[0-9]+', 'N', row['path'])}"
        for row in ansible.control("GET", "/requests?since=0")[since:]
    )
    # The first look, and a new one before "gone" is believed: the hosts that wait for it together share it.
    looks = {sent.pop(f"GET /{kind}") for kind in ("orders", "servers")}
    assert looks <= {2, 3, 4, 5}, looks
    assert sent == {
        # what is ordered, with its tag; what is changed and removed, with a read of each before
        "POST /servers": 8,
        "PATCH /servers/N": 8 + 4,
        "DELETE /servers/N": 4,
        "GET /servers/N": 8,
        # one look at the key's owner and the catalog, and at the service's clock, for what ends soon
        **dict.fromkeys(["GET /me", "GET /catalog/tariffs", "GET /catalog/os", "GET /health"], 1),
    }
    assert sorted(server["name"] for server in ansible.living) == [*(f"{host}-1" for host in "abcd"), "old"]
    assert not list((ansible.home / "tmp").glob("**/*snapshot*"))
