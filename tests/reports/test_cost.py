"""``pulumi-hosting cost``: what the changes of a preview cost."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.results import Damaged
from pulumi_hosting.client.words import PYTHON
from pulumi_hosting.emulator import Running
from pulumi_hosting.planning.paid_time import PaidTime
from pulumi_hosting.rehearsal.engines import Engine
from pulumi_hosting.session.prepaid import Prepaid
from tests.reports.conftest import Command, Owner
from tests.support.programs import PUBLIC_KEY, Program, make_program

PROGRAM = f"""
key = SshKey("laptop", name="laptop", public_key="{PUBLIC_KEY}")
web = Server("web", tariff_id=1, os="debian-12", name="web", ssh_key_ids=[key.id])
mail = hosting.ServerIp("mail", server=web)
shop = hosting.Domain("shop", name="shop-example.com")
"""
SHOP, WEB, MAIL = "domain shop", "server web", "server_ip mail"


@pytest.fixture(params=["native", pytest.param("dynamic", marks=pytest.mark.slow)])
def program(request: pytest.FixtureRequest, engine: Engine, emulator: Running, tmp_path: Path) -> Program:
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home", request.param)


def preview(program: Program, path: Path) -> Path:
    path.write_text(program.stack.preview("--json", "--show-sames").output, encoding="utf-8")
    return path


def facts(command: Command, *arguments: object) -> dict[str, Any]:
    answer = command("cost", *arguments, "--json")
    assert answer.exit_code == 0, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    found["rows"] = {f"{row['kind']} {row['name']}": row for row in found["resources"]}
    return found


def refund_of(owner: Owner, id: str) -> Decimal:
    """What the account would credit for a server."""
    quote = owner.client.servers.get(int(id)).refund_quote
    assert quote is not None
    return quote.amount


@pytest.mark.daily
def test_the_cost_of_a_preview_is_what_the_account_charges_and_refunds(
    program: Program, command: Command, owner: Owner, tmp_path: Path
) -> None:
    """Preview, up, preview of a change, up: the announced sums are those of the ledger."""
    program.write(PROGRAM.replace("mail = hosting.ServerIp", "#"))
    announced = facts(command, preview(program, tmp_path / "create.json"))
    assert announced["not_known"] == []
    assert announced["rows"][SHOP]["notes"] == []
    program.run(program.stack.up())
    assert announced["totals"]["EUR"]["charged"] == str(owner.moved())
    tariff = owner.client.catalog.tariffs()
    monthly = {tariff.id: tariff.price_monthly for tariff in tariff}
    assert announced["rows"][WEB]["monthly_after"] == str(monthly[1])
    (domain,) = owner.objects("domains")
    yearly = (Decimal(domain["price_renew"]) / 12).quantize(Decimal("0.01"))
    assert announced["rows"][SHOP]["monthly_after"] == str(yearly)
    assert announced["balance"]["after"] == str(owner.client.balance.get().balance)

    paid = owner.moved()
    program.write(PROGRAM.replace("mail = hosting.ServerIp", "#").replace("tariff_id=1", "tariff_id=2"))
    announced = facts(command, preview(program, tmp_path / "change.json"))
    row = announced["rows"][WEB]
    assert (row["action"], row["monthly_before"], row["monthly_after"]) == (
        "replace",
        str(monthly[1]),
        str(monthly[2]),
    )
    assert announced["totals"]["EUR"]["monthly_difference"] == str(monthly[2] - monthly[1])
    assert announced["totals"]["EUR"]["monthly_after"] == str(monthly[2] + yearly)
    refund = Decimal(announced["totals"]["EUR"]["refunded"])
    assert refund == refund_of(owner, owner.living_ids[0])
    program.run(program.stack.up())
    # The unused part of the period shrinks while the run goes on.
    assert abs(owner.moved() - paid - Decimal(announced["totals"]["EUR"]["charged"]) + refund) <= Decimal(
        "0.02"
    )
    assert len(owner.living) == 1


def test_without_a_key_the_prices_of_the_preview_are_what_is_known(
    program: Program, command: Command, owner: Owner, tmp_path: Path
) -> None:
    program.write(PROGRAM)
    found = preview(program, tmp_path / "create.json")
    answer = command("cost", found, key="")
    assert answer.exit_code == 0, answer.output
    assert "create  server     web   5.00 EUR   5.00 EUR   +5.00" in answer.stdout
    assert "cost:    17.00 EUR now, 6.00 EUR per month afterwards (+6.00)" in answer.stdout
    assert (
        "not known: server ip mail: charge now and price per month (price not known before its server exists)"
        in answer.stdout
    )
    assert "not known: how long the balance lasts: no API key. Next: set HOSTING_API_KEY" in answer.stdout
    markdown = command("cost", found, "--markdown", key="").stdout.splitlines()
    assert markdown[0] == "**Cost:** 17.00 EUR now, 6.00 EUR per month afterwards (+6.00)"
    assert (
        "| create | server | `web` | 5.00 EUR | 5.00 EUR | +5.00 |  | `per month: of the first payment` |"
        in (markdown)
    )
    assert PUBLIC_KEY not in answer.output
    assert owner.ledger() == []


def change(kind: str, op: str, old: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Any]:
    type = "hosting:index:" + "".join(map(str.capitalize, kind.split("_")))
    step: dict[str, Any] = {"op": op, "urn": f"urn:pulumi:dev::shop::{type}::{kind}"}
    if old is not None:
        step["oldState"] = {"type": type, "id": old.get("id", "1"), "outputs": old}
    if op != "delete":
        step["newState"] = {"type": type, "inputs": inputs}
    return step


def digest(path: Path, *steps: dict[str, Any], **more: Any) -> Path:
    path.write_text(json.dumps({"steps": steps, **more}))
    return path


def test_a_deleted_server_is_refunded_and_a_deleted_domain_stays(
    command: Command, owner: Owner, tmp_path: Path
) -> None:
    id = owner.order("web")
    server = {"id": id, "priceMonthly": "5.00", "currency": "EUR"}
    domain = {"id": "70001", "priceRenew": "13.00", "currency": "EUR", "expiresAt": "2031-02-03T00:00:00Z"}
    ip = {"id": f"{id}/1", "priceMonthly": "2.00", "currency": "EUR"}
    path = digest(
        tmp_path / "x.json",
        *(change("server", "delete", server), change("domain", "delete", domain)),
        change("server_ip", "delete", ip),
    )
    found = facts(command, path)
    assert found["totals"]["EUR"] == {
        "charged": "0.00",
        "refunded": str(refund_of(owner, id)),
        "monthly_before": "8.08",
        "monthly_after": "0.00",
        "monthly_difference": "-8.08",
    }
    assert found["rows"]["domain domain"]["notes"] == [
        "stays until it expires on 2031-02-03, and does not renew itself"
    ]
    assert found["rows"]["server_ip server_ip"]["notes"] == ["refunded only together with its server"]
    assert owner.living_ids == [id]


def test_what_a_reader_must_not_miss_comes_first(command: Command, tmp_path: Path) -> None:
    """Erased disks, then domains that lapse, then other deletions, then what a limit refuses."""
    ip = {"id": "20001/1", "priceMonthly": "2.00", "currency": "EUR"}
    shop = {"id": "70001", "autoRenew": True, "expiresAt": "2031-02-03T00:00:00Z", "currency": "EUR"}
    kept = change("server", "delete", {"id": "20004"})
    kept["oldState"]["retainOnDelete"] = True
    warning = (
        "mail: warning: with a live key it would be refused: 5.00 EUR were spent this month; with 5.00 EUR "
        "for VDS-1, 1 month they would be 10.00, and budget is 6.00/month; it is not ordered. Next: raise "
        "budget"
    )
    path = digest(
        tmp_path / "x.json",
        change("server_ip", "delete", ip),
        {**change("server_ip", "replace", {**ip, "id": "20001/2"}), "urn": "a::mail"},
        {**change("ptr", "replace", {"id": "20001/1"}), "urn": "a::rev"},
        change("domain", "update", shop, name="shop.com", autoRenew=False),
        {**change("server", "update", {"id": "20001", "os": "debian-12"}, os="ubuntu-24"), "urn": "a::web"},
        {**change("server", "replace", {"id": "20002", "os": "debian-12"}, os="debian-12"), "urn": "a::db"},
        {**change("server", "delete", {"id": "20003"}), "urn": "a::old"},
        {**change("server", "update", {"id": "20005", "os": "debian-12"}, os="debian-12"), "urn": "a::same"},
        {**change("server", "update", {"id": "20006"}, os="debian-12"), "urn": "a::unknown"},
        {**kept, "urn": "a::kept"},
        diagnostics=[{"message": warning, "severity": "warning"}],
    )
    expected = [
        "server web (20001) is reinstalled, and its disk is erased",
        "server db (20002) is replaced by a new server, and its disk is erased",
        "server old (20003) is deleted, and its disk is erased",
        "domain domain (70001) will not renew itself: it lapses on 2031-02-03",
        "server ip server_ip (20001/1) is deleted",
        "server ip mail (20001/2) is given up for a new one",
        "mail: refused with a live key: 5.00 EUR were spent this month; with 5.00 EUR for VDS-1, 1 month "
        "they would be 10.00, and budget is 6.00/month",
    ]
    assert json.loads(command("cost", path, "--json", key="").stdout)["dangers"] == expected
    text = command("cost", path, key="").stdout.splitlines()
    assert text[:7] == [f"danger: {line}" for line in expected]
    markdown = command("cost", path, "--markdown", key="").stdout.splitlines()
    assert markdown[:9] == ["**Danger**:", "", *(f"- `{line}`" for line in expected)]


def test_a_missing_refund_is_no_refund_of_nothing(command: Command, tmp_path: Path) -> None:
    server = {"id": "20001", "priceMonthly": "5.00", "currency": "EUR"}
    path = digest(tmp_path / "x.json", change("server", "delete", server))
    answer = command("cost", path, key="")
    assert "not known: server server: refund" in answer.stdout
    assert "delete  server  server  0.00 EUR  0.00 EUR   -5.00       not known" in answer.stdout


@pytest.mark.parametrize("front", ["warning: server: ", "server: warning: "])
def test_a_replacement_and_a_warning_as_the_cli_prints_them(
    command: Command, tmp_path: Path, front: str
) -> None:
    """Pulumi's CLI shows one step of a replacement, and puts the severity in front of a message; a dynamic
    resource puts it behind its name."""
    old = {"id": "20001", "priceMonthly": "5.00", "currency": "EUR", "refundQuote": {"amount": "4.00"}}
    line = f"{front}will charge 10.00 EUR (VDS-2, 1 month); run total 10.00 EUR, balance 1.00 EUR"
    path = digest(
        tmp_path / "x.json",
        change("server", "replace", old, name="web", tariffId=2, os="debian-12"),
        diagnostics=[{"message": line, "severity": "warning"}],
    )
    answer = command("cost", path, "--json", key="")
    (row,) = json.loads(answer.stdout)["resources"]
    assert (row["action"], row["charged"], row["refunded"]) == ("replace", "10.00", "4.00")
    assert (row["monthly_before"], row["monthly_after"], row["monthly_difference"]) == (
        "5.00",
        "10.00",
        "5.00",
    )


def test_unchanged_resources_that_a_preview_hides_are_named(command: Command, tmp_path: Path) -> None:
    path = digest(tmp_path / "x.json", changeSummary={"same": 4})
    answer = command("cost", path, key="")
    assert "cost:    nothing that is known" in answer.stdout
    assert "not known: what 4 unchanged resources cost per month" in answer.stdout
    assert "--show-sames" in answer.stdout


def test_a_change_beyond_the_balance_says_how_much_to_top_up(
    command: Command, owner: Owner, tmp_path: Path
) -> None:
    balance = owner.client.balance.get().balance
    path = digest(
        tmp_path / "x.json",
        change("server", "create", name="web", tariffId=1, os="debian-12"),
        diagnostics=[
            {
                "message": "server: will charge 5000.00 EUR (VDS-1, 1 month); run total 5000.00 EUR",
                "severity": "info",
            }
        ],
    )
    answer = command("cost", path)
    assert f"balance: {balance} EUR, not sufficient. Next: top up {5000 - balance} EUR" in answer.stdout
    assert facts(command, path)["balance"]["sufficient"] is False


def test_the_balance_lasts_until_a_renewal_that_it_does_not_cover(
    command: Command, owner: Owner, tmp_path: Path
) -> None:
    owner.order("web")
    (server,) = owner.client.servers.list()
    assert not isinstance(server, Damaged)
    assert server.billing is not None
    owner.control("PATCH", "/account", {"balance": "12.00"})
    found = facts(command, digest(tmp_path / "x.json"))["balance"]
    assert (found["amount"], found["after"], found["first_uncovered"]) == ("12.00", "12.00", "server web")
    due = server.billing.next_due_at
    assert due is not None
    # Renewals of 5.00: the first two are covered.
    assert datetime.fromisoformat(found["lasts_until"]) >= due
    assert (datetime.fromisoformat(found["lasts_until"]) - due).days in range(58, 63)


@pytest.mark.parametrize(
    ("balance", "due"),
    [("4.99", "2027-01-31"), ("9.99", "2027-02-28"), ("29.99", "2027-04-28"), ("10000", None)],
)
def test_renewals_are_taken_one_after_the_other(balance: str, due: str | None) -> None:
    now, day = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 1, 31, tzinfo=UTC)
    march = datetime(2027, 3, 5, tzinfo=UTC)
    prepaid = (
        Prepaid("server", "1", "web", day, Decimal("5.00"), 1, True),
        Prepaid("domain", "2", "shop.com", march, Decimal("10.00"), 12, True),
        Prepaid("server", "3", "free", day, Decimal(0), 1, True),
    )
    found = PaidTime(PYTHON, now, prepaid, Decimal(balance), "EUR").first_short
    assert (found and f"{found.at:%Y-%m-%d}") == due


def test_what_the_account_refuses_is_not_known(command: Command, owner: Owner, tmp_path: Path) -> None:
    narrow = owner.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read"]})["key"]
    path = digest(tmp_path / "x.json", change("server", "create", name="web", tariffId=1, os="debian-12"))
    answer = command("cost", path, key=narrow)
    assert answer.exit_code == 0, answer.output
    assert "not known: how long the balance lasts: " in answer.stdout
    assert "balance:read" in answer.stderr


def results(path: Path, *tasks: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"plays": [{"tasks": [{"hosts": {"localhost": task}} for task in tasks]}]}))
    return path


def test_the_cost_of_a_check_run(command: Command, owner: Owner, tmp_path: Path) -> None:
    """The output of ansible.posix.json: a new server, one that is deleted, a renewal, a loop."""
    id = owner.order("old")

    def charge(amount: str | None) -> dict[str, Any]:
        return {"amount": amount, "currency": "EUR"}

    new = {"changed": True, "server": {"name": "web", "id": None}, "charge": charge("5.00")}
    new["invocation"] = {"module_args": {"name": "web", "tariff_id": 1, "password": "hunter2hunter2"}}
    gone = {"changed": True, "server": None, "charge": None, "invocation": {"module_args": {"name": "old"}}}
    kept = {"changed": False, "server": {"name": "db", "id": "9", "price_monthly": "7.00", "currency": "EUR"}}
    paid = {"changed": True, "server_renewal": {}, "charge": charge("10.00")}
    paid |= {"action": "hosting.cloud.server_renew", "invocation": {"module_args": {"name": "db"}}}
    later = {"changed": True, "server_ip": {"id": None}, "charge": charge(None)}
    later["invocation"] = {"module_args": {"server_name": "web", "position": 2}}
    path = results(tmp_path / "x.json", {"results": [new, gone]}, kept, paid, later, {"changed": True})
    found = facts(command, path)
    assert found["totals"]["EUR"] == {
        "charged": "15.00",
        "refunded": str(refund_of(owner, id)),
        "monthly_before": "12.00",
        "monthly_after": "12.00",
        "monthly_difference": "0.00",
    }
    assert found["not_known"] == [
        "server ip web/2: charge now and price per month (price not known before its server exists)"
    ]
    assert "hunter2" not in json.dumps(found)
    assert owner.living_ids == [id]


def test_a_renewal_in_a_loop_buys_no_second_object(command: Command, owner: Owner, tmp_path: Path) -> None:
    """The items of a loop do not name the module."""
    item = {"changed": True, "domain": {"name": "example.com", "id": "7", "price_renew": "13.00"}}
    item |= {"charge": {"amount": "13.00", "currency": "EUR"}}
    looped = {"action": "hosting.cloud.domain_renew", "results": [item]}
    totals = facts(command, results(tmp_path / "x.json", looped))["totals"]["EUR"]
    assert (totals["charged"], totals["monthly_difference"]) == ("13.00", "0.00")


def test_the_secret_of_a_url_is_not_shown(command: Command, owner: Owner, tmp_path: Path) -> None:
    """Of a subscription that is created, kept or deleted; with a check run, the report of one, a preview."""
    url = "https://me:cAnary@hooks.example.com/x?token=cAnary"
    made = {"changed": True, "webhook_subscription": {"id": None, "url": url}}
    kept = {"changed": False, "webhook_subscription": {"id": "80001", "url": url}}
    gone = {"changed": True, "webhook_subscription": None, "invocation": {"module_args": {"url": url}}}
    play = results(tmp_path / "play.json", made, kept, gone)
    report = tmp_path / "report.json"
    row = {
        "kind": "webhook_subscription",
        "name": url,
        "action": "create",
        "before": {},
        "after": {"url": url},
    }
    report.write_text(json.dumps({"priced": [row]}))
    preview = tmp_path / "preview.json"
    resource = {"type": "hosting:index:WebhookSubscription", "inputs": {"url": url}, "outputs": {"url": url}}
    urn = "urn:pulumi:dev::shop::hosting:index:WebhookSubscription::hook"
    preview.write_text(json.dumps({"steps": [{"op": "create", "urn": urn, "newState": resource}]}))
    shown = "webhook_subscription https://…@hooks.example.com/x?…"
    for path, name in ((play, shown), (report, shown), (preview, "webhook_subscription hook")):
        assert {*facts(command, path)["rows"]} == {name}
        for form in ((), ("--json",), ("--markdown",)):
            assert "cAnary" not in command("cost", path, *form).output


def test_an_address_that_was_not_bought_counts_in_the_currency_of_the_account(
    command: Command, owner: Owner, tmp_path: Path
) -> None:
    """Its price is recorded, and no payment that names a currency."""
    kept = change("server_ip", "same", {"id": "9", "priceMonthly": "2.00"}, serverId="20001")
    server = {"id": "20001", "priceMonthly": "5.00", "currency": "EUR"}
    preview = digest(tmp_path / "x.json", kept, change("server", "same", server, name="web"))
    for key in ({}, {"key": ""}):
        found = json.loads(command("cost", preview, "--json", **key).stdout)
        assert {currency: sums["monthly_after"] for currency, sums in found["totals"].items()} == {
            "EUR": "7.00"
        }
    assert owner.ledger() == []


def test_a_file_that_is_no_preview_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    answer = command("cost", tmp_path / "x.json")
    assert answer.exit_code == 2
    assert "Next: pulumi preview --json > " in answer.stderr


def test_what_a_failed_preview_costs_is_not_known(command: Command, tmp_path: Path) -> None:
    preview = tmp_path / "preview.json"
    problem = {"message": "error: server 'web' tariffId: there is no tariff 99\nmore", "severity": "error"}
    preview.write_text(json.dumps({"steps": [], "diagnostics": [problem], "changeSummary": {}}))
    answer = command("cost", preview, "--markdown")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert (
        "the preview failed, so what it costs is not known: error: server 'web' tariffId: there"
        in answer.stderr
    )


@pytest.mark.parametrize(
    "failed_run",
    [
        {
            "priced": [],
            "failures": [{"host": "h", "task": "db", "message": "no tariff 99", "ignored": False}],
            "totals": {"failures": 1, "unreachable": 0},
        },
        {
            "plays": [
                {"tasks": [{"task": {"name": "db"}, "hosts": {"h": {"failed": True, "msg": "no tariff 99"}}}]}
            ],
            "stats": {"h": {"failures": 1, "unreachable": 0}},
        },
    ],
)
def test_what_a_failed_check_run_costs_is_not_known(
    command: Command, tmp_path: Path, failed_run: dict[str, Any]
) -> None:
    report = tmp_path / "drift.json"
    report.write_text(json.dumps(failed_run))
    answer = command("cost", report)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert (
        "the check run failed, so what it costs is not known: task 'db' failed on h: no tariff 99"
        in answer.stderr
    )
    for row in (failed_run.get("totals"), *failed_run.get("stats", {}).values()):  # the playbook rescues it
        if row:
            row |= {"failures": 0, "rescued": 1}
    report.write_text(json.dumps(failed_run))
    assert command("cost", report, key="").exit_code == 0


def test_names_are_no_markdown(command: Command, tmp_path: Path) -> None:
    name = "x | y @org/team <img src=x> `a`"
    step = {
        "op": "create",
        "urn": f"urn:pulumi:dev::shop::hosting:index:Server::{name}",
        "newState": {"type": "hosting:index:Server", "inputs": {}, "outputs": {}},
    }
    preview = tmp_path / "preview.json"
    preview.write_text(json.dumps({"steps": [step], "diagnostics": [], "changeSummary": {"create": 1}}))
    shown = command("cost", preview, "--markdown").stdout
    assert "| `x \\| y @org/team <img src=x> 'a'` |" in shown
    outside = re.sub("`[^`]*`", "", shown)
    assert not re.search("[@<]", outside)
