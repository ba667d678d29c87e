"""``pulumi-hosting import``: an account that was used by hand, as a program and as a playbook that take it
over.
"""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import Engine
from pulumi_hosting.rehearsal.warm_python import WarmPython
from pulumi_hosting.reports.import_files import python_text
from tests.ansible.conftest import Ansible, ansible_environ
from tests.checked import checked
from tests.reports.conftest import Command, Owner, public_key, roomy_key, unmanaged, writes
from tests.support.programs import install_plugin

SITES = [1, pytest.param(12, marks=pytest.mark.slow)]
"""Sites of the account, ten objects each. That of one site has oddities too."""
HOOK = "https://hooks.example.com/secret?token=cAnary"
"""The URL of a subscription with a secret in it."""
HOOK_VARIABLE = "webhook_subscription_hooks_example_com"
HOSTILE = "Alice's \"{{ lookup('pipe', 'touch stolen') }}\" # \\ \u202e"


class Used(Owner):
    """An account that was used by hand: several sites, with names that repeat."""

    def __init__(self, emulator: Running, sites: int) -> None:
        super().__init__(emulator)
        self.key = roomy_key(self.control)
        self.client = Client(self.key, emulator.base_url)
        self.control("PATCH", "/account", {"balance": "1000000"})
        for site in range(sites):
            self.add_site(site)
        if sites == 1:
            self.add_oddities()
        for site in range(sites):  # last: nothing is delivered, so none is disabled by failures meanwhile
            self.add_subscription(site)
        if sites == 1:
            for url in ("https://twice.example.com/", "https://twice.example.com/", HOOK):
                self.client.webhooks.create(url=url, events=["*"])

    def add_site(self, site: int) -> None:
        servers = [self.order(site, name) for name in ("www", f"db-{site}", f"mail-{site}", f"old.{site}")]
        self.client.servers.ips.add(servers[2], idempotency_key=f"by-hand-address-{site:04}")
        first, bought = [ip for ip in self.client.servers.ips.list(servers[2]) if ip.version == 4]
        self.client.servers.ips.set_ptr(servers[2], first.id, domain=f"mail.site-{site}.com")
        self.client.servers.ips.set_ptr(servers[2], bought.id, domain="relay.example.com")
        self.client.servers.update(servers[1], notes=HOSTILE, auto_renew=True)
        self.client.servers.power(servers[3], action="stop")
        self.client.ssh_keys.create(name=f"{HOSTILE.strip(chr(0x202E))}{site}", public_key=public_key(site))
        self.client.domains.register(
            name=f"site-{site}.com", years=1, idempotency_key=f"by-hand-domain-{site:04}", privacy=True
        )

    def add_subscription(self, site: int) -> None:
        url = f"https://hooks.example.com/{'secret-path' if site else ''}"
        hook = self.client.webhooks.create(
            url=url, events=["server.created", "balance.low"], description="News {# of all #}"
        )
        if site % 2:
            self.client.webhooks.update(hook.id, active=False)

    def add_oddities(self) -> None:
        """What a control panel allows: doubles, an imported server, two addresses, IPv6, a locked server."""
        several = self.order(900, "several")
        for number in (1, 2):
            self.client.servers.ips.add(several, idempotency_key=f"by-hand-several-{number:04}")
        for number, ip in enumerate(self.client.servers.ips.list(several)):
            self.control("PATCH", f"/servers/{several}/ips/{ip.id}", {"ptr": f"host-{number}.example.org"})
        self.control("POST", "/servers", {"name": "imported", "synthetic": True})
        hourly = next(tariff.id for tariff in self.client.catalog.tariffs() if tariff.hourly_available)
        self.client.servers.create(
            name="hourly",
            tariff_id=hourly,
            os="debian-12",
            hours=1,
            billing_cycle="hourly",
            idempotency_key="by-hand-hourly-0001",
        )
        self.control("PATCH", f"/tariffs/{hourly}", {"disabled": True})  # not sold any more
        for name, change in {
            "locked": {"blocked": True, "notes": "locked"},
            "unpaid": {"status": "suspended"},
            "foreign": {"notes": "front end [iac2:aaaaaaaa.1]"},
        }.items():
            self.control("PATCH", f"/servers/{self.order(901, name)}", change)
        self.client.servers.create(
            name="quarterly", tariff_id=1, os="debian-12", months=3, idempotency_key="by-hand-quarterly"
        )
        self.control("PATCH", "/service", {"readings": {"duplicate_ssh_key": "second"}})
        for name in ("thrice", "twice", "twice"):
            self.add_key(name, public_key(900))
        self.control(
            "POST", "/faults", {"path": "^/domains$", "method": "POST", "action": {"registrar": "pending"}}
        )
        self.client.domains.register(name="slow.com", years=1, idempotency_key="by-hand-slow-00001")

    def order(self, site: int, name: str) -> int:  # type: ignore[override]  # its id as a number
        """A server of a site, ordered by hand."""
        answer = self.client.servers.create(
            name=name, tariff_id=1, os="debian-12", months=1, idempotency_key=f"by-hand-{site:04}-{name:_>9}"
        )
        return answer.server.id  # type: ignore[union-attr]  # no order is slow here


