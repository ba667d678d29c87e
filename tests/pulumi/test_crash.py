"""Killed after the service took the order and before the answer arrived, then run again: one server, one charge."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.pulumi.conftest import PUBLIC_KEY, Program

SERVER = f"""
key = SshKey("me", public_key="{PUBLIC_KEY}")
Server("web", tariff_id=1, os="debian-12", ssh_key_ids=[key.id], notes="one")
"""


def descendants(pid: int) -> list[int]:
    """Every process below ``pid``, whatever group it is in."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # it ended meanwhile
            parents[int(entry.name)] = int(stat[1])
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        below = [child for child, above in parents.items() if above == parent]
        found += below
        todo += below
    return found


def wait_until(program: Program, charges: int, running: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while program.charges() < charges:
        assert running.poll() is None, "the engine ended before the order was taken"
        assert time.monotonic() < deadline, "the order was never taken"
        time.sleep(0.05)


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.parametrize("orphan", [False, True], ids=["everything killed", "only the engine killed"])
@pytest.mark.parametrize("slow", [False, True], ids=["201", "202"])
def test_killed_between_order_and_answer(program: Program, orphan: bool, slow: bool) -> None:
    program.write(SERVER)
    if slow:
        program.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}})
        program.control("POST", "/faults", {"method": "GET", "path": "^/orders/", "action": {"delay": 4}})
    else:
        program.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"delay": 4}})
    running = subprocess.Popen(
        program.stack.command("up", "--yes", "--skip-preview"),
        cwd=program.directory,
        env=program.stack.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(program, 1, running)
    below = descendants(running.pid)
    kill([running.pid] if orphan else [running.pid, *below])
    running.wait()
    try:
        program.stack.cancel()
        again = program.stack.up()
        assert again.exit_code == 0, again.output
        assert len(program.living) == 1
        assert program.charges() == 1
        assert program.stack.up("--expect-no-changes").exit_code == 0
        assert program.stack.destroy().exit_code == 0
        assert program.living == []
    finally:
        kill(below)


@pytest.mark.parametrize("action", [{"drop": "after"}, {"drop": "before"}, {"truncate": 10}, {"status": 504, "code": "upstream_timeout"}])
def test_a_lost_answer_is_one_server_and_one_charge_in_the_same_run(program: Program, action: dict[str, object]) -> None:
    program.write(SERVER)
    program.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": action})
    made = program.stack.up()
    assert made.exit_code == 0, made.output
    assert len(program.living) == 1
    assert program.charges() == 1


def test_a_refused_order_leaves_nothing_and_does_not_stick(program: Program) -> None:
    program.write(SERVER)
    program.control("PATCH", "/account", {"balance": "0.01"})
    assert program.stack.up().exit_code == 1
    program.control("PATCH", "/account", {"balance": "100.00"})
    assert program.stack.up().exit_code == 0
    assert program.charges() == 1


def test_destroyed_and_made_again_within_the_memory_of_keys(program: Program) -> None:
    program.write(SERVER)
    for _ in range(2):
        assert program.stack.up().exit_code == 0
        assert len(program.living) == 1
        assert program.stack.destroy().exit_code == 0
    assert program.living == []
