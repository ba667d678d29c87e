"""A deletion deletes or fails, on an engine: destroy, removal and replacement, refreshed or not. Every
step ends by asking the account.
"""

import json
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.rehearsal.engines import PULUMI, Engine
from tests.support.programs import PUBLIC_KEY, Program, Ref, make_program

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
OPTIONS = "pulumi.ResourceOptions({})"


def servers(program: Program) -> dict[str, str]:
    """Living servers: name → id. The state has the same."""
    living = {server["name"]: str(server["id"]) for server in program.living}
    assert len(living) == len(program.living)
    stored = {
        item["outputs"]["name"]: item["id"]
        for item in program.resources().values()
        if item["type"].endswith(":Server")
    }
    assert stored == living
    return living


def left(program: Program) -> list[dict[str, Any]]:
    """What lives on the account, and what is in the state."""
    return [
        *program.living,
        *program.objects("ssh_keys"),
        *program.objects("subscriptions"),
        *program.resources().values(),
    ]


def test_what_is_deleted_is_gone_from_the_account(program: Program) -> None:
    web, old = ("Server", SERVER), ("Server", SERVER)
    key, hook = (
        ("SshKey", {"public_key": PUBLIC_KEY}),
        ("WebhookSubscription", {"url": "https://hooks.example.com/x", "events": ["*"]}),
    )
    program.declare({"web": web, "old": old, "key": key, "hook": hook})
    program.run(program.stack.up())
    # A refresh in the same run, and a removal.
    program.declare({"web": web, "key": key, "hook": hook})
    program.run(program.stack.up("--refresh"), {"delete": 1})
    first = servers(program)
    assert list(first) == ["web"]
    assert program.moved() == Decimal("5.00")
    # A refresh and a replacement, in both orders.
    program.declare({"web": ("Server", {**SERVER, "tariff_id": 2}), "key": key, "hook": hook})
    program.run(program.stack.up("--refresh"), {"replace": 1})
    second = servers(program)
    assert list(second) == ["web"]
    assert second["web"] != first["web"]
    assert program.moved() == Decimal("10.00")
    before = {**SERVER, "opts": Ref(OPTIONS.format("delete_before_replace=True"))}
    program.declare({"web": ("Server", before), "key": key, "hook": hook})
    program.run(program.stack.up("--refresh"), {"replace": 1})
    third = servers(program)
    assert list(third) == ["web"]
    assert third["web"] != second["web"]
    assert program.moved() == Decimal("5.00")
    program.run(program.stack.destroy("--refresh"))
    assert left(program) == []
    assert program.moved() == 0


def test_a_replacement_on_demand_replaces_or_fails(program: Program) -> None:
    declared = {
        "web": ("Server", SERVER),
        "mail": ("ServerIp", {"server": Ref("web")}),
        "name": ("Ptr", {"server": Ref("web"), "address": Ref("mail.address"), "domain": "mail.example.com"}),
        "key": ("SshKey", {"public_key": PUBLIC_KEY}),
        "hook": ("WebhookSubscription", {"url": "https://hooks.example.com/x", "events": ["*"]}),
    }
    program.declare(declared)
    program.run(program.stack.up())
    assert program.moved() == Decimal("7.00")
    before = program.resources()
    # What is unique is deleted first, by the option of the classes.
    for name, kind in (("key", "ssh_keys"), ("hook", "subscriptions")):
        program.run(program.stack.up("--target-replace", before[name]["urn"]), {"replace": 1})
        assert [str(item["id"]) for item in program.objects(kind)] == [program.resources()[name]["id"]]
        assert program.resources()[name]["id"] != before[name]["id"]
    # A server is not: the creation finds it, and the deletion of the old one fails.
    refused = program.stack.up("--target-replace", before["web"]["urn"])
    assert refused.exit_code != 0
    assert "was not replaced" in refused.output
    assert [str(server["id"]) for server in program.living] == [before["web"]["id"]]
    assert program.moved() == Decimal("7.00")
    advice = re.search(
        r"to replace it, pulumi (up --refresh --target-replace '\S+' "
        r"--target-dependents)",
        refused.output,
    )
    assert advice is not None
    program.run(program.stack.run(*shlex.split(advice[1]), "--yes", "--skip-preview"))
    after = servers(program)
    assert after["web"] != before["web"]["id"]
    # What went with the old server is there again with the new one, and the account check of the run compared
    # it with the state.
    (address,) = [row for row in program.objects("addresses") if row.get("bought")]
    assert f"{address['server_id']}/{address['id']}" == program.resources()["mail"]["id"]
    assert str(address["server_id"]) == after["web"]
    assert address["ptr"] == "mail.example.com"
    assert program.resources()["name"]["id"] == program.resources()["mail"]["id"]
    assert program.moved() == Decimal("7.00")
    # Without the advice, an ordinary update clears up what the failure left, and takes nothing from the newer
    # entry.
    assert program.stack.up("--target-replace", before["web"]["urn"]).exit_code != 0
    program.run(program.stack.up("--refresh"))
    assert servers(program) == after
    program.run(program.stack.up("--expect-no-changes"), {})
    program.run(program.stack.destroy())
    assert left(program) == []
    assert program.moved() == 0


