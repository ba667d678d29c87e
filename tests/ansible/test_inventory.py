"""The inventory ``hosting.cloud.servers``: the real ansible-inventory and ansible-playbook, against an emulator, its requests counted."""

import importlib
import json
import site
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pulumi_hosting.client.client import Client
from tests.ansible.conftest import BIN, ROOT, Ansible

PLUGIN = "hosting.cloud.servers"


@dataclass
class Listed:
    """What ansible-inventory printed: hosts with their variables, groups with their hosts, and what it said beside them."""

    code: int
    said: str
    listing: dict[str, Any]

    @property
    def hosts(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = plain(self.listing["_meta"]["hostvars"])
        return found

    @property
    def groups(self) -> dict[str, list[str]]:
        return {name: group.get("hosts", []) for name, group in self.listing.items() if name != "_meta"}


def plain(value: Any) -> Any:
    """Without the marks of what is not trusted as a template."""
    if isinstance(value, dict):
        return value["__ansible_unsafe"] if "__ansible_unsafe" in value else {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def write(ansible: Ansible, options: Mapping[str, Any] | str, name: str = "hosting.yml") -> Path:
    path = ansible.home / name
    text = options if isinstance(options, str) else yaml.safe_dump({"plugin": PLUGIN, **options})
    path.write_text(text)
    return path


def listed(
    ansible: Ansible,
    options: Mapping[str, Any] | str,
    *arguments: str,
    name: str = "hosting.yml",
    environ: Mapping[str, str] | None = None,
    well: bool = True,
    command: tuple[str, ...] = (str(BIN / "ansible-inventory"),),
) -> Listed:
    """List one inventory file. Unless it must end well, sources that cannot be read are errors, as they should be."""
    path = write(ansible, options, name)
    done = subprocess.run(
        [*command, "-i", str(path), "--list", *arguments],
        env={**ansible.environ, "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1", **(environ or {})},
        cwd=ansible.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode == 0) is well, done.stderr + done.stdout
    return Listed(done.returncode, done.stderr if well else done.stdout + done.stderr, json.loads(done.stdout) if well else {})


def order(client: Client, *names: str) -> list[str]:
    """Servers of these names, by id."""
    found = [client.servers.create(tariff_id=1, os="debian-12", name=name) for name in names]
    return [str(answer.server.id) for answer in found]  # type: ignore[union-attr]  # no order is slow here


def reads(ansible: Ansible) -> list[str]:
    """The requests so far, without writes."""
    requests = ansible.control("GET", "/requests?since=0")
    return [f"{request['path']} {request['query']}" for request in requests if request["method"] == "GET"]


class Watched:
    """How many reads happen while it is open."""

    def __init__(self, ansible: Ansible) -> None:
        self.ansible = ansible

    def __enter__(self) -> "Watched":
        self.before = len(reads(self.ansible))
        return self

    def __exit__(self, *_: object) -> None:
        self.reads = reads(self.ansible)[self.before :]


# --- hosts


def test_servers_become_hosts(ansible: Ansible, dialect: str) -> None:
    """With the variables that the module returns, from one request."""
    order(ansible.client, "web-1", "web-2")
    with Watched(ansible) as watched:
        found = listed(ansible, {})
    assert len(watched.reads) == 1
    assert watched.reads[0] == "/servers limit=100"
    assert found.said == ""
    assert found.groups["hosting"] == ["web-1", "web-2"]
    played = ansible.play({"name": "info", "hosting.cloud.server_info": {}})
    for server in played["info"]["servers"]:
        expected = {f"hosting_{field}": value for field, value in server.items() if field != "live"}  # only the module asks for that
        assert found.hosts[server["name"]] == {**expected, "ansible_host": server["ip"]}
        assert server["mode"] == "live"


def test_every_page_is_read(ansible: Ansible) -> None:
    key = ansible.control(
        "POST", "/keys", {"mode": "live", "scopes": "full", "rate_per_minute": 10_000, "rate_expensive_per_minute": 10_000}
    )
    with Client(key["key"], ansible.emulator.base_url) as client:
        order(client, *(f"web-{number}" for number in range(101)))
    with Watched(ansible) as watched:
        assert len(listed(ansible, {}).hosts) == 101
    assert len(watched.reads) == 2
    assert all("limit=100" in read for read in watched.reads)


def test_groups_and_composed_variables(ansible: Ansible) -> None:
    order(ansible.client, "web-1", "db-1")
    found = listed(
        ansible,
        {
            "group": "shop",
            "strict": True,
            "keyed_groups": [
                {"key": "hosting_status", "prefix": "status"},
                {"key": "hosting_location | lower", "prefix": "location"},
                {"key": "hosting_os", "separator": ""},
                {"key": "hosting_tariff | lower", "prefix": "tariff"},
            ],
            "groups": {"webservers": "hosting_name is match('web-')"},
            "compose": {"ansible_user": "'root'", "due_on": "hosting_next_due_at[:10]"},
        },
    )
    both = ["db-1", "web-1"]
    assert {name: sorted(hosts) for name, hosts in found.groups.items() if hosts} == {
        "shop": both,
        "status_active": both,
        "location_amsterdam": both,
        "debian_12": both,
        "tariff_vds_1": both,
        "webservers": ["web-1"],
    }
    assert found.hosts["db-1"]["ansible_user"] == "root"
    assert len(found.hosts["db-1"]["due_on"]) == 10


def test_a_playbook_runs_on_them(ansible: Ansible) -> None:
    """And refreshes them: what is asked again is asked of the service, whatever the cache holds."""
    order(ansible.client, "web-1")
    inventory = write(ansible, {"cache": True, "connect_with": "none", "compose": {"ansible_connection": "'local'"}})
    playbook = ansible.home / "play.yml"
    playbook.write_text(
        yaml.safe_dump(
            [
                {
                    "hosts": "hosting",
                    "gather_facts": False,
                    "tasks": [
                        {"name": "before", "ansible.builtin.debug": {"msg": "{{ hosting_id }} {{ ansible_host }}"}},
                        {"ansible.builtin.meta": "refresh_inventory"},
                        {"name": "after", "ansible.builtin.debug": {"msg": "{{ hosting_status }}"}},
                    ],
                }
            ]
        )
    )
    with Watched(ansible) as watched:
        played = ansible.finish(ansible.start_file(playbook, ("-i", str(inventory))))
    assert played["before"]["msg"] == f"{ansible.servers()[0]['id']} web-1"
    assert played["after"]["msg"] == "active"
    assert len(watched.reads) == 2


def test_a_simulated_server_says_so(ansible: Ansible) -> None:
    order(ansible.client, "web-1")
    with Client(ansible.emulator.test_key, ansible.emulator.base_url) as client:
        (simulated,) = order(client, "tried")
    found = listed(ansible, {}, environ={"HOSTING_API_KEY": ansible.emulator.test_key})
    assert {name: variables["hosting_mode"] for name, variables in found.hosts.items()} == {"web-1": "live", "tried": "test"}
    assert found.hosts["tried"]["hosting_id"] == simulated
    assert list(listed(ansible, {}).hosts) == ["web-1"]


def test_what_is_cancelled_is_no_host(ansible: Ansible) -> None:
    """Unless it is asked for: its successor often has its name."""
    ansible.control("PATCH", "/service", {"readings": {"deleted_servers": "listed"}})
    gone, _living = order(ansible.client, "web-1", "web-1")
    ansible.client.servers.delete(int(gone))
    found = listed(ansible, {})
    assert list(found.hosts) == ["web-1"]
    assert found.said == ""
    assert found.hosts["web-1"]["hosting_status"] == "active"
    found = listed(ansible, {"api_filters": {"status": "cancelled"}})
    assert found.hosts["web-1"]["hosting_id"] == gone


# --- names


def test_no_server_is_lost(ansible: Ansible) -> None:
    """Names that several have, or that are something else to Ansible: the host has the server's id, and that is said."""
    one, two, local, group, option, path, text = order(ansible.client, "twin", "twin", "localhost", "hosting", "a", "b", "c")
    for id, name in ((option, "-oProxyCommand=id"), (path, "../x"), (text, "{{ lookup('pipe', 'touch pwned') }}")):
        ansible.control("PATCH", f"/servers/{id}", {"name": name})
    found = listed(ansible, {"compose": {"again": "hosting_name"}, "keyed_groups": [{"key": "hosting_name", "prefix": "named"}]})
    assert {name: variables["hosting_id"] for name, variables in found.hosts.items()} == {
        f"twin-{one}": one,
        f"twin-{two}": two,
        f"localhost-{local}": local,
        f"hosting-{group}": group,
        f"server-{option}": option,
        f"server-{path}": path,
        f"server-{text}": text,
    }
    assert f"servers {one}, {two} are all called 'twin'. Their hosts are twin-{one}, twin-{two}" in " ".join(found.said.split())
    for id in (local, group, option, path, text):
        assert f"server {id} is called" in " ".join(found.said.split())
    assert found.hosts[f"server-{text}"]["again"] == "{{ lookup('pipe', 'touch pwned') }}"
    assert not (ansible.home / "pwned").exists()


def test_what_the_service_says_is_never_evaluated(ansible: Ansible) -> None:
    """From the service and from the cache alike, by the inventory and by the playbook that uses it."""
    (id,) = order(ansible.client, "web-1")
    notes = "{{ lookup('pipe', 'touch pwned') }}"
    ansible.control("PATCH", f"/servers/{id}", {"notes": notes})
    inventory = write(ansible, {"cache": True, "filters": "hosting_notes", "hostname": "{{ hosting_name }}"})
    playbook = ansible.home / "play.yml"
    task = {"name": "show", "ansible.builtin.debug": {"msg": "{{ hosting_notes }}"}}
    playbook.write_text(yaml.safe_dump([{"hosts": "hosting", "gather_facts": False, "connection": "local", "tasks": [task]}]))
    cache = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(ansible.home / "cache")}
    with Watched(ansible) as watched:
        for _ in range(2):
            played = ansible.finish(ansible.start_file(playbook, ("-i", str(inventory)), cache))
            assert played["show"]["msg"] == notes
    assert len(watched.reads) == 1
    assert not (ansible.home / "pwned").exists()


def test_names_and_variables_of_ones_own(ansible: Ansible) -> None:
    order(ansible.client, "web-1")
    options = {"hostname": "{{ vds_name_now }}.{{ domain }}", "hostvars_prefix": "vds_", "hostvars_suffix": "_now", "group": ""}
    found = listed(ansible, options, "-e", "domain=example.com")
    assert list(found.hosts) == ["web-1.example.com"]
    assert found.hosts["web-1.example.com"]["vds_status_now"] == "active"
    assert "hosting" not in found.groups


# --- which


def test_filters_of_the_service_and_of_ours(ansible: Ansible) -> None:
    web, _db, stopped = order(ansible.client, "web-1", "db-1", "web-2")
    ansible.control("PATCH", f"/servers/{stopped}", {"status": "stopped"})
    address = ansible.client.servers.get(int(web)).ip
    with Watched(ansible) as watched:
        found = listed(
            ansible,
            {"api_filters": {"status": "{{ wanted }}"}, "filters": ["hosting_name is match(start)"]},
            "-e",
            "wanted=active start=web",
        )
        assert list(found.hosts) == ["web-1"]
        assert list(listed(ansible, {"api_filters": {"ip": address}}).hosts) == ["web-1"]
        assert list(listed(ansible, {"filters": "{{ hosting_power == 'stopped' and hosting_name in ['web-2', 'db-1'] }}"}).hosts) == [
            "web-2"
        ]
    assert watched.reads[0] == "/servers limit=100&status=active"
    assert watched.reads[1] == f"/servers limit=100&ip={address}"


def test_a_filter_that_cannot_be_evaluated(ansible: Ansible) -> None:
    """Leaves the host out and says so; with ``strict`` it ends the listing."""
    one, two, _ = order(ansible.client, "web-1", "web-2", "known")
    found = listed(ansible, {"filters": "hosting_name == 'known' or nowhere == 1"})
    assert list(found.hosts) == ["known"]
    assert found.said.count("WARNING") == 1
    said = " ".join(found.said.split())
    assert f"nowhere == 1\" cannot be evaluated for servers {one}, {two}: 'nowhere' is undefined. What it cannot" in said
    found = listed(ansible, {"filters": "nowhere == 1", "strict": True}, well=False)
    assert "'nowhere' is undefined. Next: correct it" in " ".join(found.said.split())


def test_what_is_left_empty_is_not_given(ansible: Ansible) -> None:
    order(ansible.client, "web-1")
    assert list(listed(ansible, {"filters": None, "api_filters": None, "compose": None}).hosts) == ["web-1"]


def test_a_server_that_moves_between_pages_comes_once(ansible: Ansible) -> None:
    order(ansible.client, "web-1")
    (server,) = ansible.client.servers.list()
    shown = json.loads(server.model_dump_json())
    ansible.control("POST", "/faults", {"method": "GET", "path": "^/servers$", "action": {"patch": {"data": [shown, shown]}}})
    found = listed(ansible, {})
    assert list(found.hosts) == ["web-1"]
    assert found.said == ""


# --- where


def test_where_to_connect_to(ansible: Ansible) -> None:
    (id,) = order(ansible.client, "web-1")
    (v4, v6) = ansible.client.servers.get(int(id)).ips or []
    assert ":" in v6

    def place(*ways: str, **options: Any) -> Any:
        return listed(ansible, {"connect_with": list(ways), **options}).hosts["web-1"].get("ansible_host")

    assert place("public_ipv4") == v4
    assert place("public_ipv6", "public_ipv4") == v6
    assert place("hostname") == "web-1"
    assert place("none") is None


def test_addresses_cost_one_request_each(ansible: Ansible, dialect: str) -> None:
    named, _plain = order(ansible.client, "web-1", "web-2")
    entry = next(ip for ip in ansible.client.servers.ips.list(int(named)) if ip.primary)
    ansible.client.servers.ips.set_ptr(int(named), entry.id, domain="web-1.example.com")
    with Watched(ansible) as watched:
        found = listed(ansible, {"addresses": True, "connect_with": "ipv4_dns_ptr"})
    assert len(watched.reads) == 3
    assert found.hosts["web-1"]["ansible_host"] == "web-1.example.com"
    assert "ansible_host" not in found.hosts["web-2"]
    first = found.hosts["web-1"]["hosting_addresses"][0]
    assert (first["id"], first["address"], first["version"], first["primary"], first["ptr"], first["price_monthly"]) == (
        f"{named}/{entry.id}",
        entry.address,
        4,
        True,
        "web-1.example.com",
        "0.00",
    )


def test_a_host_without_an_address_is_a_note_not_a_failure(ansible: Ansible) -> None:
    order(ansible.client, "web-1")
    (server,) = ansible.client.servers.list()
    shown = {**json.loads(server.model_dump_json()), "ip": None, "primary_ip": "-oProxyCommand=id", "ips": []}
    ansible.control("POST", "/faults", {"method": "GET", "path": "^/servers$", "action": {"patch": {"data": [shown]}}})
    inventory = write(ansible, {})
    done = subprocess.run(
        [str(BIN / "ansible-inventory"), "-i", str(inventory), "--graph", "--vars", "-v"],
        env=ansible.environ,
        cwd=ansible.home,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "web-1: it has nothing to connect to by public_ipv4" in done.stdout + done.stderr
    assert "ansible_host" not in done.stdout


# --- cache


def cached(ansible: Ansible, **options: Any) -> dict[str, Any]:
    return {"cache": True, "cache_plugin": "jsonfile", "cache_connection": str(ansible.home / "cache"), **options}


def test_a_hit_sends_nothing_and_imports_no_http(ansible: Ansible) -> None:
    order(ansible.client, "web-1", "db-1")
    imports = {"PYTHONPROFILEIMPORTTIME": "1"}

    def imported(said: str) -> set[str]:
        return {line.rpartition("|")[2].strip().partition(".")[0] for line in said.splitlines() if line.startswith("import time:")}

    heavy = {"httpx", "httpcore", "pydantic", "tenacity", "pulumi_hosting", "pulumi"}
    with Watched(ansible) as miss:
        first = listed(ansible, cached(ansible), environ=imports)
    with Watched(ansible) as hit:
        second = listed(ansible, cached(ansible), environ=imports)
    assert (len(miss.reads), len(hit.reads)) == (1, 0)
    assert imported(first.said) & heavy == heavy - {"pulumi"}
    assert imported(second.said) & heavy == set()
    assert second.listing == first.listing
    stored = "".join(path.read_text() for path in (ansible.home / "cache").iterdir())
    assert "web-1" in stored
    assert ansible.emulator.live_key not in stored


def test_what_is_cached_answers_one_question_only(ansible: Ansible) -> None:
    """Names, variables and filters of ours are applied to what is cached; another question to the service is asked."""
    order(ansible.client, "web-1", "db-1")
    other = ansible.control("POST", "/accounts", {})["live_key"]
    listed(ansible, cached(ansible))
    with Watched(ansible) as watched:
        found = listed(ansible, cached(ansible, filters="hosting_name == 'db-1'", hostname="x-{{ hosting_name }}", connect_with="hostname"))
        assert found.hosts["x-db-1"]["ansible_host"] == "db-1"
    assert watched.reads == []
    with Watched(ansible) as watched:
        assert listed(ansible, cached(ansible, api_filters={"status": "stopped"})).hosts == {}
        assert listed(ansible, cached(ansible), environ={"HOSTING_API_KEY": other}).hosts == {}
        assert len(listed(ansible, cached(ansible), "--flush-cache").hosts) == 2
    assert len(watched.reads) == 3


# --- keys


def test_a_key_from_a_template_a_vault_or_extra_variables(ansible: Ansible) -> None:
    order(ansible.client, "web-1")
    key, url = ansible.emulator.live_key, ansible.emulator.base_url
    bare = {"HOSTING_API_KEY": "", "HOSTING_BASE_URL": "", "MY_KEY": key, "MY_URL": url}
    templates = {"api_key": "{{ lookup('env', 'MY_KEY') }}", "base_url": "{{ lookup('env', 'MY_URL') }}"}
    assert list(listed(ansible, templates, environ=bare).hosts) == ["web-1"]
    variables = {"api_key": "{{ my_key }}", "base_url": "{{ my_url }}"}
    assert list(listed(ansible, variables, "-e", f"my_key={key} my_url={url}", environ=bare).hosts) == ["web-1"]

    password = ansible.home / "vault"
    password.write_text("open sesame\n")
    vaulted = subprocess.run(
        [str(BIN / "ansible-vault"), "encrypt_string", "--vault-password-file", str(password), "--stdin-name", "api_key"],
        env=ansible.environ, cwd=ansible.home, input=key, capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    text = f"plugin: {PLUGIN}\nbase_url: {url}\n{vaulted}"
    assert key not in text
    assert list(listed(ansible, text, "--vault-password-file", str(password), environ=bare).hosts) == ["web-1"]
    refused = listed(ansible, text, environ=bare, well=False)
    assert "no vault secrets found" in refused.said


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api_key": "vk_live_wrongwrongwrongwrongwrongwrong"}, "the API key is not valid. Next: check HOSTING_API_KEY"),
        ({"api_key": "{{ nowhere }}"}, "api_key cannot be resolved: 'nowhere' is undefined. Next: correct it"),
        ({"api_key": "{{ 'vk_live_wrongwrongwrong' | nothing }}"}, "api_key cannot be resolved: "),
        ({"base_url": "ftp://nowhere"}, "the base URL must be https"),
        ({"filter": "true"}, "'filter' is no option of hosting.cloud.servers. Next: correct it"),
        ({"filters": [1]}, "filters must be an expression or a list of expressions"),
        (
            {"api_filters": {"os": "debian-12"}},
            "api_filters: the service does not compare 'os', only status and ip. Next: say it in filters",
        ),
        ({"api_filters": {"status": "running"}}, "api_filters: status: Input should be 'active', "),
        ({"connect_with": "ipv4_dns_ptr"}, "connect_with: ipv4_dns_ptr needs the addresses of every server, one request each"),
        ({"connect_with": "private_ipv4"}, "private_ipv4"),
        ({"hostvars_prefix": ""}, "hostvars_prefix and hostvars_suffix make 'name' of 'name', which no variable may be called"),
        ({"hostname": "{{ nowhere }}"}, "hostname names no host for server"),
        ({"hostname": "{{ hosting_notes }}"}, "it gives nothing. Next: correct the template"),
    ],
)
def test_refusals_are_one_line(ansible: Ansible, options: dict[str, Any], message: str) -> None:
    order(ansible.client, "web-1")
    found = listed(ansible, options, "-vvvv", well=False)
    said = " ".join(found.said.split())
    assert message in said
    assert "Traceback" not in said
    assert "vk_live_" not in said


def test_a_refusal_of_the_service_has_its_code_and_request(ansible: Ansible) -> None:
    ansible.control("POST", "/faults", {"path": "^/servers$", "times": 9, "action": {"status": 403, "code": "account_suspended"}})
    said = " ".join(listed(ansible, {}, well=False).said.split())
    assert "list_servers: the account is suspended. Next: contact the provider (403 account_suspended, request " in said
    assert "Traceback" not in said


def test_files_of_other_names_are_not_ours(ansible: Ansible) -> None:
    order(ansible.client, "web-1")
    for name in ("hosting_cloud.yaml", "production.hosting.yml"):
        assert list(listed(ansible, {}, name=name).hosts) == ["web-1"]
    assert "could not be verified" in listed(ansible, {}, name="servers.yml", well=False).said


def test_without_and_with_an_old_core(ansible: Ansible, tmp_path: Path) -> None:
    """One line that says what to install, and into which interpreter. What is cached needs no core."""
    order(ansible.client, "web-1")
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    (packages,) = bare.glob("lib/python*/site-packages")
    (packages / "all.pth").write_text("\n".join(site.getsitepackages()))
    interpreter = str(bare / "bin" / "python")
    command = (interpreter, "-m", "ansible", "inventory")
    said = " ".join(listed(ansible, {}, well=False, command=command).said.split())
    assert "pulumi-hosting >= 0.1.0" in said
    assert interpreter in said
    assert "Traceback" not in said
    listed(ansible, cached(ansible))
    assert list(listed(ansible, cached(ansible), command=command).hosts) == ["web-1"]

    (packages / "all.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    old = packages / "pulumi_hosting-0.0.9.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: pulumi-hosting\nVersion: 0.0.9\n")
    said = " ".join(listed(ansible, {}, well=False, command=command).said.split())
    assert "version 0.0.9 is installed" in said
    assert interpreter in said


# --- documentation


def test_examples_run(ansible: Ansible) -> None:
    """Every example lists the servers it should, as printed."""
    plugin = importlib.import_module("ansible_collections.hosting.cloud.plugins.inventory.servers")
    order(ansible.client, "web-1", "db-1")
    examples = [
        text for text in plugin.EXAMPLES.replace("https://api.example.com/v1", ansible.emulator.base_url).split("---\n") if text.strip()
    ]
    assert len(examples) == 7
    names = [
        list(listed(ansible, {**yaml.safe_load(text), "strict": True}, "-e", f"vault_hosting_api_key={ansible.emulator.live_key}").hosts)
        for text in examples
    ]
    both = ["db-1", "web-1"]
    assert names == [both, both, both, ["web-1"], both, ["db-1.example.com", "web-1.example.com"], both]


def test_ansible_doc_shows_every_option(ansible: Ansible) -> None:
    done = subprocess.run(
        [str(BIN / "ansible-doc"), "-t", "inventory", "--json", PLUGIN],
        env=ansible.environ, cwd=ansible.home, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    options = json.loads(done.stdout)[PLUGIN]["doc"]["options"]
    assert {"api_key", "base_url", "filters", "keyed_groups", "cache", "strict"} <= set(options)
    assert all("type" in option and option["description"] for name, option in options.items() if name != "cache_prefix")
    assert done.stderr == ""
