"""What the errors of a call tell: one line for a person, and the facts for a program."""

import copy
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.call_errors import (
    CallError,
    InvalidInput,
    InvalidResponse,
    RateLimitTimeout,
    RedirectRefused,
    TransportError,
    with_next_step,
)

KEY = "key-0001"


def sent(
    error: CallError, *, key: str | None = None, unknown: bool = False, earlier: bool = False
) -> CallError:
    """The error after the client has noted how its call was sent."""
    error.sent_as(
        request_id="req-1",
        idempotency_key=key,
        attempts=3,
        outcome_unknown=unknown,
        because_of_earlier=earlier,
    )
    return error


def lost(unknown: bool = True) -> TransportError:
    return TransportError("no answer", outcome_unknown=unknown)


# --- what it says


@pytest.mark.parametrize(
    ("text", "fields", "line"),
    [
        ("os: is required", ["os"], "os: is required. Next: correct os"),
        ("os: is required.", ["os", "name"], "os: is required. Next: correct os, name"),
        ("ends with an X", ["os"], "ends with an X. Next: correct os"),
        ("no. Next: log in", ["os"], "no. Next: log in"),
        ("the body is empty", ["(body)"], "the body is empty"),
        ("two", ["(body)", "os"], "two. Next: correct os"),
    ],
)
def test_the_next_step_names_the_fields_where_the_text_has_none(
    text: str, fields: list[str], line: str
) -> None:
    assert with_next_step(text, fields) == line


BASE = "the base URL (HOSTING_BASE_URL or base_url)"


def test_refused_arguments_are_listed_with_the_reason_of_each() -> None:
    error = InvalidInput({"os": "is required", "name": "is too long"})
    assert str(error) == (
        "the request is not valid: os: is required; name: is too long. Next: correct os, name"
    )
    assert error.fields == {"os": "is required", "name": "is too long"}
    assert error.subject == "the request"
    named = InvalidInput({"os": "is required"}, "server 'web'")
    assert named.subject == "server 'web'"
    assert str(named) == "server 'web' is not valid: os: is required. Next: correct os"


def test_a_rate_limit_without_room_tells_what_waited_and_what_to_do() -> None:
    error = RateLimitTimeout("no room", operation="get_me", bucket="normal", waited=4.5)
    assert str(error) == "no room. Next: repeat the call later, or raise rate_limit_timeout"
    assert (error.summary, error.operation, error.bucket, error.waited) == (
        "no room",
        "get_me",
        "normal",
        4.5,
    )


def test_a_call_error_tells_its_outcome_and_what_to_do_next() -> None:
    assert str(CallError("it failed")) == "it failed"
    assert str(sent(CallError("it failed"))) == "it failed (request req-1)"
    assert str(sent(CallError("it failed"), unknown=True)) == (
        "it failed. The request may have been processed. Next: look whether it was, then repeat the call "
        "(request req-1)"
    )
    assert str(sent(CallError("it failed"), key=KEY, unknown=True, earlier=True)) == (
        "it failed. An earlier attempt may have been processed. Next: repeat the same call with "
        'idempotency_key="key-0001"; the service carries it out once only (request req-1)'
    )
    assert sent(CallError("it failed"), key=KEY).advice == ""


def test_the_summary_names_the_key_where_the_outcome_is_unknown() -> None:
    assert CallError("it failed").summary == "it failed"
    assert sent(CallError("it failed"), key=KEY).summary == "it failed (request req-1)"
    assert sent(CallError("it failed"), key=KEY, unknown=True).summary == (
        "it failed (request req-1, key key-0001)"
    )
    assert sent(InvalidResponse("odd", status=201), key=KEY, unknown=True).summary == (
        "odd (201, request req-1, key key-0001)"
    )


def test_a_lost_answer_that_changed_nothing_says_so() -> None:
    assert str(lost(unknown=False)) == (
        "no answer. Nothing was changed. Next: check the base URL (HOSTING_BASE_URL or base_url) and the "
        "network, then repeat the call"
    )
    assert str(lost()) == (
        "no answer. The request may have been processed. Next: look whether it was, then repeat the call"
    )


