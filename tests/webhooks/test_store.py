"""The state file of a receiver: what it remembers, what it forgets, who may read it."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.webhooks.delivery_store import REMEMBER_SECONDS, EventStore, StoreFull, StoreInUse

DAY = 86400


class Clock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@contextmanager
def opened(path: Path, clock: Clock, max_pending: int = 10) -> Iterator[EventStore]:
    with closing(EventStore(path, now=clock, max_pending=max_pending)) as store:
        yield store


def test_an_acknowledged_event_is_forgotten_31_days_after_it_was_last_seen(state_file: Path) -> None:
    assert REMEMBER_SECONDS >= 31 * DAY
    clock = Clock()
    with opened(state_file, clock) as store:
        for id in ("evt_1", "evt_2", "evt_3"):
            assert store.add(id, b"{}", {}, "delivery")
        store.acknowledge("evt_1")
        store.acknowledge("evt_2")
        clock.now += 20 * DAY
        assert not store.add("evt_2", b"{}", {}, "delivery")  # sent again by hand: its 31 days begin again
        clock.now += 20 * DAY
        store.forget_old()
        assert [store.knows(id) for id in ("evt_1", "evt_2", "evt_3")] == [False, True, True]
        pending = store.next_pending(0)
        assert pending is not None
        assert pending.id == "evt_3"  # a pending event is never forgotten
        clock.now += 12 * DAY
        store.forget_old()
        assert [store.knows(id) for id in ("evt_2", "evt_3")] == [False, True]
    with opened(state_file, clock) as store:
        assert store.created_at == 1_800_000_000.0


def test_numbers_grow_after_the_newest_event_was_forgotten(state_file: Path) -> None:
    """Events are handed over in the order in which they arrived."""
    clock = Clock()
    with opened(state_file, clock) as store:
        store.add("evt_1", b"{}", {}, "delivery")
        first = store.next_pending(0)
        store.acknowledge("evt_1")
        clock.now += 32 * DAY
        store.forget_old()
        store.add("evt_2", b"{}", {}, "delivery")
        second = store.next_pending(0)
        assert first is not None
        assert second is not None
        assert second.number > first.number


def test_a_full_store_takes_no_new_event(state_file: Path) -> None:
    with opened(state_file, Clock(), max_pending=2) as store:
        assert store.add("evt_1", b"{}", {}, "delivery")
        assert store.add("evt_2", b"{}", {}, "delivery")
        with pytest.raises(StoreFull, match="2 events are pending"):
            store.add("evt_3", b"{}", {}, "delivery")
        assert not store.add("evt_1", b"{}", {}, "delivery")
        store.acknowledge("evt_1")
        assert store.add("evt_3", b"{}", {}, "delivery")


def test_a_pending_event_has_what_was_delivered(state_file: Path) -> None:
    clock = Clock()
    with opened(state_file, clock) as store:
        store.add("evt_1", b"one", {"X-Webhook-Id": "evt_1"}, "delivery")
        clock.now += 1
        store.add("evt_2", b"two", {}, "reconciliation")
        first = store.next_pending(0)
        assert first == (1, "evt_1", b"one", '{"X-Webhook-Id": "evt_1"}', "delivery", 1_800_000_000.0)
        assert first is not None
        second = store.next_pending(first.number)
        assert second == (2, "evt_2", b"two", "{}", "reconciliation", 1_800_000_001.0)
        assert store.next_pending(2) is None


def test_no_one_else_may_read_the_file_at_any_moment(
    state_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []

    def chmod(path: Path, mode: int) -> None:
        modes.extend(stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent))
        assert mode == 0o600

    monkeypatch.setattr(Path, "chmod", chmod)
    before = os.umask(0)
    try:
        EventStore(state_file.parent / "deep" / "deeper" / "events").close()
    finally:
        os.umask(before)
    assert modes == [0o600, 0o700]


def test_a_file_in_use_is_not_waited_for(state_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver waits, and reports it."""
    waits: list[float] = []

    def connect(path: Path, *, timeout: float = 5.0, **options: Any) -> sqlite3.Connection:
        waits.append(timeout)
        return sqlite3.Connection(path, timeout=timeout, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    EventStore(state_file).close()
    assert waits == [0.0]


def test_only_the_owner_may_read_the_file(state_file: Path) -> None:
    state_file.parent.mkdir()
    state_file.touch(0o644)
    with opened(state_file, Clock()) as store:
        store.add("evt_1", b"{}", {}, "delivery")
        assert {path.stat().st_mode & 0o777 for path in state_file.parent.iterdir()} == {0o600}


def test_a_file_that_is_in_use(state_file: Path) -> None:
    with opened(state_file, Clock()), pytest.raises(StoreInUse, match="another process uses"):
        EventStore(state_file)
    EventStore(state_file).close()


def test_a_file_that_is_no_state_file(state_file: Path) -> None:
    state_file.parent.mkdir()
    state_file.write_text("not a database, but long enough to be read as one " * 100)
    with pytest.raises(
        ConfigurationError, match="state_file is not the state file of a receiver, or is damaged: /"
    ):
        EventStore(state_file)


def test_a_file_that_cannot_be_written() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"state_file cannot be written: /dev/null/x/events: Not a directory\. "
        r"Next: give another path",
    ):
        EventStore(Path("/dev/null/x/events"))
