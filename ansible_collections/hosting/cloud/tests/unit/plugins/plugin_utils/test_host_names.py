# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""Names of hosts and addresses to connect to. Nothing here needs the core."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.hosting.cloud.plugins.plugin_utils.host_names import (
    address_of,
    connection_address,
    host_names,
    ip_version,
    is_host_name,
)


def server(**fields: Any) -> dict[str, Any]:
    return {"id": "1", "name": "web-1", "hostname": None, "ip": None, "ips": [], "addresses": [], **fields}


# --- names


@pytest.mark.parametrize("name", ["web-1", "web_1.example.com", "1", "größe", "_"])
def test_valid_names(name: str) -> None:
    assert is_host_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-oProxyCommand=id",
        ".",
        "..",
        "../x",
        "a/b",
        "a:b",
        "a,b",
        "a b",
        "a\n",
        "{{ x }}",
        "a[1:3]",
        "w" * 254,
        None,
        1,
    ],
)
def test_names_that_are_not_valid(name: Any) -> None:
    assert not is_host_name(name)


def test_a_unique_name_stays() -> None:
    assert host_names([("web-1", "1"), ("web-2", "2"), ("203.0.113.7", "3"), ("2001:db8::1", "4")]) == [
        "web-1",
        "web-2",
        "203.0.113.7",
        "2001:db8::1",
    ]


def test_servers_of_one_name_get_their_ids() -> None:
    assert host_names([("a", "1"), ("b", "2"), ("a", "3")]) == ["a-1", "b", "a-3"]
    assert host_names([("203.0.113.7", "1"), ("203.0.113.7", "2")]) == ["server-1", "server-2"]


def test_a_name_with_an_id_is_unique_too() -> None:
    """The name that one server gets may be another server's name, and so on."""
    found = host_names([("a", "1"), ("a", "2"), ("a-1", "3"), ("a-1-3", "4")])
    assert found == ["a-1", "a-2", "a-1-3", "a-1-3-4"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("localhost", "localhost-7"),
        ("127.0.0.1", "server-7"),
        ("::1", "server-7"),
        ("all", "all-7"),
        ("ungrouped", "ungrouped-7"),
    ],
)
def test_a_name_with_a_meaning_to_ansible(name: str, expected: str) -> None:
    assert host_names([(name, "7")]) == [expected]


def test_a_name_of_a_group_and_names_that_are_not_valid() -> None:
    assert host_names([("hosting", "7"), ("", "8"), ("-x", "9")], taken=("hosting",)) == [
        "hosting-7",
        "server-8",
        "server-9",
    ]


# --- addresses


def test_the_primary_address_comes_first() -> None:
    both = server(ip="203.0.113.7", ips=["198.51.100.1", "203.0.113.7", "2001:db8::1"])
    assert address_of(both, 4) == "203.0.113.7"
    assert address_of(both, 6) == "2001:db8::1"
    assert address_of(server(ip="2001:db8::2", ips=["198.51.100.1", "2001:db8::1"]), 4) == "198.51.100.1"
    assert address_of(server(ips=None), 4) is None


@pytest.mark.parametrize(
    "text", ["-oProxyCommand=id", "fe80::1%-oProxyCommand=id", "203.0.113.7 -x", "web-1", "", None, 7]
)
def test_only_addresses_are_connected_to(text: Any) -> None:
    assert ip_version(text) is None
    assert connection_address(server(ip=text, ips=[text]), ["public_ipv4", "public_ipv6"]) is None


def test_the_first_kind_that_the_server_has() -> None:
    six = server(ip="2001:db8::1", hostname="panel.example.com")
    assert connection_address(six, ["public_ipv4", "public_ipv6"]) == "2001:db8::1"
    assert connection_address(six, ["hostname", "public_ipv6"]) == "panel.example.com"
    assert connection_address(server(hostname="-x"), ["hostname"]) == "web-1"
    assert connection_address(six, ["none"]) is None
    assert connection_address(six, []) is None


def test_the_reverse_dns_name_of_the_public_address() -> None:
    entries = [
        {"address": "198.51.100.1", "ptr": "other.example.com"},
        {"address": "203.0.113.7", "ptr": "web-1.example.com"},
    ]
    named = server(ip="203.0.113.7", addresses=entries)
    assert connection_address(named, ["ipv4_dns_ptr"]) == "web-1.example.com"
    assert (
        connection_address(
            server(ip="203.0.113.7", addresses=[{"address": "203.0.113.7", "ptr": None}]), ["ipv4_dns_ptr"]
        )
        is None
    )
    assert (
        connection_address(
            server(ip="203.0.113.7", addresses=[{"address": "203.0.113.7", "ptr": "-x"}]), ["ipv4_dns_ptr"]
        )
        is None
    )
    assert connection_address(server(), ["ipv4_dns_ptr"]) is None
