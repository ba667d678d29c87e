"""Charges of what is there already: renewals, payments, top-ups.

The key is made of facts that the charge itself changes (the date that is paid until, the invoice), never of
who asks: whoever has the same intent at the same moment sends the same key, and a second charge needs new
facts.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from pulumi_hosting.client.exceptions import ApiError, CallError
from pulumi_hosting.exactly_once.idempotency_keys import Ask, KeyRing, KeyWalk
from pulumi_hosting.exactly_once.purchase import Purchase, When

T = TypeVar("T")
_AGAIN = 5 * 3600  # seconds; no divisor of a day, so that a job at one time of the day meets each part of it
_UNDER_WAY = 1800  # longer than a request of ours can be repeated for


@dataclass(kw_only=True)
class Charge(Purchase[T, tuple[T | None]]):
    """One charge. It comes to the answer, or to None if that was lost and the account shows that it is done.

    - ``kind`` and ``subject``: of the action, and what it charges for, such as ``server 20001``.
    - ``facts``: what its keys are made of. ``happened``: whether the account shows it by now; asked when an
      answer does not tell. ``ask``: as in :class:`~pulumi_hosting.exactly_once.idempotency_keys.KeyWalk`.
    - ``may_be_lifted``: whether a refusal may end with time, and nothing shows when (too early, suspended).
      The first key keeps it for seven days, in which the object would be lost. So another key is sent, once
      in five hours: all machines have the same one then, and in the last half hour none, since a request
      with it may still be under way when the next one is sent.
    - ``is_of_the_past``: whether an accepted answer is the replay of one whose effect has been taken back.
    """

    operation: str
    facts: Mapping[str, Any]
    send: Callable[..., T]
    happened: Callable[[], bool]
    ask: Ask | None = None
    is_outdated: Callable[[ApiError], bool] = lambda error: False
    may_be_lifted: Callable[[ApiError], bool] = lambda error: False
    is_of_the_past: Callable[[T], bool] = lambda answer: False
    bound_elsewhere: Callable[[], None] = lambda: None

    outage = 120.0

    def turn(self) -> AbstractContextManager[object]:
        return self.request.ownership.lock(f"{self.operation} {sorted(self.facts.items())}")

    def walk(self) -> KeyWalk:
        ring = KeyRing.of(self.request.client, f"action:{self.operation}", self.operation, self.facts)
        return KeyWalk(ring, ask=self.ask, is_cheap=True)

    def look(self, when: When) -> tuple[T | None] | None:
        return (None,) if when != "before" and self.happened() else None

    def after_refusal(self, error: CallError, walk: KeyWalk) -> tuple[T | None] | None:
        part, seconds = divmod(int(self.request.service_now().timestamp()), _AGAIN)
        is_first = walk.generation < part and seconds < _AGAIN - _UNDER_WAY
        if is_first and isinstance(error, ApiError) and self.may_be_lifted(error):
            walk.generation = part
            return None
        return super().after_refusal(error, walk)

    def accept(self, answer: T, walk: KeyWalk) -> tuple[T | None] | None:
        return None if self.is_of_the_past(answer) else (answer,)

    def once(self) -> T | None:
        """Send it. Raises the service's refusal, or ``Failed``."""
        return self.carry_out()[0]
