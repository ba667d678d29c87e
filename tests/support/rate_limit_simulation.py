"""Callers of the rate limiter on a virtual clock: hosts with many callers each, and a service that counts.

The limiter's own code decides when a request is sent; only time, and the exchange with the service, are
simulated. It is compared with two others: ``ideal`` knows the service's counter, and sends the moment there
is room; ``retry`` has no limiter, sleeps for the ``Retry-After`` of each 429 and tries again.
"""

import heapq
import itertools
import math
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING, ClassVar, TypeVar
from unittest.mock import patch

from pulumi_hosting.api.operations import BY_ID, WINDOW_SECONDS, Operation
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.rate_limit.limiter import Place, RateLimiter
from pulumi_hosting.client.rate_limit.state_file import StateFile, WindowsInMemory
from pulumi_hosting.client.redis_store import OpenEntry, Redis
from pulumi_hosting.client.shared_store import Change, SharedStore

if TYPE_CHECKING:
    import redis

T = TypeVar("T")

EPOCH = 1_700_000_000.0
"""The service's clock is that far from the callers'."""


@dataclass
class Service:
    """Counts in fixed windows. ``phase``: when windows begin; None: with the first request after the last
    one, as the emulator's."""

    limit: int
    phase: float | None
    counted: dict[float, int] = field(default_factory=dict)
    refused: dict[float, int] = field(default_factory=dict)
    begin: float = -math.inf

    def request(self, now: float) -> tuple[int, dict[str, str]]:
        time = now + EPOCH
        self._roll(time)
        reset = self.begin + WINDOW_SECONDS
        used = self.counted.get(self.begin, 0)
        headers = {
            "Date": formatdate(math.floor(time), usegmt=True),
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Reset": str(math.ceil(reset)),
        }
        if used >= self.limit:
            self.refused[self.begin] = self.refused.get(self.begin, 0) + 1
            after = str(max(1, math.ceil(reset - time)))
            return 429, {**headers, "X-RateLimit-Remaining": "0", "Retry-After": after}
        self.counted[self.begin] = used + 1
        return 200, {**headers, "X-RateLimit-Remaining": str(self.limit - used - 1)}

    def _roll(self, time: float) -> None:
        if self.phase is not None:
            self.begin = self.phase + math.floor((time - self.phase) / WINDOW_SECONDS) * WINDOW_SECONDS
        elif time >= self.begin + WINDOW_SECONDS:
            self.begin = math.floor(time)

    def seconds_to_room(self, now: float, coming: int) -> float:
        """Until it accepts one request more than the ``coming`` ones; 0 if it does now."""
        self._roll(now + EPOCH)
        if self.counted.get(self.begin, 0) + coming < self.limit:
            return 0.0
        return max(0.001, self.begin + WINDOW_SECONDS - now - EPOCH)


@dataclass(frozen=True)
class Outcome:
    """What a simulation found.

    - ``sent``: when each request was ready, and when it was sent, in the order in which they were ready.
    - ``finish``: seconds until the last was answered. ``utilisation``: of all windows but the last.
    - ``refused``: the 429s; ``worst_window``: most of them in one window.
    """

    sent: list[tuple[float, float]]
    finish: float
    refused: int
    worst_window: int
    utilisation: float

    def overdue(self, ideal: "Outcome") -> float:
        """The longest that a request was sent after its turn, in seconds. Its turn: when the ideal sent the
        request of the same number, but not before it was ready."""
        turns = sorted(at for _, at in ideal.sent)
        return max(at - max(ready, turn) for (ready, at), turn in zip(self.sent, turns, strict=True))


class _Host:
    """A machine: its limiter, shared by its callers. ``values``: what it shares with other machines."""

    def __init__(self, simulation: "Simulation", values: SharedStore | None) -> None:
        self.limiter = RateLimiter(
            Secret("vk_live_simulated"),
            "https://api.example.com/v1",
            timeout=86_400,
            clock=lambda: simulation.now,
            sleep=lambda seconds: None,
            wall=lambda: simulation.now + EPOCH,
            rng=simulation.random,
            on_wait=lambda line: None,
            store=WindowsInMemory() if values is None else None,
            values=values,
        )


class SharedValues(Redis):
    """A shared store as one host sees it: its processes live, and whom it wakes is noted."""

    woken: ClassVar[list[str]] = []
    process = 0

    def __init__(self, server: "redis.Redis", number: int) -> None:
        super().__init__(Secret("redis://store.example.com"), server)
        self.process = number

    def living(self) -> Callable[[int], bool]:
        return lambda number: True

    def open(self, name: str, what: str) -> OpenEntry:
        return _Noting(self, name)


