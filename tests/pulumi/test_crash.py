"""Killed after the service took an order and before the answer arrived, then run again: one object, one charge."""

import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.engines import OFFLINE
from tests.support.programs import PUBLIC_KEY, Program

DOCS = Path(__file__).parents[2] / "docs" / "pulumi.md"
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


# Everything that costs money, each with what makes its answer late: a server that comes at once (201) and one that is still an order
# (202), a domain registered and one transferred, an address of a server that was there before.
LATE = {"delay": 20}
FAULTS: list[dict[str, Any]] = [
    {"method": "POST", "path": "^/servers$", "action": LATE},
    {"method": "POST", "path": "^/servers$", "after": 1, "action": {"panel_timeout": "active"}},
    {"method": "POST", "path": "^/domains$", "action": LATE},
    {"method": "POST", "path": "^/domains/transfers$", "action": LATE},
    {"method": "POST", "path": "^/servers/[0-9]+/ips$", "action": LATE},
]


def purchases(base: str) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        "one": ("Server", {"tariff_id": 1, "os": "debian-12", "name": "one", "notes": "front"}),
        "two": ("Server", {"tariff_id": 1, "os": "debian-12", "name": "two"}),
        "site": ("Domain", {"name": "example-1.com", "auto_renew": True}),
        "moved": ("Domain", {"name": "example-2.com", "auth_code": "EPP-1234567"}),
        "spare": ("ServerIp", {"server_id": base}),
    }


@pytest.mark.emulator(provisioning_delay=600, own=True)
@pytest.mark.parametrize("orphan", [False, True], ids=["everything killed", "only the engine killed"])
def test_killed_between_purchase_and_answer(formed: Program, orphan: bool) -> None:
    with Client(formed.emulator.live_key, formed.emulator.base_url) as client:
        client.servers.create(tariff_id=1, os="debian-12", name="base")
    (base,) = formed.living
    formed.stack.allow("bought before, by another tool", base["id"])
    for fault in FAULTS:
        formed.control("POST", "/faults", fault)
    declared = purchases(str(base["id"]))
    below: list[int] = []
    try:
        # The SDK's process for dynamic resources does four things at a time: the address is bought in a second run, killed like the first.
        for names in [("one", "two", "site", "moved"), ("one", "two", "site", "moved", "spare")]:
            formed.declare({name: declared[name] for name in names})
            running = formed.start_cold()
            wait_until(formed, 1 + len(names), running)
            left = descendants(running.pid)
            kill([running.pid] if orphan else [running.pid, *left])
            running.wait()
            below += left
            formed.stack.cancel()
            assert names[-1] not in formed.resources()
            if names[-1] == "moved":
                assert formed.resources() == {}  # every purchase was made, none was recorded
            formed.control("POST", "/clock", {"advance": 601})
        formed.run(formed.stack.up())
        assert sorted(server["name"] for server in formed.living) == ["base", "one", "two"]
        assert sorted(domain["name"] for domain in formed.objects("domains")) == ["example-1.com", "example-2.com"]
        (bought,) = [address for address in formed.objects("addresses") if address["bought"]]
        assert formed.charges() == 1 + len(declared)
        ids = {name: resource["id"] for name, resource in formed.resources().items()}
        assert ids["spare"] == f"{base['id']}/{bought['id']}"
        assert {ids["one"], ids["two"]} == {str(server["id"]) for server in formed.living if server["name"] != "base"}
        formed.run(formed.stack.up("--expect-no-changes"), {})
        if orphan and formed.form == "native":
            wait_for_the_end_of(below)
        formed.run(formed.stack.destroy())
        assert [server["name"] for server in formed.living] == ["base"]
    finally:
        kill(below)


def wait_for_the_end_of(processes: list[int]) -> None:
    """A plugin whose engine is gone finishes what it began, and ends by itself."""
    deadline = time.monotonic() + 60
    while any(b"pulumi_hosting.provider.plugin.servicer" in command(pid) for pid in processes):
        assert time.monotonic() < deadline, "a plugin lives on without its engine"
        time.sleep(0.1)


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


ORDER = r"\*\*To remove everything after a crash\*\*[\s\S]*?\n\n((?:    pulumi .*\n)+)"
DOCUMENTED = re.search(ORDER, DOCS.read_text(encoding="utf-8"))


@pytest.mark.emulator(own=True)
def test_everything_is_removed_after_a_kill(formed: Program) -> None:
    """In the documented order. The offline engine does not destroy before what was bought has been found."""
    assert DOCUMENTED is not None
    commands = [shlex.split(line, comments=True)[1:] for line in DOCUMENTED[1].splitlines()]
    assert [command[0] for command in commands] == ["cancel", "up", "destroy"]
    formed.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": LATE})
    formed.declare({"web": ("Server", {"tariff_id": 1, "os": "debian-12"})})
    running = formed.start_cold()
    wait_until(formed, 1, running)
    kill([running.pid, *descendants(running.pid)])
    running.wait()
    assert formed.stack.run(*commands[0]).exit_code == 0
    if formed.stack.engine.name == OFFLINE:
        with formed.stack.unchecked("killed, and not run again yet"):
            refused = formed.stack.destroy()
            assert refused.exit_code == 1
            assert "was creating" in refused.output
            advice = re.search(r"Next: run `pulumi-hosting offline (\w+)`", refused.output)
            assert advice is not None
            assert advice[1] == commands[1][0]
            looked = formed.run(formed.stack.refresh())
            assert "A refresh cannot find what they made. Next: run `pulumi-hosting offline up`" in looked.output
        assert len(formed.living) == 1
    for command in commands[1:]:
        formed.run(formed.stack.run(*command))
    assert formed.living == []
    assert formed.charges() == 0


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
