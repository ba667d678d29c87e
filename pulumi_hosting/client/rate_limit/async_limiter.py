"""The waits of a rate limit in an event loop: awaited, so that a call that waits occupies no thread."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.call_errors import HostingError
from pulumi_hosting.client.rate_limit.limiter import Place, RateLimiter
from pulumi_hosting.client.rate_limit.windows import KeyWindows, Wait
from pulumi_hosting.client.words import PYTHON, Words

Change = Callable[[KeyWindows], Any]


class _Asked(NamedTuple):
    """A change of the windows, made when it is carried out, and where its result is awaited."""

    make: Callable[[], Change]
    result: "asyncio.Future[Wait | None] | None"
    loop: asyncio.AbstractEventLoop


class AsyncRateLimiter(RateLimiter):
    """The rate limit of one key for the tasks of a loop, with the options of a :class:`RateLimiter`. Its
    ``sleep`` is awaited.

    One thread of the loop's pool changes the windows, for a moment: what the tasks ask for meanwhile is done
    together, in the order in which they asked. Of the tasks that wait in a bucket, the first looks at the
    queue now and then, which grants all that may be sent; the others are woken when they are granted, or when
    they are the first.
    """

    wakes = False  # by the store: that would need a thread

    sleep: Callable[[float], Awaitable[None]]

    def __init__(self, api_key: Secret, base_url: str, **options: Any) -> None:
        super().__init__(api_key, base_url, **options)
        self._lock = threading.Lock()
        self._asked: list[_Asked] = []
        self._is_busy = False
        self._waiting: dict[AsyncPlace, asyncio.Future[None]] = {}

    def place(self, operation: Operation, query: Mapping[str, str], words: Words = PYTHON) -> "AsyncPlace":
        return AsyncPlace(self, operation, query, words)

    # --- the windows

    def take_over(self, change: Change) -> None:
        self._ask(lambda: change)

    async def look(self, place: "AsyncPlace") -> Wait | None:
        """One look of a place, which waits from now on."""
        loop, before = asyncio.get_running_loop(), place.bucket
        self._waiting[place] = loop.create_future()  # made now: it may be granted before it knows the result
        result: asyncio.Future[Wait | None] = loop.create_future()
        self._ask(place.next_look, result)
        found = await result
        if place.bucket != before:
            self._wake(self._first(before))
        return found

    async def finish(self) -> None:
        """Carry out what was asked for, and close the file; the next request opens it again."""
        if self._is_busy:
            done: asyncio.Future[Wait | None] = asyncio.get_running_loop().create_future()
            self._ask(lambda: lambda windows: None, done)
            await done
        self.close()

    def _ask(self, make: Callable[[], Change], result: "asyncio.Future[Wait | None] | None" = None) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._asked.append(_Asked(make, result, loop))
            was_busy, self._is_busy = self._is_busy, True
        if not was_busy:
            loop.run_in_executor(None, self._work)

    def _work(self) -> None:
        """In a thread: carry out what was asked for, until there is nothing more."""
        while True:
            with self._lock:
                asked, self._asked = self._asked, []
                self._is_busy = bool(asked)
            if not asked:
                return
            failure: Exception | None = None
            try:
                found, sent = self.update(partial(_all, [one.make() for one in asked]))
            except Exception as error:  # noqa: BLE001  # the tasks raise it
                failure, found, sent = error, [None] * len(asked), set()
            with suppress(RuntimeError):  # the loop was closed, and no one waits
                asked[-1].loop.call_soon_threadsafe(self._publish, asked, found, sent, failure)

    def _publish(
        self,
        asked: list[_Asked],
        found: list[Wait | None],
        sent: set[tuple[int, int]],
        failure: Exception | None,
    ) -> None:
        """In the loop: give the results to the tasks, and wake those that were granted."""
        for one, wait in zip(asked, found, strict=True):
            if one.result is None or one.result.done():
                continue
            if failure is not None:
                one.result.set_exception(failure)
            else:
                one.result.set_result(wait)
        for place in self._waiting if sent else ():
            if place.number in sent:
                self._wake(place)

    # --- the tasks that wait

    def _first(self, bucket: str) -> "AsyncPlace | None":
        return next((place for place in self._waiting if place.bucket == bucket), None)

    def _wake(self, place: "AsyncPlace | None") -> None:
        if place is not None and not (woken := self._waiting[place]).done():
            woken.set_result(None)

    async def pause_of(self, place: "AsyncPlace", seconds: float, left: float) -> float:
        """Wait until the place is woken, at most ``left`` seconds; who is the first looks again after
        ``seconds``. How many it took."""
        began, most = self.clock(), min(seconds, left) if self._first(place.bucket) is place else left
        sleeping = asyncio.ensure_future(self.sleep(most))
        try:
            await asyncio.wait((sleeping, self._waiting[place]), return_when=asyncio.FIRST_COMPLETED)
            if not sleeping.done():
                return self.clock() - began
            sleeping.result()  # raises what it raised
            return max(self.clock() - began, most)
        finally:
            sleeping.cancel()

    def waits_no_more(self, place: "AsyncPlace") -> None:
        was_first = self._first(place.bucket) is place
        self._waiting.pop(place, None)
        if was_first:
            self._wake(self._first(place.bucket))


def _all(changes: list[Change], windows: KeyWindows) -> tuple[list[Any], set[tuple[int, int]]]:
    """What the changes return, and the tickets that may be sent then."""
    return [change(windows) for change in changes], windows.tickets("sent")


class AsyncPlace(Place):
    """A place whose turn is awaited. A task that is cancelled gives it back."""

    _limiter: AsyncRateLimiter

    @property
    def number(self) -> tuple[int, int] | None:
        """Of its ticket, and of this process."""
        return None if self._ticket is None else (self._ticket.number, self._ticket.pid)

    async def turn_comes(self, failure: HostingError | None = None) -> None:
        """Return when the request may be sent. Raises what :meth:`wait` raises."""
        if not self.begins():
            return
        waited = 0.0
        try:
            while (wait := await self._limiter.look(self)) is not None:
                left = self.left(wait, waited, failure)
                slept = await self._limiter.pause_of(self, self.pause(wait, waited), left)
                waited += slept
                self.waited += slept
        except BaseException:
            self._limiter.take_over(self._given_back)  # after a look that is on its way
            raise
        finally:
            self._limiter.waits_no_more(self)

    def _given_back(self, windows: KeyWindows) -> None:
        if self._ticket is not None:
            self._is_queued = False
            windows.leave(self.bucket, self._ticket.number, self._ticket.pid)
