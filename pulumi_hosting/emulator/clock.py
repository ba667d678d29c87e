"""The emulator's clock: real time, or frozen; either can be moved forward by hand."""

from collections.abc import Callable
from time import time

# Nobody needs more, and dates of what is due later still have four digits: the year 9000 in unix seconds.
LAST = 221_845_392_000.0


class Clock:
    """``now()`` in unix seconds, to the millisecond. A manual clock stands still until :meth:`advance`; a real one is shifted by it."""

    def __init__(self, *, manual: bool = False, start: float | None = None, source: Callable[[], float] = time) -> None:
        self.manual = manual
        self._source = source
        self.frozen = float(int(source())) if start is None else start
        self.offset = 0.0

    def now(self) -> float:
        return round(self.frozen if self.manual else self._source() + self.offset, 3)

    def advance(self, seconds: float) -> None:
        if self.manual:
            self.frozen = round(self.frozen + seconds, 3)
        else:
            self.offset += seconds
