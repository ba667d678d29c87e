"""The windows of one API key: what all its callers on one machine share, or those on all machines of a shared
store. No clock, no file: time is handed in.

The service counts in fixed windows, one per bucket (API document, "Limits"). A request takes a ticket, waits
until the ticket is granted, is sent, and reports its response. At any moment the service has counted at most
what the latest response shows, plus what is on its way; a ticket is granted while that sum is below the
limit. Requests of other machines are seen in the responses: they make this machine send fewer at once, so
that it gets at most one 429 in a window.

Windows are kept in the service's time, which is the caller's less ``offset``: the smallest difference that a
``Date`` header has shown. Neither clock has to be right. Times of tickets are the caller's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from pulumi_hosting.api.metadata import Bucket
from pulumi_hosting.api.operations import EXPENSIVE_PER_WINDOW, NORMAL_PER_WINDOW, WINDOW_SECONDS, Operation

DELETION, WRITE, READ, POLL = range(4)
"""Priorities, in the order in which they are served."""

AGE_SECONDS = 2 * WINDOW_SECONDS
LAST_MOMENT = 5.0  # seconds before the end of a window in which the slot kept for deletions is everybody's
LONE_SECONDS = 0.5  # after that long without any other request, the slot is the only waiter's
PROBE_SECONDS = 0.5  # how long one request that finds out about a window holds up the others
LAST_PROBE_SECONDS = 5.0  # the same if other machines send the last requests of a window too
GROWTH = 1  # how many more requests may be on their way after each response: twice as many each round
SPARE = 6  # of what is left to it, a machine sends this part at once if others use the key too


@dataclass(repr=False, eq=False)
class Ticket:
    """One request. ``number`` gives its place in the queue. ``granted``: when it could be sent, None while it
    waits; ``taken``: whether its process knows. ``alone``: whether no other request was on its way while this
    one was."""

    number: int
    pid: int
    priority: int
    joined: float
    granted: float | None = None
    taken: bool = False
    alone: bool = False

    def rank(self, now: float) -> tuple[int, int]:
        """Sorts the queue. Every two windows of waiting raise the priority by one, up to that of a write:
        no one waits for ever."""
        raised = max(WRITE, self.priority - int((now - self.joined) / AGE_SECONDS))
        return min(self.priority, raised), self.number


class Count(NamedTuple):
    """The bucket's limit, the requests left in it, and the unix time of its reset, as a response shows
    them."""

    limit: int
    remaining: int
    reset: int


@dataclass(frozen=True)
class Facts:
    """What the headers of a response say. ``count``: None if it is not complete; ``date``: its Date header
    as unix time; ``refused``: a 429."""

    count: Count | None = None
    date: float | None = None
    refused: bool = False


class Wait(NamedTuple):
    """Not yet. Look again after ``seconds``; ``ahead`` requests are served before; it takes about
    ``estimate`` seconds, and at least ``earliest``. ``if_quiet``: seconds after which time alone may have
    changed that, if nothing else does."""

    seconds: float
    ahead: int
    estimate: float
    earliest: float
    if_quiet: float = 0.0


@dataclass(repr=False, eq=False)
class Window:
    """The current window of a bucket, and the tickets for it.

    - ``reset``: when it ends, in the service's time; None while nothing is known.
    - ``confirmed``: whether a response has shown this window; ``rolled``: else when it was taken to begin.
    - ``counted``: requests that the service is known to have counted; ``own``: those granted here;
      ``foreign``: those of others. ``last_own``, ``last_foreign``: of the window before.
    - ``lost``: requests without a response. The service may have counted them, or count them yet.
    - ``seen``: when the latest request was granted whose response is known.
    - ``parallel``: how many may be on their way at once. ``blocked``: until when nothing is sent.
    - ``silent``: whether the responses say nothing of a limit: then only a 429 holds requests up.
    - ``kept``: how many requests of each window are kept for deletions.
    """

    limit: int
    kept: int = 0
    reset: float | None = None
    confirmed: bool = False
    rolled: float = 0.0
    counted: int = 0
    own: int = 0
    foreign: int = 0
    last_own: int = 0
    last_foreign: int = 0
    lost: int = 0
    seen: float = 0.0
    parallel: int = 1
    blocked: float = 0.0
    silent: bool = False
    sent: list[Ticket] = field(default_factory=list)
    waiting: list[Ticket] = field(default_factory=list)

    @classmethod
    def load(cls, found: dict[str, Any]) -> Self:
        """From its JSON. Raises ``KeyError`` or ``TypeError`` if that is another."""
        tickets = {name: [Ticket(**one) for one in found[name]] for name in ("sent", "waiting")}
        return cls(**{**found, **tickets})

    def roll(self, service_now: float, now: float) -> None:
        """Begin the next window if this one is over."""
        if self.reset is None or service_now < self.reset:
            return
        passed = int((service_now - self.reset) / WINDOW_SECONDS) + 1
        self.reset = self.reset + passed * WINDOW_SECONDS
        self.last_own, self.last_foreign = (self.own, self.foreign) if passed == 1 else (0, 0)
        self.counted = self.own = self.foreign = self.lost = 0
        self.confirmed, self.rolled = False, now
        if passed > 1:
            self.parallel = 1

    def is_open(self, ticket: Ticket, now: float, service_now: float) -> bool:
        """Whether the ticket's request may be sent now."""
        if now < self.blocked:
            return False
        if self.silent:
            return True
        if self.reset is not None and self.free(ticket, now, service_now) < 1:
            return False
        return self._held_up(now) <= 0.0

    def _held_up(self, now: float) -> float:
        """Seconds for which the requests on their way hold up others, if no response to them comes."""
        # What was sent before the window began tells nothing about it.
        at_once = self.at_once if self.confirmed else 1
        others_take_the_rest = self.confirmed and at_once == 1 and bool(self.foreign + self.last_foreign)
        seconds = LAST_PROBE_SECONDS if others_take_the_rest else PROBE_SECONDS
        since = now - seconds if self.confirmed else max(self.rolled, now - seconds)
        recent = sorted(granted for other in self.sent if (granted := other.granted or 0.0) >= since)
        # One that was sent ``seconds`` ago still counts.
        return 0.0 if len(recent) < at_once else max(1e-3, recent[-at_once] + seconds - now)

    def if_quiet(self, ticket: Ticket, now: float, service_now: float) -> float:
        """Seconds until the ticket's request may be sent, or its place may change, if no response comes."""
        if now < self.blocked:
            return self.blocked - now
        if self.reset is None or self.free(ticket, now, service_now) > 0:
            return self._held_up(now)
        moments = [self.reset - service_now]
        if self.kept_now:  # what is kept is everybody's at the end, and the only waiter's
            moments.append(moments[0] - LAST_MOMENT)
            if self.waiting == [ticket]:
                moments.append(max(self.seen, ticket.joined) + LONE_SECONDS - now)
        return min(moment for moment in moments if moment > 0.0)

    def free(self, ticket: Ticket, now: float, service_now: float) -> int:
        """How many more requests the service will accept, as far as is known, without what is kept."""
        return (
            self.limit - self.counted - self.lost - self.pending - self._kept_from(ticket, now, service_now)
        )

    def _kept_from(self, ticket: Ticket, now: float, service_now: float) -> int:
        """How many requests are kept from this one, for deletions.

        None in the last moment of a window, or the slot would stay unused. None from the only waiter of an
        idle machine: there the slot would only make the last request of a run, and a caller that sends one
        request after the other, wait for most of a window.
        """
        if ticket.priority == DELETION or self.reset is None or service_now > self.reset - LAST_MOMENT:
            return 0
        is_only_one = self.waiting == [ticket] and not self.pending
        if is_only_one and now - max(self.seen, ticket.joined) >= LONE_SECONDS:
            return 0
        return self.kept_now

    @property
    def pending(self) -> int:
        """How many requests are on their way. Any of them may not be counted yet: a busy machine may have
        suspended its process before it sent it."""
        return len(self.sent)

    @property
    def kept_now(self) -> int:
        """How many requests of this window are kept for deletions."""
        return self.kept if self.limit > self.kept else 0

    @property
    def at_once(self) -> int:
        """How many requests may be on their way at once. If others use the key too, the last requests of a
        window go out one by one, since another machine may send the same ones."""
        foreign = self.foreign + self.last_foreign
        if not foreign:
            return self.parallel
        own = self.own + self.last_own + 1
        share = own / (own + foreign)
        return min(self.parallel, max(1, int(share * (self.limit - self.counted) / SPARE)))

    def grant(self, now: float, service_now: float) -> None:
        """Grant tickets in the order of the queue, as many as may be sent."""
        self.roll(service_now, now)
        while self.waiting:
            ticket = min(self.waiting, key=lambda item: item.rank(now))
            if not self.is_open(ticket, now, service_now):
                return
            self.waiting.remove(ticket)
            for other in self.sent:
                other.alone = False
            ticket.granted, ticket.taken, ticket.alone = now, False, not self.sent
            self.own += 1
            self.sent.append(ticket)

    def forget(self, ticket: Ticket, *, may_be_counted: bool) -> None:
        """Drop a granted ticket that brought no response."""
        self.sent.remove(ticket)
        if not may_be_counted:
            self.own -= 1
        else:
            self.lost += 1

    def learn(self, count: Count, ticket: Ticket | None, *, refused: bool) -> float | None:
        """Take over what the response to ``ticket`` says. The result is None, or how much later than
        expected, in seconds, the service ends its windows."""
        self.silent, self.limit = False, count.limit
        counted, reset = count.limit - count.remaining, count.reset
        granted = 0.0 if ticket is None or ticket.granted is None else ticket.granted
        alone, late = ticket is not None and ticket.alone, None
        if self.reset is None or (self.confirmed and reset > self.reset):
            self._begin(reset, counted)
        elif self.confirmed and reset == self.reset:
            self.counted = counted if alone else max(self.counted, counted)
        elif self.confirmed:  # an earlier window: a late response, or the service was set back
            if not alone:
                return None
            self._begin(reset, counted)
        elif reset > self.reset - WINDOW_SECONDS:  # the window that was taken to begin
            self.reset, self.confirmed = reset, True
            self.counted = max(self.counted, counted)
        elif granted >= self.rolled:  # the window before was not over
            late = granted - self.rolled
            self._begin(reset, counted)
        else:
            return None
        self.seen = max(self.seen, granted)
        self.foreign = max(self.foreign, self.counted - self.own)
        if not refused:
            self.parallel = min(self.parallel + GROWTH, max(1, self.limit))
        return late

    def _begin(self, reset: float, counted: int) -> None:
        self.reset, self.confirmed, self.counted = reset, True, counted
        self.own, self.foreign, self.lost = len(self.sent) + 1, 0, 0


