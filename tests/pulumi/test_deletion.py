"""A deletion deletes or fails, on an engine: destroy, removal and replacement, refreshed or not. Every step ends by asking the account."""

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


def paid(formed: Program) -> Decimal:
    """What was charged, less what was credited."""
    rows = [row for row in formed.control.ledger() if row["type"] in ("payment", "refund")]
    return sum((Decimal(row["amount"]) * (1 if row["direction"] == "debit" else -1) for row in rows), Decimal(0))


def servers(formed: Program) -> dict[str, str]:
    """Living servers: name → id. The state has the same."""
    living = {server["name"]: str(server["id"]) for server in formed.living}
    assert len(living) == len(formed.living)
    stored = {item["outputs"]["name"]: item["id"] for item in formed.resources().values() if item["type"].endswith(":Server")}
    assert stored == living
    return living


def left(formed: Program) -> list[dict[str, Any]]:
    """What lives on the account, and what is in the state."""
    return [*formed.living, *formed.objects("ssh_keys"), *formed.objects("subscriptions"), *formed.resources().values()]


def test_what_is_deleted_is_gone_from_the_account(formed: Program) -> None:
    web, old = ("Server", SERVER), ("Server", SERVER)
    key, hook = ("SshKey", {"public_key": PUBLIC_KEY}), ("WebhookSubscription", {"url": "https://hooks.example.com/x", "events": ["*"]})
    formed.declare({"web": web, "old": old, "key": key, "hook": hook})
    formed.run(formed.stack.up())
    # A refresh in the same run, and a removal.
    formed.declare({"web": web, "key": key, "hook": hook})
    formed.run(formed.stack.up("--refresh"), {"delete": 1})
    first = servers(formed)
    assert list(first) == ["web"]
    assert paid(formed) == Decimal("5.00")
    # A refresh and a replacement, in both orders.
    formed.declare({"web": ("Server", {**SERVER, "tariff_id": 2}), "key": key, "hook": hook})
    formed.run(formed.stack.up("--refresh"), {"replace": 1})
    second = servers(formed)
    assert list(second) == ["web"]
    assert second["web"] != first["web"]
    assert paid(formed) == Decimal("10.00")
    before = {**SERVER, "opts": Ref(OPTIONS.format("delete_before_replace=True"))}
    formed.declare({"web": ("Server", before), "key": key, "hook": hook})
    formed.run(formed.stack.up("--refresh"), {"replace": 1})
    third = servers(formed)
    assert list(third) == ["web"]
    assert third["web"] != second["web"]
    assert paid(formed) == Decimal("5.00")
    formed.run(formed.stack.destroy("--refresh"))
    assert left(formed) == []
    assert paid(formed) == 0


def test_a_replacement_on_demand_replaces_or_fails(formed: Program) -> None:
    declared = {
        "web": ("Server", SERVER),
        "mail": ("ServerIp", {"server": Ref("web")}),
        "name": ("Ptr", {"server": Ref("web"), "address": Ref("mail.address"), "domain": "mail.example.com"}),
        "key": ("SshKey", {"public_key": PUBLIC_KEY}),
        "hook": ("WebhookSubscription", {"url": "https://hooks.example.com/x", "events": ["*"]}),
    }
    formed.declare(declared)
    formed.run(formed.stack.up())
    assert paid(formed) == Decimal("7.00")
    before = formed.resources()
    # What is unique is deleted first, by the option of the classes.
    for name, kind in (("key", "ssh_keys"), ("hook", "subscriptions")):
        formed.run(formed.stack.up("--target-replace", before[name]["urn"]), {"replace": 1})
        assert [str(item["id"]) for item in formed.objects(kind)] == [formed.resources()[name]["id"]]
        assert formed.resources()[name]["id"] != before[name]["id"]
    # A server is not: the creation finds it, and the deletion of the old one fails.
    refused = formed.stack.up("--target-replace", before["web"]["urn"])
    assert refused.exit_code != 0
    assert "was not replaced" in refused.output
    assert [str(server["id"]) for server in formed.living] == [before["web"]["id"]]
    assert paid(formed) == Decimal("7.00")
    advice = re.search(r"Next: pulumi (up --refresh --target-replace '\S+' --target-dependents)", refused.output)
    assert advice is not None
    formed.run(formed.stack.run(*shlex.split(advice[1]), "--yes", "--skip-preview"))
    after = servers(formed)
    assert after["web"] != before["web"]["id"]
    # What went with the old server is there again with the new one, and the account check of the run compared it with the state.
    (address,) = [row for row in formed.objects("addresses") if row.get("bought")]
    assert f"{address['server_id']}/{address['id']}" == formed.resources()["mail"]["id"]
    assert str(address["server_id"]) == after["web"]
    assert address["ptr"] == "mail.example.com"
    assert formed.resources()["name"]["id"] == formed.resources()["mail"]["id"]
    assert paid(formed) == Decimal("7.00")
    # Without the advice, an ordinary update clears up what the failure left, and takes nothing from the newer entry.
    assert formed.stack.up("--target-replace", before["web"]["urn"]).exit_code != 0
    formed.run(formed.stack.up("--refresh"))
    assert servers(formed) == after
    formed.run(formed.stack.up("--expect-no-changes"), {})
    formed.run(formed.stack.destroy())
    assert left(formed) == []
    assert paid(formed) == 0


