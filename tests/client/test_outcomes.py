"""What an error says of the outcome of its call: an attempt that may have been processed is never forgotten,
and the key is at hand.
"""

import itertools
import ssl
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.client.exceptions import (
    ApiError,
    CallError,
    InvalidResponse,
    TimedOut,
    TransportError,
)
from tests.client.support import answer, refusal, scripted
from tests.client.test_retries import CREATED, call

pytestmark = pytest.mark.usefixtures("both")

# What one attempt meets, and whether it may have been processed.
EVENTS: dict[str, tuple[Any, bool]] = {
    "lost": (httpx.ReadError("gone"), True),
    "refused": (httpx.ConnectError("refused"), False),
    "503": (refusal(503, "temporarily_unavailable"), False),
    "429": (refusal(429, "rate_limited", Retry_After="1"), False),
    "504": (refusal(504, "upstream_timeout"), True),
}
# An answer from after the service's key check: it decides what the outcome of the call is.
DECIDING = {
    "402": refusal(402, "insufficient_funds"),
    "400": refusal(400, "os_not_allowed"),
    "409": refusal(409, "no_capacity"),
    "taken": refusal(409, "idempotency_conflict"),
}
UNDECIDING = {
    "401": refusal(401, "invalid_token"),
    "403": refusal(403, "ip_not_allowed"),
    "404": refusal(404, "not_found"),
    "500": refusal(500, "server_error"),
    "running": refusal(409, "idempotency_in_progress", Retry_After="1000"),
    "html": httpx.Response(502, text="<html>"),
}

# Successes that are none of the API.
ODD = {
    "html": httpx.Response(201, html="<h1>Welcome</h1>"),
    "cut": httpx.Response(201, content=b'{"server": {"id": 1', headers={"Content-Type": "application/json"}),
    "error": answer(200, {"error": {"code": "validation_error", "message": "no"}}),
    "other envelope": answer(200, {"status": "ok", "result": {"id": 1}, "id": "x"}),
    "list": answer(200, [1]),
}


def ordered(client: Any) -> Any:
    return client.servers.create(tariff_id=1, os="debian-12", name="a")


def pointed(client: Any) -> Any:
    return client.servers.ips.set_ptr(1, 2, domain="host.example.com")


def failed(act: Callable[[Any], Any], steps: list[Any]) -> tuple[CallError, list[httpx.Request]]:
    client, script = scripted(*steps, deadline=60, rate_limit_timeout=60, knows_owner=True)
    with pytest.raises(CallError) as caught:
        act(client)
    return caught.value, script.requests


def check_facts(error: CallError, requests: list[httpx.Request]) -> None:
    last = requests[-1].headers
    assert error.attempts == len(requests)
    assert error.idempotency_key == last.get("Idempotency-Key")
    assert error.request_id == (
        "srv-1" if isinstance(error, ApiError) and "srv-1" in str(error) else last["X-Request-ID"]
    )
    text = str(error)
    assert text.count("Next:") <= 1
    assert "\n" not in text
    if error.outcome_unknown:
        assert "may have been processed" in text
        assert "Nothing was changed" not in text
        if error.idempotency_key:
            assert f'idempotency_key="{error.idempotency_key}"' in text
    else:
        assert "may have been processed" not in text


@pytest.mark.parametrize("first", EVENTS)
def test_every_later_error_of_a_keyed_call_remembers_that_an_attempt_may_have_been_processed(
    first: str,
) -> None:
    for later in itertools.product(EVENTS, repeat=2):
        events = [EVENTS[name] for name in (first, *later)]
        error, requests = failed(ordered, [event for event, _ in events])  # the last one again and again
        assert len(requests) >= 3, later
        assert error.outcome_unknown == any(is_unknown for _, is_unknown in events), later
        check_facts(error, requests)


@pytest.mark.parametrize("name", [*EVENTS, *DECIDING, *UNDECIDING])
def test_a_call_without_a_key_is_classified_by_its_one_attempt(name: str) -> None:
    steps = {**{known: step for known, (step, _) in EVENTS.items()}, **DECIDING, **UNDECIDING}
    error, requests = failed(pointed, [steps[name]])
    assert len(requests) == 1
    assert error.outcome_unknown == (name in ("lost", "503", "504", "500", "running", "html"))
    assert error.idempotency_key is None
    check_facts(error, requests)


@pytest.mark.parametrize("name", DECIDING)
def test_an_answer_sent_after_the_key_check_decides(name: str) -> None:
    error, requests = failed(ordered, [EVENTS["lost"][0], DECIDING[name]])
    assert not error.outcome_unknown
    check_facts(error, requests)


