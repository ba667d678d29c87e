"""Domains: the registrar's rules, its syncs, expiry, and both dialects."""

from typing import Any

import pytest

from pulumi_hosting.emulator.periods import months_after
from tests.emulator.support import DAY, code, details
from tests.support.account import Account

YEAR = 365 * DAY


def availability(account: Account, name: str) -> dict[str, object]:
    answer: dict[str, object] = account.api("GET", "/domains/availability", params={"name": name}).json()
    return answer


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("free.com", None),
        ("FREE.com.", None),
        ("taken-name.com", "taken"),
        ("premium-name.com", "premium"),
        ("reserved-name.net", "reserved"),
        ("-bad-.com", "invalid"),
        ("com", "invalid"),
        ("a..com", "invalid"),
        ("free.org", "unsupported_tld"),
        ("sub.free.com", "unsupported_tld"),
    ],
)
def test_availability(name: str, reason: str | None, account: Account) -> None:
    answer = availability(account, name)
    assert (answer["available"], answer["reason"], answer["premium"]) == (
        reason is None,
        reason,
        reason == "premium",
    )
    assert (answer["price_register"] is None) == (reason in ("invalid", "unsupported_tld"))


def test_unicode_and_punycode_are_one_name(account: Account) -> None:
    assert availability(account, "b\u00fccher.com")["name"] == "xn--bcher-kva.com"
    domain = account.domain("xn--bcher-kva.com")
    assert availability(account, "B\u00dcCHER.com")["reason"] == "taken"
    assert code(account.api("POST", "/domains", {"name": "b\u00fccher.com"})) == "domain_exists"
    assert account.api("GET", f"/domains/{domain}").json()["name"] == "xn--bcher-kva.com"


def test_registration(account: Account) -> None:
    account.subscribe("domain.registered")
    answer = account.register(
        "example.com", years=2, nameservers=["NS1.Example.net.", "ns2.example.net"], promo_code="SAVE20"
    )
    domain = answer["domain"]
    assert (answer["status"], answer["charged"], answer["discount"], answer["balance_after"]) == (
        "registered",
        "19.20",
        "4.80",
        "980.80",
    )
    assert (domain["nameservers"], domain["privacy"], domain["auto_renew"]) == (
        ["ns1.example.net", "ns2.example.net"],
        True,
        False,
    )
    assert answer["expires_at"] == domain["expires_at"]
    assert answer["domain_id"] == domain["id"]
    account.advance(0)
    assert len(account.sent) == 1


def test_registration_refusals(account: Account) -> None:
    for name in ("taken-a.com", "premium-a.com", "reserved-a.com"):
        assert code(account.api("POST", "/domains", {"name": name})) == "domain_taken"
    assert code(account.api("POST", "/domains", {"name": "a.de", "privacy": True})) == "upstream_rejected"
    assert account.register("a.de")["domain"]["privacy"] is False
    assert code(account.api("POST", "/domains", {"name": "a.dev", "years": 6})) == "invalid_period"
    assert code(account.api("POST", "/domains", {"name": "a.com", "years": 11})) == "invalid_period"
    account.control("PATCH", "/account", {"balance": "11.99"})
    assert code(account.api("POST", "/domains", {"name": "a.com"})) == "insufficient_funds"
    assert account.balance() == "11.99"


def test_registration_in_the_live_dialect() -> None:
    account = Account(dialect="live")
    answer = account.register("example.com")
    assert answer["domain"] == "example.com"
    assert account.api("GET", f"/domains/{answer['domain_id']}").json()["privacy"] is False
    assert details(account.api("POST", "/domains", {"name": "b.com", "auto_renew": True})) == {
        "fields": {"auto_renew": "unknown"}
    }
    three = ["a.example.net", "b.example.net", "c.example.net"]
    assert (
        code(account.api("POST", "/domains", {"name": "b.com", "nameservers": three})) == "validation_error"
    )
    assert (
        code(account.api("PUT", f"/domains/{answer['domain_id']}/nameservers", {"nameservers": three}))
        == "validation_error"
    )
    renewed = account.api("POST", f"/domains/{answer['domain_id']}/renew", {"years": 1}).json()
    assert (renewed["domain"], renewed["total_years"]) == ("example.com", 2)
    transfer = account.api(
        "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc", "nameservers": three[:2]}
    ).json()
    assert transfer["status"] == "pending_transfer"
    account.control("PATCH", f"/domains/{answer['domain_id']}", {"blocked": True})
    assert account.api("GET", f"/domains/{answer['domain_id']}").json()["status"] == "cancelled"
    assert len(account.api("GET", "/domains?status=cancelled").json()["data"]) == 1


