"""Processes of Linux: who started whom, who owns a connection, and how a test kills them."""

import os
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.support.waiting import wait_until

_PAUSE_SECONDS = 0.001
_MOST_LOOKS = 100_000
"""How often a connection is looked at before it counts as not read."""


def children(pid: int) -> list[int]:
    """The processes that the process started."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text(encoding="ascii").split()]
        except OSError:
            continue  # the thread ended meanwhile
    return found


def descendants(pid: int) -> list[int]:
    """Every process below ``pid``, whatever group it is in."""
    found = children(pid)
    for parent in found:  # grows while it is walked
        found += children(parent)
    return found


def stop(pid: int) -> list[int]:
    """SIGSTOP to the process and to all below it, from the top, so that none is born meanwhile; who they
    are.
    """
    found = [pid]
    for member in found:
        send(signal.SIGSTOP, [member])
        found += children(member)
    return found


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """The signal to each that lives."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def kill(pids: Iterable[int]) -> None:
    """SIGKILL to each that lives."""
    send(signal.SIGKILL, pids)


def wait_for_death(pids: Iterable[int]) -> None:
    """Return when they have ended: their files and connections are closed."""
    left = list(pids)
    wait_until(lambda: not any(_runs(pid) for pid in left))


def owner(port: int, among: Sequence[int]) -> int | None:
    """The process whose end of a connection on this machine has this port; of several that hold it, the last
    of ``among``.
    """
    entry = _connection(port)
    if entry is None:
        return None
    name = f"socket:[{entry[9]}]"
    return next((pid for pid in reversed(among) if name in _open_files(pid)), None)


def wait_until_read(port: int) -> None:
    """Return when the process with this port has read everything that was sent to it."""
    for _ in range(_MOST_LOOKS):
        entry = _connection(port)
        if entry is None or int(entry[4].partition(":")[2], 16) == 0:
            return
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("the process does not read its answer")


def _connection(port: int) -> list[str] | None:
    """The line of the connection in the kernel's table."""
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if int(fields[1].partition(":")[2], 16) == port and fields[9] != "0":
            return fields
    return None


def _open_files(pid: int) -> list[str]:
    found = []
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            found.append(os.readlink(entry.path))
    except OSError:
        pass  # it ended, or closed a file, meanwhile
    return found


def _runs(pid: int) -> bool:
    """Whether the process runs: neither gone, nor ended and waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
