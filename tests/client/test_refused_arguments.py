"""What is wrong with an argument, in plain words: every argument of every operation with odd values."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.requests import prepare

CANARY = "cAnary 1!"
ODD: list[Any] = [
    *(None, True, 0, 5, -1, 1.5, 10**30, "", "\ud800", CANARY, b"cAnary"),
    *([CANARY], [[]], {CANARY: CANARY}, {"a": []}, [CANARY] * 200, object()),
]
RAW = re.compile(
    r"Input|String|Value error|Field required|Extra inputs|Unable|[Dd]ictionary|integer|boolean|instance|"
    r"a valid |validation|item\b.*\btext"
)
"""Words of the validator."""


def refused(operation: Operation, part: str, fields: dict[str, Any]) -> dict[str, str]:
    """Field → reason; nothing where the service decides."""
    ids = [1] * len(operation.path_parameters)
    given: dict[str, Any] = {"query": {}, "body": {}, part: fields}
    try:
        prepare(operation, ids, **given, base_url="", api_key=Secret("k"))
    except InvalidInput as error:
        return dict(error.fields)
    return {}


def arguments(operation: Operation) -> Iterator[tuple[str, str]]:
    for part, model in (("query", operation.query), ("body", operation.request)):
        for name in model.model_fields if model else ():
            yield part, name


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_no_reason_is_the_validator_s_and_none_repeats_a_text(operation: Operation) -> None:
    for part, name in [*arguments(operation), ("query", "nonsense"), ("body", "nonsense")]:
        for odd in ODD:
            for reason in refused(operation, part, {name: odd}).values():
                assert not RAW.search(reason), f"{name}={odd!r}: {reason}"
                assert "cAnary" not in reason


@pytest.mark.parametrize(
    ("operation", "part", "name", "odd", "reason"),
    [
        ("list_servers", "query", "limit", "many", "must be a whole number, and is a text"),
        ("list_servers", "query", "limit", 0, "must be greater than or equal to 1, and is 0"),
        ("get_server", "query", "include", "all of it", "must be 'live'"),
        ("create_server", "body", "name", 5, "must be a text, and is a number"),
        ("create_server", "body", "password", 5, "must be a text, and is a number"),
        ("create_server", "body", "ssh_key_ids", "5", "must be a list, and is a text"),
        ("create_server", "body", "ssh_key_ids", [1, "5"], "[1] must be a whole number, and is a text"),
        ("create_server", "body", "custom_fields", {"a": []}, "a value in it must be a text, and is a list"),
        ("transfer_domain", "body", "auth_code", Secret(""), "must have at least 1 character, not 0"),
        ("transfer_domain", "body", "privacy", "yes", "must be true or false, and is a text"),
        ("check_domain_availability", "query", "name", "\ud800.com", "is not valid Unicode"),
        ("create_server", "body", "os", ..., "is required"),
        ("create_server", "body", "nonsense", 5, "is not a field of this request"),
        ("list_servers", "query", "nonsense", 5, "is not a field of this request"),
    ],
)
def test_a_reason_says_what_it_must_be_and_is(
    operation: str, part: str, name: str, odd: Any, reason: str
) -> None:
    fields = {} if odd is ... else {name: odd}
    assert refused(BY_ID[operation], part, fields)[name] == reason
