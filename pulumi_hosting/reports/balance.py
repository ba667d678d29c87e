"""How long a balance lasts: the renewals of an account, one after the other."""

import heapq
from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

HORIZON = timedelta(days=3 * 366)
"""How far renewals are followed."""


@dataclass(frozen=True, slots=True, order=True)
class Renewal:
    """One object that renews itself: ``amount`` at ``due``, and again every ``months``; 0 months: every
    day."""

    due: datetime
    what: str
    amount: Decimal
    months: int

    def next(self) -> "Renewal":
        due = self.due + timedelta(days=1) if not self.months else months_after(self.due, self.months)
        return replace(self, due=due)


def first_uncovered(balance: Decimal, renewals: Iterable[Renewal], now: datetime) -> Renewal | None:
    """The first renewal that the balance does not cover; None where it covers all within three years."""
    waiting = [renewal for renewal in renewals if renewal.amount > 0]
    heapq.heapify(waiting)
    while waiting and waiting[0].due <= now + HORIZON:
        renewal = waiting[0]
        balance -= renewal.amount
        if balance < 0:
            return renewal
        heapq.heapreplace(waiting, renewal.next())
    return None


def months_after(moment: datetime, months: int) -> datetime:
    """The same day ``months`` later, or the last day of a shorter month.

    >>> months_after(datetime(2027, 1, 31), 1)
    datetime.datetime(2027, 2, 28, 0, 0)
    """
    year, month = divmod(moment.month - 1 + months, 12)
    year, month = moment.year + year, month + 1
    return moment.replace(year=year, month=month, day=min(moment.day, monthrange(year, month)[1]))
