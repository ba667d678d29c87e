"""A server is bought once, whatever is killed, cut or repeated: the order's whole story against the emulator."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from pulumi_hosting.client.exceptions import InsufficientFunds, NoCapacity
from pulumi_hosting.exactly_once.ownership_tag import next_tag, ownership_tag, with_tag
from pulumi_hosting.planning import engine
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import AmbiguousMatch, ResourceConflict, ResourceError, TakenOver, WaitTimeout
from pulumi_hosting.session.ownership import Ownership
from tests.resources.conftest import GOOD, Dying, EmulatorClock, House, Killed

WEEK = 7 * 24 * 3600
IDENTITY = "pulumi:t/dev/server/web-1"
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
    assert house.living[0]["notes"] == f"mine {ownership_tag('pulumi:t/dev/server/web-1')}"
    assert state.ownership_tag == ownership_tag("pulumi:t/dev/server/web-1")
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
    with pytest.raises(ResourceError, match=r"servers:manage, which notes and auto_renew need.*nothing was ordered"):
        house.order({**GOOD, "notes": "mine", "auto_renew": False}, key=key)
    assert house.charges == 0
    house.order(key=key)
    assert house.charges == 1
    assert any("tag could not be written" in line for line in house.told)


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
    with pytest.raises(ResourceError, match="no money moved"):
        house.order()
    assert house.living == []
    assert house.charges == 0


def test_money_that_no_server_explains_stops_it(house: House) -> None:
    """The service says it failed, and a paid order has no server: nobody but a person can tell whether it is this one."""
    house.arm({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        house.order({**GOOD, "name": "other"}, identity="other", wait_timeout=0.0)
    house.arm({"status": 502, "code": "upstream_error"}, times=20)
    with pytest.raises(ResourceError, match="not known"):
        house.order()
    assert house.living == []


@dataclass
class WrongClock(EmulatorClock):
    """This machine's time is ``days`` away from the service's."""

    days: float = 0

    def now(self) -> datetime:
        return super().now() + timedelta(days=self.days)


@pytest.mark.parametrize("days", [-1, 1])
def test_a_wrong_clock_hides_no_movement_of_money(house: House, days: float) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        house.order({**GOOD, "name": "other"}, identity="other", wait_timeout=0.0)
    house.arm({"status": 502, "code": "upstream_error"}, times=20)
    context = house.context()
    context.session.clock = WrongClock(house.control, days=days)
    with pytest.raises(ResourceError, match="not known"):
        engine.create(context, SERVER, engine.check(SERVER, GOOD).inputs)
    assert house.living == []


@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize(("days", "taken"), [(6.9, True), (7.1, False)])
def test_a_wrong_clock_makes_no_order_younger_or_older(house: House, days: float, taken: bool, offset: float) -> None:
    first = house.order()
    house.control("POST", "/clock", {"advance": days * 86400})
    context = house.context()
    context.session.clock = WrongClock(house.control, days=offset)
    inputs = engine.check(SERVER, GOOD).inputs
    if taken:
        assert engine.create(context, SERVER, inputs).id == first.id
    else:
        with pytest.raises(ResourceConflict, match=f"adopt_id={first.id}"):
            engine.create(context, SERVER, inputs)
    assert house.charges == 1


def test_a_slow_order_is_waited_for(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    state = house.order({**GOOD, "password": "Abcdefg1"})
    assert state.id == str(house.living[0]["id"])
    assert state.invoice_id is not None
    assert any("provisioning" in line for line in house.told)


def test_a_slow_order_that_is_cut_short_is_found_by_the_next_run(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout, match="run again"):
        house.order(wait_timeout=0.0)
    state = house.order()
    assert [str(server["id"]) for server in house.living] == [state.id]
    assert house.charges == 1


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_an_order_that_comes_to_nothing_is_reported_and_ordered_anew_by_the_next_run(house: House, end: str) -> None:
    house.arm({"panel_timeout": end})
    with pytest.raises(ResourceError, match="returned"):
        house.order()
    assert house.charges == 0
    house.order()
    assert len(house.living) == 1
    assert house.charges == 1


def test_a_foreign_namesake_stops_it_and_the_message_says_how_to_go_on(house: House) -> None:
    other = house.order(identity="somebody else", name_is_identity=True)
    with pytest.raises(ResourceConflict, match=f"adopt_id to {other.id}.*order_attempt to 1") as stopped:
        house.order()
    assert stopped.value.id == other.id
    assert house.charges == 1
    assert house.order({**GOOD, "adopt_id": other.id}).id == other.id
    assert house.charges == 1


def test_a_replayed_order_whose_server_was_renamed_since_is_neither_taken_nor_doubled(house: House) -> None:
    first = house.order()
    house.control("PATCH", f"/servers/{first.id}", {"name": "web-2"})
    with pytest.raises(ResourceConflict, match=f"server {first.id} carries.*'web-2'.*adopt_id={first.id}.*order_attempt=1") as stopped:
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
    with pytest.raises(ResourceConflict):
        house.order()
    assert house.charges == 1


def test_after_the_keys_are_forgotten_an_unmarked_server_is_not_taken_and_not_bought_again(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=True))
    house.control("POST", "/clock", {"advance": WEEK + 60})
    with pytest.raises(ResourceConflict):
        house.order()
    assert house.charges == 1


@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
@pytest.mark.parametrize(("at", "tagged"), [(3, False), (4, True)])
def test_what_a_killed_run_ordered_is_taken_over_within_seven_days_and_then_on_request(
    house: House, at: int, tagged: bool, days: float
) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(at, after=True))
    house.control("POST", "/clock", {"advance": days * 86400})
    if days < 7:
        state = house.order()
        assert house.living[0]["notes"] == next_tag(ownership_tag(IDENTITY) if tagged else None, IDENTITY) == state.ownership_tag
        assert any("takes over server 20001, ordered" in line for line in house.told)
    else:
        with pytest.raises(ResourceConflict, match="adopt_id") as stopped:
            house.order()
        assert stopped.value.id == "20001"
        assert ("adopt_id=20001" if tagged else "adopt_id to 20001") in str(stopped.value)
        state = house.order({**GOOD, "adopt_id": "20001"})
    assert [str(server["id"]) for server in house.living] == [state.id] == ["20001"]
    assert sum(row["operation"] == "create_server" for row in house.control.ledger()) == 1  # after 30 days it is renewed, too


def test_beside_an_old_tagged_server_another_one_is_ordered_on_request_only(house: House) -> None:
    first = house.order()
    house.control("POST", "/clock", {"advance": WEEK + 60})
    with pytest.raises(ResourceConflict, match=r"order_attempt=1 to order another one.*with --refresh"):
        house.order()
    second = house.order({**GOOD, "order_attempt": 1})
    assert second.id != first.id
    assert house.order({**GOOD, "order_attempt": 1}).id == second.id
    assert len(house.living) == 2


def test_strict_takes_over_with_a_scope_or_on_request_only(house: House) -> None:
    first = house.order()
    with pytest.raises(ResourceConflict, match=rf"strict is set and hosting:scope is not.*adopt_id={first.id}"):
        house.order(strict=True)
    assert predicted(house, strict=True, scope="mine").state.id == first.id
    assert house.order(strict=True, scope="mine").id == first.id
    assert house.order({**GOOD, "adopt_id": first.id}, strict=True).id == first.id
    assert house.charges == 1


@pytest.mark.parametrize("more", [{}, {"strict": True}])
def test_strict_holds_for_what_only_a_key_proves(house: House, more: dict[str, Any]) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=True))
    if more:
        with pytest.raises(ResourceConflict, match=r"idempotency key.*adopt_id=20001"):
            house.order(**more)
    else:
        house.order()
    assert house.charges == 1
    assert len(house.living) == 1


def predicted(house: House, inputs: dict[str, Any] | None = None, **context: Any) -> Any:
    return SERVER.takeover(house.context(**context), engine.check(SERVER, inputs or GOOD).inputs)


def test_a_preview_announces_what_is_taken_over_and_its_charge(house: House) -> None:
    house.order()
    house.control("POST", "/clock", {"advance": 2 * 3600 + 60})
    context = house.context()
    taken = SERVER.takeover(context, engine.check(SERVER, GOOD).inputs)
    assert taken is not None
    assert taken.announcement(context.service_now()) == (
        "takes over server 20001, ordered 2 h ago, 5.00 EUR (it carries this resource's ownership tag)"
    )
    assert not [line for line in house.transports[-1].sent if not line.startswith("GET")]


def test_a_preview_says_the_monthly_price_where_the_charge_is_not_to_be_seen(house: House) -> None:
    house.order()
    key = house.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read", "servers:order", "servers:manage"]})["key"]
    context = house.context(key=key)
    taken = SERVER.takeover(context, engine.check(SERVER, GOOD).inputs)
    assert taken is not None
    assert "ordered 0 min ago, 5.00 EUR a month (" in taken.announcement(context.service_now())


def test_a_preview_says_when_an_unproven_namesake_was_ordered_and_what_will_happen(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=True))
    house.control("POST", "/clock", {"advance": 3 * 3600 + 60})
    context = house.context()
    assert SERVER.takeover(context, engine.check(SERVER, GOOD).inputs) is None
    assert SERVER.validate(context, GOOD, frozenset(GOOD)) == {}
    (said,) = [line for line in house.told if "exists" in line]
    assert "(id 20001, ordered 3 h ago): unless an interrupted run of this program ordered it, the order will stop" in said
    house.control("POST", "/clock", {"advance": WEEK})
    later = house.context()
    with pytest.raises(ResourceConflict) as announced:
        SERVER.takeover(later, engine.check(SERVER, GOOD).inputs)
    with pytest.raises(ResourceConflict) as stopped:
        house.order()
    assert str(announced.value) == str(stopped.value)
    assert "Next: set adopt_id to 20001 to take it over" in str(stopped.value)
    assert len(house.control("GET", "/objects")["servers"]) == 1


def test_a_preview_stops_where_the_order_will_stop_beside_a_namesake(house: House) -> None:
    """By another resource's tag, or by any namesake under strict; a renamed resource is advised to take an alias first."""
    old = house.order(identity="pulumi:t/dev/server/web-1")  # its name is that of the resource
    renamed, inputs = "pulumi:t/dev/server/web-9", engine.check(SERVER, GOOD).inputs
    with pytest.raises(ResourceConflict) as announced:
        SERVER.takeover(house.context(identity=renamed), inputs)
    with pytest.raises(ResourceConflict) as stopped:
        house.order(identity=renamed)
    assert str(announced.value) == str(stopped.value)
    assert "Next: if this resource was renamed from 'web-1', add opts=pulumi.ResourceOptions(aliases=" in str(stopped.value)
    assert f"else set adopt_id to {old.id} to take it over" in str(stopped.value)
    with pytest.raises(ResourceConflict, match="if this resource had another name in the program before, add opts="):
        SERVER.takeover(house.context(identity="pulumi:other/dev/server/x"), inputs)
    # What another declaration of the program turns out to have is no obstacle, and another one may be asked for.
    ownership = Ownership()
    ownership.add("pulumi:t/dev/server/web-1", old.id)
    assert SERVER.takeover(house.context(identity=renamed, ownership=ownership), inputs) is None
    assert SERVER.takeover(house.context(identity=renamed), engine.check(SERVER, {**GOOD, "order_attempt": 1}).inputs) is None
    house.control("PATCH", f"/servers/{old.id}", {"notes": ""})
    assert SERVER.takeover(house.context(identity=renamed), inputs) is None
    with pytest.raises(ResourceConflict, match="nothing was ordered"):
        SERVER.takeover(house.context(identity=renamed, strict=True), inputs)
    assert len(house.control.ledger()) == 1


