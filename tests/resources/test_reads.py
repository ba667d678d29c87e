"""Answers that a process shares: asked once, believed for a while, forgotten when a write makes them
untrue.
"""

import threading
from typing import Any

from pulumi_hosting.client.polling import Poller
from pulumi_hosting.exactly_once.order_facts import pending_orders
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import diff
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.clock import RunClock
from pulumi_hosting.session.ownership import Ownership
from pulumi_hosting.session.shared_reads import Reads
from tests.resources.conftest import GOOD, KillingTransport, ResourceHarness
from tests.support.waiting import HANG_SECONDS


class Hand(RunClock):
    """Moved by hand."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def test_an_answer_is_asked_for_once_until_it_is_old_or_forgotten() -> None:
    reads, clock = Reads(), Hand()
    asked: list[int] = []

    def fetch() -> int:
        asked.append(len(asked))
        return asked[-1]

    def get() -> int:
        return reads.get(("servers",), fetch, clock.monotonic, 60.0)

    assert [get(), get()] == [0, 0]
    clock.at = 60.0
    assert get() == 0
    clock.at = 61.0
    assert get() == 1
    reads.forget("servers")
    assert get() == 2
    reads.forget("domains")
    assert get() == 2


def test_a_failure_is_not_remembered() -> None:
    reads, clock = Reads(), Hand()
    answers: list[Any] = [ValueError("no"), 7]

    def fetch() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    for expected in ("failed", 7, 7):
        try:
            assert reads.get(("x",), fetch, clock.monotonic, 60.0) == expected
        except ValueError:
            assert expected == "failed"


def test_what_is_forgotten_while_it_is_asked_for_is_asked_for_again() -> None:
    reads, clock = Reads(), Hand()

    def fetch() -> str:
        reads.forget("servers")  # a write, while the answer is under way
        return "old, perhaps"

    assert reads.get(("servers",), fetch, clock.monotonic, 60.0) == "old, perhaps"
    assert reads.get(("servers",), lambda: "new", clock.monotonic, 60.0) == "new"


def test_sixteen_threads_wait_for_one_answer() -> None:
    reads, clock = Reads(), Hand()
    asked: list[int] = []
    everybody = threading.Barrier(16)
    answers: list[str] = []

    def fetch() -> str:
        asked.append(1)
        return "once"

    def ask() -> None:
        everybody.wait(HANG_SECONDS)
        answers.append(reads.get(("servers",), fetch, clock.monotonic, 60.0))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert answers == ["once"] * 16
    assert len(asked) == 1


def test_pauses_grow_to_the_longest_and_end() -> None:
    clock = Hand()
    poller = Poller(clock, 20.0, 5.0)
    while not poller.over:
        poller.pause()
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]


def test_many_servers_are_read_by_the_list(harness: ResourceHarness) -> None:
    ownership = Ownership()
    made = [
        apply.create(
            harness.context(identity=f"pulumi:t/dev/server/{n}", ownership=ownership), SERVER, desired
        )
        for n in range(12)
        for desired in [check(SERVER, {**GOOD, "name": f"web-{n}"}).inputs]
    ]
    transport = KillingTransport()
    context = harness.context(transport=transport)
    for state in made:
        found = apply.read(context, SERVER, state)
        assert not diff(SERVER, state.values(), found.values()), state.id
    assert len(transport.sent) == 1  # one page for all


def test_a_server_that_the_list_lacks_is_asked_for_by_its_id(harness: ResourceHarness) -> None:
    state = harness.order()
    context = harness.context()
    empty: dict[str, Any] = {"patch": {"data": [], "next_cursor": None}}
    harness.fault(empty, path="^/servers$", method="GET", times=99)
    assert apply.read(context, SERVER, state) is not None


def test_a_program_of_many_servers_looks_for_lost_ones_once(harness: ResourceHarness) -> None:
    transport, reads, ownership = KillingTransport(), Reads(), Ownership()
    client: Any = None
    for n in range(5):
        shared = {"transport": transport, "reads": reads, "ownership": ownership, "client": client}
        context = harness.context(identity=f"pulumi:t/dev/server/{n}", **shared)
        client = context.client
        apply.create(context, SERVER, check(SERVER, {**GOOD, "name": f"web-{n}"}).inputs)
    lists = [
        line for line in transport.sent if line.endswith(("/servers", "/orders")) and line.startswith("GET")
    ]
    assert len(lists) == 2
    assert len(transport.sent) == 1 + 2 + 5 * 2  # /me, the look, and for each: the order, its mark


def test_all_that_wait_for_orders_share_one_poll(harness: ResourceHarness) -> None:
    transport, reads, clock = KillingTransport(), Reads(), Hand()
    first = harness.context(transport=transport, reads=reads, clock=clock)
    waiting = [
        harness.context(
            identity=f"pulumi:t/dev/server/{n}",
            transport=transport,
            reads=reads,
            clock=clock,
            client=first.client,
        )
        for n in range(10)
    ]
    for _ in range(3):
        for request in waiting:
            pending_orders(request, 4.5)
        clock.sleep(5.0)
    assert transport.sent == ["GET /v1/orders"] * 3
