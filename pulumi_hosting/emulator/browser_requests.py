"""Which requests are refused because a web page may have sent them that this server did not serve.

A browser lets every page send requests to this machine. If the owner of the page's name points it here (DNS
rebinding), the page can read the answers too. Programs send none of the headers that a browser adds, so
nothing changes for them.
"""

import ipaddress
import re
from collections.abc import Collection, Mapping

from pulumi_hosting.api.values import is_loopback

Names = Collection[str] | None
"""Host names that requests may be sent to besides those of this machine, as :func:`host_name` has them; None:
any name.
"""
_NAME = re.compile(r"[A-Za-z0-9._:\[\]-]+")


def host_name(host: str) -> str:
    """The name in a ``Host`` header, without port and brackets, always spelled the same.

    >>> [host_name(host) for host in ("Emulator.:8080", "[::1]:8080", "::0001")]
    ['emulator', '::1', '::1']
    """
    name = host.rpartition("]")[0][1:] if host.startswith("[") else host
    if name.count(":") == 1:
        name = name.partition(":")[0]
    try:
        return ipaddress.ip_address(name).compressed
    except ValueError:
        return name.lower().rstrip(".")


def allowed_name(value: str) -> str:
    """A host name that a user allows, as :func:`host_name` has it. Raises ``ValueError`` if it is none."""
    if not _NAME.fullmatch(value):
        raise ValueError(f"{value!r} is not a host name")
    return host_name(value)


def host_refusal(host: str, names: Names) -> str | None:
    """Why a request with this ``Host`` header is refused; None: it is not."""
    name = host_name(host)
    if names is None or not host or name in names or is_loopback(name):
        return None
    return (
        f"requests to this host name are refused, given {host}. Next: use http://127.0.0.1:PORT, or start "
        f"the emulator with --allow-host {name}"
    )


def refusal(headers: Mapping[str, str], names: Names) -> str | None:
    """Why a request with these headers, their names in lower case, is refused; None: it is not."""
    host = headers.get("host", "")
    if (reason := host_refusal(host, names)) is not None:
        return reason
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    # A proxy in front of the emulator may speak https while the emulator does not, so both are its own.
    if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        given = f"Origin {origin}"
    elif site in ("cross-site", "same-site"):
        given = f"Sec-Fetch-Site {site}"
    else:
        return None
    return (
        f"requests of other web pages are refused, given {given}. Next: use the emulator's own page, "
        "/_console, or a program that sends no such header"
    )
