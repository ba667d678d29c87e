"""A server that was renamed outside is recognised by its tag: not ordered again, and not called absent."""

from typing import Any

import pytest
import yaml
from ansible.utils.display import Display

from ansible_collections.hosting.cloud.plugins.plugin_utils.account_servers import Source
from pulumi_hosting.client.client import Client
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag, split_tag, with_tag
from tests.ansible.conftest import Ansible
from tests.ansible.in_process import Play, account_problems, charged
from tests.ansible.test_money import CONNECTIONS
from tests.ansible.test_playbooks import refused, server
from tests.support.account import Account

pytestmark = pytest.mark.usefixtures("waits_take_no_time")
ORDER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
WEB = {"name": "web", **ORDER}
TAG, OLD_TAG = ownership_tag("ansible:/server/web"), ownership_tag("ansible:/server/web-old")


def outside(emulated: Account, id: int = 20001, **changes: Any) -> None:
    """A change in the control panel."""
    with Client(emulated.live_key, emulated.base_url, transport=emulated.transport()) as client:
        notes = split_tag(client.servers.get(id).notes)
        if "notes" in changes:  # people leave the tag alone
            changes["notes"] = with_tag(changes["notes"], notes[1])
        client.servers.update(id, **changes)


def older(emulated: Account, notes: str) -> None:
    """A server ``web`` that no task has ordered."""
    emulated.control("POST", "/servers", {"name": "web"})
    emulated.control("PATCH", "/servers/20001", {"notes": notes})


def servers(emulated: Account) -> list[tuple[int, str, str | None]]:
    return [(row["id"], row["name"], row["notes"]) for row in emulated.living]


def renamed(to: str = "web-old") -> tuple[Account, Play]:
    """An account whose server ``web`` was renamed outside, and the run that ordered it."""
    emulated = Account()
    play = Play(emulated)
    assert not play("server", **WEB)["failed"]
    outside(emulated, name=to)
    return emulated, play


@pytest.mark.parametrize("days", [0, 20])
@pytest.mark.parametrize("state", ["present", "stopped"])
def test_a_renamed_server_is_not_ordered_again(days: int, state: str) -> None:
    emulated, _first = renamed()
    emulated.advance(days * 86400)
    for check_mode in (True, False):
        play = Play(emulated, check_mode=check_mode)
        result = play("server", **WEB, state=state)
        assert (result["failed"], result.get("charge")) == (True, None)
        assert result["msg"] == (
            "server 20001 was ordered as 'web', as its ownership tag shows, and is named 'web-old' now; "
            "nothing was ordered. Next: set id: 20001 in this task, which names it 'web' again; or, to order "
            "another one beside it, set order_attempt: 1, or let a task before this one declare server "
            "'web-old'"
        )
        assert result["failure"]["code"] == "resource_conflict"
    assert charged(emulated) == ["5.00"]
    assert servers(emulated) == [(20001, "web-old", TAG)]


def test_each_way_out_that_the_message_names_ends_it() -> None:
    ways: list[dict[str, Any]] = [
        {"id": "20001"},
        {"order_attempt": 1},
        {"id": "20001", "name": "web-old"},
    ]
    for number, way in enumerate(ways, start=1):
        emulated, first = renamed()
        for check_mode in (True, False):
            play = Play(emulated, check_mode=check_mode)
            if number == 3:
                assert play("server", **way)["changed"] is False
                result = play("server", **WEB)
            else:
                result = play("server", **{**WEB, **way})
            assert (result["failed"], result["changed"]) == (False, True), result
        again = Play(emulated)
        assert again("server", **{**WEB, **(way if number == 2 else {})})["changed"] is False
        names = [name for _id, name, _notes in servers(emulated)]
        assert names == (["web"] if number == 1 else ["web-old", "web"])
        assert charged(emulated) == ["5.00"] * len(names)
        assert account_problems(emulated, first, play, again) == []


def test_an_attempt_lets_a_new_server_be_ordered_once() -> None:
    """The server of that attempt is recognised in its turn."""
    emulated, _first = renamed()
    second = Play(emulated)
    assert second("server", **WEB, order_attempt=1)["changed"]
    outside(emulated, 20002, name="web-older")
    third = Play(emulated)("server", **WEB, order_attempt=1)
    assert third["failed"]
    assert "server 20002 was ordered as 'web'" in third["msg"]
    assert "set order_attempt: 2, or" in third["msg"]
    assert charged(emulated) == ["5.00"] * 2


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_task_that_declares_the_server_lets_another_one_be_ordered(by: str) -> None:
    emulated, first = renamed()
    old = {"name": "web-old", **ORDER} if by == "name" else {"id": "20001", "state": "started"}
    for check_mode in (True, False):
        play = Play(emulated, check_mode=check_mode)
        kept, new = play("server", **old), play("server", **WEB)
        assert (kept["changed"], new["changed"]) == (False, True), new
        assert (new["charge"] or {}).get("amount") == "5.00"
    assert [name for _id, name, _notes in servers(emulated)] == ["web-old", "web"]
    assert account_problems(emulated, first, play) == []


