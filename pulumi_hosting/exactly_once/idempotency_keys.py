"""The one place that derives idempotency keys.

A key must survive a crash without any stored state, so it is computed from what names the purchase: the
declaration's identity, the account, and a generation; for a charge of an object, the facts that the charge
itself changes. What is ordered is no part of it, so that of two different orders for one declaration at the
same moment the second meets a conflict. The encoding is canonical and its version stands inside the key: an
encoding that changes would be a second order, so the vectors in the tests are frozen. The keys of a test key,
with which nothing is bought, have a random part: no run meets the answer of an earlier one.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pulumi_hosting.api.operations import KEY_MEMORY_SECONDS
from pulumi_hosting.client.client import Client

SCHEME = "iac3"

KEY_MEMORY = timedelta(seconds=KEY_MEMORY_SECONDS)
"""How long the service remembers a key, and so how long what an interrupted run made is taken over."""


def canonical(value: Any) -> bytes:
    """One byte string per value: JSON with sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(data: bytes) -> str:
    """SHA-256 as 52 characters of a-z and 2-7."""
    return base64.b32encode(hashlib.sha256(data).digest()).decode().lower().rstrip("=")


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys of one purchase; ``key(g)`` for generation 0, 1, 2 …

    A generation is used up when it is proven to be bound to something that can no longer be the answer: a
    deleted object, an order that failed, or a refusal that the account's present state contradicts.
    """

    account_id: int
    livemode: bool
    identity: str
    operation: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 0
    _random: str = field(default_factory=lambda: secrets.token_hex(8), init=False, compare=False, repr=False)

    @classmethod
    def of(
        cls, client: Client, identity: str, operation: str, facts: Mapping[str, Any] = {}, attempt: int = 0
    ) -> "KeyRing":
        """The keys of a purchase on the account of ``client``."""
        me = client.key_owner.get()
        return cls(me.account_id, me.livemode, identity, operation, facts, attempt)

    def key(self, generation: int) -> str:
        """57 of the allowed 16..128 characters: the scheme and 52 characters of a SHA-256."""
        facts = {
            "account": self.account_id,
            "attempt": self.attempt,
            "facts": dict(self.facts),
            "generation": generation,
            "identity": self.identity,
            "livemode": self.livemode,
            "operation": self.operation,
            **({} if self.livemode else {"random": self._random}),
        }
        return f"{SCHEME}-{digest(canonical(facts))}"
