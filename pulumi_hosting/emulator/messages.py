"""Requests, responses, and errors that become the error envelope."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.emulator.formats import format_http_date


@dataclass(slots=True)
class ApiRequest:
    """A request under ``/v1``: ``path`` without ``/v1``, ``headers`` in lower case, ``client`` the caller's
    address.
    """

    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    client: str = "127.0.0.1"


@dataclass(slots=True)
class Answer:
    """A response. ``body`` is JSON, ``bytes`` (a file) or ``None`` (no body); the rest is what a server
    does besides sending.

    ``delay``: real seconds to wait before sending. ``drop``: close the connection instead of answering.
    ``truncate``: send only so many bytes of the body. ``packed``: send it as gzip.
    ``without``: headers that are left out, in lower case. ``at_end``: called when the delay is over.
    """

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""
    delay: float = 0.0
    drop: bool = False
    truncate: int | None = None
    packed: bool = False
    without: frozenset[str] = frozenset()
    at_end: list[Callable[[], object]] = field(default_factory=list)

    def headers_to_send(self, now: float) -> list[tuple[str, str]]:
        """All headers, with ``Date`` for the time ``now``; their names are in lower case."""
        headers = {"Date": format_http_date(int(now // 1)), **self.headers}
        return [(low, text) for name, text in headers.items() if (low := name.lower()) not in self.without]

    def encode(self) -> None:
        """Fill ``content`` and its type from ``body``."""
        if self.body is None or isinstance(self.body, bytes):
            self.content = self.body or b""
        else:
            self.content = to_json(self.body)
            self.headers.setdefault("Content-Type", "application/json")

    def seal(self) -> None:
        """Pack ``content`` if the handler has asked for it, and say how long it is."""
        if self.packed:
            self.content = gzip.compress(self.content, mtime=0)
            self.headers["Content-Encoding"] = "gzip"
        if self.status != 204:
            self.headers["Content-Length"] = str(len(self.content))


class Refusal(Exception):
    """A request refused with an error code; ``status`` is the code's own unless a fault sets another."""

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        details: dict[str, object] | None = None,
        retry_after: float | None = None,
        status: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        row = CODES.get(code)
        self.code = code
        self.message = message or (row.meaning if row else code)
        self.details = details
        self.retry_after = retry_after
        self.status = status or (row.status if row else 500)
        self.headers = headers or {}
        super().__init__(f"{self.status} {code}")

    def body(self, request_id: str) -> dict[str, object]:
        error: dict[str, object] = {"code": self.code, "message": self.message, "request_id": request_id}
        if self.details is not None:
            error["details"] = self.details
        return {"error": error}


def invalid(**fields: str) -> Refusal:
    """A ``validation_error`` with the reason for each field."""
    return Refusal(
        "validation_error",
        "; ".join(f"{name}: {why}" for name, why in fields.items()),
        details={"fields": fields},
    )
