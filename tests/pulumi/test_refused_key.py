"""A key that expires, is revoked or rotated, or may not be used from this address: before a run and in the
middle of one. A run ends with one clear line per failed step; with another key the next run does the rest.
"""

import re
from typing import Any

import pytest

from pulumi_hosting.rehearsal.engines import Run
from tests.support.programs import Program, messages

KEYS: dict[str, tuple[dict[str, Any], str, str]] = {
    "expired": (
        {"expires_at": "2020-01-01T00:00:00Z"},
        "the API key has expired. Next: create a new key in the control panel",
        "key_expired",
    ),
    "revoked": (
        {},
        "the API key is not valid. Next: check HOSTING_API_KEY, or create a key",
        "invalid_token",
    ),
    "address": (
        {"ip_allowlist": ["10.0.0.0/8"]},
        "the API key may not be used from this address. Next: add the address to the key's allow-list",
        "ip_not_allowed",
    ),
}
STATUSES = {"key_expired": 401, "invalid_token": 401, "ip_not_allowed": 403}


NAMES = ("web", "db")


def shop(program: Program) -> None:
    given = {"tariff_id": 1, "os": "debian-12", "notes": "shop"}
    program.declare(dict.fromkeys(NAMES, ("Server", given)))


def errors(run: Run) -> list[str]:
    """The lines of errors, but for the engine's own last one."""
    return [
        line for line in run.output.splitlines() if "error: " in line and not line.endswith("update failed")
    ]


def outputs(program: Program) -> dict[str, Any]:
    """What the state holds of each resource."""
    return {name: resource["outputs"] for name, resource in program.resources().items()}


@pytest.mark.both_providers
@pytest.mark.parametrize(("options", "line", "code"), KEYS.values(), ids=KEYS)
def test_a_refused_key_is_one_line(program: Program, options: dict[str, Any], line: str, code: str) -> None:
    made = program.control("POST", "/keys", {"mode": "live", **options})
    if not options:
        program.control("DELETE", f"/keys/{made['id']}")
    shop(program)
    program.stack.environ["HOSTING_API_KEY"] = made["key"]
    for run in (program.stack.preview(), program.stack.up()):
        assert run.exit_code != 0
        shown = errors(run)
        assert 1 <= len(shown) <= 2, run.output  # one for each server whose registration was under way
        assert all(line in text and re.search(rf" {code}, \w+, request ", text) for text in shown)
        assert "Traceback" not in run.output
        assert made["key"] not in run.output
    assert program.living == []
    assert program.ledger() == []


@pytest.mark.both_providers
def test_a_run_that_changes_nothing_fails_with_a_revoked_key(program: Program) -> None:
    """One question, and no success: neither "unchanged" nor a warning."""
    shop(program)
    program.run(program.stack.up())
    before, alive = outputs(program), program.living
    made = program.control("POST", "/keys", {"mode": "live"})
    program.control("DELETE", f"/keys/{made['id']}")
    program.stack.environ["HOSTING_API_KEY"] = made["key"]
    asked = program.control.requests()
    stack = program.stack
    for run in (stack.preview(), stack.up(), stack.refresh()):
        assert run.exit_code != 0
        shown = [line for line in messages(run).splitlines() if line in errors(run)]
        assert shown, run.output
        assert len(shown) <= len(NAMES), run.output  # engines report each step that was under way
        assert all(KEYS["revoked"][1] in line for line in shown), run.output
        assert "were not checked" not in run.output
    assert program.control.requests() - asked == 3
    assert outputs(program) == before
    assert program.living == alive
    assert program.moved() == 10


@pytest.mark.both_providers
@pytest.mark.parametrize("after", [3, 5, 7, 8])
def test_a_key_that_is_refused_in_the_middle_of_a_run(program: Program, after: int) -> None:
    """After ``after`` requests: before the first order, between two, and while what was ordered is set up."""
    code, line = "key_expired", KEYS["expired"][1]
    shop(program)
    fault = {"path": ".*", "times": 10_000, "action": {"status": STATUSES[code], "code": code}}
    program.control("POST", "/faults", {**fault, "after": after})
    with program.stack.unchecked("what could not be recorded is found by the next run"):
        run = program.stack.up()
    program.control("DELETE", "/faults")
    named = [text for text in run.output.splitlines() if "the API key has expired" in text]
    assert named, run.output
    for text in named:  # a failed step, or a warning of what exists and is not finished
        assert line.partition("Next: ")[2] in text, text
    told = {text.partition("error: ")[2] for text in errors(run)}  # Pulumi prints each of them twice
    assert len(told) <= 2, run.output  # two steps were under way
    assert "Traceback" not in run.output
    program.stack.environ["HOSTING_API_KEY"] = program.control("POST", "/keys", {"mode": "live"})["key"]
    program.run(program.stack.up())
    assert sorted(row["name"] for row in program.living) == ["db", "web"]
    assert len([row for row in program.ledger() if row["direction"] == "debit"]) == 2
    program.run(program.stack.up(), {})


@pytest.mark.both_providers
@pytest.mark.emulator(provisioning_delay=600)
def test_a_key_that_is_refused_while_an_order_is_delivered(program: Program) -> None:
    """What is paid is not lost: the message says what the key needs first, and then the next run."""
    program.declare({"web": ("Server", {"tariff_id": 1, "os": "debian-12"})})
    late = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    refused = {
        "path": "^/orders",
        "after": 1,
        "times": 10_000,
        "action": {"status": 401, "code": "key_expired"},
    }
    program.control("POST", "/faults", late)
    program.control("POST", "/faults", refused)
    with program.stack.unchecked("what could not be recorded is found by the next run"):
        run = program.stack.up()
    program.control("DELETE", "/faults")
    assert run.exit_code != 0
    assert len(program.ledger()) == 1
    assert "the API key has expired" in run.output
    assert "Next: create a new key in the control panel" in run.output
    assert "Traceback" not in run.output
    if program.form == "dynamic":
        assert (
            "is paid and in no state. Next: create a new key in the control panel, then pulumi up"
            in run.output
        )
    program.stack.environ["HOSTING_API_KEY"] = program.control("POST", "/keys", {"mode": "live"})["key"]
    program.control("POST", "/clock", {"advance": 600})
    program.run(program.stack.up())
    assert [row["name"] for row in program.living] == ["web"]
    assert len(program.ledger()) == 1
