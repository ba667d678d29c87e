"""Where the windows of a key are kept: what is read and written, and who has the lock."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic_core import from_json

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import shared_store as stores
from pulumi_hosting.client.rate_limit.state_file import (
    StateFile,
    WindowsInMemory,
    WindowStore,
    memory,
    store_name,
)
from pulumi_hosting.client.rate_limit.windows import KeyWindows
from pulumi_hosting.client.shared_store import OpenFile
from tests.client.support import FakeTime

NAME = "0123456789abcdef"
NOW = 1000.0


@pytest.fixture
def store() -> Iterator[StateFile]:
    made = StateFile(NAME)
    yield made
    made.close()


@pytest.fixture
def path(store: StateFile) -> Path:
    return Path(os.environ["HOSTING_RUNTIME_DIR"]) / f"{NAME}.rate"


def file_of(store: StateFile) -> OpenFile:
    assert isinstance(store._value, OpenFile)
    return store._value


def count(windows: KeyWindows) -> int:
    """Changes the windows, and tells how often."""
    windows.last_number += 1
    return windows.last_number


def last_number(windows: KeyWindows) -> int:
    return windows.last_number


# --- names


def test_a_name_is_a_known_digest_of_key_and_address() -> None:
    # Computed with printf 'rate limit\0https://api.example.com/v1' | openssl dgst -sha256 -hmac vk_live_0123
    known = "a0b2cf40f346776432ec4724f7ff04c7"
    assert store_name(Secret("vk_live_0123"), "https://api.example.com/v1") == known


# --- the file


def test_a_change_is_in_the_file_when_it_returns(store: StateFile, path: Path) -> None:
    assert [store.update(count, NOW) for _ in range(3)] == [1, 2, 3]
    found = from_json(path.read_bytes())
    assert (found["last_number"], found["at"]) == (3, NOW)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_shorter_content_leaves_nothing_of_the_longer_one(store: StateFile, path: Path) -> None:
    store.update(lambda windows: windows.moved.update(a="b" * 500), NOW)
    store.update(lambda windows: windows.moved.clear(), NOW)
    assert from_json(path.read_bytes())["moved"] == {}
    assert store.update(count, NOW) == 1


def test_what_did_not_change_is_not_written(
    store: StateFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.update(count, NOW)
    written: list[bytes] = []
    monkeypatch.setattr(os, "pwrite", lambda file, content, offset: written.append(content))
    store.update(last_number, NOW)
    assert written == []
    store.update(last_number, NOW + 1)
    assert len(written) == 1


def test_a_change_that_fails_changes_nothing_and_frees_the_file(store: StateFile, path: Path) -> None:
    def fail(windows: KeyWindows) -> None:
        windows.last_number = 99
        raise KeyboardInterrupt

    store.update(count, NOW)
    with pytest.raises(KeyboardInterrupt):
        store.update(fail, NOW)
    other = StateFile(NAME)
    assert other.update(count, NOW) == 2
    other.close()


@pytest.mark.parametrize(("now", "expected"), [(NOW - 5, 2), (NOW - 5.5, 1), (NOW + 1e6, 2)])
def test_what_was_written_before_the_machine_was_started_counts_as_empty(
    store: StateFile, now: float, expected: int
) -> None:
    """The clock begins again then."""
    store.update(count, NOW)
    assert store.update(count, now) == expected
    some = WindowsInMemory()
    some.update(count, NOW)
    assert some.update(count, now) == expected


def test_a_closed_file_is_opened_again(store: StateFile, path: Path) -> None:
    store.update(count, NOW)
    opened = file_of(store)._file
    store.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened)
    store.close()
    assert store.update(count, NOW) == 2
    assert path.exists()


def test_the_file_is_closed_with_its_last_user() -> None:
    made = StateFile(NAME)
    opened = file_of(made)._file
    os.fstat(opened)
    assert not os.get_inheritable(opened)
    del made
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened)


def test_a_deleted_file_is_made_again_and_no_other_is_opened(store: StateFile, path: Path) -> None:
    store.update(count, NOW)
    closing = file_of(store)._closing
    store.update(count, NOW)
    assert file_of(store)._closing is closing
    path.unlink()
    assert store.update(count, NOW) == 1
    assert path.exists()


def test_a_link_that_takes_the_place_of_the_file_is_not_followed(
    store: StateFile, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check and the opening."""
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(stores, "refuse_unsafe", lambda path: None)
    with pytest.raises(OSError, match="symbolic"):
        store.update(count, NOW)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_was_closed_by_others_is_closed_all_the_same(store: StateFile) -> None:
    os.close(file_of(store)._file)
    store.close()


