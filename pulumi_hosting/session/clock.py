"""Time, handed in."""

import time
from datetime import UTC, datetime


class RunClock:
    """Time, handed in so that tests need not wait. ``now`` is aware UTC; ``monotonic`` is for deadlines,
    in seconds.
    """

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def raise_if_cancelled(self) -> None:
        """Called before anything is paid. Raises if the run was cancelled; here it never is."""
