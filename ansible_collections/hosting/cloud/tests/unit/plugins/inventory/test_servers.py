# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""What the inventory makes of what the service says: names and places to connect to. Nothing here needs the core."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ansible_collections.hosting.cloud.plugins.inventory import servers as plugin


def server(**fields: Any) -> dict[str, Any]:
    return {"id": "1", "name": "web-1", "hostname": None, "ip": None, "ips": [], "addresses": [], **fields}


# --- names


@pytest.mark.parametrize("name", ["web-1", "web_1.example.com", "1", "größe", "_"])
def test_a_host_name(name: str) -> None:
    assert plugin.is_host_name(name)


@pytest.mark.parametrize(
    "name", ["", "-oProxyCommand=id", ".", "..", "../x", "a/b", "a:b", "a,b", "a b", "a\n", "{{ x }}", "a[1:3]", "w" * 254, None, 1]
)
def test_no_host_name(name: Any) -> None:
    assert not plugin.is_host_name(name)


def test_a_name_of_its_own_stays() -> None:
    assert plugin.host_names([("web-1", "1"), ("web-2", "2"), ("203.0.113.7", "3"), ("2001:db8::1", "4")]) == [
        "web-1",
        "web-2",
        "203.0.113.7",
        "2001:db8::1",
    ]


def test_a_name_of_several_is_nobodys() -> None:
    assert plugin.host_names([("a", "1"), ("b", "2"), ("a", "3")]) == ["a-1", "b", "a-3"]
    assert plugin.host_names([("203.0.113.7", "1"), ("203.0.113.7", "2")]) == ["server-1", "server-2"]


def test_a_name_made_unique_meets_no_other() -> None:
    """The name given to one server may be the name of another, and so on."""
    found = plugin.host_names([("a", "1"), ("a", "2"), ("a-1", "3"), ("a-1-3", "4")])
    assert found == ["a-1", "a-2", "a-1-3", "a-1-3-4"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("localhost", "localhost-7"), ("127.0.0.1", "server-7"), ("::1", "server-7"), ("all", "all-7"), ("ungrouped", "ungrouped-7")],
)
def test_a_name_with_a_meaning_to_ansible(name: str, expected: str) -> None:
    assert plugin.host_names([(name, "7")]) == [expected]


def test_a_name_that_is_taken_by_a_group_or_is_none() -> None:
    assert plugin.host_names([("hosting", "7"), ("", "8"), ("-x", "9")], taken=("hosting",)) == ["hosting-7", "server-8", "server-9"]


# --- places


def test_the_primary_address_comes_first() -> None:
    both = server(ip="203.0.113.7", ips=["198.51.100.1", "203.0.113.7", "2001:db8::1"])
    assert plugin.address_of(both, 4) == "203.0.113.7"
    assert plugin.address_of(both, 6) == "2001:db8::1"
    assert plugin.address_of(server(ip="2001:db8::2", ips=["198.51.100.1", "2001:db8::1"]), 4) == "198.51.100.1"
    assert plugin.address_of(server(ips=None), 4) is None


@pytest.mark.parametrize("text", ["-oProxyCommand=id", "fe80::1%-oProxyCommand=id", "203.0.113.7 -x", "web-1", "", None, 7])
def test_what_is_no_address_is_not_connected_to(text: Any) -> None:
    assert plugin.ip_version(text) is None
    assert plugin.place_of(server(ip=text, ips=[text]), ["public_ipv4", "public_ipv6"]) is None


def test_the_first_way_there_is() -> None:
    six = server(ip="2001:db8::1", hostname="panel.example.com")
    assert plugin.place_of(six, ["public_ipv4", "public_ipv6"]) == "2001:db8::1"
    assert plugin.place_of(six, ["hostname", "public_ipv6"]) == "panel.example.com"
    assert plugin.place_of(server(hostname="-x"), ["hostname"]) == "web-1"
    assert plugin.place_of(six, ["none"]) is None
    assert plugin.place_of(six, []) is None


def test_the_reverse_name_of_the_address_meant() -> None:
    entries = [{"address": "198.51.100.1", "ptr": "other.example.com"}, {"address": "203.0.113.7", "ptr": "web-1.example.com"}]
    named = server(ip="203.0.113.7", addresses=entries)
    assert plugin.place_of(named, ["ipv4_dns_ptr"]) == "web-1.example.com"
    assert plugin.place_of(server(ip="203.0.113.7", addresses=[{"address": "203.0.113.7", "ptr": None}]), ["ipv4_dns_ptr"]) is None
    assert plugin.place_of(server(ip="203.0.113.7", addresses=[{"address": "203.0.113.7", "ptr": "-x"}]), ["ipv4_dns_ptr"]) is None
    assert plugin.place_of(server(), ["ipv4_dns_ptr"]) is None


def test_every_way_is_documented_and_known() -> None:
    documented = yaml.safe_load(plugin.DOCUMENTATION)["options"]["connect_with"]["choices"]
    for way in documented:
        plugin.place_of(server(), [way])
    with pytest.raises(KeyError):
        plugin.place_of(server(), ["private_ipv4"])


def test_files_documented_are_the_ones_taken() -> None:
    said = yaml.safe_load(plugin.DOCUMENTATION)["description"][1]
    assert all(f"C({name})" in said for name in plugin.FILES)
