"""What came with an answer beside its body: request id, rate-limit state, sandbox mark (API document,
"General conventions", "Limits").
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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