def test_a_preview_announces_an_order_that_is_under_way(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        house.order(wait_timeout=0.0)
    assert SERVER.validate(house.context(), GOOD, frozenset(GOOD)) == {}
    assert "is being created (order 40001, placed 0 min ago, 5.00 EUR): it is waited for" in house.told[-1]


def test_adopting_what_another_resource_has_is_announced(house: House) -> None:
    other = house.order(identity="pulumi:t/prod/server/web-1")
    taken = predicted(house, {**GOOD, "adopt_id": other.id})
    assert "carries the tag of another resource, which can no longer delete it then" in taken.reason
    adopted = house.order({**GOOD, "adopt_id": other.id})
    assert house.living[0]["notes"] == adopted.ownership_tag == ownership_tag(IDENTITY, 1)
    engine.delete(house.context(identity="pulumi:t/prod/server/web-1"), SERVER, other)
    assert [str(server["id"]) for server in house.living] == [other.id]
    assert any(f"server {other.id} (web-1) stays and costs 5.00 EUR a month" in line for line in house.told)
    engine.delete(house.context(), SERVER, adopted)
    assert house.living == []


# --- the fence around a deletion


def test_what_a_later_run_took_over_is_not_deleted_by_the_earlier_state(house: House) -> None:
    first = house.order()
    second = house.order()
    assert (second.id, second.ownership_tag) == (first.id, next_tag(first.ownership_tag, IDENTITY))
    read = engine.read(house.context(), SERVER, first)
    assert read.ownership_tag == first.ownership_tag
    assert [line for line in house.told if f"server {first.id}: a later run took it over, from another backend perhaps" in line]
    for state in (first, read):
        with pytest.raises(TakenOver, match=f"server {first.id}: a later run took it over, .*nothing was deleted") as stopped:
            engine.delete(house.context(), SERVER, state)
        assert (stopped.value.id, stopped.value.tag) == (first.id, second.ownership_tag)
        changed = engine.check(SERVER, {**GOOD, "notes": "mine"}).inputs
        with pytest.raises(TakenOver, match="nothing was changed"):  # the tag of this state would open the fence
            engine.update(house.context(), SERVER, state, changed, frozenset({"notes"}))
    assert [server["notes"] for server in house.living] == [second.ownership_tag]
    engine.delete(house.context(), SERVER, engine.read(house.context(), SERVER, second))
    assert house.living == []
    assert house.charges == 0


@pytest.mark.parametrize("notes", ["mine", "", "mine [iac:abcdefgh]"])
def test_a_server_whose_tag_was_taken_away_is_deleted(house: House, notes: str) -> None:
    state = house.order()
    house.control("PATCH", f"/servers/{state.id}", {"notes": notes})
    engine.delete(house.context(), SERVER, state)
    assert house.living == []


def test_a_takeover_whose_tag_was_not_written_can_be_deleted(house: House) -> None:
    house.order()
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=False))  # before the tag
    state = house.order(identity=IDENTITY, transport=Dying(None))
    left = state.model_copy(update={"ownership_tag": ownership_tag(IDENTITY, 9)})
    engine.delete(house.context(), SERVER, left)
    assert house.living == []


