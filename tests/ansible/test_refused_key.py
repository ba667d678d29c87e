"""A key that expires, is revoked or rotated, or may not be used from this address: before a play and in the
middle of one. The play ends with one clear line; with another key the next play does the rest.
"""

from typing import Any

import pytest

from tests.ansible.conftest import Ansible, Played
from tests.ansible.test_playbooks import server

TASKS = [server(name, name=name, tariff_id=1, os="debian-12", notes="shop") for name in ("web", "db")]
KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "expired": (
        {"expires_at": "2020-01-01T00:00:00Z"},
        "the API key has expired. Next: create a new key in the control panel (401 key_expired, ",
    ),
    "revoked": (
        {},
        "the API key is not valid. Next: check HOSTING_API_KEY, or create a key in the control panel (401 "
        "invalid_token, ",
    ),
    "address": (
        {"ip_allowlist": ["10.0.0.0/8"]},
        "the API key may not be used from this address. Next: add the address to the key's allow-list (403 "
        "ip_not_allowed, ",
    ),
}


def message(played: Played) -> str:
    """What the one task said that failed."""
    failed = [line for line in played.lines if line["outcome"] == "failed"]
    assert len(failed) == 1, played.output
    text: str = failed[0]["result"]["msg"]
    assert len(text.splitlines()) == 1
    assert played.output.count("[ERROR]") <= 1
    assert "Traceback" not in played.output
    return text


@pytest.mark.parametrize(("options", "line"), KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("check", [(), ("--check",)], ids=["run", "check"])
def test_a_refused_key_is_one_line(
    ansible: Ansible, options: dict[str, Any], line: str, check: tuple[str, ...]
) -> None:
    made = ansible.control("POST", "/keys", {"mode": "live", **options})
    if not options:
        ansible.control("DELETE", f"/keys/{made['id']}")
    process = ansible.start(*TASKS, arguments=check, environ={"HOSTING_API_KEY": made["key"]})
    played = ansible.finish(process, well=False)
    assert played.code == 2
    assert line in message(played)
    assert made["key"] not in played.output
    assert ansible.living == []
    assert ansible.ledger() == []


@pytest.mark.parametrize("after", [3, 5, 6, 8])
def test_a_key_that_is_refused_in_the_middle_of_a_play(ansible: Ansible, after: int) -> None:
    """After ``after`` requests: before the first order, between two, and while what was ordered is set up."""
    fault = {"path": ".*", "times": 10_000, "action": {"status": 401, "code": "key_expired"}}
    ansible.control("POST", "/faults", {**fault, "after": after})
    process = ansible.start(*TASKS)
    output = process.communicate()[0]
    ansible.control("DELETE", "/faults")
    assert process.returncode == 2, output
    ansible.plays_now = True
    lines = [line for line in output.splitlines() if line.startswith("[ERROR]")]
    assert len(lines) == 1, output
    assert "the API key has expired" in lines[0]
    assert "Next: create a new key in the control panel" in lines[0]
    assert "Traceback" not in output
    key = ansible.control("POST", "/keys", {"mode": "live"})["key"]
    again = ansible.play(*TASKS, environ={"HOSTING_API_KEY": key})
    assert sorted(row["name"] for row in ansible.living) == ["db", "web"]
    assert len(ansible.server_charges()) == 2
    assert again["web"]["server"]["notes"].startswith("shop")
    assert ansible.play(*TASKS).changed == [False, False]