def test_pending_until_the_next_sync(any_dialect: Account) -> None:
    any_dialect.subscribe("domain.registered")
    any_dialect.fault({"registrar": "pending"})
    response = any_dialect.api("POST", "/domains", {"name": "slow.com"})
    answer = response.json()
    assert (response.status_code, answer["status"], answer["domain_id"]) == (202, "pending", None)
    (shown,) = any_dialect.api("GET", "/domains?status=pending").json()["data"]
    assert code(any_dialect.api("PATCH", f"/domains/{shown['id']}", {"auto_renew": True})) == "conflict"
    any_dialect.advance(DAY)
    assert any_dialect.api("GET", f"/domains/{shown['id']}").json()["status"] == "active"
    assert [attempt.headers["X-Webhook-Event"] for attempt in any_dialect.sent] == ["domain.registered"]


def test_transfer(account: Account) -> None:
    answer = account.api(
        "POST",
        "/domains/transfers",
        {"name": "moved.com", "auth_code": "abc", "auto_renew": True, "privacy": False},
    ).json()
    assert (answer["status"], answer["charged"]) == ("transfer_pending", "12.50")
    assert (
        code(account.api("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"}))
        == "domain_exists"
    )
    assert code(account.api("POST", f"/domains/{answer['domain_id']}/renew", {"years": 1})) == "conflict"
    account.advance(5 * DAY)
    shown = account.api("GET", f"/domains/{answer['domain_id']}").json()
    assert (shown["status"], shown["auto_renew"], shown["privacy"], shown["locked"]) == (
        "active",
        True,
        False,
        True,
    )
    assert (
        code(account.api("POST", "/domains/transfers", {"name": "b.dev", "auth_code": "abc"}))
        == "upstream_rejected"
    )
    assert (
        code(account.api("POST", "/domains/transfers", {"name": "b.de", "auth_code": "abc", "privacy": True}))
        == "upstream_rejected"
    )
    assert {
        row["body"]["auth_code"]
        for row in account.control("GET", "/requests")
        if row["path"] == "/domains/transfers"
    } == {"*" * 10}


def test_a_domain_of_another_account_can_be_transferred_in(account: Account) -> None:
    other = account.control("POST", "/accounts", {})["live_key"]
    account.call(other, "POST", "/domains", {"name": "theirs.com"})
    assert code(account.api("POST", "/domains", {"name": "theirs.com"})) == "domain_taken"
    assert (
        account.api("POST", "/domains/transfers", {"name": "theirs.com", "auth_code": "abc"}).status_code
        == 202
    )


