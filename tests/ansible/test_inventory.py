"""The inventory ``hosting.cloud.servers``, in this process against an emulator in this process, its requests
counted.

The real ``ansible-inventory`` is in test_inventory_commands.py.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleError, AnsibleParserError

from ansible_collections.hosting.cloud.plugins.inventory import servers as plugin
from ansible_collections.hosting.cloud.tests.unit.plugins.inventory.test_servers import *  # noqa: F403  # they count here as well
from ansible_collections.hosting.cloud.tests.unit.plugins.plugin_utils.test_host_names import *  # noqa: F403  # the same
from pulumi_hosting.client import retry
from tests.ansible.local_inventory import BASE_URL, LocalInventory
from tests.support.account import Account


@pytest.fixture(params=["spec"])
def inventory(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> LocalInventory:
    # for relative paths of caches, and for what an evaluated template would leave
    monkeypatch.chdir(tmp_path)
    return LocalInventory(Account(dialect=request.param), tmp_path, monkeypatch)


# --- hosts


@pytest.mark.parametrize("inventory", ["spec", "live"], indirect=True)
def test_servers_become_hosts(inventory: LocalInventory) -> None:
    inventory.order("web-1", "web-2")
    found = inventory.listed({})
    assert inventory.requests() == ["/servers limit=100"]
    assert found.warnings == []
    assert found.groups["hosting"] == ["web-1", "web-2"]
    for server in inventory.client().servers.list():
        variables = found.hosts[server.name]
        assert (variables["hosting_id"], variables["hosting_name"], variables["hosting_mode"]) == (
            str(server.id),
            server.name,
            "live",
        )
        assert (variables["hosting_status"], variables["hosting_ip"], variables["ansible_host"]) == (
            "active",
            server.ip,
            server.ip,
        )


def test_every_page_is_read(inventory: LocalInventory) -> None:
    key = inventory.emulator.new_key(scopes="full", rate_per_minute=10_000, rate_expensive_per_minute=10_000)
    inventory.order(*(f"web-{number}" for number in range(101)), key=key)
    assert len(inventory.listed({}).hosts) == 101
    first, second = inventory.requests()
    assert first == "/servers limit=100"
    assert "limit=100" in second


def test_groups_and_composed_variables(inventory: LocalInventory) -> None:
    inventory.order("web-1", "db-1")
    found = inventory.listed(
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
        }
    )
    both = ["db-1", "web-1"]
    assert {name: sorted(hosts) for name, hosts in found.groups.items() if hosts} == {
        "all": both,
        "shop": both,
        "status_active": both,
        "location_amsterdam": both,
        "debian_12": both,
        "tariff_vds_1": both,
        "webservers": ["web-1"],
    }
    assert found.hosts["db-1"]["ansible_user"] == "root"
    assert len(found.hosts["db-1"]["due_on"]) == 10


def test_a_simulated_server_has_mode_test(inventory: LocalInventory, monkeypatch: pytest.MonkeyPatch) -> None:
    inventory.order("web-1")
    (simulated,) = inventory.order("tried", key=inventory.emulator.test_key)
    assert list(inventory.listed({}).hosts) == ["web-1"]
    monkeypatch.setenv("HOSTING_API_KEY", inventory.emulator.test_key)
    found = inventory.listed({})
    assert {name: variables["hosting_mode"] for name, variables in found.hosts.items()} == {
        "web-1": "live",
        "tried": "test",
    }
    assert found.hosts["tried"]["hosting_id"] == simulated


def test_a_cancelled_server_is_no_host_unless_selected(inventory: LocalInventory) -> None:
    inventory.emulator.variant(deleted_servers="listed")
    gone, living = inventory.order("web-1", "web-1")
    inventory.client().servers.delete(int(gone))
    found = inventory.listed({})
    assert [variables["hosting_id"] for variables in found.hosts.values()] == [living]
    assert found.warnings == []
    found = inventory.listed({"api_filters": {"status": "cancelled"}})
    assert found.hosts["web-1"]["hosting_id"] == gone


def test_a_server_that_moves_between_pages_comes_once(inventory: LocalInventory) -> None:
    inventory.order("web-1")
    (server,) = inventory.client().servers.list()
    shown = json.loads(server.model_dump_json())
    inventory.emulator.fault({"patch": {"data": [shown, shown]}}, method="GET", path="^/servers$")
    found = inventory.listed({})
    assert list(found.hosts) == ["web-1"]
    assert found.warnings == []


# --- names


def test_no_server_is_lost(inventory: LocalInventory) -> None:
    """A host whose name is not unique or not valid gets the server's id in its name, and a warning says
    so."""
    one, two, local, group, option, path, text = inventory.order(
        "twin", "twin", "localhost", "hosting", "a", "b", "c"
    )
    template = "{{ lookup('pipe', 'touch pwned') }}"
    for id, name in ((option, "-oProxyCommand=id"), (path, "../x"), (text, template)):
        inventory.emulator.control("PATCH", f"/servers/{id}", {"name": name})
    found = inventory.listed(
        {"compose": {"again": "hosting_name"}, "keyed_groups": [{"key": "hosting_name", "prefix": "named"}]}
    )
    assert {name: variables["hosting_id"] for name, variables in found.hosts.items()} == {
        f"twin-{one}": one,
        f"twin-{two}": two,
        f"localhost-{local}": local,
        f"hosting-{group}": group,
        f"server-{option}": option,
        f"server-{path}": path,
        f"server-{text}": text,
    }
    assert (
        f"servers {one}, {two} are all called 'twin'. Their hosts are twin-{one}, twin-{two}"
    ) in found.warnings
    for id in (local, group, option, path, text):
        assert [warning for warning in found.warnings if warning.startswith(f"server {id} is called")]
    assert found.hosts[f"server-{text}"]["again"] == template
    assert not Path("pwned").exists()


def test_values_of_the_api_are_never_evaluated(inventory: LocalInventory) -> None:
    """Read from the API and from the cache alike."""
    (id,) = inventory.order("web-1")
    notes = "{{ lookup('pipe', 'touch pwned') }}"
    inventory.emulator.control("PATCH", f"/servers/{id}", {"notes": notes})
    for _ in range(2):
        found = inventory.listed(cached(inventory, filters="hosting_notes", hostname="{{ hosting_name }}"))
        assert found.hosts["web-1"]["hosting_notes"] == notes
    assert len(inventory.requests()) == 1
    assert not Path("pwned").exists()


def test_names_and_variables_of_your_own(inventory: LocalInventory) -> None:
    inventory.order("web-1")
    options = {
        "hostname": "{{ vds_name_now }}.{{ domain }}",
        "hostvars_prefix": "vds_",
        "hostvars_suffix": "_now",
        "group": "",
    }
    found = inventory.listed(options, extra_vars=["domain=example.com"])
    assert list(found.hosts) == ["web-1.example.com"]
    assert found.hosts["web-1.example.com"]["vds_status_now"] == "active"
    assert "hosting" not in found.groups


# --- filters


def test_filters_of_the_api_and_of_the_plugin(inventory: LocalInventory) -> None:
    web, _db, stopped = inventory.order("web-1", "db-1", "web-2")
    inventory.emulator.control("PATCH", f"/servers/{stopped}", {"status": "stopped"})
    address = inventory.client().servers.get(int(web)).ip
    before = len(inventory.requests())
    options: dict[str, Any] = {
        "api_filters": {"status": "{{ wanted }}"},
        "filters": ["hosting_name is match(start)"],
    }
    assert list(inventory.listed(options, extra_vars=["wanted=active start=web"]).hosts) == ["web-1"]
    assert list(inventory.listed({"api_filters": {"ip": address}}).hosts) == ["web-1"]
    template = "{{ hosting_power == 'stopped' and hosting_name in ['web-2', 'db-1'] }}"
    assert list(inventory.listed({"filters": template}).hosts) == ["web-2"]
    assert inventory.requests()[before:] == [
        "/servers limit=100&status=active",
        f"/servers limit=100&ip={address}",
        "/servers limit=100",
    ]


def test_a_filter_that_cannot_be_evaluated(inventory: LocalInventory) -> None:
    """The host is left out with a warning; with ``strict`` it is an error."""
    one, two, _ = inventory.order("web-1", "web-2", "known")
    found = inventory.listed({"filters": "hosting_name == 'known' or nowhere == 1"})
    assert list(found.hosts) == ["known"]
    (warning,) = found.warnings
    assert f"nowhere == 1\" cannot be evaluated for servers {one}, {two}: 'nowhere' is undefined" in warning
    assert warning.endswith(f"Left out: servers {one}, {two}")
    with pytest.raises(AnsibleParserError, match=r"'nowhere' is undefined.* Next: correct it"):
        inventory.listed({"filters": "nowhere == 1", "strict": True})


def test_an_empty_option_is_as_one_not_given(inventory: LocalInventory) -> None:
    inventory.order("web-1")
    assert list(inventory.listed({"filters": None, "api_filters": None, "compose": None}).hosts) == ["web-1"]


# --- addresses


def test_ansible_host_follows_the_option_connect_with(inventory: LocalInventory) -> None:
    (id,) = inventory.order("web-1")
    (v4, v6) = inventory.client().servers.get(int(id)).ips or []
    assert ":" in v6
    for kinds, address in (
        (["public_ipv4"], v4),
        (["public_ipv6", "public_ipv4"], v6),
        (["hostname"], "web-1"),
        (["none"], None),
    ):
        assert inventory.listed({"connect_with": kinds}).hosts["web-1"].get("ansible_host") == address


@pytest.mark.parametrize("inventory", ["spec", "live"], indirect=True)
def test_addresses_cost_one_request_each(inventory: LocalInventory) -> None:
    named, _other = inventory.order("web-1", "web-2")
    client = inventory.client()
    entry = next(ip for ip in client.servers.ips.list(int(named)) if ip.primary)
    client.servers.ips.set_ptr(int(named), entry.id, domain="web-1.example.com")
    before = len(inventory.requests())
    found = inventory.listed({"addresses": True, "connect_with": "ipv4_dns_ptr"})
    assert len(inventory.requests()) - before == 3
    assert found.hosts["web-1"]["ansible_host"] == "web-1.example.com"
    assert "ansible_host" not in found.hosts["web-2"]
    first = found.hosts["web-1"]["hosting_addresses"][0]
    assert (
        first["id"],
        first["address"],
        first["version"],
        first["primary"],
        first["ptr"],
        first["price_monthly"],
    ) == (
        f"{named}/{entry.id}",
        entry.address,
        4,
        True,
        "web-1.example.com",
        "0.00",
    )


@pytest.mark.parametrize(
    "action", [{"status": 502, "code": "upstream_error"}, {"patch": {"data": 7}}], ids=str
)
def test_a_server_whose_addresses_cannot_be_read_stays(
    inventory: LocalInventory, action: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and the next run asks again, also with a cache. With strict it is an error."""
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0.0)
    options = {"addresses": True, **cached(inventory)}
    _first, second, _third = inventory.order("web-1", "web-2", "web-3")
    inventory.emulator.fault(action, path=f"^/servers/{second}/ips", times=10_000)
    found = inventory.listed(options)
    assert [host.get("hosting_addresses") is None for host in found.hosts.values()] == [False, True, False]
    (warning,) = found.warnings
    assert re.match(r"the addresses of server 'web-2' are not known: .*list_server_ips", warning)
    with pytest.raises(AnsibleParserError, match="list_server_ips"):
        inventory.listed({**options, "strict": True})
    inventory.emulator.control("DELETE", "/faults")
    assert all(host["hosting_addresses"] for host in inventory.listed(options).hosts.values())


