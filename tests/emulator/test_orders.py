"""Orders that finish later, and servers ordered by paying an invoice."""

import pytest

from tests.emulator.support import code
from tests.support.account import Account

SERVER = {"tariff_id": 1, "os": "debian-12", "name": "slow"}


def order(account: Account, outcome: str) -> int:
    account.fault({"panel_timeout": outcome})
    answer = account.api("POST", "/servers", SERVER)
    assert (answer.status_code, answer.json()["status"], answer.json()["server_id"]) == (
        202,
        "provisioning",
        None,
    )
    id: int = answer.json()["invoice_id"]
    return id


def test_an_order_becomes_a_server(any_dialect: Account) -> None:
    any_dialect.core.store.provisioning_delay = 120
    any_dialect.subscribe("server.created")
    id = order(any_dialect, "active")
    assert any_dialect.balance() == "995.00"
    assert [row["invoice_id"] for row in any_dialect.api("GET", "/orders").json()["data"]] == [id]
    any_dialect.advance(119)
    assert any_dialect.api("GET", f"/orders/{id}").json()["status"] == "provisioning"
    assert any_dialect.api("GET", "/servers").json()["data"] == []
    any_dialect.advance(1)
    finished = any_dialect.api("GET", f"/orders/{id}").json()
    assert (finished["status"], finished["server_name"], finished["tariff_name"]) == (
        "active",
        "slow",
        "VDS-1",
    )
    assert any_dialect.api("GET", f"/servers/{finished['server_id']}").json()["name"] == "slow"
    assert any_dialect.api("GET", "/orders").json()["data"] == []
    assert any_dialect.api("GET", f"/invoices/{id}").json()["items"][0]["server_id"] == finished["server_id"]
    assert [attempt.headers["X-Webhook-Event"] for attempt in any_dialect.sent] == ["server.created"]


@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
def test_an_order_that_fails_gives_the_money_back(outcome: str, account: Account) -> None:
    id = order(account, outcome)
    account.advance(0)
    assert account.api("GET", f"/orders/{id}").json()["status"] == outcome
    assert (account.balance(), account.api("GET", f"/invoices/{id}").json()["status"]) == (
        "1000.00",
        "refunded",
    )
    charge, refund = account.control("GET", "/ledger")
    assert (charge["object_id"], refund["object_id"], refund["idempotency_key"]) == (
        None,
        id,
        charge["idempotency_key"],
    )


def test_orders_that_finished_at_once(account: Account) -> None:
    created = account.order()
    assert (
        account.api("GET", f"/orders/{created['invoice_id']}").json()["server_id"] == created["server"]["id"]
    )
    account.api("DELETE", f"/servers/{created['server']['id']}")
    assert account.api("GET", f"/orders/{created['invoice_id']}").json()["status"] == "active"
    other = account.control("POST", "/invoices", {"amount": "1.00"})["id"]
    assert code(account.api("GET", f"/orders/{other}")) == "not_found"
    account.fault({"refunded": 502})
    account.api("POST", "/servers", SERVER)
    called_off = account.api("GET", "/invoices").json()["data"][0]
    assert (called_off["status"], account.api("GET", f"/orders/{called_off['id']}").json()["status"]) == (
        "refunded",
        "cancelled",
    )


def test_only_unfinished_orders_are_listed(account: Account) -> None:
    assert code(account.api("GET", "/orders?status=active")) == "validation_error"


@pytest.mark.parametrize("by", ["balance", "gateway"])
def test_paying_an_invoice_that_orders_a_server(by: str, account: Account) -> None:
    account.core.store.provisioning_delay = 10
    id = account.control("POST", "/invoices", {"type": "vds_purchase", "tariff_id": 2, "name": "panel"})["id"]
    assert account.api("GET", f"/orders/{id}").json()["status"] == "invoice_created"
    account.advance(3600)
    if by == "balance":
        assert account.api("POST", f"/invoices/{id}/pay").json()["balance_after"] == "990.00"
    else:
        link = account.api("POST", f"/invoices/{id}/payment-link", {"gateway": "bank"}).json()
        assert link["payment_url"].startswith("https://")
        account.control("POST", f"/invoices/{id}/confirm")
        assert account.balance() == "1000.00"
    assert account.api("GET", f"/orders/{id}").json()["status"] == "processing"
    account.advance(10)
    server = account.api("GET", f"/orders/{id}").json()["server_id"]
    assert account.api("GET", f"/servers/{server}").json()["refund_quote"]["amount"] == "10.00"


