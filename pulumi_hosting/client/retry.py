"""Whether a call is sent again, and after which pause. Pure functions, and what is known of a call's
attempts; the loop itself is in :meth:`~pulumi_hosting.client.client.Client.call` (API document,
"Idempotency", "Errors").

A read, and a write that carries an Idempotency-Key, may be sent again after 429, 502, 503, 504,
``idempotency_in_progress`` and after a failure of the connection. Nothing else is: not a 500, and never a
write without a key, unless its 429 shows that the bucket was empty. Such a request was not processed: it
waits for the rate limit again (:mod:`~pulumi_hosting.client.rate_limit`), whatever the operation.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Protocol

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.client.exceptions import (
    CODES,
    ApiError,
    CallError,
    HostingError,
    InvalidResponse,
    TransportError,
)

RETRIED_STATUSES = frozenset({429, 502, 503, 504})
FIRST_WAIT = 0.5
LONGEST_WAIT = 8.0


class Rng(Protocol):
    """The randomness of the jitter; ``random.Random`` is one."""

    def random(self) -> float: ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long one call may take: ``deadline`` seconds over all attempts; ``attempts`` bounds those that
    follow failures.

    Being told to wait (429, ``idempotency_in_progress``) is no failure: only the deadline bounds it.
    """

    deadline: float = 120.0
    attempts: int = 6


@dataclass(frozen=True, slots=True)
class Retry:
    """Send it again after ``after`` seconds."""

    after: float

    def __str__(self) -> str:
        return f"again in {self.after:.1f} s"


@dataclass(frozen=True, slots=True)
class Stop:
    """Give the error to the caller; ``why`` is for the log."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(slots=True)
class Attempts:
    """What is known of the attempts of one call, which ``began`` at that time of the client's clock.

    - ``count``: how many there were; ``sent_id`` and ``sent_at``: of the latest one.
    - ``maybe_processed``: whether one of those that failed may have been processed.
    """

    operation: Operation
    idempotency_key: str | None
    count: int = 0
    maybe_processed: bool = False
    began: float = 0.0
    sent_id: str = ""
    sent_at: float = 0.0

    def begin(self, sent_id: str, now: float) -> None:
        """One more attempt."""
        self.count, self.sent_id, self.sent_at = self.count + 1, sent_id, now

    def failed(self, error: HostingError, request_id: str) -> HostingError:
        """The error of the latest attempt, which was sent with ``request_id``, with what is known of all of
        them.
        """
        this = effect(self.operation, error)
        self.maybe_processed = this is Effect.UNKNOWN or (self.maybe_processed and this is not Effect.DECIDED)
        if self.maybe_processed and not isinstance(error, CallError):
            error = TransportError(str(error), outcome_unknown=True, operation=self.operation.id)
        if isinstance(error, CallError):
            error.sent_as(
                request_id=request_id,
                idempotency_key=self.idempotency_key,
                attempts=self.count,
                outcome_unknown=self.maybe_processed,
                because_of_earlier=this is not Effect.UNKNOWN,
            )
        return error


def decide(
    operation: Operation,
    error: HostingError,
    *,
    attempt: int,
    elapsed: float,
    retry_policy: RetryPolicy,
    rng: Rng,
) -> Retry | Stop:
    """What follows from ``error`` of attempt number ``attempt`` (1 = first), ``elapsed`` seconds after the
    call began.
    """
    if not may_repeat(operation):
        return Stop("the operation must not be repeated blindly")
    if not is_passing(error):
        return Stop("the answer is final")
    if attempt >= retry_policy.attempts and not _is_queue(error):
        return Stop("too many failures")
    wait = pause(getattr(error, "retry_after", None), attempt, rng)
    return Retry(wait) if elapsed + wait < retry_policy.deadline else Stop("the deadline is too near")


def may_repeat(operation: Operation) -> bool:
    """Whether sending the same bytes again can do no harm."""
    return operation.retry in ("safe", "idempotency_key")


def is_passing(error: HostingError) -> bool:
    """Whether the same request may get another answer a moment later."""
    if isinstance(error, ApiError):
        return error.status in RETRIED_STATUSES or error.code == "idempotency_in_progress"
    return isinstance(error, TransportError) and not error.is_final


class Effect(Enum):
    """What one failed attempt reveals about the writes of its call."""

    DECIDED = "a refusal from after the key check: no attempt was processed"
    UNTOUCHED = "this attempt was not processed; earlier ones may have been"
    UNKNOWN = "this attempt may have been processed"


def effect(operation: Operation, error: HostingError) -> Effect:
    """What the ``error`` of one attempt reveals. A request with a key is answered from the stored outcome, so
    a refusal from after its key check (400, 402, 409) shows that no earlier attempt succeeded;
    401, 403, 404, 429 and 503 may come from before it. Without a key nothing shows how far a request came
    that was answered with 5xx. A success that cannot be read, and a failure without a code of the API, may be
    a gateway's: they show nothing."""
    if not operation.is_write:
        return Effect.DECIDED
    if isinstance(error, TransportError):
        return Effect.UNKNOWN if error.outcome_unknown else Effect.UNTOUCHED
    status = error.status if isinstance(error, ApiError | InvalidResponse) else None
    code = error.code if isinstance(error, ApiError) else ""
    if status is None:
        return Effect.UNTOUCHED
    if status < 300 or code == "idempotency_in_progress":
        return Effect.UNKNOWN
    if status in (400, 402, 409) and code in CODES:
        return Effect.DECIDED
    if status < 500 or code == "api_disabled":
        return Effect.UNTOUCHED
    # "For money operations nothing is charged unless the response says otherwise": a promise of the API, not
    # of a gateway.
    is_promised = code in CODES and (status == 503 or code == "upstream_error")
    return Effect.UNTOUCHED if operation.is_keyed and is_promised else Effect.UNKNOWN


def _is_queue(error: HostingError) -> bool:
    return isinstance(error, ApiError) and (error.status == 429 or error.code == "idempotency_in_progress")


def pause(retry_after: float | None, attempt: int, rng: Rng) -> float:
    """Seconds to wait: what the service asks for and a little more, so that many waiters do not return at
    once; else the backoff.

    A zero or past ``Retry-After`` still pauses: the service may know no better.
    """
    if not retry_after:
        return backoff(attempt, rng)
    return retry_after + FIRST_WAIT * rng.random()


def backoff(attempt: int, rng: Rng) -> float:
    """0.5 s, doubled after every attempt, at most 8 s; of that a random part between one half and all."""
    whole = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt - 1, 16))
    return whole * (0.5 + rng.random() / 2)


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Seconds of a ``Retry-After`` header, which holds seconds or an HTTP date; ``now`` is unix time.
    Unreadable is ``None``, past is 0.
    """
    if text is None:
        return None
    text = text.strip()
    if re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", text):
        return max(0.0, float(text))
    moment = parse_http_date(text)
    return None if moment is None else max(0.0, moment.timestamp() - now)


@lru_cache(maxsize=16)  # the date of the latest answer is asked for again and again
def parse_http_date(text: str) -> datetime | None:
    """The moment of an HTTP date in UTC, ``None`` if unreadable. RFC 9110 dates are GMT; one without a zone
    is read as GMT.
    """
    from email.utils import parsedate_to_datetime  # httpx has loaded it when there is an answer

    try:
        moment = parsedate_to_datetime(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
