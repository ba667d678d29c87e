"""The snapshot of the account: asked for once, own writes applied, never older than its user allows."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.results import Damaged
from pulumi_hosting.client.shared_store import Files
from pulumi_hosting.session.account_snapshot import (
    ORDERS_AND_SERVERS,
    AccountSnapshot,
    Change,
    InMemory,
    Storage,
)
from pulumi_hosting.session.snapshot_files import SnapshotFiles
from tests.support.waiting import HANG_SECONDS

Make = Callable[[], Storage]


def server(id: int, **fields: Any) -> m.Server:
    return m.Server.model_validate({"id": id, "name": f"web-{id}", "status": "active", **fields})


def listed(*servers: Any) -> dict[str, list[Any]]:
    return {"list_orders": [], "list_servers": list(servers)}


def set_to(row: m.Server) -> Change:
    return Change("set", ORDERS_AND_SERVERS, "list_servers", str(row.id), row)


@pytest.fixture(params=["memory", "files"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes the storage, each time as another process sees it; in memory there is one."""
    if request.param == "files":
        return lambda: SnapshotFiles(Files(tmp_path), lambda: "account")
    memory = InMemory()
    return lambda: memory


class Asked:
    """Counts how often the account was asked. ``now`` is moved by hand."""

    def __init__(self, storage: Storage, *servers: Any) -> None:
        self.snapshot, self.servers = AccountSnapshot(storage), list(servers)
        self.now, self.count = 0.0, 0

    def ask(self) -> dict[str, list[Any]]:
        self.count += 1
        return listed(*self.servers)

    def __call__(
        self, max_age: float = 30.0, again: Callable[[str, str], Any] = lambda *_: None
    ) -> list[Any]:
        return self.snapshot.get(ORDERS_AND_SERVERS, self.ask, lambda: self.now, max_age, again)[
            "list_servers"
        ]


def test_own_writes_are_applied_and_renew_nothing(make: Make) -> None:
    """Another process sees them too. Neither they nor reads make the snapshot younger."""
    one, other = Asked(make(), server(1), server(2)), Asked(make())
    assert [row.id for row in one()] == [1, 2]
    one.now = other.now = 29.0
    one.snapshot.apply(set_to(server(3)))
    one.snapshot.apply(set_to(server(2, name="renamed")))
    one.snapshot.apply(Change("delete", ORDERS_AND_SERVERS, "list_servers", "1"))
    for asked in (one, other):
        assert [(row.id, row.name) for row in asked()] == [(3, "web-3"), (2, "renamed")]
    one.now = 31.0
    assert [row.id for row in one()] == [1, 2]
    assert (one.count, other.count) == (2, 0)


def test_who_allows_more_sees_what_is_older(make: Make) -> None:
    asked = Asked(make(), server(1))
    asked()
    asked.now = 59.0
    asked(60.0)
    assert asked.count == 1
    asked(30.0)
    assert asked.count == 2


def test_what_is_in_doubt_is_read_again_once(make: Make) -> None:
    asked, again = Asked(make(), server(1), server(2)), list[tuple[str, str]]()

    def read(operation: str, key: str) -> Any:
        again.append((operation, key))
        return server(1, status="stopped") if key == "1" else None

    asked()
    for key in ("1", "2"):
        asked.snapshot.apply(Change("doubt", ORDERS_AND_SERVERS, "list_servers", key))
    assert asked.snapshot.row(ORDERS_AND_SERVERS, "list_servers", "1", 0.0, 30.0) is None
    for _ in range(2):
        assert [(row.id, row.status) for row in asked(again=read)] == [(1, "stopped")]
    assert again == [("list_servers", "1"), ("list_servers", "2")]
    assert asked.count == 1


def test_what_is_forgotten_is_asked_for_again(make: Make) -> None:
    asked = Asked(make(), server(1))
    asked()
    asked.snapshot.forget(ORDERS_AND_SERVERS)
    asked()
    assert asked.count == 2


def test_a_write_while_the_account_is_asked_is_not_lost(make: Make) -> None:
    asked, writer = Asked(make()), AccountSnapshot(make())
    plain = asked.ask

    def ask() -> dict[str, list[Any]]:
        answer = plain()
        writer.apply(set_to(server(7)))  # the answer is from before it
        return answer

    asked.ask = ask  # type: ignore[method-assign]  # another ask for this test
    assert [row.id for row in asked()] == [7]
    assert [row.id for row in asked()] == [7]
    assert asked.count == 1


