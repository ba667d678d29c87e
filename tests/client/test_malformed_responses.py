"""Malformed responses are one clear error each."""

import json
import math
from contextlib import suppress
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.responses import has_odd_number
from pulumi_hosting.client.results import Damaged
from tests.client.responses import SERVER, read
from tests.client.support import refusal, scripted

pytestmark = pytest.mark.usefixtures("both")


def least(model: Any) -> Any:
    """The smallest JSON that the model takes, made from its schema."""
    schema = model.model_json_schema(mode="validation")

    def build(node: dict[str, Any]) -> Any:
        if "$ref" in node:
            return build(schema["$defs"][node["$ref"].rsplit("/", 1)[1]])
        if "anyOf" in node:
            return build(node["anyOf"][0])
        if "pattern" in node:
            return "1.00"
        if node.get("format") == "date-time":
            return "2026-01-01T00:00:00Z"
        kind = node["type"]
        if kind == "object":
            return {name: build(node["properties"][name]) for name in node.get("required", ())}
        if kind == "array":
            return [build(node["items"])]
        return {"integer": 1, "number": 1.5, "boolean": True, "string": "text"}[kind]

    return build(schema)


def required_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [
            place for name in value for place in [(*path, name), *required_places(value[name], (*path, name))]
        ]
    if isinstance(value, list):
        return [
            place for number, item in enumerate(value) for place in required_places(item, (*path, number))
        ]
    return []


def without(value: Any, path: tuple[Any, ...]) -> Any:
    copy = json.loads(json.dumps(value))
    node = copy
    for part in path[:-1]:
        node = node[part]
    del node[path[-1]]
    return copy


MODELLED = [
    (operation, status, model)
    for operation in OPERATIONS
    for status, model in operation.responses.items()
    if isinstance(model, type) and issubclass(model, BaseModel)
]


@pytest.mark.parametrize(
    ("operation", "status", "model"), MODELLED, ids=lambda value: getattr(value, "id", None)
)
def test_each_required_field_that_is_absent_is_named(operation: Any, status: int, model: Any) -> None:
    whole = least(model)
    assert read(operation.id, whole, status) is not None
    for place in required_places(whole):
        if place and isinstance(place[-1], str):
            if place[0] == "data" and len(place) > 1:
                (item,) = read(operation.id, without(whole, place), status).data
                assert isinstance(item, Damaged)
                assert f"{'.'.join(map(str, place[2:]))}: Field required" in item.reason
                continue
            with pytest.raises(exceptions.InvalidResponse) as caught:
                read(operation.id, without(whole, place), status)
            assert caught.value.operation == operation.id
            assert caught.value.status == status
            assert f"{'.'.join(map(str, place))}: Field required" in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "status", "model"), MODELLED, ids=lambda value: getattr(value, "id", None)
)
def test_each_required_field_of_a_wrong_type_is_named_without_its_value(
    operation: Any, status: int, model: Any
) -> None:
    whole = least(model)
    for place in required_places(whole):
        for wrong in ({"canary": "value"}, [["canary"]], 77.5, None, True):
            damaged = json.loads(json.dumps(whole))
            node = damaged
            for part in place[:-1]:
                node = node[part]
            if type(node[place[-1]]) in (type(wrong), float) or (
                isinstance(node[place[-1]], dict) and isinstance(wrong, dict)
            ):
                continue
            if (place[-1], wrong) == ("data", {"canary": "value"}) and isinstance(node["data"], dict):
                continue
            node[place[-1]] = wrong
            if place[0] == "data" and len(place) > 1:
                (item,) = read(operation.id, damaged, status).data
                assert isinstance(item, Damaged)
                assert "canary" not in repr(item)
                continue
            with pytest.raises(exceptions.InvalidResponse) as caught:
                read(operation.id, damaged, status)
            assert "canary" not in str(caught.value)
            # Ids and keys are random: they may hold any two digits.
            shown = str(caught.value).replace(caught.value.idempotency_key or "no key", "")
            assert "77" not in shown.split("request")[0]


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b'{"id": 1} trailing',
        b"\xef\xbb\xbf{}",
        b"\xff\xfe",
        b'{"id": NaN, "name": "a", "status": "active"}',
        b'{"id": 1, "name": "a", "status": "active", "unknown": NaN}',
        b'{"id": 1, "name": "a", "status": "active", "unknown": [-Infinity]}',
        b'{"id": 1, "name": "a", "status": "active", "unknown": 1' + b"0" * 400 + b"}",
        b'{"id": 1' + b"0" * 400 + b', "name": "a", "status": "active"}',
        b'{"id": 9223372036854775808, "name": "a", "status": "active"}',
        b'{"id": 1.0, "name": "a", "status": "active"}',
        b'{"id": true, "name": "a", "status": "active"}',
        b'{"id": "1", "name": "a", "status": "active"}',
        b'{"id": 1, "name": "a", "status": "active", "unknown": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 50_000,
        b'{"id": 1, "name": "a", "status": "active", "resources": {"ram_mb": 1' + b"0" * 30 + b"}}",
        b'{"id": 1, "name": "a", "status": 5, "created_at": ""}',
    ],
)
def test_damaged_json_is_one_clear_error(body: bytes) -> None:
    with pytest.raises(
        exceptions.InvalidResponse, match="server 1: the answer is not what the API document describes"
    ) as caught:
        read("get_server", body)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "time",
    ["1767225600", '"1767225600"', '""', '"9999-12-31T23:59:59-23:59"', '"0001-01-01T00:00:00+14:00"', "{}"],
)
def test_a_time_that_cannot_be_read_is_none(time: str) -> None:
    assert (
        read(
            "get_server", f'{{"id": 1, "name": "a", "status": "active", "created_at": {time}}}'.encode()
        ).created_at
        is None
    )


