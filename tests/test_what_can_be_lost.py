"""The page docs/what-can-be-lost.md says what happens, and no way to lose an object is silent."""

import pytest

from tests.what_can_be_lost import PAGE, PLACES, WAYS, Played, Way, row

NAMED = {way.title: way for way in WAYS}


@pytest.mark.slow
@pytest.mark.parametrize("title", NAMED)
def test_a_place_tells_and_the_page_says_when(title: str) -> None:
    way: Way = NAMED[title]
    said = Played(way).play().said
    assert row(way, said) in PAGE.read_text(encoding="utf-8").splitlines()
    before = {place for place, left in said.items() if left > 0}
    if way.at_the_end is None:  # it can be known before
        asked = {"preview", "check mode", "nightly job", "renewals", "exporter"}
        assert asked <= {place for place in before if said[place] >= min(7, way.days / 3)}
    else:
        assert before == set()
        assert "nightly job" in said


def test_the_page_has_a_row_for_each_way() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert f"| Way to lose it | {' | '.join(PLACES)} |" in lines
    rows = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| a ")]
    assert rows == [way.title for way in WAYS]
