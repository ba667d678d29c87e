"""Test keys beside live keys: what is simulated stays simulated, what is real stays untouched."""

from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.rehearsal.engines import Engine
from tests.pulumi.test_every_resource import ALL, UPDATES, changed, unchanged
from tests.support.programs import Program, make_program


@pytest.fixture
def sandbox(form: str, engine: Engine, emulator: Any, tmp_path: Path) -> Program:
    """A program whose key is a test key."""
    key = {"HOSTING_API_KEY": emulator.test_key}
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", form, **key)


def with_key(program: Program, key: str) -> Program:
    program.stack.environ["HOSTING_API_KEY"] = key
    return program


def test_every_resource_works_in_the_sandbox(sandbox: Program, dialect: str) -> None:
    # Whether later reads of a sandbox server show what was written to it: one reading in each dialect.
    sandbox.control(
        "PATCH", "/service", {"readings": {"sandbox_echo": {"spec": "none", "live": "server"}[dialect]}}
    )
    sandbox.declare(ALL)
    sandbox.run(sandbox.stack.preview(), {"create": len(ALL) + 1})
    made = sandbox.run(sandbox.stack.up(), {"create": len(ALL) + 1})
    assert "webhooks are closed to test keys" in made.output
    assert {resource["outputs"]["mode"] for resource in sandbox.resources().values()} == {"test"}
    unchanged(sandbox)
    looked = sandbox.stack.refresh("--preview-only", "--expect-no-changes")
    assert looked.exit_code == 0, looked.output
    now = ALL
    for changes in UPDATES:
        now = changed(now, changes)
        sandbox.declare(now)
        sandbox.run(sandbox.stack.up(), {"update": len(changes)})
    sandbox.run(sandbox.stack.refresh())
    unchanged(sandbox)
    assert sandbox.ledger() == []
    sandbox.run(sandbox.stack.destroy())
    assert sandbox.objects("domains") == []


def test_a_test_key_looks_at_a_live_stack_and_changes_nothing(program: Program) -> None:
    live = program.emulator.live_key
    program.declare(ALL)
    program.run(program.stack.up())
    before = program.control("GET", "/objects")
    with_key(program, program.emulator.test_key)
    unchanged(program)
    looked = program.stack.refresh("--preview-only", "--expect-no-changes")
    assert looked.exit_code == 0, looked.output
    now = changed(ALL, UPDATES[1])
    program.declare(now)
    program.run(program.stack.preview(), {"update": len(UPDATES[1])})
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert (
        "was made with a live key, and a test key may look at it but never change it; nothing was sent"
    ) in refused.output
    program.declare({**ALL, "more": ("Server", {"tariff_id": 1, "os": "debian-12"})})
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert "must not add simulated ones" in refused.output
    assert program.stack.destroy().exit_code != 0
    after = program.control("GET", "/objects")
    for kind in ("domains", "ssh_keys", "subscriptions", "addresses"):
        assert after[kind] == before[kind]
    assert len(program.living) == 2
    with_key(program, live)
    program.declare(ALL)
    program.run(program.stack.destroy())
    assert program.living == []


def test_a_live_key_touches_nothing_simulated(sandbox: Program) -> None:
    sandbox.declare(ALL)
    sandbox.run(sandbox.stack.up())
    with_key(sandbox, sandbox.emulator.live_key)
    refused = sandbox.stack.up()
    assert refused.exit_code != 0
    assert (
        "was made with a test key: it is only simulated, and this is a live key; nothing was done"
    ) in refused.output
    for refused in (sandbox.stack.refresh(), sandbox.stack.destroy()):
        assert refused.exit_code != 0
        assert "was only simulated, with a test key, and a live key must not touch it" in refused.output
    assert sandbox.ledger() == []
    assert len(sandbox.resources()) == len(ALL)


def test_from_the_test_key_to_the_live_key_with_a_provider_of_the_program(
    engine: Engine, emulator: Any, tmp_path: Path
) -> None:
    """A refused `up` leaves the live key in the provider of the state, where `destroy` takes it from; an
    `up` puts the test key back.
    """
    program = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")
    body = """
        own = hosting.Provider("own", api_key={!r}, base_url={!r})
        hosting.Server("web", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=own))
    """
    programs = [body.format(key, emulator.base_url) for key in (emulator.test_key, emulator.live_key)]
    program.declare({}, programs[0])
    program.run(program.stack.up())
    program.declare({}, programs[1])
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert (
        "Next: pulumi up, then pulumi destroy, both with the test key; then pulumi up with the live key"
    ) in refused.output
    assert program.ledger() == []
    program.declare({}, programs[0])
    program.run(program.stack.up())
    program.run(program.stack.destroy())
    assert program.resources() == {}
    program.declare({}, programs[1])
    program.run(program.stack.up())
    assert [str(server["id"]) for server in program.living] == [program.resources()["web"]["id"]]
    program.run(program.stack.destroy())
    assert program.living == []


@pytest.mark.emulator(clock="manual")
def test_an_expired_sandbox_server_is_made_again(sandbox: Program) -> None:
    web = {"web": ALL["web"]}
    sandbox.declare(web)
    sandbox.run(sandbox.stack.up())
    (before,) = sandbox.resources().values()
    sandbox.control("POST", "/clock", {"advance": 25 * 3600})
    sandbox.run(sandbox.stack.up("--refresh"))
    (after,) = sandbox.resources().values()
    assert after["id"] != before["id"]
    unchanged(sandbox)


def test_a_stack_that_says_live_refuses_a_test_key(program: Program) -> None:
    program.declare({"web": ALL["web"]})
    program.run(program.stack.run("config", "set", "hosting:mode", "live"))
    with_key(program, program.emulator.test_key)
    program.run(program.stack.preview(), {"create": 2})
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert "the configuration says mode live, and this is a test key" in refused.output
    assert program.objects("servers") == []
