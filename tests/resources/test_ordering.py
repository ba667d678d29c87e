"""A server is bought once, whatever is killed, cut or repeated: the order's whole story against the
emulator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from pulumi_hosting.client.exceptions import InsufficientFunds, NoCapacity
from pulumi_hosting.exactly_once.ownership_tag import next_tag, ownership_tag, with_tag
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.apply import ApplyOptions, Outcome
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import diff
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import (
    AmbiguousMatch,
    OrderFailed,
    ResourceConflict,
    ResourceError,
    TakenOver,
    WaitTimeout,
)
from pulumi_hosting.session.ownership import Ownership
from tests.resources.conftest import GOOD, EmulatorClock, KillingTransport, ProcessKilled, ResourceHarness

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


def test_an_order_is_marked(harness: ResourceHarness) -> None:
    state = harness.order({**GOOD, "notes": "mine", "auto_renew": True})
    assert state.root_password
    assert state.notes == "mine"
    assert state.auto_renew is True
    assert harness.living[0]["notes"] == f"mine {ownership_tag('pulumi:t/dev/server/web-1')}"
    assert state.ownership_tag == ownership_tag("pulumi:t/dev/server/web-1")
    sent = harness.transports[-1].sent
    assert sent.count("POST /v1/servers") == 1


def exchanges_of_an_order() -> list[tuple[int, bool]]:
    """Every exchange of an order (me, orders, servers, order, mark), cut before and after it."""
    return [(number, after) for number in range(5) for after in (False, True)]


@pytest.mark.parametrize(("at", "after"), exchanges_of_an_order())
@pytest.mark.parametrize("readings", READINGS, ids=names)
def test_killed_anywhere_and_run_again_it_is_one_server_and_one_charge(
    harness: ResourceHarness, at: int, after: bool, readings: dict[str, Any]
) -> None:
    harness.account.variant(**readings)
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(at, after))
    state = harness.order()
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert harness.charges == 1


def test_the_exchanges_that_are_cut_are_all_of_an_order(harness: ResourceHarness) -> None:
    state = harness.order()
    # no replay shows one: the answer is fresh, and need not be read to be believed
    assert state.root_password
    assert len(harness.transports[-1].sent) == 5


@pytest.mark.parametrize(
    "action",
    [
        {"drop": "after"},
        {"drop": "before"},
        {"truncate": 20},
        {"status": 503, "code": "temporarily_unavailable", "retry_after": 1},
    ],
)
def test_a_lost_answer_is_asked_for_again_with_the_same_key(
    harness: ResourceHarness, action: dict[str, Any]
) -> None:
    harness.fault(action)
    state = harness.order({**GOOD, "password": "Abcdefg1"})
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert harness.charges == 1
    assert state.root_password is not None
    assert state.root_password.reveal() == "Abcdefg1"


def test_a_replay_of_a_dead_server_is_not_taken_for_a_living_one(harness: ResourceHarness) -> None:
    first = harness.order()
    SERVER.delete(harness.context(), first)
    second = harness.order()
    assert second.id != first.id
    assert [str(server["id"]) for server in harness.living] == [second.id]


def test_the_server_it_owns_is_not_taken_for_a_lost_one(harness: ResourceHarness) -> None:
    first = harness.order()
    second = harness.order(owned=frozenset({first.id}))
    assert second.id != first.id
    assert len(harness.living) == 2


def test_a_stored_refusal_does_not_stick(harness: ResourceHarness) -> None:
    harness.control("PATCH", "/account", {"balance": "0.50"})
    with pytest.raises(InsufficientFunds):
        harness.order()
    with pytest.raises(InsufficientFunds):
        harness.order()
    harness.control("PATCH", "/account", {"balance": "500.00"})
    harness.order()
    assert harness.charges == 1


def test_a_key_that_could_not_finish_orders_nothing(harness: ResourceHarness) -> None:
    key = harness.control("POST", "/keys", {"mode": "live", "scopes": ["servers:read", "servers:order"]})[
        "key"
    ]
    with pytest.raises(
        ResourceError,
        match=r"servers:manage, which notes and auto_renew need.*nothing was "
        r"ordered",
    ):
        harness.order({**GOOD, "notes": "mine", "auto_renew": False}, key=key)
    assert harness.charges == 0
    harness.order(key=key)
    assert harness.charges == 1
    assert any("tag could not be written" in line for line in harness.messages)


def test_a_stored_lack_of_capacity_does_not_stick(harness: ResourceHarness) -> None:
    harness.control("PATCH", "/tariffs/1", {"in_stock": False})
    with pytest.raises(NoCapacity):
        harness.order()
    harness.control("PATCH", "/tariffs/1", {"in_stock": True})
    harness.order()
    assert harness.charges == 1


def test_a_failed_and_refunded_order_is_placed_again_once(harness: ResourceHarness) -> None:
    harness.fault({"refunded": 502, "code": "upstream_error"})
    harness.order()
    assert len(harness.living) == 1
    assert harness.charges == 1


def test_a_service_that_goes_on_failing_is_reported_not_fed(harness: ResourceHarness) -> None:
    harness.fault({"refunded": 502, "code": "upstream_error"}, times=20)
    with pytest.raises(ResourceError, match="no money moved"):
        harness.order()
    assert harness.living == []
    assert harness.charges == 0


def test_money_that_no_server_explains_stops_it(harness: ResourceHarness) -> None:
    """The service says it failed, and a paid order has no server: only a person can know whether it is
    this one.
    """
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order({**GOOD, "name": "other"}, identity="other", wait_timeout=0.0)
    harness.fault({"status": 502, "code": "upstream_error"}, times=20)
    with pytest.raises(ResourceError, match="not known"):
        harness.order()
    assert harness.living == []


@dataclass
class WrongClock(EmulatorClock):
    """This machine's time is ``days`` away from the service's."""

    days: float = 0

    def now(self) -> datetime:
        return super().now() + timedelta(days=self.days)


@pytest.mark.parametrize("days", [-1, 1])
def test_a_wrong_clock_hides_no_movement_of_money(harness: ResourceHarness, days: float) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order({**GOOD, "name": "other"}, identity="other", wait_timeout=0.0)
    harness.fault({"status": 502, "code": "upstream_error"}, times=20)
    context = harness.context()
    context.session.clock = WrongClock(harness.control, days=days)
    with pytest.raises(ResourceError, match="not known"):
        apply.create(context, SERVER, check(SERVER, GOOD).inputs)
    assert harness.living == []


@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize(("days", "taken"), [(6.9, True), (7.1, False)])
def test_a_wrong_clock_makes_no_order_younger_or_older(
    harness: ResourceHarness, days: float, taken: bool, offset: float
) -> None:
    first = harness.order()
    harness.control("POST", "/clock", {"advance": days * 86400})
    context = harness.context()
    context.session.clock = WrongClock(harness.control, days=offset)
    inputs = check(SERVER, GOOD).inputs
    if taken:
        assert apply.create(context, SERVER, inputs).id == first.id
    else:
        with pytest.raises(ResourceConflict, match=f"adopt_id={first.id}"):
            apply.create(context, SERVER, inputs)
    assert harness.charges == 1


def test_a_slow_order_is_waited_for(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    state = harness.order({**GOOD, "password": "Abcdefg1"})
    assert state.id == str(harness.living[0]["id"])
    assert state.invoice_id is not None
    assert any("provisioning" in line for line in harness.messages)


def test_a_slow_order_that_is_cut_short_is_found_by_the_next_run(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout, match="run again"):
        harness.order(wait_timeout=0.0)
    state = harness.order()
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert harness.charges == 1


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_an_order_that_comes_to_nothing_is_reported_and_ordered_anew_by_the_next_run(
    harness: ResourceHarness, end: str
) -> None:
    harness.fault({"panel_timeout": end})
    with pytest.raises(ResourceError, match="returned"):
        harness.order()
    assert harness.charges == 0
    harness.order()
    assert len(harness.living) == 1
    assert harness.charges == 1


@dataclass
class AfterThePurchase(KillingTransport):
    """``meanwhile`` happens after each order was processed, before its answer is read."""

    meanwhile: Callable[[], Any] = lambda: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.sent[-1] == "POST /v1/servers":
            response.read()
            self.meanwhile()
        return response


@pytest.mark.parametrize("name_is_identity", [False, True])
@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_an_order_that_comes_to_nothing_before_its_answer_is_read_is_not_placed_again(
    harness: ResourceHarness, end: str, name_is_identity: bool
) -> None:
    harness.fault({"panel_timeout": end})
    transport = AfterThePurchase(meanwhile=lambda: harness.control("POST", "/clock", {"advance": 31}))
    with pytest.raises(OrderFailed, match=f"ended as {end}.*returned.*run again"):
        harness.order(transport=transport, name_is_identity=name_is_identity)
    assert transport.sent.count("POST /v1/servers") == 1
    assert harness.living == []
    assert harness.charges == 0
    state = harness.order(name_is_identity=name_is_identity)
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert harness.charges == 1
    assert any("an earlier order" in line and end in line for line in harness.messages)


def test_a_foreign_namesake_stops_it_and_the_message_says_how_to_go_on(harness: ResourceHarness) -> None:
    other = harness.order(identity="another", name_is_identity=True)
    with pytest.raises(ResourceConflict, match=f"adopt_id to {other.id}.*order_attempt to 1") as stopped:
        harness.order()
    assert stopped.value.id == other.id
    assert harness.charges == 1
    assert harness.order({**GOOD, "adopt_id": other.id}).id == other.id
    assert harness.charges == 1


def test_a_replayed_order_whose_server_was_renamed_since_is_neither_taken_nor_doubled(
    harness: ResourceHarness,
) -> None:
    first = harness.order()
    harness.control("PATCH", f"/servers/{first.id}", {"name": "web-2"})
    with pytest.raises(
        ResourceConflict, match=f"server {first.id} carries.*'web-2'.*adopt_id={first.id}.*order_attempt=1"
    ) as stopped:
        harness.order()
    assert stopped.value.id == first.id
    assert harness.charges == 1
    assert harness.order({**GOOD, "order_attempt": 1}).id != first.id
    assert harness.charges == 2


def test_ordering_one_more_of_a_name_has_to_be_said(harness: ResourceHarness) -> None:
    harness.order(identity="another", name_is_identity=True)
    harness.order({**GOOD, "order_attempt": 1})
    assert len(harness.living) == 2


def test_a_namesake_that_another_declaration_marked_stops_it_too(harness: ResourceHarness) -> None:
    harness.order(identity="pulumi:t/prod/server/web-1")
    with pytest.raises(ResourceConflict):
        harness.order()
    assert harness.charges == 1


def test_after_the_keys_are_forgotten_an_unmarked_server_is_not_taken_and_not_bought_again(
    harness: ResourceHarness,
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    harness.control("POST", "/clock", {"advance": WEEK + 60})
    with pytest.raises(ResourceConflict):
        harness.order()
    assert harness.charges == 1


@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
@pytest.mark.parametrize(("at", "tagged"), [(3, False), (4, True)])
def test_what_a_killed_run_ordered_is_taken_over_within_seven_days_and_then_on_request(
    harness: ResourceHarness, at: int, tagged: bool, days: float
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(at, after=True))
    harness.control("POST", "/clock", {"advance": days * 86400})
    if days < 7:
        state = harness.order()
        assert (
            harness.living[0]["notes"]
            == next_tag(ownership_tag(IDENTITY) if tagged else None, IDENTITY)
            == state.ownership_tag
        )
        assert any("takes over server 20001, ordered" in line for line in harness.messages)
    else:
        with pytest.raises(ResourceConflict, match="adopt_id") as stopped:
            harness.order()
        assert stopped.value.id == "20001"
        assert ("adopt_id=20001" if tagged else "adopt_id to 20001") in str(stopped.value)
        state = harness.order({**GOOD, "adopt_id": "20001"})
    assert [str(server["id"]) for server in harness.living] == [state.id] == ["20001"]
    # after 30 days it is renewed, too
    assert sum(row["operation"] == "create_server" for row in harness.account.ledger()) == 1


def test_beside_an_old_tagged_server_another_one_is_ordered_on_request_only(harness: ResourceHarness) -> None:
    first = harness.order()
    harness.control("POST", "/clock", {"advance": WEEK + 60})
    with pytest.raises(ResourceConflict, match=r"order_attempt=1 to order another one.*with --refresh"):
        harness.order()
    second = harness.order({**GOOD, "order_attempt": 1})
    assert second.id != first.id
    assert harness.order({**GOOD, "order_attempt": 1}).id == second.id
    assert len(harness.living) == 2


def test_strict_takes_over_with_a_scope_or_on_request_only(harness: ResourceHarness) -> None:
    first = harness.order()
    with pytest.raises(
        ResourceConflict,
        match=rf"strict is set and hosting:scope is "
        rf"not.*adopt_id={first.id}",
    ):
        harness.order(strict=True)
    assert predicted(harness, strict=True, scope="mine").state.id == first.id
    assert harness.order(strict=True, scope="mine").id == first.id
    assert harness.order({**GOOD, "adopt_id": first.id}, strict=True).id == first.id
    assert harness.charges == 1


@pytest.mark.parametrize("more", [{}, {"strict": True}])
def test_strict_holds_for_what_only_a_key_proves(harness: ResourceHarness, more: dict[str, Any]) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    if more:
        with pytest.raises(ResourceConflict, match=r"idempotency key.*adopt_id=20001"):
            harness.order(**more)
    else:
        harness.order()
    assert harness.charges == 1
    assert len(harness.living) == 1


def predicted(harness: ResourceHarness, inputs: dict[str, Any] | None = None, **context: Any) -> Any:
    return SERVER.takeover(harness.context(**context), check(SERVER, inputs or GOOD).inputs)


def test_a_preview_announces_what_is_taken_over_and_its_charge(harness: ResourceHarness) -> None:
    harness.order()
    harness.control("POST", "/clock", {"advance": 2 * 3600 + 60})
    context = harness.context()
    taken = SERVER.takeover(context, check(SERVER, GOOD).inputs)
    assert taken is not None
    assert taken.announcement(context.service_now()) == (
        "takes over server 20001, ordered 2 h ago, 5.00 EUR (it carries this resource's ownership tag)"
    )
    assert not [line for line in harness.transports[-1].sent if not line.startswith("GET")]


def test_a_preview_says_the_monthly_price_where_the_charge_is_not_to_be_seen(
    harness: ResourceHarness,
) -> None:
    harness.order()
    key = harness.control(
        "POST", "/keys", {"mode": "live", "scopes": ["servers:read", "servers:order", "servers:manage"]}
    )["key"]
    context = harness.context(key=key)
    taken = SERVER.takeover(context, check(SERVER, GOOD).inputs)
    assert taken is not None
    assert "ordered 0 min ago, 5.00 EUR a month (" in taken.announcement(context.service_now())


def test_a_preview_says_when_an_unproven_namesake_was_ordered_and_what_will_happen(
    harness: ResourceHarness,
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    harness.control("POST", "/clock", {"advance": 3 * 3600 + 60})
    context = harness.context()
    assert SERVER.takeover(context, check(SERVER, GOOD).inputs) is None
    assert SERVER.validate(context, GOOD, frozenset(GOOD)) == {}
    (said,) = [line for line in harness.messages if "exists" in line]
    assert (
        "(id 20001, ordered 3 h ago): unless an interrupted run of this program ordered it, the order "
        "will stop"
    ) in said
    harness.control("POST", "/clock", {"advance": WEEK})
    later = harness.context()
    with pytest.raises(ResourceConflict) as announced:
        SERVER.takeover(later, check(SERVER, GOOD).inputs)
    with pytest.raises(ResourceConflict) as stopped:
        harness.order()
    assert str(announced.value) == str(stopped.value)
    assert "Next: set adopt_id to 20001 to take it over" in str(stopped.value)
    assert len(harness.control("GET", "/objects")["servers"]) == 1


def test_a_preview_stops_where_the_order_will_stop_beside_a_namesake(harness: ResourceHarness) -> None:
    """By another resource's tag, or by any namesake under strict; a renamed resource is advised to take
    an alias first.
    """
    old = harness.order(identity="pulumi:t/dev/server/web-1")  # its name is that of the resource
    renamed, inputs = "pulumi:t/dev/server/web-9", check(SERVER, GOOD).inputs
    with pytest.raises(ResourceConflict) as announced:
        SERVER.takeover(harness.context(identity=renamed), inputs)
    with pytest.raises(ResourceConflict) as stopped:
        harness.order(identity=renamed)
    assert str(announced.value) == str(stopped.value)
    assert (
        "Next: if this resource was renamed from 'web-1', add opts=pulumi.ResourceOptions(aliases="
    ) in str(stopped.value)
    assert f"else set adopt_id to {old.id} to take it over" in str(stopped.value)
    with pytest.raises(
        ResourceConflict, match="if this resource had another name in the program before, add opts="
    ):
        SERVER.takeover(harness.context(identity="pulumi:other/dev/server/x"), inputs)
    # What another declaration of the program turns out to have is no obstacle, and another one may be asked
    # for.
    ownership = Ownership()
    ownership.add("pulumi:t/dev/server/web-1", old.id)
    assert SERVER.takeover(harness.context(identity=renamed, ownership=ownership), inputs) is None
    assert (
        SERVER.takeover(harness.context(identity=renamed), check(SERVER, {**GOOD, "order_attempt": 1}).inputs)
        is None
    )
    harness.control("PATCH", f"/servers/{old.id}", {"notes": ""})
    assert SERVER.takeover(harness.context(identity=renamed), inputs) is None
    with pytest.raises(ResourceConflict, match="nothing was ordered"):
        SERVER.takeover(harness.context(identity=renamed, strict=True), inputs)
    assert len(harness.account.ledger()) == 1


def test_a_preview_announces_an_order_that_is_under_way(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    assert SERVER.validate(harness.context(), GOOD, frozenset(GOOD)) == {}
    assert (
        "is being created (order 40001, placed 0 min ago, 5.00 EUR): it is waited for"
    ) in harness.messages[-1]


def test_adopting_what_another_resource_has_is_announced(harness: ResourceHarness) -> None:
    other = harness.order(identity="pulumi:t/prod/server/web-1")
    taken = predicted(harness, {**GOOD, "adopt_id": other.id})
    assert "carries the tag of another resource, which can no longer delete it then" in taken.reason
    adopted = harness.order({**GOOD, "adopt_id": other.id})
    assert harness.living[0]["notes"] == adopted.ownership_tag == ownership_tag(IDENTITY, 1)
    apply.delete(harness.context(identity="pulumi:t/prod/server/web-1"), SERVER, other)
    assert [str(server["id"]) for server in harness.living] == [other.id]
    assert any(
        (f"server {other.id} (web-1) stays and costs 5.00 EUR a month") in line for line in harness.messages
    )
    apply.delete(harness.context(), SERVER, adopted)
    assert harness.living == []


# --- the fence around a deletion


def test_what_a_later_run_took_over_is_not_deleted_by_the_earlier_state(harness: ResourceHarness) -> None:
    first = harness.order()
    second = harness.order()
    assert (second.id, second.ownership_tag) == (first.id, next_tag(first.ownership_tag, IDENTITY))
    read = apply.read(harness.context(), SERVER, first)
    assert read.ownership_tag == first.ownership_tag
    assert [
        line
        for line in harness.messages
        if (f"server {first.id}: a later run took it over, from another backend perhaps") in line
    ]
    for state in (first, read):
        with pytest.raises(
            TakenOver, match=f"server {first.id}: a later run took it over, .*nothing was deleted"
        ) as stopped:
            apply.delete(harness.context(), SERVER, state)
        assert (stopped.value.id, stopped.value.tag) == (first.id, second.ownership_tag)
        changed = check(SERVER, {**GOOD, "notes": "mine"}).inputs
        # the tag of this state would open the fence
        with pytest.raises(TakenOver, match="nothing was changed"):
            apply.update(harness.context(), SERVER, state, changed, frozenset({"notes"}))
    assert [server["notes"] for server in harness.living] == [second.ownership_tag]
    apply.delete(harness.context(), SERVER, apply.read(harness.context(), SERVER, second))
    assert harness.living == []
    assert harness.charges == 0


@pytest.mark.parametrize("notes", ["mine", "", "mine [iac:abcdefgh]"])
def test_a_server_whose_tag_was_taken_away_is_deleted(harness: ResourceHarness, notes: str) -> None:
    state = harness.order()
    harness.control("PATCH", f"/servers/{state.id}", {"notes": notes})
    apply.delete(harness.context(), SERVER, state)
    assert harness.living == []


def test_a_takeover_whose_tag_was_not_written_can_be_deleted(harness: ResourceHarness) -> None:
    harness.order()
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=False))  # before the tag
    state = harness.order(identity=IDENTITY, transport=KillingTransport(None))
    left = state.model_copy(update={"ownership_tag": ownership_tag(IDENTITY, 9)})
    apply.delete(harness.context(), SERVER, left)
    assert harness.living == []


def test_notes_are_shown_without_the_tag_and_an_update_keeps_it(harness: ResourceHarness) -> None:
    harness.order()
    state = harness.order({**GOOD, "notes": "mine"})
    state = apply.update(
        harness.context(),
        SERVER,
        state,
        check(SERVER, {**GOOD, "notes": "yours"}).inputs,
        frozenset({"notes"}),
    )
    assert state.notes == "yours"
    assert harness.living[0]["notes"] == with_tag("yours", ownership_tag(IDENTITY, 1))
    assert apply.read(harness.context(), SERVER, state).notes == "yours"


# --- one name, several orders at once


@pytest.mark.parametrize("stops", [1, 2, 3])
def test_orders_are_found_by_their_key_after_stops_that_probed_keys(
    harness: ResourceHarness, stops: int
) -> None:
    other = harness.order(identity="another", name_is_identity=True)
    for _ in range(stops):
        with pytest.raises(ResourceConflict):
            harness.order()
    SERVER.delete(harness.context(), other)
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(kill_after=("POST /v1/servers", stops + 1)))
    assert len(harness.living) == 1
    state = harness.order()
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert harness.charges == 1


def test_a_program_edited_after_a_crash_buys_nothing_and_takes_nothing_unproven(
    harness: ResourceHarness,
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    with pytest.raises(ResourceConflict):
        harness.order({**GOOD, "os": "ubuntu-24.04"})
    assert harness.charges == 1


def test_a_program_edited_after_the_mark_was_written_gets_its_server_back_to_be_replaced(
    harness: ResourceHarness,
) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(4, after=True))
    state = harness.order({**GOOD, "os": "ubuntu-24.04"})
    assert state.os == "debian-12"
    assert diff(SERVER, state.values(), {**GOOD, "os": "ubuntu-24.04"}).replaces == ("os",)
    assert harness.charges == 1


def test_a_rotated_key_finds_what_the_old_one_ordered(harness: ResourceHarness) -> None:
    with pytest.raises(ProcessKilled):
        harness.order(transport=KillingTransport(3, after=True))
    key = harness.control("POST", "/keys", {"mode": "live", "scopes": "full"})["key"]
    harness.order(key=key)
    assert len(harness.living) == 1
    assert harness.charges == 1


def test_adopting_checks_what_it_takes(harness: ResourceHarness) -> None:
    other = harness.order(identity="another", name_is_identity=True)
    with pytest.raises(ResourceError, match="os is 'debian-12'"):
        harness.order({**GOOD, "os": "ubuntu-24.04", "adopt_id": other.id})
    with pytest.raises(ResourceError, match="no active server"):
        harness.order({**GOOD, "adopt_id": "424242"})


# --- where the name is the identity


def ensure(
    harness: ResourceHarness, inputs: dict[str, Any] | None = None, id: str | None = None, **terms: Any
) -> Outcome:
    checked = check(SERVER, inputs or GOOD)
    context = harness.context(identity="ansible:/server/web-1", name_is_identity=True)
    return apply.ensure(context, SERVER, checked.inputs, id=id, terms=ApplyOptions(**terms))


def test_the_ladder_of_a_stateless_frontend(harness: ResourceHarness) -> None:
    assert ensure(harness, dry_run=True).action == "created"
    assert harness.living == []
    assert ensure(harness).action == "created"
    assert ensure(harness).action == "unchanged"
    desired = {**GOOD, "notes": "hello"}
    assert ensure(harness, desired, dry_run=True).action == "updated"
    assert ensure(harness, desired).action == "updated"
    assert ensure(harness, desired).action == "unchanged"
    with pytest.raises(ResourceError, match="cannot be changed in place"):
        ensure(harness, {**GOOD, "os": "ubuntu-24.04"})
    checked = check(SERVER, GOOD)
    context = harness.context(name_is_identity=True)
    assert (
        apply.ensure_absent(context, SERVER, checked.inputs, terms=ApplyOptions(dry_run=True)).action
        == "deleted"
    )
    assert apply.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert apply.ensure_absent(context, SERVER, checked.inputs).action == "unchanged"
    assert harness.living == []


def test_adopting_is_predicted_by_a_dry_run(harness: ResourceHarness) -> None:
    other = harness.order({**GOOD, "name": "old"}, identity="another", name_is_identity=True)
    predicted = ensure(harness, {**GOOD, "adopt_id": other.id}, dry_run=True)
    done = ensure(harness, {**GOOD, "adopt_id": other.id})
    for outcome in (predicted, done):
        assert outcome.before is not None
        assert (outcome.before["id"], outcome.before["name"]) == (other.id, "old")
        assert outcome.after is not None
        assert (outcome.after["id"], outcome.after["name"]) == (other.id, "web-1")
    with pytest.raises(ResourceError, match="is not the declared one"):
        ensure(harness, {**GOOD, "name": "third", "tariff_id": 2, "adopt_id": other.id}, dry_run=True)
    assert harness.charges == 1


@pytest.mark.parametrize(("at", "after"), exchanges_of_an_order()[:10])
def test_a_stateless_frontend_killed_anywhere_buys_once(
    harness: ResourceHarness, at: int, after: bool
) -> None:
    checked = check(SERVER, GOOD)
    with pytest.raises(ProcessKilled):
        apply.ensure(
            harness.context(name_is_identity=True, transport=KillingTransport(at, after)),
            SERVER,
            checked.inputs,
        )
    ensure(harness)
    assert len(harness.living) == 1
    assert harness.charges == 1


def test_a_name_that_a_rename_set_free_gets_a_server_of_its_own(harness: ResourceHarness) -> None:
    """The key of the name is remembered for the server that was renamed; that one is another resource's
    by now.
    """
    first = ensure(harness)
    assert first.after is not None
    renamed = ensure(harness, {**GOOD, "name": "web-2"}, id=first.after["id"])
    assert renamed.action == "updated"
    second = ensure(harness)
    assert second.action == "created"
    assert sorted((server["name"], str(server["id"])) for server in harness.living) == [
        ("web-1", second.after["id"] if second.after else ""),
        ("web-2", first.after["id"]),
    ]
    assert harness.charges == 2


def test_what_is_set_once_a_slow_order_is_there_is_reported_as_a_change(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    desired = {**GOOD, "notes": "late"}
    predicted = ensure(harness, desired, dry_run=True)
    assert predicted.action == "updated"
    assert predicted.diff.fields == {"notes"}
    done = ensure(harness, desired)
    assert done.action == "updated"
    assert done.diff.fields == {"notes"}
    assert harness.living[0]["notes"].startswith("late")
    assert ensure(harness, desired).action == "unchanged"


def test_only_waiting_for_a_slow_order_is_no_change(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    assert ensure(harness, dry_run=True).action == "unchanged"
    assert ensure(harness).action == "unchanged"
    assert len(harness.living) == 1


@dataclass
class Overtaking(KillingTransport):
    """``meanwhile`` happens right after the servers were looked at for the first time."""

    meanwhile: Callable[[], Any] = lambda: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.sent == ["GET /v1/servers"]:
            response.read()
            self.meanwhile()
        return response


def test_an_order_carried_out_between_two_looks_is_found(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    transport = Overtaking(meanwhile=lambda: harness.control("POST", "/clock", {"advance": 31}))
    checked = check(SERVER, GOOD)
    context = harness.context(name_is_identity=True, transport=transport)
    assert apply.ensure_absent(context, SERVER, checked.inputs).action == "deleted"
    assert harness.living == []


def test_several_servers_of_the_name_are_never_guessed_between(harness: ResourceHarness) -> None:
    harness.order()
    harness.order({**GOOD, "order_attempt": 1}, identity="another")
    with pytest.raises(AmbiguousMatch, match="matches several"):
        ensure(harness)


def test_absent_waits_for_an_order_that_is_still_under_way(harness: ResourceHarness) -> None:
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    checked = check(SERVER, GOOD)
    assert (
        apply.ensure_absent(harness.context(name_is_identity=True), SERVER, checked.inputs).action
        == "deleted"
    )
    assert harness.living == []
    assert harness.charges == 0 or harness.account.ledger()
