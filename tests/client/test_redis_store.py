"""The shared store of several machines: values, locks that are leases, processes, a server that is gone."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import fakeredis
import pytest
import redis

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import redis_store
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.client.redis_store import LEASE_SECONDS, MARGIN_SECONDS, Redis, store_at
from pulumi_hosting.client.shared_store import (
    Files,
    LeaseLost,
    LockTimeout,
    StoreUnavailable,
    held_leases,
    time_to_write,
)

URL = Secret("redis://team:hunter2@store.example.com:6400/0")


class Machines:
    """Machines that share a server. Its clock and theirs move by :meth:`wait`, and with real time if
    it ``runs``, as whoever is woken needs it."""

    runs = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now, self._began = 1_700_000_000.0, time.monotonic()
        self.server = fakeredis.FakeServer()
        monkeypatch.setattr(redis_store, "elapsed", lambda: self.now)
        monkeypatch.setattr(redis_store, "_keep_beating", lambda found: None)
        monkeypatch.setattr(time, "time", lambda: self.now)
        self.connection: redis.Redis = fakeredis.FakeRedis(server=self.server)
        self.started(long_ago=True)

    @property
    def now(self) -> float:
        return self._now + (time.monotonic() - self._began if self.runs else 0.0)

    def machine(self) -> Redis:
        return Redis(URL, fakeredis.FakeRedis(server=self.server))

    def wait(self, seconds: float) -> None:
        self._now += seconds

    def started(self, *, long_ago: bool = False) -> None:
        """The server is started, and has nothing."""
        self.connection.flushall()
        if long_ago:
            since = str(int(self.now) - 3600)
            self.connection.hset("hosting:server", mapping={"run": "unknown", "since": since})


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    return Machines(monkeypatch)


@contextmanager
def held(store: Redis, name: str = "it") -> Iterator[None]:
    with store.lock(name, 0, what="it"):
        yield


# --- values


def test_a_value_is_what_was_written_last_by_any_machine(machines: Machines) -> None:
    one, other = machines.machine(), machines.machine()
    assert one.read("a.json") is None
    one.write("a.json", b"\x00\xff", survives=True)
    other.write("a.json", b"2")
    one.keep("b.order", {"a": 1})
    assert (one.read("a.json"), one.note("b.order")) == (b"2", {"a": 1})
    assert other.names("*.order") == ["b.order"]
    other.forget("b.order")
    assert one.note("b.order") == {}


def test_a_damaged_value_is_named(machines: Machines) -> None:
    store = machines.machine()
    store.write("a.json", b"{")
    with pytest.raises(LocalFilesError, match=r"entry hosting:a\.json of the shared .* Next: delete it"):
        store.note("a.json", survives=True)


def test_changes_of_a_note_by_several_machines_are_all_kept(machines: Machines) -> None:
    for number in range(3):
        with machines.machine().changing("a.json", 0) as note:
            note[str(number)] = number
    assert machines.machine().note("a.json") == {"0": 0, "1": 1, "2": 2}


# --- values that change with every request


def counted(value: bytes, now: float) -> tuple[bytes, int, list[str]]:
    number = int(value or b"0") + 1
    return str(number).encode(), number, []


def test_the_server_says_what_time_it_is(machines: Machines) -> None:
    value = machines.machine().open("a.rate", "it")
    at = value.update(lambda content, now: (content, now, []), 5.0)
    assert at == pytest.approx(machines.now)


def test_a_change_is_made_again_if_its_turn_was_over(machines: Machines) -> None:
    """As that of a process that was stopped: another one has written since."""
    one, other = (machines.machine().open("a.rate", "it") for _ in range(2))
    seen: list[bytes] = []

    def slow(value: bytes, now: float) -> tuple[bytes, int, list[str]]:
        seen.append(value)
        if len(seen) == 1:
            machines.wait(1.0)
            other.update(counted, 0.0)
        return counted(value, now)

    assert one.update(slow, 0.0) == 2
    assert seen == [b"", b"1"]


def test_writers_take_turns(machines: Machines) -> None:
    """None of them asks again while another one writes: it is woken, in the order in which they came."""
    entries = [machines.machine().open("a.rate", "it") for _ in range(4)]
    first, order, queue = threading.Event(), list[int](), "hosting:a.rate.queue"

    def write(number: int) -> None:
        def change(value: bytes, now: float) -> tuple[bytes, int, list[str]]:
            order.append(number)
            if number == 0:
                first.wait(5)
            return counted(value, now)

        entries[number].update(change, 0.0)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for number, thread in enumerate(threads):
        thread.start()
        while number and machines.connection.llen(queue) < number:
            time.sleep(0.001)
        while not order:
            time.sleep(0.001)
    first.set()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2, 3]
    assert entries[0].update(lambda value, now: (value, value, []), 0.0) == b"4"


def test_who_is_named_by_a_change_is_woken(machines: Machines) -> None:
    machines.runs = True
    one, other = machines.machine(), machines.machine()
    assert not one.pause("a.rate.7.1", 0.01)
    other.open("a.rate", "it").update(lambda value, now: (b"1", None, ["a.rate.7.1"]), 0.0)
    assert one.pause("a.rate.7.1", 5)
    assert not one.pause("a.rate.7.1", 0.01)


# --- locks


def test_a_lock_has_one_holder_on_all_machines(machines: Machines) -> None:
    one, other = machines.machine(), machines.machine()
    with held(one):
        with pytest.raises(LockTimeout, match=r"^it: another process that shares this store is working"):
            held(other).__enter__()
        with held(other, "something else"):
            pass
    with held(other):
        pass


def test_a_waiter_is_woken_when_the_lock_is_free(machines: Machines) -> None:
    machines.runs = True
    one, other = machines.machine(), machines.machine()
    waiting, got = threading.Event(), threading.Event()

    def wait() -> None:
        with other.lock("it", on_wait=waiting.set):
            got.set()

    thread = threading.Thread(target=wait)
    with held(one):
        thread.start()
        assert waiting.wait(10)
        assert not got.is_set()
    assert got.wait(10)
    thread.join(10)


def test_the_lock_of_a_process_that_was_killed_ends(machines: Machines) -> None:
    killed, other = machines.machine(), machines.machine()
    never_released = held(killed)
    never_released.__enter__()
    for seconds in (LEASE_SECONDS - 1, 0.9996):  # less than a millisecond is left
        machines.wait(seconds)
        with pytest.raises(LockTimeout):
            held(other).__enter__()
    machines.wait(0.1)
    with held(other):
        pass
    held_leases.set(())


def test_a_lock_lasts_while_its_process_renews_it(machines: Machines) -> None:
    one, other = machines.machine(), machines.machine()
    with held(one):
        for _ in range(10):
            machines.wait(LEASE_SECONDS / 4)
            one.beat()
            with pytest.raises(LockTimeout):
                held(other).__enter__()
        assert time_to_write(30) == LEASE_SECONDS - MARGIN_SECONDS


def test_a_write_ends_before_the_lease_does_or_is_not_sent(machines: Machines) -> None:
    store = machines.machine()
    assert time_to_write(30) == float("inf")
    with held(store):
        assert time_to_write(30) == LEASE_SECONDS - MARGIN_SECONDS
        machines.wait(20)
        assert time_to_write(30) == LEASE_SECONDS - MARGIN_SECONDS - 20
        machines.wait(6)
        with pytest.raises(LeaseLost, match="held up for longer than its lock"):
            time_to_write(30)
    assert time_to_write(30) == float("inf")


def test_a_lease_that_another_had_meanwhile_is_lost_for_good(machines: Machines) -> None:
    stopped, other = machines.machine(), machines.machine()
    with held(stopped):
        machines.wait(LEASE_SECONDS + 1)
        with held(other):
            pass
        stopped.beat()
        with pytest.raises(LeaseLost):
            time_to_write(1)
    with held(other), pytest.raises(LockTimeout):
        held(stopped).__enter__()


def test_a_holder_whose_lease_has_ended_does_not_free_the_next_ones(machines: Machines) -> None:
    stopped, other, third = (machines.machine() for _ in range(3))
    with held(stopped):
        machines.wait(LEASE_SECONDS + 1)
        next_one = held(other)
        next_one.__enter__()
    with pytest.raises(LockTimeout):
        held(third).__enter__()
    next_one.__exit__(None, None, None)


def test_a_server_that_was_started_again_gives_no_lock_while_an_old_one_may_be_believed_in(
    machines: Machines,
) -> None:
    one, other = machines.machine(), machines.machine()
    with held(one):
        machines.started()
        with pytest.raises(LockTimeout):
            held(other).__enter__()
        machines.wait(LEASE_SECONDS - 1)
        with pytest.raises(LockTimeout):
            held(other).__enter__()
        machines.wait(2)
        with pytest.raises(LeaseLost):
            time_to_write(1)
        with held(other):
            pass


# --- processes


def test_a_process_lives_while_it_says_so(machines: Machines) -> None:
    one, other = machines.machine(), machines.machine()
    assert one.process != other.process
    assert one.process < 2**53  # JSON has no larger whole numbers everywhere
    assert other.living()(one.process)
    machines.wait(LEASE_SECONDS - 1)
    other.beat()
    machines.wait(2)
    assert not other.living()(one.process)
    assert other.living()(other.process)
    one.open("a.rate", "it").update(counted, 0.0)  # whoever uses the rate limit lives
    assert other.living()(one.process)


def test_a_forked_process_is_another_one_and_holds_nothing(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = machines.machine()
    before = store.process
    with held(store):
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert store.process != before
        assert store._leases == set()


# --- a server that is gone


@pytest.fixture
def gone(machines: Machines) -> Redis:
    store = machines.machine()
    machines.server.connected = False
    return store


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.read("a"),
        lambda store: store.write("a", b""),
        lambda store: store.forget("a"),
        lambda store: store.names("*"),
        lambda store: store.living(),
        lambda store: store.pause("a", 1),
        lambda store: store.open("a", "it").update(counted, 0.0),
        lambda store: held(store).__enter__(),
    ],
    ids=["read", "write", "forget", "names", "living", "pause", "update", "lock"],
)
def test_without_its_server_a_store_says_so_and_what_to_do(
    gone: Redis, ask: Callable[[Redis], object]
) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        ask(gone)
    message = str(caught.value)
    assert message.startswith("the shared store redis://store.example.com:6400 cannot be used: ")
    assert "Next: " in message
    assert "hunter2" not in message


def test_a_server_that_gave_no_answer_is_asked_again_after_some_seconds(
    gone: Redis, machines: Machines
) -> None:
    with pytest.raises(StoreUnavailable) as first:
        gone.read("a")
    machines.server.connected = True
    with pytest.raises(StoreUnavailable) as again:
        gone.read("a")
    assert str(again.value) == str(first.value)  # with the reason
    machines.wait(5)
    assert gone.read("a") is None


def test_a_message_of_the_server_does_not_show_the_password(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = machines.machine()

    def refuse(name: str) -> bytes:
        raise redis.ResponseError(f"WRONGPASS for {name}: hunter2\nis wrong")

    monkeypatch.setattr(store._server, "get", refuse)
    with pytest.raises(StoreUnavailable, match="WRONGPASS for hosting:a: … is wrong") as caught:
        store.read("a")
    assert caught.value.__cause__ is None


def test_a_beat_without_a_server_stops_nothing(gone: Redis) -> None:
    gone.beat()


# --- which store it is


def test_without_an_address_it_is_the_files_of_this_machine() -> None:
    assert store_at(None) == Files()


def test_a_process_has_one_store_at_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store, "_stores", {})
    assert store_at(URL) is store_at(Secret(URL.reveal()))
    assert store_at(URL) is not store_at(Secret("redis://127.0.0.1:1"))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store, "_stores", {})
    monkeypatch.setitem(__import__("sys").modules, "redis", None)
    with pytest.raises(ConfigurationError, match=r"pip install .*\[redis\]"):
        store_at(URL)


def test_nothing_of_a_store_shows_its_password(machines: Machines) -> None:
    store = machines.machine()
    assert "hunter2" not in repr(store) + str(vars(store)) + repr(redis_store._stores)


def test_a_server_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store, "_ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        store = Redis(Secret(f"redis://127.0.0.1:{hung.getsockname()[1]}"))
        with pytest.raises(StoreUnavailable):
            store.read("it")
        hung.settimeout(0.1)
        hung.accept()[0].close()
        with pytest.raises(TimeoutError):
            hung.accept()
