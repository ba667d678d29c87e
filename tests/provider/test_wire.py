"""Values on their way through the protocol: nothing changes, secrets stay known as secrets."""

from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from pulumi_hosting.provider import conversion
from pulumi_hosting.provider.plugin.marshal import OUTPUT, SECRET, SIGNATURE, UNKNOWN, marshal, unmarshal

numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != SIGNATURE), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values))
def test_unmarshal_reverses_marshal(properties: dict[str, Any]) -> None:
    assert unmarshal(marshal(properties)).values == properties


@given(st.dictionaries(st.text(), values), st.sets(st.text()))
def test_unmarshal_finds_the_secrets_by_their_keys(properties: dict[str, Any], secrets: set[str]) -> None:
    received = unmarshal(marshal(properties, secrets))
    assert received.values == properties
    assert received.secrets == {key for key in secrets if properties.get(key) is not None}


def struct(**properties: Any) -> Struct:
    made = Struct()
    made.update(properties)
    return made


def test_a_value_that_contains_a_secret_is_secret() -> None:
    received = unmarshal(struct(keys=["a", {SIGNATURE: SECRET, "value": "b"}], plain="c"))
    assert received.values == {"keys": ["a", "b"], "plain": "c"}
    assert received.secrets == {"keys"}


def test_outputs_are_their_values() -> None:
    received = unmarshal(
        struct(
            a={SIGNATURE: OUTPUT, "value": 1, "secret": True, "dependencies": ["urn"]}, b={SIGNATURE: OUTPUT}
        )
    )
    assert received.values["a"] == 1
    assert received.secrets == {"a"}
    assert received.values["b"] is conversion.UNKNOWN


@pytest.mark.parametrize(
    "mark", [UNKNOWN, "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7", "dd056dcd-154b-4c76-9bd3-c8f88648b5ff"]
)
def test_unknowns_of_every_type_go_back_as_unknown(mark: str) -> None:
    received = unmarshal(struct(a=[mark], b={SIGNATURE: SECRET, "value": mark}))
    assert conversion.is_unknown(received.values["a"])
    answer = marshal(received.values, received.secrets)
    assert answer.fields["a"].list_value.values[0].string_value == UNKNOWN
    assert answer.fields["b"].struct_value.fields["value"].string_value == UNKNOWN


def test_what_the_wire_cannot_carry_is_named_by_its_type_alone() -> None:
    with pytest.raises(TypeError, match=r"^a bytes has no place in a property$"):
        marshal({"password": b"cAnary"})


def test_nothing_received_is_shown() -> None:
    assert "cAnary" not in repr(unmarshal(struct(password={SIGNATURE: SECRET, "value": "cAnary"})))