def test_after_three_lists_that_failed_no_other_is_asked_for(
    inventory: LocalInventory,
) -> None:
    inventory.order(*(f"web-{number}" for number in range(5)))
    inventory.emulator.fault({"patch": {"data": 7}}, path="/ips", times=10_000)
    found = inventory.listed({"addresses": True})
    assert (len(found.hosts), len(found.warnings)) == (5, 5)
    assert len([line for line in inventory.requests() if "/ips" in line]) == 3


@pytest.mark.parametrize("cache", [False, True])
def test_filters_come_before_the_addresses(inventory: LocalInventory, cache: bool) -> None:
    """Only the hosts that the filters keep cost a request; a filter that reads the addresses comes after."""
    ids = inventory.order(*(f"web-{n}" for n in range(15)))
    options: dict[str, Any] = {"addresses": True, **(cached(inventory) if cache else {})}
    before = len(inventory.requests())
    found = inventory.listed(
        {**options, "filters": ["hosting_name == 'web-7'", "hosting_addresses | length > 1"]}
    )
    assert list(found.hosts) == ["web-7"]
    assert found.hosts["web-7"]["hosting_addresses"]
    assert inventory.requests()[before:] == ["/servers limit=100", f"/servers/{ids[7]}/ips "]
    # Another filter asks for what is not known yet, and no more.
    again = inventory.listed({**options, "filters": "hosting_name in ['web-7', 'web-8']"})
    assert [len(host["hosting_addresses"]) > 0 for host in again.hosts.values()] == [True, True]
    assert len(inventory.requests()) - before == (3 if cache else 5)
    late = inventory.listed({**options, "filters": "hosting_addresses | length > 9"})
    assert late.hosts == {}
    assert len(inventory.requests()) - before == (3 + 13 if cache else 5 + 16)


