"""Wait, or give up: every row of the decision as a table."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from pulumi_hosting.api.operations import BY_ID, OPERATIONS
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.retry import (
    Attempts,
    Effect,
    Retry,
    RetryPolicy,
    Stop,
    backoff,
    decide,
    effect,
    is_passing,
    may_repeat,
    parse_http_date,
    parse_retry_after,
    pause,
)
from tests.client.support import dice

READ, KEYED, NATURAL, NEVER = (
    BY_ID[name] for name in ("get_server", "create_server", "update_server", "power_server")
)


def refused(status: int, code: str = "", retry_after: float | None = None) -> exceptions.ApiError:
    return exceptions.error_class(status, code)(status=status, code=code, message="", retry_after=retry_after)


def lost(unknown: bool = True) -> exceptions.TransportError:
    return exceptions.TransportError("lost", outcome_unknown=unknown)


class Draw:
    """A random number that is known."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


PASSING: dict[str, exceptions.HostingError] = {
    "429": refused(429, "rate_limited"),
    "502": refused(502, "upstream_error"),
    "503": refused(503, "temporarily_unavailable"),
    "503 switched off": refused(503, "api_disabled"),
    "504": refused(504, "upstream_timeout"),
    "503 of a gateway": refused(503, "http_503"),
    "in progress": refused(409, "idempotency_in_progress"),
    "lost": lost(),
    "never sent": lost(unknown=False),
    "timed out": exceptions.TimedOut("late", outcome_unknown=True),
}
FINAL: dict[str, exceptions.HostingError] = {
    "500": refused(500, "server_error"),
    "501": refused(501, "new_code"),
    "400": refused(400, "validation_error"),
    "401": refused(401, "invalid_token"),
    "402": refused(402, "insufficient_funds"),
    "404": refused(404, "not_found"),
    "409": refused(409, "operation_in_progress"),
    "key conflict": refused(409, "idempotency_conflict"),
    "redirect": exceptions.RedirectRefused("elsewhere", outcome_unknown=False),
    "damaged": exceptions.InvalidResponse("what is this"),
    "certificate": exceptions.ConfigurationError("not trusted"),
}


def decision(operation: Any, error: exceptions.HostingError, **changes: Any) -> Retry | Stop:
    given = {"attempt": 1, "elapsed": 0.0, "retry_policy": RetryPolicy(), "rng": dice(1), **changes}
    return decide(operation, error, **given)


@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("operation", [READ, KEYED], ids=["read", "keyed"])
def test_a_transient_error_is_retried_where_repeating_is_safe(
    operation: Any, error: exceptions.HostingError
) -> None:
    assert is_passing(error)
    assert isinstance(decision(operation, error), Retry)


@pytest.mark.parametrize("error", [*PASSING.values(), *FINAL.values()], ids=[*PASSING, *FINAL])
@pytest.mark.parametrize("operation", [NATURAL, NEVER], ids=["natural", "never"])
def test_a_mutation_without_a_key_is_never_sent_twice(operation: Any, error: exceptions.HostingError) -> None:
    assert isinstance(decision(operation, error), Stop)


@pytest.mark.parametrize("error", FINAL.values(), ids=FINAL)
@pytest.mark.parametrize("operation", [READ, KEYED], ids=["read", "keyed"])
def test_a_final_error_is_not_retried(operation: Any, error: exceptions.HostingError) -> None:
    assert decision(operation, error) == Stop("the answer is final")


def test_every_row_is_repeated_exactly_if_it_reads_or_is_keyed() -> None:
    for operation in OPERATIONS:
        assert may_repeat(operation) == (operation.method == "GET" or operation.is_keyed), operation.id


@pytest.mark.parametrize(
    ("error", "attempt", "elapsed", "goes_on"),
    [
        (lost(), 5, 0.0, True),
        (lost(), 6, 0.0, False),
        (refused(502), 6, 0.0, False),
        (refused(429, retry_after=1), 6, 0.0, True),
        (refused(409, "idempotency_in_progress"), 50, 20.0, True),
        (refused(429, retry_after=30), 1, 80.0, True),
        (refused(429, retry_after=30), 1, 90.0, False),
        (refused(503, retry_after=121), 1, 0.0, False),
        (lost(), 1, 119.9, False),
    ],
)
def test_failures_are_counted_and_the_deadline_bounds_everything(
    error: exceptions.HostingError, attempt: int, elapsed: float, goes_on: bool
) -> None:
    assert isinstance(decision(READ, error, attempt=attempt, elapsed=elapsed), Retry if goes_on else Stop)


def test_a_pause_that_would_end_with_the_deadline_is_too_long() -> None:
    asked = refused(429, retry_after=20)
    assert decision(READ, asked, elapsed=99.5, rng=Draw(0)) == Retry(20)
    assert decision(READ, asked, elapsed=100.0, rng=Draw(0)) == Stop("the deadline is too near")


def test_the_log_tells_what_was_decided_and_why() -> None:
    assert str(Retry(1.26)) == "again in 1.3 s"
    assert str(decision(NATURAL, lost())) == "the operation must not be repeated blindly"
    assert str(decision(READ, refused(500))) == "the answer is final"
    assert str(decision(READ, lost(), attempt=6)) == "too many failures"


def test_the_backoff_doubles_from_half_a_second_to_eight_and_is_jittered() -> None:
    wholes = [0.5, 1, 2, 4, 8, 8, 8]
    for attempt, whole in enumerate(wholes, 1):
        waits = [backoff(attempt, dice(seed)) for seed in range(50)]
        assert whole / 2 <= min(waits) < max(waits) <= whole
        assert (backoff(attempt, Draw(0)), backoff(attempt, Draw(0.5))) == (whole / 2, whole * 0.75)
    assert backoff(10_000, dice(1)) <= 8


