"""What the resources about a server's addresses share: the list, read once for all of them, and ids of the
form ``<server>/<address>``.

The list and the quote are expensive questions on some deployments (20 a minute); the server itself is not,
and shows the text of each address. So whoever waits asks the server, and a list is believed while it has what
the server shows.
"""

import ipaddress
from collections.abc import Iterator
from functools import partial

from pulumi_hosting.api import models as m
from pulumi_hosting.api.values import id_number, passes
from pulumi_hosting.client.exceptions import NotFound
from pulumi_hosting.exactly_once.catalog_reads import listed
from pulumi_hosting.exactly_once.ownership_check import must_be_the_recorded_one
from pulumi_hosting.session.request import Request


def plain_address(text: str) -> str:
    """One spelling per address.

    >>> plain_address("2001:0DB8::0:1")
    '2001:db8::1'
    """
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError("must be an IPv4 or IPv6 address") from None


FRESH = 60.0  # seconds for which the addresses of a server are believed
# seconds for which a list of all addresses believes them: at 20 servers a minute it may take that long
LISTED = 600.0


def of_server(
    request: Request, server_id: str, *, fresh: bool = False, max_age: float = FRESH
) -> list[m.Ip] | None:
    """Every address of a server, v4 and v6; None if there is no such server."""
    if fresh:
        request.reads.forget("ips", server_id)
    ask = partial(request.client.servers.ips.list, int(server_id))
    try:
        return listed(request, "list_server_ips", ask, max_age, part_of(server_id))
    except NotFound:
        return None


def shown(server: m.Server) -> frozenset[str]:
    """Every address that the server itself shows."""
    return frozenset(map(plain_address, server.ips or ()))


def bought_texts(server: m.Server) -> frozenset[str]:
    """The bought ones among them."""
    return frozenset(text for text in shown(server) if ":" not in text and text != server.ip)


def of_shown(request: Request, server: m.Server) -> list[m.Ip]:
    """The addresses of a server that was read just now, the bought ones at least."""
    texts, server_id = shown(server), str(server.id)
    if texts and not bought_texts(server):
        return []
    found = of_server(request, server_id, max_age=LISTED) if texts else None
    if found is None or texts != {plain_address(ip.address) for ip in found}:
        found = of_server(request, server_id, fresh=True)
    return found or []


def part_of(server_id: str) -> str:
    """The part of the snapshot that holds the addresses of a server."""
    return f"ips {server_id}"


def everywhere(request: Request, server_id: str | None) -> Iterator[tuple[str, m.Ip]]:
    """Server id and address: of one server as they are now, or of all on the account."""
    if server_id is not None:
        for ip in of_server(request, server_id, fresh=True) or []:
            yield server_id, ip
        return
    for server in request.client.servers.list():
        if not server.is_gone:
            for ip in of_server(request, str(server.id), max_age=LISTED) or []:
                yield str(server.id), ip


def pick(found: list[m.Ip] | None, wanted: str) -> m.Ip | None:
    """The one of ``found`` with this number or this address."""
    for ip in found or ():
        if wanted in (str(ip.id), plain_address(ip.address)):
            return ip
    return None


def find(
    request: Request, server_id: str, wanted: str, *, fresh: bool = False, max_age: float = FRESH
) -> m.Ip | None:
    """The address of the server with this number or text."""
    return pick(of_server(request, server_id, fresh=fresh, max_age=max_age), wanted)


def must_be_recorded(
    request: Request, title: str, id: str, ip: m.Ip, recorded: str | None, outcome: str
) -> None:
    """Raise ``NotOurs`` if the number in an id is that of another address than the ``recorded`` one."""
    if not request.name_is_identity:
        shown = {"address": plain_address(ip.address)}
        must_be_the_recorded_one(title, id, {"address": recorded or None}, shown, outcome)


SIMULATED = "sandbox"
"""Stands for the address in the id of one that was only simulated."""
ID_FORM = "<server id>/<address id>, or <server id>/<address>"


def is_id(id: str) -> bool:
    """Whether an address may have this id, one that was only simulated too."""
    server_id, _, address = id.partition("/")
    is_address = id_number(address) is not None or address == SIMULATED or passes(plain_address, address)
    return id_number(server_id) is not None and is_address


def split_id(id: str) -> tuple[str, str]:
    """Server and address of an id ``<server id>/<address id or address>``."""
    server_id, _, address = id.partition("/")
    return server_id, plain_address(address) if "." in address or ":" in address else address
