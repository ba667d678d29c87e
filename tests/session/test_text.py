"""Values as people read them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pulumi_hosting.session.text import age, as_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("5.00"), "5.00"),
        (Decimal("0"), "0"),
        (datetime(2026, 11, 22, 12, tzinfo=UTC), "2026-11-22T12:00:00Z"),
        (None, None),
    ],
)
def test_money_and_time_are_text_in_a_state(value: Decimal | datetime | None, text: str | None) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("past", "text"),
    [
        (timedelta(seconds=-90), "0 min"),
        (timedelta(seconds=59), "0 min"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(minutes=59, seconds=59), "59 min"),
        (timedelta(minutes=60), "1 h"),
        (timedelta(minutes=119), "1 h"),
        (timedelta(minutes=120), "2 h"),
        (timedelta(hours=47, minutes=59), "47 h"),
        (timedelta(hours=48), "2 days"),
        (timedelta(hours=71, minutes=59), "2 days"),
        (timedelta(hours=72), "3 days"),
    ],
)
def test_a_length_of_time_is_in_whole_units(past: timedelta, text: str) -> None:
    assert age(past) == text