def written(command: Command, owner: Used, directory: Path, form: str) -> dict[str, Any]:
    """Import the account; what the command says."""
    answer = command("import", directory, "--form", form, "--json", key=owner.key)
    assert answer.exit_code == 0, answer.output
    facts: dict[str, Any] = json.loads(answer.stdout)
    return facts


@pytest.mark.parametrize("sites", SITES)
@pytest.mark.parametrize(("form", "dialect"), [("dynamic", "spec"), ("native", "live")], indirect=["dialect"])
def test_a_program_takes_the_account_over_and_changes_nothing(
    sites: int,
    form: str,
    dialect: str,
    engine: Engine,
    emulator: Running,
    command: Command,
    tmp_path: Path,
) -> None:
    owner, directory = Used(emulator, sites), tmp_path / "shop"
    read = len(owner.requested("GET"))
    facts = written(command, owner, directory, form)
    assert sites == 1 or len(facts["declared"]) == 10 * sites
    addresses = [path for path in owner.requested("GET")[read:] if path.endswith("/ips")]
    assert len(addresses) == len(owner.living)  # an expensive read, so one for each server
    assert facts["left_out"] == []
    ledger, before, asked = owner.ledger(), owner.untagged(), owner.control.requests()
    environ = {"HOSTING_API_KEY": owner.key, "HOSTING_BASE_URL": emulator.base_url}
    if form == "native":
        environ |= install_plugin(tmp_path / "home")
    stack = checked(engine.stack(directory, tmp_path / "home", environ), owner.control)
    for row in facts["configuration"]:
        stack.run("config", "set", "--secret", row["name"], HOOK)

    preview = stack.preview()
    assert "cAnary" not in preview.output
    assert (preview.exit_code, writes(owner, asked)) == (0, set()), preview.output
    first = stack.up()
    assert first.exit_code == 0, first.output
    assert "cAnary" not in first.output
    assert owner.ledger() == ledger
    assert owner.untagged() == before
    tags = {"PATCH /servers", "PATCH /webhooks"}
    assert writes(owner, asked) == (tags if form == "dynamic" else set())

    asked = owner.control.requests()
    again = stack.up("--refresh")
    assert (again.exit_code, writes(owner, asked)) == (0, set()), again.output
    suspended = sum(server["status"] == "suspended" for server in owner.living)
    assert again.changes.get("update", 0) == suspended
    assert ("(unpaid) is suspended" in again.output) == bool(suspended)
    export = tmp_path / "export.json"
    export.write_text(json.dumps(stack.export()), encoding="utf-8")
    assert "cAnary" not in export.read_text(encoding="utf-8")
    assert unmanaged(command("audit", "--stack", export, "--json", key=owner.key)) == []


