"""``pulumi-hosting audit``: what the account holds and nothing manages."""

import json
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import Engine
from pulumi_hosting.reports import audit
from tests.reports.conftest import Command, Owner
from tests.support.programs import install_plugin


def export(path: Path, **servers: str) -> Path:
    """A stack's export that holds these servers, by name."""
    resources = [
        {
            "urn": f"urn:pulumi:dev::shop::hosting:index:Server::{name}",
            "type": "hosting:index:Server",
            "id": id,
            "outputs": {"mode": "live"},
        }
        for name, id in servers.items()
    ]
    path.write_text(json.dumps({"version": 3, "deployment": {"resources": resources}}))
    return path


def found(answer: Any) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(answer.stdout)
    return facts


def test_nothing_on_the_account_is_nothing_to_report(command: Command, owner: Owner) -> None:
    answer = command("audit")
    assert (answer.exit_code, answer.stdout) == (0, "Everything on the account is managed.\n")
    assert owner.living == []


def test_what_no_stack_and_no_run_knows_is_listed(command: Command, owner: Owner, tmp_path: Path) -> None:
    web, forgotten, key = owner.order("web"), owner.order("forgotten"), owner.add_key()
    answer = command("audit", "--stack", export(tmp_path / "prod.json", web=web), "--json")
    assert answer.exit_code == 7, answer.output
    rows = {row["id"]: row for row in found(answer)["unmanaged"]}
    assert rows.keys() == {forgotten, key}
    assert set(rows) | {web} == {*owner.living_ids, *(str(key["id"]) for key in owner.objects("ssh_keys"))}
    assert rows[forgotten]["name"] == "forgotten"
    assert Decimal(rows[forgotten]["price_monthly"]) == Decimal(owner.ledger()[-1]["amount"])
    assert rows[key]["price_monthly"] == "0.00"
    assert rows[forgotten]["adopt"] == f"pulumi import hosting:index:Server NAME {forgotten}"
    shown = command("audit", "--stack", tmp_path / "prod.json")
    assert shown.exit_code == 7
    assert f"server   {forgotten}  forgotten" in shown.stdout
    assert "2 unmanaged" in shown.stdout
    assert "web" not in shown.stdout


def test_a_name_is_no_id(command: Command, owner: Owner, tmp_path: Path) -> None:
    """A program may call a resource as another server's id, and so may the account."""
    other = owner.order("other")
    named = owner.order("20099")
    stack = export(tmp_path / "prod.json", **{other: "20099"})
    answer = command("audit", "--stack", stack, "--json")
    assert answer.exit_code == 7
    assert {row["id"] for row in found(answer)["unmanaged"]} == {other, named}
    assert [row["id"] for row in found(answer)["missing"]] == ["20099"]


def test_what_an_interrupted_run_made_is_left_to_recover(
    command: Command, owner: Owner, tmp_path: Path
) -> None:
    owner.order("web")
    path = export(tmp_path / "prod.json", web="")
    deployment = {
        "resources": [],
        "pending_operations": [
            {"resource": pending, "type": "creating"}
            for pending in json.loads(path.read_text())["deployment"]["resources"]
        ],
    }
    path.write_text(json.dumps({"version": 3, "deployment": deployment}))
    shown = command("audit", "--stack", path)
    assert shown.exit_code == 7
    assert f"Next: pulumi-hosting recover {path}, before anything is removed" in shown.output
    whole = command("audit", "--stack", export(tmp_path / "other.json", db="20099"))
    assert "recover" not in whole.output


def test_the_secret_of_a_url_is_not_shown(command: Command, owner: Owner) -> None:
    owner.client.webhooks.create(url="https://hooks.example.com/x?token=cAnary", events=["*"])
    assert found(command("audit", "--json"))["unmanaged"][0]["name"] == "https://hooks.example.com/x?…"
    assert "cAnary" not in command("audit").output