@pytest.mark.parametrize("name", UNDECIDING)
def test_an_answer_sent_before_the_key_check_decides_nothing(name: str) -> None:
    error, requests = failed(ordered, [EVENTS["lost"][0], UNDECIDING[name]])
    assert error.outcome_unknown
    check_facts(error, requests)


def test_a_refusal_that_comes_first_says_that_nothing_was_processed() -> None:
    for name in ("401", "403", "404"):
        error, requests = failed(ordered, [UNDECIDING[name]])
        assert not error.outcome_unknown
        check_facts(error, requests)


def test_a_failure_that_the_service_itself_reports_has_charged_nothing_under_a_key() -> None:
    error, _ = failed(ordered, [refusal(502, "upstream_error")])
    assert not error.outcome_unknown
    error, _ = failed(pointed, [refusal(502, "upstream_error")])
    assert error.outcome_unknown


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("act", [ordered, pointed])
def test_a_success_that_cannot_be_read_may_be_one(act: Callable[[Any], Any], odd: httpx.Response) -> None:
    error, requests = failed(act, [odd])
    assert isinstance(error, InvalidResponse)
    assert len(requests) == 1
    assert error.outcome_unknown
    check_facts(error, requests)


def test_a_gateway_does_not_say_what_became_of_a_request() -> None:
    error, requests = failed(ordered, [httpx.Response(503, html="<h1>overloaded</h1>")])
    assert len(requests) == 6  # all with one key
    assert error.outcome_unknown
    check_facts(error, requests)
    error, requests = failed(ordered, [EVENTS["lost"][0], httpx.Response(409, html="<h1>no</h1>")])
    assert error.outcome_unknown
    check_facts(error, requests)


def test_a_certificate_that_is_refused_after_a_lost_attempt_does_not_hide_it() -> None:
    refused = httpx.ConnectError("certificate")
    refused.__cause__ = ssl.SSLCertVerificationError("self-signed")
    client, _ = scripted(httpx.ReadError("gone"), refused)
    with pytest.raises(TransportError, match="not trusted") as caught:
        ordered(client)
    assert caught.value.outcome_unknown
    assert caught.value.idempotency_key


def test_a_deadline_between_attempts_keeps_what_is_known() -> None:
    error, requests = failed(
        ordered, [httpx.ReadTimeout("slow"), refusal(429, "rate_limited", Retry_After="600")]
    )
    assert error.outcome_unknown
    check_facts(error, requests)
    error, requests = failed(ordered, [httpx.ReadTimeout("slow")])
    assert isinstance(error, TimedOut)
    check_facts(error, requests)


def test_the_callers_own_repetition_with_the_key_is_the_same_request() -> None:
    client, script = scripted(*[httpx.ReadError("gone")] * 6, answer(201, CREATED))
    with pytest.raises(TransportError) as caught:
        ordered(client)
    client.servers.create(tariff_id=1, os="debian-12", name="a", idempotency_key=caught.value.idempotency_key)
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1


@pytest.mark.parametrize("operation", [row for row in OPERATIONS if not row.is_write], ids=lambda row: row.id)
def test_a_read_never_has_an_unknown_outcome(operation: Any) -> None:
    for event, _ in EVENTS.values():
        error, requests = failed(lambda client: call(client, operation), [event])
        assert not error.outcome_unknown, event
        check_facts(error, requests)


@pytest.mark.parametrize("operation", [row for row in OPERATIONS if row.is_write], ids=lambda row: row.id)
def test_every_error_of_every_write_carries_its_key_and_request_id(operation: Any) -> None:
    for step in [event for event, _ in EVENTS.values()] + [*DECIDING.values(), *UNDECIDING.values()]:
        error, requests = failed(lambda client: call(client, operation), [step])
        assert bool(error.idempotency_key) == operation.is_keyed
        assert error.operation == operation.id
        check_facts(error, requests)


@pytest.mark.parametrize(
    "operation", [row for row in OPERATIONS if "insufficient_funds" in row.codes], ids=lambda row: row.id
)
def test_a_payment_whose_answer_was_cut_says_that_it_may_have_been_made(operation: Any) -> None:
    cut = httpx.Response(200, content=b'{"server_id": 200', headers={"Content-Type": "application/json"})
    error, requests = failed(lambda client: call(client, operation), [cut])
    check_facts(error, requests)
    assert isinstance(error, InvalidResponse)
    assert f", key {error.idempotency_key})" in error.summary
    assert f"request {error.request_id}" in str(error)
    assert (
        "The request may have been processed. Next: repeat the same call with "
        f'idempotency_key="{error.idempotency_key}"; the service carries it out once only'
    ) in str(error)