def test_a_domain_is_not_replaced_on_demand(formed: Program) -> None:
    formed.declare({"site": ("Domain", {"name": "example.com", "auto_renew": True})})
    formed.run(formed.stack.up())
    site = formed.resources()["site"]
    for flags in ((), ("--refresh",)):
        refused = formed.stack.up("--target-replace", site["urn"], *flags)
        assert refused.exit_code != 0
        assert f"domain {site['id']} was not replaced" in refused.output
        assert "Next: pulumi up, which removes the older" in refused.output
        assert [domain["auto_renew"] for domain in formed.objects("domains")] == [True]
        formed.run(formed.stack.up())
        assert [domain["auto_renew"] for domain in formed.objects("domains")] == [True]
    formed.run(formed.stack.up("--refresh", "--expect-no-changes"), {})
    assert len(formed.control.ledger()) == 1
    formed.run(formed.stack.destroy())
    assert [domain["auto_renew"] for domain in formed.objects("domains")] == [False]


def test_a_renamed_resource_is_replaced_like_any_other(formed: Program) -> None:
    formed.declare({"web": ("Server", {**SERVER, "name": "www"})})
    formed.run(formed.stack.up())
    renamed = {**SERVER, "name": "www", "tariff_id": 2, "opts": Ref(OPTIONS.format('aliases=[pulumi.Alias(name="web")]'))}
    formed.declare({"web9": ("Server", renamed)})
    formed.run(formed.stack.up(), {"replace": 1})
    servers(formed)
    assert paid(formed) == Decimal("10.00")
    formed.run(formed.stack.destroy())
    assert left(formed) == []
    assert paid(formed) == 0


def test_two_resources_that_name_one_object_and_what_is_to_be_kept(formed: Program, engine: Engine) -> None:
    retained = {**SERVER, "opts": Ref(OPTIONS.format("retain_on_delete=True"))}
    formed.declare({"web": ("Server", SERVER), "kept": ("Server", retained)})
    formed.run(formed.stack.up())
    web = servers(formed)["web"]
    formed.stack.allow("retain_on_delete", *(server["id"] for server in formed.living if server["name"] == "kept"))
    # After the other one: of two that the engine asks about at once, the first to answer has the server.
    twin = {**SERVER, "name": "web", "adopt_id": web, "opts": Ref(OPTIONS.format("depends_on=[web]"))}
    formed.declare({"web": ("Server", SERVER), "kept": ("Server", retained), "twin": ("Server", twin)})
    refused = formed.stack.up()
    assert refused.exit_code != 0
    assert f"another declaration has server {web} already" in refused.output
    assert servers(formed)["web"] == web
    # In place of the other one it is taken over, and stays when the other one is removed.
    formed.declare({"kept": ("Server", retained), "twin": ("Server", {**SERVER, "name": "web", "adopt_id": web})})
    done = formed.run(formed.stack.up(), {"create": 1, "delete": 1})
    assert f"server {web}" in done.output
    assert "stays" in done.output
    assert servers(formed)["web"] == web
    kept = formed.resources()["kept"]["id"]
    done = formed.run(formed.stack.destroy("--refresh"))
    # The engine asks nobody about what is retained, and says so.
    assert (f"kept retained, not deleted (id {kept})" if engine.name != PULUMI else "[retain]") in done.output
    assert [server["name"] for server in formed.living] == ["kept"]
    assert paid(formed) == Decimal("5.00")


