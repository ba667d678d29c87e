"""Names and values between Pulumi's wire and a resource."""

from typing import Any

import pytest
from pulumi.output import Unknown

from pulumi_hosting.provider.conversion import UNKNOWN, from_pulumi, is_unknown, outputs_of, snake, to_pulumi
from pulumi_hosting.provider.names import camel
from pulumi_hosting.resources import RESOURCES

LATER: Any = Unknown.__new__(Unknown)  # the SDK's constructor has no types


def test_every_field_of_every_resource_survives_both_spellings() -> None:
    for resource in RESOURCES.values():
        for name in (*resource.Inputs.model_fields, *resource.State.model_fields):
            assert snake(camel(name)) == name


@pytest.mark.parametrize(
    ("inside", "wire"),
    [("tariff_id", "tariffId"), ("os", "os"), ("__managed", "__managed"), ("ssh_key_ids", "sshKeyIds")],
)
def test_spellings(inside: str, wire: str) -> None:
    assert camel(inside) == wire
    assert snake(wire) == inside


@pytest.mark.parametrize("value", [UNKNOWN, LATER, [LATER], {"a": [1, {"b": LATER}]}, ("x", LATER)])
def test_an_unknown_is_seen_at_any_depth(value: Any) -> None:
    assert is_unknown(value)
    assert from_pulumi({"sshKeyIds": value, "os": "debian-12"}) == (
        {"os": "debian-12"},
        frozenset({"ssh_key_ids"}),
    )


@pytest.mark.parametrize("value", [None, 1.0, "x", [1, [2]], {"a": {}}])
def test_a_known_value_is_not_unknown(value: Any) -> None:
    assert not is_unknown(value)


def test_our_own_keys_and_nulls_stay_outside() -> None:
    assert from_pulumi(
        {"__identity": "x", "__provider": "y", "waitTimeout": 5.0, "notes": None, "os": "d"}
    ) == ({"os": "d"}, frozenset())
    assert to_pulumi({"notes": None, "tariff_id": 1}) == {"tariffId": 1}
    assert outputs_of(RESOURCES["server"], {"notes": None, "id": "4"}, {"months": 1}) == {"months": 1}
