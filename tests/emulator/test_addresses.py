"""Additional addresses, assigned later, and reverse DNS."""

from typing import Any

import pytest

from tests.emulator.support import DAY, EmulatorHarness, code


def ips(emu: EmulatorHarness, server: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = emu.api("GET", f"/servers/{server}/ips").json()["data"]
    return rows


def test_bought_now_assigned_later(emu: EmulatorHarness) -> None:
    emu.core.scheduler.ip_delay = 45
    server = emu.server()
    emu.advance(15 * DAY)
    quote = emu.api("GET", f"/servers/{server}/ips/quote").json()
    assert (quote["prorated_now"], quote["price_monthly"], quote["extra_ips"], quote["max_extra_ips"]) == (
        "1.00",
        "2.00",
        0,
        3,
    )
    answer = emu.api("POST", f"/servers/{server}/ips").json()
    assert answer == {"success": True, "server_id": server, "charged": "1.00", "currency": "EUR", "days": 15}
    assert emu.balance() == "994.00"
    assert len(ips(emu, server)) == 2
    assert emu.api("GET", f"/servers/{server}").json()["billing"]["recurring_amount"] == "7.00"
    assert emu.api("GET", f"/servers/{server}/ips/quote").json()["extra_ips"] == 1
    assert code(emu.api("POST", f"/servers/{server}/ips")) == "operation_in_progress"
    emu.advance(45)
    bought = ips(emu, server)[-1]
    assert (bought["version"], bought["primary"], bought["price_monthly"]) == (4, False, "2.00")
    assert bought["ip"] == bought["address"]
    shown = emu.api("GET", f"/servers/{server}").json()
    assert shown["ips"][-1] == bought["address"]
    assert (shown["billing"]["extra_ips"], shown["billing"]["recurring_amount"]) == (1, "7.00")
    renewal = emu.api("POST", f"/servers/{server}/renew", {"months": 3}).json()
    assert renewal["charged"] == "20.25"


def test_released_without_refund(emu: EmulatorHarness) -> None:
    server = emu.server()
    emu.api("POST", f"/servers/{server}/ips")
    primary, v6, bought = ips(emu, server)
    assert code(emu.api("DELETE", f"/servers/{server}/ips/{primary['id']}")) == "conflict"
    assert code(emu.api("DELETE", f"/servers/{server}/ips/{v6['id']}")) == "conflict"
    assert code(emu.api("DELETE", f"/servers/{emu.server()}/ips/{bought['id']}")) == "not_found"
    released = emu.api("DELETE", f"/servers/{server}/ips/{bought['id']}").json()
    assert released == {"status": "deleted", "server_id": server, "ip_id": bought["id"]}
    assert emu.balance() == "988.00"
    assert emu.api("GET", f"/servers/{server}").json()["billing"]["recurring_amount"] == "5.00"
    assert emu.api("DELETE", f"/servers/{server}").json()["refund"]["amount"] == "5.00"


def test_an_address_still_held_is_refunded_with_the_server(emu: EmulatorHarness) -> None:
    server = emu.server()
    emu.api("POST", f"/servers/{server}/ips")
    ips(emu, server)
    assert emu.api("DELETE", f"/servers/{server}").json()["refund"]["amount"] == "7.00"
    assert emu.balance() == "1000.00"


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
def test_reverse_dns(body: dict[str, Any], ptr: str | None, emu: EmulatorHarness) -> None:
    server = emu.server()
    primary = ips(emu, server)[0]["id"]
    emu.control("PATCH", f"/servers/{server}/ips/{primary}", {"ptr": "old.example.com"})
    assert emu.api("PUT", f"/servers/{server}/ips/{primary}/ptr", body).json() == {"id": primary, "ptr": ptr}
    assert ips(emu, server)[0]["ptr"] == ptr


def test_reverse_dns_refusals(emu: EmulatorHarness) -> None:
    server = emu.server()
    primary, v6 = ips(emu, server)
    for body in ({"domain": "onelabel"}, {"domain": "under_score.example.com"}, {"ptr": "mail.example.com"}):
        assert code(emu.api("PUT", f"/servers/{server}/ips/{primary['id']}/ptr", body)) == "validation_error"
    assert (
        code(emu.api("PUT", f"/servers/{server}/ips/{v6['id']}/ptr", {"domain": "a.example.com"}))
        == "upstream_rejected"
    )
