# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The servers of an account, read from the API for the inventory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleParserError

if TYPE_CHECKING:
    from pulumi_hosting.session.request import Request

Server = dict[str, Any]
"""The fields that the module ``server_info`` returns for a server, and ``addresses`` if they were read."""

GONE = ("cancelled", "terminated")


def read_servers(
    api_key: str | None,
    base_url: str | None,
    filters: Mapping[str, str],
    *,
    plugin: str,
    timeout: float,
    with_addresses: bool,
    strict: bool,
    display: Any,
) -> list[Server]:
    """The servers that match ``filters`` (parameters of the API's ``list_servers``).

    - ``plugin``: the plugin's name, for the user agent. ``timeout``: seconds to wait for one response.
    - ``with_addresses``: read the addresses of each server too, with one request each.
    - ``strict``: raise for a server that cannot be read; else leave it out with a warning on ``display``.

    Raises ``AnsibleParserError``: one line with the problem and the next step.
    """
    from ansible_collections.hosting.cloud.plugins.module_utils.failures import unusable

    if refusal := unusable():
        raise AnsibleParserError(refusal["msg"])

    from pulumi_hosting.client.client import Client
    from pulumi_hosting.client.exceptions import HostingError, InvalidInput
    from pulumi_hosting.planning import apply
    from pulumi_hosting.resources import RESOURCES
    from pulumi_hosting.resources.powers import listed
    from pulumi_hosting.session.request import Request
    from pulumi_hosting.session.session import Session

    servers = RESOURCES["server"]
    try:
        with Client(
            api_key, base_url, timeout=timeout, read_only=True, user_agent=f"ansible {plugin}"
        ) as client:
            request = Request(Session(client), identity=f"ansible:inventory/{plugin}", warn=display.warning)
            if not strict:
                request.skip_damaged = lambda error: display.warning(f"one server is left out: {error}")
            # By id: a server that moves to the next page while the pages are read comes twice.
            found = {state.id: apply.shown(servers, state) for state in listed(request, servers, **filters)}
            if with_addresses:
                return [
                    {**server, "addresses": _addresses(request, server, display)} for server in found.values()
                ]
        return list(found.values())
    except InvalidInput as error:
        problem = (
            "api_filters: "
            + "; ".join(f"{name}: {reason}" for name, reason in error.fields.items())
            + ". Next: correct it"
        )
    except HostingError as error:
        problem = str(error)
    raise AnsibleParserError(problem)


def _addresses(request: Request, server: Server, display: Any) -> list[dict[str, Any]]:
    """Every address of a server, with its reverse DNS name."""
    from pulumi_hosting.client.exceptions import ServiceState
    from pulumi_hosting.exactly_once import address_list
    from pulumi_hosting.session.text import as_text

    if server["status"] in GONE:
        return []
    try:
        found = address_list.of_server(request, server["id"]) or []
    except ServiceState as error:  # a server without a record in the panel has no addresses
        display.v(f"{server['name']}: no addresses. {error}")
        return []
    return [
        {
            "id": f"{server['id']}/{ip.id}",
            "address": address_list.plain_address(ip.address),
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
