"""Domains: the registrar's rules, its syncs, expiry, and both dialects."""

from typing import Any

import pytest

from pulumi_hosting.emulator.periods import months_after
from tests.emulator.support import DAY, EmulatorHarness, code, details

YEAR = 365 * DAY


def availability(lab: EmulatorHarness, name: str) -> dict[str, object]:
    answer: dict[str, object] = lab.api("GET", "/domains/availability", params={"name": name}).json()
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
def test_availability(name: str, reason: str | None, lab: EmulatorHarness) -> None:
    answer = availability(lab, name)
    assert (answer["available"], answer["reason"], answer["premium"]) == (reason is None, reason, reason == "premium")
    assert (answer["price_register"] is None) == (reason in ("invalid", "unsupported_tld"))


def test_unicode_and_punycode_are_one_name(lab: EmulatorHarness) -> None:
    assert availability(lab, "b\u00fccher.com")["name"] == "xn--bcher-kva.com"
    domain = lab.domain("xn--bcher-kva.com")
    assert availability(lab, "B\u00dcCHER.com")["reason"] == "taken"
    assert code(lab.api("POST", "/domains", {"name": "b\u00fccher.com"})) == "domain_exists"
    assert lab.api("GET", f"/domains/{domain}").json()["name"] == "xn--bcher-kva.com"


def test_registration(lab: EmulatorHarness) -> None:
    lab.subscribe("domain.registered")
    answer = lab.register("example.com", years=2, nameservers=["NS1.Example.net.", "ns2.example.net"], promo_code="SAVE20")
    domain = answer["domain"]
    assert (answer["status"], answer["charged"], answer["discount"], answer["balance_after"]) == ("registered", "19.20", "4.80", "980.80")
    assert (domain["nameservers"], domain["privacy"], domain["auto_renew"]) == (["ns1.example.net", "ns2.example.net"], True, False)
    assert answer["expires_at"] == domain["expires_at"]
    assert answer["domain_id"] == domain["id"]
    lab.advance(0)
    assert len(lab.sent) == 1


def test_registration_refusals(lab: EmulatorHarness) -> None:
    for name in ("taken-a.com", "premium-a.com", "reserved-a.com"):
        assert code(lab.api("POST", "/domains", {"name": name})) == "domain_taken"
    assert code(lab.api("POST", "/domains", {"name": "a.de", "privacy": True})) == "upstream_rejected"
    assert lab.register("a.de")["domain"]["privacy"] is False
    assert code(lab.api("POST", "/domains", {"name": "a.dev", "years": 6})) == "invalid_period"
    assert code(lab.api("POST", "/domains", {"name": "a.com", "years": 11})) == "invalid_period"
    lab.control("PATCH", "/account", {"balance": "11.99"})
    assert code(lab.api("POST", "/domains", {"name": "a.com"})) == "insufficient_funds"
    assert lab.balance() == "11.99"


def test_registration_in_the_live_dialect() -> None:
    lab = EmulatorHarness(dialect="live")
    answer = lab.register("example.com")
    assert answer["domain"] == "example.com"
    assert lab.api("GET", f"/domains/{answer['domain_id']}").json()["privacy"] is False
    assert details(lab.api("POST", "/domains", {"name": "b.com", "auto_renew": True})) == {"fields": {"auto_renew": "unknown"}}
    three = ["a.example.net", "b.example.net", "c.example.net"]
    assert code(lab.api("POST", "/domains", {"name": "b.com", "nameservers": three})) == "validation_error"
    assert code(lab.api("PUT", f"/domains/{answer['domain_id']}/nameservers", {"nameservers": three})) == "validation_error"
    renewed = lab.api("POST", f"/domains/{answer['domain_id']}/renew", {"years": 1}).json()
    assert (renewed["domain"], renewed["total_years"]) == ("example.com", 2)
    transfer = lab.api("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc", "nameservers": three[:2]}).json()
    assert transfer["status"] == "pending_transfer"
    lab.control("PATCH", f"/domains/{answer['domain_id']}", {"blocked": True})
    assert lab.api("GET", f"/domains/{answer['domain_id']}").json()["status"] == "cancelled"
    assert len(lab.api("GET", "/domains?status=cancelled").json()["data"]) == 1


def test_pending_until_the_next_sync(both: EmulatorHarness) -> None:
    both.subscribe("domain.registered")
    both.fault({"registrar": "pending"})
    response = both.api("POST", "/domains", {"name": "slow.com"})
    answer = response.json()
    assert (response.status_code, answer["status"], answer["domain_id"]) == (202, "pending", None)
    (shown,) = both.api("GET", "/domains?status=pending").json()["data"]
    assert code(both.api("PATCH", f"/domains/{shown['id']}", {"auto_renew": True})) == "conflict"
    both.advance(DAY)
    assert both.api("GET", f"/domains/{shown['id']}").json()["status"] == "active"
    assert [attempt.headers["X-Webhook-Event"] for attempt in both.sent] == ["domain.registered"]


def test_transfer(lab: EmulatorHarness) -> None:
    answer = lab.api("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc", "auto_renew": True, "privacy": False}).json()
    assert (answer["status"], answer["charged"]) == ("transfer_pending", "12.50")
    assert code(lab.api("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"})) == "domain_exists"
    assert code(lab.api("POST", f"/domains/{answer['domain_id']}/renew", {"years": 1})) == "conflict"
    lab.advance(5 * DAY)
    shown = lab.api("GET", f"/domains/{answer['domain_id']}").json()
    assert (shown["status"], shown["auto_renew"], shown["privacy"], shown["locked"]) == ("active", True, False, True)
    assert code(lab.api("POST", "/domains/transfers", {"name": "b.dev", "auth_code": "abc"})) == "upstream_rejected"
    assert code(lab.api("POST", "/domains/transfers", {"name": "b.de", "auth_code": "abc", "privacy": True})) == "upstream_rejected"
    assert {row["body"]["auth_code"] for row in lab.control("GET", "/requests") if row["path"] == "/domains/transfers"} == {"*" * 10}