@pytest.mark.parametrize("form", ["objects", "plays"])
def test_the_secret_of_a_url_that_a_run_reported_is_not_shown(
    command: Command, owner: Owner, tmp_path: Path, form: str
) -> None:
    url = "https://hooks.example.com/x?token=cAnary"
    task = {"hosts": {"localhost": {"webhook_subscription": {"id": "80099", "url": url}, "changed": False}}}
    row = {"kind": "webhook_subscription", "id": "80099", "name": url, "mode": "live"}
    written = {"objects": {"objects": [row]}, "plays": {"plays": [{"tasks": [task]}]}}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(written[form]))
    answer = command("audit", "--results", path)
    told = "webhook subscription 80099 (https://hooks.example.com/x?…) is managed and not on the account"
    assert told in answer.stdout
    assert "cAnary" not in answer.output + command("audit", "--results", path, "--json").output
    assert owner.living == []


def test_what_adopts_is_named_for_every_form(command: Command, owner: Owner) -> None:
    web, key = owner.order("web"), owner.add_key()
    owner.client.servers.ips.add(int(web), idempotency_key="by-hand-0000000000000003")
    (address, *_) = [
        ip.id for ip in owner.client.servers.ips.list(int(web)) if not ip.primary and ip.version == 4
    ]
    ids = re.compile(rf"{web}/{address}|{web}|{address}|{key}")
    wanted = {
        "native": {
            "server": f"pulumi import hosting:index:Server NAME {web}",
            "server_ip": f"pulumi import hosting:index:ServerIp NAME {web}/{address}",
            "ssh_key": f"pulumi import hosting:index:SshKey NAME {key}",
        },
        "dynamic": {
            "server": f'declare hosting.Server("NAME", adopt_id="{web}", ...)',
            "server_ip": f'declare hosting.ServerIp("NAME", adopt_id="{address}", ...)',
            "ssh_key": f'declare hosting.SshKey("NAME", adopt_id="{key}", ...)',
        },
        "ansible": {
            "server": f"declare the task hosting.cloud.server: {{id: {web}, ...}}",
            "server_ip": f"declare the task hosting.cloud.server_ip: {{id: {web}/{address}, ...}}",
            "ssh_key": f"declare the task hosting.cloud.ssh_key: {{id: {key}, ...}}",
        },
    }
    for form, commands in wanted.items():
        rows = found(command("audit", "--form", form, "--json"))["unmanaged"]
        assert {row["kind"]: row["adopt"] for row in rows} == commands
        hints = {f"To adopt each {HINTS[kind]}: {ids.sub('ID', text)}" for kind, text in commands.items()}
        hints = {
            line.replace('ServerIp("NAME", adopt_id="ID"', 'ServerIp("NAME", adopt_id="ADDRESS"')
            for line in hints
        }
        lines = command("audit", "--form", form).stdout.splitlines()
        assert {line for line in lines if line.startswith("To adopt each")} == hints
        assert f"To adopt everything: pulumi-hosting import DIR --form {form}" in lines


HINTS = {"server": "server", "server_ip": "server address", "ssh_key": "SSH key"}
NO_STACK = (
    "no stack was given, so objects that stacks manage are listed too. "
    "Next: pulumi stack export > prod.json, then --stack prod.json"
)
DELETES = ("destroy", "state=absent", "delete")
"""What commands that remove something have."""


@pytest.mark.parametrize("given", ["nothing", "results"])
def test_no_command_that_deletes_is_printed_without_the_stacks(
    given: str, command: Command, owner: Owner, tmp_path: Path
) -> None:
    owner.control("PATCH", f"/servers/{owner.order('web')}", {"notes": "front end [iac2:aaaaaaaa.1]"})
    (tmp_path / "drift.json").write_text(json.dumps({"objects": []}))
    arguments = ["--results", str(tmp_path / "drift.json")] if given == "results" else []
    for extra in (["--form", "native"], ["--form", "native", "--json"], ["--form", "dynamic"]):
        answer = command("audit", *arguments, *extra)
        assert answer.exit_code == 7
        assert answer.stderr == f"warning: {NO_STACK}\n"
        assert not [word for word in DELETES if word in answer.output]
        assert "To remove" not in answer.output
    arguments += ["--form", "native"]
    assert "remove" not in found(command("audit", *arguments, "--json"))["unmanaged"][0]
    asked = len(owner.requested("GET"))
    refused = command("audit", *arguments, "--commands")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == f"error: --commands names what deletes objects, but {NO_STACK}\n"
    assert len(owner.requested("GET")) == asked


