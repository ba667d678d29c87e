"""A process whose output is read line by line."""

import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

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
