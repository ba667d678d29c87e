"""``pulumi-hosting recover``: each command that it names is run, and resolves what it was named for."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import Engine
from tests.reports.conftest import Command
from tests.support.programs import PUBLIC_KEY, Program, make_program

WEB = 'Server("web", tariff_id=1, os="debian-12", name="web", password="Zebra-4711-Zebra")'
SHOP = f"""
key = SshKey("laptop", name="laptop", public_key="{PUBLIC_KEY}")
web = {WEB}
mail = hosting.ServerIp("mail", server=web)
hosting.Ptr("ptr", server=web, domain="www.shop-example.com")
hosting.Domain("shop", name="shop-example.com")
hosting.WebhookSubscription("news", url="https://hooks.shop-example.com/in", events=["server.created"])
"""


@pytest.fixture(params=["native", pytest.param("dynamic", marks=pytest.mark.slow)])
def program(request: pytest.FixtureRequest, engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", request.param)


def edit_state(program: Program, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change the stack's state as a crash leaves it."""
    (path,) = (program.stack.home / "state" / ".pulumi" / "stacks").rglob("dev.json")
    saved = json.loads(path.read_text(encoding="utf-8"))
    edit(saved["checkpoint"]["latest"])
    path.write_text(json.dumps(saved), encoding="utf-8")


