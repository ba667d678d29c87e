"""Pages: newest first, without gaps or duplicates, with cursors that cannot be forged or carried elsewhere."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.support import EmulatorHarness, code


def walk(lab: EmulatorHarness, path: str, limit: int) -> list[int]:
    ids: list[int] = []
    cursor = None
    while True:
        page = lab.api("GET", f"{path}{'&' if '?' in path else '?'}limit={limit}" + (f"&cursor={cursor}" if cursor else "")).json()
        ids += [row["id"] for row in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return ids


@settings(max_examples=15)
@given(count=st.integers(0, 12), limit=st.integers(1, 13))
def test_a_walk_sees_everything_once_newest_first(count: int, limit: int) -> None:
    lab = EmulatorHarness()
    made = [lab.control("POST", "/invoices", {"amount": "1.00"})["id"] for _ in range(count)]
    assert walk(lab, "/invoices", limit) == made[::-1]


def test_what_is_added_or_removed_meanwhile_leaves_the_rest_alone(lab: EmulatorHarness) -> None:
    made = [lab.control("POST", "/servers", {})["id"] for _ in range(5)]
    first = lab.api("GET", "/servers?limit=2").json()
    lab.control("POST", "/servers", {})
    lab.control("DELETE", f"/servers/{made[3]}")
    rest = lab.api("GET", f"/servers?limit=100&cursor={first['next_cursor']}").json()
    assert [row["id"] for row in first["data"] + rest["data"]] == made[::-1]
    assert rest["next_cursor"] is None


def test_cursors_are_bound(lab: EmulatorHarness) -> None:
    for _ in range(3):
        lab.control("POST", "/invoices", {"amount": "1.00"})
        lab.control("POST", "/servers", {})
    cursor = lab.api("GET", "/invoices?limit=1&status=not_paid").json()["next_cursor"]
    assert lab.api("GET", f"/invoices?limit=2&status=not_paid&cursor={cursor}").status_code == 200
    for path in (f"/invoices?cursor={cursor}", f"/invoices?status=paid&cursor={cursor}", f"/servers?cursor={cursor}"):
        assert code(lab.api("GET", path)) == "invalid_cursor"
    assert code(lab.test("GET", f"/invoices?status=not_paid&cursor={cursor}")) == "invalid_cursor"
    other = lab.control("POST", "/accounts", {})["live_key"]
    assert code(lab.call(other, "GET", f"/invoices?status=not_paid&cursor={cursor}")) == "invalid_cursor"


@pytest.mark.parametrize(
    "change",
    [lambda c: c[:-1], lambda c: c + "A", lambda c: c + "=", lambda c: c[::-1], lambda c: "x" + c[1:], lambda c: "", lambda c: "%C3%A9"],
)
def test_tampered(change: object, lab: EmulatorHarness) -> None:
    assert callable(change)
    for _ in range(2):
        lab.control("POST", "/invoices", {"amount": "1.00"})
    cursor = lab.api("GET", "/invoices?limit=1").json()["next_cursor"]
    assert code(lab.api("GET", f"/invoices?limit=1&cursor={change(cursor)}")) == "invalid_cursor"


def test_transactions_by_time(lab: EmulatorHarness) -> None:
    for _ in range(3):
        lab.server()
        lab.advance(60)
    moments = [row["created_at"] for row in lab.api("GET", "/transactions").json()["data"]]

    def found(query: str) -> int:
        return len(lab.api("GET", f"/transactions?{query}").json()["data"])

    assert found(f"since={moments[1]}") == 2
    assert found(f"until={moments[1]}") == 2
    assert found(f"since={moments[0]}&until={moments[2]}") == 0
    assert found("direction=credit") == 0
