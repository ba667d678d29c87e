"""The state file: what is written, and what is read back."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.emulator import log_redaction
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.persistence import EmulatorStateFile, UnreadableStateFile, open_state
from pulumi_hosting.emulator.price_list import CATALOG
from pulumi_hosting.emulator.store import Store
from tests.emulator.calls import CALLS
from tests.support.account import Account

SERVER = {"tariff_id": 1, "os": "debian-12"}


def test_a_state_file_holds_no_password(tmp_path: Path) -> None:
    state = tmp_path / "state"
    clock = Clock(manual=True, start=1_800_000_000.0)
    state_file, _ = open_state(state, clock)
    account = Account(clock=clock, persistence=state_file)
    created = account.order()
    account.order(password="Canary-0123")
    server = created["server"]["id"]
    account.fault({"panel_timeout": "active"})
    account.api("POST", "/servers", {**SERVER, "password": "Canary-0123"})
    reset = account.api("POST", f"/servers/{server}/actions/reset-password").json()["password"]
    reinstalled = account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "debian-12"}).json()[
        "root_password"
    ]
    account.api("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "epp-canary"})
    state_file.close()
    for file in tmp_path.iterdir():
        for secret in (created["root_password"], reset, reinstalled, "Canary-0123", "epp-canary"):
            assert secret.encode() not in file.read_bytes()


@pytest.mark.parametrize("operation", CALLS)
def test_a_store_read_from_its_file_equals_the_one_written(operation: str, tmp_path: Path) -> None:
    """Every change of an operation is written: no row is changed in place without notice."""
    clock = Clock(manual=True, start=1_800_000_000.0)
    state_file, _ = open_state(tmp_path / "state", clock)
    account = Account(clock=clock, persistence=state_file)
    account.core.store.ip_delay = account.core.store.provisioning_delay = 60
    CALLS[operation](account)
    account.advance(10)
    state_file.close()
    again, read = open_state(tmp_path / "state", clock)
    assert read is not None
    written = account.core.store
    assert _columns(read) == _columns(written)
    assert [log_redaction.logged_request(row) for row in read.requests.values()] == [
        log_redaction.logged_request(row) for row in written.requests.values()
    ]
    assert (read.counters, read.windows, read.service) == (written.counters, written.windows, written.service)
    assert again.load(Clock(manual=True)) is not None
    again.close()


def _columns(store: Store) -> dict[str, dict[int, dict[str, Any]]]:
    """The rows by kind, without the requests: the file has them masked."""
    return {
        kind: {id: row.columns() for id, row in table.items()}
        for kind, table in store.tables.items()
        if kind != "requests"
    }


class Written:
    """Saves to a state file, and keeps the kinds of the rows of the last save that changed any."""

    def __init__(self, file: EmulatorStateFile) -> None:
        self._file = file
        self.kinds: list[str] = []

    def save(self, store: Store, clock: Clock) -> None:
        self.kinds = sorted(kind for kind, _ in store.changed) or self.kinds
        self._file.save(store, clock)


def test_a_save_writes_the_rows_that_changed(tmp_path: Path) -> None:
    clock = Clock(manual=True, start=1_800_000_000.0)
    state_file, _ = open_state(tmp_path / "state", clock)
    written = Written(state_file)
    account = Account(clock=clock, persistence=written)
    servers = [account.server() for _ in range(3)]
    assert account.api("GET", "/servers").status_code == 200
    assert written.kinds == ["keys", "requests"]  # the time of its last use
    assert account.api("POST", f"/servers/{servers[0]}/actions/power", {"action": "stop"}).status_code == 202
    assert written.kinds == ["keys", "requests", "servers"]
    account.control("POST", "/reset", {})
    catalog = [kind for kind, rows in CATALOG.items() for _ in rows]
    assert written.kinds == sorted(["accounts", "keys", "keys", *catalog])
    state_file.close()


@pytest.mark.parametrize("body", [{}, {"name": "web"}, "5", None])
def test_a_body_is_shown_as_it_was_sent_after_a_restart(body: object, tmp_path: Path) -> None:
    clock = Clock(manual=True, start=1_800_000_000.0)
    state_file, _ = open_state(tmp_path / "state", clock)
    account = Account(clock=clock, persistence=state_file)
    account.api("POST", "/servers", body)
    state_file.close()
    again, read = open_state(tmp_path / "state", clock)
    assert read is not None
    assert log_redaction.logged_request(read.requests[1])["body"] == body
    again.close()


def test_what_could_not_be_saved_is_saved_later(tmp_path: Path) -> None:
    clock = Clock(manual=True, start=1_800_000_000.0)
    state_file, _ = open_state(tmp_path / "state", clock)
    account = Account(clock=clock, persistence=state_file)
    account.core.store.service.routes["broken"] = object()  # type: ignore[assignment]  # is not JSON
    assert account.api("POST", "/servers", SERVER).status_code == 500
    del account.core.store.service.routes["broken"]
    assert account.api("GET", "/me").status_code == 200
    state_file.close()
    again, read = open_state(tmp_path / "state", clock)
    assert read is not None
    assert _columns(read) == _columns(account.core.store)
    assert [row.status for row in read.requests.values()] == [500, 200]
    assert len(read.servers) == 1
    again.close()


def test_clocks_in_a_state_file(tmp_path: Path) -> None:
    """A real clock keeps its offset, a manual one its time; a state file can change from one to the other."""
    state = tmp_path / "state"

    def opened(manual: bool) -> Clock:
        from pulumi_hosting.emulator.core import Core

        clock = Clock(manual=manual, start=7.0 if state.exists() else None, source=lambda: 1000.0)
        state_file, store = open_state(state, clock)
        core = Core(clock=clock, loaded=store, persistence=state_file)
        core.advance(500)
        state_file.close()
        return clock

    kinds = (False, False, True, True, False)
    assert [opened(manual).now() for manual in kinds] == [1500.0, 2000.0, 2500.0, 3000.0, 3500.0]


def test_a_state_file_of_another_format(tmp_path: Path) -> None:
    state = tmp_path / "state"
    open_state(state, Clock())[0].close()
    with sqlite3.connect(state) as connection:
        connection.execute("INSERT INTO rows VALUES ('meta', 0, '{\"format\": 99}')")
    connection.close()
    with pytest.raises(UnreadableStateFile, match="its format is 99"):
        open_state(state, Clock())
    with sqlite3.connect(state) as connection:
        connection.execute("UPDATE rows SET text = '[1]'")
    connection.close()
    with pytest.raises(UnreadableStateFile, match="does not hold"):
        open_state(state, Clock())


def test_a_state_file_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(UnreadableStateFile, match="No such file or directory"):
        open_state(tmp_path / "missing" / "state", Clock())


def test_what_was_deleted_from_the_catalog_does_not_come_back(tmp_path: Path) -> None:
    clock = Clock(manual=True, start=1_800_000_000.0)
    state_file, _ = open_state(tmp_path / "state", clock)
    account = Account(clock=clock, persistence=state_file)
    for zone in account.objects("zones"):
        account.control("DELETE", f"/zones/{zone['id']}")
    state_file.close()
    again, read = open_state(tmp_path / "state", clock)
    again.close()
    assert read is not None
    assert (read.zones, len(read.images)) == ({}, len(CATALOG["images"]))
