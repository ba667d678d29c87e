"""The events of a receiver on disk (SQLite): each is kept until it is acknowledged, and its id is remembered
after that."""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from pulumi_hosting.client.exceptions import ConfigurationError, HostingError

# The service keeps deliveries that no receiver accepted for 30 days, and can send them again by hand until
# then.
REMEMBER_SECONDS = 31 * 86400
MAX_PENDING = 10_000


class StoreFull(HostingError):
    """As many events are pending as the store holds."""


class StoreInUse(OSError):
    """Another process uses the state file."""


class StoredEvent(NamedTuple):
    """A pending event. ``number`` grows with each event received; ``headers`` is JSON; ``received_at`` is in
    unix seconds."""

    number: int
    id: str
    body: bytes
    headers: str
    via: str
    received_at: float


class EventStore:
    """Events by id. Every change is on disk when its method returns. For one process at a time, and one
    thread.

    ``now``: the clock, in unix seconds. ``max_pending``: how many events may be pending.
    Raises ``ConfigurationError`` when the file cannot be used, ``StoreInUse`` while another process uses it.
    """

    poll_seconds: ClassVar[float | None] = None
    """How often to look for events that another process has added; None if none does."""

    def __init__(
        self, path: Path, *, now: Callable[[], float] = time.time, max_pending: int = MAX_PENDING
    ) -> None:
        self._now, self._max_pending = now, max_pending
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Created before SQLite opens it: SQLite's journal files get the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            path.chmod(0o600)
        except OSError as error:
            raise ConfigurationError(
                f"state_file cannot be written: {path}: {error.strerror}. Next: give another path"
            ) from None
        self._db = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # until the process ends
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(
                """
                BEGIN IMMEDIATE;
                CREATE TABLE IF NOT EXISTS about (born REAL NOT NULL);
                CREATE TABLE IF NOT EXISTS events (
                    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, body BLOB,
                    headers TEXT, via TEXT NOT NULL,
                    received_at REAL NOT NULL, seen_at REAL NOT NULL, done_at REAL
                );
                CREATE INDEX IF NOT EXISTS waiting ON events (number) WHERE done_at IS NULL;
                COMMIT;
                """
            )
            self._db.execute("INSERT INTO about SELECT ? WHERE NOT EXISTS (SELECT 1 FROM about)", (now(),))
        except sqlite3.Error as error:
            self._db.close()
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreInUse(f"another process uses {path}") from None
            raise ConfigurationError(
                f"state_file is not the state file of a receiver, or is damaged: {path}: "
                f"{error}. Next: give another path"
            ) from None

    def close(self) -> None:
        self._db.close()

    @property
    def created_at(self) -> float:
        """When the file was created, in unix seconds."""
        (created_at,) = self._db.execute("SELECT born FROM about").fetchone()
        return float(created_at)

    def add(self, id: str, body: bytes, headers: Mapping[str, str], via: str) -> bool:
        """Keep an event, and return whether it is new. Raises ``StoreFull``, ``sqlite3.Error``."""
        now = self._now()
        if self._db.execute("UPDATE events SET seen_at = ? WHERE id = ?", (now, id)).rowcount:
            return False
        (pending,) = self._db.execute("SELECT count(*) FROM events WHERE done_at IS NULL").fetchone()
        if pending >= self._max_pending:
            raise StoreFull(f"{pending} events are pending")
        self._db.execute(
            "INSERT INTO events (id, body, headers, via, received_at, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
            (id, body, json.dumps(dict(headers)), via, now, now),
        )
        return True

    def knows(self, id: str) -> bool:
        return self._db.execute("SELECT 1 FROM events WHERE id = ?", (id,)).fetchone() is not None

    def next_pending(self, after: int) -> StoredEvent | None:
        """The first pending event with a ``number`` above ``after``."""
        row = self._db.execute(
            "SELECT number, id, body, headers, via, received_at FROM events WHERE done_at IS NULL AND number "
            "> ? ORDER BY number LIMIT 1",
            (after,),
        ).fetchone()
        return None if row is None else StoredEvent(*row)

    def acknowledge(self, id: str) -> None:
        """Mark an event as handled. Only its id stays. Does nothing for an id that is unknown or marked
        already."""
        self._db.execute(
            "UPDATE events SET done_at = ?, body = NULL, headers = NULL WHERE id = ? AND done_at IS NULL",
            (self._now(), id),
        )

    def forget_old(self) -> None:
        """Forget the ids of events that were acknowledged, and not seen again for 31 days."""
        self._db.execute(
            "DELETE FROM events WHERE done_at IS NOT NULL AND seen_at < ?", (self._now() - REMEMBER_SECONDS,)
        )
