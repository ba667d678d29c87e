"""Processes whose output is read line by line, provider plugins among them."""

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import PluginError

START_TIMEOUT = 60.0
STOP_TIMEOUT = 5.0

LineSink = Callable[[str, bool], None]
"""Takes a line that a process printed, and whether it was on stderr."""


class PipedProcess(subprocess.Popen[bytes]):
    """It has its own process group. `take` gets each line, and an empty one at the end of each stream.

    Raises `OSError` when it cannot be started.
    """

    def __init__(
        self, command: list[str], cwd: Path, environ: Mapping[str, str], stdin: int, take: LineSink
    ) -> None:
        pipe = subprocess.PIPE
        super().__init__(
            command, cwd=cwd, env=dict(environ), stdin=stdin, stdout=pipe, stderr=pipe, process_group=0
        )
        self._readers = [
            threading.Thread(target=self._read, args=(is_error, take), daemon=True)
            for is_error in (False, True)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, is_error: bool, take: LineSink) -> None:
        stream = self.stderr if is_error else self.stdout
        if stream is not None:
            with stream:
                for raw in stream:
                    take(raw.decode(errors="replace").rstrip("\r\n"), is_error)
        take("", is_error)

    def finish_output(self) -> None:
        """Wait for the last lines, unless something that it started holds its output open."""
        for reader in self._readers:
            reader.join(1)


class PluginProcess:
    """A started provider.

    It has its own process group: it finishes its work after Ctrl-C and when the engine is killed. Its
    standard input is a pipe to which nothing is written, and which ends with the engine.
    """

    def __init__(
        self, name: str, command: list[str], cwd: Path, environ: Mapping[str, str], on_line: LineSink
    ) -> None:
        self.name = name
        self._on_line = on_line
        self._first: queue.Queue[str] = queue.Queue()
        self._has_answered = False
        self._tail: list[str] = []
        self._interrupted = False
        try:
            self._process = PipedProcess(command, cwd, environ, subprocess.PIPE, self._take)
        except OSError as error:
            raise PluginError(
                f"could not start the provider plugin {name}: {error.strerror}: {command[0]}"
            ) from None
        self.port = self._wait_for_port()

    def _take(self, line: str, is_error: bool) -> None:
        if not (is_error or self._has_answered):
            self._has_answered = True
            self._first.put(line)
        elif line:
            self._tail = [*self._tail[-20:], line]
            if not self._interrupted:
                self._on_line(line, is_error)

    def _wait_for_port(self) -> int:
        line = None
        with contextlib.suppress(queue.Empty, ValueError):
            line = self._first.get(timeout=START_TIMEOUT)
            return int(line)
        self.stop()
        if line is None:
            problem = f"printed no port within {START_TIMEOUT:.0f} s"
        elif self._tail:
            problem = f"did not start: {self._tail[-1]}"
        else:
            problem = f"did not start: it printed {line!r} instead of a port" if line else "did not start"
        raise PluginError(f"the provider plugin {self.name} {problem}")

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
        self._process.finish_output()
        if self._process.stdin is not None:
            self._process.stdin.close()
