"""Periods of hours and of calendar months; twelve months and a year end on the same date."""

from calendar import monthrange
from datetime import date, timedelta
from functools import lru_cache

HOUR_SECONDS = 3600
DAY_SECONDS = 86400
# Hours in a month, when a monthly price is charged by the hour (addresses of hourly servers).
HOURS_OF_A_MONTH = 720


def months_after(moment: float, months: int) -> float:
    """The same day and time ``months`` calendar months later (UTC), or the last day of a shorter month.

    >>> from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
    >>> format_timestamp(months_after(parse_timestamp("2027-01-31T08:30:00Z"), 1))
    '2027-02-28T08:30:00Z'
    >>> format_timestamp(months_after(parse_timestamp("2028-02-29T00:00:00Z"), 12))
    '2029-02-28T00:00:00Z'
    """
    return moment + _days(int(moment // DAY_SECONDS), months) * DAY_SECONDS


@lru_cache(1024)
def _days(number: int, months: int) -> int:
    """The length of ``months`` calendar months from a day, which has this ``number`` since 1970."""
    day = date(1970, 1, 1) + timedelta(number)
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    later = date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
    return (later - day).days


def end(start: float, *, months: int | None = None, hours: int | None = None) -> float:
    """The end of a period of ``hours``, or else of ``months``."""
    return start + hours * HOUR_SECONDS if hours is not None else months_after(start, months or 1)


def started_days(start: float, until: float) -> int:
    """Days from ``start`` to ``until``, started days included; at least 0."""
    return max(0, -int((start - until) // DAY_SECONDS))


def whole_months(start: float, until: float) -> int:
    """How many whole calendar months lie between ``start`` and ``until``."""
    months = 0
    while months_after(start, months + 1) <= until:
        months += 1
    return months
