# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The account's servers as hosts.

The steps: read the inventory file, resolve its templates, take the servers from the cache or from the API,
filter them, name the hosts, add them. Filters, names, variables and connection addresses are applied after
the cache, so a change of them sends no request. The core, and every HTTP library with it, is imported only
for a request.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: servers
short_description: Servers of a hosting account as an inventory
version_added: 0.1.0
description:
  - Reads the servers of an account at a provider with the Hosting Client API v1. Each becomes a host.
  - The name of the inventory file must end in C(hosting.yml), C(hosting.yaml), C(hosting_cloud.yml) or
    C(hosting_cloud.yaml), for example C(production.hosting.yml).
  - "A host's variables are what M(hosting.cloud.server_info) returns for the server
    (RV(hosting.cloud.server_info#module:servers)), each with a prefix, for example C(hosting_status). Ids and
    amounts are strings. C(hosting_mode) is V(test) for a server that was simulated with a test key."
  - Cancelled and terminated servers are left out, unless O(api_filters) selects them by status.
  - "A host gets the name of its server. If several servers have it, or it means something to Ansible, such as
    C(localhost), the host is called C(name-id). A name that is not valid in Ansible becomes C(server-id). A
    warning lists the renamed hosts."
author:
  - The pulumi-hosting authors (@pulumi-hosting)
requirements:
  - python >= 3.11
  - pulumi-hosting, for the Python that runs Ansible, in the version that requirements.txt names
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
notes:
  - "One request reads 100 servers. An API key may send 120 requests a minute. With O(cache) the servers are
    read once in O(cache_timeout) seconds. A cached inventory sends no request and does not need
    C(pulumi-hosting)."
  - "Each combination of file, key, O(base_url), O(api_filters) and O(addresses) has its own cache. All other
    options are applied to the cached servers."
  - "If a source cannot be read, Ansible warns, continues without it, and tries its other inventory plugins
    on the file. E(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED) makes it an error. V(hosting.cloud.servers) in
    E(ANSIBLE_INVENTORY_ENABLED), before V(auto), keeps the messages short."
  - "Values from the API are never evaluated as templates, and become an address to connect to only if they
    are a valid one."
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [hosting.cloud.servers]
  api_key:
    description:
      - The API key, C(vk_live_...) or C(vk_test_...), with the scope C(servers:read).
      - It may be a template, or vaulted. C(ansible-inventory) prints extra variables.
    type: str
    env:
      - name: HOSTING_API_KEY
  base_url:
    description:
      - The URL of the API, https except for this machine, such as V(https://api.example.com/v1). It may be a
        template.
    type: str
    env:
      - name: HOSTING_BASE_URL
  timeout:
    description: Seconds to wait for one response of the API. Temporary failures are retried.
    type: float
    default: 30
  rate_limit_timeout:
    description:
      - Seconds that one request may wait for the rate limit of the API key, which all programs of a user on
        one machine share. If there is no room by then, the source cannot be read.
    type: float
    default: 600
  store:
    description:
      - The store for a shared rate limit, V(redis://…) or V(rediss://…). It may be a template.
    type: str
    env:
      - name: HOSTING_STORE
  api_filters:
    description:
      - Filters that the API applies, so that fewer servers are transferred. Values may be templates.
    type: dict
    default: {}
    suboptions:
      status:
        description: Status of the server, V(active), V(stopped), V(suspended), V(pending_cancel),
          V(cancelled) or V(terminated).
        type: str
      ip:
        description: An address that is assigned to the server, primary or not.
        type: str
  filters:
    description:
      - An expression over a host's variables and extra variables, or a list of them. A host is kept if all
        are true. A template with braces works too.
      - With O(strict) an expression that cannot be evaluated is an error. Without it, the host is left out
        with a warning.
    type: raw
    default: []
  addresses:
    description:
      - Read the addresses of the hosts with their reverse DNS into the variable C(hosting_addresses).
      - "This costs one request for each host. Some deployments allow 20 such requests a minute, so 100
        hosts take about five minutes there. Use it with O(cache)."
      - "O(filters) are applied first, so only the hosts that they keep cost a request. Filters that read
        C(hosting_addresses) or C(ansible_host), directly or through an extra variable, are applied after."
      - "Each is a dictionary with C(id) (C(server id/address id)), C(address), C(version), C(primary),
        C(ptr), C(gateway), C(netmask), C(price_monthly) and C(added_at)."
      - If the addresses of a host cannot be read, a warning names it. With O(strict) that is an error.
    type: bool
    default: false
  connect_with:
    description:
      - The value of C(ansible_host). The first kind of the list that the server has is used.
      - V(public_ipv4) is the primary address if that is an IPv4 address, else the first IPv4 address.
        V(public_ipv6) is the same for IPv6. V(hostname) is the host name in the panel, which must resolve.
        V(ipv4_dns_ptr) is the reverse DNS name of the V(public_ipv4) address, and needs O(addresses). V(none)
        sets nothing.
      - A server that has none of them becomes a host without C(ansible_host); C(-v) lists it.
    type: list
    elements: str
    choices: [public_ipv4, public_ipv6, hostname, ipv4_dns_ptr, none]
    default: [public_ipv4]
  hostname:
    description: A template for the name of a host, of its variables and extra variables. Not empty.
    type: str
  hostvars_prefix:
    description: The prefix of the variables' names.
    type: str
    default: hosting_
  hostvars_suffix:
    description: The suffix of the variables' names.
    type: str
    default: ""
  group:
    description: A group for all hosts of this source. Empty for none.
    type: str
    default: hosting
"""

EXAMPLES = r"""
# All servers. HOSTING_API_KEY and HOSTING_BASE_URL are set in the environment.
plugin: hosting.cloud.servers
---
# The key from a vault. Only active servers (filtered by the API), in one location, with names such as web-1.
plugin: hosting.cloud.servers
base_url: https://api.example.com/v1
api_key: "{{ vault_hosting_api_key }}"
api_filters:
  status: active
filters:
  - hosting_location == 'Amsterdam'
  - hosting_name is match('web-')
---
# Groups such as status_active, location_amsterdam, os_debian_12, tariff_vds_2 and cycle_monthly.
plugin: hosting.cloud.servers
keyed_groups:
  - key: hosting_status
    prefix: status
  - key: hosting_location | lower
    prefix: location
  - key: hosting_os
    prefix: os
  - key: hosting_tariff | lower
    prefix: tariff
  - key: hosting_billing_cycle
    prefix: cycle
groups:
  webservers: hosting_name is match('web-')
  simulated: hosting_mode == 'test'
# Your own names and variables, and IPv6 for servers that have it.
hostname: "{{ hosting_name }}.example.com"
connect_with: [public_ipv6, public_ipv4]
compose:
  ansible_user: "'root' if hosting_os is match('debian') else 'admin'"
  due_on: hosting_next_due_at[:10]
---
# Connect by reverse DNS. This reads the addresses of every host, so it is cached for a day.
plugin: hosting.cloud.servers
addresses: true
connect_with: [ipv4_dns_ptr, public_ipv4]
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ./.inventory_cache
cache_timeout: 86400
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from ansible.errors import AnsibleError, AnsibleParserError, AnsibleUndefinedVariable
from ansible.parsing.vault import AnsibleVaultError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.vars import combine_vars
from ansible.vars.reserved import is_reserved_name

from ..module_utils.json_types import Json, Values
from ..plugin_utils.account_servers import GONE, PLUGIN, Server, Source
from ..plugin_utils.host_names import connection_address, host_names

try:
    from ansible.utils.unsafe_proxy import wrap_var as untrusted
except ImportError:  # ansible-core 2.19 and later trust no value unless told to

    def untrusted(value: Any) -> Any:
        return value


Host = tuple[Server, Json]
"""A server and its variables."""

FILES = ("hosting.yml", "hosting.yaml", "hosting_cloud.yml", "hosting_cloud.yaml")
API_FILTERS = ("status", "ip")
SHOWN = 5
"""So many ids of servers, or names of hosts, are in a message at most."""
CACHE_FORMAT = 2
"""Increment it when the format of what is cached changes, so that an old cache is not misread."""


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = PLUGIN

    def verify_file(self, path: str) -> bool:
        """Whether the file has one of this plugin's names."""
        return path.endswith(FILES) and bool(super().verify_file(path))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Add the hosts of one file. Raises ``AnsibleParserError``: one line with the problem and the next
        step."""
        super().parse(inventory, loader, path, cache)
        config = self._read_config_data(path)
        self._check(config)
        servers = sorted(self._servers(path, cache), key=lambda server: int(server["id"]))
        # A cancelled server has to be selected by status: its successor often has the same name.
        gone = () if "status" in self._api_filters else GONE
        hosts = [(server, self._variables(server)) for server in servers if server["status"] not in gone]
        late = [expression for expression in self._filters if self._reads_addresses(expression)]
        for expression in self._filters:
            if expression not in late:
                hosts = self._filtered(expression, hosts)
        if self.get_option("addresses"):
            chosen = self._with_addresses(servers, [server for server, _variables in hosts])
            hosts = [(server, self._variables(server)) for server in chosen]
        for expression in late:
            hosts = self._filtered(expression, hosts)
        self._add(hosts)

    # --- options

    def _check(self, config: Values) -> None:
        """Refuse options that Ansible would ignore, or that would fail later with a less clear message."""
        if unknown := sorted(set(config) - set(self.option_definitions)):
            raise AnsibleParserError(
                f"{unknown[0]!r} is no option of {self.NAME}. Next: correct it; ansible-doc "
                f"-t inventory {self.NAME}"
            )
        if unknown := sorted(set(self._api_filters) - set(API_FILTERS)):
            raise AnsibleParserError(
                f"api_filters: the API has no filter {unknown[0]!r}, only {' and '.join(API_FILTERS)}. Next: "
                f"use the option filters for it"
            )
        if not isinstance(self._filters, list) or not all(
            isinstance(expression, str) for expression in self._filters
        ):
            raise AnsibleParserError(
                "filters must be an expression or a list of expressions. Next: write each as a string"
            )
        if "ipv4_dns_ptr" in self.get_option("connect_with") and not self.get_option("addresses"):
            raise AnsibleParserError(
                "connect_with: ipv4_dns_ptr needs the addresses of the hosts, one request each. "
                "Next: set addresses: true"
            )
        name = self._variable("name")
        if not name.isidentifier() or is_reserved_name(name):
            raise AnsibleParserError(
                f"hostvars_prefix and hostvars_suffix turn 'name' into {name!r}, which is no valid variable "
                f"name. Next: choose others"
            )

    @property
    def _filters(self) -> list[str]:
        """The expressions. A single one is no list for Ansible, which would split it at its commas."""
        given = self.get_option("filters") or []
        return [given] if isinstance(given, str) else given

    @property
    def _api_filters(self) -> Json:
        return self.get_option("api_filters") or {}

    def _resolved(self, option: str, value: Any) -> str | None:
        """A value with its template resolved: lookups, vaulted strings and extra variables."""
        if value is None:
            return None
        try:
            return str(self._templated(value, self._vars))
        except (AnsibleUndefinedVariable, AnsibleVaultError) as error:
            reason = " ".join(str(error).split())
        except AnsibleError as error:
            # Other messages may quote the evaluated template, which may be the key.
            reason = type(error).__name__
        raise AnsibleParserError(
            f"{option} cannot be resolved: {reason}. Next: correct the template, or "
            "define the variables it uses"
        )

    def _templated(self, value: Any, variables: Values) -> Any:
        self.templar.available_variables = variables
        return self.templar.template(value)

    # --- servers

    def _servers(self, path: str, may_be_cached: bool) -> list[Server]:
        """The servers, from the cache if that is allowed and holds them, else from the API."""
        options = {name: self._resolved(name, self.get_option(name)) for name in ("api_key", "base_url")}
        resolved = {
            name: self._resolved(f"api_filters.{name}", value) for name, value in self._api_filters.items()
        }
        filters = {name: value for name, value in resolved.items() if value is not None}
        if options["api_key"] is None:
            from ..module_utils.shared_options import api_key_of_environment  # loads pulumi_hosting

            options["api_key"] = api_key_of_environment()
        # Another key or filter is another request: it must not be answered with this one's cached servers.
        request = json.dumps(
            [CACHE_FORMAT, *options.values(), filters, self.get_option("addresses")], sort_keys=True
        )
        self._key = f"{self.get_cache_key(path)}_{hashlib.sha256(request.encode()).hexdigest()[:16]}"
        others = {name: self.get_option(name) for name in ("timeout", "rate_limit_timeout")}
        others["store"] = self._resolved("store", self.get_option("store"))
        self._source = Source({**options, **others}, self.get_option("strict"), self.display)
        if self.get_option("cache") and may_be_cached:
            with suppress(KeyError):
                found: list[Server] = self._cache[self._key]
                return found
        return self._kept(self._source.servers(filters))

    def _kept(self, servers: list[Server]) -> list[Server]:
        if self.get_option("cache"):
            self._cache[self._key] = servers
        return servers

    def _with_addresses(self, servers: list[Server], chosen: list[Server]) -> list[Server]:
        """The ``chosen`` ones of the servers with their addresses. Asks for those that are not known yet."""
        known = {server["id"]: server for server in servers}
        missing = [server for server in chosen if "addresses" not in server]
        if missing:
            for server, addresses in zip(missing, self._source.addresses(missing), strict=True):
                if addresses is not None:  # else the next run asks again
                    known[server["id"]] = {**server, "addresses": addresses}
            self._kept(list(known.values()))
        return [known[server["id"]] for server in chosen]

    def _reads_addresses(self, expression: str) -> bool:
        """Whether the expression, or an extra variable that it may use, needs the addresses."""
        texts = [expression, *map(str, self._vars.values())]
        return bool(self.get_option("addresses")) and any(
            name in text for name in (self._variable("addresses"), "ansible_host") for text in texts
        )

    # --- hosts

    def _variable(self, field: str) -> str:
        return f"{self.get_option('hostvars_prefix')}{field}{self.get_option('hostvars_suffix')}"

    def _variables(self, server: Server) -> Json:
        """The variables of a server's host."""
        variables = {self._variable(field): untrusted(value) for field, value in server.items()}
        if (address := connection_address(server, self.get_option("connect_with"))) is not None:
            variables["ansible_host"] = untrusted(address)
        return variables

    def _filtered(self, expression: str, hosts: Iterable[Host]) -> list[Host]:
        """The hosts for which ``expression`` is true. Raises with ``strict`` when it cannot be evaluated,
        else warns."""
        kept, failed, reason = [], [], ""
        for server, variables in hosts:
            try:
                if self._is_true(expression, combine_vars(variables, self._vars)):
                    kept.append((server, variables))
            except AnsibleError as error:
                failed.append(server["id"])
                reason = " ".join(str(error).split())
        if failed:
            problem = f"filter {expression!r} cannot be evaluated for {servers_in_words(failed)}: {reason}"
            if self.get_option("strict"):
                raise AnsibleParserError(f"{problem}. Next: correct it, or define the variables it uses")
            self.display.warning(f"{problem}. Left out: {servers_in_words(failed)}")
        return kept

    def _is_true(self, expression: str, variables: Values) -> bool:
        if "{{" in expression or "{%" in expression:
            return bool(self._templated(expression, variables))
        return bool(self._compose(expression, variables))

    def _desired_name(self, server: Server, variables: Values) -> str:
        """The result of the option ``hostname``, else the server's name."""
        template = self.get_option("hostname")
        if not template:
            return str(server["name"])
        try:
            name = self._templated(template, combine_vars(variables, self._vars))
            reason = "the result is empty"
        except AnsibleError as error:
            name, reason = None, " ".join(str(error).split())
        if name in (None, ""):
            raise AnsibleParserError(
                f"hostname gives no name for server {server['id']}: {reason}. Next: correct the template, "
                f"for example with default(...)"
            )
        return str(name)

    def _add(self, hosts: Sequence[Host]) -> None:
        """Add the hosts, sorted by name, with the groups and variables that the file composes."""
        group = self.get_option("group") or None
        if group:
            group = self.inventory.add_group(self._sanitize_group_name(group))
        desired = [(self._desired_name(server, variables), server["id"]) for server, variables in hosts]
        names = host_names(desired, taken=(group,) if group else ())
        self._warn_of_renamed(desired, names)
        for name, (_server, variables) in sorted(zip(names, hosts, strict=True), key=lambda pair: pair[0]):
            self.inventory.add_host(name, group=group)
            for variable, value in variables.items():
                self.inventory.set_variable(name, variable, value)
            kinds = [kind for kind in self.get_option("connect_with") if kind != "none"]
            if kinds and "ansible_host" not in variables:
                self.display.v(f"{name}: no ansible_host, the server has no {', '.join(kinds)}")
            strict, variables = self.get_option("strict"), self.inventory.get_host(name).get_vars()
            self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
            self._add_host_to_composed_groups(self.get_option("groups"), {}, name, strict=strict)
            self._add_host_to_keyed_groups(self.get_option("keyed_groups"), {}, name, strict=strict)

    def _warn_of_renamed(self, desired: Iterable[tuple[str, str]], names: Iterable[str]) -> None:
        """List the hosts that could not have their server's name: one line for each such name."""
        renamed: dict[str, dict[str, str]] = {}
        for (name, id), given in zip(desired, names, strict=True):
            if given != name:
                renamed.setdefault(name, {})[id] = given
        for name, given_by_id in renamed.items():
            text = f"is called {name!r}, which no host can be called. Its host is"
            if len(given_by_id) > 1:
                text = f"are all called {name!r}. Their hosts are"
            hosts = first_of(list(given_by_id.values()))
            self.display.warning(f"{servers_in_words(given_by_id)} {text} {hosts}")


def servers_in_words(ids: Iterable[str]) -> str:
    """``server 1``, ``servers 1, 2`` or ``137 servers (1, 2, 3, 4, 5, …)``."""
    listed = list(ids)
    if len(listed) > SHOWN:
        return f"{len(listed)} servers ({first_of(listed)})"
    return f"server{'s' if len(listed) > 1 else ''} {', '.join(listed)}"


def first_of(names: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join([*names[:SHOWN], *(["…"] if len(names) > SHOWN else [])])