def test_paying(account: Account) -> None:
    id = account.control("POST", "/invoices", {"amount": "3.50", "description": "Setup (r\u00e9glage)"})["id"]
    account.control("PATCH", "/account", {"balance": "3.00"})
    assert code(account.api("POST", f"/invoices/{id}/pay")) == "insufficient_funds"
    account.control("PATCH", "/account", {"balance": "10.00"})
    account.fault({"refunded": 502})
    assert code(account.api("POST", f"/invoices/{id}/pay")) == "upstream_error"
    assert (account.balance(), account.api("GET", f"/invoices/{id}").json()["status"]) == (
        "10.00",
        "not_paid",
    )
    assert account.api("POST", f"/invoices/{id}/pay").json()["balance_after"] == "6.50"
    assert code(account.api("POST", f"/invoices/{id}/pay")) == "conflict"
    assert code(account.api("POST", f"/invoices/{id}/payment-link")) == "conflict"
    pdf = account.api("GET", f"/invoices/{id}/pdf")
    assert pdf.headers["Content-Disposition"] == f'attachment; filename="invoice-{id}.pdf"'
    check_pdf(pdf.content)
    assert b"Setup \\(r\xe9glage\\): 3.50 EUR" in pdf.content


def check_pdf(content: bytes) -> None:
    """Every object begins where the cross-reference table says."""
    assert content.startswith(b"%PDF-1.4")
    assert content.rstrip().endswith(b"%%EOF")
    start = int(content.split(b"startxref\n")[1].split(b"\n")[0])
    head, first, *rows = content[start:].partition(b"trailer")[0].splitlines()
    assert (head, first, len(rows)) == (b"xref", b"0 5", 5)
    for number, line in enumerate(rows[1:], start=1):
        assert content[int(line[:10]) :].startswith(b"%d 0 obj" % number)
    length = int(content.split(b"/Length ")[1].split(b" ")[0])
    stream = content.split(b">>\nstream\n")[1].split(b"\nendstream")[0]
    assert len(stream) == length


def test_topup(any_dialect: Account) -> None:
    any_dialect.subscribe("invoice.created", "invoice.paid")
    assert any_dialect.api("GET", "/balance/topup-info").json()["first_topup_eligible"] is True
    answer = any_dialect.api("POST", "/balance/topup", {"amount": "25.00", "gateway": "crypto"}).json()
    assert any_dialect.balance() == "1000.00"
    assert code(any_dialect.api("POST", f"/invoices/{answer['invoice_id']}/pay")) == "conflict"
    assert (
        any_dialect.api("POST", f"/invoices/{answer['invoice_id']}/payment-link").json()["gateway"]
        == "crypto"
    )
    assert (
        code(any_dialect.api("POST", f"/invoices/{answer['invoice_id']}/payment-link", {"gateway": "cash"}))
        == "validation_error"
    )
    assert any_dialect.control("POST", f"/invoices/{answer['invoice_id']}/confirm")["status"] == "paid"
    assert any_dialect.balance() == "1025.00"
    assert any_dialect.api("GET", "/balance/topup-info").json()["first_topup_eligible"] is False
    entry = any_dialect.api("GET", "/transactions?direction=credit").json()["data"][0]
    assert (entry["type"], entry["gateway"], entry["invoice_id"]) == ("topup", "crypto", answer["invoice_id"])
    any_dialect.control("POST", f"/invoices/{answer['invoice_id']}/confirm", status=409)
    any_dialect.advance(0)
    assert [attempt.headers["X-Webhook-Event"] for attempt in any_dialect.sent] == [
        "invoice.created",
        "invoice.paid",
    ]


def test_an_unpaid_invoice_is_overdue(account: Account) -> None:
    account.subscribe("invoice.overdue")
    account.api("POST", "/balance/topup", {"amount": "25.00", "gateway": "card"})
    account.advance(3 * 86400)
    assert [attempt.headers["X-Webhook-Event"] for attempt in account.sent] == ["invoice.overdue"]


def test_invoice_types_in_either_dialect(account: Account) -> None:
    account.api("POST", f"/servers/{account.server()}/ips")
    account.domain()
    spec = [row["type"] for row in account.api("GET", "/invoices").json()["data"]]
    assert spec == ["domain_registration", "ip_purchase", "vds_purchase"]
    account.control("PATCH", "/service", {"dialect": "live"})
    live = [row["type"] for row in account.api("GET", "/invoices").json()["data"]]
    assert live == ["domain_purchase", "vds_addon", "vds_purchase"]
    for filter, expected in (
        ("vds_addon", 1),
        ("ip_purchase", 1),
        ("domain_purchase", 1),
        ("late_fee", 0),
        ("vds_purchase", 1),
    ):
        assert len(account.api("GET", f"/invoices?type={filter}&status=paid").json()["data"]) == expected
