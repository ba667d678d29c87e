"""``--state FILE``: every row that changed is written before the answer leaves, in one transaction.

No root password and no auth code is in it; the keys and webhook secrets of the emulated account are, or it could not go on.
The file is SQLite without syncs: a killed process loses nothing, a crashed machine may. One process owns it at a time.
"""

import json
import os
import sqlite3
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from pulumi_hosting.emulator import masking
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.world import ROWS, Exchange, Service, World

FORMAT = 1
# How many younger requests may be answered before an older one that waits for the network.
LONGEST_QUEUE = 64
# How long a file may still be held by a process that is just ending.
LOCK_SECONDS = 1.0


class Unreadable(Exception):
    """The state file cannot be used; the message is one line for a person."""


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(type(value).__name__)


def _dump(value: Any) -> str:
    return json.dumps(value, default=_plain, separators=(",", ":"))


class File:
    """The rows of a world in a file; only what changed since is written again."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._meta = ""
        self._world: World | None = None
        self._last_request: Exchange | None = None

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def save(self, world: World, clock: Clock) -> None:
        changed = [
            (kind, id, _dump(columns))
            for kind, table in world.tables.items()
            for id, row in table.items()
            if (columns := row.take_change()) is not None
        ]
        gone, world.removed = world.removed or [], []
        meta = _dump(
            {
                "format": FORMAT,
                "seed": world.seed,
                "counters": world.counters,
                "windows": world.windows,
                "recent": world.recent,
                "service": asdict(world.service),
                "manual": clock.manual,
                "frozen": clock.frozen,
                "offset": clock.offset,
            }
        )
        with self._connection:
            if world is not self._world:
                # A reset: nothing of the world before it stays.
                self._connection.execute("DELETE FROM rows WHERE kind != 'meta'")
                self._world, self._last_request = world, None
            self._connection.executemany("DELETE FROM rows WHERE kind = ? AND id = ?", gone)
            self._connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", changed)
            self._connection.executemany("INSERT OR REPLACE INTO rows VALUES ('requests', ?, ?)", self._new_requests(world))
            if meta != self._meta:
                self._connection.execute("INSERT OR REPLACE INTO rows VALUES ('meta', 0, ?)", (meta,))
        self._meta = meta

    def _new_requests(self, world: World) -> list[tuple[int, str]]:
        """Requests since the last save, and those before it that got their answer since."""
        since = self._last_request.id if self._last_request is not None else 0
        fresh = []
        for row in reversed(world.requests):
            if row.id < since - LONGEST_QUEUE:
                break
            columns = row.take_change()
            if columns is not None:
                fresh.append((row.id, _dump(masking.columns(columns))))
        self._last_request = world.requests[-1] if world.requests else None
        return fresh

    def load(self, clock: Clock) -> World | None:
        """The world in the file, the clock set as it was; ``None`` for a new file."""
        rows = self._connection.execute("SELECT kind, id, text FROM rows ORDER BY id").fetchall()
        if not rows:
            return None
        by_kind: dict[str, list[tuple[int, str]]] = {}
        for kind, id, text in rows:
            by_kind.setdefault(kind, []).append((id, text))
        meta = json.loads(by_kind["meta"][0][1])
        if meta["format"] != FORMAT:
            raise Unreadable(f"its format is {meta['format']}, this version reads {FORMAT}")
        world = World(meta["seed"])
        world.counters, world.windows, world.recent = meta["counters"], meta["windows"], meta.get("recent", {})
        world.service = Service(**meta["service"])
        # A file of an earlier version does not know the readings that came since.
        world.service.readings = {**Service().readings, **world.service.readings}
        for kind in ROWS:
            for id, text in by_kind.get(kind.kind, []):
                row = kind.load(json.loads(text))
                row.take_change()
                world.tables[kind.kind][id] = row
        for _, text in by_kind.get("requests", []):
            exchange = Exchange.load(json.loads(text))
            exchange.take_change()
            world.requests.append(exchange)
        world.removed = []
        self._world = world
        self._last_request = world.requests[-1] if world.requests else None
        world.rebuild()
        if clock.manual and meta["manual"]:
            clock.frozen = meta["frozen"]
        elif clock.manual:
            clock.frozen = float(int(clock.frozen + meta["offset"]))
        else:
            clock.offset = meta["offset"]
        return world


def open_state(path: Path, clock: Clock) -> tuple[File, World | None]:
    """Open or make the file; :class:`Unreadable` when it is something else, or cannot be read."""
    connection: sqlite3.Connection | None = None
    try:
        # It holds API keys and webhook secrets: nobody else may read it.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("CREATE TABLE IF NOT EXISTS rows (kind TEXT, id INTEGER, text TEXT, PRIMARY KEY (kind, id))")
        # Takes the lock, so that a second emulator on the same file fails at once and not at its first request.
        connection.execute("DELETE FROM rows WHERE kind = ''")
        connection.commit()
        file = File(connection)
        return file, file.load(clock)
    except (sqlite3.Error, ValueError, KeyError, TypeError, OSError, Unreadable) as error:
        if connection is not None:
            connection.close()
        reason = str(error) if isinstance(error, sqlite3.Error | Unreadable) else "it does not hold what the emulator wrote"
        raise Unreadable(f"cannot use the state file {path}: {reason}; give another --state, or move the file away") from error