@pytest.mark.parametrize("sites", SITES)
def test_a_playbook_takes_the_account_over_and_changes_nothing(
    sites: int, emulator: Running, warm_python: WarmPython, command: Command, tmp_path: Path
) -> None:
    owner, directory = Used(emulator, sites), tmp_path / "shop"
    facts = written(command, owner, directory, "ansible")
    tasks = len(facts["declared"])
    assert sites == 1 or tasks == 10 * sites
    assert facts["left_out"] == []
    ledger, before, asked = owner.ledger(), owner.untagged(), owner.control.requests()
    environ = ansible_environ(emulator, tmp_path) | {"HOSTING_API_KEY": owner.key}
    ansible = Ansible(emulator, owner.client, tmp_path, environ, (str(warm_python.command),))
    site, report = directory / "site.yml", tmp_path / "drift.json"

    secrets = {row["name"]: HOOK for row in facts["configuration"]}
    (directory / "secrets.json").write_text(json.dumps(secrets))
    given = ("--extra-vars", f"@{directory / 'secrets.json'}")

    first = ansible.finish(ansible.start_file(site, given))
    assert first.changed == [False] * tasks
    drift = {"ANSIBLE_CALLBACKS_ENABLED": "record,hosting.cloud.drift", "HOSTING_DRIFT_REPORT": str(report)}
    again = ansible.finish(ansible.start_file(site, ("--check", *given), drift), well=False)
    suspended = [server["status"] for server in owner.living if server["status"] == "suspended"]
    assert (again.code, again.changed) == (3 if suspended else 0, [False] * tasks)
    assert [change["ended"] for change in json.loads(report.read_text())["changes"]] == suspended
    assert (owner.ledger(), owner.untagged(), writes(owner, asked)) == (ledger, before, set())
    assert not list(tmp_path.rglob("stolen"))
    assert unmanaged(command("audit", "--results", report, "--json", key=owner.key)) == []


# --- what is written


def test_names_are_unique_and_references_are_references(
    emulator: Running, command: Command, tmp_path: Path
) -> None:
    owner = Used(emulator, 2)
    written(command, owner, tmp_path / "a", "dynamic")
    text = (tmp_path / "a" / "__main__.py").read_text()
    compact = text.replace("\n    ", " ").replace(",\n)", ")").replace("( ", "(")
    for server in owner.living:
        if server["name"] == "www":
            assert f'hosting.Server("www-{server["id"]}", name="www", ' in compact
    address = (
        'server_ip_198_18_1_5 = hosting.ServerIp("198.18.1.5", server=server_mail_0, adopt_id="30009", '
        "opts=pulumi.ResourceOptions(protect=True))"
    )
    assert address in compact
    assert "server=server_mail_0, address=server_mail_0.ip, domain=" in compact
    assert "server=server_mail_0, address=server_ip_198_18_1_5.address, domain=" in compact
    assert text.count("secret-path") == text.count('url="https://hooks.example.com/secret-path"') == 1
    compile(text, "__main__.py", "exec")
    assert text.startswith("# Everything on the account")
    assert "#   pulumi up " in text
    assert "\u202e" not in text
    written(command, owner, tmp_path / "b", "ansible")
    played = (tmp_path / "b" / "site.yml").read_text()
    assert "\u202e" not in played
    assert "#   ansible-playbook --check site.yml" in played


def test_a_name_that_is_taken_is_not_given_again(command: Command, owner: Owner, tmp_path: Path) -> None:
    """One server has the name that the id would give to another."""
    first = owner.control("POST", "/servers", {"name": "www"})["id"]
    for name in ("www", f"www-{first}", f"www_{first}"):
        owner.control("POST", "/servers", {"name": name})
    owner.client.webhooks.create(url="https://hooks.example.com/", events=["*"])
    answer = command("import", tmp_path, "--json")
    names = [row["name"] for row in json.loads(answer.stdout)["declared"]]
    assert sorted(names) == sorted({*names, "hooks.example.com", f"www-{first}", f"www_{first}"})
    assert len(names) == 5
    text = (tmp_path / "__main__.py").read_text()
    assert "active" not in text  # what it is anyway


