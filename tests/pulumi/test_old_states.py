"""A stack's state that was edited or restored from a backup, on an engine. Every test ends by asking the
account, after the commands that the messages name.
"""

import json
import re
import shlex
from decimal import Decimal
from typing import Any

from pulumi_hosting.client.client import Client
from tests.support.programs import Program

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}


def load(program: Program, exported: dict[str, Any]) -> None:
    (program.directory / "state.json").write_text(json.dumps(exported), encoding="utf-8")
    program.run(program.stack.run("stack", "import", "--file", "state.json"))


def test_an_edited_id_deletes_nothing_and_the_advice_ends_it(program: Program) -> None:
    program.declare({"web": ("Server", SERVER)})
    program.run(program.stack.up())
    web = program.resources()["web"]["id"]
    with Client(program.emulator.live_key, program.emulator.base_url) as client:  # by hand
        client.servers.create(name="precious", months=1, **SERVER)
    (precious,) = [str(server["id"]) for server in program.living if server["name"] == "precious"]
    program.stack.allow("ordered by hand", precious)
    exported = program.stack.export("--show-secrets")
    for entry in exported["deployment"]["resources"]:
        if entry.get("id") == web:
            entry["id"] = precious
    with program.stack.unchecked("the state names another server"):
        load(program, exported)
        refused = program.stack.destroy()
        assert refused.exit_code != 0
        assert f"server {precious}: it is not what the state recorded (" in refused.output
        assert {str(server["id"]) for server in program.living} == {web, precious}
        forget = re.search(r"Next: pulumi (state delete '\S+') leaves it as it is", refused.output)
        assert forget is not None
        program.run(program.stack.run(*shlex.split(forget[1]), "--yes"))
    done = program.run(program.stack.up())
    assert f"takes over server {web}" in done.output
    program.run(program.stack.destroy())
    assert [str(server["id"]) for server in program.living] == [precious]


def test_a_backup_deletes_nothing_silently_and_the_advice_ends_it(program: Program) -> None:
    program.declare({"web": ("Server", SERVER)})
    program.run(program.stack.up())
    backup = program.stack.export("--show-secrets")
    program.declare({"web": ("Server", {**SERVER, "tariff_id": 2})})
    program.run(program.stack.up(), {"replace": 1})
    new = program.resources()["web"]["id"]
    with program.stack.unchecked("the state is an old one"):
        load(program, backup)
        refused = program.stack.destroy()
    assert refused.exit_code != 0
    assert f"server {new} (web), 10.00 EUR a month, carries this resource's ownership tag" in refused.output
    advice = re.search(r"Next: pulumi (up --refresh) with a program that declares", refused.output)
    assert advice is not None
    done = program.run(program.stack.run(*advice[1].split(), "--yes", "--skip-preview"))
    assert f"takes over server {new}" in done.output
    assert "a new one is ordered" not in done.output
    assert program.resources()["web"]["id"] == new
    assert program.moved() == Decimal("10.00")
    program.run(program.stack.destroy())
    assert program.living == []
    assert program.moved() == 0
