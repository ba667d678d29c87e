"""Sending a charge so that it is made once, whatever is killed, cut or repeated.

The key is made of facts that the charge itself changes (the date that is paid until, the invoice), never of
who asks: whoever has the same intent at the same moment sends the same key, and a second charge needs new
facts. The service stores every outcome under its key for seven days, refusals too (API document,
"Idempotency"), so there are generations of keys; one is left behind only when what is bound to it is shown to
be of the past, and to have charged nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import (
    ApiError,
    CallError,
    Forbidden,
    IdempotencyConflict,
    IdempotencyInProgress,
    InsufficientFunds,
    InvalidResponse,
    NotFound,
    OperationInProgress,
    RateLimited,
    TransportError,
    Unauthorized,
    Unavailable,
)
from pulumi_hosting.client.polling import Poller
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.session.errors import Failed, ResourceError
from pulumi_hosting.session.key_owner import account
from pulumi_hosting.session.request import Request

T = TypeVar("T")

GENERATIONS = 16
_OUTAGE = 120.0  # seconds in which one run asks again after failures of the service
# how far before our first request a movement of money is looked at: clocks differ
_MONEY_WINDOW = timedelta(minutes=5)


def _never(anything: Any) -> bool:
    return False


# Refusals that may come from before the layer that knows the key.
_UNDECIDED = (Unauthorized, Forbidden, NotFound, RateLimited, Unavailable, IdempotencyInProgress)


def _is_lost(error: CallError) -> bool:
    """Whether the request may have been carried out without a word: lost itself, or refused after an attempt
    of the same call was lost.

    A 502 or 504 of the service is an outcome with facts of its own, and is looked into as such.
    """
    if isinstance(error, InvalidResponse):
        return True
    return error.outcome_unknown and not (isinstance(error, ApiError) and error.status in (502, 504))


@dataclass
class Once(Generic[T]):
    """One charge.

    - ``what``: in words, for messages. ``facts``: what its keys are made of.
    - ``send``: sends it with a key. ``happened``: whether the account shows it by now; asked when an answer
      does not tell.
    - ``concerns``: whether an invoice is one of this charge; None where no money moves.
    - ``price``: what it is expected to cost. ``contradicted``: whether a refusal does not hold any more.
    - ``is_of_the_past``: whether an accepted answer is the replay of one whose effect has been taken back
      since.
    - ``bound_elsewhere``: called when the key is bound to another request; raises where that one may have
      charged already.
    """

    request: Request
    what: str
    operation: str
    facts: Mapping[str, Any]
    send: Callable[[str], T]
    happened: Callable[[], bool]
    concerns: Callable[[m.Invoice], bool] | None = None
    price: Decimal | None = None
    contradicted: Callable[[ApiError], bool] = _never
    is_of_the_past: Callable[[T], bool] = _never
    bound_elsewhere: Callable[[], None] = lambda: None
    started: datetime = field(init=False)
    keys: KeyRing = field(init=False, repr=False)
    _busy: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        me = account(self.request.client)
        self.started = self.request.service_now()
        self.keys = KeyRing(
            me.account_id, me.livemode, f"action:{self.operation}", self.operation, self.facts
        )

    def carry_out(self) -> T | None:
        """The answer; None where it was lost and the account shows that it is done. Raises the service's
        refusal, or ``ResourceError``.
        """
        with self.request.ownership.lock(f"{self.operation} {sorted(self.facts.items())}"):
            return self._carry_out()

    def _carry_out(self) -> T | None:
        wait, outage = self.request.poller(), self.request.poller(_OUTAGE)
        keys, generation = self.keys, 0
        refusal: CallError | None = None
        while generation < GENERATIONS:
            key = keys.key(generation)
            generation += 1
            try:
                answer = self.send(key)
            except (TransportError, InvalidResponse, ApiError) as error:
                if self._is_done_after(error, wait, outage):
                    return None
                refusal = error
                if isinstance(error, OperationInProgress):
                    # The refusal may be stored. How often it will be met is not known, so the moment is a
                    # part of the next key, not a number.
                    keys, generation = self._keys_of_now(), 0
            else:
                if not self.is_of_the_past(answer):
                    return answer
        if refusal is not None:
            raise refusal
        raise ResourceError(
            f"{self.what}: {GENERATIONS} tries within seven days are used up. Next: wait for "
            "the oldest to be forgotten"
        )

    def _is_done_after(self, error: CallError, wait: Poller, outage: Poller) -> bool:
        """Whether the account shows after a failure that it is done; False where the next key may be tried.
        Raises where it must end.
        """
        if isinstance(error, OperationInProgress):
            if wait.over:
                raise error
            self.request.info(f"{self.what}: another operation is running")
            wait.pause()
            return self.happened()
        if isinstance(error, IdempotencyConflict):
            # Another process is making the same change; its result may appear shortly.
            self.request.info(f"{self.what}: another request of the kind is known; looking again")
            self.request.clock.sleep(self.request.poll_interval)
            if self.happened():
                return True
            self.bound_elsewhere()
            return False
        if isinstance(error, (TransportError, InvalidResponse, *_UNDECIDED)) and _is_lost(error):
            if self.happened():
                return True
            raise self._unsure(error) from None
        if not isinstance(error, ApiError):
            raise error
        return self._is_done_after_refusal(error, outage)

    def _is_done_after_refusal(self, error: ApiError, outage: Poller) -> bool:
        """The same, for a refusal."""
        if error.status >= 500 and error.code != "api_disabled":
            if self.happened():
                return True
            self._must_have_moved_nothing(error)
            if error.status == 504 or outage.over:
                raise self._unsure(error) from None
        elif not self._does_not_hold(error):
            raise error
        return False

    def _keys_of_now(self) -> KeyRing:
        self._busy += 1
        return replace(self.keys, attempt=int(self.request.clock.now().timestamp()) + self._busy)

    def _does_not_hold(self, error: ApiError) -> bool:
        """Whether a refusal is a stored one that the account contradicts by now. A refusal has charged
        nothing.
        """
        if isinstance(error, InsufficientFunds):
            needed = error.required if error.required is not None else self.price
            try:
                return needed is not None and self.request.client.balance.get().balance >= needed
            except Forbidden:
                return False
        return self.contradicted(error)

    def _must_have_moved_nothing(self, error: ApiError) -> None:
        """After a failure of the service. What was charged just now and returned is reported; what was
        charged and kept, all the more.
        """
        if self.concerns is None:
            return
        moved: dict[int, Decimal] = {}
        try:
            for movement in self.request.client.balance.transactions(since=self.started - _MONEY_WINDOW):
                if movement.invoice_id is not None:
                    sign = 1 if movement.direction == "debit" else -1
                    moved[movement.invoice_id] = (
                        moved.get(movement.invoice_id, Decimal(0)) + sign * movement.amount
                    )
            ours = {
                id: net for id, net in moved.items() if self.concerns(self.request.client.invoices.get(id))
            }
        except (ApiError, TransportError):
            raise self._unsure(error) from None
        for id, net in ours.items():
            if net > 0:
                raise Failed(
                    f"{error.summary} — invoice {id} is paid, and the {self.what} does not show; nothing "
                    "was repeated. Next: look at it before running again, or ask the provider",
                    error,
                )
        if ours:
            raise Failed(
                f"{error.summary} — the charge was returned (invoice {max(ours)}); nothing was repeated. "
                f"Next: run again in a few minutes",
                error,
            )

    def _unsure(self, error: CallError) -> Failed:
        return Failed(
            f"{error.summary} — whether the {self.what} was carried out is not known; it does not show yet. "
            f"Next: run again: the same request is repeated, never a second one",
            error,
        )
