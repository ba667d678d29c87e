"""The console: one page that shows what the account holds and moves its clock, over the control interface.

The page holds no data and loads nothing from elsewhere: its style and its script are in it, and its
Content-Security-Policy allows nothing else.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path

from pulumi_hosting.emulator.browser_requests import Names, host_refusal
from pulumi_hosting.emulator.messages import Answer

PATH = "/_console"

_HERE = Path(__file__).parent


def console_response(method: str, host: str, names: Names) -> Answer:
    """The page, unless the ``Host`` header has a name that is not one of ``names`` and not this machine's."""
    if method not in ("GET", "HEAD"):
        return _text(405, f"{method} is not supported here. Next: GET {PATH}", {"Allow": "GET, HEAD"})
    if (reason := host_refusal(host, names)) is not None:
        return _text(403, reason)
    page, policy = _page()
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",  # without a referrer, a browser may send `Origin: null`
        "X-Content-Type-Options": "nosniff",
    }
    return Answer(200, headers=headers, content=b"" if method == "HEAD" else page)


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


def _text(status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
    kind = {"Content-Type": "text/plain; charset=utf-8"}
    return Answer(status, headers=kind | (headers or {}), content=f"{message}\n".encode())
