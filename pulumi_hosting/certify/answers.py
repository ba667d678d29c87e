"""An answer of the deployment, and the same without its secrets, for people."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

_SECRETS = re.compile(r"password|secret|auth_code|authorization|^key$", re.IGNORECASE)
_TOKENS = re.compile(r"\b(vk_(?:live|test)_|whsec_)[\w-]+")
SHOWN = 1500


@dataclass
class HttpAnswer:
    """``status`` 0: there was none, because the connection failed. ``sent``: the request for people."""

    sent: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    replayed: bool = False
    """From the state file of an earlier run."""
    lacks: str = ""
    """What the key or the account of the run lacks for what was asked."""

    @cached_property
    def data(self) -> Any:
        """The JSON, or ``None``."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object; an empty one if it is something else."""
        return mapping(self.data)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The objects of a list."""
        data = self.body.get("data")
        return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []

    @property
    def ids(self) -> list[object]:
        """Of the objects of a list."""
        return [entry.get("id") for entry in self.items]

    @property
    def error(self) -> dict[str, Any]:
        return mapping(self.body.get("error"))

    @property
    def code(self) -> str | None:
        return self.error.get("code")

    @property
    def details(self) -> dict[str, Any]:
        """Those of the error; none if they are no object."""
        return mapping(self.error.get("details"))

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def is_(self, status: int, code: str | None = None) -> bool:
        return self.status == status and (code is None or self.code == code)

    @property
    def short(self) -> str:
        """Status and code."""
        return f"{self.status} {self.code or ''}".strip() if self.status else "no answer"

    @cached_property
    def shown(self) -> str:
        """With its X-Request-ID, by which the deployment's log has the request."""
        begin = f"{self.short} (request {self.headers.get('x-request-id', 'without id')})"
        if self.data is None:
            return f"{begin} {self.headers.get('content-type', '')} ({len(self.content)} bytes)"
        return f"{begin} {masked(self.data)}"


def mapping(value: object) -> dict[str, Any]:
    """The object; an empty one if it is something else."""
    return value if isinstance(value, dict) else {}


def masked(data: object) -> str:
    """JSON in one line without secrets."""
    text = json.dumps(_masked(data), ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _masked(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            name: "***" if isinstance(value, str) and value and _SECRETS.search(name) else _masked(value)
            for name, value in data.items()
        }
    if isinstance(data, list):
        return [_masked(value) for value in data]
    return _TOKENS.sub(r"\1***", data) if isinstance(data, str) else data
