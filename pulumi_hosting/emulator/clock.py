"""The emulator's clock: real or frozen; the control interface can move either forward."""

from collections.abc import Callable
from time import time

# The year 9000 in unix seconds: dates after it, of what is due later, still have four-digit years.
LAST = 221_845_392_000.0


class Clock:
    """``now()`` in unix seconds, to the millisecond, from ``start`` on. :meth:`advance` moves a manual clock
    and shifts a real one.
    """

    def __init__(
        self, *, manual: bool = False, start: float | None = None, source: Callable[[], float] = time
    ) -> None:
        self.manual = manual
        self._source = source
        self.frozen = float(int(source())) if start is None else start
        self.offset = 0.0 if manual or start is None else start - source()

    def now(self) -> float:
        return round(self.frozen if self.manual else self._source() + self.offset, 3)

    def resume(self, *, manual: bool, frozen: float, offset: float) -> None:
        """Continue with the time of an earlier clock: a manual one stood still, a real one went on."""
        now = frozen if manual else self._source() + offset
        self.frozen, self.offset = now if manual else float(int(now)), now - self._source()

    def advance(self, seconds: float) -> None:
        if self.manual:
            self.frozen = round(self.frozen + seconds, 3)
        else:
            self.offset += seconds