BUCKETS: tuple[Bucket, Bucket] = ("normal", "expensive")

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
            "normal": Window(NORMAL_PER_WINDOW, kept=1),
            "expensive": Window(EXPENSIVE_PER_WINDOW),  # no deletion counts as expensive
        }
    )
    version: int = _VERSION

    def tickets(self, state: str) -> set[tuple[int, int]]:
        """Number and process of those that are ``waiting``, or ``sent``."""
        found = (getattr(window, state) for window in self.windows.values())
        return {(ticket.number, ticket.pid) for tickets in found for ticket in tickets}

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
        if_quiet = window.if_quiet(ticket, now, service_now)
        if window.reset is None:
            return Wait(max(_SOON, blocked), ahead, blocked, blocked, if_quiet)
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
        return Wait(seconds, ahead, max(estimate, blocked), blocked, if_quiet)

    def leave(self, bucket: str, number: int, pid: int, *, may_be_counted: bool = False) -> None:
        """Give a ticket back whose request was not sent, or brought no response and may be counted."""
        window = self.windows[bucket]
        window.waiting = [t for t in window.waiting if (t.number, t.pid) != (number, pid)]
        for ticket in [t for t in window.sent if (t.number, t.pid) == (number, pid)]:
            window.forget(ticket, may_be_counted=may_be_counted)

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
