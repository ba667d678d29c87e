"""Start: a fresh process that imports, or makes its first call, beside one that does so with the libraries.

Without httpx's own command line, which httpx imports where click and rich are installed, as they are here.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

from tests.benchmarks.answers import API_KEY, answering
from tests.benchmarks.measure import Ratio, compare

ROUNDS = 15
ME = {
    "key": {
        "id": 501,
        "name": "deploy",
        "hint": "vk_live_abc…wxyz",
        "mode": "live",
        "scopes": ["servers:read"],
        "active": True,
        "created_at": "2026-01-31T10:00:00Z",
    },
    "account_id": 1001,
    "account": {"id": 1001, "login": "demo", "email": "demo@example.com", "currency": "EUR"},
    "livemode": True,
    "scopes": ["servers:read"],
    "available_scopes": ["servers:read", "servers:write"],
    "sandbox_enabled": True,
    "api_version": "1",
}
LIBRARIES = "import httpx; from pydantic import BaseModel"


def ratios() -> Iterator[Ratio]:
    yield compare("import pulumi_hosting", run("import pulumi_hosting"), "a bare Python", run("pass"), ROUNDS)
    ours = "from pulumi_hosting.client.client import Client"
    yield compare("import the client", run(ours), "importing httpx and pydantic", run(LIBRARIES), ROUNDS)
    with answering(json.dumps(ME).encode()) as url:
        me = run(f"{ours}; Client({API_KEY!r}, {url!r}).me()")
        for get in (f"httpx.get({url!r})", f"httpx.Client(verify=False).get({url!r})"):
            yield compare(
                "Client(...).me()",
                me,
                f"importing httpx and pydantic and {get.replace(repr(url), 'url')}",
                run(f"{LIBRARIES}; {get}"),
                ROUNDS,
                1.6,
            )


def run(code: str, *, has_rich: bool = False) -> Callable[[], object]:
    """Runs this code in a fresh Python; without ``has_rich`` httpx does not load its own command line."""
    begin = "" if has_rich else "import sys; sys.modules['rich'] = None; "
    return partial(subprocess.run, [sys.executable, "-c", begin + code], check=True)
