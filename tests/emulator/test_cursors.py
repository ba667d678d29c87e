"""Pages: newest first, without gaps or duplicates; a cursor cannot be forged or used for another list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.support import code
from tests.support.account import Account


def walk(account: Account, path: str, limit: int) -> list[int]:
    ids: list[int] = []
    cursor = None
    while True:
        page = account.api(
            "GET",
            f"{path}{'&' if '?' in path else '?'}limit={limit}" + (f"&cursor={cursor}" if cursor else ""),
        ).json()
        ids += [row["id"] for row in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return ids


@settings(max_examples=15)
@given(count=st.integers(0, 12), limit=st.integers(1, 13))
def test_all_pages_together_have_every_row_once_newest_first(count: int, limit: int) -> None:
    account = Account()
    made = [account.control("POST", "/invoices", {"amount": "1.00"})["id"] for _ in range(count)]
    assert walk(account, "/invoices", limit) == made[::-1]


def test_rows_added_or_removed_between_pages_do_not_shift_the_rest(account: Account) -> None:
    made = [account.control("POST", "/servers", {})["id"] for _ in range(5)]
    first = account.api("GET", "/servers?limit=2").json()
    account.control("POST", "/servers", {})
    account.control("DELETE", f"/servers/{made[3]}")
    rest = account.api("GET", f"/servers?limit=100&cursor={first['next_cursor']}").json()
    assert [row["id"] for row in first["data"] + rest["data"]] == made[::-1]
    assert rest["next_cursor"] is None


def test_a_cursor_is_valid_for_its_own_list_only(account: Account) -> None:
    for _ in range(3):
        account.control("POST", "/invoices", {"amount": "1.00"})
        account.control("POST", "/servers", {})
    cursor = account.api("GET", "/invoices?limit=1&status=not_paid").json()["next_cursor"]
    assert account.api("GET", f"/invoices?limit=2&status=not_paid&cursor={cursor}").status_code == 200
    for path in (
        f"/invoices?cursor={cursor}",
        f"/invoices?status=paid&cursor={cursor}",
        f"/servers?cursor={cursor}",
    ):
        assert code(account.api("GET", path)) == "invalid_cursor"
    assert code(account.test("GET", f"/invoices?status=not_paid&cursor={cursor}")) == "invalid_cursor"
    other = account.control("POST", "/accounts", {})["live_key"]
    assert code(account.call(other, "GET", f"/invoices?status=not_paid&cursor={cursor}")) == "invalid_cursor"


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c[:-1],
        lambda c: c + "A",
        lambda c: c + "=",
        lambda c: c[::-1],
        lambda c: "x" + c[1:],
        lambda c: "",
        lambda c: "%C3%A9",
    ],
)
def test_changed_cursors_are_invalid(change: object, account: Account) -> None:
    assert callable(change)
    for _ in range(2):
        account.control("POST", "/invoices", {"amount": "1.00"})
    cursor = account.api("GET", "/invoices?limit=1").json()["next_cursor"]
    assert code(account.api("GET", f"/invoices?limit=1&cursor={change(cursor)}")) == "invalid_cursor"


def test_transactions_by_time(account: Account) -> None:
    for _ in range(3):
        account.server()
        account.advance(60)
    moments = [row["created_at"] for row in account.api("GET", "/transactions").json()["data"]]

    def found(query: str) -> int:
        return len(account.api("GET", f"/transactions?{query}").json()["data"])

    assert found(f"since={moments[1]}") == 2
    assert found(f"until={moments[1]}") == 2
    assert found(f"since={moments[0]}&until={moments[2]}") == 0
    assert found("direction=credit") == 0


def test_a_cursor_of_one_subscription_is_not_valid_for_another(account: Account) -> None:
    first, second = account.subscribe("server.created")["id"], account.subscribe("server.created")["id"]
    for _ in range(2):
        account.server()
    cursor = account.api("GET", f"/webhooks/{first}/deliveries?limit=1").json()["next_cursor"]
    path = f"/webhooks/{{}}/deliveries?limit=1&cursor={cursor}"
    assert account.api("GET", path.format(first)).status_code == 200
    assert code(account.api("GET", path.format(second))) == "invalid_cursor"
