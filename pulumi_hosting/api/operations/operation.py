"""What is known of an operation: one row of the table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pulumi_hosting.api.error_codes import CODES, KEY_REFUSED
from pulumi_hosting.api.models.body import Listing, Page, RequestModel
from pulumi_hosting.api.reasons import holds
from pulumi_hosting.api.secrets import Secret

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
RetryClass = Literal["safe", "idempotent", "idempotency_key", "never"]
Sandbox = Literal["real", "fake", "forbidden"]
Paging = Literal["none", "list", "cursor"]


@dataclass(frozen=True, slots=True)
class ExtraLimit:
    """A limit beside the two buckets: ``calls`` per ``seconds`` for each value of the path parameter
    ``per``."""

    calls: int
    seconds: int
    per: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``route`` is its method and path (``GET /servers``), ``call`` its place in the client
    (``servers.ips.list`` → ``client.servers.ips.list()``).

    - ``responses``: model by status, the document's success first; ``bytes`` is a file, ``dict`` an open
      object, ``None`` no body.
    - ``scopes``: all needed; empty = any valid key; ``auth`` false = no key at all.
    - ``expensive`` true, or ``expensive_when`` query parameters hold these values: counts in the expensive
      bucket.
    - ``is_keyed``: sent with an Idempotency-Key.
    - ``sandbox_mode``: what a test key gets, if it is not that reads are real and writes simulated.
    - ``codes``: error codes it may answer, without those every operation shares.
    - ``description``: what else a caller must know, beyond the summary and the other columns.
    - ``live_status``, ``live_expensive``: where a live deployment differs from the document.
    """

    id: str
    route: str
    call: str
    summary: str
    responses: Mapping[int, Any]
    scopes: tuple[str, ...] = ()
    query: type[RequestModel] | None = None
    request: type[RequestModel] | None = None
    body_optional: bool = False
    expensive: bool = False
    expensive_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_keyed: bool = False
    sandbox_mode: Sandbox | None = None
    codes: tuple[str, ...] = ()
    limits: tuple[ExtraLimit, ...] = ()
    auth: bool = True
    live_status: int | None = None
    live_expensive: bool = False
    description: str = ""

    @property
    def method(self) -> str:
        """``GET``, ``POST``, ``PUT``, ``PATCH`` or ``DELETE``."""
        return self.route.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path below the base URL, with the names of its ids in braces."""
        return self.route.partition(" ")[2]

    @property
    def tag(self) -> str:
        """The area it belongs to: the first part of ``call``."""
        return self.call.split(".")[0]

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """The names in braces in the path, in its order."""
        return _path_parameters(self.path)

    @property
    def success(self) -> int:
        """The document's first success status."""
        first: int = next(iter(self.responses))
        return first

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def retry(self) -> RetryClass:
        """``safe`` reads; ``idempotency_key`` is safe to repeat with the same Idempotency-Key; ``idempotent``
        may be sent again after a read; ``never`` must not be repeated automatically."""
        if self.is_keyed:
            return "idempotency_key"
        return _RETRY.get(self.method, "idempotent")

    @property
    def sandbox(self) -> Sandbox:
        """What a test key gets: ``real``, ``fake`` (simulated) or ``forbidden``."""
        return self.sandbox_mode or ("fake" if self.is_write else "real")

    @property
    def paging(self) -> Paging:
        """How its list is read: page by page with a ``cursor``, as a whole ``list``, or there is ``none``."""
        answer = self.responses[self.success]
        if not isinstance(answer, type):
            return "none"
        return "cursor" if issubclass(answer, Page) else "list" if issubclass(answer, Listing) else "none"

    @property
    def once(self) -> tuple[str, ...]:
        """The fields of its answers that hold a secret, which is shown in this answer only."""
        return tuple(name for answer in self.responses.values() for name in _secrets_of(answer))

    def is_expensive(self, query: Mapping[str, str]) -> bool:
        """Whether a call with this query counts in the expensive bucket (by the document)."""
        return self.expensive or any(
            query.get(name) in values for name, values in self.expensive_when.items()
        )

    @property
    def error_codes(self) -> tuple[str, ...]:
        """Every code this operation may answer, its own and the shared ones, in the order of the code
        table."""
        shared: set[str] = set()
        if self.auth:
            shared |= KEY_REFUSED
            shared |= {"rate_limited", "server_error", "api_disabled", "temporarily_unavailable"}
            if self.scopes or self.id == "revoke_api_key":
                shared.add("insufficient_scope")
            if self.sandbox == "forbidden":
                shared.add("sandbox_not_supported")
            if self.query is not None or self.path_parameters or self.is_write:
                shared.add("validation_error")
            if self.paging == "cursor":
                shared.add("invalid_cursor")
            if self.path_parameters:
                shared.add("not_found")
            if self.is_write:
                shared |= {
                    "payload_too_large",
                    "unsupported_media_type",
                    "upstream_error",
                    "upstream_unavailable",
                    "upstream_timeout",
                }
                if self.request is not None:
                    shared.add("invalid_request")
            if self.is_keyed:
                shared |= {"idempotency_key_required", "idempotency_conflict", "idempotency_in_progress"}
        return tuple(code for code in CODES if code in shared or code in self.codes)


_RETRY: Mapping[str, RetryClass] = {"GET": "safe", "POST": "never"}
"""Method → retry class without an Idempotency-Key; those of all others may be sent again after a read."""


@cache
def _secrets_of(answer: object) -> tuple[str, ...]:
    fields = getattr(answer, "model_fields", {})
    return tuple(name for name, field in fields.items() if holds(Secret, field.annotation))


@cache
def _path_parameters(path: str) -> tuple[str, ...]:
    return tuple(re.findall(r"{(\w+)}", path))
