"""``pulumi-hosting import`` of forty servers with the names that a control panel allows, of more than a
hundred objects, of a run that was stopped, and with a pipeline.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.private_directory import directory as private_directory
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import PULUMI, Engine, choose
from pulumi_hosting.rehearsal.warm_python import WarmPython
from pulumi_hosting.reports import import_files
from tests.ansible.conftest import Ansible, ansible_environ
from tests.checked import CheckedStack, checked
from tests.reports.conftest import Command, Owner, public_key, roomy_key, unmanaged, writes
from tests.support.programs import install_plugin

ODD_NAMES = [
    "Web Server",
    "Web  Server",
    "Web-Server",
    "Bücher",
    "db (old)",
    "-x",
    ".dot",
    "a,b",
    '"',
    "{{ x }}",
]


class Fleet(Owner):
    """Servers with odd names; some have a bought address or reverse DNS."""

    def __init__(self, emulator: Running, servers: int, keys: int) -> None:
        super().__init__(emulator)
        self.key = roomy_key(self.control)
        self.client = Client(self.key, emulator.base_url)
        self.control("PATCH", "/account", {"balance": "100000"})
        for number in range(servers):
            id = int(self.control("POST", "/servers", {"name": f"web-{number}"})["id"])
            if number < len(ODD_NAMES):
                self.control("PATCH", f"/servers/{id}", {"name": ODD_NAMES[number]})
            if number % 5 == 0:
                self.client.servers.ips.add(id, idempotency_key=f"by-hand-address-{number:04}")
                (ip, *_) = self.client.servers.ips.list(id)
                self.client.servers.ips.set_ptr(id, ip.id, domain=f"host-{number}.example.com")
        for number in range(keys):
            self.add_key(f"Laptop {number % 3}", public_key(number))
        self.client.webhooks.create(url="https://hooks.example.com/", events=["*"])

    def environ(self) -> dict[str, str]:
        return {"HOSTING_API_KEY": self.key, "HOSTING_BASE_URL": self.emulator.base_url}

    def stack(self, engine: Engine, directory: Path, home: Path) -> CheckedStack:
        """With the plugin, and with the check of the account after each step."""
        environ = self.environ() | install_plugin(home)
        return checked(engine.stack(directory, home, environ), self.control)


@pytest.mark.parametrize(
    ("form", "servers", "keys"),
    [("dynamic", 40, 5), ("native", 40, 60), pytest.param("native", 11, 8, marks=pytest.mark.daily)],
)
def test_servers_are_taken_over_by_their_names_and_nothing_is_bought(
    form: str,
    servers: int,
    keys: int,
    engine: Engine,
    emulator: Running,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if servers < 40:
        monkeypatch.setattr(import_files, "MOST_IN_ONE_FILE", 20)
    owner, directory = Fleet(emulator, servers, keys), tmp_path / "shop"
    answer = command("import", directory, "--form", form, "--json", key=owner.key)
    assert answer.exit_code == 0, answer.output
    facts = json.loads(answer.stdout)
    assert (facts["left_out"], len(facts["declared"])) == ([], servers + keys + 2 * -(-servers // 5) + 1)
    files = {path.name for path in directory.glob("*.py")}
    kinds = {"servers.py", "ssh_keys.py", "server_ips.py", "ptrs.py", "webhook_subscriptions.py"}
    assert files == {
        "__main__.py",
        *(kinds if len(facts["declared"]) > import_files.MOST_IN_ONE_FILE else ()),
    }
    text = "".join((directory / name).read_text() for name in files)
    assert all(f"name={import_files.python_text(name)}" in text for name in ODD_NAMES)

    ledger, before, asked = owner.ledger(), owner.untagged(), owner.control.requests()
    stack = owner.stack(engine, directory, tmp_path / "home")
    for step, arguments in ((stack.preview, ()), (stack.up, ()), (stack.preview, ("--expect-no-changes",))):
        done = step(*arguments)
        assert done.exit_code == 0, done.output
    assert (owner.ledger(), owner.untagged()) == (ledger, before)
    assert writes(owner, asked) <= {"PATCH /servers", "PATCH /webhooks"}  # tags
    export = tmp_path / "export.json"
    export.write_text(json.dumps(stack.export()), encoding="utf-8")
    assert unmanaged(command("audit", "--stack", export, "--json", key=owner.key)) == []


def test_a_playbook_of_many_objects_is_in_files_by_kind(
    emulator: Running,
    warm_python: WarmPython,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_files, "MOST_IN_ONE_FILE", 20)
    owner, directory = Fleet(emulator, 11, 8), tmp_path / "shop"
    assert command("import", directory, "--form", "ansible", key=owner.key).exit_code == 0
    assert {path.name for path in directory.iterdir()} == {
        *("site.yml", "servers.yml", "ssh_keys.yml", "server_ips.yml", "ptrs.yml"),
        "webhook_subscriptions.yml",
    }
    ledger, before, asked = owner.ledger(), owner.untagged(), owner.control.requests()
    environ = ansible_environ(emulator, tmp_path) | owner.environ()
    ansible = Ansible(emulator, owner.client, tmp_path, environ, (str(warm_python.command),))
    done = ansible.finish(ansible.start_file(directory / "site.yml"))
    assert done.changed == [False] * (11 + 8 + 2 * 3 + 1)
    assert (owner.ledger(), owner.untagged(), writes(owner, asked)) == (ledger, before, set())


def test_what_pulumi_imports_agrees_with_the_program(
    engine: Engine, emulator: Running, command: Command, tmp_path: Path
) -> None:
    """``pulumi import`` of each object, as the audit names it: the program then changes nothing."""
    owner, directory = Fleet(emulator, 6, 2), tmp_path / "shop"
    assert command("import", directory, "--form", "native", key=owner.key).exit_code == 0
    ledger, before, asked = owner.ledger(), owner.untagged(), owner.control.requests()
    stack, program = owner.stack(engine, directory, tmp_path / "home"), directory / "__main__.py"
    text = program.read_text()
    names = {
        id: name for name, id in re.findall(r'hosting\.\w+\(\s*"([^"]+)",.*?import_="([^"]+)"', text, re.S)
    }
    found = json.loads(command("audit", "--form", "native", "--json", key=owner.key).stdout)["unmanaged"]
    found += [{"id": id} for id in names if id not in {row["id"] for row in found}]  # PTR of such a server
    with stack.unchecked("what is not imported yet is in no stack"):
        for row in found:
            adopt = row.get("adopt", f"pulumi import hosting:index:Ptr NAME {row['id']}")
            arguments = shlex.split(adopt.replace("NAME", names[row["id"]]))[1:]
            done = stack.run(*arguments, "--yes", "--generate-code=false")
            assert done.exit_code == 0, done.output
    again = stack.preview("--expect-no-changes")
    assert again.exit_code == 0, again.output
    assert (owner.ledger(), owner.untagged(), writes(owner, asked)) == (ledger, before, set())


@pytest.mark.slow
@pytest.mark.program("pulumi")
def test_the_file_of_a_preview_asks_for_what_the_program_imports(
    emulator: Running, command: Command, tmp_path: Path
) -> None:
    """``preview --import-file`` of the program without its ids, then ``import --file`` with them."""
    owner, directory, file = Fleet(emulator, 11, 2), tmp_path / "shop", tmp_path / "file.json"
    owner.control("POST", "/clock", {"advance": 8 * 86400})  # no key proves any more whose they are
    assert command("import", directory, "--form", "native", key=owner.key).exit_code == 0
    ledger, before, asked = owner.ledger(), owner.untagged(), owner.control.requests()
    stack, program = owner.stack(choose(PULUMI), directory, tmp_path / "home"), directory / "__main__.py"
    text = program.read_text()
    pattern = r'hosting\.\w+\(\s*"([^"]+)",.*?import_="([^"]+)"'
    ids = dict(re.findall(pattern, text, re.S))
    program.write_text(re.sub(r'import_="[^"]+"', "import_=None", text))
    looked = stack.preview("--import-file", str(file))
    assert looked.exit_code == 0, looked.output
    assert "the creation will stop" in looked.output
    asks = json.loads(file.read_text())
    assert {row["name"] for row in asks["resources"]} == {*ids}
    for row in asks["resources"]:
        row["id"] = ids[row["name"]]
    file.write_text(json.dumps(asks))
    with stack.unchecked("what is not imported yet is in no stack"):
        done = stack.run("import", "--file", str(file), "--yes", "--generate-code=false")
    assert done.exit_code == 0, done.output
    for again in (text, re.sub(r'import_="[^"]+"', "import_=None", text)):
        program.write_text(again)
        same = stack.preview("--expect-no-changes")
        assert same.exit_code == 0, same.output
    assert (owner.ledger(), owner.untagged(), writes(owner, asked)) == (ledger, before, set())


# --- names


@pytest.mark.parametrize("form", ["dynamic", "native"])
def test_a_name_of_the_panel_is_refused_where_it_would_be_sent(
    form: str, engine: Engine, emulator: Running, command: Command, tmp_path: Path
) -> None:
    owner, directory = Fleet(emulator, 1, 0), tmp_path / "shop"
    assert command("import", directory, "--form", form, key=owner.key).exit_code == 0
    stack = owner.stack(engine, directory, tmp_path / "home")
    assert stack.up().exit_code == 0
    ledger, asked = owner.ledger(), owner.control.requests()
    program = directory / "__main__.py"
    imported = program.read_text()
    order = 'hosting.Server("db", name="My DB", tariff_id=1, os="debian-12")\n'
    for changed in (imported + order, imported.replace('name="Web Server"', 'name="Web  Server"')):
        program.write_text(changed)
        refused = stack.preview()
        assert refused.exit_code != 0
        assert "name: may contain only A-Z a-z 0-9 . _ -" in refused.output
    assert (owner.ledger(), writes(owner, asked)) == (ledger, set())


# --- what is left out, stopped, or cannot be read


def test_an_object_that_cannot_be_read_is_named(command: Command, owner: Owner, tmp_path: Path) -> None:
    owner.order("web"), owner.add_key()
    owner.control(
        "POST", "/faults", {"path": "^/servers$", "action": {"patch": {"data": [{"id": 20001}]}}, "times": 9}
    )
    answer = command("import", tmp_path, "--json")
    facts = json.loads(answer.stdout)
    assert answer.exit_code == 1
    assert "item 20001 of the list could not be read" in facts["not_read"]["server"]
    assert [row["kind"] for row in facts["declared"]] == ["ssh_key"]
    assert "#   every server: " in (tmp_path / "__main__.py").read_text()


def test_a_run_that_was_stopped_goes_on(emulator: Running, command: Command, tmp_path: Path) -> None:
    owner = Fleet(emulator, 6, 0)
    asked = owner.control.requests()
    refusal = {"path": "/ips$", "after": 4, "action": {"status": 400, "code": "bad_request"}}
    owner.control("POST", "/faults", refusal)
    stopped = command("import", tmp_path / "shop", key=owner.key)
    assert stopped.exit_code == 1, stopped.output
    assert not (tmp_path / "shop").exists()
    assert [*private_directory().glob("import-*")]
    done = command("import", tmp_path / "shop", key=owner.key)
    assert done.exit_code == 0, done.output
    paths = [row["path"] for row in owner.control("GET", "/requests?since=0")[asked:]]
    addresses = [path for path in paths if path.endswith("/ips")]
    assert len(set(addresses)) == len(owner.living)
    assert len(addresses) == len(owner.living) + 1  # the one that failed
    assert not [*private_directory().glob("import-*")]


# --- the pipeline


@pytest.mark.parametrize(
    ("service", "workflow"), [("github", ".github/workflows/hosting.yml"), ("gitlab", ".gitlab-ci.yml")]
)
@pytest.mark.parametrize("form", ["native", "ansible"])
def test_a_pipeline_comes_with_it(
    service: str, workflow: str, form: str, command: Command, owner: Owner, tmp_path: Path
) -> None:
    owner.order("web")
    (tmp_path / ".git").mkdir()
    directory = tmp_path / "infra" / "shop"
    answer = command("import", directory, "--form", form, "--pipeline", service)
    assert answer.exit_code == 0, answer.output
    assert "git add -A" in answer.stdout
    assert ("first delete import_=… in the program" in answer.stdout) is (form == "native")
    text = (tmp_path / workflow).read_text()
    assert yaml.safe_load(text)
    assert "PROJECT: infra/shop" in text
    assert 'HOSTING_MAX_CHARGE: "0.00"' in text
    played = form == "ansible"
    assert ("PLAYBOOK: site.yml" in text or "PLAYBOOK: [site.yml]" in text) is played
    assert bool(re.search(r"STACK: (\[prod\]|\$\{\{)", text)) is not played
    scripts = {path.name for path in Path("examples/gitops").glob("*.py")} | {"requirements.txt"}
    assert {path.name for path in (tmp_path / "pipeline").iterdir()} == scripts
    if not played:
        assert yaml.safe_load((directory / "Pulumi.yaml").read_text())["config"]["hosting:scope"] == "prod"
    again = command("import", tmp_path / "other", "--form", form, "--pipeline", service)
    assert (again.exit_code, (tmp_path / "other").exists()) == (2, False)
    assert "nothing was written" in again.stderr
