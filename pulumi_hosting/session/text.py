"""Values as people and frontends read them: money, times, ages."""

from datetime import datetime, timedelta
from decimal import Decimal


def as_text(value: Decimal | datetime | None) -> str | None:
    """Money and time as a state holds them: decimal digits, and RFC 3339 in UTC."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return None if value is None else str(value)


def age(past: timedelta) -> str:
    """A length of time for people: minutes, hours, or days.

    >>> age(timedelta(seconds=10)), age(timedelta(minutes=125)), age(timedelta(days=9))
    ('0 min', '2 h', '9 days')
    """
    minutes = max(0, int(past.total_seconds()) // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