def test_changes(account: Account) -> None:
    domain = account.domain()
    hosts = ["a.example.net", "b.example.net", "c.example.net", "d.example.net"]
    assert (
        account.api("PUT", f"/domains/{domain}/nameservers", {"nameservers": hosts}).json()["nameservers"]
        == hosts
    )
    for wrong in (hosts[:1], [*hosts, "e.example.net"], ["a.example.net", "A.example.net."], ["one", "two"]):
        assert (
            code(account.api("PUT", f"/domains/{domain}/nameservers", {"nameservers": wrong}))
            == "validation_error"
        )
    assert (
        account.api("PATCH", f"/domains/{domain}", {"auto_renew": True, "privacy": False}).json()[
            "auto_renew"
        ]
        is True
    )
    wrong_bodies: list[dict[str, Any]] = [{}, {"auto_renew": None}, {"locked": True}]
    for wrong_body in wrong_bodies:
        assert code(account.api("PATCH", f"/domains/{domain}", wrong_body)) == "validation_error"
    german = account.domain("a.de")
    assert (
        code(account.api("PATCH", f"/domains/{german}", {"auto_renew": True, "privacy": True}))
        == "upstream_rejected"
    )
    assert account.api("GET", f"/domains/{german}").json()["auto_renew"] is False
    account.control("PATCH", f"/domains/{domain}", {"blocked": True})
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("PATCH", "", {"auto_renew": False}),
        ("PUT", "/nameservers", {"nameservers": hosts[:2]}),
        ("POST", "/renew", {"years": 1}),
    ]
    for method, path, body in changes:
        assert code(account.api(method, f"/domains/{domain}{path}", body)) == "domain_blocked"
    assert account.api("GET", f"/domains/{domain}").json()["status"] == "active"


def test_renewal(account: Account) -> None:
    account.subscribe("domain.renewed")
    domain = account.domain()
    before = account.core.store.domains[domain].expires_at
    answer = account.api("POST", f"/domains/{domain}/renew", {"years": 2}).json()
    assert (answer["status"], answer["charged"], answer["total_years"]) == ("renewed", "26.00", 3)
    assert answer["domain"]["expires_at"] == answer["expires_at"]
    assert before is not None
    assert account.core.store.domains[domain].expires_at == months_after(before, 24)
    assert code(account.api("POST", f"/domains/{domain}/renew", {"years": 8})) == "upstream_rejected"
    assert code(account.api("POST", f"/domains/{domain}/renew", {"years": 11})) == "validation_error"
    assert account.sent == []
    account.advance(DAY)
    assert [attempt.headers["X-Webhook-Event"] for attempt in account.sent] == ["domain.renewed"]


def test_warnings_and_expiry(account: Account) -> None:
    account.subscribe("domain.expiring")
    domain = account.domain()
    counts = []
    for days in (334, 1, 23, 6, 1):
        account.advance(days * DAY)
        counts.append(len(account.sent))
    assert counts == [0, 1, 2, 3, 3]
    shown = account.api("GET", f"/domains/{domain}").json()
    assert shown["status"] == "expired"
    assert account.api("POST", f"/domains/{domain}/renew", {"years": 1}).status_code == 200
    assert account.api("GET", f"/domains/{domain}").json()["status"] == "active"


def test_a_renewal_whose_date_is_not_visible_yet(any_dialect: Account) -> None:
    domain = any_dialect.domain("slow.com", nameservers=["ns1.example.net", "ns2.example.net"])
    before = any_dialect.api("GET", f"/domains/{domain}").json()["expires_at"]
    any_dialect.fault({"registrar": "pending"}, path="/renew$")
    answer = any_dialect.api("POST", f"/domains/{domain}/renew", {"years": 1})
    live = any_dialect.core.store.service.dialect == "live"
    assert (answer.status_code, answer.json()["status"]) == (
        (202, "pending") if live else (200, "pending_sync")
    )
    assert answer.json()["expires_at"] is None
    assert answer.json()["charged"] == "13.00"
    assert any_dialect.api("GET", f"/domains/{domain}").json()["expires_at"] == before
    any_dialect.advance(DAY + 1)
    assert any_dialect.api("GET", f"/domains/{domain}").json()["expires_at"] > before


def test_auto_renewal(account: Account) -> None:
    domain = account.domain(auto_renew=True)
    account.advance(340 * DAY)
    assert account.api("GET", "/balance").json()["upcoming_30d"] == "13.00"
    account.advance(25 * DAY)
    assert account.api("GET", f"/domains/{domain}").json()["status"] == "active"
    assert account.balance() == "975.00"
    account.control("DELETE", f"/domains/{domain}")
    account.advance(2 * YEAR)
    assert account.balance() == "975.00"
