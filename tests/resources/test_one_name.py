"""Several orders of one server name at the same time: one server and one charge, or a stop before the
second is paid.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.ownership_tag import is_tag_of, split_tag
from pulumi_hosting.exactly_once.server_order import ServerOrder
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.apply import Outcome
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import ResourceConflict
from tests.resources.conftest import GOOD, KillingTransport, ResourceHarness
from tests.support.waiting import HANG_SECONDS


@dataclass
class TogetherTransport(KillingTransport):
    """The first orders of all transports of one barrier leave together."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if (
            request.method == "POST"
            and request.url.path == "/v1/servers"
            and "POST /v1/servers" not in self.sent
        ):
            self.barrier.wait()
        return super().handle_request(request)


def at_once(
    harness: ResourceHarness, desired: list[dict[str, Any]], barrier: threading.Barrier | None = None
) -> list[Outcome]:
    def run(desired: dict[str, Any]) -> Outcome:
        transport = TogetherTransport(barrier=barrier) if barrier else KillingTransport()
        context = harness.context(
            identity="ansible:/server/web-1", name_is_identity=True, transport=transport
        )
        return apply.ensure(context, SERVER, check(SERVER, desired).inputs)

    with ThreadPoolExecutor(len(desired)) as pool:
        return list(pool.map(run, desired))


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize("slow", [False, True])
def test_two_different_orders_of_one_name_that_leave_together_are_one_server(
    harness: ResourceHarness, slow: bool
) -> None:
    if slow:
        harness.fault({"panel_timeout": "active"})
    outcomes = at_once(
        harness, [{**GOOD, "months": 1}, {**GOOD, "months": 3, "notes": "mine"}], threading.Barrier(2)
    )
    assert harness.charges == 1
    (server,) = harness.living
    assert [outcome.state.id if outcome.state else "" for outcome in outcomes] == [str(server["id"])] * 2
    text, tag = split_tag(server["notes"])
    assert is_tag_of(tag, "ansible:/server/web-1")
    assert text in ("mine", "")  # whose PATCH comes last is open: one declares no notes


def test_orders_of_one_name_on_one_machine_take_turns(harness: ResourceHarness) -> None:
    outcomes = at_once(harness, [{**GOOD, "months": months} for months in (1, 3, 6)])
    assert harness.charges == 1
    assert len({outcome.state.id for outcome in outcomes if outcome.state}) == len(harness.living) == 1