def test_a_domain_is_not_replaced_on_demand(program: Program) -> None:
    program.declare({"site": ("Domain", {"name": "example.com", "auto_renew": True})})
    program.run(program.stack.up())
    site = program.resources()["site"]
    for flags in ((), ("--refresh",)):
        refused = program.stack.up("--target-replace", site["urn"], *flags)
        assert refused.exit_code != 0
        assert f"domain {site['id']} was not replaced" in refused.output
        assert "Next: pulumi up, which removes the older" in refused.output
        assert [domain["auto_renew"] for domain in program.objects("domains")] == [True]
        program.run(program.stack.up())
        assert [domain["auto_renew"] for domain in program.objects("domains")] == [True]
    program.run(program.stack.up("--refresh", "--expect-no-changes"), {})
    assert len(program.ledger()) == 1
    program.run(program.stack.destroy())
    assert [domain["auto_renew"] for domain in program.objects("domains")] == [False]


def test_a_renamed_resource_is_replaced_like_any_other(program: Program) -> None:
    program.declare({"web": ("Server", {**SERVER, "name": "www"})})
    program.run(program.stack.up())
    renamed = {
        **SERVER,
        "name": "www",
        "tariff_id": 2,
        "opts": Ref(OPTIONS.format('aliases=[pulumi.Alias(name="web")]')),
    }
    program.declare({"web9": ("Server", renamed)})
    program.run(program.stack.up(), {"replace": 1})
    servers(program)
    assert program.moved() == Decimal("10.00")
    program.run(program.stack.destroy())
    assert left(program) == []
    assert program.moved() == 0


def test_a_rename_that_is_taken_back_keeps_the_server(program: Program) -> None:
    program.declare({"old": ("Server", SERVER)})
    program.run(program.stack.up())
    alias = Ref(OPTIONS.format('aliases=[pulumi.Alias(name="old")]'))
    program.declare({"new": ("Server", {**SERVER, "opts": alias})})
    program.run(program.stack.up(), {"update": 1})
    server = servers(program)["new"]
    program.declare({"old": ("Server", SERVER)})
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert 'add opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(name="new")]); else' in refused.output
    # The other advice of that message. The alias is tested below the engine.
    program.declare({"old": ("Server", {**SERVER, "adopt_id": server})})
    program.run(program.stack.up(), {"create": 1, "delete": 1})
    assert servers(program) == {"old": server}
    assert program.moved() == Decimal("5.00")
    program.run(program.stack.destroy())
    assert left(program) == []


def test_two_resources_that_name_one_object_and_what_is_to_be_kept(program: Program, engine: Engine) -> None:
    retained = {**SERVER, "opts": Ref(OPTIONS.format("retain_on_delete=True"))}
    program.declare({"web": ("Server", SERVER), "kept": ("Server", retained)})
    program.run(program.stack.up())
    web = servers(program)["web"]
    program.stack.allow(
        "retain_on_delete", *(server["id"] for server in program.living if server["name"] == "kept")
    )
    # After the other one: of two that the engine asks about at once, the first to answer has the server.
    twin = {**SERVER, "name": "web", "adopt_id": web, "opts": Ref(OPTIONS.format("depends_on=[web]"))}
    program.declare({"web": ("Server", SERVER), "kept": ("Server", retained), "twin": ("Server", twin)})
    refused = program.stack.up()
    assert refused.exit_code != 0
    assert f"another declaration has server {web} already" in refused.output
    assert servers(program)["web"] == web
    # In place of the other one it is taken over, and stays when the other one is removed.
    program.declare(
        {"kept": ("Server", retained), "twin": ("Server", {**SERVER, "name": "web", "adopt_id": web})}
    )
    done = program.run(program.stack.up(), {"create": 1, "delete": 1})
    assert f"server {web}" in done.output
    assert "stays" in done.output
    assert servers(program)["web"] == web
    kept = program.resources()["kept"]["id"]
    done = program.run(program.stack.destroy("--refresh"))
    # The engine asks no provider about what is retained, and reports it.
    assert (f"kept retained, not deleted (id {kept})" if engine.name != PULUMI else "[retain]") in done.output
    assert [server["name"] for server in program.living] == ["kept"]
    assert program.moved() == Decimal("5.00")


