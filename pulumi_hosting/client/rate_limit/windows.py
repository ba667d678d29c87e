"""The windows of one API key: what all its callers on one machine share. No clock, no file: time is handed
in.

The service counts in fixed windows, one per bucket (API document, "Limits"). A request takes a ticket, waits
until the ticket is granted, is sent, and reports its response.

Windows are kept in the service's time, which is the caller's less ``offset``: the smallest difference that a
``Date`` header has shown. Neither clock has to be right. Times of tickets are the caller's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from pulumi_hosting.api.metadata import Bucket
from pulumi_hosting.api.operations import EXPENSIVE_PER_WINDOW, NORMAL_PER_WINDOW, WINDOW_SECONDS, Operation
from pulumi_hosting.client.rate_limit.window import (
    LAST_MOMENT,
    LONE_SECONDS,
    Facts,
    Ticket,
    Wait,
    Window,
)

BUCKETS: tuple[Bucket, Bucket] = ("normal", "expensive")
KEPT = {"normal": 1, "expensive": 0}
"""Requests of each window that are kept for deletions. The API counts none of those as expensive."""

_VERSION = 3  # of what is kept of them as JSON
ROLL_MARGIN = 0.05  # seconds by which a window is taken to end late
LONGEST_MARGIN = 5.0
LOST_AFTER = 300.0  # seconds after which a request without a response is forgotten
LONGEST_BLOCK = 3600.0
_SOON, _SOON_EACH = 0.02, 0.002  # seconds until a waiter looks again, and more for each before it


@dataclass(repr=False, eq=False)
class KeyWindows:
    """Everything that the processes of a machine share about one key.

    ``at``: when it was last written; ``offset``: the caller's time less the service's; ``margin``: seconds
    after which a window is taken to be over; ``moved``: operations that the service counts in another bucket
    than the API document does.
    """

    at: float = 0.0
    offset: float | None = None
    margin: float = ROLL_MARGIN
    last_number: int = 0
    moved: dict[str, str] = field(default_factory=dict)
    windows: dict[str, Window] = field(
        default_factory=lambda: {
            "normal": Window(NORMAL_PER_WINDOW, KEPT["normal"]),
            "expensive": Window(EXPENSIVE_PER_WINDOW, KEPT["expensive"]),
        }
    )
    version: int = _VERSION

    def service_time(self, now: float) -> float:
        """A moment of the caller in the service's time, late rather than early."""
        return now - (self.offset or 0.0) - self.margin

    def bucket_of(self, operation: Operation, bucket: str) -> str:
        """The bucket in which the service counts an operation that the API document puts into ``bucket``."""
        return self.moved.get(f"{operation.id} {bucket}", bucket)

    def join(self, bucket: str, priority: int, pid: int, now: float) -> Ticket:
        """A ticket at the end of the queue, granted at once if no one else waits and there is room."""
        self.last_number += 1
        ticket = Ticket(self.last_number, pid, priority, now)
        self.rejoin(bucket, ticket)
        return ticket

    def rejoin(self, bucket: str, ticket: Ticket) -> None:
        """A ticket that was refused, or that was lost with the file, takes its old place."""
        ticket.granted, ticket.taken = None, False
        self.last_number = max(self.last_number, ticket.number)
        self.windows[bucket].waiting.append(ticket)

    def look(self, bucket: str, number: int, pid: int, now: float) -> Ticket | Wait | None:
        """The ticket, if its request may be sent now; else how long to wait. None if it is not known."""
        window = self.windows[bucket]
        window.grant(now, self.service_time(now))
        for ticket in window.sent:
            if ticket.number == number and ticket.pid == pid:
                if not ticket.taken:
                    ticket.granted, ticket.taken = now, True
                return ticket
        for ticket in window.waiting:
            if ticket.number == number and ticket.pid == pid:
                return self._wait(window, ticket, now)
        return None

    def _wait(self, window: Window, ticket: Ticket, now: float) -> Wait:
        rank, service_now = ticket.rank(now), self.service_time(now)
        ahead = sum(1 for other in window.waiting if other.rank(now) < rank)
        blocked = max(0.0, window.blocked - now)
        if window.reset is None:
            return Wait(max(_SOON, blocked), ahead, blocked, blocked)
        left = max(0.0, window.reset - service_now)
        room, usable = window.free(ticket, now, service_now), max(1, window.limit - window.kept_now)
        estimate = 0.0 if ahead < room else left + (ahead - max(0, room)) // usable * WINDOW_SECONDS
        soon = _SOON + _SOON_EACH * ahead
        if window.counted + window.lost >= window.limit:
            blocked = max(blocked, left)
        elif room < 1 and not window.pending:  # what is kept is this one's if it stays alone, or at the end
            soon = max(soon, LONE_SECONDS if window.waiting == [ticket] else left - LAST_MOMENT)
        # One after the other: not all of them look in the moment when a window begins.
        seconds = blocked + max(0.001, _SOON_EACH * ahead) if blocked else soon
        return Wait(seconds, ahead, max(estimate, blocked), blocked)

    def leave(self, bucket: str, number: int, pid: int) -> None:
        """Give a ticket back whose request was not sent."""
        window = self.windows[bucket]
        window.waiting = [t for t in window.waiting if (t.number, t.pid) != (number, pid)]
        for ticket in [t for t in window.sent if (t.number, t.pid) == (number, pid)]:
            window.forget(ticket, may_be_counted=False)

    def lost(self, bucket: str, number: int, pid: int) -> None:
        """A request was sent, and no response came."""
        window = self.windows[bucket]
        for ticket in [t for t in window.sent if (t.number, t.pid) == (number, pid)]:
            window.forget(ticket, may_be_counted=True)

    def answered(
        self, bucket: str, ticket: Ticket, operation: Operation, facts: Facts, now: float, block: float = 0.0
    ) -> str:
        """Take over what a response says. ``block``: seconds for which nothing more is sent, after a 429. The
        result is the bucket that the service counted in."""
        window = self.windows[bucket]
        found = next((t for t in window.sent if (t.number, t.pid) == (ticket.number, ticket.pid)), None)
        if facts.count is None:
            if found is not None:
                window.forget(found, may_be_counted=not facts.refused)
            window.silent = window.silent or window.reset is None
        else:
            self._compare_clocks(facts, found, now)
            actual = self._actual_bucket(bucket, operation, facts.count.limit)
            if found is not None:
                window.sent.remove(found)
            if actual != bucket:
                window.own -= int(found is not None)
                bucket, window = actual, self.windows[actual]
                window.own += 1
            if facts.refused and found is not None:
                window.own -= 1
            window.roll(self.service_time(now), now)
            late = window.learn(facts.count, found, refused=facts.refused)
            if late is not None:
                self.margin = min(LONGEST_MARGIN, max(self.margin, late) + 0.5)
        if block:
            window.blocked = max(window.blocked, now + min(block, LONGEST_BLOCK))
        return bucket

    def _compare_clocks(self, facts: Facts, ticket: Ticket | None, now: float) -> None:
        if facts.date is None:
            if self.offset is None and facts.count is not None:
                self.offset = now - (facts.count.reset - WINDOW_SECONDS)  # the latest end that is possible
            return
        offset = now - facts.date  # at most a second and the time of the exchange above the true one
        taken = 0.0 if ticket is None or ticket.granted is None else now - ticket.granted
        if self.offset is None or offset < self.offset or (ticket and offset > self.offset + taken + 1.5):
            self.offset = offset

    def _actual_bucket(self, bucket: str, operation: Operation, limit: int) -> str:
        """By the limit in the response: it is that of the bucket which the service counted in."""
        other = BUCKETS[bucket == BUCKETS[0]]
        expected, others = self.windows[bucket].limit, self.windows[other].limit
        # A limit that is neither is a new one of the bucket, unless the operation is known to vary.
        varies = operation.live_expensive and bucket == "normal" and limit < expected
        if limit == expected or (limit != others and not varies):
            return bucket
        back = f"{operation.id} {other}"
        if self.moved.get(back) == bucket:
            del self.moved[back]
        else:
            self.moved[f"{operation.id} {bucket}"] = other
        return other

    def without_dead(self, is_alive: Callable[[int], bool], now: float) -> None:
        """Drop the tickets of processes that have ended: those that were granted may have been sent."""
        for window in self.windows.values():
            pids = {ticket.pid for ticket in (*window.sent, *window.waiting)}
            dead = {pid for pid in pids if not is_alive(pid)}
            window.waiting = [ticket for ticket in window.waiting if ticket.pid not in dead]
            for ticket in list(window.sent):
                if ticket.pid in dead or (ticket.granted is not None and now - ticket.granted > LOST_AFTER):
                    window.forget(ticket, may_be_counted=True)

    @classmethod
    def load(cls, found: Any) -> Self:
        """From its JSON. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if that is another."""
        if found["version"] != _VERSION or found.keys() != cls.__dataclass_fields__.keys():
            raise ValueError
        return cls(**{**found, "windows": {name: Window.load(found["windows"][name]) for name in BUCKETS}})