def test_a_redirect_asks_for_the_base_url_first() -> None:
    assert str(RedirectRefused("moved", outcome_unknown=False)) == f"moved. Next: check {BASE}"
    assert str(RedirectRefused("moved", outcome_unknown=True)) == (
        f"moved. The request may have been processed. Next: check {BASE}, then look whether it was, then "
        "repeat the call"
    )


def test_a_response_that_cannot_be_read_tells_what_could_be() -> None:
    assert str(InvalidResponse("odd")) == f"odd. Next: check {BASE}, or report it to the provider"
    partial = {"server_id": 7, "charged": Decimal("5.00"), "password": Secret("hush")}
    assert str(InvalidResponse("odd", status=201, partial=partial)) == (
        f"odd. What could be read: server_id 7, charged 5.00. Next: check {BASE}, or report it to the "
        "provider (201)"
    )


def test_a_response_to_a_key_that_cannot_be_read_names_the_same_call() -> None:
    error = sent(InvalidResponse("odd", status=201), key=KEY, unknown=True)
    assert str(error) == (
        "odd. The request may have been processed. Next: repeat the same call with "
        'idempotency_key="key-0001"; '
        "the service carries it out once only (201, request req-1)"
    )
    assert error.summary == "odd (201, request req-1, key key-0001)"


# --- facts for programs


def test_how_the_call_was_sent_is_noted_and_the_request_id_of_the_service_stays() -> None:
    error = sent(lost(unknown=False), key=KEY, unknown=True)
    assert (error.request_id, error.idempotency_key, error.attempts, error.outcome_unknown) == (
        "req-1",
        KEY,
        3,
        True,
    )
    answered = sent(TransportError("cut", outcome_unknown=False, request_id="srv-1", operation="get_me"))
    assert (answered.request_id, answered.operation) == ("srv-1", "get_me")
    assert lost().operation == ""


def test_a_response_that_cannot_be_read_keeps_its_facts() -> None:
    bare = InvalidResponse("odd")
    assert (bare.operation, bare.status, bare.request_id, bare.partial) == ("", None, None, {})
    error = InvalidResponse("odd", operation="get_me", status=200, request_id="srv-1", partial={"id": 4})
    assert (error.operation, error.status, error.request_id, error.partial) == (
        "get_me",
        200,
        "srv-1",
        {"id": 4},
    )


@pytest.mark.parametrize(
    ("partial", "object_id", "invoice_id", "charged"),
    [
        ({}, None, None, None),
        ({"id": 1}, 1, None, None),
        ({"id": 1, "domain_id": 2}, 2, None, None),
        ({"id": 1, "domain_id": 2, "server_id": 3}, 3, None, None),
        ({"server_id": "3", "id": 1}, None, None, None),
        ({"invoice_id": 9, "charged": Decimal("1.50")}, None, 9, Decimal("1.50")),
        ({"invoice_id": "9", "charged": "1.50"}, None, None, None),
    ],
)
def test_ids_and_sums_are_found_by_their_names(
    partial: dict[str, object], object_id: int | None, invoice_id: int | None, charged: Decimal | None
) -> None:
    error = InvalidResponse("odd", partial=partial)
    assert (error.object_id, error.invoice_id, error.charged) == (object_id, invoice_id, charged)


# --- in another process


def test_a_copy_has_the_facts_and_leaves_secrets_behind() -> None:
    inner = sent(lost(), key=KEY, unknown=True)
    when = datetime(2026, 11, 22, tzinfo=UTC)
    error = InvalidResponse(
        "odd",
        operation="create_server",
        status=201,
        partial={
            "ids": [1, "a", 2.5],
            "pair": (Decimal("1.50"), when),
            "some": {3},
            "fixed": frozenset({4}),
            "password": Secret("hush"),
            "deep": {"token": Secret("hush"), "cause": inner},
        },
    )
    again = copy.copy(error)
    assert again is not error
    assert type(again) is InvalidResponse
    assert (again.args, str(again), again.operation, again.status) == (
        ("odd",),
        str(error),
        "create_server",
        201,
    )
    assert again.partial == {
        "ids": [1, "a", 2.5],
        "pair": (Decimal("1.50"), when),
        "some": {3},
        "fixed": frozenset({4}),
        "password": None,
        "deep": {"token": None, "cause": inner},
    }
    assert error.partial["password"] == Secret("hush")