@pytest.mark.emulator(provisioning_delay=60, clock="manual")
@pytest.mark.both_providers
def test_a_destroy_while_an_order_is_under_way(program: Program) -> None:
    program.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    )
    program.declare({"web": ("Server", {**SERVER, "wait_timeout": 2})})
    if program.form == "native":
        assert program.stack.up().exit_code != 0
        assert [item["id"] for item in program.resources().values()] == ["order:40001"]
        assert program.stack.destroy().exit_code != 0
        assert [item["id"] for item in program.resources().values()] == ["order:40001"]
    else:  # a dynamic resource cannot be recorded half-made, so a destroy would know nothing of the order
        for _ in ("the run that orders", "one that finds the order, and does not wait long enough either"):
            with program.stack.unchecked("the order is paid and in no state, as the failure says"):
                failed = program.stack.up()
            assert failed.exit_code != 0
            assert re.search(
                r"order 40001 for (a )?server (named )?'web' is still \w+ after 2 "
                r"s",
                failed.output,
            ), failed.output
            assert "Next: pulumi up, which waits for it; run it before destroy" in failed.output
            assert program.resources() == {}
        assert program.charges == 1
    program.control("POST", "/clock", {"advance": 120})
    if program.form == "dynamic":
        program.run(program.stack.up())
        assert list(servers(program)) == ["web"]
        assert program.moved() == Decimal("5.00")
        assert program.charges == 1
    program.run(program.stack.destroy())
    assert left(program) == []
    assert program.moved() == 0


def test_a_stack_that_changes_form_and_replaces(engine: Engine, emulator: Any, tmp_path: Path) -> None:
    program = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")
    program.form = "dynamic"
    program.declare({"web": ("Server", SERVER), "old": ("Server", SERVER)})
    program.run(program.stack.up())
    program.form = "native"
    program.declare({"web": ("Server", {**SERVER, "tariff_id": 2})})
    program.run(program.stack.up("--refresh"), {"replace": 1, "delete": 1})
    assert list(servers(program)) == ["web"]
    assert program.moved() == Decimal("10.00")
    # And back: an update that changes nothing on the account.
    web = servers(program)["web"]
    program.form = "dynamic"
    program.declare({"web": ("Server", {**SERVER, "tariff_id": 2})})
    program.run(program.stack.up(), {"update": 1})
    assert servers(program) == {"web": web}
    program.run(program.stack.up("--refresh", "--expect-no-changes"), {})
    assert program.moved() == Decimal("10.00")
    program.declare({"web": ("Server", SERVER)})
    program.run(program.stack.up(), {"replace": 1})
    assert servers(program)["web"] != web
    program.run(program.stack.destroy("--refresh"))
    assert left(program) == []
    assert program.moved() == 0


def test_a_renamed_stack_and_project_replaces_like_any_other(program: Program) -> None:
    """The state moves to another project and stack, as `pulumi stack rename` moves it. Every run
    refreshes, by the project's option.
    """
    program.declare({"web": ("Server", SERVER), "key": ("SshKey", {"public_key": PUBLIC_KEY})})
    program.run(program.stack.up())
    first = servers(program)["web"]
    exported = json.dumps(program.stack.export("--show-secrets"))
    for old, new in (("urn:pulumi:dev::toys::", "urn:pulumi:prod::games::"), ("::toys-dev", "::games-prod")):
        exported = exported.replace(old, new)
    program.run(program.stack.run("stack", "rm", "--yes", "--force"))
    program.stack.name = "prod"
    (program.directory / "Pulumi.yaml").write_text(
        "name: games\nruntime: python\noptions: {refresh: always}\n", encoding="utf-8"
    )
    program.stack.init()
    (program.directory / "moved.json").write_text(exported, encoding="utf-8")
    program.run(program.stack.run("stack", "import", "--file", "moved.json"))
    program.run(program.stack.up("--expect-no-changes"))
    program.declare({"web": ("Server", {**SERVER, "tariff_id": 2})})
    program.run(program.stack.up(), {"replace": 1, "delete": 1})
    assert servers(program)["web"] != first
    assert program.objects("ssh_keys") == []
    assert program.moved() == Decimal("10.00")
    program.run(program.stack.destroy())
    assert left(program) == []
    assert program.moved() == 0
