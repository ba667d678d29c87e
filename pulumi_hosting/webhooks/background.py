"""What keeps a process that must not stop running: endless retries, and warnings that strangers cannot
multiply."""

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pulumi_hosting.client.exceptions import ConfigurationError, HostingError
from pulumi_hosting.client.shared_store import StoreRefused

log = logging.getLogger("pulumi_hosting.webhooks")

LONGEST_PAUSE_SECONDS = 60.0
WARNING_INTERVAL_SECONDS = 60.0

T = TypeVar("T")


async def retry_until_success(
    what_fails: str, action: Callable[[], Awaitable[T]], sleep: Callable[[float], Awaitable[None]]
) -> T:
    """Run ``action`` until it succeeds, with pauses of 1 to 60 seconds. Log one line for each failure, which
    begins with ``what_fails``.

    Retries ``HostingError``, ``OSError`` and ``sqlite3.Error``. Raises ``ConfigurationError`` and
    ``StoreRefused`` at once, and every other error.
    """
    pause = 1.0
    while True:
        try:
            return await action()
        except (ConfigurationError, StoreRefused):
            raise
        except (HostingError, OSError, sqlite3.Error) as error:
            log.error("%s: %s; trying again in %g s", what_fails, one_line(error), pause)
        await sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def one_line(error: BaseException) -> str:
    """The first 300 characters of an error's text, on one line."""
    return " ".join(str(error).split())[:300]


class LimitedWarnings:
    """Warnings that a stranger can cause: at most one line a minute, so that the log cannot be filled."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._next_at, self._suppressed = clock, 0.0, 0

    def warn(self, line: str) -> None:
        """Log ``line`` as a warning, or count it if the last one is younger than a minute."""
        if self._clock() < self._next_at:
            self._suppressed += 1
            return
        log.warning(
            "%s%s", line, f" (and {self._suppressed} more since the last line)" if self._suppressed else ""
        )
        self._next_at, self._suppressed = self._clock() + WARNING_INTERVAL_SECONDS, 0