@pytest.mark.parametrize("asked", [None, 0.0])
def test_without_a_time_to_wait_there_still_is_a_pause(asked: float | None) -> None:
    assert pause(asked, 1, dice(3)) >= 0.25


def test_what_the_service_asks_for_is_waited_and_a_little_more() -> None:
    assert all(12 <= pause(12, 1, dice(seed)) <= 12.5 for seed in range(20))


def test_what_is_added_to_the_time_that_was_asked_for_is_random() -> None:
    assert [pause(12, 3, Draw(part)) for part in (0, 0.5, 1)] == [12, 12.25, 12.5]


NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("1.5", 1.5),
        ("0", 0),
        ("-3", 0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sun, 06 Nov 1994 08:50:37 -0000", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun, 06 Nov 1994 07:00:00 GMT", 0),
        (None, None),
        ("", None),
        ("soon", None),
        ("٣", None),
        ("1e9", None),
        ("9" * 40, None),
        ("Sun, 99 Nov 1994 08:50:37 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, NOW) == seconds


@pytest.fixture(params=["UTC0", "EST5"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of this machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06 Nov 1994 08:49:37 -0000",
        "Sun, 06 Nov 1994 10:49:37 +0200",
    ],
)
def test_a_date_is_the_same_moment_in_utc_whatever_the_zone_of_the_machine(text: str) -> None:
    moment = parse_http_date(text)
    assert moment == datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)
    assert moment is not None
    assert moment.tzinfo is UTC


def test_every_month_is_read() -> None:
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    read = [parse_http_date(f"Sun, 06 {name} 1994 08:49:37 GMT") for name in names]
    assert [moment.month for moment in read if moment] == list(range(1, 13))


# --- what an attempt reveals of the writes of its call

DECIDED, UNTOUCHED, UNKNOWN = Effect


@pytest.mark.parametrize(
    ("error", "keyed", "unkeyed"),
    [
        (lost(), UNKNOWN, UNKNOWN),
        (lost(unknown=False), UNTOUCHED, UNTOUCHED),
        (exceptions.ConfigurationError("not trusted"), UNTOUCHED, UNTOUCHED),
        (exceptions.InvalidResponse("odd", status=200), UNKNOWN, UNKNOWN),
        (exceptions.InvalidResponse("odd", status=299), UNKNOWN, UNKNOWN),
        (exceptions.InvalidResponse("odd", status=300), UNTOUCHED, UNTOUCHED),
        (exceptions.InvalidResponse("odd", status=500), UNKNOWN, UNKNOWN),
        (refused(409, "idempotency_in_progress"), UNKNOWN, UNKNOWN),
        (refused(400, "validation_error"), DECIDED, DECIDED),
        (refused(402, "insufficient_funds"), DECIDED, DECIDED),
        (refused(409, "no_capacity"), DECIDED, DECIDED),
        (refused(400, "http_400"), UNTOUCHED, UNTOUCHED),
        (refused(409, "http_409"), UNTOUCHED, UNTOUCHED),
        (refused(401, "invalid_token"), UNTOUCHED, UNTOUCHED),
        (refused(404, "not_found"), UNTOUCHED, UNTOUCHED),
        (refused(429, "rate_limited"), UNTOUCHED, UNTOUCHED),
        (refused(499, "new_code"), UNTOUCHED, UNTOUCHED),
        (refused(500, "server_error"), UNKNOWN, UNKNOWN),
        (refused(502, "upstream_error"), UNTOUCHED, UNKNOWN),
        (refused(502, "http_502"), UNKNOWN, UNKNOWN),
        (refused(503, "api_disabled"), UNTOUCHED, UNTOUCHED),
        (refused(503, "temporarily_unavailable"), UNTOUCHED, UNKNOWN),
        (refused(503, "http_503"), UNKNOWN, UNKNOWN),
        (refused(504, "upstream_timeout"), UNKNOWN, UNKNOWN),
    ],
)
def test_what_a_failed_attempt_reveals(
    error: exceptions.HostingError, keyed: Effect, unkeyed: Effect
) -> None:
    assert effect(KEYED, error) is keyed
    assert effect(NEVER, error) is unkeyed
    assert effect(READ, error) is DECIDED


def test_a_failure_after_one_that_may_have_been_processed_does_not_hide_it() -> None:
    attempts = Attempts(KEYED, "key-0001", count=2)
    first = attempts.failed(lost(), "req-1")
    assert isinstance(first, exceptions.TransportError)
    assert "The request may have been processed" in str(first)
    later = attempts.failed(exceptions.ConfigurationError("not trusted"), "req-2")
    assert isinstance(later, exceptions.TransportError)
    assert (later.operation, later.request_id, later.idempotency_key, later.attempts) == (
        "create_server",
        "req-2",
        "key-0001",
        2,
    )
    assert later.outcome_unknown
    assert str(later).startswith("not trusted. An earlier attempt may have been processed")
    decided = attempts.failed(refused(402, "insufficient_funds"), "req-3")
    assert not attempts.maybe_processed
    assert isinstance(decided, exceptions.CallError)
    assert not decided.outcome_unknown


def test_a_failure_that_reveals_nothing_stays_what_it_is() -> None:
    attempts = Attempts(KEYED, "key-0001")
    failure = exceptions.ConfigurationError("not trusted")
    assert attempts.failed(failure, "req-1") is failure
    assert not attempts.maybe_processed
