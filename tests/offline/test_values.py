"""Property values: from the wire and back, secrets, unknowns, paths."""

from typing import Any

import pytest
from google.protobuf import json_format, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from pulumi_hosting.offline.model.property_values import (
    OUTPUT_SIGNATURE,
    SIGNATURE,
    UNKNOWN,
    UNKNOWN_STRING,
    ResourceReference,
    SecretValue,
    WireFormat,
    changed_keys,
    contains_secrets,
    contains_unknowns,
    from_struct,
    hide_secrets,
    mark_secrets,
    parse_path,
    path_contains,
    reset_path,
    to_struct,
    without_secrets,
)

EVERYTHING = WireFormat(secrets=True, resources=True)

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
marked = st.recursive(plain, lambda inner: inner.map(SecretValue) | st.lists(inner, max_size=2), max_leaves=4)


@given(st.dictionaries(st.text(max_size=4), marked, max_size=4))
def test_values_are_sent_and_received(properties: dict[str, Any]) -> None:
    assert from_struct(to_struct(properties, EVERYTHING)) == properties


@given(st.dictionaries(st.text(max_size=4), marked, max_size=4))
def test_secrets_are_plain_for_a_peer_without_secrets(properties: dict[str, Any]) -> None:
    assert from_struct(to_struct(properties, WireFormat())) == without_secrets(properties)


def test_special_values_are_sent_and_received() -> None:
    properties = {
        "u": UNKNOWN,
        "r": ResourceReference("urn:x", "1", "2.0"),
        "c": ResourceReference("urn:y"),
        "f": 1.5,
    }
    assert from_struct(to_struct(properties, EVERYTHING)) == properties
    assert from_struct(to_struct(properties, WireFormat())) == {
        "u": UNKNOWN,
        "r": "1",
        "c": "urn:y",
        "f": 1.5,
    }


def test_unknowns_are_omitted_for_a_peer_without_unknowns() -> None:
    assert from_struct(
        to_struct({"a": UNKNOWN, "s": SecretValue(UNKNOWN), "b": 1}, WireFormat(unknowns=False))
    ) == {"b": 1}


def test_nulls_are_dropped_from_maps_but_not_from_lists() -> None:
    struct = to_struct({"a": None, "b": {"c": None, "d": 1}, "e": [None]}, WireFormat())
    assert from_struct(struct, keep_null=False) == {"b": {"d": 1}, "e": [None]}
    assert from_struct(to_struct({"a": None, "b": {"c": None}}, WireFormat(nulls=False))) == {"b": {}}


def test_outputs_are_unwrapped() -> None:
    struct = struct_pb2.Struct()
    struct.update(
        {
            "a": {SIGNATURE: OUTPUT_SIGNATURE, "value": 1, "secret": True, "dependencies": ["urn:b"]},
            "b": {SIGNATURE: OUTPUT_SIGNATURE},
        }
    )
    received = from_struct(struct)
    assert received == {"a": SecretValue(1), "b": UNKNOWN}
    assert from_struct(to_struct(received, WireFormat())) == {"a": 1, "b": UNKNOWN}


def test_transforms_get_secret_and_unknown_values_as_outputs() -> None:
    properties = {"s": SecretValue({"x": 1}), "u": UNKNOWN, "both": [SecretValue([UNKNOWN])], "p": 1}
    sent = json_format.MessageToDict(to_struct(properties, WireFormat(outputs=True)))
    output = {SIGNATURE: OUTPUT_SIGNATURE}
    assert sent == {
        "s": {**output, "secret": True, "value": {"x": 1}},
        "u": {**output, "secret": False},
        "both": [{**output, "secret": True}],
        "p": 1,
    }


def test_other_python_values_are_refused() -> None:
    with pytest.raises(TypeError, match="set is not a property value"):
        to_struct({"a": {1}}, WireFormat())


def test_secrets_are_not_printed() -> None:
    assert "hush" not in repr(SecretValue("hush"))
    assert hide_secrets({"a": [SecretValue("hush")], "b": UNKNOWN, "c": ResourceReference("urn:x")}) == {
        "a": ["[secret]"],
        "b": UNKNOWN_STRING,
        "c": "urn:x",
    }
    assert repr(UNKNOWN) == "<unknown>"


def test_contains() -> None:
    assert contains_secrets({"a": [{"b": SecretValue(1)}]})
    assert not contains_secrets({"a": [{"b": 1}]})
    assert contains_unknowns({"a": SecretValue([UNKNOWN])})
    assert not contains_unknowns({"a": SecretValue([1])})


def test_secret_outputs_stay_secret() -> None:
    like = {
        "a": SecretValue(1),
        "b": {"c": SecretValue(2), "d": 3},
        "e": [SecretValue(4)],
        "gone": SecretValue(5),
    }
    assert mark_secrets({"a": 9, "b": {"c": 9, "d": 9}, "e": [9], "new": 9}, like) == {
        "a": SecretValue(9),
        "b": {"c": SecretValue(9), "d": 9},
        "e": SecretValue([9]),
        "new": 9,
    }


def test_changed_keys_compare_secret_values() -> None:
    assert changed_keys({"a": 1, "b": SecretValue(2), "c": 3}, {"a": 1, "b": 2, "d": 4}) == ["c", "d"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", ["a"]),
        ("a.b[0].c", ["a", "b", 0, "c"]),
        ('a["b.c"]["d\\"e"]', ["a", "b.c", 'd"e']),
        ("a[*].b", ["a", "*", "b"]),
        ("*", ["*"]),
    ],
)
def test_paths(path: str, parts: list[str | int]) -> None:
    assert parse_path(path) == parts


def test_a_broken_path_is_refused() -> None:
    with pytest.raises(ValueError, match="not a property path"):
        parse_path("a[")


def test_a_path_contains_paths_below_it() -> None:
    assert path_contains(["a"], ["a", "b"])
    assert path_contains(["*", "b"], ["x", "b", 0])
    assert not path_contains(["a", "b"], ["a"])
    assert not path_contains(["a"], ["b"])


@pytest.mark.parametrize(
    ("path", "old", "new", "result", "done"),
    [
        ("a", {"a": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2}, True),
        ("a", {}, {"a": 2}, {}, True),
        ("a", {"a": 1}, {}, {"a": 1}, True),
        ("a.b", {"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}, {"a": {"b": 1, "c": 3}}, True),
        ("a.b", {}, {"a": {"b": 2}}, {"a": {"b": 2}}, False),
        ("a.b", {}, {}, {}, True),
        ("a[1]", {"a": [1, 2]}, {"a": [3, 4]}, {"a": [3, 2]}, True),
        ("a[5]", {"a": [1]}, {"a": [3]}, {"a": [3]}, False),
        ("a[*]", {"a": [1, 2]}, {"a": [3, 4]}, {"a": [1, 2]}, True),
        ("*", {"a": 1, "b": 2}, {"a": 3, "c": 4}, {"a": 1, "b": 2}, True),
        (
            "a.b",
            {"a": SecretValue({"b": 1})},
            {"a": SecretValue({"b": 2})},
            {"a": SecretValue({"b": 1})},
            True,
        ),
    ],
)
def test_a_path_is_reset(path: str, old: Any, new: Any, result: Any, done: bool) -> None:
    assert reset_path(parse_path(path), old, new) == (result, done)