def test_a_playbook_is_all_that_its_user_has_to_give(command: Command, owner: Owner, tmp_path: Path) -> None:
    web, db = owner.order("web"), owner.order("db")
    refused = command("audit", "--form", "ansible", "--commands")
    assert refused.exit_code == 2
    assert "no playbook run was given" in refused.stderr
    drift = tmp_path / "drift.json"
    drift.write_text(json.dumps({"objects": [{"kind": "server", "id": web, "name": "web", "mode": "live"}]}))
    given = command("audit", "--form", "ansible", "--results", drift, "--commands")
    assert (given.exit_code, given.stderr) == (7, "")
    hint = "To remove each server: ansible localhost -m hosting.cloud.server -a 'id=ID state=absent'"
    assert given.stdout.splitlines()[-1] == hint
    rows = found(command("audit", "--form", "ansible", "--results", drift, "--commands", "--json"))[
        "unmanaged"
    ]
    removed = f"ansible localhost -m hosting.cloud.server -a 'id={db} state=absent'"
    assert [row["remove"] for row in rows] == [removed]


def test_commands_are_printed_if_asked_for(command: Command, owner: Owner, tmp_path: Path) -> None:
    owner.order("web"), owner.add_key()
    stack = export(tmp_path / "prod.json")
    plain = command("audit", "--stack", stack)
    assert "To remove" not in plain.stdout
    assert plain.stdout.endswith("To see what removes them: --commands\n")
    assert plain.stderr == ""
    assert not any(
        "remove" in row for row in found(command("audit", "--stack", stack, "--json"))["unmanaged"]
    )
    asked = ("audit", "--stack", stack, "--form", "dynamic", "--commands")
    assert {row["kind"]: row["remove"] for row in found(command(*asked, "--json"))["unmanaged"]} == {
        "server": "declare it, pulumi up, delete the declaration, pulumi up",
        "ssh_key": "delete it in the control panel",
    }
    assert "To see what removes them" not in command(*asked).stdout


@pytest.mark.daily
def test_the_commands_of_pulumi_remove_what_they_name(
    command: Command, owner: Owner, emulator: Running, engine: Engine, tmp_path: Path
) -> None:
    web = owner.order("web")
    owner.client.servers.ips.add(int(owner.order("db")), idempotency_key="by-hand-0000000000000001")
    owner.client.domains.register(
        name="shop.com", years=1, auto_renew=True, idempotency_key="by-hand-0000000000000002"
    )
    owner.client.webhooks.create(url="https://hooks.example.com/", events=["*"])
    kept = owner.order("kept")
    (address, *_) = owner.client.servers.ips.list(int(kept))
    owner.client.servers.ips.set_ptr(int(kept), address.id, domain="old.example.com")
    stack = export(tmp_path / "prod.json", kept=kept)
    rows = found(command("audit", "--stack", stack, "--commands", "--json"))["unmanaged"]
    assert len(rows) == 6
    assert web in {row["id"] for row in rows}

    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("")
    environ = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
    environ |= install_plugin(tmp_path / "home")
    pulumi = engine.stack(tmp_path, tmp_path / "home", environ)
    for number, row in enumerate(sorted(rows, key=lambda row: row["kind"] == "server")):  # addresses first
        for line in row["remove"].replace("NAME", f"old-{number}").split(" && "):
            program, *arguments = shlex.split(line)
            assert program == "pulumi"
            done = pulumi.run(*arguments, "--yes", "--skip-preview")
            assert done.exit_code == 0, done.output
    assert owner.living_ids == [kept]
    assert [row["server_id"] for row in owner.objects("addresses") if row["bought"]] == []
    assert [row["ptr"] for row in owner.objects("addresses") if row["ptr"] == "old.example.com"] == []
    assert owner.objects("subscriptions") == []
    assert [row["auto_renew"] for row in owner.objects("domains")] == [False]


