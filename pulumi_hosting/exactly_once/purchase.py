"""Buying something once, whatever is killed, cut or repeated: one judgement and one loop for all purchases.

:func:`judge` says what became of a purchase, by what the account shows. :class:`Purchase` is the loop:

1. *Turn*: one purchase of a kind at a time, among the processes that share a store: those of this user on
   this machine, or those of several machines.
2. *Look*: what is there already is not bought again.
3. *Approve*: nothing is paid without agreement. Then an entry is written into the journal.
4. *Send*, with a key that follows from the declaration alone, so that a run after a crash sends the same.
5. *Judge* the answer. The service stores every outcome under its key for seven days, refusals too (API
   document, "Idempotency"). A key is left behind only if what is bound to it is shown to be of the past and
   to have charged nothing that is kept; the next one is the first that no question shows to be used.

A new kind of purchase says how it is looked for and sent; it decides nothing about keys and money.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Generic, Literal, TypeVar

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import (
    ApiError,
    CallError,
    Forbidden,
    IdempotencyConflict,
    IdempotencyInProgress,
    InsufficientFunds,
    InvalidResponse,
    OperationInProgress,
    TransportError,
)
from pulumi_hosting.client.polling import Poller
from pulumi_hosting.exactly_once import purchase_journal
from pulumi_hosting.exactly_once.idempotency_keys import KEY_MEMORY, KeyWalk, key_is_used
from pulumi_hosting.exactly_once.local_files import TakenAgain
from pulumi_hosting.exactly_once.payments import CLOCKS_DIFFER, Payment, payments_since
from pulumi_hosting.session.errors import Failed, ResourceConflict, ResourceError
from pulumi_hosting.session.request import Request

# --- the judgement -----------------------------------------------------------------------------------------


class Fate(Enum):
    """What became of a purchase."""

    THERE = "is there"
    ON_ITS_WAY = "is on its way"
    REFUNDED = "was refunded"
    REFUSED = "was refused"
    CANCELLED = "was cancelled"
    NEVER_ARRIVED = "never arrived"
    UNKNOWN = "is not known to have arrived"


_REFUSED = frozenset({"failed", "refused", "rejected", "error"})
_CANCELLED = frozenset({"cancelled", "canceled", "terminated", "deleted"})


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one purchase.

    - ``is_there``: whether what was bought is on the account.
    - ``status``: what the service calls its order, or the object that is still to come; None if nothing
      shows it.
    - ``payment``: its money; None if no invoice of it is known, or the key may not see it.
    - ``age``: since it was sent; None if that is not known.
    """

    is_there: bool = False
    status: str | None = None
    payment: Payment | None = None
    age: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """``fate``: what became of a purchase; ``payment``: its money, as far as it is known."""

    fate: Fate
    payment: Payment | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing will arrive any more."""
        return self.fate in (Fate.REFUNDED, Fate.REFUSED, Fate.CANCELLED, Fate.NEVER_ARRIVED)

    @property
    def may_be_forgotten(self) -> bool:
        """Whether a deletion may let it go: nothing was charged, or all was returned, or the service has
        forgotten its keys and nothing came.
        """
        if self.fate is Fate.THERE:
            return False
        return self.fate is Fate.NEVER_ARRIVED or (self.payment is not None and self.payment.is_returned)

    def next_step(self, read_and_apply: str, verb: str) -> str:
        """How to get another one once this one is over. ``read_and_apply``: the command; ``verb``: ``order``
        or ``buy``. What never arrived may still arrive, so a second purchase needs a person's word."""
        if self.fate is Fate.NEVER_ARRIVED:
            return f"ask the provider about it; to {verb} another one, set order_attempt to 1"
        return f"{read_and_apply}, which {verb}s another one"

    def sentence(self, what: str) -> str:
        """What became of ``what`` and where the money is: ``the registration of shop.com was refused;
        12.00 EUR were returned, invoice 40002``.
        """
        paid = self.payment
        if paid is None:
            money = "what became of its charge is not known"
        elif self.is_over or not paid.paid:
            money = paid.sentence
        else:
            money = paid.charged
        return f"{what} {self.fate.value}; {money}"


