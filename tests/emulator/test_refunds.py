"""Purchases that staff or the registrar call off after they were accepted, and one that never comes."""

from typing import Any

import pytest

from tests.emulator.support import DAY, SERVER, code
from tests.support.account import Account

TRANSFER = {"name": "moved.com", "auth_code": "EPP-1"}


def refund(account: Account, invoice: int) -> None:
    assert account.control("POST", f"/invoices/{invoice}/refund", {})["status"] == "refunded"


def newest_invoice(account: Account) -> dict[str, Any]:
    found: dict[str, Any] = account.api("GET", "/invoices").json()["data"][0]
    return found


def domain(account: Account) -> dict[str, Any]:
    return account.objects("domains")[-1]


@pytest.mark.parametrize(("path", "body"), [("", {"name": "example.com"}), ("/transfers", TRANSFER)])
def test_the_registrar_refuses_later(path: str, body: dict[str, Any], any_dialect: Account) -> None:
    any_dialect.fault({"registrar": "refused"})
    answer = any_dialect.api("POST", f"/domains{path}", body)
    assert answer.status_code == 202
    assert domain(any_dialect)["status"] == ("transfer_pending" if path else "pending")
    any_dialect.advance(DAY - 1)
    assert any_dialect.balance() != "1000.00"
    any_dialect.advance(1)
    assert (domain(any_dialect)["status"], any_dialect.balance()) == ("cancelled", "1000.00")
    assert newest_invoice(any_dialect)["status"] == "refunded"
    charge, credit = any_dialect.ledger()
    same = ("amount", "operation", "invoice_id", "object_id", "idempotency_key")
    assert [credit[name] for name in same] == [charge[name] for name in same]
    any_dialect.advance(10 * DAY)
    assert domain(any_dialect)["status"] == "cancelled"
    assert any_dialect.api("POST", f"/domains{path}", body).status_code in (201, 202)


def test_the_registrar_refuses_a_renewal_later(any_dialect: Account) -> None:
    id = any_dialect.domain()
    before = domain(any_dialect)["expires_at"]
    any_dialect.fault({"registrar": "refused"})
    answer = any_dialect.api("POST", f"/domains/{id}/renew", {"years": 1}).json()
    assert (answer["status"], answer["expires_at"]) in (("pending_sync", None), ("pending", None))
    any_dialect.advance(2 * DAY)
    assert (domain(any_dialect)["expires_at"], any_dialect.balance()) == (before, "988.00")


@pytest.mark.parametrize(("path", "body"), [("", {"name": "example.com"}), ("/transfers", TRANSFER)])
def test_the_registrar_never_decides(path: str, body: dict[str, Any], account: Account) -> None:
    account.fault({"registrar": "never"})
    account.api("POST", f"/domains{path}", body)
    account.advance(60 * DAY)
    assert domain(account)["status"] == ("transfer_pending" if path else "pending")
    refund(account, newest_invoice(account)["id"])
    assert (domain(account)["status"], account.balance()) == ("cancelled", "1000.00")


def test_a_refused_order_of_a_test_key_has_nothing_to_return(account: Account) -> None:
    account.fault({"registrar": "refused"})
    assert account.test("POST", "/domains", {"name": "example.com"}).status_code == 202
    account.advance(2 * DAY)
    assert (account.objects("domains"), account.ledger()) == ([], [])


def test_an_address_that_never_comes(any_dialect: Account) -> None:
    server = any_dialect.server()
    any_dialect.fault({"ip": "never"})
    assert any_dialect.api("POST", f"/servers/{server}/ips").json()["charged"] == "2.00"
    any_dialect.advance(5 * DAY)
    assert [row for row in any_dialect.objects("addresses") if row["bought"]] == []
    assert any_dialect.api("GET", f"/servers/{server}/ips/quote").json()["extra_ips"] == 1
    refund(any_dialect, newest_invoice(any_dialect)["id"])
    assert any_dialect.api("GET", f"/servers/{server}/ips/quote").json()["extra_ips"] == 0
    assert any_dialect.balance() == "995.00"
    assert any_dialect.api("DELETE", f"/servers/{server}").status_code == 200


def test_an_address_on_its_way_is_refunded(account: Account) -> None:
    account.core.store.ip_delay = 60
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    refund(account, newest_invoice(account)["id"])
    account.advance(60)
    assert [row for row in account.objects("addresses") if row["bought"]] == []
    account.core.store.ip_delay = 0
    account.api("POST", f"/servers/{server}/ips")
    account.advance(0)
    refund(account, newest_invoice(account)["id"])
    assert [row["bought"] for row in account.objects("addresses")] == [False, False, True]  # it had come
    assert account.balance() == "995.00"


def test_an_order_on_its_way_is_refunded(account: Account) -> None:
    account.core.store.provisioning_delay = 60
    account.fault({"panel_timeout": "active"})
    id = account.api("POST", "/servers", SERVER).json()["invoice_id"]
    refund(account, id)
    account.advance(60)
    assert account.api("GET", f"/orders/{id}").json()["status"] == "cancelled"
    assert (account.objects("servers"), account.balance()) == ([], "1000.00")


def test_a_pending_registration_is_refunded(account: Account) -> None:
    account.fault({"registrar": "pending"})
    account.register()
    refund(account, newest_invoice(account)["id"])
    account.advance(2 * DAY)
    assert (domain(account)["status"], account.balance()) == ("cancelled", "1000.00")


def test_renewals_are_refunded(account: Account) -> None:
    server, id = account.server(), account.domain()
    due, expires = account.objects("servers")[0]["next_due_at"], domain(account)["expires_at"]
    account.api("POST", f"/servers/{server}/renew", {"months": 1})
    assert account.objects("servers")[0]["next_due_at"] > due
    refund(account, newest_invoice(account)["id"])
    assert account.objects("servers")[0]["next_due_at"] == due
    account.fault({"registrar": "pending"})
    account.api("POST", f"/domains/{id}/renew", {"years": 1})
    refund(account, newest_invoice(account)["id"])
    account.advance(2 * DAY)
    assert (domain(account)["expires_at"], account.balance()) == (expires, "983.00")
    account.control("PATCH", f"/servers/{server}", {"auto_renew": False})
    account.advance(29 * DAY)  # the period ended when it had ended before
    assert account.api("GET", f"/servers/{server}").json()["status"] == "suspended"


def test_what_has_come_stays(account: Account) -> None:
    server, id = account.server(), account.domain()
    for invoice in account.api("GET", "/invoices").json()["data"]:
        refund(account, invoice["id"])
        account.control("POST", f"/invoices/{invoice['id']}/refund", {}, status=409)
    assert account.balance() == "1000.00"
    assert account.api("GET", f"/servers/{server}").json()["status"] == "active"
    assert account.api("GET", f"/domains/{id}").json()["status"] == "active"
    account.control("POST", "/invoices/1/refund", {}, status=404)


def test_a_topup_is_refunded(account: Account) -> None:
    made = account.api("POST", "/balance/topup", {"amount": "50.00", "gateway": "card"}).json()
    account.control("POST", f"/invoices/{made['invoice_id']}/refund", {}, status=409)
    account.control("POST", f"/invoices/{made['invoice_id']}/confirm", {})
    assert account.balance() == "1050.00"
    refund(account, made["invoice_id"])
    assert account.balance() == "1000.00"
    assert account.api("GET", f"/invoices/{made['invoice_id']}").json()["refunded_amount"] == "50.00"
    assert code(account.api("POST", f"/invoices/{made['invoice_id']}/pay")) == "conflict"
