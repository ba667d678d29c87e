"""What a task must not conclude from answers that earlier tasks of the run were given."""

from typing import Any

import pytest

from pulumi_hosting.client.client import Client
from tests.ansible.in_process import Play, account_problems, ahead, charged
from tests.ansible.test_playbooks import KEY_LINE, OTHER_LINE
from tests.support.account import Account

ORDER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}


@pytest.mark.parametrize("by", ["name", "id"])
def test_what_was_made_elsewhere_since_is_deleted(by: str) -> None:
    """Earlier tasks have seen the account without it: it is there all the same, and costs money."""
    emulated = Account()
    play = Play(emulated)
    play("server", name="a", **ORDER)
    play("ssh_key", name="first", public_key=KEY_LINE)
    server = emulated.control("POST", "/servers", {"name": "b"})
    with Client(emulated.live_key, emulated.base_url, transport=emulated.transport()) as elsewhere:
        key = elsewhere.ssh_keys.create(name="second", public_key=OTHER_LINE)
    named = {
        "server": {"name": "b"} if by == "name" else {"id": str(server["id"])},
        "ssh_key": {"name": "second"} if by == "name" else {"id": str(key.id)},
    }
    for check_mode in (True, False):
        play.check_mode = check_mode
        assert [play(kind, state="absent", **what)["changed"] for kind, what in named.items()] == [True, True]
    assert [play(kind, state="absent", **what)["changed"] for kind, what in named.items()] == [False, False]
    objects = emulated.control("GET", "/objects")
    assert [key["name"] for key in objects["ssh_keys"]] == ["first"]
    assert [row["name"] for row in objects["servers"] if row["status"] == "active"] == ["a"]
    assert account_problems(emulated, play) == []


def test_what_was_made_again_under_the_name_is_deleted_too() -> None:
    """The run's list shows the first object of the name; by now that is gone, and another has the name."""
    emulated = Account()
    play = Play(emulated)
    hook: dict[str, Any] = {"url": "https://hooks.example.com/x", "events": ["*"]}
    for kind, options in (
        ("server", {"name": "b", **ORDER}),
        ("ssh_key", {"name": "b", "public_key": KEY_LINE}),
        ("webhook_subscription", hook),
    ):
        play(kind, **options)
        assert not play(kind, **options)["changed"]
    objects = emulated.control("GET", "/objects")
    emulated.control("DELETE", f"/ssh-keys/{objects['ssh_keys'][0]['id']}")
    emulated.control("DELETE", f"/webhooks/{objects['subscriptions'][0]['id']}")
    with Client(emulated.live_key, emulated.base_url, transport=emulated.transport()) as elsewhere:
        elsewhere.servers.delete(objects["servers"][0]["id"])
        emulated.control("POST", "/servers", {"name": "b"})
        elsewhere.ssh_keys.create(name="b", public_key=OTHER_LINE)
        elsewhere.webhooks.create(**hook)
    assert play("server", name="b", state="absent")["changed"]
    assert play("ssh_key", name="b", state="absent")["changed"]
    assert play("webhook_subscription", url=hook["url"], state="absent")["changed"]
    objects = emulated.control("GET", "/objects")
    assert [row for row in objects["servers"] if row["status"] not in ("cancelled", "terminated")] == []
    assert (objects["ssh_keys"], objects["subscriptions"]) == ([], [])
    assert account_problems(emulated, play) == []


@pytest.mark.parametrize("check_mode", [True, False])
def test_an_id_that_is_gone_is_not_found_in_an_old_list(check_mode: bool) -> None:
    emulated = Account()
    play = Play(emulated, check_mode=check_mode)
    ids = [str(emulated.control("POST", "/servers", {"name": f"s-{number}"})["id"]) for number in range(6)]
    for id in ids:  # the last ones are answered from a list
        assert play("server", id=id, name=f"s-{ids.index(id)}")["changed"] is False
    emulated.control("DELETE", f"/servers/{ids[0]}")
    assert "there is no server with id 99" in play("server", id="99")["msg"]
    assert play("server", id="99", state="absent")["changed"] is False
    if not check_mode:
        play("server", id=ids[1], state="absent")
        assert f"there is no server with id {ids[1]}" in play("server", id=ids[1])["msg"]


def test_a_renewed_domain_is_shown_with_its_new_date() -> None:
    emulated = Account()
    play = Play(emulated)
    play("domain", name="shop-1.com")
    renewed, again = (play("domain_renew", name="shop-1.com", until=ahead(400)) for _ in range(2))
    assert (renewed["changed"], again["changed"]) == (True, False)
    assert renewed["domain"]["expires_at"] == again["domain"]["expires_at"] >= ahead(400)


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_revoked_key_is_refused_from_then_on(check_mode: bool) -> None:
    emulated = Account()
    play = Play(emulated, check_mode=check_mode)
    play("ssh_key", name="first", public_key=KEY_LINE)
    assert play("api_key_revoke", key_id="501")["changed"]
    for name, options in {
        "api_key_revoke": {"key_id": "501"},
        "server": {"name": "a", **ORDER},
        "ssh_key": {"name": "first", "public_key": KEY_LINE},
    }.items():
        assert play(name, **options)["failure"]["code"] == "invalid_token", name


def test_a_domain_that_another_run_registered_meanwhile_is_not_called_taken() -> None:
    emulated = Account()
    play = Play(emulated)
    play("domain", name="other-example.com")  # the run has the list of domains from now on
    Play(emulated)("domain", name="example.com")
    found = play("domain", name="example.com")
    assert (found["failed"], found["changed"], found["charge"]) == (False, False, None)
    assert charged(emulated) == ["12.00", "12.00"]
    assert {row["name"] for row in emulated.objects("domains")} == {"other-example.com", "example.com"}