def test_a_file_that_is_not_ours_alone_is_refused(store: StateFile, path: Path, tmp_path: Path) -> None:
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="rate"):
        StateFile(NAME)
    assert not (tmp_path / "elsewhere").exists()


def test_another_process_opens_its_own_file(store: StateFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked child: a thread of the parent may hold its lock, and the file's lock is the parent's."""
    store.update(count, NOW)
    before, pid = file_of(store)._file, os.getpid()
    file_of(store)._threads.acquire()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    assert store.update(count, NOW) == 2
    assert file_of(store)._pid == pid + 1
    opened = file_of(store)._file
    assert store.update(count, NOW) == 3
    assert file_of(store)._file == opened
    assert before >= 0


# --- its lock


class Lock:
    """A lock that others hold for some looks."""

    def __init__(self, looks: float) -> None:
        self.looks = looks

    def __call__(self, file: int) -> bool:
        self.looks -= 1
        return self.looks < 0


def waited(store: StateFile, monkeypatch: pytest.MonkeyPatch, looks: float, part: float = 1.0) -> list[float]:
    time, drawn = FakeTime(), bytes([round((part - 0.5) * 510)])
    monkeypatch.setattr(stores, "time", SimpleNamespace(monotonic=time.clock, sleep=time.sleep))
    monkeypatch.setattr("os.urandom", lambda size: drawn)
    monkeypatch.setattr(file_of(store), "_lock", Lock(looks))
    monkeypatch.setattr(file_of(store), "_unlock", lambda file: None)
    try:
        store.update(count, NOW)
    finally:
        waits = time.slept
    return waits


def test_the_pauses_before_a_lock_double_up_to_a_hundredth_of_a_second(
    store: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert waited(store, monkeypatch, 0) == []
    assert waited(store, monkeypatch, 8) == pytest.approx(
        [0.0002, 0.0004, 0.0008, 0.0016, 0.0032, 0.0064, 0.01, 0.01]
    )
    assert waited(store, monkeypatch, 2, part=0.5) == pytest.approx([0.0001, 0.0002])


def test_a_lock_that_a_stopped_process_holds_is_not_waited_for_without_end(
    store: StateFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TimeoutError, match=r"^another process holds the file of the rate limit$"):
        waited(store, monkeypatch, float("inf"))


def test_a_lock_is_looked_at_again_at_the_very_end(store: StateFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "HELD_SECONDS", 0.0)
    assert len(waited(store, monkeypatch, 1)) == 1


def test_the_lock_is_of_the_file_and_does_not_block(store: StateFile) -> None:
    other = StateFile(NAME)
    file = file_of(store)._locked()
    assert not file_of(other)._lock(file_of(other)._file)
    file_of(store)._unlock(file)
    assert file_of(other)._lock(file_of(other)._file)
    file_of(other)._unlock(file_of(other)._file)
    other.close()


# --- the memory of a process


def test_a_process_has_one_memory_under_a_name() -> None:
    assert memory("a") is memory("a")
    assert memory("a") is not memory("b")


def test_what_is_in_memory_stays_until_the_process_ends() -> None:
    some: WindowStore = WindowsInMemory()
    assert [some.update(count, NOW) for _ in range(2)] == [1, 2]
    assert some.update(lambda windows: windows.at, NOW + 1) == NOW + 1
    some.close()
    assert some.update(count, NOW) == 3