def test_warnings_name_a_count_and_the_first_ids(inventory: LocalInventory) -> None:
    ids = inventory.order(*["twin"] * 15)
    (filtered,) = inventory.listed({"filters": "nowhere == 1"}).warnings
    assert f"for 15 servers ({', '.join(ids[:5])}, …): 'nowhere' is undefined" in filtered
    (renamed,) = inventory.listed({}).warnings
    assert renamed == (
        f"15 servers ({', '.join(ids[:5])}, …) are all called 'twin'. "
        f"Their hosts are {', '.join(f'twin-{id}' for id in ids[:5])}, …"
    )


def test_a_server_without_an_address_is_still_a_host(inventory: LocalInventory) -> None:
    inventory.order("web-1")
    (server,) = inventory.client().servers.list()
    shown = {**json.loads(server.model_dump_json()), "ip": None, "primary_ip": "-oProxyCommand=id", "ips": []}
    inventory.emulator.fault({"patch": {"data": [shown]}}, method="GET", path="^/servers$")
    found = inventory.listed({})
    assert "ansible_host" not in found.hosts["web-1"]
    assert "web-1: no ansible_host, the server has no public_ipv4" in found.verbose


# --- cache


def cached(inventory: LocalInventory, **options: Any) -> dict[str, Any]:
    return {
        "cache": True,
        "cache_plugin": "jsonfile",
        "cache_connection": str(inventory.home / "cache"),
        **options,
    }