@pytest.mark.parametrize("form", ["dynamic", "native", "ansible"])
def test_what_may_be_secret_is_left_as_configuration(
    form: str, command: Command, owner: Owner, tmp_path: Path
) -> None:
    id = owner.client.webhooks.create(url=HOOK, events=["*"]).id
    owner.client.webhooks.create(url="https://plain.example.com/path", events=["*"])
    for folder, options in ((tmp_path / "a", ("--json",)), (tmp_path / "b", ())):
        answer = command("import", folder, "--form", form, *options)
        assert answer.exit_code == 0, answer.output
        texts = [path.read_text() for path in folder.iterdir()]
        assert not any("cAnary" in text for text in (*texts, answer.output))
        assert any("https://plain.example.com/path" in text for text in texts)
    name = f"{HOOK_VARIABLE}_url"
    asked = json.loads(command("import", tmp_path / "c", "--form", form, "--json").stdout)
    assert asked["configuration"] == [
        {"kind": "webhook_subscription", "id": str(id), "field": "url", "name": name}
    ]
    step = "ansible-vault create secrets.yml" if form == "ansible" else f"pulumi config set --secret {name}"
    assert asked["next"].count(step) == 1
    (line,) = [line for line in answer.stdout.splitlines() if step in line]
    assert name in line
    assert line.endswith(f"the url of webhook subscription {id}")
    told = "left as configuration, as it may hold a secret: the url of webhook subscription "
    assert f"{told}{id} (https://hooks.example.com/secret?…)" in answer.stdout
    text = (tmp_path / "b" / ("site.yml" if form == "ansible" else "__main__.py")).read_text()
    if form == "ansible":
        assert f'url: "{{{{ {name} }}}}"' in text
        assert "--extra-vars @secrets.yml" in text
    else:
        assert text.count("import pulumi\n") == text.count("\nconfig = pulumi.Config()\n") == 1
        assert f'url=config.require_secret("{name}")' in text


def test_the_months_of_a_renewal_are_declared(command: Command, owner: Owner, tmp_path: Path) -> None:
    owner.order("monthly")
    owner.client.servers.create(
        name="quarterly", tariff_id=1, os="debian-12", months=3, idempotency_key="by-hand-quarterly"
    )
    command("import", tmp_path)
    text = (tmp_path / "__main__.py").read_text()
    assert text.count("months=") == text.count("    months=3,\n") == 1


def test_files_are_not_overwritten(command: Command, owner: Owner, tmp_path: Path) -> None:
    owner.order("web")
    (tmp_path / "site.yml").write_text("mine")
    refused = command("import", tmp_path, "--form", "ansible")
    assert refused.exit_code == 2
    assert refused.stderr.splitlines() == [
        f"error: {tmp_path / 'site.yml'} exists already; nothing was written. Next: give another name"
    ]
    assert owner.requested("GET")[1:] == []  # the order was looked up once, by this test
    assert command("import", tmp_path).exit_code == 0  # other files
    again = command("import", tmp_path)
    assert (again.exit_code, (tmp_path / "site.yml").read_text()) == (2, "mine")
    assert "Pulumi.yaml" in again.stderr


def test_an_empty_account_is_no_file(command: Command, owner: Owner, tmp_path: Path) -> None:
    answer = command("import", tmp_path / "shop")
    assert (answer.exit_code, answer.stdout) == (
        0,
        "There is nothing to be declared; nothing was written.\n",
    )
    assert not (tmp_path / "shop").exists()
    assert owner.living == []


def test_people_are_told_what_to_run(command: Command, owner: Owner, tmp_path: Path) -> None:
    owner.order("web")
    owner.add_key()
    answer = command("import", tmp_path / "shop", "--form", "native")
    assert answer.exit_code == 0
    assert "server   1\nssh_key  1\n" in answer.stdout
    assert f"Next:\n  cd {tmp_path / 'shop'}" in answer.stdout
    assert "pulumi-hosting plugin install" in answer.stdout
    program = (tmp_path / "shop" / "__main__.py").read_text()
    assert "opts=pulumi.ResourceOptions(import_=" in program


