"""A server is bought once, whatever is killed, cut or repeated: the order's whole story against the emulator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from pulumi_hosting.api.errors import InsufficientFunds, NoCapacity
from pulumi_hosting.resources import engine
from pulumi_hosting.resources.base import Ambiguous, Foreign, NotReady, NounError
from pulumi_hosting.resources.keys import mark
from pulumi_hosting.resources.server import SERVER
from tests.resources.conftest import GOOD, Dying, House, Killed

WEEK = 7 * 24 * 3600
READINGS: list[dict[str, Any]] = [
    {},
    {"refusals_stored": False},
    {"replay_request_id": "stored"},
    {"key_memory": "key"},
    {"body_comparison": "bytes"},
    {"deleted_servers": "listed"},
]


def names(readings: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in readings.items()) or "defaults"


def test_an_order_is_marked(house: House) -> None:
    state = house.order({**GOOD, "notes": "mine", "auto_renew": True})
    assert state.root_password
    assert state.notes == "mine"
    assert state.auto_renew is True
    assert house.living[0]["notes"] == f"mine {mark('pulumi:t/dev/server/web-1')}"
    sent = house.transports[-1].sent
    assert sent.count("POST /v1/servers") == 1


def exchanges_of_an_order() -> list[tuple[int, bool]]:
    """Every exchange of an order (me, orders, servers, order, mark), cut before and after it."""
    return [(number, after) for number in range(5) for after in (False, True)]


@pytest.mark.parametrize(("at", "after"), exchanges_of_an_order())
@pytest.mark.parametrize("readings", READINGS, ids=names)
def test_killed_anywhere_and_run_again_it_is_one_server_and_one_charge(
    house: House, at: int, after: bool, readings: dict[str, Any]
) -> None:
    house.read_as(**readings)
    with pytest.raises(Killed):
        house.order(transport=Dying(at, after))
    state = house.order()
    assert [str(server["id"]) for server in house.living] == [state.id]
    assert house.charges == 1


def test_the_exchanges_that_are_cut_are_all_of_an_order(house: House) -> None:
    state = house.order()
    assert state.root_password  # no replay shows one: the answer is fresh, and need not be read to be believed
    assert len(house.transports[-1].sent) == 5


@pytest.mark.parametrize(
    "action",
    [{"drop": "after"}, {"drop": "before"}, {"truncate": 20}, {"status": 503, "code": "temporarily_unavailable", "retry_after": 1}],
)
def test_a_lost_answer_is_asked_for_again_with_the_same_key(house: House, action: dict[str, Any]) -> None:
    house.arm(action)
    state = house.order({**GOOD, "password": "Abcdefg1"})
    assert [str(server["id"]) for server in house.living] == [state.id]
    assert house.charges == 1
    assert state.root_password is not None
    assert state.root_password.reveal() == "Abcdefg1"


def test_a_replay_of_a_dead_server_is_not_taken_for_a_living_one(house: House) -> None:
    first = house.order()
    SERVER.delete(house.context(), first)
    second = house.order()
    assert second.id != first.id
    assert [str(server["id"]) for server in house.living] == [second.id]


def test_the_server_it_owns_is_not_taken_for_a_lost_one(house: House) -> None:
    first = house.order()
    second = house.order(owned=frozenset({first.id}))
    assert second.id != first.id
    assert len(house.living) == 2


def test_a_stored_refusal_does_not_stick(house: House) -> None:
    house.control("PATCH", "/account", {"balance": "0.50"})
    with pytest.raises(InsufficientFunds):
        house.order()
    with pytest.raises(InsufficientFunds):
        house.order()
    house.control("PATCH", "/account", {"balance": "500.00"})
    house.order()
    assert house.charges == 1


def test_a_key_that_could_not_finish_orders_nothing(house: House) -> None:
    key = house.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read", "servers:order"]})["key"]
    with pytest.raises(NounError, match=r"servers:manage, which notes and auto_renew need.*nothing was ordered"):
        house.order({**GOOD, "notes": "mine", "auto_renew": False}, key=key)
    assert house.charges == 0
    house.order(key=key)
    assert house.charges == 1
    assert any("mark could not be written" in line for line in house.told)


def test_a_stored_lack_of_capacity_does_not_stick(house: House) -> None:
    house.control("PATCH", "/tariffs/1", {"in_stock": False})
    with pytest.raises(NoCapacity):
        house.order()
    house.control("PATCH", "/tariffs/1", {"in_stock": True})
    house.order()
    assert house.charges == 1


def test_a_failed_and_refunded_order_is_placed_again_once(house: House) -> None:
    house.arm({"refunded": 502, "code": "upstream_error"})
    house.order()
    assert len(house.living) == 1
    assert house.charges == 1


def test_a_service_that_goes_on_failing_is_reported_not_fed(house: House) -> None:
    house.arm({"refunded": 502, "code": "upstream_error"}, times=20)
    with pytest.raises(NounError, match="no money moved"):
        house.order()
    assert house.living == []
    assert house.charges == 0


def test_money_that_no_server_explains_stops_it(house: House) -> None:
    """The service says it failed, and a paid order has no server: nobody but a person can tell whether it is this one."""
    house.arm({"panel_timeout": "active"})
    with pytest.raises(NotReady):
        house.order({**GOOD, "name": "other"}, identity="other", wait_timeout=0.0)
    house.arm({"status": 502, "code": "upstream_error"}, times=20)
    with pytest.raises(NounError, match="not known"):
        house.order()
    assert house.living == []


def test_a_slow_order_is_waited_for(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    state = house.order({**GOOD, "password": "Abcdefg1"})
    assert state.id == str(house.living[0]["id"])
    assert state.invoice_id is not None
    assert any("provisioning" in line for line in house.told)


def test_a_slow_order_that_is_cut_short_is_found_by_the_next_run(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(NotReady, match="run again"):
        house.order(wait_timeout=0.0)
    state = house.order()
    assert [str(server["id"]) for server in house.living] == [state.id]
    assert house.charges == 1


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_an_order_that_comes_to_nothing_is_reported_and_ordered_anew_by_the_next_run(house: House, end: str) -> None:
    house.arm({"panel_timeout": end})
    with pytest.raises(NounError, match="returned"):
        house.order()
    assert house.charges == 0
    house.order()
    assert len(house.living) == 1
    assert house.charges == 1


def test_a_foreign_namesake_stops_it_and_the_message_says_how_to_go_on(house: House) -> None:
    other = house.order(identity="somebody else", name_is_identity=True)
    with pytest.raises(Foreign, match=f"adopt_id to {other.id}.*order_attempt to 1") as stopped:
        house.order()
    assert stopped.value.id == other.id
    assert house.charges == 1
    assert house.order({**GOOD, "adopt_id": other.id}).id == other.id
    assert house.charges == 1


def test_a_replayed_order_whose_server_was_renamed_since_is_neither_taken_nor_doubled(house: House) -> None:
    first = house.order()
    house.control("PATCH", f"/servers/{first.id}", {"name": "web-2"})
    with pytest.raises(Foreign, match=f"server {first.id} already.*'web-2'.*adopt_id to {first.id}.*order_attempt to 1") as stopped:
        house.order()
    assert stopped.value.id == first.id
    assert house.charges == 1
    assert house.order({**GOOD, "order_attempt": 1}).id != first.id
    assert house.charges == 2


def test_ordering_one_more_of_a_name_has_to_be_said(house: House) -> None:
    house.order(identity="somebody else", name_is_identity=True)
    house.order({**GOOD, "order_attempt": 1})
    assert len(house.living) == 2


def test_a_namesake_that_another_declaration_marked_stops_it_too(house: House) -> None:
    house.order(identity="pulumi:t/prod/server/web-1")
    with pytest.raises(Foreign):
        house.order()
    assert house.charges == 1


def test_after_the_keys_are_forgotten_an_unmarked_server_is_not_taken_and_not_bought_again(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=True))
    house.control("POST", "/clock", {"advance": WEEK + 60})
    with pytest.raises(Foreign):
        house.order()
    assert house.charges == 1


def test_after_the_keys_are_forgotten_a_marked_server_is_still_found(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(4, after=True))
    house.control("POST", "/clock", {"advance": WEEK + 60})
    house.order()
    assert len(house.living) == 1


def test_a_program_edited_after_a_crash_buys_nothing_and_takes_nothing_unproven(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=True))
    with pytest.raises(Foreign):
        house.order({**GOOD, "os": "ubuntu-24.04"})
    assert house.charges == 1


def test_a_program_edited_after_the_mark_was_written_gets_its_server_back_to_be_replaced(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(4, after=True))
    state = house.order({**GOOD, "os": "ubuntu-24.04"})
    assert state.os == "debian-12"
    assert engine.diff(SERVER, state.values(), {**GOOD, "os": "ubuntu-24.04"}).replaces == ("os",)
    assert house.charges == 1


def test_a_rotated_key_finds_what_the_old_one_ordered(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=True))
    key = house.control("POST", "/keys", {"mode": "live", "scopes": "full"})["key"]
    house.order(key=key)
    assert len(house.living) == 1
    assert house.charges == 1


def test_adopting_checks_what_it_takes(house: House) -> None:
    other = house.order(identity="somebody else", name_is_identity=True)
    with pytest.raises(NounError, match="os is 'debian-12'"):
        house.order({**GOOD, "os": "ubuntu-24.04", "adopt_id": other.id})
    with pytest.raises(NounError, match="no living server"):
        house.order({**GOOD, "adopt_id": "424242"})


# --- where the name is the identity


def ensure(house: House, inputs: dict[str, Any] | None = None, id: str | None = None, **terms: Any) -> engine.Outcome:
    checked = engine.check(SERVER, inputs or GOOD)
    context = house.context(identity="ansible:/server/web-1", name_is_identity=True)
    return engine.ensure(context, SERVER, checked.inputs, id=id, terms=engine.Terms(**terms))


def test_the_ladder_of_a_stateless_frontend(house: House) -> None:
    assert ensure(house, dry_run=True).action == "created"
    assert house.living == []
    assert ensure(house).action == "created"
    assert ensure(house).action == "unchanged"
    wish = {**GOOD, "notes": "hello"}
    assert ensure(house, wish, dry_run=True).action == "updated"
    assert ensure(house, wish).action == "updated"
    assert ensure(house, wish).action == "unchanged"
    with pytest.raises(NounError, match="cannot be changed in place"):
        ensure(house, {**GOOD, "os": "ubuntu-24.04"})
    checked = engine.check(SERVER, GOOD)
    context = house.context(name_is_identity=True)
    assert engine.ensure_absent(context, SERVER, checked.inputs, terms=engine.Terms(dry_run=True)).action == "deleted"
    assert engine.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert engine.ensure_absent(context, SERVER, checked.inputs).action == "unchanged"
    assert house.living == []


def test_adopting_is_foreseen_by_a_dry_run(house: House) -> None:
    other = house.order({**GOOD, "name": "old"}, identity="somebody else", name_is_identity=True)
    foreseen = ensure(house, {**GOOD, "adopt_id": other.id}, dry_run=True)
    done = ensure(house, {**GOOD, "adopt_id": other.id})
    for outcome in (foreseen, done):
        assert outcome.before is not None
        assert (outcome.before["id"], outcome.before["name"]) == (other.id, "old")
        assert outcome.after is not None
        assert (outcome.after["id"], outcome.after["name"]) == (other.id, "web-1")
    with pytest.raises(NounError, match="is not the declared one"):
        ensure(house, {**GOOD, "name": "third", "tariff_id": 2, "adopt_id": other.id}, dry_run=True)
    assert house.charges == 1


@pytest.mark.parametrize(("at", "after"), exchanges_of_an_order()[:10])
def test_a_stateless_frontend_killed_anywhere_buys_once(house: House, at: int, after: bool) -> None:
    checked = engine.check(SERVER, GOOD)
    with pytest.raises(Killed):
        engine.ensure(house.context(name_is_identity=True, transport=Dying(at, after)), SERVER, checked.inputs)
    ensure(house)
    assert len(house.living) == 1
    assert house.charges == 1


def test_a_name_that_a_rename_set_free_gets_a_server_of_its_own(house: House) -> None:
    """The key of the name is remembered for the server that was renamed; that one is somebody else by now."""
    first = ensure(house)
    assert first.after is not None
    renamed = ensure(house, {**GOOD, "name": "web-2"}, id=first.after["id"])
    assert renamed.action == "updated"
    second = ensure(house)
    assert second.action == "created"
    assert sorted((server["name"], str(server["id"])) for server in house.living) == [
        ("web-1", second.after["id"] if second.after else ""),
        ("web-2", first.after["id"]),
    ]
    assert house.charges == 2


def test_what_is_set_once_a_slow_order_is_there_is_reported_as_a_change(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(NotReady):
        house.order(wait_timeout=0.0)
    wish = {**GOOD, "notes": "late"}
    foreseen = ensure(house, wish, dry_run=True)
    assert foreseen.action == "updated"
    assert foreseen.diff.fields == {"notes"}
    done = ensure(house, wish)
    assert done.action == "updated"
    assert done.diff.fields == {"notes"}
    assert house.living[0]["notes"].startswith("late")
    assert ensure(house, wish).action == "unchanged"


def test_only_waiting_for_a_slow_order_is_no_change(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(NotReady):
        house.order(wait_timeout=0.0)
    assert ensure(house, dry_run=True).action == "unchanged"
    assert ensure(house).action == "unchanged"
    assert len(house.living) == 1


@dataclass
class Overtaking(Dying):
    """``meanwhile`` happens right after the servers were looked at for the first time."""

    meanwhile: Callable[[], Any] = lambda: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.sent == ["GET /v1/servers"]:
            response.read()
            self.meanwhile()
        return response


def test_an_order_carried_out_between_two_looks_is_found(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(NotReady):
        house.order(wait_timeout=0.0)
    transport = Overtaking(meanwhile=lambda: house.control("POST", "/clock", {"advance": 31}))
    checked = engine.check(SERVER, GOOD)
    context = house.context(name_is_identity=True, transport=transport)
    assert engine.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert house.living == []


def test_several_servers_of_the_name_are_never_guessed_between(house: House) -> None:
    house.order()
    house.order({**GOOD, "order_attempt": 1}, identity="another")
    with pytest.raises(Ambiguous, match="matches several"):
        ensure(house)


def test_absent_waits_for_an_order_that_is_still_under_way(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(NotReady):
        house.order(wait_timeout=0.0)
    checked = engine.check(SERVER, GOOD)
    assert engine.ensure_absent(house.context(name_is_identity=True), SERVER, checked.inputs).action == "deleted"
    assert house.living == []
    assert house.charges == 0 or house.control.ledger()
