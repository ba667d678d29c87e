"""Keys must never change between versions: an encoding that does is a second order. These vectors are
frozen.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_hosting.api.operations import KEY_LENGTH
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

FACTS: dict[str, Any] = {"server_id": 20001, "next_due_at": "2026-12-01T00:00:00Z"}


def ring(**changes: Any) -> KeyRing:
    facts: dict[str, Any] = {
        "account_id": 1,
        "livemode": True,
        "identity": "pulumi:demo/dev/server/web-1",
        "operation": "create_server",
    }
    return KeyRing(**{**facts, **changes})


VECTORS = {
    0: "iac3-3udlyt6nr6pa53guhnpqhibvchv65hnbh6mk2jdlr6lbbmriaowq",
    1: "iac3-7ybzaryx3v23kwkznajgza6sjhj2axomccu7n36j7ccjw5zofs4q",
}


@pytest.mark.parametrize(("generation", "key"), VECTORS.items())
def test_vectors_are_frozen(generation: int, key: str) -> None:
    assert ring().key(generation) == key


@pytest.mark.parametrize(
    ("purchase", "key"),
    [
        ({"identity": "ansible:/server/web-1"}, "iac3-nw6giyv3fjqnx7om7junmpdwxs274xvo7ur2jbnl6kd5ko73lr5a"),
        ({"attempt": 1}, "iac3-wo4pl4chcoehpi3w2tq6ejfn6khdqkgdwgezkmbujhtktkzsjteq"),
        (
            {"operation": "register_domain", "facts": {"name": "xn--mnster-3ya.example"}},
            "iac3-yrrxudb37deu57gonxpvblb2phinte46je2qjvkvsikr4lv63qzq",
        ),
        (
            {
                "operation": "add_server_ip",
                "facts": {"server_id": "20001", "present": [31, 32], "bought": 2, "paid": 2},
            },
            "iac3-766uuvzhe2xfzpqm5iooyys4yrhsg2zauzlx4kn7ga2im7h4x7aa",
        ),
        (
            {"identity": "action:renew_server", "operation": "renew_server", "facts": FACTS},
            "iac3-jhvf6lz7wcfpfl6m3n6opsk2tgsj4deldd7hcdygdgvwydzrsvlq",
        ),
    ],
)
def test_the_vectors_of_other_purchases_are_frozen(purchase: dict[str, Any], key: str) -> None:
    assert ring(**purchase).key(0) == key


@pytest.mark.parametrize(
    "declared",
    [
        {},
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
        {"hours": 5},
        {"name": "another"},
    ],
)
@pytest.mark.parametrize("name_is_identity", [True, False])
def test_what_is_ordered_is_no_part_of_the_key_of_a_declared_server(
    declared: dict[str, Any], name_is_identity: bool
) -> None:
    """Of two different orders for one declaration at the same moment the second meets a conflict."""
    owner = SimpleNamespace(account_id=1, livemode=True)
    request: Any = SimpleNamespace(
        client=SimpleNamespace(call=len, key_owner=SimpleNamespace(get=lambda: owner)),
        identity="pulumi:demo/dev/server/web-1",
        name_is_identity=name_is_identity,
    )
    body = ServerInputs.model_validate({"tariff_id": 1, "os": "debian-12", "name": "web-1", **declared})
    assert ServerOrder(request, body.order_body()).keys.key(0) == VECTORS[0]
    assert ServerOrder(request, body.order_body(), attempt=1).keys.key(0) == ring(attempt=1).key(0)


def test_the_keys_of_a_test_key_are_never_the_same_twice() -> None:
    """Nothing is bought with them, so no run needs the answer of an earlier one."""
    one, other = ring(livemode=False), ring(livemode=False)
    assert one == other  # the same purchase
    assert one.key(0) == one.key(0) != one.key(1)
    assert one.key(0) != other.key(0)
    assert len(one.key(0)) == len(VECTORS[0])


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
        {"facts": FACTS},
        {"facts": {"name": "shop.com"}},
    ],
)
def test_everything_that_makes_another_purchase_makes_another_key(other: dict[str, Any]) -> None:
    assert ring(**other).key(0) != ring().key(0)


def test_the_order_of_fields_makes_no_other_key() -> None:
    assert ring(facts=dict(reversed(FACTS.items()))).key(0) == ring(facts=FACTS).key(0)


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
