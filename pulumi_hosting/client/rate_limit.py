"""The place where a shared rate limiter sits between a client and the wire (API document, "Limits")."""

from collections.abc import Mapping
from typing import Protocol

from pulumi_hosting.api.metadata import Bucket


class Limiter(Protocol):
    """Keeps several clients of one API key within its buckets. Called from any thread.

    - ``reserve`` is called before every request, retries included; it may wait until the bucket has room, at most ``longest`` seconds.
      It raises ``TimedOut`` (``outcome_unknown`` false) when there will be none in that time.
    - ``observe`` is told of every answer: its status and headers (``X-RateLimit-…``, ``Retry-After``).
    """

    def reserve(self, bucket: Bucket, longest: float) -> None: ...

    def observe(self, bucket: Bucket, status: int, headers: Mapping[str, str]) -> None: ...


class Unlimited:
    """No limiter: the service says 429 when it is too much, and the client waits then."""

    def reserve(self, bucket: Bucket, longest: float) -> None:
        """Lets everything pass."""

    def observe(self, bucket: Bucket, status: int, headers: Mapping[str, str]) -> None:
        """Forgets everything."""
