"""The collection's own integration targets, played as roles: every module against an emulator, in both
dialects.

All targets of a dialect are played in one run, each with what fails in it caught, so that the others go on
and the failure names it.
"""

from pathlib import Path
from typing import Any

import yaml

from pulumi_hosting.rehearsal.control_client import Control
from tests.ansible.conftest import COLLECTION, Ansible, Played

SHARED = {"setup_ladder"}
TARGETS = sorted(
    {path.name for path in (COLLECTION / "tests" / "integration" / "targets").iterdir()} - SHARED
)
LADDER = ["domain", "ptr", "server", "server_ip", "ssh_key", "webhook_subscription"]
"""Targets of the resources: each climbs from a missing option to a deletion."""
BEGIN, CAUGHT = "Begin ", "Caught in "


def test_every_module_has_a_target() -> None:
    assert sorted(path.stem for path in (COLLECTION / "plugins" / "modules").glob("*.py")) == TARGETS


def test_every_target(ansible: Ansible, dialect: str, tmp_path: Path) -> None:
    play_targets(TARGETS, ansible, tmp_path)


def play_targets(targets: list[str], ansible: Ansible, tmp_path: Path) -> None:
    """One run of these targets. Nothing may fail, nor be left on the account."""
    playbook = tmp_path / "play.yml"
    variables = {
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        **configuration(ansible.emulator),
    }
    tasks = [task for target in targets for task in caught(target)]
    playbook.write_text(
        yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}])
    )
    played = ansible.finish(ansible.start_file(playbook))
    assert [f"{target}: {what}" for target, what in failures(played)] == []
    assert [
        target for target, actions in by_target(played).items() if f"hosting.cloud.{target}" not in actions
    ] == []
    assert "Traceback" not in played.output
    assert_nothing_left(ansible.emulator)


def assert_nothing_left(emulator: Any) -> None:
    """Of what can be deleted, on the account."""
    left = Control(emulator.control_url)("GET", "/objects")
    assert [row for row in left["servers"] if row["status"] not in ("cancelled", "terminated")] == []
    assert left["ssh_keys"] == left["subscriptions"] == []


def configuration(emulator: Any) -> dict[str, str]:
    """What a target needs to know, with a key that the number of targets does not slow down."""
    patient = {
        "mode": "live",
        "name": "integration",
        "rate_per_minute": 100_000,
        "rate_expensive_per_minute": 100_000,
    }
    key = Control(emulator.control_url)("POST", "/keys", patient)["key"]
    return {
        "hosting_base_url": emulator.base_url,
        "hosting_api_key": key,
        "hosting_control_url": emulator.control_url,
    }


def caught(target: str) -> list[dict[str, Any]]:
    failure = (
        "{{ ansible_failed_task.name }}: {{ ansible_failed_result.assertion | default('') }} {{ "
        "ansible_failed_result.msg | default('') }}"
    )
    return [
        {"name": f"{BEGIN}{target}", "ansible.builtin.debug": {"msg": target}},
        {
            "name": target,
            "block": [{"ansible.builtin.include_role": {"name": target}}],
            "rescue": [{"name": f"{CAUGHT}{target}", "ansible.builtin.debug": {"msg": failure}}],
        },
    ]


def failures(played: Played) -> list[tuple[str, str]]:
    return [
        (line["task"].removeprefix(CAUGHT), str(line["result"]["msg"]))
        for line in played.lines
        if line["task"].startswith(CAUGHT)
    ]


def by_target(played: Played) -> dict[str, set[str]]:
    """The modules that each target used."""
    used: dict[str, set[str]] = {}
    for line in played.lines:
        if line["task"].startswith(BEGIN):
            used[line["task"].removeprefix(BEGIN)] = actions = set()
        actions.add(line["action"])
    return used