class _Noting(OpenEntry):
    def update(self, change: Change[T], now: float) -> T:
        woken: list[str] = []

        def noted(value: bytes, now: float) -> tuple[bytes, T, Sequence[str]]:
            after, result, woken[:] = change(value, now)
            return after, result, woken

        result = super().update(noted, now)
        SharedValues.woken += woken
        return result


Steps = Generator[float, None, None]


class Simulation:
    """``callers`` on each of ``hosts`` send ``requests`` in all, one after the other each."""

    def __init__(
        self,
        service: Service,
        *,
        callers: int,
        requests: int,
        hosts: int = 1,
        seed: int = 0,
        latency: float = 0.15,
        scheduler: str = "limiter",
        operation: Operation | Callable[[random.Random], Operation] = BY_ID["get_server"],
        shared: "redis.Redis | None" = None,
    ) -> None:
        """``shared``: the server through which the hosts share the limit; None: they share nothing."""
        self.service, self.latency, self._scheduler = service, latency, scheduler
        self.random = random.Random(seed)  # noqa: S311  # a simulation
        self.now = 1000.0
        self.began = self.now
        self.todo = requests
        self._sent: list[tuple[float, float]] = []
        self._coming = 0
        self._operation = operation
        self._events: list[tuple[float, int, Steps]] = []
        self._numbers = itertools.count()
        self._asleep: dict[str, tuple[int, Steps]] = {}
        self._void: set[int] = set()
        self._is_shared = shared is not None
        for number in range(hosts):
            host = _Host(self, None if shared is None else SharedValues(shared, number))
            for _ in range(callers):
                self._push(self.now + self.random.uniform(0, 0.5), self._caller(host))

    def _push(self, at: float, steps: Steps, waiter: str = "") -> None:
        number = next(self._numbers)
        heapq.heappush(self._events, (at, number, steps))
        if waiter:
            self._asleep[waiter] = number, steps

    def run(self) -> Outcome:
        # A shared store asks its server for the time, and that this process.
        with patch("time.time", lambda: self.now + EPOCH) if self._is_shared else nullcontext():
            return self._run()

    def _run(self) -> Outcome:
        requests = self.todo
        while self._events:
            at, number, steps = heapq.heappop(self._events)
            if number in self._void:
                continue
            self.now, self._waiter = at, ""
            pause = next(steps, None)
            if pause is not None:
                self._push(self.now + pause, steps, self._waiter)
            while SharedValues.woken:
                asleep = self._asleep.pop(SharedValues.woken.pop(), None)
                if asleep is not None:
                    self._void.add(asleep[0])
                    self._push(self.now + 0.001, asleep[1])
        assert len(self._sent) == requests
        counted = [self.service.counted[begin] for begin in sorted(self.service.counted)]
        full = counted[:-1] or counted
        return Outcome(
            sent=sorted(self._sent),
            finish=self.now - self.began,
            refused=sum(self.service.refused.values()),
            worst_window=max(self.service.refused.values(), default=0),
            utilisation=sum(full) / (len(full) * self.service.limit),
        )

    def _caller(self, host: _Host) -> Steps:
        while self.todo:
            self.todo -= 1
            operation = (
                self._operation if isinstance(self._operation, Operation) else self._operation(self.random)
            )
            ready, place = self.now, host.limiter.place(operation, {})
            while True:
                yield from self._turn(host, place)
                sent, taken = self.now, min(5.0, self.random.lognormvariate(math.log(self.latency), 0.5))
                self._coming += 1
                yield taken * 0.5
                self._coming -= 1
                status, headers = self.service.request(self.now)
                yield taken * 0.5
                if self._scheduler == "limiter":
                    place.answered(status, headers)
                if status == 200:
                    break
                if self._scheduler == "retry":
                    yield float(headers["Retry-After"]) + 0.5 * self.random.random()
            self._sent.append((ready, sent))
            yield self.random.uniform(0.0, 0.05)

    def _turn(self, host: _Host, place: Place) -> Steps:
        """Wait as the scheduler does until the request is sent."""
        waited = 0.0
        while self._scheduler == "limiter" and (wait := place.step()) is not None:
            pause, store, began = place.pause(wait, waited), host.limiter.store, self.now
            if isinstance(store, StateFile) and place._ticket is not None:
                self._waiter = store._waiter(place._ticket.number, place._ticket.pid)
            yield pause
            waited += self.now - began
        while self._scheduler == "ideal" and (left := self.service.seconds_to_room(self.now, self._coming)):
            yield left