def test_notes_are_shown_without_the_tag_and_an_update_keeps_it(house: House) -> None:
    house.order()
    state = house.order({**GOOD, "notes": "mine"})
    state = engine.update(house.context(), SERVER, state, engine.check(SERVER, {**GOOD, "notes": "yours"}).inputs, frozenset({"notes"}))
    assert state.notes == "yours"
    assert house.living[0]["notes"] == with_tag("yours", ownership_tag(IDENTITY, 1))
    assert engine.read(house.context(), SERVER, state).notes == "yours"


# --- one name, several orders at once


@pytest.mark.parametrize("stops", [1, 2, 3])
def test_orders_are_found_by_their_key_after_stops_that_probed_keys(house: House, stops: int) -> None:
    other = house.order(identity="somebody else", name_is_identity=True)
    for _ in range(stops):
        with pytest.raises(ResourceConflict):
            house.order()
    SERVER.delete(house.context(), other)
    with pytest.raises(Killed):
        house.order(transport=Dying(kill_after=("POST /v1/servers", stops + 1)))
    assert len(house.living) == 1
    state = house.order()
    assert [str(server["id"]) for server in house.living] == [state.id]
    assert house.charges == 1


def test_a_program_edited_after_a_crash_buys_nothing_and_takes_nothing_unproven(house: House) -> None:
    with pytest.raises(Killed):
        house.order(transport=Dying(3, after=True))
    with pytest.raises(ResourceConflict):
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
    with pytest.raises(ResourceError, match="os is 'debian-12'"):
        house.order({**GOOD, "os": "ubuntu-24.04", "adopt_id": other.id})
    with pytest.raises(ResourceError, match="no active server"):
        house.order({**GOOD, "adopt_id": "424242"})