def test_somebody_elses_domain_can_be_transferred_in(lab: EmulatorHarness) -> None:
    other = lab.control("POST", "/accounts", {})["live_key"]
    lab.call(other, "POST", "/domains", {"name": "theirs.com"})
    assert code(lab.api("POST", "/domains", {"name": "theirs.com"})) == "domain_taken"
    assert lab.api("POST", "/domains/transfers", {"name": "theirs.com", "auth_code": "abc"}).status_code == 202


def test_changes(lab: EmulatorHarness) -> None:
    domain = lab.domain()
    hosts = ["a.example.net", "b.example.net", "c.example.net", "d.example.net"]
    assert lab.api("PUT", f"/domains/{domain}/nameservers", {"nameservers": hosts}).json()["nameservers"] == hosts
    for wrong in (hosts[:1], [*hosts, "e.example.net"], ["a.example.net", "A.example.net."], ["one", "two"]):
        assert code(lab.api("PUT", f"/domains/{domain}/nameservers", {"nameservers": wrong})) == "validation_error"
    assert lab.api("PATCH", f"/domains/{domain}", {"auto_renew": True, "privacy": False}).json()["auto_renew"] is True
    wrong_bodies: list[dict[str, Any]] = [{}, {"auto_renew": None}, {"locked": True}]
    for wrong_body in wrong_bodies:
        assert code(lab.api("PATCH", f"/domains/{domain}", wrong_body)) == "validation_error"
    german = lab.domain("a.de")
    assert code(lab.api("PATCH", f"/domains/{german}", {"auto_renew": True, "privacy": True})) == "upstream_rejected"
    assert lab.api("GET", f"/domains/{german}").json()["auto_renew"] is False
    lab.control("PATCH", f"/domains/{domain}", {"blocked": True})
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("PATCH", "", {"auto_renew": False}),
        ("PUT", "/nameservers", {"nameservers": hosts[:2]}),
        ("POST", "/renew", {"years": 1}),
    ]
    for method, path, body in changes:
        assert code(lab.api(method, f"/domains/{domain}{path}", body)) == "domain_blocked"
    assert lab.api("GET", f"/domains/{domain}").json()["status"] == "active"


def test_renewal(lab: EmulatorHarness) -> None:
    lab.subscribe("domain.renewed")
    domain = lab.domain()
    before = lab.core.store.domains[domain].expires_at
    answer = lab.api("POST", f"/domains/{domain}/renew", {"years": 2}).json()
    assert (answer["status"], answer["charged"], answer["total_years"]) == ("renewed", "26.00", 3)
    assert answer["domain"]["expires_at"] == answer["expires_at"]
    assert before is not None
    assert lab.core.store.domains[domain].expires_at == months_after(before, 24)
    assert code(lab.api("POST", f"/domains/{domain}/renew", {"years": 8})) == "upstream_rejected"
    assert code(lab.api("POST", f"/domains/{domain}/renew", {"years": 11})) == "validation_error"
    assert lab.sent == []
    lab.advance(DAY)
    assert [attempt.headers["X-Webhook-Event"] for attempt in lab.sent] == ["domain.renewed"]


def test_warnings_and_expiry(lab: EmulatorHarness) -> None:
    lab.subscribe("domain.expiring")
    domain = lab.domain()
    counts = []
    for days in (334, 1, 23, 6, 1):
        lab.advance(days * DAY)
        counts.append(len(lab.sent))
    assert counts == [0, 1, 2, 3, 3]
    shown = lab.api("GET", f"/domains/{domain}").json()
    assert shown["status"] == "expired"
    assert lab.api("POST", f"/domains/{domain}/renew", {"years": 1}).status_code == 200
    assert lab.api("GET", f"/domains/{domain}").json()["status"] == "active"


def test_a_renewal_whose_date_is_not_visible_yet(both: EmulatorHarness) -> None:
    domain = both.domain("slow.com", nameservers=["ns1.example.net", "ns2.example.net"])
    before = both.api("GET", f"/domains/{domain}").json()["expires_at"]
    both.fault({"registrar": "pending"}, path="/renew$")
    answer = both.api("POST", f"/domains/{domain}/renew", {"years": 1})
    live = both.core.store.service.dialect == "live"
    assert (answer.status_code, answer.json()["status"]) == ((202, "pending") if live else (200, "pending_sync"))
    assert answer.json()["expires_at"] is None
    assert answer.json()["charged"] == "13.00"
    assert both.api("GET", f"/domains/{domain}").json()["expires_at"] == before
    both.advance(DAY + 1)
    assert both.api("GET", f"/domains/{domain}").json()["expires_at"] > before


def test_auto_renewal(lab: EmulatorHarness) -> None:
    domain = lab.domain(auto_renew=True)
    lab.advance(340 * DAY)
    assert lab.api("GET", "/balance").json()["upcoming_30d"] == "13.00"
    lab.advance(25 * DAY)
    assert lab.api("GET", f"/domains/{domain}").json()["status"] == "active"
    assert lab.balance() == "975.00"
    lab.control("DELETE", f"/domains/{domain}")
    lab.advance(2 * YEAR)
    assert lab.balance() == "975.00"
