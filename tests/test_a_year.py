"""A sample of the proof: nothing is lost in a year, and a person acts rarely and in time."""

import pytest

from tests.a_year import Year


@pytest.mark.slow
def test_a_year_of_paid_time_loses_nothing() -> None:
    year = Year(servers=9, domains=3).play()
    assert year.lost == set()
    assert list(year.unexplained()) == []
    assert 1 <= len(year.acts) <= 5
    assert all(left >= 7 for _, left in year.acts)
    assert sum(year.busiest.values()) > 50