# --- where the name is the identity


def ensure(house: House, inputs: dict[str, Any] | None = None, id: str | None = None, **terms: Any) -> engine.Outcome:
    checked = engine.check(SERVER, inputs or GOOD)
    context = house.context(identity="ansible:/server/web-1", name_is_identity=True)
    return engine.ensure(context, SERVER, checked.inputs, id=id, terms=engine.ApplyOptions(**terms))


def test_the_ladder_of_a_stateless_frontend(house: House) -> None:
    assert ensure(house, dry_run=True).action == "created"
    assert house.living == []
    assert ensure(house).action == "created"
    assert ensure(house).action == "unchanged"
    desired = {**GOOD, "notes": "hello"}
    assert ensure(house, desired, dry_run=True).action == "updated"
    assert ensure(house, desired).action == "updated"
    assert ensure(house, desired).action == "unchanged"
    with pytest.raises(ResourceError, match="cannot be changed in place"):
        ensure(house, {**GOOD, "os": "ubuntu-24.04"})
    checked = engine.check(SERVER, GOOD)
    context = house.context(name_is_identity=True)
    assert engine.ensure_absent(context, SERVER, checked.inputs, terms=engine.ApplyOptions(dry_run=True)).action == "deleted"
    assert engine.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert engine.ensure_absent(context, SERVER, checked.inputs).action == "unchanged"
    assert house.living == []


