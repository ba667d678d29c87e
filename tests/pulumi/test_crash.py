"""Killed after the service took an order and before the answer arrived, then run again: one object, one
charge.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.engines import OFFLINE, PULUMI
from tests.support.processes import descendants, kill
from tests.support.programs import PUBLIC_KEY, Program
from tests.support.waiting import HANG_SECONDS, wait_until

DOCS = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
SERVER = f"""
key = SshKey("me", public_key="{PUBLIC_KEY}")
Server("web", tariff_id=1, os="debian-12", ssh_key_ids=[key.id], notes="one")
"""


def charged(program: Program, times: int) -> Callable[[], bool]:
    """Whether so much was bought already."""
    return lambda: program.charges >= times


# Everything that costs money, each with what makes its answer late: a server that comes at once (201) and one
# that is still an order
# (202), a domain registered and one transferred, an address of a server that was there before.
LATE = {"delay": 10}
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


@pytest.mark.daily
@pytest.mark.emulator(provisioning_delay=600, own=True)
@pytest.mark.parametrize(
    ("form", "orphan"),
    [
        ("dynamic", False),
        ("native", True),
        pytest.param("dynamic", True, marks=pytest.mark.slow),
        pytest.param("native", False, marks=pytest.mark.slow),
    ],
    ids=lambda value: (
        value if isinstance(value, str) else "only the engine killed" if value else "everything killed"
    ),
)
def test_killed_between_purchase_and_answer(program: Program, orphan: bool) -> None:
    with Client(program.emulator.live_key, program.emulator.base_url) as client:
        client.servers.create(tariff_id=1, os="debian-12", name="base")
    (base,) = program.living
    program.stack.allow("bought before, by another tool", base["id"])
    for fault in FAULTS:
        program.control("POST", "/faults", fault)
    declared = purchases(str(base["id"]))
    below: list[int] = []
    try:
        # The SDK's process for dynamic resources does four things at a time: the address is bought in a
        # second run, killed like the first.
        for names in [("one", "two", "site", "moved"), ("one", "two", "site", "moved", "spare")]:
            program.declare({name: declared[name] for name in names})
            running = program.start_cold()
            wait_until(charged(program, 1 + len(names)), running)
            left = descendants(running.pid)
            kill([running.pid] if orphan else [running.pid, *left])
            running.wait()
            below += left
            program.stack.cancel()
            assert names[-1] not in program.resources()
            if names[-1] == "moved":
                assert program.resources() == {}  # every purchase was made, none was recorded
            program.control("POST", "/clock", {"advance": 601})
        program.run(program.stack.up())
        assert sorted(server["name"] for server in program.living) == ["base", "one", "two"]
        assert sorted(domain["name"] for domain in program.objects("domains")) == [
            "example-1.com",
            "example-2.com",
        ]
        (bought,) = [address for address in program.objects("addresses") if address["bought"]]
        assert program.charges == 1 + len(declared)
        ids = {name: resource["id"] for name, resource in program.resources().items()}
        assert ids["spare"] == f"{base['id']}/{bought['id']}"
        assert {ids["one"], ids["two"]} == {
            str(server["id"]) for server in program.living if server["name"] != "base"
        }
        program.run(program.stack.up("--expect-no-changes"), {})
        if orphan and program.form == "native":
            wait_for_the_end_of(below)
        program.run(program.stack.destroy())
        assert [server["name"] for server in program.living] == ["base"]
    finally:
        kill(below)


@pytest.mark.slow
@pytest.mark.both_providers
@pytest.mark.emulator(own=True)
def test_only_the_provider_killed(program: Program) -> None:
    """Program and provider die while the order is answered; the engine lives, and reports it."""
    program.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": LATE})
    program.declare({"web": ("Server", {"tariff_id": 1, "os": "debian-12"})})
    running = program.start_cold()
    wait_until(charged(program, 1), running)
    kill(descendants(running.pid))
    assert running.wait(HANG_SECONDS) != 0
    program.stack.cancel()
    program.run(program.stack.up())
    (server,) = program.living
    assert program.resources()["web"]["id"] == str(server["id"])
    assert program.charges == 1
    program.run(program.stack.destroy())
    assert program.living == []


def wait_for_the_end_of(processes: list[int]) -> None:
    """A plugin whose engine is gone finishes its request and ends."""
    wait_until(lambda: not any(b"pulumi_hosting.provider.plugin" in command(pid) for pid in processes))


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


ORDER = r"\*\*To remove everything after a crash\*\*[\s\S]*?\n\n((?:    pulumi .*\n)+)"
DOCUMENTED = re.search(ORDER, DOCS.read_text(encoding="utf-8"))


@pytest.mark.both_providers
@pytest.mark.emulator(own=True)
def test_everything_is_removed_after_a_kill(program: Program) -> None:
    """In the documented order. The offline engine does not destroy before what was bought has been found."""
    assert DOCUMENTED is not None
    commands = [shlex.split(line, comments=True)[1:] for line in DOCUMENTED[1].splitlines()]
    assert [command[0] for command in commands] == ["cancel", "up", "destroy"]
    program.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": LATE})
    program.declare({"web": ("Server", {"tariff_id": 1, "os": "debian-12"})})
    running = program.start_cold()
    wait_until(charged(program, 1), running)
    kill([running.pid, *descendants(running.pid)])
    running.wait()
    assert program.stack.run(*commands[0]).exit_code == 0
    if program.stack.engine.name == OFFLINE:
        with program.stack.unchecked("killed, and not run again yet"):
            refused = program.stack.destroy()
            assert refused.exit_code == 1
            assert "was creating" in refused.output
            advice = re.search(r"Next: run `pulumi-hosting offline (\w+)`", refused.output)
            assert advice is not None
            assert advice[1] == commands[1][0]
            looked = program.run(program.stack.refresh())
            assert (
                "A refresh cannot find what they created. Next: run `pulumi-hosting offline up`"
            ) in looked.output
        assert len(program.living) == 1
    for command in commands[1:]:
        program.run(program.stack.run(*command))
    assert program.living == []
    assert program.charges == 0


EMPTY = re.search(r"^ +(find .*-empty -delete)", DOCS.read_text(encoding="utf-8"), re.MULTILINE)


def test_a_state_beside_an_empty_file_of_attributes_is_whole(program: Program) -> None:
    """Pulumi's CLI leaves that file when it is killed between making and writing it."""
    assert EMPTY is not None
    program.declare({"me": ("SshKey", {"public_key": PUBLIC_KEY})})
    program.run(program.stack.up())
    folder = program.stack.home / "state"
    (state,) = (folder / ".pulumi" / "stacks").rglob("*.json")
    state.with_name(f"{state.name}.attrs").write_bytes(b"")
    if program.stack.engine.name == PULUMI:
        with program.stack.unchecked("the state cannot be read"):
            assert "failed to load checkpoint: EOF" in program.stack.up().output
    subprocess.run(["sh", "-c", EMPTY[1]], check=True, env=os.environ | {"HOME": str(folder)})
    assert not state.with_name(f"{state.name}.attrs").exists()
    program.run(program.stack.up("--expect-no-changes"), {})


