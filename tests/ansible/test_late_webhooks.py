"""A webhook request of a killed play that is processed after the next play made its own subscription."""

from typing import Any

import pytest

from tests.ansible.in_process import Play, account_problems
from tests.support.account import Account

HOOK: dict[str, Any] = {"url": "https://hooks.example.org/in", "events": ["*"]}


@pytest.fixture
def account() -> Account:
    account = Account()
    account.control("PUT", "/webhook-routes", {"https://hooks.example.org": "http://127.0.0.1:9"})
    return account


def rows(account: Account) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = account.control("GET", "/objects")["subscriptions"]
    return found


def processed_late(account: Account, **more: Any) -> int:
    (first,) = rows(account)
    body = {**HOOK, "description": first["description"], **more}
    made: int = account.api("POST", "/webhooks", body).json()["id"]
    return made


def test_the_next_task_deletes_it(account: Account) -> None:
    first = Play(account)("webhook_subscription", **HOOK, description="shop")
    kept = first["webhook_subscription"]
    assert kept["description"] == "shop"
    assert kept["ownership_tag"] is None
    late = processed_late(account)
    checked = Play(account, check_mode=True)("webhook_subscription", **HOOK)
    assert (checked["changed"], len(rows(account))) == (True, 2)
    play = Play(account)
    done = play("webhook_subscription", **HOOK)
    assert (done["changed"], done["webhook_subscription"]) == (True, kept)
    assert any(f"webhook subscription {late} is a second one" in line for line in done["warnings"])
    assert not play("webhook_subscription", **HOOK)["changed"]
    assert [str(row["id"]) for row in rows(account)] == [kept["id"]]
    assert account_problems(account, play) == []


def test_a_removal_takes_it_along(account: Account) -> None:
    Play(account)("webhook_subscription", **HOOK)
    processed_late(account)
    play = Play(account)
    assert play("webhook_subscription", url=HOOK["url"], state="absent")["changed"]
    assert rows(account) == []
    assert account_problems(account, play) == []


@pytest.mark.parametrize("of", ["a person", "a receiver that has its secret"])
def test_what_is_not_certainly_a_second_one_stops_the_task(account: Account, of: str) -> None:
    first = Play(account)("webhook_subscription", **HOOK)["webhook_subscription"]
    other = processed_late(account, **({"description": ""} if of == "a person" else {}))
    if of != "a person":
        account.server(name="web")
        account.advance(0)
    for options in (HOOK, {"url": HOOK["url"], "state": "absent"}):
        stopped = Play(account)("webhook_subscription", **options)
        assert f"matches several objects: ids {first['id']}, {other}. Next: " in stopped["msg"]
    assert [str(row["id"]) for row in rows(account)] == [first["id"], str(other)]


def test_another_description_leaves_the_tag(account: Account) -> None:
    play = Play(account)
    play("webhook_subscription", **HOOK)
    tag = rows(account)[0]["description"]
    assert play("webhook_subscription", **HOOK, description="shop")["changed"]
    assert rows(account)[0]["description"] == f"shop {tag}"
    assert not play("webhook_subscription", **HOOK, description="shop")["changed"]