def test_two_stacks_with_one_name_on_one_machine_are_one_order_and_one_stop(
    harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one orders only when the second one has looked, or waits for its turn."""
    looks, second = count(), threading.Event()
    look, lock = ServerOrder._found, local_files.lock

    def looking(order: ServerOrder, **options: Any) -> Any:
        found = look(order, **options)
        if next(looks) > 0:
            second.set()
        assert second.wait(HANG_SECONDS)
        return found

    def locking(*arguments: Any, **options: Any) -> Any:
        return lock(*arguments, **{**options, "on_wait": second.set})

    monkeypatch.setattr(ServerOrder, "_found", looking)
    monkeypatch.setattr(local_files, "lock", locking)

    def run(stack: str) -> Any:
        try:
            return harness.order(identity=f"pulumi:t/{stack}/server/web-1")
        except ResourceConflict as stopped:
            return stopped

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, ("dev", "prod")))
    assert sorted(type(result).__name__ for result in results) == ["ResourceConflict", "ServerState"]
    assert harness.charges == 1
    assert len(harness.living) == 1


def test_what_another_process_has_just_ordered_is_seen_in_spite_of_an_earlier_look(
    harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr("pulumi_hosting.exactly_once.order_facts._time_of_all", lambda *_: now)
    late = harness.context(identity="pulumi:t/prod/server/web-1")
    SERVER.validate(late, GOOD, frozenset(GOOD))  # a preview that saw no such server
    late.clock.sleep(1)
    with monkeypatch.context() as patched:
        patched.setattr("pulumi_hosting.exactly_once.order_facts._PROCESS", "another")
        harness.order()
    late.clock.sleep(1)
    now += timedelta(seconds=1)
    with pytest.raises(ResourceConflict):
        apply.create(late, SERVER, check(SERVER, GOOD).inputs)
    assert harness.charges == 1


@pytest.mark.parametrize(("killed", "looks"), [(False, 0), (True, 1)])
def test_a_look_since_the_end_of_another_process_s_turn_is_believed(
    harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch, killed: bool, looks: int
) -> None:
    """A stack that is made again within a minute looks once and not for each server. A turn without an end
    may have sent an order since."""
    now, write = datetime(2026, 1, 1, tzinfo=UTC), local_files.write
    monkeypatch.setattr("pulumi_hosting.exactly_once.order_facts._time_of_all", lambda *_: now)

    def write_until_killed(scope: Any, purpose: str, note: Any, **options: Any) -> None:
        write(scope, purpose, {name: note[name] for name in note if name != "ended"}, **options)

    with monkeypatch.context() as patched:
        patched.setattr("pulumi_hosting.exactly_once.order_facts._PROCESS", "another")
        if killed:
            patched.setattr(local_files, "write", write_until_killed)
        first = harness.order()
        SERVER.delete(harness.context(owned=frozenset({first.id})), first)
    now += timedelta(seconds=10)
    again = harness.context()
    SERVER.validate(again, GOOD, frozenset(GOOD))
    before = len(harness.transports[-1].sent)
    apply.create(again, SERVER, check(SERVER, GOOD).inputs)
    assert harness.transports[-1].sent[before:].count("GET /v1/orders") == looks
    assert (harness.charges, len(harness.living)) == (1, 1)  # the first was refunded


@pytest.mark.parametrize("writes", [0, 1])
def test_a_full_disk_stops_an_order_before_it_is_sent_and_loses_no_accepted_one(
    harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    asked = list[str]()
    write = local_files.write

    def write_while_there_is_room(*arguments: Any, **options: Any) -> None:
        if arguments[1] == "server name web-1":
            asked.append(arguments[1])
            if len(asked) > writes:
                raise local_files.LocalFilesError("no room")
        write(*arguments, **options)

    monkeypatch.setattr(local_files, "write", write_while_there_is_room)
    if not writes:
        with pytest.raises(local_files.LocalFilesError, match="no room"):
            harness.order()
        assert (harness.charges, harness.living) == (0, [])
        return
    state = harness.order()
    (server,) = harness.living
    assert (harness.charges, state.id) == (1, str(server["id"]))
    assert state.root_password is not None
    assert len(asked) == 2  # the disk was full when the order was placed


def test_a_refused_order_of_the_name_does_not_keep_a_different_one_from_being_placed(
    harness: ResourceHarness,
) -> None:
    harness.control("PATCH", "/account", {"balance": "6.00"})
    with pytest.raises(Exception, match=r"14\.25"):
        at_once(harness, [{**GOOD, "months": 3}])
    (outcome,) = at_once(harness, [GOOD])
    assert outcome.action == "created"
    assert harness.charges == 1


@pytest.mark.parametrize("named", [True, False])
def test_the_key_of_an_order_is_made_of_the_identity_alone(harness: ResourceHarness, named: bool) -> None:
    def first_key(identity: str = "pulumi:t/dev/server/web-1", attempt: int = 0, **changes: Any) -> str:
        context = harness.context(identity=identity, name_is_identity=named)
        return ServerOrder(context, m.ServerCreate(**{**GOOD, **changes}), attempt).keys.key(0)

    same = ({"password": "Abcdefg1"}, {"months": 3}, {"os": "ubuntu-24.04"}, {"name": "web-2"})
    assert {first_key(**changes) for changes in ({}, *same)} == {first_key()}
    assert len({first_key(), first_key("pulumi:t/prod/server/web-1"), first_key(attempt=1)}) == 3


@dataclass
class MeanwhileTransport(KillingTransport):
    """``meanwhile`` happens once, when the first order was processed and its answer is not read yet."""

    meanwhile: Callable[[], Any] = lambda: None
    has_happened: bool = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.sent[-1] == "POST /v1/servers" and not self.has_happened:
            self.has_happened = True
            response.read()
            self.meanwhile()
        return response


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("cycles", [1, 2, 3])
def test_after_a_deletion_two_machines_that_order_at_the_same_moment_buy_one(
    harness: ResourceHarness, cycles: int, named: bool, stored: bool
) -> None:
    """Both have looked before either has ordered, and neither knows which keys are used."""
    harness.account.variant(refusals_stored=stored)
    for _ in range(cycles):
        SERVER.delete(harness.context(name_is_identity=named), harness.order(name_is_identity=named))
        harness.another_machine()
    other = list[Any]()

    def on_the_other_machine() -> None:
        with harness.elsewhere():
            other.append(harness.order(name_is_identity=named))

    transport = MeanwhileTransport(meanwhile=on_the_other_machine)
    try:
        mine = harness.order(name_is_identity=named, transport=transport).id
    except ResourceConflict as stopped:  # or a stop that names it
        mine = stopped.id
    (server,) = harness.living
    assert [mine, *(one.id for one in other)] == [str(server["id"])] * 2
