"""Other processes: start them as a terminal does, and wait for events of theirs, not for a time."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def interruptible() -> Iterator[None]:
    """Processes started inside end at SIGINT, as in a terminal: a background job of a script ignores it, and
    its children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
