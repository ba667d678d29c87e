"""Names in place of ids: SSH keys, servers and tariffs. A name that several objects have is refused with
their ids."""

from typing import Any

import pytest

from tests.ansible.in_process import Play, charged
from tests.ansible.test_planned import ORDER, both
from tests.ansible.test_playbooks import KEY_LINE, OTHER_LINE
from tests.support.account import Account

BY_NAME: dict[str, Any] = {"tariff": "VDS-2", "os": "debian-12"}


def test_a_play_without_ids_is_predicted_and_sends_the_right_ones() -> None:
    checked, real, emulated = both(
        ("ssh_key", {"name": "desk", "public_key": OTHER_LINE}),
        ("server", {"name": "web", "ssh_key_ids": ["desk", "60001"], **BY_NAME}),
        ("server_ip", {"server_id": "web"}),
        ("server", {"name": "web", "ssh_key_ids": ["desk"], "erase": "web", "state": "reinstalled"}),
        ("server_ip_info", {"server_id": "web"}),
        before=(("ssh_key", {"name": "laptop", "public_key": KEY_LINE}),),
    )
    assert [result["failed"] for result in (*checked, *real)] == [False] * 10
    assert [result["changed"] for result in checked] == [result["changed"] for result in real]
    assert real[1]["diff"]["after"]["ssh_key_ids"] == ["60002", "60001"]
    assert real[1]["server"]["tariff_id"] == 2
    assert {ip["server_id"] for ip in real[4]["server_ips"]} == {real[1]["server"]["id"]}
    sent = [
        request["body"]["ssh_key_ids"]
        for request in emulated.control("GET", "/requests?since=0")
        if "ssh_key_ids" in (request.get("body") or {})
    ]
    assert sent == [[60001, 60002], [60002]]


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_name_of_none_or_several_is_refused_with_the_choices(check_mode: bool) -> None:
    emulated = Account()
    client = Play(emulated).client(emulated.live_key, False)
    for line in (KEY_LINE, OTHER_LINE):
        client.ssh_keys.create(name="laptop", public_key=line)
    for _ in range(2):
        client.servers.create(name="a", **ORDER)
    play = Play(emulated, check_mode=check_mode)

    def refused(name: str, /, **options: Any) -> str:
        result = play(name, **options)
        assert result["failed"]
        return str(result["msg"])

    assert "60001" in refused("server", name="b", ssh_key_ids=["laptop"], **ORDER)
    assert "named 'lap': choose one of laptop" in refused("server", name="b", ssh_key_ids=["lap"], **ORDER)
    assert "20001" in refused("server_ip", server_id="a")
    wrong = refused("server_ip_info", server_id="z")
    assert "no server named 'z'" in wrong
    assert "Next: correct server_id, " in wrong
    assert "did you mean 'VDS-2'" in refused("quote_info", tariff="VDS-22")
    assert "tariff is 'VDS-1', not 'VDS-2'" in refused("server", id="20001", **BY_NAME)
    assert not play("server", name="b", ssh_key_ids=["lap"], state="absent", **ORDER)["failed"]
    assert charged(emulated) == ["5.00", "5.00"]


def test_tariffs_are_read_by_name() -> None:
    play = Play(Account())
    by_id, by_name = play("quote_info", tariff_id=2), play("quote_info", tariff="vds-2")
    assert by_name["quote"] == by_id["quote"]
    images = [play("os_image_info", **tariff)["os_images"] for tariff in ({}, {"tariff": "VDS-Linux"})]
    assert images[1] == play("os_image_info", tariff_id=5)["os_images"] != images[0]


def test_tariffs_of_a_location_and_keys_of_the_api_are_read_by_name() -> None:
    emulated = Account()
    play = Play(emulated)
    emulated.new_key(name="ci")
    (location, *_) = play("location_info")["locations"]
    by_id = play("tariff_info", location_id=location["id"])["tariffs"]
    assert by_id == play("tariff_info", location=location["name"].upper())["tariffs"]
    assert by_id == play("tariff_info", location=location["code"])["tariffs"]
    assert [row["id"] for row in play("tariff_info", name="vds-1")["tariffs"]] == [1]
    assert [row["name"] for row in play("api_key_info", name="CI")["api_keys"]] == ["ci"]
    assert play("tariff_info", name="VDS-99")["tariffs"] == []
    assert "choose one of" in play("tariff_info", location="nowhere")["msg"]


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_server_is_adopted_by_the_name_that_it_has(check_mode: bool) -> None:
    emulated = Account()
    emulated.server(name="old")
    desired = {"name": "web", "adopt_id": "old", **ORDER}
    taken = Play(emulated, check_mode=check_mode)("server", **desired)
    assert (taken["changed"], taken["server"]["id"], taken["charge"]) == (True, "20001", None)
    if not check_mode:  # nothing has the old name any more
        again = Play(emulated)("server", **desired)
        assert (again["changed"], again["server"]["id"]) == (False, "20001")
    missing = Play(emulated, check_mode=check_mode)("server", name="db", adopt_id="nothing", **ORDER)
    assert "adopt_id: there is no server named 'nothing' on this account" in missing["msg"]
    assert not Play(emulated, check_mode=True)("server", **desired, state="absent")["failed"]
    assert charged(emulated) == ["5.00"]


def test_a_test_key_passes_over_the_names_of_keys_that_it_made() -> None:
    emulated = Account()
    play = Play(emulated, key=emulated.test_key)
    play("ssh_key", name="laptop", public_key=KEY_LINE)
    assert not play("server", name="a", ssh_key_ids=["laptop"], **ORDER)["failed"]


def test_check_mode_shows_the_addresses_of_a_server_that_is_planned(account: Account) -> None:
    play = Play(account, check_mode=True)
    play("server", name="web", **ORDER)
    play("server_ip", server_id="", position=1)
    shown = play("server_ip_info", server_id="")["server_ips"]
    assert [(one["primary"], one["price_monthly"], one["id"]) for one in shown] == [
        (True, None, None),
        (False, "2.00", None),
    ]
    play("server", name="db", **ORDER)
    assert play("server_ip_info", server_id="", quote=True)["server_ips"] == []  # of which one is not known
    assert account.ledger() == []
