"""What goes into the core and what comes out of it: a request, an answer, and the refusal that becomes the error envelope."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.emulator.formats import format_http_date


@dataclass(slots=True)
class Request:
    """One HTTP request under ``/v1``. ``path`` is what follows ``/v1``, ``headers`` have lower-case names, ``client`` is the address."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    client: str = "127.0.0.1"


@dataclass(slots=True)
class Response:
    """One HTTP answer. ``body`` is JSON-able, ``bytes`` (a file) or ``None`` (no body); the rest tells a skin how to misbehave.

    ``delay``: real seconds to wait before sending. ``drop``: close the connection instead of answering. ``truncate``: send only so many
    bytes of the body. ``without``: headers that are left out, in lower case. ``stored``, ``server_id``: what counts as still running until
    the waiting is over.
    """

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""
    delay: float = 0.0
    drop: bool = False
    truncate: int | None = None
    without: frozenset[str] = frozenset()
    stored: Any = None
    server_id: int | None = None

    def headers_to_send(self, now: float) -> dict[str, str]:
        """All headers, ``Date`` by the clock that is handed in."""
        headers = {"Date": format_http_date(now), **self.headers}
        return {name: value for name, value in headers.items() if name.lower() not in self.without}

    def encode(self) -> None:
        """Fill ``content`` and its type from ``body``."""
        if isinstance(self.body, bytes):
            self.content = self.body
        elif self.body is None:
            self.content = b""
        else:
            self.content = to_json(self.body)
            self.headers.setdefault("Content-Type", "application/json")
        if self.status != 204:
            self.headers["Content-Length"] = str(len(self.content))


class ApiError(Exception):
    """A request that is refused with an error code; ``status`` is the code's own unless a fault says otherwise."""

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        details: dict[str, Any] | None = None,
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

    def body(self, request_id: str) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message, "request_id": request_id}
        if self.details is not None:
            error["details"] = self.details
        return {"error": error}


def invalid(**fields: str) -> ApiError:
    """A ``validation_error`` that names its fields."""
    return ApiError("validation_error", "; ".join(f"{name}: {why}" for name, why in fields.items()), details={"fields": fields})
