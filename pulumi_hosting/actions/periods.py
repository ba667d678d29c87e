"""How far a renewal reaches for certain.

The API document says that a renewal adds to the present period, and not how long a month or a year is. Both
usual readings are taken into account: by the calendar, and 30 days for a month, 365 for a year. A renewal is
only sent where it reaches the declared date under either, since one that falls short would have to be
followed by a second charge.
"""

from calendar import monthrange
from datetime import UTC, datetime, time, timedelta
from datetime import date as Date
from typing import Annotated

from pydantic import BeforeValidator


def _moment(value: object) -> object:
    """One spelling of a moment: RFC 3339 in UTC.

    >>> _moment("2030-01-31"), _moment("2030-01-31T02:00:00+02:00")
    ('2030-01-31T00:00:00Z', '2030-01-31T00:00:00Z')
    """
    try:
        if isinstance(value, str):
            value = (
                datetime.combine(Date.fromisoformat(value), time(), UTC)
                if len(value) == 10
                else datetime.fromisoformat(value)
            )
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        if isinstance(value, Date) and not isinstance(value, datetime):
            return datetime.combine(value, time(), UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        "must be a date (2030-01-31, its start in UTC) or a timestamp with a zone (2030-01-31T12:00:00Z)"
    )


Moment = Annotated[str, BeforeValidator(_moment)]
"""A moment as RFC 3339 text in UTC; a date stands for its start."""


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def after_months(start: datetime, months: int) -> datetime:
    """``start`` and so many months, for certain.

    >>> after_months(datetime(2030, 1, 31, tzinfo=UTC), 1).isoformat()
    '2030-02-28T00:00:00+00:00'
    >>> after_months(datetime(2030, 3, 31, tzinfo=UTC), 1).isoformat()
    '2030-04-30T00:00:00+00:00'
    """
    return min(start + timedelta(days=30 * months), _by_calendar(start, months))


def after_years(start: datetime, years: int) -> datetime:
    """``start`` and so many years, for certain."""
    return min(start + timedelta(days=365 * years), _by_calendar(start, 12 * years))


def after_hours(start: datetime, hours: int) -> datetime:
    return start + timedelta(hours=hours)


def _by_calendar(start: datetime, months: int) -> datetime:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    return start.replace(year=year, month=month + 1, day=min(start.day, monthrange(year, month + 1)[1]))
