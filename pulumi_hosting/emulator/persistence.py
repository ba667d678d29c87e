"""``--state FILE``: every changed row is written, in one transaction, before the response is sent.

The file holds the API keys and webhook secrets of the emulated accounts, but no root password and no auth
code. It is SQLite without syncs: a killed process loses nothing, a crashed machine may. Only one process can
use it at a time.
"""

import os
import sqlite3
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from pulumi_hosting.emulator import log_redaction
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.rows import ROW_TYPES, Columns, RequestLog, Row
from pulumi_hosting.emulator.store import ServiceSettings, Store

FORMAT = 1
# How long to wait for a process that is just ending to release the file.
LOCK_SECONDS = 1.0


class UnreadableStateFile(Exception):
    """The state file cannot be used; the message is one line for the user."""


def _text(row: Row) -> str:
    columns = log_redaction.masked_request(row) if isinstance(row, RequestLog) else row.columns()
    return to_json(columns).decode()


def _service(settings: Columns) -> ServiceSettings:
    # A file of an earlier version lacks the behaviour variants added since; they keep their defaults.
    return ServiceSettings(**{**settings, "readings": ServiceSettings().readings | settings["readings"]})


class EmulatorStateFile:
    """The rows of a store in a file; a save writes only what changed since the last one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._meta = ""
        self._saved: Store | None = None

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()

    def save(self, store: Store, clock: Clock) -> None:
        rows = [(kind, id, store.tables[kind].get(id)) for kind, id in store.changed]
        gone = [(kind, id) for kind, id, row in rows if row is None]
        changed = [(kind, id, _text(row)) for kind, id, row in rows if row is not None]
        about: Columns = {"format": FORMAT, "service": asdict(store.service)}
        about |= {name: getattr(store, name) for name in ("seed", "start", "counters", "windows", "recent")}
        about |= {name: getattr(clock, name) for name in ("manual", "frozen", "offset")}
        meta = to_json(about).decode()
        with self._connection:
            if store is not self._saved:
                # After a reset: remove the rows of the store before it.
                self._connection.execute("DELETE FROM rows WHERE kind != 'meta'")
            self._connection.executemany("DELETE FROM rows WHERE kind = ? AND id = ?", gone)
            self._connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", changed)
            if meta != self._meta:
                self._connection.execute("INSERT OR REPLACE INTO rows VALUES ('meta', 0, ?)", (meta,))
        self._saved, self._meta = store, meta
        store.changed.clear()

    def load(self, clock: Clock) -> Store | None:
        """The store in the file, or ``None`` for a new file; sets the clock as it was."""
        rows = self._connection.execute("SELECT kind, id, text FROM rows ORDER BY id").fetchall()
        if not rows:
            return None
        texts = {(kind, id): text for kind, id, text in rows}
        meta = from_json(texts["meta", 0])
        if meta["format"] != FORMAT:
            raise UnreadableStateFile(f"its format is {meta['format']}, this version reads {FORMAT}")
        store = Store(meta["seed"], kept=True)
        store.counters.update(meta["counters"])
        store.windows = meta["windows"]
        store.recent, store.start = meta.get("recent", {}), meta.get("start", "")
        store.service = _service(meta["service"])
        readers = {kind: TypeAdapter(row) for kind, row in ROW_TYPES.items()}
        for (kind, id), text in texts.items():
            if kind in readers:
                store.tables[kind][id] = readers[kind].validate_json(text)
        for stored in store.stored.values():
            stored.running = False
        self._saved = store
        store.rebuild()
        store.add_price_list()  # of what a file of an earlier version has no rows
        store.changed.clear()
        clock.resume(manual=meta["manual"], frozen=meta["frozen"], offset=meta["offset"])
        return store


def open_state(path: Path, clock: Clock) -> tuple[EmulatorStateFile, Store | None]:
    """Open or create the file; :class:`UnreadableStateFile` if it is not one of ours or cannot be read."""
    connection: sqlite3.Connection | None = None
    try:
        # It holds API keys and webhook secrets: readable by its owner only.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS rows (kind TEXT, id INTEGER, text TEXT, PRIMARY KEY (kind, id))"
        )
        # Takes the lock now, so that a second emulator on the same file fails at its start.
        connection.execute("DELETE FROM rows WHERE kind = ''")
        connection.commit()
        file = EmulatorStateFile(connection)
        return file, file.load(clock)
    except (sqlite3.Error, ValueError, KeyError, TypeError, OSError, UnreadableStateFile) as error:
        if connection is not None:
            connection.close()
        reason = "it does not hold what the emulator wrote"
        if isinstance(error, sqlite3.Error | UnreadableStateFile | OSError):
            reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableStateFile(
            f"cannot use the state file {path}: {reason}; give another --state, or move the file away"
        ) from error
