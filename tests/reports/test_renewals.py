"""``pulumi-hosting renewals``: what is paid until when, and the other reports that name what ends."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.hosting.cloud.plugins.callback.drift import CallbackModule
from tests.reports.conftest import Command, Owner
from tests.reports.test_audit import export

pytestmark = pytest.mark.emulator(clock="manual")
DAY = 86400


def facts(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def filled(owner: Owner) -> tuple[str, str]:
    """A server that renews itself, and one that does not."""
    web, old = owner.order("web"), owner.order("old")
    owner.client.servers.update(int(old), auto_renew=False)
    return web, old


def test_each_renewal_is_listed_with_who_knows_the_object(
    command: Command, owner: Owner, tmp_path: Path
) -> None:
    assert command("renewals").stdout.startswith("Nothing is due within 90 days.")
    web, old = filled(owner)
    prod = export(tmp_path / "prod.json", web=web)
    answer = command("renewals", "--days", 70, "--stack", prod, "--json")
    assert answer.exit_code == 7
    found = [(row["id"], row["event"], row["known_to"]) for row in facts(answer)["events"]]
    assert found == [(old, "ends", []), (web, "renewed", ["prod.json"]), (web, "renewed", ["prod.json"])]
    assert facts(answer)["events"][0]["next"].startswith(f"pulumi-hosting action server-renew --id {old} ")
    assert command("renewals", "--days", 7).exit_code == 0
    text = command("renewals", "--days", 40, "--stack", prod).stdout
    assert "server  20001  web   5.00 EUR  renews itself  prod.json" in text
    assert "balance: 990.00 EUR; the balance covers everything that renews itself" in text
    assert f"ends: Note: server {old} (old) is paid until " in text


def kept_by_a_stack(path: Path, web: str, old: str) -> str:
    prod = export(path, web=web, old=old)
    found = json.loads(prod.read_text())
    (item,) = [row for row in found["deployment"]["resources"] if row.get("id") == old]
    item["inputs"] = {**item.get("inputs", {}), "keepPaid": "7d"}
    prod.write_text(json.dumps(found))
    return "--stack"


def kept_by_a_playbook(path: Path, web: str, old: str) -> str:
    drift = CallbackModule()
    for id, name, more in ((web, "web", {}), (old, "old", {"keep_paid": "7d"})):
        server = {"id": id, "name": name, "price_monthly": "5.00", "currency": "EUR"}
        told = {"server": server, "changed": False, "invocation": {"module_args": {"name": name, **more}}}
        drift._results.append({**told, "action": "hosting.cloud.server"})
    path.write_text(json.dumps(drift._of_package()))
    return "--results"


@pytest.mark.parametrize("kept", [kept_by_a_stack, kept_by_a_playbook])
def test_what_a_run_keeps_paid_does_not_end(
    command: Command, owner: Owner, tmp_path: Path, kept: Callable[[Path, str, str], str]
) -> None:
    web, old = filled(owner)
    path = tmp_path / "known.json"
    option = kept(path, web, old)
    listed = command("renewals", "--days", 40, option, path)
    assert (listed.exit_code, listed.stdout.count("kept paid")) == (0, 1)
    assert "old   5.00 EUR  kept paid     " in listed.stdout
    assert command("renewals", "--days", 40).exit_code == 7
    checked = command("audit", option, path, *kept_form(option), "--ends-within", "40d")
    assert (checked.exit_code, checked.stdout) == (0, "Everything on the account is managed.\n")
    if option == "--results":
        owner.control("POST", "/clock", {"advance": 20.5 * DAY})
        assert facts(command("cost", path, "--json"))["ending"] == []
        path.write_text(path.read_text().replace('"keep_paid": "7d"', '"keep_paid": null'))
        assert len(facts(command("cost", path, "--json"))["ending"]) == 1


def kept_form(option: str) -> tuple[str, ...]:
    return ("--form", "ansible") if option == "--results" else ()


def test_what_the_balance_does_not_cover_and_what_is_over(command: Command, owner: Owner) -> None:
    web, old = filled(owner)
    owner.control("PATCH", "/account", {"balance": "1.00"})
    owner.control("POST", "/clock", {"advance": 35 * DAY})
    answer = command("renewals", "--markdown")
    assert answer.exit_code == 7
    assert f"`server {old} (old) is suspended (it was paid until " in answer.stdout
    assert f"`server {web} (web) is suspended (it was paid until " in answer.stdout
    assert "| `old` | 5.00 EUR | OVER |" in answer.stdout
    invoices = [row for row in facts(command("renewals", "--json"))["events"] if row["kind"] == "invoice"]
    assert {row["next"] for row in invoices} == {
        f"pulumi-hosting action invoice-pay --id {row['id']}" for row in invoices
    }


def test_what_each_line_says_next_keeps_the_object(command: Command, owner: Owner) -> None:
    """An expired domain, a suspended server, one that ends, and one that the balance does not cover."""
    owner.client.domains.register(name="shop.com")
    for days, names in ((340, ["over"]), (20, ["ends", "web"]), (12, [])):
        owner.control("POST", "/clock", {"advance": days * DAY})
        made = {name: owner.order(name) for name in names}
        for name in made.keys() - {"web"}:
            owner.client.servers.update(int(made[name]), auto_renew=False)
    owner.control("PATCH", "/account", {"balance": "3.00"})

    def run_next(word: str) -> set[str]:
        """Do what the lines with this word say; the actions."""
        steps = {row["next"] for row in facts(command("renewals", "--days", 20, "--json"))["events"]} - {None}
        done = set()
        for _, name, *options in (step.split()[1:] for step in steps if word in step):
            given = [option.replace("CODE", "card") for option in (name, *options)]
            answer = command("action", *given, "--yes")
            assert answer.exit_code == 0, answer.output
            done.add(name)
        return done

    ((name,), (invoice,)) = (
        run_next("top"),
        [row for row in owner.objects("invoices") if row["type"] == "topup"],
    )
    assert (name, invoice["amount"]) == ("balance-topup", "10.00")
    owner.control("POST", f"/invoices/{invoice['id']}/confirm", {})
    owner.control("PATCH", "/account", {"balance": "50.00"})
    assert run_next("action") == {"domain-renew", "invoice-pay", "server-renew"}
    assert command("renewals", "--days", 20).exit_code == 0
    assert {row["status"] for kind in ("servers", "domains") for row in owner.objects(kind)} == {"active"}


@pytest.mark.parametrize(("status", "word"), [("pending_cancel", "ENDS"), ("suspended", "SUSPENDED")])
def test_what_is_over_on_a_day_that_is_to_come(
    command: Command, owner: Owner, status: str, word: str
) -> None:
    web = owner.order("web")
    owner.control("PATCH", f"/servers/{web}", {"status": status})
    answer = command("renewals")
    assert answer.exit_code == 7
    assert f"web   5.00 EUR  {word}\n" in answer.stdout
    assert "OVER" not in answer.stdout


def test_a_key_without_a_scope_gets_a_partial_plan_that_says_so(command: Command, owner: Owner) -> None:
    filled(owner)
    key = owner.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read"]})["key"]
    answer = command("renewals", "--days", 7, "--json", key=key)
    assert answer.exit_code == 1
    assert facts(answer)["not_read"].keys() == {"domains", "invoices", "balance"}
    assert facts(answer)["covers"] == "the balance is not known"
    assert "warning: domains were not read: " in answer.stderr
    assert "warning: balance was not read: " in answer.stderr
    plain = command("renewals", "--days", 1, key=key).stdout
    assert plain.startswith("Nothing that could be read is due within 1 days.")


def test_a_server_that_cannot_be_read_is_not_taken_for_absent(command: Command, owner: Owner) -> None:
    filled(owner)
    damaged = {"path": "^/servers$", "action": {"patch": {"data": [{"id": 20001}]}}}
    owner.control("POST", "/faults", damaged)
    answer = command("renewals")
    assert answer.exit_code == 1
    assert "warning: servers were not read: item 20001 of the list could not be" in answer.stderr
    assert len(owner.living_ids) == 2


def test_an_audit_names_what_ended_and_what_ends_soon(command: Command, owner: Owner, tmp_path: Path) -> None:
    web, old = filled(owner)
    prod = export(tmp_path / "prod.json", web=web, old=old)
    assert command("audit", "--stack", prod, "--ends-within", "7d").exit_code == 0
    owner.control("POST", "/clock", {"advance": 25 * DAY})
    assert command("audit", "--stack", prod).exit_code == 0
    soon = command("audit", "--stack", prod, "--ends-within", "200h")
    assert soon.exit_code == 7
    assert f"Urgent: server {old} (old) is paid until " in soon.stdout
    owner.control("POST", "/clock", {"advance": 6 * DAY})
    over = command("audit", "--stack", prod)
    assert over.exit_code == 7
    until = datetime.fromtimestamp(
        next(row["next_due_at"] for row in owner.living if str(row["id"]) == old), UTC
    )
    assert over.stdout == (
        f"server old ({old}) is suspended (paid until {until:%Y-%m-%d}). Next: pulumi-hosting renewals\n"
    )
    assert [row["id"] for row in facts(command("audit", "--stack", prod, "--json"))["ended"]] == [old]
    wrong = command("audit", "--ends-within", "soon")
    assert (wrong.exit_code, "such as 7d or 36h" in wrong.stderr) == (2, True)


def test_doctor_and_cost_name_what_ends(command: Command, owner: Owner, tmp_path: Path) -> None:
    web, old = filled(owner)
    assert "ok       paid time" in command("doctor").stdout
    owner.control("POST", "/clock", {"advance": 25 * DAY})
    told = command("doctor")
    assert "warning  paid time     1 not paid for; the balance covers everything" in told.stdout
    assert f"server {old} (old) is paid until" in told.stdout
    same = {
        name: {
            "op": "same",
            "urn": f"urn:pulumi:dev::shop::hosting:index:Server::{name}",
            "oldState": {"type": "hosting:index:Server", "id": id, "inputs": {}, "outputs": {"name": name}},
            "newState": {"type": "hosting:index:Server", "id": id, "inputs": {}, "outputs": {"name": name}},
        }
        for name, id in {"web": web, "old": old}.items()
    }
    preview = tmp_path / "preview.json"
    preview.write_text(json.dumps({"steps": [*same.values()], "changeSummary": {"same": 2}}))
    (line,) = facts(command("cost", preview, "--json"))["ending"]
    assert line.startswith(f"Urgent: server {old} (old) is paid until ")
    assert f"- `{line}`" in command("cost", preview, "--markdown").stdout
