"""A report on a terminal: its lines, and below them a bar that shows which step runs."""

import shutil
from types import TracebackType
from typing import Self, TextIO

CLEAR = "\r\x1b[K"
WIDTH = 20


class Progress:
    """Lines are printed as they come. On a terminal, the last line is a bar; elsewhere there is none."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_bar = stream.isatty()
        self._bar = ""

    def line(self, text: str) -> None:
        """Print a line of the report, above the bar."""
        self._write(f"{CLEAR if self._bar else ''}{text}\n{self._bar}")

    def step(self, number: int, total: int | None, title: str) -> None:
        """The step ``number``, from 1, begins. ``total``: of how many; ``None`` where that is not known."""
        if not self._has_bar:
            return
        filled = 0 if total is None else WIDTH * (number - 1) // total
        of = "" if total is None else f" of {total}"
        text = f"[{'#' * filled}{'-' * (WIDTH - filled)}] step {number}{of}: {title}"
        self._bar = text[: shutil.get_terminal_size().columns - 1]
        self._write(CLEAR + self._bar)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar = ""
            self._write(CLEAR)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
