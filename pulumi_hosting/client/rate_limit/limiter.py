"""Waits until a request may be sent. See :mod:`~pulumi_hosting.client.rate_limit.windows` for the rules."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import polling
from pulumi_hosting.client.call_errors import HostingError, RateLimitTimeout
from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.client.rate_limit.windows import (
    DELETION,
    POLL,
    READ,
    WRITE,
    Count,
    Facts,
    KeyWindows,
    Ticket,
    Wait,
)
from pulumi_hosting.client.requests import rate_limit_numbers
from pulumi_hosting.client.retry import Rng, may_repeat, parse_http_date, parse_retry_after, pause
from pulumi_hosting.client.shared_store import Files, SharedStore, StoreUnavailable
from pulumi_hosting.client.words import PYTHON, Words

if TYPE_CHECKING:
    from pulumi_hosting.client.rate_limit.state_file import WindowStore

T = TypeVar("T")
log = logging.getLogger("pulumi_hosting")

ANNOUNCE_AFTER = 3.0  # seconds of waiting after which a line says so
LONGEST_PAUSE = 1.0  # seconds between two looks at the queue
LOOK_FOR_DEAD = 1.0  # seconds between two looks whether processes in the queue have ended
LOOK_WHEN_QUIET = 10.0  # the same as the longest pause, if a waiter is woken when its turn comes
STANDS_STILL = 20.0  # seconds in which a service whose clock moves shows another time
_NEXT_EACH = 0.25  # seconds that a waiter which can be woken leaves to each one before it


class RateLimiter:
    """The rate limit of one key, shared with all processes of this user on this machine, or with all that
    share ``values``.

    - ``timeout``: seconds for which one call may wait in all.
    - ``on_wait``: called once per wait, with a line for the user, when it takes more than a few seconds.
    - ``store``: where the windows are, instead of in a file.
    """

    def __init__(
        self,
        api_key: Secret,
        base_url: str,
        *,
        timeout: float,
        clock: Callable[[], float],
        sleep: Callable[[float], object],
        wall: Callable[[], float],
        rng: Rng,
        on_wait: Callable[[str], None],
        store: "WindowStore | None" = None,
        values: SharedStore | None = None,
    ) -> None:
        self.values = values or Files()
        self.timeout, self.on_wait = timeout, on_wait
        self.clock, self.sleep, self.wall, self.rng = clock, sleep, wall, rng
        self._api_key, self._base_url = api_key, base_url
        self.store = store
        self._service_time: datetime | None = None
        self._first_seen = 0.0

    def stands_still(self, service_time: datetime | None) -> bool:
        """Whether the service's clock, which ends the windows, shows the time of long ago."""
        if service_time is None or service_time != self._service_time:
            self._service_time, self._first_seen = service_time, self.clock()
        return self.clock() - self._first_seen >= STANDS_STILL

    def place(self, operation: Operation, query: Mapping[str, str], words: Words = PYTHON) -> "Place":
        """A place for one call; it is in no queue before it waits. ``words``: those of its errors."""
        return Place(self, operation, query, words)

    def update(self, change: Callable[[KeyWindows], T]) -> T:
        """Change the windows, while no one else does."""
        # Loaded with the first request: who sends nothing need not wait for it.
        from pulumi_hosting.client.rate_limit.state_file import StateFile, memory, store_name

        name = store_name(self._api_key, self._base_url)
        try:
            self.store = self.store or StateFile(name, self.values)
            return self.store.update(change, self.clock())
        except StoreUnavailable as error:  # it is asked again
            log.debug("the rate limit is not shared with other machines: %s", error)
            return memory(name).update(change, self.clock())
        except (OSError, LocalFilesError) as error:
            log.debug("the rate limit is not shared with other processes: %s", error)
        self.store = memory(name)
        return self.store.update(change, self.clock())

    def take_over(self, change: Callable[[KeyWindows], object]) -> None:
        """Change the windows; what the change returns is not waited for."""
        self.update(change)

    @property
    def wakes(self) -> bool:
        """Whether a waiter is woken when its turn comes."""
        return self.store is not None and self.store.wakes

    def pause(self, ticket: Ticket | None, seconds: float) -> float:
        """Wait for that long, or until the ticket is granted, in a store that wakes. The seconds that it
        took."""
        began, left = self.clock(), seconds
        try:
            while left > 0.0 and ticket is not None and self.store is not None and self.store.wakes:
                if self.store.pause(ticket, min(left, LONGEST_PAUSE)):
                    return self.clock() - began
                self.sleep(0.0)  # raises if the run was cancelled
                left = seconds - (self.clock() - began)
        except StoreUnavailable:
            left = min(left, LONGEST_PAUSE)
        self.sleep(max(0.0, left))
        return max(self.clock() - began, seconds)

    def close(self) -> None:
        """Close the file; the next request opens it again."""
        store, self.store = self.store, None
        if store is not None:
            store.close()