def named(deployment: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [row for row in deployment["resources"] if row["urn"].endswith(f"::{name}")]
    resource: dict[str, Any] = found
    return resource


def interrupt(type: str, *names: str) -> Callable[[dict[str, Any]], None]:
    """The state of a run that was killed while it worked on these resources, before it saved the outcome."""

    def edit(deployment: dict[str, Any]) -> None:
        for name in names:
            resource = named(deployment, name)
            pending = {**resource}
            if type == "creating":
                deployment["resources"].remove(resource)
                for key in ("id", "outputs", "created", "modified"):
                    pending.pop(key, None)
            deployment.setdefault("pending_operations", []).append({"resource": pending, "type": type})

    return edit


def recover(
    program: Program, command: Command, path: Path, key: str | None = None
) -> tuple[int, dict[str, Any], str]:
    path.write_text(json.dumps(program.stack.export()), encoding="utf-8")
    shown = command("recover", path, key=key)
    answer = command("recover", path, "--json", key=key)
    assert answer.exit_code == shown.exit_code
    assert "Zebra" not in shown.output + answer.output
    return answer.exit_code, json.loads(answer.stdout), shown.stdout


def resolve(program: Program, command: Command, path: Path) -> list[str]:
    """Run the commands until nothing is unfinished; what was run."""
    ran: list[str] = []
    while True:
        code, found, shown = recover(program, command, path)
        if not code:
            assert (found["unfinished"], found["commands"]) == ([], [])
            assert shown == "Nothing is unfinished.\n"
            return ran
        assert code == 7
        assert found["commands"][0] not in ran, shown
        for line in found["commands"]:
            assert f"Next: {line}" in shown
        tool, *arguments = found["commands"][0].split()
        assert (tool, arguments[-2:]) == ("pulumi", ["--stack", "dev"])
        program.run(program.stack.run(*arguments[:-2]))
        ran.append(found["commands"][0])


def rows(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found["unfinished"]}


def test_nothing_is_unfinished_after_a_run_that_ended(
    program: Program, command: Command, tmp_path: Path
) -> None:
    program.write(WEB)
    program.run(program.stack.up())
    assert resolve(program, command, tmp_path / "export.json") == []
    assert len(program.living) == 1


@pytest.mark.daily
def test_what_a_killed_up_created_is_found_and_taken_into_the_state(
    program: Program, command: Command, tmp_path: Path
) -> None:
    program.write(SHOP)
    program.run(program.stack.up())
    before, charges = {row["id"] for row in program.living}, program.charges
    edit_state(program, interrupt("creating", "ptr", "mail", "web", "laptop", "shop", "news"))
    code, found, shown = recover(program, command, tmp_path / "export.json")
    assert code == 7
    (server,) = before
    by_name = rows(found)
    assert {name: row["pending"] for name, row in by_name.items()} == dict.fromkeys(by_name, "creating")
    assert by_name["web"]["account"] == (
        f"server {server} (web, 5.00 EUR per month) carries its ownership tag"
    )
    assert [item["id"] for item in by_name["web"]["objects"]] == [str(server)]
    assert by_name["shop"]["account"].endswith("(shop-example.com) has its name")
    assert by_name["laptop"]["account"].endswith("(laptop) has its name")
    assert by_name["news"]["account"].endswith("carries its ownership tag")
    assert by_name["mail"]["account"].endswith("may be its")
    assert f"server {server} (web, 5.00 EUR per month) carries its ownership tag" in shown
    up = "pulumi up --yes --stack dev"
    assert found["commands"] == [up]
    ran = resolve(program, command, tmp_path / "export.json")
    assert ran == [up, "pulumi refresh --yes --clear-pending-creates --stack dev"]
    assert {row["id"] for row in program.living} == before
    assert program.charges == charges
    program.run(program.stack.up("--expect-no-changes"))


def test_what_never_reached_the_account_is_made(program: Program, command: Command, tmp_path: Path) -> None:
    program.write(WEB)
    program.run(program.stack.up())
    edit_state(program, interrupt("creating", "web"))
    (server,) = program.living_ids
    program.control("DELETE", f"/servers/{server}")
    _, found, _ = recover(program, command, tmp_path / "export.json")
    assert rows(found)["web"]["account"] == "nothing of it"
    resolve(program, command, tmp_path / "export.json")
    (made,) = program.living_ids
    assert made != server
    assert program.resources()["web"]["id"] == made


def test_a_server_older_than_its_key_is_taken_over_by_adopt_id(
    program: Program, command: Command, tmp_path: Path
) -> None:
    program.write(WEB)
    program.run(program.stack.up())
    (server,) = program.living_ids
    edit_state(program, interrupt("creating", "web"))
    program.advance(8 * 86400)
    _, found, shown = recover(program, command, tmp_path / "export.json")
    row = rows(found)["web"]
    assert row["account"].endswith("carries its ownership tag, older than seven days")
    edit = f'set adopt_id="{server}" on server web in the program'
    assert row["edit"].startswith(edit)
    assert f"Before: {edit}" in shown
    # The edit, then the command; and without the edit the command alone buys nothing.
    with program.stack.unchecked("the server is in no state yet, as recover says"):
        assert program.stack.up().exit_code != 0
    program.write(WEB.replace('name="web"', f'name="web", adopt_id="{server}"'))
    resolve(program, command, tmp_path / "export.json")
    assert program.living_ids == [server]
    assert program.charges == 1


@pytest.mark.parametrize(
    ("type", "gone"),
    [
        ("updating", False),
        ("deleting", True),
        *(
            pytest.param(*pair, marks=pytest.mark.slow)
            for pair in [("updating", True), ("deleting", False), ("reading", False)]
        ),
    ],
)
def test_an_interrupted_change_is_read_again(
    program: Program, command: Command, tmp_path: Path, type: str, gone: bool
) -> None:
    program.write(WEB)
    program.run(program.stack.up())
    (server,) = program.living_ids
    edit_state(program, interrupt(type, "web"))
    if gone:
        program.control("DELETE", f"/servers/{server}")
    _, found, _ = recover(program, command, tmp_path / "export.json")
    row = rows(found)["web"]
    assert (row["pending"], row["id"]) == (type, server)
    there = f"server {server} (web, 5.00 EUR per month) is there"
    assert row["account"] == (f"server {server} is gone" if gone else there)
    ran = resolve(program, command, tmp_path / "export.json")
    assert ran == ["pulumi refresh --yes --stack dev"]
    assert [row["id"] for row in program.resources().values()] == program.living_ids
    assert program.living_ids == ([] if gone else [server])


def test_a_replaced_server_that_was_not_deleted_yet_is_deleted(
    program: Program, command: Command, tmp_path: Path
) -> None:
    program.write(WEB)
    program.run(program.stack.up())
    (old,) = program.living_ids
    fault = {"method": "DELETE", "path": "^/servers/", "times": 9}
    program.control("POST", "/faults", {**fault, "action": {"status": 409, "code": "conflict"}})
    program.write(WEB.replace("tariff_id=1", "tariff_id=2"))
    assert program.stack.up().exit_code != 0
    program.control("DELETE", "/faults")
    _, found, _ = recover(program, command, tmp_path / "export.json")
    row = rows(found)["web"]
    assert (row["pending"], row["id"]) == ("replaced, and still to be deleted", old)
    assert row["account"] == f"server {old} (web, 5.00 EUR per month) is there"
    assert resolve(program, command, tmp_path / "export.json") == ["pulumi up --yes --stack dev"]
    (new,) = program.living_ids
    assert new != old
    assert program.resources()["web"]["id"] == new


@pytest.mark.emulator(clock="manual", provisioning_delay=600)
@pytest.mark.parametrize("end", ["active", "failed"])
def test_an_order_under_way_is_waited_for(
    engine: Engine, emulator: Running, tmp_path: Path, command: Command, end: str
) -> None:
    """With dynamic resources an order is in no state: then audit names it."""
    program = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")
    slow = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": end}}
    program.control("POST", "/faults", slow)
    program.write(WEB.replace(")", ", wait_timeout=1)"))
    assert program.stack.up().exit_code != 0
    _, found, _ = recover(program, command, tmp_path / "export.json")
    row = rows(found)["web"]
    assert row["pending"] == "ordered, and not delivered when the run ended"
    assert re.fullmatch(r"order \d+ is (provisioning|pending)", row["account"]), row
    program.control("POST", "/clock", {"advance": 601})
    _, found, _ = recover(program, command, tmp_path / "export.json")
    ended = (
        rf"order \d+ (is|for server 'web' ended as) {end}(, server \d+|: it was refused; .* returned, .*)?"
    )
    assert re.fullmatch(ended, rows(found)["web"]["account"]), found
    ran = resolve(program, command, tmp_path / "export.json")
    assert ran == ["pulumi up --yes --refresh --stack dev"]
    assert [program.resources()["web"]["id"]] == program.living_ids
    assert program.charges == 1


def test_a_server_that_is_not_set_up_is_set_up(
    engine: Engine, emulator: Running, tmp_path: Path, command: Command
) -> None:
    """Native: a partial failure is in the state, with its reason."""
    program = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")
    refusal = {"status": 422, "code": "validation_error"}
    program.control("POST", "/faults", {"method": "PATCH", "path": "^/servers/", "action": refusal})
    program.write(WEB.replace(")", ', notes="front")'))
    assert program.stack.up().exit_code != 0
    (server,) = program.living_ids
    _, found, _ = recover(program, command, tmp_path / "export.json")
    row = rows(found)["web"]
    assert (row["pending"], row["id"]) == ("created, and not completely set up", server)
    assert resolve(program, command, tmp_path / "export.json") == ["pulumi up --yes --stack dev"]
    assert program.living[0]["notes"].startswith("front ")
    assert program.living_ids == [server]


@pytest.mark.parametrize("gone", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupted_import_is_repeated(
    engine: Engine, emulator: Running, tmp_path: Path, command: Command, gone: bool
) -> None:
    """Native: the engine reads no dynamic resource by its id."""
    program = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")
    Client(emulator.live_key, emulator.base_url).servers.create(
        name="web", tariff_id=1, os="debian-12", months=1, idempotency_key="ordered-by-hand-1"
    )
    (server,) = program.living_ids
    program.write(
        'Server("web", name="web", tariff_id=1, os="debian-12", months=1, '
        f'opts=pulumi.ResourceOptions(import_="{server}"))'
    )
    program.run(program.stack.up())
    edit_state(program, interrupt("importing", "web"))
    edit_state(program, lambda deployment: deployment["resources"].remove(named(deployment, "web")))
    if gone:
        program.control("DELETE", f"/servers/{server}")
    _, found, shown = recover(program, command, tmp_path / "export.json")
    row = rows(found)["web"]
    assert (row["pending"], row["id"]) == ("importing", server)
    there = f"server {server} (web, 5.00 EUR per month) is there"
    assert row["account"] == (f"server {server} is gone" if gone else there)
    assert row["account"] in shown
    assert found["commands"] == ["pulumi up --yes --stack dev"]
    if gone:  # then there is nothing to import any more
        program.write("")
    assert resolve(program, command, tmp_path / "export.json") == ["pulumi up --yes --stack dev"]
    assert [row["id"] for row in program.resources().values()] == program.living_ids
    assert program.living_ids == ([] if gone else [server])
    assert program.charges == 1


def test_what_was_deleted_and_not_made_again_is_made(
    program: Program, command: Command, tmp_path: Path
) -> None:
    first = WEB.replace(")", ", opts=pulumi.ResourceOptions(delete_before_replace=True))")
    program.write(first)
    program.run(program.stack.up())
    (old,) = program.living_ids
    refusal = {"status": 422, "code": "validation_error"}
    program.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "times": 9, "action": refusal}
    )
    program.write(first.replace("tariff_id=1", "tariff_id=2"))
    with program.stack.unchecked("the deleted server stays in the state until another replaces it"):
        assert program.stack.up().exit_code != 0
    program.control("DELETE", "/faults")
    assert (program.living_ids, program.charges) == ([], 0), "it was credited"
    _, found, shown = recover(program, command, tmp_path / "export.json")
    row = rows(found)["web"]
    assert (row["pending"], row["id"]) == ("deleted, and not made again", old)
    assert row["account"] == f"server {old} is gone"
    assert row["account"] in shown
    assert resolve(program, command, tmp_path / "export.json") == ["pulumi up --yes --stack dev"]
    (new,) = program.living_ids
    assert new != old
    assert program.resources()["web"]["id"] == new
    assert program.charges == 1


def test_without_a_key_the_commands_are_named(program: Program, command: Command, tmp_path: Path) -> None:
    program.write(WEB)
    program.run(program.stack.up())
    edit_state(program, interrupt("creating", "web"))
    code, found, _ = recover(program, command, tmp_path / "export.json", key="")
    assert code == 7
    assert rows(found)["web"]["account"] == "not checked"
    assert found["commands"] == ["pulumi up --yes --stack dev"]
    program.run(program.stack.up())
    assert program.charges == len(program.living) == 1


def test_the_entry_that_a_destroy_left_is_cleared(program: Program, command: Command, tmp_path: Path) -> None:
    """Pulumi keeps the entry of an interrupted create even when the object was found and destroyed."""
    program.write(WEB)
    program.run(program.stack.up())
    edit_state(program, interrupt("creating", "web"))
    edit_state(program, lambda deployment: deployment.pop("resources"))
    program.control("DELETE", f"/servers/{program.living_ids[0]}")
    ran = resolve(program, command, tmp_path / "export.json")
    assert ran == ["pulumi refresh --yes --clear-pending-creates --stack dev"]
    assert program.living == []
