"""What ends when, of all that is paid in advance: events from what the account shows, and the time.

Pure: nothing is asked here. The service renews what has auto-renew on from the balance, everything else ends
with its paid time (API document, "Resources and their fields", "States and transitions"). When something is
suspended, terminated or deleted after that, the document does not say, so no event says it either.
"""

from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Literal

from pulumi_hosting.client.words import Words
from pulumi_hosting.session.prepaid import Prepaid

_CENT = Decimal("0.01")
_TOP_UP = 10
"""Top-ups are advised in multiples of this: gateways refuse small ones, and several objects need one."""
_LATE = timedelta(days=1)
"""What the service would renew and has not so long after its time is not taken for renewed any more."""
HORIZON = timedelta(days=3 * 366)
"""How far renewals are followed."""
_WORDS = ((0, "Overdue"), (1, "Last day"), (7, "Urgent"), (14, "Soon"))  # by days left


@dataclass(frozen=True, slots=True)
class Due:
    """What happens to one object when its paid time ends.

    - ``kind``: ``renewed``: the service renews it. ``short``: it would, and the balance does not cover
      what is due by then. ``ends``: it does not renew itself, or did not. ``over``: its time has ended.
    - ``due``: the sum of what is due until the end of its day, itself included.
    """

    kind: Literal["renewed", "short", "ends", "over"]
    what: Prepaid
    at: datetime | None
    due: Decimal = Decimal(0)

    @property
    def ends_at(self) -> datetime | None:
        """Until when the object is safe though nothing is paid for it; of a renewal, when it is due."""
        return self.at if self.kind == "renewed" else self.what.safe_until or self.at


def events(objects: Iterable[Prepaid], balance: Decimal | None, now: datetime) -> Iterator[Due]:
    """What happens to the objects, in order of days, for three years.

    Everything that is due on one day shares the balance: if that does not cover the day, each of the day's
    renewals is ``short``, and what is short is not followed any further. A ``balance`` of None is not known,
    and covers everything.
    """
    waiting: list[tuple[datetime, int, Prepaid]] = []
    for number, what in enumerate(objects):
        if what.ended:
            yield Due("over", what, what.until)
        elif what.until is not None:
            waiting.append((what.until, number, what))
    heapify(waiting)
    due = Decimal(0)
    while waiting and waiting[0][0] <= now + HORIZON:
        today = [heappop(waiting)]
        while waiting and waiting[0][0].date() == today[0][0].date():
            today.append(heappop(waiting))
        renewing = {number for at, number, what in today if what.renews and at > now - _LATE}
        due += sum((what.amount or 0 for _, number, what in today if number in renewing), Decimal(0))
        is_short = balance is not None and due > balance
        for at, number, what in today:
            kind: Literal["ends", "short", "renewed"] = "renewed" if number in renewing else "ends"
            if is_short and kind == "renewed" and what.amount:
                kind = "short"
            yield Due(kind, what, at, due)
            if kind == "renewed" and what.amount:
                then = months_after(at, what.months) if what.months else at + timedelta(days=1)
                heappush(waiting, (then, number, replace(what, until=then)))


