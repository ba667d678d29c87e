"""Orders that take longer, and servers ordered by paying an invoice."""

import pytest

from tests.emulator.support import EmulatorHarness, code

SERVER = {"tariff_id": 1, "os": "debian-12", "name": "slow"}


def order(lab: EmulatorHarness, outcome: str) -> int:
    lab.fault({"panel_timeout": outcome})
    answer = lab.api("POST", "/servers", SERVER)
    assert (answer.status_code, answer.json()["status"], answer.json()["server_id"]) == (202, "provisioning", None)
    id: int = answer.json()["invoice_id"]
    return id


def test_an_order_becomes_a_server(both: EmulatorHarness) -> None:
    both.core.scheduler.provisioning_delay = 120
    both.subscribe("server.created")
    id = order(both, "active")
    assert both.balance() == "995.00"
    assert [row["invoice_id"] for row in both.api("GET", "/orders").json()["data"]] == [id]
    both.advance(119)
    assert both.api("GET", f"/orders/{id}").json()["status"] == "provisioning"
    assert both.api("GET", "/servers").json()["data"] == []
    both.advance(1)
    finished = both.api("GET", f"/orders/{id}").json()
    assert (finished["status"], finished["server_name"], finished["tariff_name"]) == ("active", "slow", "VDS-1")
    assert both.api("GET", f"/servers/{finished['server_id']}").json()["name"] == "slow"
    assert both.api("GET", "/orders").json()["data"] == []
    assert both.api("GET", f"/invoices/{id}").json()["items"][0]["server_id"] == finished["server_id"]
    assert [attempt.headers["X-Webhook-Event"] for attempt in both.sent] == ["server.created"]


@pytest.mark.parametrize("outcome", ["cancelled", "failed"])
def test_an_order_that_fails_gives_the_money_back(outcome: str, lab: EmulatorHarness) -> None:
    id = order(lab, outcome)
    lab.advance(0)
    assert lab.api("GET", f"/orders/{id}").json()["status"] == outcome
    assert (lab.balance(), lab.api("GET", f"/invoices/{id}").json()["status"]) == ("1000.00", "refunded")
    charge, refund = lab.control("GET", "/ledger")
    assert (charge["object_id"], refund["object_id"], refund["idempotency_key"]) == (None, id, charge["idempotency_key"])


def test_orders_that_finished_at_once(lab: EmulatorHarness) -> None:
    created = lab.order()
    assert lab.api("GET", f"/orders/{created['invoice_id']}").json()["server_id"] == created["server"]["id"]
    lab.api("DELETE", f"/servers/{created['server']['id']}")
    assert lab.api("GET", f"/orders/{created['invoice_id']}").json()["status"] == "active"
    other = lab.control("POST", "/invoices", {"amount": "1.00"})["id"]
    assert code(lab.api("GET", f"/orders/{other}")) == "not_found"
    lab.fault({"refunded": 502})
    lab.api("POST", "/servers", SERVER)
    called_off = lab.api("GET", "/invoices").json()["data"][0]
    assert (called_off["status"], lab.api("GET", f"/orders/{called_off['id']}").json()["status"]) == ("refunded", "cancelled")


def test_only_unfinished_orders_are_listed(lab: EmulatorHarness) -> None:
    assert code(lab.api("GET", "/orders?status=active")) == "validation_error"


@pytest.mark.parametrize("by", ["balance", "gateway"])
def test_paying_an_invoice_that_orders_a_server(by: str, lab: EmulatorHarness) -> None:
    lab.core.scheduler.provisioning_delay = 10
    id = lab.control("POST", "/invoices", {"type": "vds_purchase", "tariff_id": 2, "name": "cabinet"})["id"]
    assert lab.api("GET", f"/orders/{id}").json()["status"] == "invoice_created"
    lab.advance(3600)
    if by == "balance":
        assert lab.api("POST", f"/invoices/{id}/pay").json()["balance_after"] == "990.00"
    else:
        link = lab.api("POST", f"/invoices/{id}/payment-link", {"gateway": "bank"}).json()
        assert link["payment_url"].startswith("https://")
        lab.control("POST", f"/invoices/{id}/confirm")
        assert lab.balance() == "1000.00"
    assert lab.api("GET", f"/orders/{id}").json()["status"] == "processing"
    lab.advance(10)
    server = lab.api("GET", f"/orders/{id}").json()["server_id"]
    assert lab.api("GET", f"/servers/{server}").json()["refund_quote"]["amount"] == "10.00"


