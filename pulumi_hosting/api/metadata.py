"""What came with an answer beside its body: request id, rate-limit state, sandbox mark (API document,
"General conventions", "Limits").
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic_core import from_json

from pulumi_hosting.api.secrets import shielded

Bucket = Literal["normal", "expensive"]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The bucket this call counted in: ``limit`` requests per window, ``remaining`` in this one, which ends
    at ``reset`` (UTC).

    ``bucket`` is the one the API document names for the call; a deployment may count some reads as expensive
    that the document does not.
    """

    bucket: Bucket
    limit: int | None
    remaining: int | None
    reset: datetime | None


@dataclass(frozen=True, slots=True)
class Meta:
    """How a result was obtained.

    ``request_id`` names the last attempt to the provider; ``sandbox`` is true when a test key was used;
    ``idempotency_key`` is the key a keyed operation was sent with; ``attempts`` counts the requests this call
    took.
    """

    operation: str
    status: int
    request_id: str
    sandbox: bool
    rate_limit: RateLimit | None
    idempotency_key: str | None
    attempts: int


@dataclass(slots=True, repr=False)
class OriginalBody:
    """The body of an answer, kept as it came until its JSON is asked for, and as JSON from then on."""

    body: bytes | None
    _json: object = None

    def json(self) -> Any:
        """The JSON, with its secrets shielded."""
        if self.body is not None:
            self._json = shielded(from_json(self.body)) if self.body.strip() else None
            self.body = None  # not both
        return self._json
