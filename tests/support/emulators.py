"""Emulators for tests: one process per set of options and session, with a fresh account for each test."""

import json
import os
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pulumi_hosting.emulator import Running, running
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.warm_python import WarmPython

_UNDISTURBED = timedelta(seconds=30)
"""A real clock that is further from this machine's was moved by a test."""


@dataclass
class _Started:
    emulator: Running
    began: datetime
    """Its time when it started, by its own clock."""


class EmulatorPool:
    """``get`` starts an emulator, or resets the one that has the same options. ``close`` ends all."""

    def __init__(self, python: WarmPython) -> None:
        self._python = python
        self._started: dict[str, _Started] = {}
        self._processes, self._pids = ExitStack(), list[int]()

    def start(self, **options: Any) -> Running:
        """An emulator that no other test gets; it ends with the pool. For tests that leave requests under
        way behind.
        """
        with self._python.substituted(), pytest.MonkeyPatch.context() as environ:
            environ.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # the tests in process cover it
            emulator = self._processes.enter_context(running(**options))
        self._pids.append(emulator.pid)
        return emulator

    def get(self, **options: Any) -> Running:
        """An emulator with a fresh account, its clock where it was when the emulator started."""
        kind = json.dumps(options, sort_keys=True, default=str)
        known = self._started.get(kind)
        if known is None or not self._is_reset(known, manual=options.get("clock") == "manual"):
            emulator = self.start(**options)
            known = self._started[kind] = _Started(emulator, _now(emulator))
        return known.emulator

    def close(self) -> None:
        """End all at once: each waits for its connections."""
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        self._processes.close()

    @staticmethod
    def _is_reset(known: _Started, *, manual: bool) -> bool:
        """Reset it. False where a reset is not enough: the emulator has ended, or its clock was moved."""
        try:
            now = _now(known.emulator)
            control = Control(known.emulator.control_url)
            control("POST", "/reset", {})
            control("DELETE", "/faults")
        except OSError:
            return False
        return now == known.began if manual else abs(now - datetime.now(UTC)) < _UNDISTURBED


def _now(emulator: Running) -> datetime:
    return datetime.fromisoformat(Control(emulator.control_url)("POST", "/clock", {"advance": 0})["now"])