def test_paying(lab: EmulatorHarness) -> None:
    id = lab.control("POST", "/invoices", {"amount": "3.50", "description": "Setup (r\u00e9glage)"})["id"]
    lab.control("PATCH", "/account", {"balance": "3.00"})
    assert code(lab.api("POST", f"/invoices/{id}/pay")) == "insufficient_funds"
    lab.control("PATCH", "/account", {"balance": "10.00"})
    lab.fault({"refunded": 502})
    assert code(lab.api("POST", f"/invoices/{id}/pay")) == "upstream_error"
    assert (lab.balance(), lab.api("GET", f"/invoices/{id}").json()["status"]) == ("10.00", "not_paid")
    assert lab.api("POST", f"/invoices/{id}/pay").json()["balance_after"] == "6.50"
    assert code(lab.api("POST", f"/invoices/{id}/pay")) == "conflict"
    assert code(lab.api("POST", f"/invoices/{id}/payment-link")) == "conflict"
    pdf = lab.api("GET", f"/invoices/{id}/pdf")
    assert pdf.headers["Content-Disposition"] == f'attachment; filename="invoice-{id}.pdf"'
    check_pdf(pdf.content)
    assert b"Setup \\(r\xe9glage\\): 3.50 EUR" in pdf.content


def check_pdf(content: bytes) -> None:
    """Every object begins where the cross-reference table says."""
    assert content.startswith(b"%PDF-1.4")
    assert content.rstrip().endswith(b"%%EOF")
    start = int(content.split(b"startxref\n")[1].split(b"\n")[0])
    assert content[start:].startswith(b"xref\n0 6\n")
    for number, line in enumerate(content[start:].split(b"\n")[3:8], start=1):
        assert content[int(line[:10]) :].startswith(b"%d 0 obj" % number)
    length = int(content.split(b"/Length ")[1].split(b" ")[0])
    stream = content.split(b">>\nstream\n")[1].split(b"\nendstream")[0]
    assert len(stream) == length


def test_topup(both: EmulatorHarness) -> None:
    both.subscribe("invoice.created", "invoice.paid")
    assert both.api("GET", "/balance/topup-info").json()["first_topup_eligible"] is True
    answer = both.api("POST", "/balance/topup", {"amount": "25.00", "gateway": "crypto"}).json()
    assert both.balance() == "1000.00"
    assert code(both.api("POST", f"/invoices/{answer['invoice_id']}/pay")) == "conflict"
    assert both.api("POST", f"/invoices/{answer['invoice_id']}/payment-link").json()["gateway"] == "crypto"
    assert code(both.api("POST", f"/invoices/{answer['invoice_id']}/payment-link", {"gateway": "cash"})) == "validation_error"
    assert both.control("POST", f"/invoices/{answer['invoice_id']}/confirm")["status"] == "paid"
    assert both.balance() == "1025.00"
    assert both.api("GET", "/balance/topup-info").json()["first_topup_eligible"] is False
    entry = both.api("GET", "/transactions?direction=credit").json()["data"][0]
    assert (entry["type"], entry["gateway"], entry["invoice_id"]) == ("topup", "crypto", answer["invoice_id"])
    both.control("POST", f"/invoices/{answer['invoice_id']}/confirm", status=409)
    both.advance(0)
    assert [attempt.headers["X-Webhook-Event"] for attempt in both.sent] == ["invoice.created", "invoice.paid"]


def test_an_unpaid_invoice_is_overdue(lab: EmulatorHarness) -> None:
    lab.subscribe("invoice.overdue")
    lab.api("POST", "/balance/topup", {"amount": "25.00", "gateway": "card"})
    lab.advance(3 * 86400)
    assert [attempt.headers["X-Webhook-Event"] for attempt in lab.sent] == ["invoice.overdue"]


def test_invoice_types_in_either_dialect(lab: EmulatorHarness) -> None:
    lab.api("POST", f"/servers/{lab.server()}/ips")
    lab.domain()
    spec = [row["type"] for row in lab.api("GET", "/invoices").json()["data"]]
    assert spec == ["domain_registration", "ip_purchase", "vds_purchase"]
    lab.control("PATCH", "/service", {"dialect": "live"})
    live = [row["type"] for row in lab.api("GET", "/invoices").json()["data"]]
    assert live == ["domain_purchase", "vds_addon", "vds_purchase"]
    for filter, expected in (("vds_addon", 1), ("ip_purchase", 1), ("domain_purchase", 1), ("late_fee", 0), ("vds_purchase", 1)):
        assert len(lab.api("GET", f"/invoices?type={filter}&status=paid").json()["data"]) == expected