def test_a_cached_inventory_sends_no_request_and_holds_no_key(inventory: LocalInventory) -> None:
    inventory.order("web-1", "db-1")
    first = inventory.listed(cached(inventory))
    assert inventory.listed(cached(inventory)).hosts == first.hosts
    assert len(inventory.requests()) == 1
    # as meta: refresh_inventory asks
    assert inventory.listed(cached(inventory), keep_cache=False).hosts == first.hosts
    assert len(inventory.requests()) == 2
    stored = "".join(path.read_text() for path in (inventory.home / "cache").iterdir())
    assert "web-1" in stored
    assert inventory.emulator.live_key not in stored


def test_options_of_the_plugin_apply_to_the_cache_and_those_of_the_api_do_not(
    inventory: LocalInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory.order("web-1", "db-1")
    inventory.listed(cached(inventory))
    found = inventory.listed(
        cached(
            inventory,
            filters="hosting_name == 'db-1'",
            hostname="x-{{ hosting_name }}",
            connect_with="hostname",
        )
    )
    assert found.hosts["x-db-1"]["ansible_host"] == "db-1"
    assert len(inventory.requests()) == 1
    assert inventory.listed(cached(inventory, api_filters={"status": "stopped"})).hosts == {}
    monkeypatch.setenv("HOSTING_API_KEY", inventory.emulator.control("POST", "/accounts", {})["live_key"])
    assert inventory.listed(cached(inventory)).hosts == {}
    assert len(inventory.requests()) == 3


# --- keys


def test_a_key_from_a_template_or_extra_variables(
    inventory: LocalInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory.order("web-1")
    key = inventory.emulator.live_key
    monkeypatch.delenv("HOSTING_API_KEY")
    monkeypatch.delenv("HOSTING_BASE_URL")
    monkeypatch.setenv("MY_KEY", key)
    assert list(
        inventory.listed({"api_key": "{{ lookup('env', 'MY_KEY') }}", "base_url": BASE_URL}).hosts
    ) == ["web-1"]
    variables = {"api_key": "{{ my_key }}", "base_url": "{{ my_url }}"}
    assert list(inventory.listed(variables, extra_vars=[f"my_key={key} my_url={BASE_URL}"]).hosts) == [
        "web-1"
    ]


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"api_key": "vk_live_wrongwrongwrongwrongwrongwrong"},
            "the API key is not valid. Next: check the option api_key",
        ),
        (
            {"api_key": "{{ nowhere }}"},
            "api_key cannot be resolved: 'nowhere' is undefined. Next: correct the template",
        ),
        ({"api_key": "{{ 'vk_live_wrongwrongwrong' | nothing }}"}, "api_key cannot be resolved: "),
        ({"base_url": "ftp://nowhere"}, "the base URL 'ftp://nowhere' must be https"),
        ({"filter": "true"}, "'filter' is no option of hosting.cloud.servers. Next: correct it"),
        ({"filters": [1]}, "filters must be an expression or a list of expressions"),
        (
            {"api_filters": {"os": "debian-12"}},
            (
                "api_filters: the API has no filter 'os', only status and ip. Next: use "
                "the option filters for it"
            ),
        ),
        ({"api_filters": {"status": "run ning"}}, "api_filters: status: "),
        (
            {"connect_with": "ipv4_dns_ptr"},
            "connect_with: ipv4_dns_ptr needs the addresses of the hosts, one request each",
        ),
        ({"connect_with": "private_ipv4"}, "private_ipv4"),
        (
            {"hostvars_prefix": ""},
            "hostvars_prefix and hostvars_suffix turn 'name' into 'name', which is no valid variable name",
        ),
        ({"hostname": "{{ nowhere }}"}, "hostname gives no name for server"),
        ({"hostname": "{{ hosting_notes }}"}, "the result is empty. Next: correct the template"),
    ],
)
def test_a_refusal_is_one_line(inventory: LocalInventory, options: dict[str, Any], message: str) -> None:
    inventory.order("web-1")
    with pytest.raises(AnsibleError) as caught:
        inventory.listed(options)
    assert message in str(caught.value)
    assert "vk_live_" not in str(caught.value)
    assert "\n" not in str(caught.value).strip()


