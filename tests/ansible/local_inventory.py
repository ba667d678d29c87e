"""The inventory plugin in this process, against an emulator in this process: what ansible-inventory does,
without its start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import constants, context
from ansible.inventory.data import InventoryData
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import fragment_loader
from ansible.utils.plugin_docs import add_fragments
from ansible.utils.vars import load_extra_vars

from ansible_collections.hosting.cloud.plugins.inventory import servers as plugin
from pulumi_hosting.client import client as client_module
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.in_process_transport import Transport
from tests.support.account import Account

BASE_URL = "http://127.0.0.1:1/v1"


@dataclass
class Listing:
    """What one inventory file gives: hosts with their variables, groups with their hosts, and what was
    printed."""

    hosts: dict[str, dict[str, Any]]
    groups: dict[str, list[str]]
    warnings: list[str]
    verbose: list[str]


@dataclass
class Display:
    """Instead of Ansible's display."""

    warnings: list[str] = field(default_factory=list)
    verbose: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def display(self, text: str, *, stderr: bool = False) -> None:
        assert stderr  # what ansible-inventory prints is JSON
        self.shown.append(text)

    def warning(self, text: str) -> None:
        self.warnings.append(text)

    def v(self, text: str) -> None:
        self.verbose.append(text)


class LocalInventory:
    """``listed({...})`` reads an inventory file with these options. The key and URL of the emulator are in
    the environment."""

    def __init__(self, emulator: Account, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.emulator, self.home = emulator, home
        self._patch = monkeypatch
        transport = Transport(emulator.core)
        monkeypatch.setenv("HOSTING_API_KEY", emulator.live_key)
        monkeypatch.setenv("HOSTING_BASE_URL", BASE_URL)
        monkeypatch.setattr(
            client_module, "Client", lambda *given, **options: Client(*given, **options, transport=transport)
        )

    def client(self, key: str | None = None) -> Client:
        return Client(key or self.emulator.live_key, BASE_URL, transport=Transport(self.emulator.core))

    def order(self, *names: str, key: str | None = None) -> list[str]:
        """Servers of these names, by id."""
        return [str(self.emulator.order(key, name=name)["server"]["id"]) for name in names]

    def requests(self) -> list[str]:
        """The reads so far, with their query."""
        requests = self.emulator.control("GET", "/requests?since=0")
        return [f"{request['path']} {request['query']}" for request in requests if request["method"] == "GET"]

    def listed(
        self,
        options: Mapping[str, Any] | str,
        *,
        extra_vars: Sequence[str] = (),
        keep_cache: bool = True,
    ) -> Listing:
        """Read a file with these options, or this text. Raises ``AnsibleParserError``."""
        path = self.home / "hosting.yml"
        path.write_text(
            options
            if isinstance(options, str)
            else yaml.safe_dump({"plugin": plugin.InventoryModule.NAME, **options})
        )
        self._patch.setattr(context, "CLIARGS", ImmutableDict(extra_vars=tuple(extra_vars)))
        self._patch.setattr(load_extra_vars, "extra_vars", None, raising=False)
        loader = DataLoader()
        module, display, inventory = made(), Display(), InventoryData()
        module.display = display
        assert module.verify_file(str(path))
        module.parse(inventory, loader, str(path), cache=keep_cache)
        if module.get_option("cache"):
            module.update_cache_if_changed()
        inventory.reconcile_inventory()
        hosts = {name: dict(host.vars) for name, host in sorted(inventory.hosts.items())}
        for variables in hosts.values():
            for internal in ("inventory_file", "inventory_dir"):
                variables.pop(internal, None)
        return Listing(hosts, inventory.get_groups_dict(), display.warnings, display.verbose)


def made() -> Any:
    """A plugin as Ansible's loader makes it: with its options, those of its documentation fragments
    included."""
    module = plugin.InventoryModule()
    documentation = yaml.safe_load(plugin.DOCUMENTATION)
    # By their short names, which need no loader of collections in this process.
    fragments = documentation["extends_documentation_fragment"]
    documentation["extends_documentation_fragment"] = [
        name.removeprefix("ansible.builtin.") for name in fragments
    ]
    add_fragments(documentation, plugin.__file__, fragment_loader=fragment_loader)
    constants.config.initialize_plugin_configuration_definitions(
        "inventory", module.NAME, documentation["options"]
    )
    module._load_name = module._redirected_names = module.NAME
    for name, value in {
        "ansible_name": module.NAME,
        "ansible_aliases": [module.NAME],
        "_original_path": plugin.__file__,
    }.items():
        setattr(module, name, value)
    return module
