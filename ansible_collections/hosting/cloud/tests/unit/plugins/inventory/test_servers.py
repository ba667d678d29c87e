# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# ruff: noqa: S101 — assert is how pytest asks
"""The documentation of the inventory plugin is what its code does. Nothing here needs the core."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.hosting.cloud.plugins.inventory import servers as plugin
from ansible_collections.hosting.cloud.plugins.plugin_utils.host_names import connection_address


def test_every_documented_kind_of_address_is_known() -> None:
    server = {"id": "1", "name": "web-1", "hostname": None, "ip": None, "ips": [], "addresses": []}
    for kind in yaml.safe_load(plugin.DOCUMENTATION)["options"]["connect_with"]["choices"]:
        connection_address(server, [kind])
    with pytest.raises(KeyError):
        connection_address(server, ["private_ipv4"])


def test_the_documented_file_names_are_those_of_the_plugin() -> None:
    documented = yaml.safe_load(plugin.DOCUMENTATION)["description"][1]
    assert all(f"C({name})" in documented for name in plugin.FILES)
    module = plugin.InventoryModule()
    assert not module.verify_file("servers.yml")
