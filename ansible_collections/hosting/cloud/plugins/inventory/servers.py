# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The account's servers as hosts.

In order: read the file, resolve what it says, take the servers from the cache or from the service, drop those that are not asked for, name
the rest, add them. Everything the user decides (filters, names, variables, how to connect) is applied after the cache, so that changing it
asks the service nothing. The core, and with it every HTTP library, is imported only where the service is asked.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: servers
short_description: Servers of a hosting account as an inventory
version_added: 0.1.0
description:
  - Reads the servers of an account that speaks the Hosting Client API v1, and makes each a host.
  - Its file must end in C(hosting.yml), C(hosting.yaml), C(hosting_cloud.yml) or C(hosting_cloud.yaml), so C(production.hosting.yml) is
    one too.
  - "A host's variables are what M(hosting.cloud.server_info) returns of the server (RV(hosting.cloud.server_info#module:servers)), each
    with a prefix, for example C(hosting_status). Ids and amounts are text. C(hosting_mode) is V(test) for what was only simulated with a
    test key."
  - Servers that are cancelled or terminated are left out, unless O(api_filters) asks for them by status.
  - "A host has the name of its server. Where several have the same name, each of them is called C(name-id) instead, and so is a server
    whose name means something else to Ansible, such as C(localhost). A name that is none to Ansible becomes C(server-id). All of this is
    said in a warning; no server is lost."
author:
  - The pulumi-hosting authors (@pulumi-hosting)
requirements:
  - python >= 3.11
  - pulumi-hosting >= 0.1.0
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
notes:
  - "All servers are read with one request for each hundred of them. 120 requests a minute are allowed for each API key. With O(cache) they
    are read once in O(cache_timeout) seconds; what comes from the cache asks the service nothing and needs no C(pulumi-hosting)."
  - "The cache is kept apart for each file, key, O(base_url), O(api_filters) and O(addresses). All other options work on what it holds."
  - "C(pulumi-hosting) must be installed for the interpreter that Ansible itself runs with."
  - "Where a source cannot be read, Ansible warns and goes on without it, and tries its other inventory plugins on the file.
    E(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED) makes it an error; V(hosting.cloud.servers) in E(ANSIBLE_INVENTORY_ENABLED), before
    V(auto), keeps the messages short."
  - "What the service answers is never evaluated as a template, and becomes an address to connect to only if it is one."
