"""Waiting for events of other processes, not for a time."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

HANG_SECONDS = 300.0
"""When a test gives up what would hang for good. Less than the 600 s that an interrupted wait would take;
far more than a busy machine does.
"""
_PAUSE_SECONDS = 0.05


def wait_until(condition: Callable[[], object], running: "subprocess.Popen[Any] | None" = None) -> None:
    """Look until ``condition()`` is true. ``running``: the process that brings it about, which must not
    end before.
    """
    began = time.monotonic()
    while not condition():
        assert running is None or running.poll() is None, "the process ended before it happened"
        assert time.monotonic() - began < HANG_SECONDS, "it never happened"
        time.sleep(_PAUSE_SECONDS)