def test_what_is_forgotten_while_it_is_asked_for_is_asked_for_again(make: Make) -> None:
    asked, writer = Asked(make(), server(1)), AccountSnapshot(make())
    plain = asked.ask

    def ask() -> dict[str, list[Any]]:
        writer.forget(ORDERS_AND_SERVERS)
        return plain()

    asked.ask = ask  # type: ignore[method-assign]  # another ask for this test
    assert [row.id for row in asked()] == [1]
    asked()
    assert asked.count == 2


def test_a_failure_is_not_remembered(make: Make) -> None:
    asked = Asked(make(), server(1))

    def fail() -> dict[str, list[Any]]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asked.snapshot.get(ORDERS_AND_SERVERS, fail, lambda: 0.0, 30.0)
    assert [row.id for row in asked()] == [1]


def test_sixteen_askers_wait_for_one_answer(make: Make) -> None:
    everybody, count, answers = threading.Barrier(16), [0], list[int]()

    def ask() -> dict[str, list[Any]]:
        count[0] += 1
        return listed(server(1))

    def work() -> None:
        snapshot = AccountSnapshot(make())
        everybody.wait(HANG_SECONDS)
        answers.append(snapshot.get(ORDERS_AND_SERVERS, ask, lambda: 0.0, 30.0)["list_servers"][0].id)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert answers == [1] * 16
    assert count == [1]


def test_an_answer_that_was_asked_for_after_the_call_is_new_enough(make: Make) -> None:
    """Of those who want to know what is there now, one asks and those who wait share the answer."""
    one, other = Asked(make(), server(1)), Asked(make(), server(1), server(2))
    one()
    times = iter([5.0, 7.0])

    def now() -> float:
        called = next(times)
        if called == 5.0:  # another process asks while this one waits for it
            other.now = 6.0
            other(0.0)
        return called

    assert [row.id for row in one.snapshot.get(ORDERS_AND_SERVERS, one.ask, now, 0.0)["list_servers"]] == [
        1,
        2,
    ]
    assert (one.count, other.count) == (1, 1)
    one.now = 8.0
    one(0.0)
    assert one.count == 2


# --- files


def test_a_list_with_a_damaged_object_is_no_proof_for_others(tmp_path: Path) -> None:
    damaged = Damaged("list_servers", 2, "no name")
    one = Asked(SnapshotFiles(Files(tmp_path), lambda: "account"), server(1), damaged)
    assert one()[1] == damaged
    other = Asked(SnapshotFiles(Files(tmp_path), lambda: "account"), server(1))
    # as in a process of its own, which has read nothing yet
    SnapshotFiles._read.clear()
    assert [row.id for row in other()] == [1]
    assert other.count == 1


def test_files_hold_what_is_needed_and_no_secret(tmp_path: Path) -> None:
    """Unknown fields may be secrets of a later version. No other user can read the files."""
    shown = server(
        1,
        notes="free text",
        created_at=datetime(2029, 4, 15, 8, 0, tzinfo=UTC),
        billing={"cycle": "monthly", "recurring_amount": Decimal("5.00"), "canary_nested": "canary-1"},
        root_password="canary-2",
        canary={"auth_code": "canary-3"},
    )
    asked = Asked(SnapshotFiles(Files(tmp_path), lambda: "vk_live_canary-4"), shown)
    asked()
    asked.snapshot.apply(set_to(server(2, whsec="canary-5")))
    files = [path for path in tmp_path.iterdir() if path.suffix == ".json"]
    assert len(files) == 1
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
        assert "canary" not in path.name + path.read_text(encoding="utf-8"), path
    SnapshotFiles._read.clear()
    (second, first) = Asked(SnapshotFiles(Files(tmp_path), lambda: "vk_live_canary-4"))()
    assert (second.id, first.notes, first.created_at) == (2, "free text", shown.created_at)
    assert first.billing is not None
    assert first.billing.recurring_amount == Decimal("5.00")


def test_accounts_and_rights_are_told_apart(tmp_path: Path) -> None:
    counts = []
    for scope in ("1 live servers:read", "1 test servers:read", "1 live", "1 live servers:read"):
        asked = Asked(SnapshotFiles(Files(tmp_path), lambda scope=scope: scope), server(1))  # type: ignore[misc]  # bound now
        asked()
        counts.append(asked.count)
    assert counts == [1, 1, 1, 0]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "{broken", '{"at": 1}'])
def test_a_file_that_says_nothing_is_asked_for_again(tmp_path: Path, text: str) -> None:
    asked = Asked(SnapshotFiles(Files(tmp_path), lambda: "account"), server(1))
    asked()
    (path,) = tmp_path.glob("*.json")
    path.write_text(text)
    assert [row.id for row in asked()] == [1]
    assert asked.count == 2


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    asked = Asked(SnapshotFiles(Files(tmp_path), lambda: "account"), server(1))
    asked()
    (path,) = tmp_path.glob("*.json")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        asked()
