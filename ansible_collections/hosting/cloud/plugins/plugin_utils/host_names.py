# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names of hosts and addresses to connect to, made of what the API says of servers. Needs neither Ansible nor
the core."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

# To Ansible, hosts of these names are the controller, and these are its own groups.
RESERVED = ("localhost", "127.0.0.1", "::1", "all", "ungrouped")


def is_host_name(text: Any) -> bool:
    """Whether it is a name that cannot be mistaken for an option of ssh, a host pattern or a path."""
    return isinstance(text, str) and len(text) <= 253 and re.fullmatch(r"\w[\w.-]*", text) is not None


def ip_version(text: Any) -> int | None:
    """4 or 6, or ``None`` for anything but an address."""
    try:
        return ipaddress.ip_address(text).version if isinstance(text, str) and "%" not in text else None
    except ValueError:
        return None


def address_of(server: dict[str, Any], version: int) -> str | None:
    """The primary address if it is of this IP version, else the first one that is."""
    return next(
        (text for text in (server["ip"], *(server["ips"] or ())) if ip_version(text) == version), None
    )


def reverse_dns_name(server: dict[str, Any]) -> str | None:
    """The reverse DNS name of the server's ``public_ipv4`` address."""
    public = address_of(server, 4)
    names = (entry["ptr"] for entry in server.get("addresses", ()) if entry["address"] == public)
    return next((name for name in names if is_host_name(name)), None)


def connection_address(server: dict[str, Any], kinds: Iterable[str]) -> str | None:
    """The address to connect to: the first of ``kinds`` (choices of the option ``connect_with``) that the
    server has."""
    addresses = {
        "public_ipv4": address_of(server, 4),
        "public_ipv6": address_of(server, 6),
        "hostname": next((name for name in (server["hostname"], server["name"]) if is_host_name(name)), None),
        "ipv4_dns_ptr": reverse_dns_name(server),
        "none": None,
    }
    return next((addresses[kind] for kind in kinds if addresses[kind] is not None), None)


def host_names(desired: Sequence[tuple[str, str]], taken: Iterable[str] = ()) -> list[str]:
    """A name for each pair of wanted name and server id: the wanted one if it is valid and unique, else one
    with the id.

    When two servers have the same name, both get their id: ``web-1`` must not become another machine when the
    first is deleted.
    """
    refused = {*RESERVED, *taken}
    with_id = [
        f"{name}-{id}" if is_host_name(name) and ip_version(name) is None else f"server-{id}"
        for name, id in desired
    ]
    names = [
        name if (is_host_name(name) or ip_version(name)) and name not in refused else longer
        for (name, id), longer in zip(desired, with_id, strict=True)
    ]
    while duplicates := {name for name, count in Counter(names).items() if count > 1}:
        names = [longer if name in duplicates else name for name, longer in zip(names, with_id, strict=True)]
    return names