def test_subscriptions_are_listed_once(command: Command, owner: Owner) -> None:
    owner.client.webhooks.create(
        url="https://hooks.example.com/", events=["*"], description="News [iac2:aaaaaaaa.1]"
    )
    before = len(owner.requested("GET"))
    (row,) = found(command("audit", "--json"))["unmanaged"]
    assert (row["kind"], row["ownership_tag"]) == ("webhook_subscription", "[iac2:aaaaaaaa.1]")
    asked = owner.requested("GET")[before:]
    assert sum(path.endswith("/webhooks") for path in asked) == 1, asked


def test_what_an_ansible_run_reported_is_managed(command: Command, owner: Owner, tmp_path: Path) -> None:
    web, key = owner.order("web"), owner.add_key()
    drift = tmp_path / "drift.json"
    drift.write_text(json.dumps({"objects": [{"kind": "server", "id": web, "name": "web", "mode": "live"}]}))
    play = tmp_path / "play.json"
    result = {"ssh_key": {"id": key, "name": "laptop"}, "changed": False}
    play.write_text(json.dumps({"plays": [{"tasks": [{"hosts": {"localhost": result}}]}]}))
    assert command("audit", "--results", drift).exit_code == 7
    assert command("audit", "--results", drift, "--results", play).exit_code == 0


FAILED = {"task": "server", "host": "localhost", "message": "the key\nis expired. Next: renew it"}


@pytest.mark.parametrize(
    ("failure", "totals", "is_refused"),
    [
        ({"ignored": False, "module": "ansible.builtin.command"}, {"failures": 1}, True),
        (
            {"ignored": False, "module": "ansible.builtin.command", "unreachable": True},
            {"unreachable": 1},
            True,
        ),
        ({"ignored": False, "module": "ansible.builtin.command"}, {"rescued": 1}, True),
        ({"ignored": True, "module": "hosting.cloud.server"}, {"ignored": 1}, True),
        ({"ignored": True, "module": "ansible.builtin.command"}, {"ignored": 1}, False),
    ],
)
def test_a_run_with_a_gap_is_refused(
    command: Command,
    owner: Owner,
    tmp_path: Path,
    failure: dict[str, Any],
    totals: dict[str, int],
    is_refused: bool,
) -> None:
    """What a failed task and those behind it declare would be listed with the command that deletes it."""
    owner.order("web")
    report = tmp_path / "drift.json"
    report.write_text(json.dumps({"objects": [], "failures": [FAILED | failure], "totals": totals}))
    answer = command("audit", "--results", report, "--form", "ansible", "--commands")
    assert ("state=absent" in answer.output) is not is_refused
    assert answer.exit_code == (1 if is_refused else 7)
    if is_refused:
        assert answer.stdout == ""
        assert (
            "known completely: task 'server' failed on localhost: the key is expired. Next: " in answer.stderr
        )


@pytest.mark.parametrize(
    ("action", "recap", "is_refused"),
    [
        ("hosting.cloud.server", {"failures": 1}, True),
        ("ansible.builtin.command", {"failures": 1}, True),
        ("hosting.cloud.server", {"ignored": 1}, True),
        ("server", {"ignored": 1}, True),
        ("other.cloud.server", {"ignored": 1}, False),
        ("ansible.builtin.command", {"ignored": 1}, False),
        ("ansible.builtin.command", None, True),
    ],
)
def test_a_run_with_a_gap_is_refused_in_json_of_ansible(
    command: Command,
    owner: Owner,
    tmp_path: Path,
    action: str,
    recap: dict[str, int] | None,
    is_refused: bool,
) -> None:
    owner.order("web")
    task = {"task": {"name": "db"}, "hosts": {"h": {"failed": True, "msg": "no", "action": action}}}
    stats = {} if recap is None else {"stats": {"h": recap}}
    play = tmp_path / "play.json"
    play.write_text(json.dumps({"plays": [{"tasks": [task]}], **stats}))
    answer = command("audit", "--results", play, "--form", "ansible", "--commands")
    assert ("state=absent" in answer.output) is not is_refused
    assert ("task 'db' failed on h: no. Next: " in answer.stderr) is is_refused