def judge(evidence: Evidence) -> Verdict:
    """What became of a purchase. Every part of the program that meets one asks this function.

    >>> judge(Evidence(is_there=True)).fate, judge(Evidence(status="provisioning")).fate
    (<Fate.THERE: 'is there'>, <Fate.ON_ITS_WAY: 'is on its way'>)
    """
    status, paid = evidence.status, evidence.payment
    if evidence.is_there:
        fate = Fate.THERE
    elif status in _REFUSED:
        fate = Fate.REFUSED
    elif status in _CANCELLED:  # the service has one word for both; a refused purchase is returned
        fate = Fate.REFUSED if paid is not None and paid.paid and paid.is_returned else Fate.CANCELLED
    elif paid is not None and paid.is_returned and (paid.paid or paid.status in ("refunded", "cancelled")):
        fate = Fate.REFUNDED if paid.paid else Fate.CANCELLED  # a price may be 0.00
    elif evidence.age is not None and evidence.age > KEY_MEMORY:
        fate = Fate.NEVER_ARRIVED
    elif status is not None or (paid is not None and paid.paid):
        fate = Fate.ON_ITS_WAY
    else:
        fate = Fate.UNKNOWN
    return Verdict(fate, paid)


# --- what an answer means ----------------------------------------------------------------------------------


class Meaning(Enum):
    """What an error that answers a purchase means for the key it was sent with."""

    REFUSED = "a refusal: report it, unless the account contradicts it"
    LOST = "it may be carried out without a word: look, then stop; the same key is sent again"
    FAILED = "the service carried it out and failed: look at the money, then the next key"
    CONFLICT = "the key is bound to another request: look once more, then the next key"
    BUSY = "another operation is running: wait, then once more"


def meaning(error: CallError) -> Meaning:
    """Decide about an answer that is an error.

    >>> meaning(IdempotencyConflict(status=409, code="idempotency_conflict", message=""))
    <Meaning.CONFLICT: 'the key is bound to another request: look once more, then the next key'>
    """
    status = error.status if isinstance(error, ApiError) else None
    if isinstance(error, InvalidResponse | IdempotencyInProgress):
        return Meaning.LOST
    is_foreign = isinstance(error, ApiError) and error.code.startswith("http_")  # of a gateway, perhaps
    if status == 504 or (error.outcome_unknown and (is_foreign or status not in (500, 502))):
        # An attempt may still be carried out under this key: another key could buy a second time.
        return Meaning.LOST
    if isinstance(error, OperationInProgress):
        return Meaning.BUSY
    if isinstance(error, IdempotencyConflict):
        return Meaning.CONFLICT
    return Meaning.FAILED if status is not None and status >= 500 and status != 503 else Meaning.REFUSED


# --- the loop ----------------------------------------------------------------------------------------------

A = TypeVar("A")
R = TypeVar("R")
E = TypeVar("E", bound=Exception)


When = Literal["before", "busy", "conflict", "lost", "failed", "undone"]
"""Why the account is looked at: before anything is sent, or after an answer. ``undone``: the service says
that it did not carry the request out, so what is there by now need not be of it."""