@pytest.mark.emulator(provisioning_delay=60, clock="manual")
def test_a_destroy_while_an_order_is_under_way(formed: Program) -> None:
    formed.control("POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}})
    formed.declare({"web": ("Server", {**SERVER, "wait_timeout": 2})})
    if formed.form == "native":
        assert formed.stack.up().exit_code != 0
        assert [item["id"] for item in formed.resources().values()] == ["order:40001"]
        assert formed.stack.destroy().exit_code != 0
        assert [item["id"] for item in formed.resources().values()] == ["order:40001"]
    else:  # a dynamic resource cannot be recorded half-made, so a destroy would know nothing of the order
        for _ in ("the run that orders", "one that finds the order, and does not wait long enough either"):
            with formed.stack.unchecked("the order is paid and in no state, as the failure says"):
                failed = formed.stack.up()
            assert failed.exit_code != 0
            assert re.search(r"order 40001 for (a )?server (named )?'web' is still \w+ after 2 s", failed.output), failed.output
            assert "Next: pulumi up, which waits for it; run it before destroy" in failed.output
            assert formed.resources() == {}
        assert formed.charges() == 1
    formed.control("POST", "/clock", {"advance": 120})
    if formed.form == "dynamic":
        formed.run(formed.stack.up())
        assert list(servers(formed)) == ["web"]
        assert paid(formed) == Decimal("5.00")
        assert formed.charges() == 1
    formed.run(formed.stack.destroy())
    assert left(formed) == []
    assert paid(formed) == 0


def test_a_stack_that_changes_form_and_replaces(engine: Engine, emulator: Any, tmp_path: Path) -> None:
    formed = make_program(engine, emulator, tmp_path / "program", tmp_path / "home", "native")
    formed.form = "dynamic"
    formed.declare({"web": ("Server", SERVER), "old": ("Server", SERVER)})
    formed.run(formed.stack.up())
    formed.form = "native"
    formed.declare({"web": ("Server", {**SERVER, "tariff_id": 2})})
    formed.run(formed.stack.up("--refresh"), {"replace": 1, "delete": 1})
    assert list(servers(formed)) == ["web"]
    assert paid(formed) == Decimal("10.00")
    # And back: an update that changes nothing on the account.
    web = servers(formed)["web"]
    formed.form = "dynamic"
    formed.declare({"web": ("Server", {**SERVER, "tariff_id": 2})})
    formed.run(formed.stack.up(), {"update": 1})
    assert servers(formed) == {"web": web}
    formed.run(formed.stack.up("--refresh", "--expect-no-changes"), {})
    assert paid(formed) == Decimal("10.00")
    formed.declare({"web": ("Server", SERVER)})
    formed.run(formed.stack.up(), {"replace": 1})
    assert servers(formed)["web"] != web
    formed.run(formed.stack.destroy("--refresh"))
    assert left(formed) == []
    assert paid(formed) == 0


def test_a_renamed_stack_and_project_replaces_like_any_other(formed: Program) -> None:
    """The state moves to another project and stack, as `pulumi stack rename` moves it. Every run refreshes, by the project's option."""
    formed.declare({"web": ("Server", SERVER), "key": ("SshKey", {"public_key": PUBLIC_KEY})})
    formed.run(formed.stack.up())
    first = servers(formed)["web"]
    exported = json.dumps(formed.stack.export("--show-secrets"))
    for old, new in (("urn:pulumi:dev::toys::", "urn:pulumi:prod::games::"), ("::toys-dev", "::games-prod")):
        exported = exported.replace(old, new)
    formed.run(formed.stack.run("stack", "rm", "--yes", "--force"))
    formed.stack.name = "prod"
    (formed.directory / "Pulumi.yaml").write_text("name: games\nruntime: python\noptions: {refresh: always}\n", encoding="utf-8")
    formed.stack.init()
    (formed.directory / "moved.json").write_text(exported, encoding="utf-8")
    formed.run(formed.stack.run("stack", "import", "--file", "moved.json"))
    formed.run(formed.stack.up("--expect-no-changes"))
    formed.declare({"web": ("Server", {**SERVER, "tariff_id": 2})})
    formed.run(formed.stack.up(), {"replace": 1, "delete": 1})
    assert servers(formed)["web"] != first
    assert formed.objects("ssh_keys") == []
    assert paid(formed) == Decimal("10.00")
    formed.run(formed.stack.destroy())
    assert left(formed) == []
    assert paid(formed) == 0
