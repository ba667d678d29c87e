"""Events in the shared store: two receivers have one queue, and one of them hands its events over."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import copy_context
from functools import partial
from typing import Any

import fakeredis
import pytest
from click.testing import CliRunner

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.cli import main
from pulumi_hosting.client import redis_store
from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.client.redis_store import Redis
from pulumi_hosting.client.shared_store import StoreUnavailable, held_leases
from pulumi_hosting.webhooks import shared_event_store
from pulumi_hosting.webhooks.delivery_store import StoreFull
from pulumi_hosting.webhooks.shared_event_store import SharedEventStore
from tests.webhooks.support import SECRET, Events, Receivers, body, until

URL = "redis://team:hunter2@store.example.com:6400/0"
TO = "https://eda.example.org/streams/7"


class Apart:
    """A store whose leases are those of its own context, as if it were used by a thread of its own."""

    def __init__(self, machine: Redis, to: str, max_pending: int) -> None:
        self._context = copy_context()
        self._store = self._context.run(partial(SharedEventStore, machine, to, max_pending=max_pending))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return partial(self._context.run, found) if callable(found) else found


class Relays:
    """Relays that share a server. ``moved``: the seconds that have passed for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server, self.moved = fakeredis.FakeServer(), 0.0
        self.opened: list[Apart] = []
        self.values = fakeredis.FakeRedis(server=self.server)
        self.values.hset("hosting:server", mapping={"run": "unknown", "since": "1"})
        elapsed = redis_store.elapsed
        monkeypatch.setattr(redis_store, "elapsed", lambda: elapsed() + self.moved)
        monkeypatch.setattr(redis_store, "_keep_beating", lambda found: None)

    def open(self, to: str = TO, max_pending: int = 10) -> Apart:
        self.opened.append(Apart(self.machine(), to, max_pending))
        return self.opened[-1]

    def machine(self) -> Redis:
        return Redis(Secret(URL), fakeredis.FakeRedis(server=self.server))

    def end_leases(self) -> None:
        self.moved += redis_store.LEASE_SECONDS
        for key in self.values.keys("hosting:relay.*.lock"):
            self.values.delete(key)


@pytest.fixture
def relays(monkeypatch: pytest.MonkeyPatch) -> Iterator[Relays]:
    made = Relays(monkeypatch)
    yield made
    for store in made.opened:
        store.close()


def add(store: Apart, id: str) -> bool:
    return bool(store.add(id, body(id), {"X-Webhook-Id": id}, "delivery"))


def drained(store: Apart) -> list[str]:
    ids, number = list[str](), 0
    while (event := store.next_pending(number)) is not None:
        ids, number = [*ids, event.id], event.number
        store.acknowledge(event.id)
    return ids


def test_events_of_both_are_handed_over_once_in_the_order_of_arrival(relays: Relays) -> None:
    one, two = relays.open(), relays.open()
    ids = [f"evt_{number}" for number in range(10)]
    for number, id in enumerate(ids):
        assert add([one, two][number % 2], id)
        assert not add([two, one][number % 2], id)  # delivered again, to the other one
    assert drained(one) == ids
    assert drained(one) == []
    assert not add(two, "evt_3")
    assert two.knows("evt_3")
    assert not two.knows("evt_10")
    assert drained(one) == []


def test_an_event_has_what_was_delivered(relays: Relays) -> None:
    store = relays.open()
    raw = b'{"a":\n"\xc3\xa9"}\n'
    store.add("evt_1", raw, {"X-Webhook-Id": "evt_1"}, "reconciliation")
    event = store.next_pending(0)
    assert event is not None
    assert event[1:5] == ("evt_1", raw, '{"X-Webhook-Id": "evt_1"}', "reconciliation")
    assert 0.0 <= relays.values.time()[0] + 1 - event.received_at <= 600.0
    assert store.next_pending(event.number) is None


def test_a_full_queue_takes_no_new_event(relays: Relays) -> None:
    one, two = relays.open(max_pending=2), relays.open(max_pending=2)
    assert add(one, "evt_1")
    assert add(two, "evt_2")
    with pytest.raises(StoreFull, match="2 events are pending"):
        add(two, "evt_3")
    assert not two.knows("evt_3")
    assert not add(two, "evt_1")
    one.acknowledge("evt_1")
    assert add(two, "evt_3")


def test_the_other_one_goes_on_when_the_lease_ends(relays: Relays) -> None:
    one, two = relays.open(), relays.open()
    for number in range(4):
        add(one, f"evt_{number}")
    first = one.next_pending(0)
    assert first is not None
    assert two.next_pending(0) is None
    one.acknowledge(first.id)
    second = one.next_pending(first.number)
    assert second is not None
    relays.end_leases()  # one is killed, or stopped, before it acknowledges
    assert drained(two) == ["evt_1", "evt_2", "evt_3"]
    add(one, "evt_4")
    assert one.next_pending(second.number) is None  # it goes on, and knows that it is not its turn
    assert drained(two) == ["evt_4"]


def test_who_lost_its_turn_takes_it_again(relays: Relays) -> None:
    store = relays.open()
    add(store, "evt_1")
    assert store.next_pending(0) is not None
    held = len(store._context[held_leases])
    relays.end_leases()
    assert drained(store) == ["evt_1"]
    assert len(store._context[held_leases]) == held