options:
  plugin:
    description: Marks the file as one for this plugin.
    type: str
    required: true
    choices: [hosting.cloud.servers]
  api_key:
    description:
      - The API key, C(vk_live_...) or C(vk_test_...), with the scope C(servers:read).
      - It may be a template (lookups and extra variables), or vaulted. Mind that C(ansible-inventory) prints extra variables.
    type: str
    env:
      - name: HOSTING_API_KEY
  base_url:
    description:
      - Address of the API, for example V(https://api.example.com/v1). It must be https, except on this machine itself.
      - It may be a template.
    type: str
    env:
      - name: HOSTING_BASE_URL
  timeout:
    description: Seconds to wait for one answer of the API. Passing failures are followed by another try.
    type: float
    default: 30
  api_filters:
    description:
      - What the service itself compares, so that less is transferred. Values may be templates.
    type: dict
    default: {}
    suboptions:
      status:
        description: Status of the server, V(active), V(stopped), V(suspended), V(pending_cancel), V(cancelled) or V(terminated).
        type: str
      ip:
        description: An address that is assigned to the server, not only the primary one.
        type: str
  filters:
    description:
      - An expression, or a list of them, about a host's variables. A host for which one of them is not true is left out.
      - Extra variables can be used as well. A whole template, with braces, is possible too.
      - With O(strict) an expression that cannot be evaluated is an error. Otherwise it leaves the host out, with a warning.
    type: raw
    default: []
  addresses:
    description:
      - Whether to read the addresses of every server with their reverse DNS, as the variable C(hosting_addresses).
      - "This costs one request for each server. Some deployments allow only 20 of these in a minute, so that 100 servers take about five
        minutes there: use it with O(cache)."
      - "Each is a dictionary with C(id) (C(server id/address id)), C(address), C(version), C(primary), C(ptr), C(gateway), C(netmask),
        C(price_monthly) and C(added_at)."
    type: bool
    default: false
  connect_with:
    description:
      - What becomes C(ansible_host). Of a list, the first that the server has.
      - V(public_ipv4) is the primary address if it is one, else the first IPv4 address. V(public_ipv6) is the same for IPv6.
      - V(hostname) is the host name that the panel keeps. It must be resolvable.
      - V(ipv4_dns_ptr) is the reverse DNS name of the address that V(public_ipv4) stands for. It needs O(addresses).
      - V(none) sets nothing.
      - A server that has none of them is still a host, without C(ansible_host); C(-v) tells which. Use O(compose) for anything else.
    type: list
    elements: str
    choices: [public_ipv4, public_ipv6, hostname, ipv4_dns_ptr, none]
    default: [public_ipv4]
  hostname:
    description:
      - A template for the name of a host, made of its variables. Extra variables can be used as well.
      - If it gives nothing for some server, that is an error.
    type: str
  hostvars_prefix:
    description: What the names of the variables begin with.
    type: str
    default: hosting_
  hostvars_suffix:
    description: What the names of the variables end with.
    type: str
    default: ""
  group:
    description: A group for all hosts of this source. If empty, there is none.
    type: str
    default: hosting
"""

EXAMPLES = r"""
# All servers. HOSTING_API_KEY and HOSTING_BASE_URL stand in the environment.
plugin: hosting.cloud.servers

---
# The key from a vault, or from extra variables.
plugin: hosting.cloud.servers
base_url: https://api.example.com/v1
api_key: "{{ vault_hosting_api_key }}"

---
# Ask the service once in ten minutes.
plugin: hosting.cloud.servers
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ./.inventory_cache
cache_timeout: 600

---
# Only running servers, as the service sees it, and of these only the ones of one location.
plugin: hosting.cloud.servers
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

---
# Own names, own variables, and IPv6 where there is any.
plugin: hosting.cloud.servers
hostname: "{{ hosting_name }}.example.com"
connect_with: [public_ipv6, public_ipv4]
compose:
  ansible_user: "'root' if hosting_os is match('debian') else 'admin'"
  due_on: hosting_next_due_at[:10]

---
# Connect by reverse DNS. This asks for the addresses of every server, so it is cached for a day.
plugin: hosting.cloud.servers
addresses: true
connect_with: [ipv4_dns_ptr, public_ipv4]
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ./.inventory_cache
cache_timeout: 86400
"""

import hashlib
import ipaddress
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleError, AnsibleParserError, AnsibleUndefinedVariable
from ansible.parsing.vault import AnsibleVaultError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.vars import combine_vars
from ansible.vars.reserved import is_reserved_name

try:
    from ansible.utils.unsafe_proxy import wrap_var as untrusted
except ImportError:  # ansible-core trusts nothing of its own accord since 2.19, and is about to drop this

    def untrusted(value: Any) -> Any:
        return value


if TYPE_CHECKING:
    from pulumi_hosting.session.context import Context

Server = dict[str, Any]
Host = tuple[Server, dict[str, Any]]
"""A server, and its variables."""

FILES = ("hosting.yml", "hosting.yaml", "hosting_cloud.yml", "hosting_cloud.yaml")
API_FILTERS = ("status", "ip")
GONE = ("cancelled", "terminated")
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Hosts of these names are the controller itself to Ansible."""
GROUPS = ("all", "ungrouped")
LAYOUT = 1
"""Of what is cached: another number where its shape changes, so that an old cache is not misread."""


# --- what the service says, judged ---------------------------------------------------------------------------------------------


def is_host_name(text: Any) -> bool:
    """Whether it can be told from an option of ssh, a pattern and a path."""
    return isinstance(text, str) and len(text) <= 253 and re.fullmatch(r"\w[\w.-]*", text) is not None


def ip_version(text: Any) -> int | None:
    """4 or 6, or None for what is no address."""
    try:
        return ipaddress.ip_address(text).version if isinstance(text, str) and "%" not in text else None
    except ValueError:
        return None


def address_of(server: Server, version: int) -> str | None:
    """The primary address if it is of this version, else the first that is."""
    return next((text for text in (server["ip"], *(server["ips"] or ())) if ip_version(text) == version), None)


def reverse_name(server: Server) -> str | None:
    """The reverse DNS name of the IPv4 address to connect to."""
    wanted = address_of(server, 4)
    return next((entry["ptr"] for entry in server["addresses"] if entry["address"] == wanted and is_host_name(entry["ptr"])), None)


def place_of(server: Server, ways: Iterable[str]) -> str | None:
    """Where to connect to, by the first of ``ways`` that the server has."""
    places: dict[str, Callable[[], str | None]] = {
        "public_ipv4": lambda: address_of(server, 4),
        "public_ipv6": lambda: address_of(server, 6),
        "hostname": lambda: next((name for name in (server["hostname"], server["name"]) if is_host_name(name)), None),
        "ipv4_dns_ptr": lambda: reverse_name(server),
        "none": lambda: None,
    }
    return next((place for way in ways if (place := places[way]()) is not None), None)


def host_names(wished: Sequence[tuple[str, str]], taken: Iterable[str] = ()) -> list[str]:
    """A name for each pair of wished name and server id: the wish where it is fit and unique, else one with the id.

    Two servers of one name both get their id: which of them was meant is nobody's to guess, and ``web-1`` must not come to mean another
    machine when the first is deleted.
    """
    refused = {*LOCAL, *GROUPS, *taken}
    longer = [f"{name}-{id}" if is_host_name(name) and ip_version(name) is None else f"server-{id}" for name, id in wished]
    names = [
        name if (is_host_name(name) or ip_version(name)) and name not in refused else other
        for (name, id), other in zip(wished, longer, strict=True)
    ]
    while doubles := {name for name, count in Counter(names).items() if count > 1}:
        names = [other if name in doubles else name for name, other in zip(names, longer, strict=True)]
    return names


def together(ids: Iterable[str]) -> str:
    """They, in a sentence."""
    named = list(ids)
    return f"server{'s' if len(named) > 1 else ''} {', '.join(named)}"


# --- the plugin ----------------------------------------------------------------------------------------------------------------


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "hosting.cloud.servers"

    def verify_file(self, path: str) -> bool:
        """Whether the file is named as one of ours."""
        return path.endswith(FILES) and bool(super().verify_file(path))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Add the hosts of one file. Raises ``AnsibleParserError``, one line that says what is wrong and what to do next."""
        super().parse(inventory, loader, path, cache)
        config = self._read_config_data(path)
        self._check(config)
        servers = sorted(self._servers(path, cache), key=lambda server: int(server["id"]))
        hosts = [(server, self._variables(server)) for server in servers if self._is_wanted(server)]
        for expression in self._filters:
            hosts = self._filtered(expression, hosts)
        self._add(hosts)

    # --- what the file says

    def _check(self, config: Mapping[str, Any]) -> None:
        """Refuse what would otherwise be passed over in silence, or fail later and less clearly."""
        if unknown := sorted(set(config) - set(self.option_definitions)):
            raise AnsibleParserError(f"{unknown[0]!r} is no option of {self.NAME}. Next: correct it; ansible-doc -t inventory {self.NAME}")
        if unknown := sorted(set(self._api_filters) - set(API_FILTERS)):
            raise AnsibleParserError(
                f"api_filters: the service does not compare {unknown[0]!r}, only {' and '.join(API_FILTERS)}. Next: say it in filters"
            )
        if not isinstance(self._filters, list) or not all(isinstance(expression, str) for expression in self._filters):
            raise AnsibleParserError("filters must be an expression or a list of expressions. Next: write each as text")
        if "ipv4_dns_ptr" in self.get_option("connect_with") and not self.get_option("addresses"):
            raise AnsibleParserError(
                "connect_with: ipv4_dns_ptr needs the addresses of every server, one request each. Next: set addresses: true"
            )
        name = self._variable("name")
        if not name.isidentifier() or is_reserved_name(name):
            raise AnsibleParserError(
                f"hostvars_prefix and hostvars_suffix make {name!r} of 'name', which no variable may be called. Next: choose others"
            )

    @property
    def _filters(self) -> list[str]:
        """One filter, written without a list, may hold commas."""
        given = self.get_option("filters") or []
        return [given] if isinstance(given, str) else given

    @property
    def _api_filters(self) -> dict[str, Any]:
        return self.get_option("api_filters") or {}

    def _resolved(self, option: str, value: Any) -> str | None:
        """A value with its template resolved: lookups, vaulted text and extra variables."""
        if value is None:
            return None
        self.templar.available_variables = self._vars
        try:
            return str(self.templar.template(value))
        except (AnsibleUndefinedVariable, AnsibleVaultError) as error:
            reason = " ".join(str(error).split())
        except AnsibleError as error:
            # What else goes wrong may quote what was evaluated, and that may be the key.
            reason = type(error).__name__
        raise AnsibleParserError(f"{option} cannot be resolved: {reason}. Next: correct it in the inventory file, or what it refers to")

    # --- the servers

    def _servers(self, path: str, may_be_cached: bool) -> list[Server]:
        """As the service shows them: from the cache where that is allowed and it has them."""
        api_key, base_url = (self._resolved(option, self.get_option(option)) for option in ("api_key", "base_url"))
        filters = {name: self._resolved(f"api_filters.{name}", value) for name, value in self._api_filters.items()}
        asked = {name: value for name, value in filters.items() if value is not None}
        caches = self.get_option("cache")
        # Another key or another filter is another question: its answer must not be mistaken for this one's.
        question = json.dumps([LAYOUT, api_key, base_url, asked, self.get_option("addresses")], sort_keys=True)
        cache_key = f"{self.get_cache_key(path)}_{hashlib.sha256(question.encode()).hexdigest()[:16]}"
        if caches and may_be_cached:
            try:
                known: list[Server] = self._cache[cache_key]
            except KeyError:
                pass
            else:
                return known
        servers = self._asked(api_key, base_url, asked)
        if caches:
            self._cache[cache_key] = servers
        return servers

    def _asked(self, api_key: str | None, base_url: str | None, filters: Mapping[str, str]) -> list[Server]:
        """From the service."""
        from ansible_collections.hosting.cloud.plugins.module_utils.runner import unusable

        if refusal := unusable():
            raise AnsibleParserError(refusal["msg"])

        from pulumi_hosting.client.client import Client
        from pulumi_hosting.client.exceptions import HostingError, InvalidInput
        from pulumi_hosting.planning import engine
        from pulumi_hosting.resources import RESOURCES
        from pulumi_hosting.session.context import Context

        resource = RESOURCES["server"]
        try:
            timeout = self.get_option("timeout")
            client = Client(api_key, base_url, timeout=timeout, read_only=True, user_agent=f"ansible {self.NAME}")
            with client:
                context = Context(client=client, identity=f"ansible:inventory/{self.NAME}", warn=self.display.warning)
                if not self.get_option("strict"):
                    context.skip_damaged = lambda error: self.display.warning(f"one server is left out: {error}")
                # By id: what moves from one page to the next while they are read comes twice.
                found = {state.id: engine.shown(resource, state) for state in resource.all(context, **filters)}
                if self.get_option("addresses"):
                    return [{**server, "addresses": self._addresses(context, server)} for server in found.values()]
            return list(found.values())
        except InvalidInput as error:
            problem = "api_filters: " + "; ".join(f"{name}: {reason}" for name, reason in error.fields.items()) + ". Next: correct it"
        except HostingError as error:
            problem = str(error)
        raise AnsibleParserError(problem)

    def _addresses(self, context: Context, server: Server) -> list[dict[str, Any]]:
        """Every address of a server, with its reverse DNS."""
        from pulumi_hosting.client.exceptions import ServiceState
        from pulumi_hosting.exactly_once import addresses
        from pulumi_hosting.session.text import as_text

        if server["status"] in GONE:
            return []
        try:
            found = addresses.of_server(context, server["id"]) or []
        except ServiceState as error:  # a server without a record in the panel has none to show
            self.display.v(f"{server['name']}: no addresses. {error}")
            return []
        return [
            {
                "id": f"{server['id']}/{ip.id}",
                "address": addresses.plain_address(ip.address),
                "version": ip.ip_version,
                "primary": ip.primary,
                "ptr": ip.ptr,
                "gateway": ip.gateway,
                "netmask": ip.netmask,
                "price_monthly": as_text(ip.price_monthly),
                "added_at": as_text(ip.added_at),
            }
            for ip in found
        ]

    # --- the hosts

    def _variable(self, field: str) -> str:
        return f"{self.get_option('hostvars_prefix')}{field}{self.get_option('hostvars_suffix')}"

    def _variables(self, server: Server) -> dict[str, Any]:
        """What is known of a server, as variables of its host."""
        variables = {self._variable(field): untrusted(value) for field, value in server.items()}
        if (place := place_of(server, self.get_option("connect_with"))) is not None:
            variables["ansible_host"] = untrusted(place)
        return variables

    def _is_wanted(self, server: Server) -> bool:
        """A machine that is gone is no host, unless it was asked for: its successor often has its name."""
        return server["status"] not in GONE or "status" in self._api_filters

    def _filtered(self, expression: str, hosts: Iterable[Host]) -> list[Host]:
        """Those of which it is true. Where it cannot be said the host is left out, or with ``strict`` nothing goes on."""
        kept, failed, reason = [], [], ""
        for server, variables in hosts:
            try:
                if self._holds(expression, combine_vars(variables, self._vars)):
                    kept.append((server, variables))
            except AnsibleError as error:
                failed.append(server["id"])
                reason = " ".join(str(error).split())
        if failed:
            problem = f"filter {expression!r} cannot be evaluated for {together(failed)}: {reason}"
            if self.get_option("strict"):
                raise AnsibleParserError(f"{problem}. Next: correct it, or what it refers to")
            self.display.warning(f"{problem}. What it cannot be evaluated for is left out")
        return kept

    def _holds(self, expression: str, known: Mapping[str, Any]) -> bool:
        if "{{" in expression or "{%" in expression:
            self.templar.available_variables = known
            return bool(self.templar.template(expression))
        return bool(self._compose(expression, known))

    def _wished_name(self, server: Server, variables: Mapping[str, Any]) -> str:
        template = self.get_option("hostname")
        if not template:
            return str(server["name"])
        self.templar.available_variables = combine_vars(variables, self._vars)
        try:
            name = self.templar.template(template)
            reason = "it gives nothing"
        except AnsibleError as error:
            name, reason = None, " ".join(str(error).split())
        if name in (None, ""):
            raise AnsibleParserError(
                f"hostname names no host for server {server['id']}: {reason}. Next: correct the template, for example with default(...)"
            )
        return str(name)

    def _add(self, hosts: Sequence[Host]) -> None:
        """Add them in the order of their names, with the groups and variables the file composes."""
        group = self.get_option("group") or None
        if group:
            group = self.inventory.add_group(self._sanitize_group_name(group))
        wished = [(self._wished_name(server, variables), server["id"]) for server, variables in hosts]
        names = host_names(wished, taken=(group,) if group else ())
        self._tell(wished, names)
        for name, (_server, variables) in sorted(zip(names, hosts, strict=True), key=lambda pair: pair[0]):
            self.inventory.add_host(name, group=group)
            for variable, value in variables.items():
                self.inventory.set_variable(name, variable, value)
            ways = [way for way in self.get_option("connect_with") if way != "none"]
            if ways and "ansible_host" not in variables:
                self.display.v(f"{name}: it has nothing to connect to by {', '.join(ways)}")
            self._construct(name)

    def _tell(self, wished: Iterable[tuple[str, str]], names: Iterable[str]) -> None:
        """Say which hosts are not called as was declared: one line for each such name."""
        renamed: dict[str, dict[str, str]] = {}
        for (wish, id), name in zip(wished, names, strict=True):
            if name != wish:
                renamed.setdefault(wish, {})[id] = name
        for wish, given in renamed.items():
            hosts = ", ".join(given.values())
            if len(given) > 1:
                self.display.warning(f"{together(given)} are all called {wish!r}. Their hosts are {hosts}")
            else:
                self.display.warning(f"{together(given)} is called {wish!r}, which cannot be the name of its host. It is {hosts}")

    def _construct(self, name: str) -> None:
        strict = self.get_option("strict")
        known = self.inventory.get_host(name).get_vars()
        self._set_composite_vars(self.get_option("compose"), known, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), {}, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), {}, name, strict=strict)
