"""Upcoming charges equal later charges, and ``balance.low`` is sent when ``low_balance`` becomes true."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from pulumi_hosting.emulator import periods
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from tests.emulator.support import DAY
from tests.support.account import Account

TEN = 2  # the tariff of 10.00 a month


def balance(account: Account) -> dict[str, Any]:
    view: dict[str, Any] = account.api("GET", "/balance").json()
    return view


def set_balance(account: Account, amount: str) -> None:
    account.control("PATCH", "/account", {"balance": amount})


def hourly(account: Account) -> int:
    id: int = account.order(tariff_id=3, hours=1)["server"]["id"]
    return id


def low_balance_events(account: Account) -> list[dict[str, Any]]:
    """The objects of the ``balance.low`` events up to now."""
    account.advance(0)
    events = [
        json.loads(attempt.payload)
        for attempt in account.sent
        if attempt.headers["X-Webhook-Event"] == "balance.low"
    ]
    return [event["data"]["object"] for event in events]


# --- balance.low ------------------------------------------------------------------------------------------


def test_a_renewal_that_moves_the_due_date_sends_no_event(any_dialect: Account) -> None:
    price = any_dialect.api("GET", f"/catalog/tariffs/{TEN}").json()["price_monthly"]
    server = any_dialect.server(tariff_id=TEN)
    any_dialect.advance(27 * DAY)
    set_balance(any_dialect, str(Decimal(price) * 3 / 2))
    any_dialect.subscribe("balance.low")
    assert any_dialect.api("POST", f"/servers/{server}/renew", {"months": 1}).status_code == 200
    assert (balance(any_dialect)["low_balance"], low_balance_events(any_dialect)) == (False, [])


def test_an_automatic_renewal_sends_no_event(any_dialect: Account) -> None:
    price = any_dialect.api("GET", f"/catalog/tariffs/{TEN}").json()["price_monthly"]
    any_dialect.server(tariff_id=TEN)
    any_dialect.advance(27 * DAY)
    set_balance(any_dialect, str(Decimal(price) * 3 / 2))
    any_dialect.subscribe("balance.low")
    any_dialect.advance(4 * DAY)
    assert balance(any_dialect)["balance"] == str(Decimal(price) / 2)
    assert (balance(any_dialect)["low_balance"], low_balance_events(any_dialect)) == (False, [])


def test_ordering_an_hourly_server_beyond_the_balance_sends_the_event(any_dialect: Account) -> None:
    set_balance(any_dialect, "0.02")
    any_dialect.subscribe("balance.low")
    hourly(any_dialect)
    (object,) = low_balance_events(any_dialect)
    assert object == balance(any_dialect)
    assert object["low_balance"] is True


def test_hourly_renewals_send_the_event_once(any_dialect: Account) -> None:
    hourly(any_dialect)
    week = Decimal(balance(any_dialect)["upcoming_7d"])
    assert week == 168 * Decimal("0.02")
    set_balance(any_dialect, str(week + Decimal("0.10")))
    any_dialect.subscribe("balance.low")
    any_dialect.advance(5 * 3600)
    assert (
        balance(any_dialect)["balance"],
        balance(any_dialect)["low_balance"],
        low_balance_events(any_dialect),
    ) == (str(week), False, [])
    any_dialect.advance(3600)
    (object,) = low_balance_events(any_dialect)
    assert object == balance(any_dialect)
    assert object["low_balance"] is True
    any_dialect.advance(10 * 3600)
    assert len(low_balance_events(any_dialect)) == 1


def test_two_renewals_at_the_same_time_send_one_event(any_dialect: Account) -> None:
    hourly(any_dialect)
    hourly(any_dialect)
    set_balance(any_dialect, str(Decimal(balance(any_dialect)["upcoming_7d"])))
    any_dialect.subscribe("balance.low")
    any_dialect.advance(3600)
    assert low_balance_events(any_dialect) == [balance(any_dialect)]


def renewing_domain(account: Account) -> None:
    account.api("PATCH", f"/domains/{account.domain()}", {"auto_renew": True})


MONTH, YEAR = 30 * DAY, 365 * DAY  # until the first due date


@pytest.mark.parametrize(("make", "paid"), [(Account.server, MONTH), (renewing_domain, YEAR)])
def test_the_event_is_sent_when_a_due_date_comes_within_7_days(
    make: Callable[[Account], object], paid: int, any_dialect: Account
) -> None:
    make(any_dialect)
    set_balance(any_dialect, "1.00")
    any_dialect.subscribe("balance.low")
    any_dialect.advance(paid - 7 * DAY - 1)
    assert (balance(any_dialect)["low_balance"], low_balance_events(any_dialect)) == (False, [])
    any_dialect.advance(1)
    assert low_balance_events(any_dialect) == [balance(any_dialect)]
    assert balance(any_dialect)["low_balance"] is True
    any_dialect.advance(6 * DAY)
    assert len(low_balance_events(any_dialect)) == 1


def test_a_due_date_that_is_covered_sends_no_event(any_dialect: Account) -> None:
    any_dialect.server()
    set_balance(any_dialect, "5.00")
    any_dialect.subscribe("balance.low")
    any_dialect.advance(29 * DAY)
    assert (balance(any_dialect)["upcoming_7d"], low_balance_events(any_dialect)) == ("5.00", [])


@pytest.mark.parametrize(("make", "paid"), [(Account.server, MONTH), (renewing_domain, YEAR)])
def test_variant_balance_low_movements(
    make: Callable[[Account], object], paid: int, any_dialect: Account
) -> None:
    """Time alone sends no event; a movement of money still does."""
    any_dialect.variant(balance_low="movements")
    make(any_dialect)
    set_balance(any_dialect, "1.00")
    any_dialect.subscribe("balance.low")
    any_dialect.advance(paid - 5 * DAY)
    assert (balance(any_dialect)["low_balance"], low_balance_events(any_dialect)) == (True, [])
    any_dialect.advance(10 * DAY)  # it has ended
    set_balance(any_dialect, "10.00")
    hourly(any_dialect)
    set_balance(any_dialect, balance(any_dialect)["upcoming_7d"])
    any_dialect.advance(3600)
    assert len(low_balance_events(any_dialect)) == 1


def low_soon(account: Account) -> int:
    """A server due in 3 days, and a balance that covers little more."""
    server = account.server()
    account.advance(27 * DAY)
    return server


def refunded(account: Account, server: int) -> httpx.Response:
    account.fault({"refunded": 502})
    return account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"})


def paid_invoice(account: Account, server: int) -> httpx.Response:
    return account.api(
        "POST", f"/invoices/{account.control('POST', '/invoices', {'amount': '3.00'})['id']}/pay"
    )


def delayed(account: Account, server: int) -> httpx.Response:
    account.core.store.provisioning_delay = 60
    account.fault({"panel_timeout": "active"})
    return account.api("POST", "/servers", {"tariff_id": 3, "os": "debian-12", "hours": 1})


MOVES: dict[str, Callable[[Account, int], httpx.Response]] = {
    "create_server": lambda account, server: account.api(
        "POST", "/servers", {"tariff_id": 1, "os": "debian-12"}
    ),
    "create_server hourly": lambda account, server: account.api(
        "POST", "/servers", {"tariff_id": 3, "os": "debian-12", "hours": 1}
    ),
    "create_server later": delayed,
    "create_server refunded": refunded,
    "renew_server": lambda account, server: account.api("POST", f"/servers/{server}/renew", {"months": 1}),
    "delete_server": lambda account, server: account.api("DELETE", f"/servers/{server}"),
    "add_server_ip": lambda account, server: account.api("POST", f"/servers/{server}/ips"),
    "register_domain": lambda account, server: account.api("POST", "/domains", {"name": "example.com"}),
    "transfer_domain": lambda account, server: account.api(
        "POST", "/domains/transfers", {"name": "example.com", "auth_code": "abc"}
    ),
    "renew_domain": lambda account, server: account.api(
        "POST", f"/domains/{next(iter(account.core.store.domains))}/renew", {"years": 1}
    ),
    "pay_invoice": paid_invoice,
}


@pytest.mark.parametrize("spare", ["0.00", "0.01", "3.00", "5.00", "6.99", "7.00", "7.01", "13.00", "20.00"])
@pytest.mark.parametrize("move", MOVES)
def test_the_event_is_sent_when_low_balance_becomes_true(move: str, spare: str, any_dialect: Account) -> None:
    server = low_soon(any_dialect)
    if move == "renew_domain":
        any_dialect.domain()
    set_balance(any_dialect, str(Decimal("5.00") + Decimal(spare)))
    any_dialect.subscribe("balance.low")
    before = balance(any_dialect)
    assert before["low_balance"] is False
    MOVES[move](any_dialect, server)
    after = balance(any_dialect)
    assert low_balance_events(any_dialect) == ([after] if after["low_balance"] else []), (before, after)


# --- upcoming charges -------------------------------------------------------------------------------------


def ends(account: Account) -> None:
    account.control("PATCH", f"/servers/{account.server()}", {"status": "pending_cancel"})


def without_auto_renew(account: Account) -> None:
    account.api("PATCH", f"/servers/{account.server()}", {"auto_renew": False})


def locked(account: Account) -> None:
    account.control("PATCH", f"/servers/{account.server()}", {"blocked": True})


def suspended(account: Account) -> None:
    account.control("PATCH", f"/servers/{account.server()}", {"status": "suspended"})


def gone(account: Account) -> None:
    account.api("DELETE", f"/servers/{account.server()}")


def locked_domain(account: Account) -> None:
    account.control("PATCH", f"/domains/{expiring_domain(account)}", {"blocked": True})


def expiring_domain(account: Account) -> int:
    domain = account.domain()
    account.api("PATCH", f"/domains/{domain}", {"auto_renew": True})
    account.advance(340 * DAY)
    return domain


def sandbox(account: Account) -> None:
    account.test("POST", "/servers", {"tariff_id": 1, "os": "debian-12"})


@pytest.mark.parametrize("make", [ends, without_auto_renew, locked, suspended, gone, sandbox, locked_domain])
def test_upcoming_charges_leave_out_what_is_not_charged(
    make: Callable[[Account], object], any_dialect: Account
) -> None:
    make(any_dialect)
    any_dialect.advance(20 * DAY)
    shown = balance(any_dialect)
    assert (
        shown["upcoming_7d"],
        shown["upcoming_30d"],
        shown["low_balance"],
        shown["auto_renew_total_monthly"],
    ) == (
        "0.00",
        "0.00",
        False,
        "0.00",
    )
    any_dialect.advance(31 * DAY)
    assert balance(any_dialect)["balance"] == shown["balance"]


def addresses(account: Account) -> None:
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")


def hourly_with_address(account: Account) -> None:
    account.api("POST", f"/servers/{hourly(account)}/ips")


def long_term(account: Account) -> None:
    account.server(months=3)
    account.advance(80 * DAY)


def due_twice(account: Account) -> None:
    """February is shorter than 30 days: due on its first day and on the first of March."""
    account.advance(parse_timestamp("2030-01-01T00:00:00Z") - account.clock.now())
    account.server()
    account.advance(31 * DAY - 1)


def many(account: Account) -> None:
    for make in (
        account.server,
        lambda: hourly(account),
        lambda: account.server(tariff_id=TEN),
        lambda: addresses(account),
    ):
        make()
        account.advance(6 * DAY + 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda account: account.server(),
        hourly,
        addresses,
        hourly_with_address,
        long_term,
        expiring_domain,
        due_twice,
        many,
    ],
)
@pytest.mark.parametrize("days", [7, 30])
def test_upcoming_charges_equal_what_is_charged(
    make: Callable[[Account], object], days: int, any_dialect: Account
) -> None:
    make(any_dialect)
    shown = balance(any_dialect)
    announced = Decimal(shown[f"upcoming_{days}d"])
    any_dialect.advance(days * DAY)
    assert Decimal(shown["balance"]) - Decimal(balance(any_dialect)["balance"]) == announced
    assert days == 7 or announced > 0


def test_a_balance_that_covers_the_week_lasts_the_week(any_dialect: Account) -> None:
    server = hourly(any_dialect)
    set_balance(any_dialect, "1.00")
    shown = balance(any_dialect)
    assert (shown["upcoming_7d"], shown["low_balance"], shown["auto_renew_total_monthly"]) == (
        "3.36",
        True,
        "14.40",
    )
    any_dialect.advance(3 * DAY)
    assert any_dialect.api("GET", f"/servers/{server}").json()["status"] == "suspended"


# --- direction --------------------------------------------------------------------------------------------


def test_the_direction_of_a_movement_follows_its_type(any_dialect: Account) -> None:
    any_dialect.control("PATCH", "/account", {"group_discount_percent": "100"})
    server = any_dialect.server()
    any_dialect.api("POST", f"/servers/{server}/renew", {"months": 1})
    any_dialect.control("PATCH", "/account", {"group_discount_percent": "0", "balance": "2000.00"})
    any_dialect.control("PATCH", "/account", {"balance": "100.00"})
    any_dialect.api("DELETE", f"/servers/{any_dialect.server()}")
    topup = any_dialect.api("POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}).json()[
        "invoice_id"
    ]
    any_dialect.control("POST", f"/invoices/{topup}/confirm")
    seen = {(row["type"], row["direction"]) for row in any_dialect.api("GET", "/transactions").json()["data"]}
    assert seen == {
        ("payment", "debit"),
        ("refund", "credit"),
        ("topup", "credit"),
        ("adjustment", "credit"),
        ("adjustment", "debit"),
    }
    assert [row["amount"] for row in any_dialect.control("GET", "/ledger")][:2] == ["0.00", "0.00"]


# --- months -----------------------------------------------------------------------------------------------


def at(account: Account, moment: str) -> None:
    account.advance(parse_timestamp(moment) - account.clock.now())


@pytest.mark.parametrize(
    ("ordered", "months", "due"),
    [
        ("2030-01-15T08:00:00Z", 1, "2030-02-15T08:00:00Z"),
        ("2030-01-31T08:00:00Z", 1, "2030-02-28T08:00:00Z"),
        ("2030-05-31T23:59:59Z", 1, "2030-06-30T23:59:59Z"),
        ("2030-08-31T00:00:00Z", 6, "2031-02-28T00:00:00Z"),
        ("2031-12-31T00:00:00Z", 12, "2032-12-31T00:00:00Z"),
        ("2032-02-29T12:00:00Z", 12, "2033-02-28T12:00:00Z"),
    ],
)
def test_a_month_is_a_calendar_month(ordered: str, months: int, due: str, any_dialect: Account) -> None:
    at(any_dialect, ordered)
    server = any_dialect.order(months=months)["server"]
    assert server["billing"]["next_due_at"] == due
    renewed = any_dialect.api("POST", f"/servers/{server['id']}/renew", {"months": 1}).json()
    assert renewed["next_due_at"] == format_timestamp(periods.months_after(parse_timestamp(due), 1))
    # An address bought with the server costs its monthly price for every month of any length.
    quote = any_dialect.api("GET", f"/servers/{any_dialect.server(months=months)}/ips/quote").json()
    assert Decimal(quote["prorated_now"]) == months * Decimal(quote["price_monthly"])


def test_twelve_months_and_a_year_end_on_the_same_date(any_dialect: Account) -> None:
    at(any_dialect, "2031-03-01T10:00:00Z")
    server, domain = any_dialect.order(months=12)["server"], any_dialect.register()
    assert domain["expires_at"] == server["billing"]["next_due_at"] == "2032-03-01T10:00:00Z"
    pending = any_dialect.control("POST", "/invoices", {"type": "vds_purchase"})["id"]
    any_dialect.advance(DAY)
    any_dialect.api("POST", f"/invoices/{pending}/pay")
    any_dialect.advance(0)
    ordered = any_dialect.api(
        "GET", f"/servers/{any_dialect.api('GET', f'/orders/{pending}').json()['server_id']}"
    ).json()
    assert ordered["billing"]["next_due_at"] == "2031-04-02T10:00:00Z"


def test_an_address_is_paid_for_the_started_days_of_the_month(any_dialect: Account) -> None:
    at(any_dialect, "2030-03-01T00:00:00Z")  # a month of 31 days
    server = any_dialect.server()
    path = f"/servers/{server}/ips/quote"
    assert any_dialect.api("GET", path).json()["prorated_now"] == "2.00"
    any_dialect.advance(10 * DAY)
    assert any_dialect.api("GET", path).json()["prorated_now"] == str(
        (Decimal(2) * 21 / 31).quantize(Decimal("0.01"))
    )
    any_dialect.advance(21 * DAY - 1)
    assert any_dialect.api("GET", path).json()["prorated_now"] == "0.07"


def test_renewals_end_at_most_a_hundred_years_ahead(any_dialect: Account) -> None:
    any_dialect.control("PATCH", "/account", {"group_discount_percent": "100"})
    server = any_dialect.server(months=12)
    key = any_dialect.new_key(rate_expensive_per_minute=1000, rate_per_minute=1000)
    answers = [any_dialect.call(key, "POST", f"/servers/{server}/renew", {"months": 12}) for _ in range(110)]
    assert {answer.status_code for answer in answers} == {200, 400}
    assert answers[-1].json()["error"]["code"] == "invalid_period"
    assert any_dialect.api("GET", f"/servers/{server}").status_code == 200
