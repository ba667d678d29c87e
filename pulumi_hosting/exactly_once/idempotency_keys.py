"""The one place that derives idempotency keys.

A key must survive a crash without any stored state, so it is computed from what the user declared: the
declaration's identity, the account, the mode, the body that is sent (without secrets) and a generation. The
encoding is canonical and its version stands inside the key: an encoding that changes would be a second order,
so the vectors in the tests are frozen.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEME = "iac2"


def canonical(value: Any) -> bytes:
    """One byte string per value: JSON with sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(data: bytes) -> str:
    """SHA-256 as 52 characters of a-z and 2-7."""
    return base64.b32encode(hashlib.sha256(data).digest()).decode().lower().rstrip("=")


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys of one declaration's creation; ``key(g)`` for generation 0, 1, 2 …

    A generation is used up when it is proven to be bound to something that can no longer be the answer: a
    deleted object, an order that failed, or a refusal that the account's present state contradicts.
    """

    account_id: int
    livemode: bool
    identity: str
    operation: str
    body: Mapping[str, Any]
    attempt: int = 0

    def key(self, generation: int) -> str:
        """57 of the allowed 16..128 characters: the scheme and 52 characters of a SHA-256."""
        facts = {
            "account": self.account_id,
            "attempt": self.attempt,
            "body": dict(self.body),
            "generation": generation,
            "identity": self.identity,
            "livemode": self.livemode,
            "operation": self.operation,
        }
        return f"{SCHEME}-{digest(canonical(facts))}"
