"""The one place that derives idempotency keys, and asks without any effect which of them are used.

A key must survive a crash without any stored state, so it is computed from what names the purchase: the
declaration's identity, the account, and a generation; for a charge of an object, the facts that the charge
itself changes. What is ordered is no part of it, so that of two different orders for one declaration at the
same moment the second meets a conflict. The encoding is canonical and its version stands inside the key: an
encoding that changes would be a second order, so the vectors in the tests are frozen. The keys of a test key,
with which nothing is bought, have a random part: no run meets the answer of an earlier one.

To ask, a key is sent to an operation for an object that cannot exist. Answer ``idempotency_conflict`` means
that the key is bound to another request. So repeating that request replays its first answer and can buy
nothing. (API document, "Idempotency") The question itself may bind the key, if the service remembers
refusals.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any

from pulumi_hosting.api.operations import KEY_MEMORY_SECONDS
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ApiError, IdempotencyConflict, IdempotencyInProgress, NotFound
from pulumi_hosting.session.errors import ResourceError

SCHEME = "iac3"

KEY_MEMORY = timedelta(seconds=KEY_MEMORY_SECONDS)
"""How long the service remembers a key, and so how long what an interrupted run made is taken over."""


def canonical(value: Any) -> bytes:
    """One byte string per value: JSON with sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


@lru_cache(maxsize=4096)
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


NONEXISTENT_ID = 2**53 - 1
"""An id nothing has: beyond every range the API document gives out, and still exact in every JSON reader."""
_RANGE = 2**40
_MOST_UNTOLD = 16
_MOST_USED = 200

Ask = Callable[[int, str], Any]
"""Sends a key for the object with an id that nothing has."""


def ask(client: Client) -> Ask:
    """Asks with the renewal of a server."""
    return lambda id, key: client.servers.renew(id, months=1, idempotency_key=key)


def nonexistent_id() -> int:
    """Another id that no object has, each time: a key that an earlier question has bound to one of them then
    shows to be bound.
    """
    return NONEXISTENT_ID - secrets.randbelow(_RANGE)


def key_is_used(ask: Ask, key: str, id: int | None = None) -> bool:
    """Whether the key is bound to another request than this question, as far as the answer proves it."""
    return _answer(ask, key, nonexistent_id() if id is None else id) is True


def is_bound_to_an_order(ask: Ask, key: str) -> bool:
    """Whether the key is bound to more than this question. The question's id follows from the key, so asking
    twice is no conflict. A key that :class:`KeyWalk` has asked about shows as bound here.
    """
    return key_is_used(ask, key, NONEXISTENT_ID - int(digest(key.encode())[:8], 36) % _RANGE)


def _answer(ask: Ask, key: str, id: int) -> bool | None:
    """Whether the key is bound to another request; None if the answer does not tell."""
    try:
        ask(id, key)
    except (IdempotencyConflict, IdempotencyInProgress):
        return True
    except NotFound:
        return False
    except ApiError:
        return None
    return None


@dataclass
class KeyWalk:
    """The key that a purchase is sent with, and the next one if that is used.

    - ``generation``: of the present key. ``ask``: asks whether a key is used; None if nothing can be asked.
    - ``is_cheap``: one key after the other is sent, and the replay of what is bound to it is judged; a
      request that is expensive to repeat goes to the first key that is not used.
    - ``is_fresh``: whether the present key was seen to be unused: what is answered to it is of this moment.
    - ``is_under_way``: whether a request with one of the keys that were passed was still being processed.
    """

    ring: KeyRing
    generation: int = 0
    ask: Ask | None = None
    is_cheap: bool = False
    is_fresh: bool = False
    is_under_way: bool = field(default=False, init=False)
    _asked: int | None = field(default=None, init=False)
    """The id with which the present key was asked about."""
    _untold: int = field(default=0, init=False)
    _guessed: bool = field(default=False, init=False)

    @property
    def key(self) -> str:
        return self.ring.key(self.generation)

    @property
    def is_exhausted(self) -> bool:
        """Whether :meth:`leave` can go no further."""
        return self._untold >= _MOST_UNTOLD - 1

    def leave(self) -> None:
        """The present key is used: go to the first that is not, or to the next if nothing tells. Raises
        ``ResourceError`` after 16 that nothing tells of, and after 200 in a row that are used."""
        used: bool | None = True
        last = self.generation + _MOST_USED
        self._asked = None
        while used:
            if self.generation == last:
                raise ResourceError(
                    f"{_MOST_USED} keys in a row are bound to other requests (409 idempotency_conflict); "
                    "nothing was sent. Next: run again later, or ask the provider"
                )
            self.generation += 1
            id = nonexistent_id()
            used = None if self.ask is None or self.is_cheap else _answer(self._noting, self.key, id)
            if used is False:
                self._asked = id
        self.is_fresh = used is False
        self._untold += used is None
        if self._untold >= _MOST_UNTOLD:
            raise ResourceError(
                f"{_MOST_UNTOLD} requests of this kind within seven days are used up. Next: wait for the "
                "oldest to be forgotten"
            )

    def _noting(self, id: int, key: str) -> None:
        try:
            if self.ask is not None:
                self.ask(id, key)
        except IdempotencyInProgress:
            self.is_under_way = True
            raise

    def leave_if_used(self, *, by_one: bool = False) -> None:
        """Go on if the present key is used. ``by_one``: to the next, used or not, with what else may be bound
        to it."""
        if self.ask is None:
            return
        self._asked = nonexistent_id()
        if not key_is_used(self.ask, self.key, self._asked):
            return
        if by_one or self.is_cheap:
            self.generation, self._asked, self.is_fresh = self.generation + 1, None, False
        else:
            self.leave()

    def is_bound_by_the_question(self) -> bool:
        """After a conflict: whether only the question of :meth:`leave` had bound the key. Then the next one
        is the present key.
        """
        id, self._asked = self._asked, None
        if self.ask is None or id is None or _answer(self.ask, self.key, id) is not False:
            return False
        self.generation += 1
        # It was not asked about. If the service forgets the keys of a week ago one by one, it may be used.
        self.is_fresh, self._guessed = self._guessed, True
        return True
