"""Discounts and refunds to the cent, and a ledger that always adds up."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_hosting.emulator import pricing
from pulumi_hosting.emulator.control.account_file import preparation
from pulumi_hosting.emulator.rows import InvoiceRow
from tests.emulator.support import DAY, code
from tests.support.account import Account

MONTH = 30 * DAY


@pytest.mark.parametrize(
    ("query", "discounted", "total", "discounts"),
    [
        ("months=1", {}, "5.00", []),
        ("", {}, "5.00", []),
        ("months=12", {}, "52.80", [("period", 12.0, "7.20")]),
        (
            "months=3",
            {"group_discount_percent": "10"},
            "12.82",
            [("group", 10.0, "1.50"), ("period", 5.0, "0.68")],
        ),
        (
            "months=6&promo_code=save20",
            {"group_discount_percent": 5, "loyalty_discount_percent": "2.5"},
            "20.46",
            [
                ("group", 5.0, "1.50"),
                ("loyalty", 2.5, "0.71"),
                ("period", 8.0, "2.22"),
                ("promo", 20.0, "5.11"),
            ],
        ),
    ],
)
def test_quotes(
    query: str,
    discounted: dict[str, object],
    total: str,
    discounts: list[tuple[str, float, str]],
    account: Account,
) -> None:
    if discounted:
        account.control("PATCH", "/account", discounted)
    quote = account.api("GET", f"/catalog/quote?tariff_id=1&{query}").json()
    assert (quote["total"], [tuple(row.values()) for row in quote["discounts"]]) == (total, discounts)
    assert Decimal(quote["base_amount"]) - sum(
        Decimal(row["amount"]) for row in quote["discounts"]
    ) == Decimal(quote["total"])


def test_orders_cost_what_the_quote_says(account: Account) -> None:
    account.control("PATCH", "/account", {"group_discount_percent": "7", "loyalty_discount_percent": "3"})
    for months in (1, 3, 6, 12):
        quote = account.api("GET", f"/catalog/quote?tariff_id=2&months={months}&promo_code=SAVE20").json()
        assert account.order(tariff_id=2, months=months, promo_code="SAVE20")["charged"] == quote["total"]
    quote = account.api("GET", "/catalog/quote?tariff_id=3&hours=100").json()
    assert (quote["billing_cycle"], quote["hours"], quote["months"]) == ("hourly", 100, None)
    assert account.order(tariff_id=3, hours=100)["charged"] == quote["total"]


def test_volume(account: Account) -> None:
    charged = [account.order()["charged"] for _ in range(10)]
    assert charged == ["5.00"] * 4 + ["4.85"] * 5 + ["4.75"]


def test_quote_details(account: Account) -> None:
    account.control("PATCH", "/account", {"balance": "2.00"})
    quote = account.api("GET", "/catalog/quote?tariff_id=1&promo_code=EXPIRED50").json()
    assert (quote["balance_sufficient"], quote["shortfall"], quote["promo"]) == (
        False,
        "3.00",
        {"code": "EXPIRED50", "valid": False, "message": "expired"},
    )
    assert account.api("GET", "/catalog/quote?tariff_id=3&hours=2160").status_code == 200
    for query in (
        "tariff_id=1&hours=1",
        "tariff_id=3&hours=2161",
        "tariff_id=3&hours=1&months=1",
        "tariff_id=1&months=2",
    ):
        assert code(account.api("GET", f"/catalog/quote?{query}")) == "invalid_period"
    for query in ("tariff_id=3&hours=1&billing_cycle=monthly", "tariff_id=3&months=1&billing_cycle=hourly"):
        assert code(account.api("GET", f"/catalog/quote?{query}")) == "invalid_period"
    assert code(account.api("GET", "/catalog/quote?tariff_id=99")) == "not_found"
    assert code(account.api("GET", "/catalog/quote")) == "validation_error"
    assert code(account.api("GET", f"/catalog/quote?tariff_id=1&promo_code={'x' * 65}")) == "validation_error"


def test_a_promo_code_is_consumed_by_an_order_and_not_by_a_quote(account: Account) -> None:
    for _ in range(2):
        assert (
            account.api("GET", "/catalog/quote?tariff_id=1&promo_code=WELCOME10").json()["promo"]["valid"]
            is True
        )
    assert account.order(promo_code="WELCOME10")["charged"] == "4.50"
    assert (
        account.api("GET", "/catalog/quote?tariff_id=1&promo_code=WELCOME10").json()["promo"]["message"]
        == "already used"
    )
    assert (
        code(account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12", "promo_code": "WELCOME10"}))
        == "validation_error"
    )


def test_prices_in_the_catalog(account: Account) -> None:
    account.control("PATCH", "/account", {"group_discount_percent": "10"})
    tariff = account.api("GET", "/catalog/tariffs/3").json()
    assert (tariff["list_price_monthly"], tariff["price_monthly"], tariff["price_hourly"]) == (
        "9.00",
        "8.10",
        "0.015",
    )
    assert [row["total"] for row in tariff["periods"]] == ["8.10", "23.08", "44.71", "85.54"]
    account.control("PATCH", "/tariffs/3", {"price_monthly": "11.00", "in_stock": False})
    assert account.api("GET", "/catalog/tariffs/3").json()["list_price_monthly"] == "11.00"
    account.control("PATCH", "/tariffs/3", {"disabled": True})
    assert code(account.api("GET", "/catalog/tariffs/3")) == "not_found"
    assert 3 not in [row["id"] for row in account.api("GET", "/catalog/tariffs").json()["data"]]
    excluded = [row["slug"] for row in account.api("GET", "/catalog/os?tariff_id=5").json()["data"]]
    assert "windows-2022" not in excluded
    assert len(excluded) == 5


# --- refunds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "refund"), [(0, "5.00"), (1, "4.83"), (10, "3.33"), (15, "2.50"), (29, "0.17")]
)
def test_refund_by_time(days: int, refund: str, account: Account) -> None:
    server = account.server()
    account.advance(days * DAY)
    quote = account.api("GET", f"/servers/{server}/refund-quote").json()
    assert (quote["amount"], quote["refundable"], quote["excluded_reason"]) == (refund, True, None)
    assert quote["breakdown"][0]["days_left"] == 30 - days
    assert account.api("DELETE", f"/servers/{server}").json()["refund"]["amount"] == refund


def test_refund_of_renewals_ahead(account: Account) -> None:
    server = account.server()
    account.api("POST", f"/servers/{server}/renew", {"months": 3})
    account.advance(15 * DAY)
    quote = account.api("GET", f"/servers/{server}/refund-quote").json()
    assert [row["refund"] for row in quote["breakdown"]] == ["2.50", "14.25"]
    account.api("DELETE", f"/servers/{server}")
    assert [row["status"] for row in account.api("GET", "/invoices").json()["data"]] == [
        "refunded",
        "refunded",
    ]
    assert account.balance() == "997.50"


@pytest.mark.parametrize(
    ("dialect", "consumed", "hourly"), [("spec", "unpaid", "unpaid"), ("live", "consumed", "hourly")]
)
def test_nothing_to_refund(dialect: str, consumed: str, hourly: str) -> None:
    account = Account(dialect=dialect)
    promo = account.order(tariff_id=6)["server"]["id"]
    assert account.api("GET", f"/servers/{promo}/refund-quote").json()["excluded_reason"] == "promo_tariff"
    assert account.api("DELETE", f"/servers/{promo}").status_code == 200
    assert account.balance() == "998.01"
    server, by_the_hour = account.server(), account.order(tariff_id=3, hours=1)["server"]["id"]
    for id in (server, by_the_hour):
        account.control("PATCH", f"/servers/{id}", {"auto_renew": False})
    account.advance(3599)
    assert account.api("GET", f"/servers/{by_the_hour}/refund-quote").json()["excluded_reason"] == hourly
    account.advance(MONTH - 3600)
    assert account.api("GET", f"/servers/{server}/refund-quote").json()["excluded_reason"] == consumed


@given(
    amount=st.integers(0, 10**7).map(lambda cents: Decimal(cents) / 100),
    length=st.integers(1, 10**8),
    passed=st.integers(0, 2 * 10**8),
)
def test_a_refund_is_never_more_than_the_payment(amount: Decimal, length: int, passed: int) -> None:
    invoice = InvoiceRow(
        account_id=1,
        type="vds_purchase",
        status="paid",
        amount=amount,
        description="a server",
        created_at=1000.0,
        period_start=1000.0,
        period_end=1000.0 + length,
    )
    refund = pricing.prorated(invoice, 1000.0 + passed)
    assert Decimal(0) <= refund <= amount
    assert refund == refund.quantize(Decimal("0.01"))


def test_the_ledger_adds_up(account: Account) -> None:
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    account.api("POST", f"/servers/{server}/renew", {"months": 1})
    account.domain()
    account.control("PATCH", "/account", {"balance": "123.45"})
    account.fault({"refunded": 502})
    account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"})
    account.advance(7 * DAY)
    account.api("DELETE", f"/servers/{server}")
    rows = account.control("GET", "/ledger")
    total = sum(
        (Decimal(row["amount"]) * (1 if row["direction"] == "credit" else -1) for row in rows),
        Decimal("1000.00"),
    )
    assert f"{total:.2f}" == account.balance()
    operations = [row["operation"] for row in rows]
    assert operations == [
        "create_server",
        "add_server_ip",
        "renew_server",
        "register_domain",
        "control",
        "create_server",
        "create_server",
        "delete_server",
        "delete_server",
        "delete_server",
    ]
    for row in rows:
        assert (row["idempotency_key"] is None) == (row["operation"] == "control")
    seqs = {row["seq"]: row for row in account.control("GET", "/requests")}
    assert seqs[rows[0]["request_seq"]]["path"] == "/servers"


def test_upcoming_and_low_balance(account: Account) -> None:
    account.subscribe("balance.low")
    account.server()
    balance = account.api("GET", "/balance").json()
    assert (balance["upcoming_7d"], balance["upcoming_30d"], balance["auto_renew_total_monthly"]) == (
        "0.00",
        "5.00",
        "5.00",
    )
    account.advance(25 * DAY)
    account.control("PATCH", "/account", {"balance": "13.00"})
    assert account.api("GET", "/balance").json()["low_balance"] is False
    account.domain("low.com")
    balance = account.api("GET", "/balance").json()
    assert (balance["balance"], balance["upcoming_7d"], balance["low_balance"]) == ("1.00", "5.00", True)
    account.advance(0)
    assert [attempt.headers["X-Webhook-Event"] for attempt in account.sent] == ["balance.low"]


def test_an_unpaid_renewal_of_a_server_that_is_not_there_can_be_paid(tmp_path: Path) -> None:
    file = tmp_path / "account.yaml"
    file.write_text("invoices: [{id: 7, type: vds_renewal, status: not_paid, amount: '5', server_id: 9}]")
    account = Account(prepare=preparation(file))
    assert account.api("POST", "/invoices/7/pay").json()["balance_after"] == "995.00"
    assert account.control("PATCH", "/account", {"balance": "40"})["balance"] == "40.00"
