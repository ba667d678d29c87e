"""What the balance announces is what then happens, and ``balance.low`` is sent exactly when it turns true."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from pulumi_hosting.emulator import periods
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from tests.emulator.support import DAY, EmulatorHarness

TEN = 2  # the tariff of 10.00 a month


def balance(lab: EmulatorHarness) -> dict[str, Any]:
    view: dict[str, Any] = lab.api("GET", "/balance").json()
    return view


def set_balance(lab: EmulatorHarness, amount: str) -> None:
    lab.control("PATCH", "/account", {"balance": amount})


def hourly(lab: EmulatorHarness) -> int:
    id: int = lab.order(tariff_id=3, hours=1)["server"]["id"]
    return id


def alarms(lab: EmulatorHarness) -> list[dict[str, Any]]:
    """The objects of the ``balance.low`` events up to now."""
    lab.advance(0)
    events = [json.loads(attempt.payload) for attempt in lab.sent if attempt.headers["X-Webhook-Event"] == "balance.low"]
    return [event["data"]["object"] for event in events]


# --- balance.low -----------------------------------------------------------------------------------------------------------------


def test_a_renewal_that_moves_the_due_date_is_no_alarm(both: EmulatorHarness) -> None:
    price = both.api("GET", f"/catalog/tariffs/{TEN}").json()["price_monthly"]
    server = both.server(tariff_id=TEN)
    both.advance(27 * DAY)
    set_balance(both, str(Decimal(price) * 3 / 2))
    both.subscribe("balance.low")
    assert both.api("POST", f"/servers/{server}/renew", {"months": 1}).status_code == 200
    assert (balance(both)["low_balance"], alarms(both)) == (False, [])


def test_a_renewal_by_itself_is_no_alarm(both: EmulatorHarness) -> None:
    price = both.api("GET", f"/catalog/tariffs/{TEN}").json()["price_monthly"]
    both.server(tariff_id=TEN)
    both.advance(27 * DAY)
    set_balance(both, str(Decimal(price) * 3 / 2))
    both.subscribe("balance.low")
    both.advance(4 * DAY)
    assert balance(both)["balance"] == str(Decimal(price) / 2)
    assert (balance(both)["low_balance"], alarms(both)) == (False, [])


def test_the_first_hour_of_a_server_that_the_balance_does_not_carry(both: EmulatorHarness) -> None:
    set_balance(both, "0.02")
    both.subscribe("balance.low")
    hourly(both)
    (object,) = alarms(both)
    assert object == balance(both)
    assert object["low_balance"] is True


def test_an_hourly_server_s_own_renewals_alarm_once(both: EmulatorHarness) -> None:
    hourly(both)
    week = Decimal(balance(both)["upcoming_7d"])
    assert week == 168 * Decimal("0.02")
    set_balance(both, str(week + Decimal("0.10")))
    both.subscribe("balance.low")
    both.advance(5 * 3600)
    assert (balance(both)["balance"], balance(both)["low_balance"], alarms(both)) == (str(week), False, [])
    both.advance(3600)
    (object,) = alarms(both)
    assert object == balance(both)
    assert object["low_balance"] is True
    both.advance(10 * 3600)
    assert len(alarms(both)) == 1


def test_two_renewals_at_one_moment_are_one_alarm(both: EmulatorHarness) -> None:
    hourly(both)
    hourly(both)
    set_balance(both, str(Decimal(balance(both)["upcoming_7d"])))
    both.subscribe("balance.low")
    both.advance(3600)
    assert alarms(both) == [balance(both)]


def test_time_alone_is_no_alarm(both: EmulatorHarness) -> None:
    both.server()
    set_balance(both, "1.00")
    both.subscribe("balance.low")
    assert balance(both)["low_balance"] is False
    both.advance(25 * DAY)
    assert (balance(both)["low_balance"], alarms(both)) == (True, [])


def low_soon(lab: EmulatorHarness) -> int:
    """A server due in 3 days, and hardly more on the balance than that takes."""
    server = lab.server()
    lab.advance(27 * DAY)
    return server


def refunded(lab: EmulatorHarness, server: int) -> httpx.Response:
    lab.fault({"refunded": 502})
    return lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"})


def paid_invoice(lab: EmulatorHarness, server: int) -> httpx.Response:
    return lab.api("POST", f"/invoices/{lab.control('POST', '/invoices', {'amount': '3.00'})['id']}/pay")


def delayed(lab: EmulatorHarness, server: int) -> httpx.Response:
    lab.core.scheduler.provisioning_delay = 60
    lab.fault({"panel_timeout": "active"})
    return lab.api("POST", "/servers", {"tariff_id": 3, "os": "debian-12", "hours": 1})


MOVES: dict[str, Callable[[EmulatorHarness, int], httpx.Response]] = {
    "create_server": lambda lab, server: lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}),
    "create_server hourly": lambda lab, server: lab.api("POST", "/servers", {"tariff_id": 3, "os": "debian-12", "hours": 1}),
    "create_server later": delayed,
    "create_server refunded": refunded,
    "renew_server": lambda lab, server: lab.api("POST", f"/servers/{server}/renew", {"months": 1}),
    "delete_server": lambda lab, server: lab.api("DELETE", f"/servers/{server}"),
    "add_server_ip": lambda lab, server: lab.api("POST", f"/servers/{server}/ips"),
    "register_domain": lambda lab, server: lab.api("POST", "/domains", {"name": "example.com"}),
    "transfer_domain": lambda lab, server: lab.api("POST", "/domains/transfers", {"name": "example.com", "auth_code": "abc"}),
    "renew_domain": lambda lab, server: lab.api("POST", f"/domains/{next(iter(lab.core.store.domains))}/renew", {"years": 1}),
    "pay_invoice": paid_invoice,
}


@pytest.mark.parametrize("spare", ["0.00", "0.01", "3.00", "5.00", "6.99", "7.00", "7.01", "13.00", "20.00"])
@pytest.mark.parametrize("move", MOVES)
def test_the_event_is_sent_exactly_when_low_balance_turns_true(move: str, spare: str, both: EmulatorHarness) -> None:
    server = low_soon(both)
    if move == "renew_domain":
        both.domain()
    set_balance(both, str(Decimal("5.00") + Decimal(spare)))
    both.subscribe("balance.low")
    before = balance(both)
    assert before["low_balance"] is False
    MOVES[move](both, server)
    after = balance(both)
    assert alarms(both) == ([after] if after["low_balance"] else []), (before, after)


# --- what is announced -----------------------------------------------------------------------------------------------------------


def ends(lab: EmulatorHarness) -> None:
    lab.control("PATCH", f"/servers/{lab.server()}", {"status": "pending_cancel"})


def switched_off(lab: EmulatorHarness) -> None:
    lab.api("PATCH", f"/servers/{lab.server()}", {"auto_renew": False})


def locked(lab: EmulatorHarness) -> None:
    lab.control("PATCH", f"/servers/{lab.server()}", {"blocked": True})


def suspended(lab: EmulatorHarness) -> None:
    lab.control("PATCH", f"/servers/{lab.server()}", {"status": "suspended"})


def gone(lab: EmulatorHarness) -> None:
    lab.api("DELETE", f"/servers/{lab.server()}")


def locked_domain(lab: EmulatorHarness) -> None:
    lab.control("PATCH", f"/domains/{expiring_domain(lab)}", {"blocked": True})


def expiring_domain(lab: EmulatorHarness) -> int:
    domain = lab.domain()
    lab.api("PATCH", f"/domains/{domain}", {"auto_renew": True})
    lab.advance(340 * DAY)
    return domain


def sandbox(lab: EmulatorHarness) -> None:
    lab.test("POST", "/servers", {"tariff_id": 1, "os": "debian-12"})


@pytest.mark.parametrize("make", [ends, switched_off, locked, suspended, gone, sandbox, locked_domain])
def test_what_will_not_be_charged_is_not_announced(make: Callable[[EmulatorHarness], object], both: EmulatorHarness) -> None:
    make(both)
    both.advance(20 * DAY)
    shown = balance(both)
    assert (shown["upcoming_7d"], shown["upcoming_30d"], shown["low_balance"], shown["auto_renew_total_monthly"]) == (
        "0.00",
        "0.00",
        False,
        "0.00",
    )
    both.advance(31 * DAY)
    assert balance(both)["balance"] == shown["balance"]


def addresses(lab: EmulatorHarness) -> None:
    server = lab.server()
    lab.api("POST", f"/servers/{server}/ips")


def hourly_with_address(lab: EmulatorHarness) -> None:
    lab.api("POST", f"/servers/{hourly(lab)}/ips")


def long_term(lab: EmulatorHarness) -> None:
    lab.server(months=3)
    lab.advance(80 * DAY)


def due_twice(lab: EmulatorHarness) -> None:
    """February is shorter than 30 days: due on its first day and on the first of March."""
    lab.advance(parse_timestamp("2030-01-01T00:00:00Z") - lab.clock.now())
    lab.server()
    lab.advance(31 * DAY - 1)


def many(lab: EmulatorHarness) -> None:
    for make in (lab.server, lambda: hourly(lab), lambda: lab.server(tariff_id=TEN), lambda: addresses(lab)):
        make()
        lab.advance(6 * DAY + 1)


@pytest.mark.parametrize(
    "make", [lambda lab: lab.server(), hourly, addresses, hourly_with_address, long_term, expiring_domain, due_twice, many]
)
@pytest.mark.parametrize("days", [7, 30])
def test_the_announced_sums_are_what_is_charged(make: Callable[[EmulatorHarness], object], days: int, both: EmulatorHarness) -> None:
    make(both)
    shown = balance(both)
    announced = Decimal(shown[f"upcoming_{days}d"])
    both.advance(days * DAY)
    assert Decimal(shown["balance"]) - Decimal(balance(both)["balance"]) == announced
    assert days == 7 or announced > 0


def test_a_balance_that_covers_the_week_is_not_used_up_in_it(both: EmulatorHarness) -> None:
    server = hourly(both)
    set_balance(both, "1.00")
    shown = balance(both)
    assert (shown["upcoming_7d"], shown["low_balance"], shown["auto_renew_total_monthly"]) == ("3.36", True, "14.40")
    both.advance(3 * DAY)
    assert both.api("GET", f"/servers/{server}").json()["status"] == "suspended"


# --- direction -------------------------------------------------------------------------------------------------------------------


def test_the_direction_of_a_movement_follows_its_type(both: EmulatorHarness) -> None:
    both.control("PATCH", "/account", {"group_discount_percent": "100"})
    server = both.server()
    both.api("POST", f"/servers/{server}/renew", {"months": 1})
    both.control("PATCH", "/account", {"group_discount_percent": "0", "balance": "2000.00"})
    both.control("PATCH", "/account", {"balance": "100.00"})
    both.api("DELETE", f"/servers/{both.server()}")
    topup = both.api("POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}).json()["invoice_id"]
    both.control("POST", f"/invoices/{topup}/confirm")
    seen = {(row["type"], row["direction"]) for row in both.api("GET", "/transactions").json()["data"]}
    assert seen == {("payment", "debit"), ("refund", "credit"), ("topup", "credit"), ("adjustment", "credit"), ("adjustment", "debit")}
    assert [row["amount"] for row in both.control("GET", "/ledger")][:2] == ["0.00", "0.00"]


# --- how long a month is ---------------------------------------------------------------------------------------------------------


def at(lab: EmulatorHarness, moment: str) -> None:
    lab.advance(parse_timestamp(moment) - lab.clock.now())


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
def test_a_month_is_a_month_of_the_calendar(ordered: str, months: int, due: str, both: EmulatorHarness) -> None:
    at(both, ordered)
    server = both.order(months=months)["server"]
    assert server["billing"]["next_due_at"] == due
    renewed = both.api("POST", f"/servers/{server['id']}/renew", {"months": 1}).json()
    assert renewed["next_due_at"] == format_timestamp(periods.months_after(parse_timestamp(due), 1))
    # Just ordered, one more address costs its monthly price for every month, whatever their length.
    quote = both.api("GET", f"/servers/{both.server(months=months)}/ips/quote").json()
    assert Decimal(quote["prorated_now"]) == months * Decimal(quote["price_monthly"])


def test_twelve_months_and_a_year_end_on_one_date(both: EmulatorHarness) -> None:
    at(both, "2031-03-01T10:00:00Z")
    server, domain = both.order(months=12)["server"], both.register()
    assert domain["expires_at"] == server["billing"]["next_due_at"] == "2032-03-01T10:00:00Z"
    pending = both.control("POST", "/invoices", {"type": "vds_purchase"})["id"]
    both.advance(DAY)
    both.api("POST", f"/invoices/{pending}/pay")
    both.advance(0)
    ordered = both.api("GET", f"/servers/{both.api('GET', f'/orders/{pending}').json()['server_id']}").json()
    assert ordered["billing"]["next_due_at"] == "2031-04-02T10:00:00Z"


def test_an_address_is_paid_for_the_started_days_of_the_month(both: EmulatorHarness) -> None:
    at(both, "2030-03-01T00:00:00Z")  # a month of 31 days
    server = both.server()
    path = f"/servers/{server}/ips/quote"
    assert both.api("GET", path).json()["prorated_now"] == "2.00"
    both.advance(10 * DAY)
    assert both.api("GET", path).json()["prorated_now"] == str((Decimal(2) * 21 / 31).quantize(Decimal("0.01")))
    both.advance(21 * DAY - 1)
    assert both.api("GET", path).json()["prorated_now"] == "0.07"


def test_nobody_pays_further_ahead_than_a_lifetime(both: EmulatorHarness) -> None:
    both.control("PATCH", "/account", {"group_discount_percent": "100"})
    server = both.server(months=12)
    key = both.new_key(rate_expensive_per_minute=1000, rate_per_minute=1000)
    answers = [both.call(key, "POST", f"/servers/{server}/renew", {"months": 12}) for _ in range(110)]
    assert {answer.status_code for answer in answers} == {200, 400}
    assert answers[-1].json()["error"]["code"] == "invalid_period"
    assert both.api("GET", f"/servers/{server}").status_code == 200
