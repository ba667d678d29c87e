"""``tariff: [VDS-2, VDS-3]``: the first that can be had is ordered; check mode, limits and a later run."""

from typing import Any

import pytest

from tests.ansible.in_process import Play, account_problems, charged
from tests.support.account import Account

LIST: dict[str, Any] = {"name": "web", "tariff": ["VDS-2", "VDS-3"], "os": "debian-12"}


@pytest.fixture(name="emulated")
def account_with_a_third() -> Account:
    emulated = Account()
    emulated.control("POST", "/tariffs", {"id": 7, "name": "VDS-3", "price_monthly": "15.00"})
    return emulated


def sell(emulated: Account, in_stock: bool, *ids: int) -> None:
    for id in ids:
        emulated.control("PATCH", f"/tariffs/{id}", {"in_stock": in_stock})


def tariffs(emulated: Account) -> list[int]:
    return [server["tariff_id"] for server in emulated.living]


def test_the_second_is_ordered_once_and_is_no_difference_later(emulated: Account) -> None:
    sell(emulated, False, 2)
    play = Play(emulated)
    result = play("server", **LIST)
    assert (result["server"]["tariff"], result["server"]["tariff_id"]) == ("VDS-3", 7)
    assert result["charge"]["amount"] == "15.00"
    assert result["warnings"][0].endswith(
        "VDS-2: the tariff is out of stock (409 no_capacity); ordering VDS-3 instead"
    )
    sell(emulated, True, 2)
    emulated.control("PATCH", "/tariffs/2", {"disabled": True})  # its name is unknown by now
    later = Play(emulated)
    for names in (["VDS-2", "VDS-3"], ["VDS-3", "VDS-2"], "VDS-3", ["VDS-3"]):
        again = later("server", **{**LIST, "tariff": names})
        assert (again["changed"], again["failed"], again["warnings"]) == (False, False, []), names
    assert (tariffs(emulated), charged(emulated)) == ([7], ["15.00"])
    assert account_problems(emulated, play, later) == []


def test_a_list_without_what_was_taken_is_refused(emulated: Account) -> None:
    Play(emulated)("server", **{**LIST, "tariff": "VDS-3"})
    result = Play(emulated)("server", **{**LIST, "tariff": ["VDS-2", "VDS-1"]})
    assert "tariff is 'VDS-3', not 'VDS-2' or 'VDS-1', and that cannot be changed in place" in result["msg"]
    by_id = Play(emulated)("server", name="web", tariff_id=1, os="debian-12")
    assert "tariff_id is 7, not 1" in by_id["msg"]
    assert (tariffs(emulated), charged(emulated)) == ([7], ["15.00"])


@pytest.mark.parametrize("key", ["live_key", "test_key"])
@pytest.mark.parametrize(
    ("out", "taken", "said"),
    [
        ((), "VDS-2", "would charge at most 15.00 EUR (VDS-2, or VDS-3 if that cannot be ordered, 1 month)"),
        (
            (2,),
            "VDS-3",
            "would charge at most 15.00 EUR (VDS-3, unless VDS-2 can be ordered by then, 1 month)",
        ),
    ],
)
def test_check_mode_says_which_would_be_taken(
    emulated: Account, key: str, out: tuple[int, ...], taken: str, said: str
) -> None:
    sell(emulated, False, *out)
    play = Play(emulated, check_mode=True, key=getattr(emulated, key), max_charge="50.00")
    result = play("server", **LIST)
    assert (result["changed"], result["server"]["tariff"]) == (True, taken)
    assert any(said in warning for warning in result["warnings"]), result["warnings"]
    assert not play("server_info", name="web")["failed"]
    assert emulated.living == []
    real = Play(emulated, key=getattr(emulated, key))("server", **LIST)
    assert (real["server"]["tariff"], real["failed"]) == (taken, False)


def test_the_limit_is_compared_with_the_highest_price(emulated: Account) -> None:
    for check_mode in (True, False):
        result = Play(emulated, check_mode=check_mode, max_charge="14.99")("server", **LIST)
        assert "with 15.00 EUR for VDS-2, or VDS-3 if that cannot be ordered" in result["msg"]
    assert charged(emulated) == []
    assert not Play(emulated, max_charge="15.00")("server", **LIST)["failed"]
    assert charged(emulated) == ["10.00"]


def test_all_refused_names_each(emulated: Account) -> None:
    play = Play(emulated)
    play.before_write = lambda: sell(emulated, False, 2, 7)
    result = play("server", **LIST)
    assert result["msg"].startswith(
        "server 'web': none of its tariffs can be ordered: VDS-2: the tariff is out"
    ), result["msg"]
    assert "VDS-3: the tariff is out of stock (409 no_capacity); nothing was ordered. Next: " in result["msg"]
    assert (result["failure"]["code"], charged(emulated)) == ("no_capacity", [])


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "tariff: is empty: name at least one"),
        (["VDS-2", "VDS-2"], "tariff: entry 2 repeats entry 1: name each once"),
        (["VDS-2", "VDS-22"], "tariff: there is no tariff named 'VDS-22': did you mean 'VDS-2'"),
    ],
)
def test_a_list_that_cannot_be_ordered_is_refused_by_name(
    emulated: Account, check_mode: bool, names: list[str], said: str
) -> None:
    result = Play(emulated, check_mode=check_mode)("server", **{**LIST, "tariff": names})
    assert said in result["msg"], result
    assert emulated.living == []
