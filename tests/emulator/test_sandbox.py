"""The sandbox: servers that live for a day and for one key, and writes that change nothing."""

from typing import Any

import pytest

from tests.emulator.support import DAY, PUBLIC_KEY, EmulatorHarness, code

SERVER = {"tariff_id": 1, "os": "debian-12", "name": "play"}


def sandbox_server(lab: EmulatorHarness) -> int:
    id: int = lab.test("POST", "/servers", SERVER).json()["server"]["id"]
    return id


def test_a_sandbox_server(both: EmulatorHarness) -> None:
    both.subscribe("*")
    created = both.test("POST", "/servers", SERVER).json()
    server = created["server"]["id"]
    assert server >= 9_000_000_000
    assert (created["invoice_id"], created["order_url"], created["charged"]) == (None, None, "5.00")
    assert (both.balance(), both.control("GET", "/ledger")) == ("1000.00", [])
    assert both.test("GET", f"/servers/{server}?include=live").json()["live"]["uptime_seconds"] == 3600
    assert [row["id"] for row in both.test("GET", "/servers").json()["data"]] == [server]
    assert both.api("GET", "/servers").json()["data"] == []
    assert code(both.api("GET", f"/servers/{server}")) == "not_found"
    other = both.new_key("test")
    assert both.call(other, "GET", "/servers").json()["data"] == []
    assert code(both.call(other, "DELETE", f"/servers/{server}")) == "not_found"
    both.advance(DAY - 1)
    assert both.test("GET", f"/servers/{server}").status_code == 200
    both.advance(1)
    assert code(both.test("GET", f"/servers/{server}")) == "not_found"
    assert [attempt.headers["X-Webhook-Event"] for attempt in both.sent] == ["key.created"]


def test_deleting_a_sandbox_server(lab: EmulatorHarness) -> None:
    server = sandbox_server(lab)
    answer = lab.test("DELETE", f"/servers/{server}").json()
    assert (answer["refund"]["amount"], answer["refund_quote"]["excluded_reason"]) == ("0.00", "no_payment_record")
    assert code(lab.test("GET", f"/servers/{server}")) == "not_found"
    assert code(lab.test("DELETE", f"/servers/{server}")) == "service_state"
    lab.advance(DAY)
    assert code(lab.test("DELETE", f"/servers/{server}")) == "not_found"


def test_checks_are_those_of_live(lab: EmulatorHarness) -> None:
    assert code(lab.test("POST", "/servers", {**SERVER, "tariff_id": 4})) == "no_capacity"
    assert code(lab.test("POST", "/servers", {**SERVER, "months": 2})) == "invalid_period"
    lab.control("PATCH", "/account", {"balance": "1.00"})
    assert code(lab.test("POST", "/servers", SERVER)) == "insufficient_funds"
    lab.control("PATCH", "/account", {"balance": "100.00"})
    lab.fault({"refunded": 502})
    assert code(lab.test("POST", "/servers", SERVER)) == "upstream_error"
    assert lab.balance() == "100.00"


@pytest.mark.parametrize("echo", ["none", "server"])
def test_reading_sandbox_echo(echo: str, lab: EmulatorHarness) -> None:
    lab.variant(sandbox_echo=echo)
    server = sandbox_server(lab)
    before = lab.test("GET", f"/servers/{server}").json()
    assert lab.test("PATCH", f"/servers/{server}", {"notes": "x"}).json()["notes"] == "x"
    assert lab.test("POST", f"/servers/{server}/actions/power", {"action": "stop"}).status_code == 202
    assert lab.test("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"}).status_code == 202
    assert lab.test("POST", f"/servers/{server}/actions/reset-password").json()["password"]
    lab.advance(0)
    assert lab.test("POST", f"/servers/{server}/ips").json()["success"] is True
    address = lab.test("GET", f"/servers/{server}/ips").json()["data"][0]["id"]
    assert lab.test("PUT", f"/servers/{server}/ips/{address}/ptr", {"domain": "a.example.com"}).json()["ptr"] == "a.example.com"
    assert lab.test("POST", f"/servers/{server}/renew", {"months": 1}).json()["invoice_id"] is None
    after = lab.test("GET", f"/servers/{server}").json()
    addresses = lab.test("GET", f"/servers/{server}/ips").json()["data"]
    if echo == "none":
        assert after == before
        assert (len(addresses), addresses[0]["ptr"]) == (2, None)
    else:
        assert (after["notes"], after["os"], after["status"]) == ("x", "ubuntu-24.04", "active")
        assert (len(addresses), addresses[0]["ptr"]) == (3, "a.example.com")
        assert lab.test("DELETE", f"/servers/{server}/ips/{addresses[2]['id']}").status_code == 200
        assert len(lab.test("GET", f"/servers/{server}/ips").json()["data"]) == 2
    assert lab.balance() == "1000.00"


def test_writes_to_real_objects_are_simulated(both: EmulatorHarness) -> None:
    server, domain = both.server(), both.domain()
    key = both.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    before = [both.api("GET", path).json() for path in ("/servers", "/domains", "/ssh-keys", "/invoices", "/balance")]
    calls: list[tuple[str, str, Any, int]] = [
        ("DELETE", f"/servers/{server}", None, 200),
        ("POST", f"/servers/{server}/actions/power", {"action": "stop"}, 202),
        ("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"}, 202),
        ("PATCH", f"/domains/{domain}", {"auto_renew": True}, 200),
        ("POST", f"/domains/{domain}/renew", {"years": 1}, 200),
        ("POST", "/domains", {"name": "sandbox.com"}, 201),
        ("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"}, 202),
        ("DELETE", f"/ssh-keys/{key}", None, 204),
        ("POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}, 201),
    ]
    for method, path, body, status in calls:
        response = both.test(method, path, body)
        assert response.status_code == status, response.text
        assert response.headers["X-Sandbox"] == "true"
    both.advance(0)
    assert [both.api("GET", path).json() for path in ("/servers", "/domains", "/ssh-keys", "/invoices", "/balance")] == before


def test_simulated_objects_exist_for_nobody(lab: EmulatorHarness) -> None:
    assert lab.test("POST", "/domains", {"name": "sandbox.com"}).json()["domain_id"] is None
    key = lab.test("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    assert lab.test("GET", "/ssh-keys").json()["data"] == []
    # Its id may be used to order a sandbox server all the same.
    assert lab.test("POST", "/servers", {**SERVER, "ssh_key_ids": [key]}).status_code == 201
    topup = lab.test("POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}).json()
    assert "sandbox" in topup["payment_url"]
    assert code(lab.test("GET", f"/invoices/{topup['invoice_id']}")) == "not_found"
    invoice = lab.control("POST", "/invoices", {"amount": "3.00"})["id"]
    paid = lab.test("POST", f"/invoices/{invoice}/pay").json()
    assert (paid["status"], paid["balance_after"]) == ("paid", "997.00")
    lab.fault({"refunded": 502})
    assert code(lab.test("POST", f"/invoices/{invoice}/pay")) == "upstream_error"
    assert lab.api("GET", f"/invoices/{invoice}").json()["status"] == "not_paid"
    assert lab.test("POST", f"/invoices/{invoice}/payment-link").json()["gateway"] == "card"
    assert lab.api("GET", f"/invoices/{invoice}").json()["gateway"] is None
