"""How far a renewal reaches for certain.

The API document says that a renewal adds to the present period, and not how long a month or a year is. Both
usual readings are taken into account: by the calendar, and 30 days for a month, 365 for a year. A renewal is
only sent if it reaches the declared date under either, since one that falls short would have to be
followed by a second charge.
"""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from datetime import date as Date
from typing import Annotated, Literal

from pydantic import BeforeValidator

from pulumi_hosting.session.text import as_text


def _moment(value: object) -> object:
    """One spelling of a moment: RFC 3339 in UTC.

    >>> _moment("2030-01-31"), _moment("2030-01-31T02:00:00+02:00")
    ('2030-01-31T00:00:00Z', '2030-01-31T00:00:00Z')
    """
    try:
        if isinstance(value, str):
            value = Date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value)
        if isinstance(value, Date) and not isinstance(value, datetime):
            value = datetime.combine(value, time(), UTC)
        if isinstance(value, datetime) and value.tzinfo is not None:
            return as_text(value.astimezone(UTC))
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        "must be a date (2030-01-31, its start in UTC) or a timestamp with a zone (2030-01-31T12:00:00Z)"
    )


Moment = Annotated[str, BeforeValidator(_moment)]
"""A moment as RFC 3339 text in UTC; a date stands for its start."""


moment = datetime.fromisoformat


@dataclass(frozen=True)
class Period:
    """So many hours, months or years. As text: ``1 month``, ``6 months``."""

    unit: Literal["hours", "months", "years"]
    count: int

    def __str__(self) -> str:
        return f"{self.count} {self.unit if self.count > 1 else self.unit[:-1]}"

    @property
    def given(self) -> dict[str, object]:
        """As a request and a result name it."""
        return {self.unit: self.count}

    def after(self, start: datetime) -> datetime:
        """Until when it pays from ``start`` on, for certain.

        >>> Period("months", 1).after(datetime(2030, 1, 31, tzinfo=UTC)).isoformat()
        '2030-02-28T00:00:00+00:00'
        >>> Period("months", 1).after(datetime(2030, 3, 31, tzinfo=UTC)).isoformat()
        '2030-04-30T00:00:00+00:00'
        """
        if self.unit == "hours":
            return start + timedelta(hours=self.count)
        months, days = (12, 365) if self.unit == "years" else (1, 30)
        year, month = divmod(start.year * 12 + start.month - 1 + months * self.count, 12)
        day = min(start.day, monthrange(year, month + 1)[1])
        return min(start + timedelta(days=days * self.count), start.replace(year, month + 1, day))