def test_what_is_managed_and_gone_is_told(command: Command, owner: Owner, tmp_path: Path) -> None:
    answer = command("audit", "--stack", export(tmp_path / "prod.json", web="20099"))
    assert answer.exit_code == 0
    assert "server 20099 (web) is managed and not on the account. Next: pulumi up --refresh" in answer.stdout


def test_a_kind_that_the_key_may_not_list_is_no_clean_report(command: Command, owner: Owner) -> None:
    narrow = owner.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read", "invoices:read"]})
    answer = command("audit", key=narrow["key"])
    assert answer.exit_code == 1, answer.output
    assert "domains were not checked: " in answer.stderr
    assert "domains:read" in answer.stderr
    assert "Not checked: domains, " in answer.stdout
    assert "Everything that was checked is managed." in answer.stdout
    sandbox = command("audit", key=owner.emulator.test_key)
    assert (sandbox.exit_code, "on the account" in sandbox.stdout) == (1, False)
    owner.order("forgotten")
    listed = command("audit", key=narrow["key"])
    assert (listed.exit_code, listed.stdout.count("Not checked: domains, ")) == (7, 1)


def test_a_file_that_is_no_export_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1]")
    answer = command("audit", "--stack", tmp_path / "x.json")
    assert answer.exit_code == 2
    assert "Next: pass the output of pulumi stack export" in answer.stderr


def test_a_domain_that_does_not_renew_itself_is_named_and_no_reason_to_fail(
    command: Command, owner: Owner
) -> None:
    owner.client.domains.register(name="example.com", years=1, idempotency_key="by-hand-0000000000000001")
    (domain,) = owner.objects("domains")
    assert domain["auto_renew"] is False
    shown = command("audit")
    assert shown.exit_code == 0, shown.output
    assert (
        f"domain example.com ({domain['id']}) is in no stack and no playbook: paid until 20" in shown.stdout
    )
    owner.control("PATCH", f"/domains/{domain['id']}", {"auto_renew": True})
    renewing = command("audit", "--json")
    assert renewing.exit_code == 7
    assert [row["name"] for row in found(renewing)["unmanaged"]] == ["example.com"]


def test_addresses_and_servers_are_one_sum(command: Command, owner: Owner) -> None:
    web = owner.order("web")
    owner.client.servers.ips.add(int(web), idempotency_key="by-hand-0000000000000002")
    prices = [Decimal(row["price_monthly"]) for row in found(command("audit", "--json"))["unmanaged"]]
    assert len(prices) == 2
    total = f"{sum(prices):.2f} EUR per month"
    assert f"2 unmanaged (1 server, 1 server ip), {total}" in command("audit").stdout


@pytest.mark.parametrize(
    ("given", "installed", "hint"),
    [
        ("pulumi-python:dynamic/hosting:Server", (), 'declare hosting.Server("NAME", adopt_id="ID", ...)'),
        ("hosting:index:Server", ("ansible-playbook",), "pulumi import hosting:index:Server NAME ID"),
        ("results", (), "declare the task hosting.cloud.server: {id: ID, ...}"),
        ("results", ("pulumi",), "pulumi import hosting:index:Server NAME ID"),
        ("", (), "pulumi import hosting:index:Server NAME ID"),
        ("", ("ansible-playbook",), "declare the task hosting.cloud.server: {id: ID, ...}"),
        ("", ("ansible-playbook", "pulumi"), "pulumi import hosting:index:Server NAME ID"),
    ],
)
def test_the_hint_is_for_the_frontend_that_is_there(
    command: Command,
    owner: Owner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    installed: tuple[str, ...],
    hint: str,
) -> None:
    monkeypatch.setattr(audit, "which", lambda name: name if name in installed else None)
    for number in range(40):
        owner.control("POST", "/servers", {"name": f"web-{number}"})
    file = tmp_path / "given.json"
    file.write_text(json.dumps({"objects": []}))
    if "Server" in given:
        file.write_text(export(file, web="20099").read_text().replace("hosting:index:Server", given))
    option = "--results" if given == "results" else "--stack"
    shown = command("audit", *((option, file) if given else ())).stdout.splitlines()
    assert [line for line in shown if line.startswith("To adopt each")] == [f"To adopt each server: {hint}"]
    assert len(shown) < 40 + 12  # a row for each object, and no further line