def test_a_refusal_of_the_api_has_its_code_and_request(inventory: LocalInventory) -> None:
    inventory.emulator.fault({"status": 403, "code": "account_suspended"}, path="^/servers$", times=9)
    with pytest.raises(AnsibleParserError) as caught:
        inventory.listed({})
    start = "servers: the account is suspended. Next: contact the provider (403 account_suspended, "
    assert str(caught.value).startswith(start)


def test_rate_limit_timeout_bounds_the_wait(
    inventory: LocalInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = inventory.emulator.new_key(scopes="full", rate_per_minute=1)
    inventory.client(key).me()
    monkeypatch.setenv("HOSTING_API_KEY", key)
    with pytest.raises(AnsibleParserError, match=r"^the normal rate limit .* within 7 s.* Next: "):
        inventory.listed({"rate_limit_timeout": 7})
    assert inventory.requests() == ["/me "]


# --- documentation


def test_every_example_lists_servers(inventory: LocalInventory) -> None:
    inventory.order("web-1", "db-1")
    # The cache plugin by its short name, which needs no loader of collections in this process.
    text = plugin.EXAMPLES.replace("https://api.example.com/v1", BASE_URL).replace(
        "ansible.builtin.jsonfile", "jsonfile"
    )
    examples = [example for example in text.split("---\n") if example.strip()]
    assert len(examples) == 4
    key = [f"vault_hosting_api_key={inventory.emulator.live_key}"]
    names = [
        list(inventory.listed({**yaml.safe_load(example), "strict": True}, extra_vars=key).hosts)
        for example in examples
    ]
    both = ["db-1", "web-1"]
    assert names == [both, ["web-1"], ["db-1.example.com", "web-1.example.com"], both]
