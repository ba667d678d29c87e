"""An order of a server: killed, cut off, refused or slow, it is one server and one charge."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.client.exceptions import InsufficientFunds, NoCapacity
from pulumi_hosting.exactly_once.ownership_tag import ownership_tag
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import (
    OrderFailed,
    ResourceConflict,
    ResourceError,
    WaitTimeout,
)
from tests.resources.conftest import (
    GOOD,
    AtTheOrder,
    EmulatorClock,
    KillingTransport,
    ProcessKilled,
    ResourceHarness,
)
from tests.resources.orders import READINGS, WrongClock, exchanges_of_an_order, names
from tests.support.account import Account


def test_an_order_is_marked(harness: ResourceHarness) -> None:
    state = harness.order({**GOOD, "notes": "mine", "auto_renew": True})
    assert state.root_password
    assert state.notes == "mine"
    assert state.auto_renew is True
    assert harness.living[0]["notes"] == f"mine {ownership_tag('pulumi:t/dev/server/web-1')}"
    assert state.ownership_tag == ownership_tag("pulumi:t/dev/server/web-1")
    sent = harness.transports[-1].sent
    assert sent.count("POST /v1/servers") == 1


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


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_replay_of_a_dead_server_is_not_taken_for_a_living_one(
    harness: ResourceHarness, elsewhere: bool
) -> None:
    first = harness.order()
    SERVER.delete(harness.context(), first)
    if elsewhere:  # nothing tells that the first key is used
        harness.another_machine()
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
        match=r"servers:manage, which auto_renew and notes need.*nothing was "
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


def test_a_service_that_keeps_failing_is_reported_and_not_called_again(harness: ResourceHarness) -> None:
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


@pytest.mark.parametrize("days", [6.9, 7.1])
@pytest.mark.parametrize("name_is_identity", [False, True])
def test_a_server_that_does_not_come_is_waited_for_seven_days_and_ordered_again_by_a_persons_word(
    tmp_path: Path, name_is_identity: bool, days: float
) -> None:
    harness = ResourceHarness(Account(provisioning_delay=30 * 86400), tmp_path)
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0, name_is_identity=name_is_identity)
    harness.control("POST", "/clock", {"advance": days * 86400})
    if days < 7:
        with pytest.raises(WaitTimeout, match=r"is still provisioning .* waits for it until seven days"):
            harness.order(wait_timeout=0.0, name_is_identity=name_is_identity)
        assert harness.charges == 1
    else:
        with pytest.raises(
            ResourceConflict, match=r"after more than seven days; .*invoice.*order_attempt to 1"
        ):
            harness.order(wait_timeout=0.0, name_is_identity=name_is_identity)
        assert harness.charges == 1
        state = harness.order({**GOOD, "order_attempt": 1}, name_is_identity=name_is_identity)
        assert [str(server["id"]) for server in harness.living] == [state.id]
        assert harness.charges == 2


@pytest.mark.parametrize("days", [0, 7.1, 20])
def test_a_late_server_that_was_renamed_before_it_had_a_tag_is_not_ordered_again(
    harness: ResourceHarness, days: float
) -> None:
    """After seven days this machine's note of the order is all that shows whose it is."""
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout):
        harness.order(wait_timeout=0.0)
    harness.control("POST", "/clock", {"advance": 60 + days * 86400})
    (late,) = harness.living
    harness.control("PATCH", f"/servers/{late['id']}", {"name": "renamed"})
    with pytest.raises(ResourceConflict, match=f"named 'renamed'.* nothing was .*adopt_id.{late['id']}"):
        harness.order()
    assert harness.charges == 1
    taken = harness.order({**GOOD, "adopt_id": str(late["id"])})
    assert (taken.id, taken.name) == (str(late["id"]), GOOD["name"])
    assert harness.charges == 1


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_a_failed_order_is_reported_and_placed_again_by_the_next_run(
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
def test_an_order_that_fails_before_its_answer_is_read_is_not_placed_again(
    harness: ResourceHarness, end: str, name_is_identity: bool
) -> None:
    harness.fault({"panel_timeout": end})
    clock = EmulatorClock(harness.control)  # time passes for the process too
    transport = AfterThePurchase(meanwhile=lambda: clock.sleep(31))
    with pytest.raises(OrderFailed, match=f"ended as {end}.*returned.*which orders another one"):
        harness.order(transport=transport, name_is_identity=name_is_identity, clock=clock)
    assert transport.sent.count("POST /v1/servers") == 1
    assert harness.living == []
    assert harness.charges == 0
    state = harness.order(name_is_identity=name_is_identity)
    assert [str(server["id"]) for server in harness.living] == [state.id]
    assert harness.charges == 1
    assert any("an earlier order" in line and end in line for line in harness.messages)


def test_an_order_under_way_is_waited_for_though_the_program_was_edited(harness: ResourceHarness) -> None:
    """The first order is in no list of servers yet, and the edited one has its key."""
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout, match="run again"):
        harness.order(wait_timeout=0.0)
    with pytest.raises(ResourceError, match="exists already"):
        harness.order({**GOOD, "os": "ubuntu-24.04"})
    assert [server["os"] for server in harness.living] == [GOOD["os"]]
    assert harness.charges == 1