@pytest.mark.parametrize(
    "action",
    [{"drop": "after"}, {"drop": "before"}, {"truncate": 10}, {"status": 504, "code": "upstream_timeout"}],
)
def test_a_lost_answer_is_one_server_and_one_charge_in_the_same_run(
    dynamic: Program, action: dict[str, object]
) -> None:
    dynamic.write(SERVER)
    dynamic.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": action})
    made = dynamic.stack.up()
    assert made.exit_code == 0, made.output
    assert len(dynamic.living) == 1
    assert dynamic.charges == 1


def test_a_refused_order_leaves_nothing_and_does_not_stick(dynamic: Program) -> None:
    dynamic.write(SERVER)
    dynamic.control("PATCH", "/account", {"balance": "0.01"})
    assert dynamic.stack.up().exit_code == 1
    dynamic.control("PATCH", "/account", {"balance": "100.00"})
    assert dynamic.stack.up().exit_code == 0
    assert dynamic.charges == 1


def test_destroyed_and_made_again_within_the_memory_of_keys(dynamic: Program) -> None:
    dynamic.write(SERVER)
    for _ in range(2):
        assert dynamic.stack.up().exit_code == 0
        assert len(dynamic.living) == 1
        assert dynamic.stack.destroy().exit_code == 0
    assert dynamic.living == []
