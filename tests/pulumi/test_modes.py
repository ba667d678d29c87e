"""Test keys beside live keys: what is simulated stays simulated, what is real stays untouched."""

from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.rehearsal.engines import Engine
from tests.pulumi.test_nouns import ALL, UPDATES, changed, unchanged
from tests.support.programs import FORMS, Program, make_program


@pytest.fixture(params=FORMS)
def sandboxed(request: pytest.FixtureRequest, engine: Engine, emulator: Any, tmp_path: Path) -> Program:
    """A program whose key is a test key."""
    key = {"HOSTING_API_KEY": emulator.test_key}
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", request.param, **key)


def with_key(formed: Program, key: str) -> Program:
    formed.stack.environ["HOSTING_API_KEY"] = key
    return formed


def test_every_resource_lives_in_the_sandbox(sandboxed: Program, dialect: str) -> None:
    # Whether later reads of a sandbox server show what was written to it: one reading in each dialect.
    sandboxed.control("PATCH", "/service", {"readings": {"sandbox_echo": {"spec": "none", "live": "server"}[dialect]}})
    sandboxed.declare(ALL)
    sandboxed.run(sandboxed.stack.preview(), {"create": len(ALL) + 1})
    made = sandboxed.run(sandboxed.stack.up(), {"create": len(ALL) + 1})
    assert "webhooks are closed to test keys" in made.output
    assert {resource["outputs"]["mode"] for resource in sandboxed.resources().values()} == {"test"}
    unchanged(sandboxed)
    looked = sandboxed.stack.refresh("--preview-only", "--expect-no-changes")
    assert looked.exit_code == 0, looked.output
    now = ALL
    for changes in UPDATES:
        now = changed(now, changes)
        sandboxed.declare(now)
        sandboxed.run(sandboxed.stack.up(), {"update": len(changes)})
    sandboxed.run(sandboxed.stack.refresh())
    unchanged(sandboxed)
    assert sandboxed.control.ledger() == []
    sandboxed.run(sandboxed.stack.destroy())
    assert sandboxed.objects("domains") == []


def test_a_test_key_looks_at_a_live_stack_and_changes_nothing(formed: Program) -> None:
    live = formed.emulator.live_key
    formed.declare(ALL)
    formed.run(formed.stack.up())
    before = formed.control("GET", "/objects")
    with_key(formed, formed.emulator.test_key)
    unchanged(formed)
    looked = formed.stack.refresh("--preview-only", "--expect-no-changes")
    assert looked.exit_code == 0, looked.output
    now = changed(ALL, UPDATES[1])
    formed.declare(now)
    formed.run(formed.stack.preview(), {"update": len(UPDATES[1])})
    refused = formed.stack.up()
    assert refused.exit_code != 0
    assert "was made with a live key, and a test key may look at it but never change it; nothing was sent" in refused.output
    formed.declare({**ALL, "more": ("Server", {"tariff_id": 1, "os": "debian-12"})})
    refused = formed.stack.up()
    assert refused.exit_code != 0
    assert "must not add simulated ones" in refused.output
    assert formed.stack.destroy().exit_code != 0
    after = formed.control("GET", "/objects")
    for kind in ("domains", "ssh_keys", "subscriptions", "addresses"):
        assert after[kind] == before[kind]
    assert len(formed.living) == 2
    with_key(formed, live)
    formed.declare(ALL)
    formed.run(formed.stack.destroy())
    assert formed.living == []


def test_a_live_key_touches_nothing_simulated(sandboxed: Program) -> None:
    sandboxed.declare(ALL)
    sandboxed.run(sandboxed.stack.up())
    with_key(sandboxed, sandboxed.emulator.live_key)
    refused = sandboxed.stack.up()
    assert refused.exit_code != 0
    assert "was made with a test key: nothing of it is real, and this is a live key; nothing was done" in refused.output
    for refused in (sandboxed.stack.refresh(), sandboxed.stack.destroy()):
        assert refused.exit_code != 0
        assert "was only simulated, with a test key, and a live key must not touch it" in refused.output
    assert sandboxed.control.ledger() == []
    assert len(sandboxed.resources()) == len(ALL)


def test_from_the_test_key_to_the_live_key_with_a_provider_of_the_program(engine: Engine, emulator: Any, tmp_path: Path) -> None:
    """A refused `up` leaves the live key in the provider of the state, where `destroy` takes it from; an `up` puts the test key back."""
    formed = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")
    body = """
        own = hosting.Provider("own", api_key={!r}, base_url={!r})
        hosting.Server("web", tariff_id=1, os="debian-12", opts=pulumi.ResourceOptions(provider=own))
    """
    programs = [body.format(key, emulator.base_url) for key in (emulator.test_key, emulator.live_key)]
    formed.declare({}, programs[0])
    formed.run(formed.stack.up())
    formed.declare({}, programs[1])
    refused = formed.stack.up()
    assert refused.exit_code != 0
    assert "Next: pulumi up, then pulumi destroy, both with the test key; then pulumi up with the live key" in refused.output
    assert formed.control.ledger() == []
    formed.declare({}, programs[0])
    formed.run(formed.stack.up())
    formed.run(formed.stack.destroy())
    assert formed.resources() == {}
    formed.declare({}, programs[1])
    formed.run(formed.stack.up())
    assert [str(server["id"]) for server in formed.living] == [formed.resources()["web"]["id"]]
    formed.run(formed.stack.destroy())
    assert formed.living == []


@pytest.mark.emulator(clock="manual")
def test_an_expired_sandbox_server_is_made_again(sandboxed: Program) -> None:
    web = {"web": ALL["web"]}
    sandboxed.declare(web)
    sandboxed.run(sandboxed.stack.up())
    (before,) = sandboxed.resources().values()
    sandboxed.control("POST", "/clock", {"advance": 25 * 3600})
    sandboxed.run(sandboxed.stack.up("--refresh"))
    (after,) = sandboxed.resources().values()
    assert after["id"] != before["id"]
    unchanged(sandboxed)


def test_a_stack_that_says_live_refuses_a_test_key(formed: Program) -> None:
    formed.declare({"web": ALL["web"]})
    formed.run(formed.stack.run("config", "set", "hosting:mode", "live"))
    with_key(formed, formed.emulator.test_key)
    formed.run(formed.stack.preview(), {"create": 2})
    refused = formed.stack.up()
    assert refused.exit_code != 0
    assert "the configuration says mode live, and this is a test key" in refused.output
    assert formed.objects("servers") == []
