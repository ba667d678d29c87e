"""Wait, or give up: every row of the decision as a table."""

from typing import Any

import pytest

from pulumi_hosting.api.operations import BY_ID, OPERATIONS
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.retry import (
    Retry,
    RetryPolicy,
    Stop,
    backoff,
    decide,
    is_passing,
    may_repeat,
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


def verdict(operation: Any, error: exceptions.HostingError, **changes: Any) -> Retry | Stop:
    given = {"attempt": 1, "elapsed": 0.0, "retry_policy": RetryPolicy(), "rng": dice(1), **changes}
    return decide(operation, error, **given)


@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
@pytest.mark.parametrize("operation", [READ, KEYED], ids=["read", "keyed"])
def test_a_transient_error_is_retried_where_repeating_is_safe(
    operation: Any, error: exceptions.HostingError
) -> None:
    assert is_passing(error)
    assert isinstance(verdict(operation, error), Retry)


@pytest.mark.parametrize("error", [*PASSING.values(), *FINAL.values()], ids=[*PASSING, *FINAL])
@pytest.mark.parametrize("operation", [NATURAL, NEVER], ids=["natural", "never"])
def test_a_mutation_without_a_key_is_never_sent_twice(operation: Any, error: exceptions.HostingError) -> None:
    assert isinstance(verdict(operation, error), Stop)


@pytest.mark.parametrize("error", FINAL.values(), ids=FINAL)
@pytest.mark.parametrize("operation", [READ, KEYED], ids=["read", "keyed"])
def test_a_final_error_is_not_retried(operation: Any, error: exceptions.HostingError) -> None:
    assert verdict(operation, error) == Stop("the answer is final")


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
    assert isinstance(verdict(READ, error, attempt=attempt, elapsed=elapsed), Retry if goes_on else Stop)


def test_the_backoff_doubles_from_half_a_second_to_eight_and_is_jittered() -> None:
    wholes = [0.5, 1, 2, 4, 8, 8, 8]
    for attempt, whole in enumerate(wholes, 1):
        waits = [backoff(attempt, dice(seed)) for seed in range(50)]
        assert whole / 2 <= min(waits) < max(waits) <= whole
    assert backoff(10_000, dice(1)) <= 8


@pytest.mark.parametrize("asked", [None, 0.0])
def test_without_a_time_to_wait_there_still_is_a_pause(asked: float | None) -> None:
    assert pause(asked, 1, dice(3)) >= 0.25


def test_what_the_service_asks_for_is_waited_and_a_little_more() -> None:
    assert all(12 <= pause(12, 1, dice(seed)) <= 12.5 for seed in range(20))


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