class Place:
    """The place of one call in the queue of its bucket. ``waited``: seconds that it has waited in all;
    ``refusals``: how many of its requests met an empty bucket."""

    def __init__(
        self, limiter: RateLimiter, operation: Operation, query: Mapping[str, str], words: Words
    ) -> None:
        self._limiter, self._operation, self._words = limiter, operation, words
        self._table_bucket = self.bucket = "expensive" if operation.is_expensive(query) else "normal"
        is_poll = polling.take() and not operation.is_write
        write = DELETION if operation.method == "DELETE" else WRITE
        self._priority = write if operation.is_write else POLL if is_poll else READ
        self._ticket: Ticket | None = None
        self._is_queued = False
        self._looked_for_dead = 0.0
        self.waited = 0.0
        self.refusals = 0
        self._is_refused = self._is_empty = self._is_endless = self._is_announced = False

    def wait(self, failure: HostingError | None = None) -> None:
        """Return when the request may be sent; then comes :meth:`answered`, or :meth:`lost`.

        Raises ``failure``, or else ``RateLimitTimeout``, when that takes too long. ``KeyboardInterrupt``, and
        what ``sleep`` raises, end the wait.
        """
        if not self.begins():
            return
        waited = 0.0
        try:
            while (wait := self.step()) is not None:
                left = self.left(wait, waited, failure)
                slept = self._limiter.pause(self._ticket, min(self.pause(wait, waited), left))
                waited += slept
                self.waited += slept
        except BaseException:
            self.leave()
            raise

    def begins(self) -> bool:
        """Whether one more request has to wait for its turn at all."""
        self._is_refused = self._is_empty = self._is_announced = False
        return self._operation.auth  # without a key it is counted by address, if at all

    def left(self, wait: Wait, waited: float, failure: HostingError | None) -> float:
        """The seconds for which the call may wait yet, after ``waited`` of them, which is announced if they
        are many. Raises what :meth:`wait` raises."""
        limiter = self._limiter
        left = limiter.timeout - self.waited
        if self._is_endless:
            raise self._timed_out(wait)
        if left <= 0 or wait.earliest > left:
            raise failure or self._timed_out(wait)
        if waited >= ANNOUNCE_AFTER and not self._is_announced:
            self._is_announced = True
            limiter.on_wait(_line(wait))
        return left

    def pause(self, wait: Wait, waited: float) -> float:
        """Seconds until the next look, after ``waited`` of them. When responses decide, the pauses grow; who
        is woken looks when time alone may have changed something, those in front first."""
        if self._limiter.wakes:
            return min(wait.if_quiet + _NEXT_EACH * wait.ahead, LOOK_WHEN_QUIET)
        soon = wait.seconds if wait.earliest else max(wait.seconds, min(0.25, waited / 10))
        return min(soon, LONGEST_PAUSE)

    def step(self) -> Wait | None:
        """One look at the queue: None if the request may be sent now."""
        return self._limiter.update(self.next_look())

    def next_look(self) -> Callable[[KeyWindows], Wait | None]:
        """The change of the windows that looks. It may be made again if others were faster."""
        limiter, is_alive = self._limiter, None
        now = limiter.clock()
        if self._ticket is None:
            self._looked_for_dead = now
        elif now - self._looked_for_dead >= LOOK_FOR_DEAD:
            self._looked_for_dead = now
            with suppress(LocalFilesError):
                is_alive = limiter.values.living()
        return partial(self._look, limiter.values.process, is_alive)

    def _look(self, pid: int, is_alive: Callable[[int], bool] | None, windows: KeyWindows) -> Wait | None:
        now = windows.at
        before, self.bucket = self.bucket, windows.bucket_of(self._operation, self._table_bucket)
        if self._ticket is not None and self._is_queued and before != self.bucket:
            # A response to another request has shown that the service counts it there.
            windows.leave(before, self._ticket.number, pid)
        if self._ticket is None:
            self._ticket = windows.join(self.bucket, self._priority, pid, now)
            self._is_queued = True
        elif not self._is_queued:
            windows.rejoin(self.bucket, self._ticket)
            self._is_queued = True
        found = windows.look(self.bucket, self._ticket.number, pid, now)
        if found is None:  # moved, or the file was deleted, or another process took this one for dead
            windows.rejoin(self.bucket, self._ticket)
            found = windows.look(self.bucket, self._ticket.number, pid, now)
        if isinstance(found, Ticket):
            self._ticket = found
            return None
        if is_alive is not None:
            windows.without_dead(is_alive, now)
        return found

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """Take over what the headers of the response say."""
        ticket = self._ticket
        if not self._is_queued or ticket is None:
            return
        if not headers:  # of something in this process that stands in for the service
            self.leave()
            return
        self._is_queued = False
        count = _count(headers)
        if status == 429:
            # With requests left in the bucket it is another limit, such as that of password resets.
            self._is_refused = count is None or count.remaining == 0
            self._is_empty = count is not None and count.remaining == 0
            self.refusals += int(self._is_refused)
        date = parse_http_date(headers.get("Date", ""))
        self._is_endless = self._limiter.stands_still(date) and self._is_empty
        facts = Facts(count, None if date is None else date.timestamp(), status == 429)
        block = 0.0
        if self._is_refused:
            after = parse_retry_after(headers.get("Retry-After"), self._limiter.wall())
            block = pause(after, self.refusals, self._limiter.rng)

        bucket = self.bucket

        def take_over(windows: KeyWindows) -> None:
            self.bucket = windows.answered(bucket, ticket, self._operation, facts, windows.at, block)

        self._limiter.take_over(take_over)

    def is_refused(self, operation: Operation) -> bool:
        """Whether the latest request got a 429 of its bucket, and may wait for another turn: if it may be
        repeated at all, or the response shows that it was not processed."""
        return self._is_refused and (self._is_empty or may_repeat(operation))

    def lost(self) -> None:
        """A request was sent, and no response came. Nothing if :meth:`answered` was called."""
        self._end(may_be_counted=True)

    def leave(self) -> None:
        """Give the place back: nothing will be sent."""
        self._end(may_be_counted=False)

    def _end(self, *, may_be_counted: bool) -> None:
        if self._is_queued and self._ticket is not None:
            self._is_queued, place = False, (self.bucket, self._ticket.number, self._ticket.pid)
            self._limiter.take_over(lambda windows: windows.leave(*place, may_be_counted=may_be_counted))

    def _timed_out(self, wait: Wait) -> RateLimitTimeout:
        bucket, step = f"the {self.bucket} rate limit of this API key leaves no room for another request", ""
        why = (
            f"within {self._limiter.timeout:.0f} s: {_ahead(wait)} ahead, about {wait.estimate:.0f} s "
            "more to wait"
        )
        if self._is_endless:
            why = "and the clock of the service stands still, so no wait ends"
            step = "move the clock of the emulator, or give the key a higher limit"
        error = RateLimitTimeout(
            f"{bucket} {why}; nothing was sent",
            step=step,
            operation=self._operation.id,
            bucket=self.bucket,
            waited=self.waited,
        )
        error._words = self._words
        return error


def _line(wait: Wait) -> str:
    ahead = f", {_ahead(wait)} ahead" if wait.ahead else ""
    return f"rate limit reached: waiting {max(1, round(wait.estimate))} s{ahead}"


def _ahead(wait: Wait) -> str:
    return "1 request" if wait.ahead == 1 else f"{wait.ahead or 'no'} requests"


def _count(headers: Mapping[str, str]) -> Count | None:
    limit, remaining, reset = rate_limit_numbers(headers)
    if limit is None or remaining is None or reset is None:
        return None
    return Count(limit, min(limit, remaining), reset)