def test_a_rename_by_a_task_sets_the_name_free() -> None:
    """Its tag becomes that of the new name, in the same request: later runs need not declare it."""
    emulated = Account()
    first = Play(emulated)
    first("server", **WEB, notes="mine")
    for check_mode in (True, False):
        rename = Play(emulated, check_mode=check_mode)
        done = rename("server", id="20001", name="web-old")
        assert (done["changed"], done["server"]["notes"]) == (True, "mine")
        assert rename("server", name="web", state="absent")["changed"] is False
    assert servers(emulated) == [(20001, "web-old", f"mine {OLD_TAG}")]
    assert emulated.requested("PATCH").count("/servers/20001") == 2
    new = Play(emulated)
    assert new("server", **WEB)["changed"]
    assert account_problems(emulated, first, rename, new) == []


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_renamed_server_is_not_called_absent(check_mode: bool) -> None:
    emulated, _first = renamed()
    result = Play(emulated, check_mode=check_mode)("server", name="web", state="absent")
    assert result["failed"]
    assert result["msg"].endswith(
        "named 'web-old' now; nothing was deleted. Next: set id: 20001 in place of the name to delete it; "
        "if it is to stay, let a task before this one declare server 'web-old'"
    )
    kept = Play(emulated, check_mode=check_mode)
    kept("server", name="web-old")
    assert kept("server", name="web", state="absent")["changed"] is False
    assert len(emulated.living) == 1
    gone = Play(emulated, check_mode=check_mode)
    assert gone("server", id="20001", state="absent")["changed"]
    assert len(emulated.living) == (1 if check_mode else 0)


def test_what_belongs_to_a_renamed_server_is_not_called_absent() -> None:
    emulated, _first = renamed()
    bought = Play(emulated)
    address = bought("server_ip", server_name="web-old")["server_ip"]["address"]
    for check_mode in (True, False):
        play = Play(emulated, check_mode=check_mode)
        for name, options in (("server_ip", {"address": address}), ("ptr", {})):
            result = play(name, server_name="web", state="absent", **options)
            assert result["failed"], (name, result)
            assert "Next: set server_id: 20001 in place of server_name" in result["msg"]
    assert address in [row["address"] for row in emulated.objects("addresses")]


@pytest.mark.parametrize("days", [0, 6])
def test_a_renamed_server_without_a_tag_is_recognised_by_the_key_of_its_order(days: int) -> None:
    emulated = Account()
    first = Play(emulated)
    first("server", **WEB)
    emulated.control("PATCH", "/servers/20001", {"name": "web-old", "notes": None})
    emulated.advance(days * 86400)
    result = Play(emulated)("server", **WEB)
    assert result["failed"]
    assert "server 20001 was ordered as 'web', as the idempotency key of its order shows" in result["msg"]
    declared = Play(emulated)
    declared("server", name="web-old", **ORDER)
    assert declared("server", **WEB)["changed"]
    assert charged(emulated) == ["5.00"] * 2


def test_an_older_server_gets_its_tag_with_its_next_change() -> None:
    emulated = Account()
    older(emulated, "by hand")
    for options, notes in (
        ({}, "by hand"),
        ({"state": "stopped"}, "by hand"),
        ({"auto_renew": False}, f"by hand {TAG}"),
        ({"notes": "two"}, f"two {TAG}"),
        ({"notes": None}, TAG),
    ):
        checked = Play(emulated, check_mode=True)("server", name="web", **options)
        done = Play(emulated)("server", name="web", **options)
        assert not done["failed"], done
        assert servers(emulated)[0][2] == notes
        for result in (checked, done):
            assert result["server"]["notes"] == (split_tag(notes)[0])
            assert "iac2" not in str(result["diff"]) if "diff" in result else True


def test_the_tag_of_another_owner_stays() -> None:
    """A stack of Pulumi may manage the server, too: it can go on deleting it."""
    emulated = Account()
    theirs = ownership_tag("pulumi:demo/dev/server/web")
    older(emulated, f"theirs {theirs}")
    Play(emulated)("server", name="web", notes="ours")
    Play(emulated)("server", id="20001", name="www")
    assert servers(emulated) == [(20001, "www", f"ours {theirs}")]
    assert Play(emulated)("server", **WEB)["changed"]
    assert Play(emulated)("server", name="www", state="absent")["changed"]


def test_a_key_that_may_not_change_servers_orders_without_a_tag_and_says_so() -> None:
    emulated = Account()
    key = emulated.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read", "servers:order"]})[
        "key"
    ]
    checked = Play(emulated, key=key, check_mode=True)("server", **WEB)
    done = Play(emulated, key=key)("server", **WEB)
    for result in (checked, done):
        assert (result["failed"], result["changed"]) == (False, True)
        (warning,) = [line for line in result["warnings"] if "servers:manage" in line]
    assert warning.startswith("server 20001: the ownership tag could not be written")
    assert done["server"]["ownership_tag"] is None
    assert servers(emulated) == [(20001, "web", "")]
    assert Play(emulated, key=key)("server", **WEB)["changed"] is False
    for late in ({"notes": "x"}, {"state": "stopped"}):  # these need the scope
        refused = Play(emulated, key=key, max_charge="100")("server", **{**WEB, "name": "db"}, **late)
        assert refused["failure"]["code"] == "insufficient_scope"
        assert "charge" not in refused["failure"]
    assert charged(emulated) == ["5.00"]