@dataclass(frozen=True)
class PaidTime:
    """What is paid in advance, and what is said of it to a person.

    - ``words``: of the frontend. ``now``: the service's time. ``balance``: None where it is not known.
    - ``gateway``: one that takes a top-up, and ``least`` the smallest top-up, where they were asked for.
    - ``kept``: the objects that runs renew, though the service does not.
    - ``refused``: what the key could not read (``servers``, ``domains``, ``invoices``, ``balance``,
      ``prices``), and why. ``failed``: those of them that it could not read now, though it has the scope.
    """

    words: Words
    now: datetime
    objects: tuple[Prepaid, ...] = ()
    balance: Decimal | None = None
    currency: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    failed: Sequence[str] = ()
    kept: Set[tuple[str, str]] = frozenset()
    gateway: str = "CODE"
    least: Decimal = Decimal(0)

    @cached_property
    def events(self) -> tuple[Due, ...]:
        """In order of days, for three years."""
        return tuple(events(self.objects, self.balance, self.now))

    @property
    def first_short(self) -> Due | None:
        """The first renewal that the balance does not cover; None where it covers all within three years."""
        return next((event for event in self.events if event.kind == "short"), None)

    def of(self, key: tuple[str, str]) -> Due | None:
        """What happens next to the object that this names; None where it is not known."""
        return next((event for event in self.events if event.what.key == key), None)

    def declared(self, key: tuple[str, str], renews: object) -> "PaidTime":
        """The same, with the object that this names renewed as a declaration says; None says nothing."""
        found = {one.key: one for one in self.objects}
        if renews is None or key not in found or found[key].renews is bool(renews) or found[key].is_locked:
            return self
        return replace(self, objects=(*({**found, key: replace(found[key], renews=bool(renews))}).values(),))

    def kept_paid(self, keys: Iterable[tuple[str, str]]) -> "PaidTime":
        """The same, with the objects that these name renewed by runs, from the balance (``keep_paid``)."""
        found = self
        for key in keys:
            paid = found.declared(key, True)
            found = found if paid is found else replace(paid, kept={*found.kept, key})
        return found

    def uncovered(self, within: timedelta | None = None) -> list[Due]:
        """What has ended, or will within this time, and is not covered: each object once. Without a time,
        what a warning names."""
        found: dict[tuple[str, str], Due] = {}
        for event in self.within(within):
            if event.kind != "renewed":
                found.setdefault(event.what.key, event)
        return [*found.values()]

    def within(self, time: timedelta | None = None) -> list[Due]:
        """What has ended, and what is due within this time; without one, within the time that a warning
        reaches."""
        end = self.now if time is None else self.now + time

        def is_within(event: Due) -> bool:
            if event.kind == "over" or event.at is None:
                return True
            return event.what.is_near(self.now) if time is None else (event.ends_at or event.at) <= end

        return list(filter(is_within, self.events))

    def warning(self, event: Due) -> str | None:
        """The line for an object that has ended, or whose end is near and not covered; None where there is
        nothing to say."""
        is_near = event.what.is_locked or event.what.is_near(self.now)
        is_due = event.kind == "over" or (event.kind != "renewed" and is_near)
        return self.described(event) if is_due else None

    def described(self, event: Due) -> str:
        """The line for an object that has ended, or will and is not covered."""
        what, money = event.what, self.currency or ""
        at = event.ends_at
        if event.kind == "over" or at is None:
            return self._over(what)
        if what.is_locked:
            paid = f"it is paid until {at:%Y-%m-%d}, and nothing renews it"
            return f"{what.label} is locked by the provider's staff: {paid}. Next: {self.step(event)}"
        left = at - self.now
        word = next((word for days, word in _WORDS if left <= timedelta(days)), "Note")
        verb = "was" if left < timedelta(0) else "is"
        when = f"{verb} paid until {at:%Y-%m-%d}"
        if what.kind == "invoice":
            named = f"{what.label} of {what.amount} {money}"
            return f"{word}: {named} {verb} to be paid by {at:%Y-%m-%d}. Next: {self.step(event)}"
        if event.kind == "ends":
            if what.renews:
                return f"{word}: {what.label} {when} and was not renewed. Next: {self.step(event)}"
            ends = f"{what.label} {when} and does not renew itself"
            return f"{word}: {ends}. Next: set auto_renew, or {self.step(event)}"
        return (
            f"{word}: {what.label} {when}, and the balance of {self.balance} {money} does not cover the "
            f"{event.due} {money} that are due by then. Next: {self.step(event)}"
        )

    def step(self, event: Due) -> str:
        """What keeps the object; empty where nothing has to be done."""
        what = event.what
        if event.kind == "renewed":
            return ""
        if what.is_cancelled:
            return "ask the provider to withdraw it, or delete the declaration"
        if not what.may_be_renewed(self.now):
            return "ask the provider why"
        if what.kind == "invoice" or what.invoice:
            return self.words.pay.format(id=what.invoice or what.id)
        if event.kind == "short":
            due = event.due.quantize(_CENT, ROUND_CEILING)
            lacking = max(event.due - (self.balance or 0), self.least) / _TOP_UP
            amount = (lacking.to_integral_value(ROUND_CEILING) * _TOP_UP).quantize(_CENT)
            return self.words.top_up.format(amount=amount, due=due, gateway=self.gateway)
        until = max(self.now, what.until or self.now) + timedelta(days=1)
        return self.words.renew.format(kind=what.kind, id=what.id, until=f"{until:%Y-%m-%d}")

    def _over(self, what: Prepaid) -> str:
        """The line for an object whose time is over."""
        at, step = what.safe_until, self.step(Due("over", what, what.until))
        if what.is_cancelled:
            until = f" on {at:%Y-%m-%d}" if at else ""
            ends = f"is suspended, and ends{until}" if what.ended == "suspended" else f"ends{until}"
            return f"{what.label} {ends}: its cancellation is approved. Next: {step}"
        locked = " and locked by the provider's staff" if what.is_locked else ""
        if at and what.is_suspended_by_staff(self.now):
            return f"{what.label} is suspended{locked}, though it is paid until {at:%Y-%m-%d}. Next: {step}"
        since = f" (it was paid until {at:%Y-%m-%d})" if at else ""
        return f"{what.label} is {what.ended}{locked}{since}. Next: {step}"

    def covers(self) -> str:
        """How long the balance lasts."""
        first = self.first_short
        if self.balance is None:
            return "the balance is not known"
        if first is None or first.at is None:
            return "the balance covers everything that renews itself"
        return f"the balance covers everything until {first.at:%Y-%m-%d}: then {first.what.label} is due"


def months_after(moment: datetime, months: int) -> datetime:
    """The same day ``months`` later, or the last day of a shorter month.

    >>> months_after(datetime(2027, 1, 31), 1)
    datetime.datetime(2027, 2, 28, 0, 0)
    """
    year, month = divmod(moment.month - 1 + months, 12)
    year, month = moment.year + year, month + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))
