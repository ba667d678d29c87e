"""The console: one page that shows what the account holds and moves its clock, over the control interface.

The page holds no data and loads nothing from elsewhere: its style and its script are in it, and its
Content-Security-Policy allows nothing else.
"""

import base64
import hashlib
import ipaddress
from functools import cache
from pathlib import Path

from pulumi_hosting.emulator.messages import Response

PATH = "/_console"

_HERE = Path(__file__).parent


def is_console(path: str) -> bool:
    """Whether the console answers requests with this path."""
    return path in (PATH, f"{PATH}/")


def console_response(method: str, host: str) -> Response:
    """The page, where the ``Host`` header names this machine. Another name may be one that a foreign page
    lets point here (DNS rebinding).
    """
    if method not in ("GET", "HEAD"):
        return _text(405, f"{method} is not supported here. Next: GET {PATH}", {"Allow": "GET, HEAD"})
    if not _is_loopback(host):
        return _text(
            403,
            f"the console answers to names of this machine only, given {host or 'none'}. "
            f"Next: open http://127.0.0.1:PORT{PATH} on the machine of the emulator",
        )
    page, policy = _page()
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(200, headers=headers, content=b"" if method == "HEAD" else page)


@cache
def _page() -> tuple[bytes, str]:
    """The document and its Content-Security-Policy."""
    style = (_HERE / "style.css").read_text(encoding="utf-8")
    script = (_HERE / "script.js").read_text(encoding="utf-8")
    page = (_HERE / "page.html").read_text(encoding="utf-8")
    page = page.replace("/* style.css */", style).replace("/* script.js */", script)
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page.encode(), policy


def _digest(text: str) -> str:
    """The source expression that allows exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _is_loopback(host: str) -> bool:
    """``host``: the header ``Host``, with or without a port."""
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _text(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    kind = {"Content-Type": "text/plain; charset=utf-8"}
    return Response(status, headers=kind | (headers or {}), content=f"{message}\n".encode())