@pytest.mark.parametrize(
    "price", [1, 1.5, "1", "1.5", "1.00000", "1,00", "NaN", "1e5", " 1.00", "+1.00", None, "9" * 50 + ".00"]
)
def test_money_is_a_decimal_text_or_an_error(price: Any) -> None:
    with pytest.raises(exceptions.InvalidResponse, match="charged"):
        read("renew_server", {"charged": price})


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"{}" + b" " * 10 + b"x", b'{"a": NaN}', b'{"a": 1' + b"0" * 400 + b"}", b"[" * 10_000],
)
def test_an_open_object_is_an_object(body: bytes) -> None:
    with pytest.raises(exceptions.InvalidResponse, match="not a JSON object"):
        read("get_openapi", body)


@pytest.mark.parametrize(
    ("content", "kind"), [(b"{}", "application/json"), (b"<html>", "text/html"), (b"", "empty")]
)
def test_a_file_is_a_pdf_or_an_error(content: bytes, kind: str) -> None:
    client, _ = scripted(httpx.Response(200, content=content, headers={"Content-Type": kind}))
    with pytest.raises(exceptions.InvalidResponse, match=f"it is {kind}, not a PDF file"):
        client.invoices.pdf(1)


def test_an_error_on_a_file_is_still_the_envelope() -> None:
    client, _ = scripted(refusal(404, "not_found"), knows_owner=True)
    with pytest.raises(exceptions.NotFound):
        client.invoices.pdf(1)


def test_long_digits_inside_a_text_are_only_text() -> None:
    assert read("get_server", SERVER | {"notes": "7" * 60}).notes == "7" * 60
    assert read("get_server", SERVER | {"notes": "NaN of Infinity"}).notes == "NaN of Infinity"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=40)
@given(JSON)
def test_whatever_is_answered_is_a_result_or_a_typed_error(value: Any) -> None:
    for operation_id in ("get_server", "list_servers", "get_balance", "get_openapi"):
        with suppress(exceptions.HostingError):
            read(operation_id, json.dumps(value).encode())


@settings(max_examples=40)
@given(JSON)
def test_odd_numbers_are_found_wherever_they_are(value: Any) -> None:
    def odd(node: Any) -> bool:
        if isinstance(node, dict):
            return any(odd(item) for item in node.values())
        if isinstance(node, list):
            return any(odd(item) for item in node)
        if isinstance(node, float):
            return not math.isfinite(node)
        return isinstance(node, int) and len(str(node)) > 25

    assert has_odd_number(json.dumps(value).encode()) == odd(value)


@pytest.mark.parametrize("offset", range(6))
def test_a_number_too_long_is_found_at_every_place(offset: int) -> None:
    before = b" " * offset
    for digits, odd in ((24, False), (25, False), (26, True), (27, True), (400, True)):
        assert has_odd_number(before + b'{"a": ' + b"1" * digits + b"}") is odd
        assert has_odd_number(before + b'{"a": [1, ' + b"7" * digits + b", 2]}") is odd
    assert has_odd_number(before + b'{"a": -' + b"1" * 24 + b"}") is False
    assert has_odd_number(before + b'{"a": -' + b"1" * 25 + b"}") is True
