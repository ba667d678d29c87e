"""Additional addresses, assigned later, and reverse DNS."""

from typing import Any

import pytest

from tests.emulator.support import DAY, code
from tests.support.account import Account


def ips(account: Account, server: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = account.api("GET", f"/servers/{server}/ips").json()["data"]
    return rows


def test_bought_now_assigned_later(account: Account) -> None:
    account.core.store.ip_delay = 45
    server = account.server()
    account.advance(15 * DAY)
    quote = account.api("GET", f"/servers/{server}/ips/quote").json()
    assert (quote["prorated_now"], quote["price_monthly"], quote["extra_ips"], quote["max_extra_ips"]) == (
        "1.00",
        "2.00",
        0,
        3,
    )
    answer = account.api("POST", f"/servers/{server}/ips").json()
    assert answer == {"success": True, "server_id": server, "charged": "1.00", "currency": "EUR", "days": 15}
    assert account.balance() == "994.00"
    assert len(ips(account, server)) == 2
    assert account.api("GET", f"/servers/{server}").json()["billing"]["recurring_amount"] == "7.00"
    assert account.api("GET", f"/servers/{server}/ips/quote").json()["extra_ips"] == 1
    assert code(account.api("POST", f"/servers/{server}/ips")) == "operation_in_progress"
    account.advance(45)
    bought = ips(account, server)[-1]
    assert (bought["version"], bought["primary"], bought["price_monthly"]) == (4, False, "2.00")
    assert bought["ip"] == bought["address"]
    shown = account.api("GET", f"/servers/{server}").json()
    assert shown["ips"][-1] == bought["address"]
    assert (shown["billing"]["extra_ips"], shown["billing"]["recurring_amount"]) == (1, "7.00")
    renewal = account.api("POST", f"/servers/{server}/renew", {"months": 3}).json()
    assert renewal["charged"] == "20.25"


def test_released_without_refund(account: Account) -> None:
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    primary, v6, bought = ips(account, server)
    assert code(account.api("DELETE", f"/servers/{server}/ips/{primary['id']}")) == "conflict"
    assert code(account.api("DELETE", f"/servers/{server}/ips/{v6['id']}")) == "conflict"
    assert code(account.api("DELETE", f"/servers/{account.server()}/ips/{bought['id']}")) == "not_found"
    released = account.api("DELETE", f"/servers/{server}/ips/{bought['id']}").json()
    assert released == {"status": "deleted", "server_id": server, "ip_id": bought["id"]}
    assert account.balance() == "988.00"
    assert account.api("GET", f"/servers/{server}").json()["billing"]["recurring_amount"] == "5.00"
    assert account.api("DELETE", f"/servers/{server}").json()["refund"]["amount"] == "5.00"


def test_an_address_still_held_is_refunded_with_the_server(account: Account) -> None:
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    ips(account, server)
    assert account.api("DELETE", f"/servers/{server}").json()["refund"]["amount"] == "7.00"
    assert account.balance() == "1000.00"


@pytest.mark.parametrize(
    ("body", "ptr"),
    [
        ({"domain": "mail.example.com"}, "mail.example.com"),
        ({"domain": "mail.example.com."}, "mail.example.com"),
        ({"domain": ""}, None),
        ({"domain": None}, None),
        ({}, None),
    ],
)
def test_reverse_dns(body: dict[str, Any], ptr: str | None, account: Account) -> None:
    server = account.server()
    primary = ips(account, server)[0]["id"]
    account.control("PATCH", f"/servers/{server}/ips/{primary}", {"ptr": "old.example.com"})
    assert account.api("PUT", f"/servers/{server}/ips/{primary}/ptr", body).json() == {
        "id": primary,
        "ptr": ptr,
    }
    assert ips(account, server)[0]["ptr"] == ptr


def test_reverse_dns_refusals(account: Account) -> None:
    server = account.server()
    primary, v6 = ips(account, server)
    for body in ({"domain": "onelabel"}, {"domain": "under_score.example.com"}, {"ptr": "mail.example.com"}):
        assert (
            code(account.api("PUT", f"/servers/{server}/ips/{primary['id']}/ptr", body)) == "validation_error"
        )
    assert (
        code(account.api("PUT", f"/servers/{server}/ips/{v6['id']}/ptr", {"domain": "a.example.com"}))
        == "upstream_rejected"
    )


def test_an_address_on_its_way_renews_with_the_server(account: Account) -> None:
    server = account.server()
    account.fault({"ip": "never"})
    account.api("POST", f"/servers/{server}/ips")
    shown = account.api("GET", f"/servers/{server}").json()["billing"]["recurring_amount"]
    paid = account.api("POST", f"/servers/{server}/renew", {"months": 1}).json()["charged"]
    assert (shown, paid) == ("7.00", "7.00")


def test_the_refund_of_a_released_address_leaves_the_next_one_alone(account: Account) -> None:
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    first = account.objects("addresses")[-1]
    account.api("DELETE", f"/servers/{server}/ips/{first['id']}")
    account.core.store.ip_delay = 60
    account.api("POST", f"/servers/{server}/ips")
    account.control("POST", f"/invoices/{first['invoice_id']}/refund")
    assert account.objects("servers")[0]["addresses_coming"] == 1
    account.advance(60)
    assert [row["bought"] for row in account.objects("addresses")] == [False, False, True]
