"""The emulator's control interface over HTTP."""

import json
import re
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from pulumi_hosting.rehearsal.managed_objects import DOMAIN, PTR, SERVER, SERVER_IP, SSH_KEY, WEBHOOK


@dataclass
class Control:
    """Calls the control interface, as ``control("GET", "/objects")``, and records which objects are deleted through it."""

    url: str
    outside: set[tuple[str, str]] = field(default_factory=set)
    """(kind, id) of every object that was deleted outside the tool."""

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310  # our own emulator on loopback
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # the same
            found = json.loads(answer.read() or b"null")
        self._record_deletion(method, path, body)
        return found

    def requests(self) -> int:
        found = self("GET", "/requests?since=0")
        return len(found["requests"] if isinstance(found, dict) else found)

    def ledger(self) -> list[dict[str, Any]]:
        found = self("GET", "/ledger")
        return list(found["ledger"] if isinstance(found, dict) else found)

    def _record_deletion(self, method: str, path: str, body: Any) -> None:
        if address := re.fullmatch(r"/servers/(\d+)/ips/(\d+)", path):
            id = "/".join(address.groups())
            if method == "DELETE":
                self.outside |= {(SERVER_IP, id), (PTR, id)}
            elif method == "PATCH" and "ptr" in body and not body["ptr"]:
                self.outside.add((PTR, id))
        elif method == "DELETE" and (one := re.fullmatch(r"/(servers|domains|ssh-keys|webhooks)/(\d+)", path)):
            kind = {"servers": SERVER, "domains": DOMAIN, "ssh-keys": SSH_KEY, "webhooks": WEBHOOK}[one[1]]
            self.outside.add((kind, one[2]))
        elif path == "/reset":
            self.outside.clear()