@pytest.mark.emulator(clock="manual", provisioning_delay=60)
def test_what_cannot_be_declared_is_left_out_and_named(
    command: Command, owner: Owner, tmp_path: Path
) -> None:
    """An order under way, a server without a name that can be declared, too few name servers."""
    made = owner.control("POST", "/servers", {"name": "web"})
    odd = owner.control("POST", "/servers", {"name": "two words\nx"})
    (primary, *_) = owner.client.servers.ips.list(odd["id"])
    owner.control("PATCH", f"/servers/{odd['id']}/ips/{primary.id}", {"ptr": "odd.example.org"})
    owner.client.domains.register(name="one.com", years=1, idempotency_key="by-hand-domain-0001")
    (domain,) = owner.objects("domains")
    owner.control("PATCH", f"/domains/{domain['id']}", {"nameservers": ["ns1.example.net"]})
    owner.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    )
    owner.client.servers.create(
        name="late", tariff_id=1, os="debian-12", months=1, idempotency_key="by-hand-late-000001"
    )
    answer = command("import", tmp_path / "shop", "--json")
    assert answer.exit_code == 1, answer.output
    facts = json.loads(answer.stdout)
    assert all(". Next: " in row["reason"] for row in facts["left_out"])
    assert {(row["kind"], row["id"]) for row in facts["declared"]} == {
        ("server", str(made["id"])),
        ("domain", str(domain["id"])),
        ("ptr", f"{odd['id']}/{primary.id}"),
    }
    reasons = {row["id"]: (row["field"], row["reason"]) for row in facts["left_out"]}
    order = next(id for id in reasons if id.startswith("order:"))
    assert "order is under way" in reasons[order][1]
    assert reasons[str(odd["id"])][1].startswith("it cannot be declared: name ")
    assert reasons[str(domain["id"])][0] == "nameservers"
    text = (tmp_path / "shop" / "__main__.py").read_text()
    compile(text, "__main__.py", "exec")
    assert "\n# Not in this file:\n" in text
    assert "nameservers=" not in text
    assert f'server_id="{odd["id"]}",\n    address="{primary.address}"' in text  # no variable holds it
    assert answer.stderr.count("warning: ") == 3


def test_a_kind_that_the_key_may_not_read_is_named(command: Command, owner: Owner, tmp_path: Path) -> None:
    narrow = owner.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read", "webhooks:manage"]})
    empty = command("import", tmp_path / "shop", key=narrow["key"])
    assert (empty.exit_code, (tmp_path / "shop").exists()) == (1, False)
    assert empty.stdout.startswith("There is nothing to be declared; nothing was written.")
    assert "Not read: domains" in empty.stdout
    owner.order("web")
    answer = command("import", tmp_path / "shop", key=narrow["key"])
    assert answer.exit_code == 1, answer.output
    assert "domains were not read: " in answer.stderr
    assert "#   every domain: " in (tmp_path / "shop" / "__main__.py").read_text()


def test_what_a_stack_manages_is_pointed_out(command: Command, owner: Owner, tmp_path: Path) -> None:
    id = owner.order("web")
    owner.control("PATCH", f"/servers/{id}", {"notes": "front end [iac2:aaaaaaaa.1]"})
    said = f"server {id} carries the ownership tag [iac2:aaaaaaaa.1]: a stack manages it"
    for form, name in (("dynamic", "__main__.py"), ("native", "__main__.py"), ("ansible", "site.yml")):
        answer = command("import", tmp_path / form, "--form", form)
        assert (answer.exit_code, said in answer.stderr) == (0, True)
        text = (tmp_path / form / name).read_text()
        assert f"# {said}" in text
        assert "iac2:" not in text.replace(said, "")


@pytest.mark.parametrize("text", ["", "it's", 'say "hi"', "'\"", "\\'\"\\", "\n\0\u202e", "ключ", "{x}"])
def test_texts_are_the_same_in_a_program(text: str) -> None:
    source = python_text([text])
    assert ast.literal_eval(source) == [text]
    assert source.isprintable()


def test_a_test_key_is_refused(command: Command, owner: Owner, emulator: Running, tmp_path: Path) -> None:
    owner.order("web")
    answer = command("import", tmp_path / "shop", key=emulator.test_key)
    assert answer.exit_code == 2
    assert "HOSTING_API_KEY is a test key" in answer.stderr
    assert not (tmp_path / "shop").exists()