@pytest.mark.parametrize(
    ("action", "says"),
    [
        ({"status": 409, "code": "operation_in_progress"}, "the ownership tag could not be written"),
        ({"drop": "after"}, "the ownership tag may be missing"),
    ],
)
def test_a_tag_that_cannot_be_written_does_not_fail_the_task(action: dict[str, Any], says: str) -> None:
    emulated = Account()
    emulated.fault(action, method="PATCH", path="^/servers/", times=9)
    play = Play(emulated)
    result = play("server", **WEB)
    assert (result["failed"], result["changed"]) == (False, True)
    assert f"server 20001: {says}" in str(result["warnings"])
    assert account_problems(emulated, play) == []


def test_results_show_notes_without_the_tag() -> None:
    emulated = Account()
    play = Play(emulated)
    made = play("server", **WEB, notes="mine")
    assert servers(emulated) == [(20001, "web", f"mine {TAG}")]
    changed = play("server", **WEB, notes="yours")
    (info,) = play("server_info", name="web")["servers"]
    renewed = play("server_renew", name="web", until="2029-07-01")
    stopped = play("server", name="web", state="restarted")
    for shown, notes in (
        (made["server"], "mine"),
        (changed["server"], "yours"),
        (info, "yours"),
        (renewed["server"], "yours"),
        (stopped["server"], "yours"),
    ):
        assert shown["notes"] == notes
        assert shown["ownership_tag"] in (TAG, None)
    assert changed["diff"] == {
        "before": {**ORDER, "name": "web", "notes": "mine"},
        "after": {**ORDER, "name": "web", "notes": "yours"},
    }
    outside(emulated, notes="edited")
    assert play("server_info", name="web")["servers"][0]["notes"] == "edited"


HOSTS: dict[str, Any] = {
    "hosts": "all",
    "connection": "local",
    "gather_facts": False,
    "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
}


@pytest.mark.emulator(own=True)
def test_playbooks_after_a_rename_outside(ansible: Ansible) -> None:
    """The whole story with ansible-playbook, in the controller and by the module's own process."""
    away = {"vars": {"ansible_connection": "elsewhere"}}
    environ = {"ANSIBLE_CONNECTION_PLUGINS": str(CONNECTIONS)}
    ordered = ansible.play(server("order", **WEB, notes="mine"))
    id = int(ordered["order"]["server"]["id"])
    assert [row["notes"] for row in ansible.living] == [f"mine {TAG}"]
    ansible.client.servers.update(id, name="web-old")
    address = {"api_key": ansible.emulator.live_key, "base_url": ansible.emulator.base_url}
    found = Source({**address, "timeout": 10.0, "rate_limit_timeout": 10.0}, strict=True, display=Display())
    assert [(row["name"], row["notes"]) for row in found.servers({})] == [("web-old", "mine")]

    before = ansible.writes()
    stops = [
        refused("here", **WEB),
        {**refused("there", **WEB), **away},
        refused("absent", name="web", state="absent"),
    ]
    for arguments in (("--check",), ()):
        played = ansible.play(*stops, arguments=arguments, environ=environ)
        assert [line["outcome"] for line in played.lines] == ["failed"] * 3
        for result in played.results:
            assert f"server {id} was ordered as 'web'" in result["msg"]
            assert f"Next: set id: {id} in" in result["msg"]
    assert ansible.writes() == before

    # Two hosts at the same moment: one declares the old server, so the other one orders a new one.
    playbook = ansible.home / "hosts.yml"
    playbook.write_text(
        yaml.safe_dump([{**HOSTS, "tasks": [server(**{**WEB, "name": "{{ inventory_hostname }}"})]}])
    )
    hosts = ("-i", "web,web-old,", "--forks", "2")
    checked = ansible.finish(ansible.start_file(playbook, (*hosts, "--check")))
    done = ansible.finish(ansible.start_file(playbook, hosts))
    for played in (checked, done):
        assert sorted(bool(result["changed"]) for result in played.results) == [False, True]
    kept = ansible.play({**server("declare", name="web-old"), **away}, server("calm", **WEB), environ=environ)
    assert kept.changed == [False, False]
    assert sorted((row["name"], row["notes"]) for row in ansible.living) == [
        ("web", TAG),
        ("web-old", f"mine {TAG}"),
    ]

    gone = ansible.play(server("old", id=str(id), state="absent"), server("new", name="web", state="absent"))
    assert gone.changed == [True, True]
    assert (ansible.living, len(ansible.server_charges())) == ([], 2)