def test_an_order_of_another_stack_that_is_under_way_is_waited_for_and_stops_it(
    harness: ResourceHarness,
) -> None:
    """It is in no list of servers yet, and has another key."""
    harness.fault({"panel_timeout": "active"})
    with pytest.raises(WaitTimeout, match="run again"):
        harness.order(identity="pulumi:t/prod/server/web-1", wait_timeout=0.0)
    with pytest.raises(ResourceConflict, match="exists already"):
        harness.order()
    assert len(harness.living) == 1
    assert harness.charges == 1


# --- how many requests an order takes


def cycle(harness: ResourceHarness, key: str, **context: Any) -> int:
    """One server is created and destroyed; how many expensive requests the order took."""
    state = harness.order(key=key, **context)
    orders: int = harness.transports[-1].sent.count("POST /v1/servers")
    assert [str(server["id"]) for server in harness.living] == [state.id]
    SERVER.delete(harness.context(key=key, **context), state)
    assert harness.living == []
    return orders


stored = pytest.mark.parametrize("stored", [True, False])
named = pytest.mark.parametrize("name_is_identity", [True, pytest.param(False, marks=pytest.mark.slow)])


@stored
@named
def test_a_name_is_ordered_any_number_of_times_with_one_request_each_on_one_machine(
    harness: ResourceHarness, stored: bool, name_is_identity: bool
) -> None:
    harness.account.variant(refusals_stored=stored)
    key = harness.roomy_key()
    orders = [cycle(harness, key, name_is_identity=name_is_identity) for _ in range(20)]
    assert orders == [1] * 20
    assert not [line for transport in harness.transports for line in transport.sent if "/renew" in line]


@stored
@named
def test_a_name_is_ordered_any_number_of_times_with_three_requests_at_most_on_fresh_machines(
    harness: ResourceHarness, stored: bool, name_is_identity: bool
) -> None:
    harness.account.variant(refusals_stored=stored)
    key, orders = harness.roomy_key(), list[int]()
    for _ in range(20):
        orders.append(cycle(harness, key, name_is_identity=name_is_identity))
        harness.another_machine()
    assert orders == [1] + [3 if stored else 2] * 19


@stored
@pytest.mark.parametrize("hours", [8, *(pytest.param(hours, marks=pytest.mark.slow) for hours in (24, 60))])
def test_three_requests_are_enough_while_the_first_keys_are_being_forgotten(
    harness: ResourceHarness, stored: bool, hours: int
) -> None:
    harness.account.variant(refusals_stored=stored)
    key = harness.roomy_key()
    for _ in range(25):
        assert cycle(harness, key) <= 3
        harness.another_machine()
        harness.control("POST", "/clock", {"advance": hours * 3600})


@stored
@pytest.mark.parametrize("at_home", [3, *(pytest.param(number, marks=pytest.mark.slow) for number in (6, 9))])
def test_runs_that_move_from_one_machine_to_fresh_ones_go_on(
    harness: ResourceHarness, stored: bool, at_home: int
) -> None:
    """The first ones had a note and used one key each; the service forgets them one by one, so that a used
    key may follow one that is not. Such an order takes two requests more."""
    harness.account.variant(refusals_stored=stored)
    key, orders = harness.roomy_key(), list[int]()
    for number in range(20):
        orders.append(cycle(harness, key))
        harness.control("POST", "/clock", {"advance": 24 * 3600})
        if number >= at_home:
            harness.another_machine()
    assert max(orders) <= (5 if stored else 3), orders


# --- another body for the same identity


@pytest.mark.usefixtures("machines")
@stored
@pytest.mark.parametrize("cycles", [0, 1, 2])
def test_of_two_states_of_one_identity_with_different_bodies_the_second_stops(
    harness: ResourceHarness, cycles: int, stored: bool
) -> None:
    """Both have looked before either has ordered."""
    harness.account.variant(refusals_stored=stored)
    for _ in range(cycles):
        cycle(harness, harness.roomy_key())
        harness.another_machine()
    made = list[Any]()
    transport = AtTheOrder(
        line="POST /v1/servers", meanwhile=lambda: made.append(harness.order({**GOOD, "months": 3}))
    )
    with pytest.raises(ResourceConflict, match=r"at the same moment|exists already") as caught:
        harness.order({**GOOD, "months": 1}, transport=transport)
    (server,) = harness.living
    assert [caught.value.id, made[0].id] == [str(server["id"])] * 2
    assert "nothing was ordered" in str(caught.value)


@stored
@pytest.mark.parametrize("elsewhere", [True, False])
def test_after_a_change_and_a_destruction_elsewhere_it_still_orders(
    harness: ResourceHarness, stored: bool, elsewhere: bool
) -> None:
    """The first key is bound to the body of before."""
    harness.account.variant(refusals_stored=stored)
    first = harness.order({**GOOD, "months": 3})
    harness.control("DELETE", f"/servers/{first.id}")
    if elsewhere:
        harness.another_machine()
    second = harness.order()
    assert [str(server["id"]) for server in harness.living] == [second.id]
    assert second.id != first.id
    assert harness.transports[-1].sent.count("POST /v1/servers") <= 3


def test_an_order_that_is_carried_out_after_a_second_is_seen_at_the_second_look(tmp_path: Path) -> None:
    harness = ResourceHarness(Account(provisioning_delay=1), tmp_path)
    harness.fault({"panel_timeout": "active"})
    request = harness.context()
    state = apply.create(request, SERVER, check(SERVER, GOOD).inputs)
    assert request.clock.monotonic() == 1.5  # pauses of 0.5 and 1 second
    assert (harness.charges, state.id) == (1, str(harness.living[0]["id"]))