def test_adopting_is_foreseen_by_a_dry_run(house: House) -> None:
    other = house.order({**GOOD, "name": "old"}, identity="somebody else", name_is_identity=True)
    predicted = ensure(house, {**GOOD, "adopt_id": other.id}, dry_run=True)
    done = ensure(house, {**GOOD, "adopt_id": other.id})
    for outcome in (predicted, done):
        assert outcome.before is not None
        assert (outcome.before["id"], outcome.before["name"]) == (other.id, "old")
        assert outcome.after is not None
        assert (outcome.after["id"], outcome.after["name"]) == (other.id, "web-1")
    with pytest.raises(ResourceError, match="is not the declared one"):
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
    with pytest.raises(WaitTimeout):
        house.order(wait_timeout=0.0)
    desired = {**GOOD, "notes": "late"}
    predicted = ensure(house, desired, dry_run=True)
    assert predicted.action == "updated"
    assert predicted.diff.fields == {"notes"}
    done = ensure(house, desired)
    assert done.action == "updated"
    assert done.diff.fields == {"notes"}
    assert house.living[0]["notes"].startswith("late")
    assert ensure(house, desired).action == "unchanged"


def test_only_waiting_for_a_slow_order_is_no_change(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
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
    with pytest.raises(WaitTimeout):
        house.order(wait_timeout=0.0)
    transport = Overtaking(meanwhile=lambda: house.control("POST", "/clock", {"advance": 31}))
    checked = engine.check(SERVER, GOOD)
    context = house.context(name_is_identity=True, transport=transport)
    assert engine.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert house.living == []


def test_several_servers_of_the_name_are_never_guessed_between(house: House) -> None:
    house.order()
    house.order({**GOOD, "order_attempt": 1}, identity="another")
    with pytest.raises(AmbiguousMatch, match="matches several"):
        ensure(house)


def test_absent_waits_for_an_order_that_is_still_under_way(house: House) -> None:
    house.arm({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        house.order(wait_timeout=0.0)
    checked = engine.check(SERVER, GOOD)
    assert engine.ensure_absent(house.context(name_is_identity=True), SERVER, checked.inputs).action == "deleted"
    assert house.living == []
    assert house.charges == 0 or house.control.ledger()
