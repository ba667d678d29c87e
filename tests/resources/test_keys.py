"""Keys must never change between versions: an encoding that does is a second order. These vectors are
frozen.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_hosting.api.operations import KEY_LENGTH
from pulumi_hosting.exactly_once import server_order
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing, canonical
from pulumi_hosting.exactly_once.ownership_tag import (
    carried_on,
    is_tag,
    is_tag_of,
    next_tag,
    ownership_tag,
    split_tag,
    with_tag,
)
from pulumi_hosting.exactly_once.server_order import ServerOrder
from pulumi_hosting.resources.server_fields import ServerInputs

BODY: dict[str, Any] = {"tariff_id": 1, "os": "debian-12", "name": "web-1", "months": 1}


def ring(**changes: Any) -> KeyRing:
    facts: dict[str, Any] = {
        "account_id": 1,
        "livemode": True,
        "identity": "pulumi:demo/dev/server/web-1",
        "operation": "create_server",
        "body": BODY,
    }
    return KeyRing(**{**facts, **changes})


VECTORS = {
    0: "iac2-22ennordh2ueo7xnl7vxujp6iwhiveemdjgmmmumfe7byhjxosva",
    1: "iac2-wfxz2ojsecu4iituefr6lnlxcp5dafkbidxlmpex2xxgwrdy5yuq",
}


@pytest.mark.parametrize(("generation", "key"), VECTORS.items())
def test_vectors_are_frozen(generation: int, key: str) -> None:
    assert ring().key(generation) == key


def test_the_vector_of_a_name_that_is_the_identity_is_frozen() -> None:
    named = ring(identity="ansible:/server/web-1", body={"name": "web-1"})
    assert named.key(0) == "iac2-idz54oevrvkkhtvcixuge7ibfp7g7ouzona2fol4hl3teftprhsq"


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        ({}, VECTORS[0]),
        (
            {
                "tariff_id": 7,
                "months": 3,
                "billing_cycle": "monthly",
                "ssh_key_ids": ["12", "3"],
                "password": "Abcdefg1!",
                "promo_code": "SPRING",
                "custom_fields": {"zone": "é\n2", "area": "ü"},
                "notes": "the shop",
                "auto_renew": True,
            },
            "iac2-ylimtgftgy6dlb6aac7muo2j5mrss3o6v63umgmp6xji7o6fh7gq",
        ),
        ({"hours": 5}, "iac2-4hd7a63thsre7jjuyvjozvhm3tzsy22iqgsqipbnbhnveyxpmaya"),
        ({"billing_cycle": "hourly"}, "iac2-muz4zvaqrj6q2y37irnclortamc2vewhpr5fhskgvvfnwwfbbgzq"),
    ],
)
def test_the_vectors_of_declared_servers_are_frozen(
    monkeypatch: pytest.MonkeyPatch, declared: dict[str, Any], key: str
) -> None:
    monkeypatch.setattr(server_order, "account", lambda client: SimpleNamespace(account_id=1, livemode=True))
    request: Any = SimpleNamespace(
        client=None, identity="pulumi:demo/dev/server/web-1", name_is_identity=False
    )
    body = ServerInputs.model_validate({"tariff_id": 1, "os": "debian-12", "name": "web-1", **declared})
    assert next(ServerOrder(request, body.order_body()).keys()) == key


@pytest.mark.parametrize(
    ("takeovers", "tag"), [(0, "[iac2:wns2mcxo]"), (1, "[iac2:wns2mcxo.1]"), (12, "[iac2:wns2mcxo.12]")]
)
def test_tags_are_frozen(takeovers: int, tag: str) -> None:
    assert ownership_tag("pulumi:demo/dev/server/web-1", takeovers) == tag
    assert split_tag(f"the shop {tag}") == ("the shop", tag)
    assert is_tag_of(tag, "pulumi:demo/dev/server/web-1")
    assert not is_tag_of(tag, "pulumi:demo/dev/server/web-2")
    assert next_tag(tag, "pulumi:demo/dev/server/web-1") == f"[iac2:wns2mcxo.{takeovers + 1}]"
    assert next_tag(tag, "another") == ownership_tag("another", 1)


def test_a_tag_of_the_first_scheme_is_split_off_and_unowned() -> None:
    assert split_tag("the shop [iac:wns2mcxo]") == ("the shop", "[iac:wns2mcxo]")
    assert not is_tag_of("[iac:wns2mcxo]", "pulumi:demo/dev/server/web-1")
    assert with_tag("the shop [iac:wns2mcxo]", "[iac2:abcdefgh]") == "the shop [iac2:abcdefgh]"


def test_a_text_without_a_tag_gets_the_first_one() -> None:
    assert with_tag(None, ownership_tag("another")) == ownership_tag("another", 0)
    assert split_tag(None) == ("", None)
    assert is_tag(ownership_tag("another"))
    assert not is_tag("[iac:wns2mcxo]")
    assert not is_tag(None)


def test_a_change_writes_the_recorded_tag_or_the_first_own_one() -> None:
    mine = ownership_tag("me", 2)
    assert carried_on(mine, "me", "me", takes=True) == mine
    assert carried_on(None, "me", "me", takes=True) == ownership_tag("me")
    assert carried_on(mine, "another", "another", takes=True) == ownership_tag("another", 1)
    assert carried_on(mine, "another", "another") == mine


@pytest.mark.parametrize(
    "text",
    ["[iac2:short]", "[iac2:abcdefgh.0]", "[iac2:abcdefgh.x]", "[iac2:ABCDEFGH]", "[iac2:abcdefgh] and more"],
)
def test_what_only_looks_like_a_tag_is_text(text: str) -> None:
    assert split_tag(text) == (text, None)


def test_a_key_is_one_the_api_takes() -> None:
    key = ring().key(0)
    assert len(key) == 57
    assert len(key) in KEY_LENGTH
    assert all("!" <= char <= "~" for char in key)


@pytest.mark.parametrize(
    "other",
    [
        {"account_id": 2},
        {"livemode": False},
        {"identity": "pulumi:demo/prod/server/web-1"},
        {"operation": "add_server_ip"},
        {"attempt": 1},
        {"body": {**BODY, "os": "debian-11"}},
        {"body": {**BODY, "months": 3}},
    ],
)
def test_everything_that_makes_another_order_makes_another_key(other: dict[str, Any]) -> None:
    assert ring(**other).key(0) != ring().key(0)


def test_the_order_of_fields_makes_no_other_key() -> None:
    assert ring(body=dict(reversed(BODY.items()))).key(0) == ring().key(0)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_the_encoding_is_ascii_and_stable(value: Any) -> None:
    assert canonical(value) == canonical(value)
    assert canonical(value).isascii()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": float("nan")}])
def test_what_json_cannot_say_makes_no_key(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical(value)


@given(st.integers(0, 15), st.integers(0, 15))
def test_generations_never_share_a_key(one: int, other: int) -> None:
    assert (ring().key(one) == ring().key(other)) == (one == other)
