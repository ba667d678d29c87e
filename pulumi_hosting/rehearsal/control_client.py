"""The emulator's control interface over HTTP."""

import json
import re
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from pulumi_hosting.rehearsal.drift_changes import control_path
from pulumi_hosting.resources import RESOURCES


@dataclass
class Control:
    """Calls the control interface, as ``control("GET", "/objects")``, and records which objects are deleted
    through it.
    """

    url: str
    outside: set[tuple[str, str]] = field(default_factory=set)
    """(kind, id) of every object that was deleted outside the tool."""

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310  # our own emulator
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # the same
            found = json.loads(answer.read() or b"null")
        self._record_deletion(method, path, body)
        return found

    def requests(self) -> int:
        return len(self("GET", "/requests?since=0"))

    def ledger(self) -> list[dict[str, Any]]:
        return list(self("GET", "/ledger"))

    def _record_deletion(self, method: str, path: str, body: Any) -> None:
        if path == "/reset":
            self.outside.clear()
        for kind, declaration in RESOURCES.items():
            found = re.fullmatch(control_path(declaration).replace("{}", r"(\d+)"), path)
            removal = declaration.control_removal if method == "PATCH" else None
            is_patched_away = removal is not None and not any(body.get(key, True) for key in removal)
            if found and (method == "DELETE" or is_patched_away):
                self.outside.add((kind, "/".join(found.groups())))
