"""Charges of what is there already: renewals, payments, top-ups.

The key is made of facts that the charge itself changes (the date that is paid until, the invoice), never of
who asks: whoever has the same intent at the same moment sends the same key, and a second charge needs new
facts.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import ApiError
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.exactly_once.key_probe import Ask, KeyWalk
from pulumi_hosting.exactly_once.purchase import Purchase, Shown, When
from pulumi_hosting.session.request import Request

T = TypeVar("T")

_OUTAGE = 120.0  # seconds in which one run asks again after failures of the service


def charge(
    request: Request,
    *,
    what: str,
    kind: str,
    subject: str,
    operation: str,
    facts: Mapping[str, Any],
    send: Callable[[str], T],
    happened: Callable[[], bool],
    ask: Ask | None = None,
    concerns: Callable[[m.Invoice], bool] | None = None,
    price: Decimal | None = None,
    is_outdated: Callable[[ApiError], bool] = lambda error: False,
    is_of_the_past: Callable[[T], bool] = lambda answer: False,
    bound_elsewhere: Callable[[], None] = lambda: None,
) -> T | None:
    """Send it once: the answer; None if it was lost and the account shows that it is done. Raises the
    service's refusal, or ``Failed``.

    - ``kind`` and ``subject``: of the action, and what it charges for, such as ``server 20001``.
    - ``facts``: what its keys are made of. ``happened``: whether the account shows it by now; asked when an
      answer does not tell.
    - ``is_of_the_past``: whether an accepted answer is the replay of one whose effect has been taken back.
    - The rest is as in :class:`~pulumi_hosting.exactly_once.purchase.Purchase` and
      :class:`~pulumi_hosting.exactly_once.key_probe.KeyWalk`.
    """

    def look(when: When) -> Shown[T | None] | None:
        return Shown(None) if when != "before" and happened() else None

    def walk() -> KeyWalk:
        return KeyWalk(
            KeyRing.of(request.client, f"action:{operation}", operation, facts),
            ask=ask,
            is_cheap=True,
        )

    return Purchase[T, T | None](
        request,
        what,
        kind,
        walk=walk,
        look=look,
        send=lambda idempotency_key: send(idempotency_key),
        accept=lambda answer, walk: None if is_of_the_past(answer) else answer,
        turn=lambda: request.ownership.lock(f"{operation} {sorted(facts.items())}"),
        is_outdated=is_outdated,
        concerns=concerns,
        bound_elsewhere=bound_elsewhere,
        subject=subject,
        price=price,
        outage=_OUTAGE,
    ).carry_out()