@dataclass
class Purchase(Generic[A, R]):
    """One purchase; ``A`` is what the service answers, ``R`` what it comes to.

    - ``what``: in words, for messages. ``kind`` and ``subject``: what the journal calls it; the kind of
      resource or action, and what it is for, if the declaration alone does not tell.
    - ``price``: what it is expected to cost. ``concerns``: whether an invoice may be one of this purchase;
      None if no money moves.
    """

    request: Request
    what: str
    kind: str
    subject: str = field(default="", kw_only=True)
    price: Decimal | None = field(default=None, kw_only=True)
    concerns: Callable[[m.Invoice], bool] | None = field(default=None, kw_only=True)
    interrupted: purchase_journal.Entry | None = field(default=None, init=False)
    """What an earlier run began and did not report."""
    _began: float | None = field(default=None, init=False)
    _busy: Poller = field(init=False, repr=False)
    _outage: Poller = field(init=False, repr=False)
    _failures: int = field(default=0, init=False)
    _moved: set[tuple[int, Decimal]] | None = field(default=None, init=False)
    """The invoices of this purchase, and what was paid for them, as of the latest failure of the service."""

    # --- what is special about a good

    outage = 0.0
    """Seconds in which one run asks again after failures of the service that charged nothing."""
    under_way = 0.0
    """Seconds for which another run's request may be under way and show nowhere."""

    def walk(self) -> KeyWalk:
        """The first key, and how to go on from it. Asked again after each wait, since what keys are made of
        may have changed."""
        raise NotImplementedError

    def look(self, when: When) -> R | None:
        """What the account shows of it."""
        raise NotImplementedError

    def send(self, idempotency_key: str) -> A:
        """Send it."""
        raise NotImplementedError

    def sends(self) -> Iterable[Callable[..., A]]:
        """The requests any of which a key of the purchase may be bound to."""
        return (self.send,)

    def instead(self, error: CallError) -> bool:
        """Whether this refusal leaves something else to be bought, which is then sent with the next key."""
        return False

    def accept(self, answer: A, walk: KeyWalk) -> R | None:
        """What an accepted answer comes to; None if it replays something of the past."""
        raise NotImplementedError

    def in_part(self, error: InvalidResponse) -> R | None:
        """The same of an answer that could be read in part."""
        return None

    def turn(self) -> AbstractContextManager[object]:
        """Held while no other process of this machine may buy the same."""
        return nullcontext()

    def is_outdated(self, error: ApiError, /) -> bool:
        """Whether the present state of the account contradicts a refusal."""
        return False

    def bound_elsewhere(self) -> None:
        """The key is bound to another request: raise if that one may have charged."""

    # --- the loop itself

    def carry_out(self) -> R:
        """Find it, else buy it. Raises what ``request.approve`` raises, the service's refusal, or ``Failed``,
        which says whether the outcome is known.
        """
        request = self.request
        again = TakenAgain(request)
        while True:
            with again, self.turn():
                self.interrupted = purchase_journal.interrupted(request, self.kind, self.subject)
                if (found := self.look("before")) is not None:
                    return found
                with request.approve():
                    request.clock.raise_if_cancelled()
                    self._busy, self._outage = request.poller(), request.poller(self.outage)
                    walk, self._began = self.walk(), request.clock.monotonic()
                    purchase_journal.begin(request, self.kind, self.subject, walk.key, self.interrupted)
                    while True:
                        try:
                            answer = self.send(idempotency_key=walk.key)
                        except (ApiError, TransportError, InvalidResponse) as error:
                            found, walk = self._after(error, walk)
                        else:
                            found = self.accept(answer, walk)
                            if found is None:
                                found = self._after_a_replay(walk)
                        if found is not None:
                            return found

    def replays(self, walk: KeyWalk, most: int | None = None) -> Iterator[tuple[A, KeyWalk]]:
        """The accepted answers that used keys are bound to, the newest first: what an interrupted run bought.

        A request goes out with a key only if all keys before it are bound, so the first that is not ends the
        search. The last ones may be bound by questions alone, so ``most`` are sent.
        """
        first = last = walk.generation
        while walk.ask is not None and key_is_used(walk.ask, walk.ring.key(last)):
            last += 1
        for number in list(range(first, last))[::-1][:most]:
            for send in self.sends():
                try:
                    answer = send(idempotency_key=walk.ring.key(number))
                except ApiError:
                    continue  # bound to a question, to a refusal, or to another body
                yield answer, KeyWalk(walk.ring, number)

    def _after_a_replay(self, walk: KeyWalk) -> R | None:
        if walk.is_fresh:  # no replay: it went as soon as it came
            raise ResourceError(
                f"the {self.what} was accepted, and nothing shows of it. Next: look at the account, "
                "then run again"
            )
        return self._leave(walk)

    def _after(self, error: CallError, walk: KeyWalk) -> tuple[R | None, KeyWalk]:
        """What the account shows after an error, and how to go on."""
        means = meaning(error)
        if means is Meaning.BUSY:
            return self._after_a_wait(error, walk)
        if means is Meaning.CONFLICT:
            return self._after_conflict(walk), walk
        if means is Meaning.LOST:
            return self._after_loss(error, walk), walk
        if means is Meaning.FAILED:
            self._failures += 1
            is_last = walk.is_exhausted or (self._failures > 1 and self._outage.over)
            return self._after_failure(error, walk, is_last=is_last), walk
        return self.after_refusal(error, walk), walk

    def _after_a_wait(self, error: CallError, walk: KeyWalk) -> tuple[R | None, KeyWalk]:
        """Another operation was running. The refusal may be stored under the key."""
        if self._busy.over:
            raise self._decided(error)
        self.request.info(f"{self.what}: another operation is running")
        self._busy.pause()
        if (shown := self.look("busy")) is not None:
            return shown, walk
        again = self.walk()
        if again.ring == walk.ring:
            again = walk
        again.leave_if_used()
        return None, again

    def _after_conflict(self, walk: KeyWalk) -> R | None:
        """Another run may be buying the same at this moment; its result may appear shortly."""
        if walk.is_bound_by_the_question():
            return None
        self.request.info(f"{self.what}: another request is known under its key; looking again")
        self.request.clock.sleep(self.request.session.poll_interval)
        if (shown := self._shown_shortly(True)) is not None:
            return shown
        self.bound_elsewhere()
        return self._leave(walk)

    def _after_loss(self, error: CallError, walk: KeyWalk) -> R | None:
        if isinstance(error, InvalidResponse) and (result := self.in_part(error)) is not None:
            return result
        if (shown := self.look("lost")) is not None:
            return shown
        raise self._unsure(error) from None

    def _after_failure(self, error: CallError, walk: KeyWalk, *, is_last: bool) -> R | None:
        """The service failed, and its outcome is stored under the key. The next key may be sent if no money
        is kept."""
        try:
            if (shown := self.look("failed" if error.outcome_unknown else "undone")) is not None:
                return shown
        except ResourceConflict:  # of what is there nothing shows whether it is what this call bought
            raise self._unsure(error) from None
        moved = sorted(self._paid(error), key=lambda paid: (paid.is_returned, -paid.invoice_id))  # kept first
        before, self._moved = self._moved, {(paid.invoice_id, paid.paid) for paid in moved}
        # A charge that was not there at the failure before shows that this one is no replay.
        is_new = walk.is_fresh or (before is not None and bool(self._moved - before))
        for paid in moved:
            if not paid.is_returned:
                raise Failed(
                    f"{error.summary} — whether the {self.what} was carried out is not known: invoice "
                    f"{paid.invoice_id} is paid, and nothing shows for it; nothing was repeated. Next: look "
                    "at it before running again, or ask the provider",
                    error,
                )
            became = judge(Evidence(payment=paid)).sentence(f"the {self.what}")
            if is_last or is_new:
                raise self._decided(
                    Failed(f"{error.summary} — {became}. Next: run again in a few minutes", error)
                )
            if before is None:
                self.request.info(f"{became}: asking once more")
        if is_last:
            raise self._decided(
                Failed(
                    f"{error.summary} — no money moved and nothing was bought. Next: run again later", error
                )
            ) from None
        return self._leave(walk)

    def after_refusal(self, error: CallError, walk: KeyWalk) -> R | None:
        """Report it, unless it is a stored one that the account contradicts by now, or something else may be
        bought instead. A key that the refusal left unused is used for that: while a request is under way with
        it, no other can be carried out."""
        may_be_old = not walk.is_fresh and not walk.is_exhausted
        if isinstance(error, ApiError) and may_be_old and self._contradicted(error):
            return self._leave(walk)
        if self.instead(error):
            walk.leave_if_used(by_one=True)
            return None
        raise self._decided(error)

    def _shown_shortly(self, may_be_under_way: bool) -> R | None:
        wait = Poller(self.request.clock, self.under_way, self.request.session.poll_interval)
        while True:
            if (shown := self.look("conflict")) is not None or wait.over or not may_be_under_way:
                return shown
            self.request.clock.sleep(self.request.session.poll_interval)

    def _leave(self, walk: KeyWalk) -> R | None:
        """Go on to a key that is not used, and look again if others were passed: one of them may be what
        another run has ordered with since this one looked."""
        left = walk.generation
        walk.leave()
        if walk.generation == left + 1:
            return None
        shown = self._shown_shortly(walk.is_under_way)
        if shown is None and walk.is_under_way:
            raise ResourceError(
                f"{self.what}: another run is sending the same at this moment; nothing was sent. Next: run "
                "again"
            )
        return shown

    # --- parts

    def _contradicted(self, error: ApiError) -> bool:
        if isinstance(error, InsufficientFunds):
            needed = error.required if error.required is not None else self.price
            try:
                return needed is not None and self.request.client.balance.get().balance >= needed
            except Forbidden:
                return False
        return self.is_outdated(error)

    def _paid(self, error: CallError) -> list[Payment]:
        try:
            return self.payments()
        except (ApiError, TransportError):
            raise self._unsure(error) from None

    def payments(self) -> list[Payment]:
        """What was paid since this call began and may be of this purchase. Raises what the requests raise."""
        if self.concerns is None or self.request.client.is_test_key:
            return []
        return list(payments_since(self.request.client, self.started() - CLOCKS_DIFFER, self.concerns))

    def is_of_this_call(self, moment: datetime | None) -> bool:
        """Whether what was made at this ``moment`` may be of this call."""
        return moment is not None and moment > self.started() - CLOCKS_DIFFER

    def started(self) -> datetime:
        """When the first request was sent, by the service's clock; now, if none was."""
        seconds = 0.0 if self._began is None else self.request.seconds_since(self._began)
        return self.request.service_now() - timedelta(seconds=seconds)

    def _decided(self, error: E) -> E:
        """An outcome that is known: nothing is left to report in a later run."""
        purchase_journal.end(self.request, self.kind, self.subject)
        return error

    def _unsure(self, error: CallError) -> Failed:
        charged = getattr(error, "charged", None)
        paid = f" (the answer says that it charged {charged})" if charged is not None else ""
        return Failed(
            f"{error.summary} — whether the {self.what} was carried out is not known{paid}; it does not show "
            "yet. Next: run again: the same request is repeated, never a second one",
            error,
        )
