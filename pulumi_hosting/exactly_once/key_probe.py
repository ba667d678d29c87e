"""Whether an idempotency key is remembered, asked without any effect.

The key of an order is sent to another operation, for an object that cannot exist. Answer
``idempotency_conflict`` means that the key is bound to the order, so repeating the order with it replays the
first answer and can buy nothing. (API document, "Idempotency")
"""

import secrets
from collections.abc import Callable
from typing import Any

from pulumi_hosting.client.exceptions import ApiError, IdempotencyConflict, IdempotencyInProgress

NONEXISTENT_ID = 2**53 - 1
"""An id nothing has: beyond every range the API document gives out, and still exact in every JSON reader."""


def nonexistent_id() -> int:
    """Another id that no object has, each time: a key that an earlier probe has bound to one of them then
    shows to be bound.
    """
    return NONEXISTENT_ID - secrets.randbelow(2**40)


def key_is_used(probe: Callable[[], Any]) -> bool:
    """Whether ``probe``, which sends the key for :data:`NONEXISTENT_ID`, shows the key to be bound. Any
    other answer proves nothing.
    """
    try:
        probe()
    except (IdempotencyConflict, IdempotencyInProgress):
        return True
    except ApiError:
        return False
    return False
