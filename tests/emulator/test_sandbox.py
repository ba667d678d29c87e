"""The sandbox: servers that exist for a day and for one key, and writes that change nothing."""

from typing import Any

import pytest

from tests.emulator.support import DAY, PUBLIC_KEY, code
from tests.support.account import Account

SERVER = {"tariff_id": 1, "os": "debian-12", "name": "play"}


def sandbox_server(account: Account) -> int:
    id: int = account.test("POST", "/servers", SERVER).json()["server"]["id"]
    return id


def test_a_sandbox_server(any_dialect: Account) -> None:
    any_dialect.subscribe("*")
    created = any_dialect.test("POST", "/servers", SERVER).json()
    server = created["server"]["id"]
    assert server >= 9_000_000_000
    assert (created["invoice_id"], created["order_url"], created["charged"]) == (None, None, "5.00")
    assert (any_dialect.balance(), any_dialect.control("GET", "/ledger")) == ("1000.00", [])
    assert any_dialect.test("GET", f"/servers/{server}?include=live").json()["live"]["uptime_seconds"] == 3600
    assert [row["id"] for row in any_dialect.test("GET", "/servers").json()["data"]] == [server]
    assert any_dialect.api("GET", "/servers").json()["data"] == []
    assert code(any_dialect.api("GET", f"/servers/{server}")) == "not_found"
    other = any_dialect.new_key("test")
    assert any_dialect.call(other, "GET", "/servers").json()["data"] == []
    assert code(any_dialect.call(other, "DELETE", f"/servers/{server}")) == "not_found"
    any_dialect.advance(DAY - 1)
    assert any_dialect.test("GET", f"/servers/{server}").status_code == 200
    any_dialect.advance(1)
    assert code(any_dialect.test("GET", f"/servers/{server}")) == "not_found"
    assert [attempt.headers["X-Webhook-Event"] for attempt in any_dialect.sent] == ["key.created"]


def test_deleting_a_sandbox_server(account: Account) -> None:
    server = sandbox_server(account)
    answer = account.test("DELETE", f"/servers/{server}").json()
    assert (answer["refund"]["amount"], answer["refund_quote"]["excluded_reason"]) == (
        "0.00",
        "no_payment_record",
    )
    assert code(account.test("GET", f"/servers/{server}")) == "not_found"
    assert code(account.test("DELETE", f"/servers/{server}")) == "service_state"
    account.advance(DAY)
    assert code(account.test("DELETE", f"/servers/{server}")) == "not_found"


def test_checks_are_those_of_live(account: Account) -> None:
    assert code(account.test("POST", "/servers", {**SERVER, "tariff_id": 4})) == "no_capacity"
    assert code(account.test("POST", "/servers", {**SERVER, "months": 2})) == "invalid_period"
    account.control("PATCH", "/account", {"balance": "1.00"})
    assert code(account.test("POST", "/servers", SERVER)) == "insufficient_funds"
    account.control("PATCH", "/account", {"balance": "100.00"})
    account.fault({"refunded": 502})
    assert code(account.test("POST", "/servers", SERVER)) == "upstream_error"
    assert account.balance() == "100.00"


@pytest.mark.parametrize("echo", ["none", "server"])
def test_variant_sandbox_echo(echo: str, account: Account) -> None:
    account.variant(sandbox_echo=echo)
    server = sandbox_server(account)
    before = account.test("GET", f"/servers/{server}").json()
    assert account.test("PATCH", f"/servers/{server}", {"notes": "x"}).json()["notes"] == "x"
    assert account.test("POST", f"/servers/{server}/actions/power", {"action": "stop"}).status_code == 202
    assert (
        account.test("POST", f"/servers/{server}/actions/reinstall", {"os": "ubuntu-24.04"}).status_code
        == 202
    )
    assert account.test("POST", f"/servers/{server}/actions/reset-password").json()["password"]
    account.advance(0)
    assert account.test("POST", f"/servers/{server}/ips").json()["success"] is True
    address = account.test("GET", f"/servers/{server}/ips").json()["data"][0]["id"]
    assert (
        account.test("PUT", f"/servers/{server}/ips/{address}/ptr", {"domain": "a.example.com"}).json()["ptr"]
        == "a.example.com"
    )
    assert account.test("POST", f"/servers/{server}/renew", {"months": 1}).json()["invoice_id"] is None
    after = account.test("GET", f"/servers/{server}").json()
    addresses = account.test("GET", f"/servers/{server}/ips").json()["data"]
    if echo == "none":
        assert after == before
        assert (len(addresses), addresses[0]["ptr"]) == (2, None)
    else:
        assert (after["notes"], after["os"], after["status"]) == ("x", "ubuntu-24.04", "active")
        assert (len(addresses), addresses[0]["ptr"]) == (3, "a.example.com")
        assert account.test("DELETE", f"/servers/{server}/ips/{addresses[2]['id']}").status_code == 200
        assert len(account.test("GET", f"/servers/{server}/ips").json()["data"]) == 2
    assert account.balance() == "1000.00"


def test_writes_to_real_objects_are_simulated(any_dialect: Account) -> None:
    server, domain = any_dialect.server(), any_dialect.domain()
    key = any_dialect.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    before = [
        any_dialect.api("GET", path).json()
        for path in ("/servers", "/domains", "/ssh-keys", "/invoices", "/balance")
    ]
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
        response = any_dialect.test(method, path, body)
        assert response.status_code == status, response.text
        assert response.headers["X-Sandbox"] == "true"
    any_dialect.advance(0)
    assert [
        any_dialect.api("GET", path).json()
        for path in ("/servers", "/domains", "/ssh-keys", "/invoices", "/balance")
    ] == before


def test_simulated_objects_cannot_be_read(account: Account) -> None:
    assert account.test("POST", "/domains", {"name": "sandbox.com"}).json()["domain_id"] is None
    key = account.test("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    assert account.test("GET", "/ssh-keys").json()["data"] == []
    # Its id is accepted in an order of a sandbox server.
    assert account.test("POST", "/servers", {**SERVER, "ssh_key_ids": [key]}).status_code == 201
    topup = account.test("POST", "/balance/topup", {"amount": "10.00", "gateway": "card"}).json()
    assert "sandbox" in topup["payment_url"]
    assert code(account.test("GET", f"/invoices/{topup['invoice_id']}")) == "not_found"
    invoice = account.control("POST", "/invoices", {"amount": "3.00"})["id"]
    paid = account.test("POST", f"/invoices/{invoice}/pay").json()
    assert (paid["status"], paid["balance_after"]) == ("paid", "997.00")
    account.fault({"refunded": 502})
    assert code(account.test("POST", f"/invoices/{invoice}/pay")) == "upstream_error"
    assert account.api("GET", f"/invoices/{invoice}").json()["status"] == "not_paid"
    assert account.test("POST", f"/invoices/{invoice}/payment-link").json()["gateway"] == "card"
    assert account.api("GET", f"/invoices/{invoice}").json()["gateway"] is None