def test_one_that_ends_gives_its_turn_at_once(relays: Relays) -> None:
    add(relays.open(), "evt_1")
    with closing(relays.open()) as one:
        assert one.next_pending(0) is not None
    assert drained(relays.open()) == ["evt_1"]


def test_relays_to_other_addresses_have_other_queues(relays: Relays) -> None:
    one, other = relays.open(), relays.open("https://broker.example.org/")
    assert add(one, "evt_1")
    assert add(other, "evt_1")
    assert drained(one) == ["evt_1"]
    assert drained(other) == ["evt_1"]


def test_a_store_that_was_started_again_empty_has_higher_numbers(relays: Relays) -> None:
    store = relays.open()
    add(store, "evt_1")
    first = store.next_pending(0)
    assert first is not None
    for part in ("pending", "bodies", "known", "about"):
        relays.values.delete(*relays.values.keys(f"hosting:relay.*.{part}"))
    add(store, "evt_2")
    second = store.next_pending(first.number)
    assert second is not None
    assert second.id == "evt_2"


def test_numbers_grow_when_the_clock_of_the_store_is_set_back(relays: Relays) -> None:
    store = relays.open()
    (about,) = relays.values.keys("hosting:relay.*.about")
    relays.values.hset(about, "last", 4_000_000_000_000_000)
    ids = [f"evt_{number}" for number in (2, 1, 0)]
    for id in ids:
        add(store, id)
    first = store.next_pending(0)
    assert first is not None
    assert first.number == 4_000_000_000_000_001
    assert drained(store) == ids


def test_old_ids_are_forgotten_unless_their_event_is_pending(
    relays: Relays, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = relays.open()
    add(store, "evt_1")
    add(store, "evt_2")
    store.acknowledge("evt_1")
    store.forget_old()
    assert store.knows("evt_1")
    monkeypatch.setattr(shared_event_store, "REMEMBER_SECONDS", -10)
    store.forget_old()
    assert [store.knows(id) for id in ("evt_1", "evt_2")] == [False, True]
    assert relays.open().created_at == store.created_at > 1_700_000_000


def test_a_body_that_the_store_has_lost_is_no_end_of_the_relay(relays: Relays) -> None:
    store = relays.open()
    add(store, "evt_1")
    relays.values.delete(*relays.values.keys("hosting:relay.*.bodies"))
    with pytest.raises(LocalFilesError, match=r"the entry hosting:relay\..*\.pending of the shared store"):
        store.next_pending(0)


def test_a_taken_body_is_not_kept(relays: Relays) -> None:
    store = relays.open()
    store.add("evt_1", b'{"name": "Walrus"}', {"X-Webhook-Id": "Walrus"}, "delivery")
    (bodies,) = relays.values.keys("hosting:relay.*.bodies")
    assert "Walrus" in str(relays.values.hgetall(bodies))
    store.acknowledge("evt_1")
    assert relays.values.hgetall(bodies) == {}


def test_a_delivery_is_refused_while_the_store_is_away(
    relays: Relays, receivers: Receivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = relays.machine()

    def away(*_: Any) -> Any:
        raise StoreUnavailable("the shared store is away")

    async def deliver() -> None:
        store: Callable[[Any], Any] = lambda _: SharedEventStore(machine, TO)  # noqa: E731  # one line
        async with receivers.run(parts={"open_store": store}) as running:
            with monkeypatch.context() as patched:
                patched.setattr(machine, "run", away)
                assert await running.deliver(body("evt_1")) == 503
            assert await running.deliver(body("evt_1")) == 200
            assert await running.events.ids() == ["evt_1"]

    asyncio.run(deliver())


def test_a_receiver_hands_over_what_another_one_has_received(relays: Relays, receivers: Receivers) -> None:
    async def deliver() -> None:
        events = Events()
        mine, others = relays.machine(), relays.machine()
        parts = {"open_store": lambda _: SharedEventStore(mine, TO)}
        async with receivers.run(events, parts=parts) as first:
            assert await first.deliver(body("evt_1")) == 200
            assert await events.ids() == ["evt_1"]
            parts = {"open_store": lambda _: SharedEventStore(others, TO)}
            async with receivers.run(events=(idle := Events()), parts=parts) as second:
                assert await second.deliver(body("evt_2")) == 200
                assert await events.ids() == ["evt_2"]
                await until(lambda: not relays.values.exists(*relays.values.keys("*.bodies"), "none"))
            assert idle.offered == []

    asyncio.run(deliver())


@pytest.mark.parametrize("store", ["", "memcached://store.example.com"])
def test_an_address_that_cannot_be_used_ends_the_relay_with_one_line(store: str) -> None:
    environ = {"HOSTING_WEBHOOK_SECRET": SECRET, "HOSTING_STORE": store}
    answer = CliRunner().invoke(main, ["webhook", "relay", "--port", "0", "--to", TO], env=environ)
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: store must begin with redis:// or rediss://")


def test_the_library_redis_is_loaded_by_those_who_share_a_store() -> None:
    code = "import sys, pulumi_hosting.cli.webhook as _; sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
