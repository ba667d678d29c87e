"""A provider plugin as a process of its own."""

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from ..errors import PluginError

START_TIMEOUT = 60.0
STOP_TIMEOUT = 5.0

LineSink = Callable[[str, bool], None]
"""Takes a line that a process printed, and whether it was on stderr."""


class PluginProcess:
    """A started provider.

    It has its own process group: it finishes its work after Ctrl-C and when the engine is killed. Its
    standard input is a pipe to which nothing is written, and which ends with the engine.
    """

    def __init__(
        self, name: str, command: list[str], cwd: Path, environ: Mapping[str, str], on_line: LineSink
    ) -> None:
        self.name = name
        try:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=dict(environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise PluginError(
                f"could not start the provider plugin {name}: {error.strerror}: {command[0]}"
            ) from None
        first: queue.Queue[str] = queue.Queue()
        self._tail: list[str] = []
        self._interrupted = False
        self._readers = [
            threading.Thread(target=self._read, args=(stream, is_error, first, on_line), daemon=True)
            for stream, is_error in ((self._process.stdout, False), (self._process.stderr, True))
        ]
        for reader in self._readers:
            reader.start()
        self.port = self._wait_for_port(first)

    def _read(self, stream: IO[bytes], is_error: bool, first: queue.Queue[str], on_line: LineSink) -> None:
        waiting = not is_error
        with stream:
            for raw in stream:
                line = raw.decode(errors="replace").rstrip("\r\n")
                if waiting:
                    first.put(line)
                    waiting = False
                elif line:
                    self._tail = [*self._tail[-20:], line]
                    if not self._interrupted:
                        on_line(line, is_error)
        if waiting:
            first.put("")

    def _wait_for_port(self, first: queue.Queue[str]) -> int:
        try:
            line = first.get(timeout=START_TIMEOUT)
        except queue.Empty:
            self.stop()
            raise PluginError(
                f"the provider plugin {self.name} printed no port within {START_TIMEOUT:.0f} s"
            ) from None
        try:
            return int(line)
        except ValueError:
            self.stop()
            said = (
                f": {self._tail[-1]}"
                if self._tail
                else (f": it printed {line!r} instead of a port" if line else "")
            )
            raise PluginError(f"the provider plugin {self.name} did not start{said}") from None

    def interrupt(self) -> None:
        """Ask it to end, once: a second SIGINT would interrupt its clean-up."""
        if not self._interrupted and self._process.poll() is None:
            self._interrupted = True
            # In the background job of a script this process and its children ignore SIGINT.
            ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM if ignored else signal.SIGINT)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        self.interrupt()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for reader in self._readers:
            reader.join(1)
        if self._process.stdin is not None:
            self._process.stdin.close()
