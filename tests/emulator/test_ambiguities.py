"""Decisions where the document is ambiguous, in both dialects."""

from decimal import Decimal

import pytest

from pulumi_hosting.api import models as m
from tests.emulator.support import DAY, code, details
from tests.support.account import Account

SERVER = {"tariff_id": 1, "os": "debian-12"}


def test_five_passwords_in_any_five_minutes(any_dialect: Account) -> None:
    server = any_dialect.server()
    path = f"/servers/{server}/actions/reset-password"
    # Four calls at the end of one window of 5 minutes, the rest at the beginning of the next: a fixed window
    # would let 9 pass.
    assert any_dialect.api("POST", path).status_code == 200
    any_dialect.advance(298)
    answers = []
    for _ in range(4):
        answers.append(any_dialect.api("POST", path).status_code)
    any_dialect.advance(3)
    answers += [any_dialect.api("POST", path).status_code for _ in range(5)]
    assert answers == [200, 200, 200, 200, 200, 429, 429, 429, 429]
    refused = any_dialect.api("POST", path)
    assert (code(refused), refused.headers["Retry-After"]) == ("rate_limited", "297")
    any_dialect.advance(296)
    assert any_dialect.api("POST", path).status_code == 429
    any_dialect.advance(1)
    assert any_dialect.api("POST", path).status_code == 200


@pytest.mark.parametrize(
    ("variant", "again"),
    [({}, 409), ({"transient_refusals_stored": False}, 200), ({"refusals_stored": False}, 200)],
)
def test_variant_transient_refusals_stored(variant: dict[str, bool], again: int, dialect: str) -> None:
    account = Account(dialect=dialect, provisioning_delay=60)
    server = account.server()
    account.variant(**variant)
    account.api("POST", f"/servers/{server}/actions/reinstall", {"os": "debian-12"})
    path, body, key = f"/servers/{server}/renew", {"months": 1}, "one-key-for-both-calls"
    assert code(account.api("POST", path, body, key=key)) == "operation_in_progress"
    account.advance(60)
    assert account.api("POST", path, body, key=key).status_code == again


def test_other_refusals_are_stored(any_dialect: Account) -> None:
    any_dialect.variant(transient_refusals_stored=False)
    any_dialect.control("PATCH", "/account", {"balance": "0.00"})
    key = "one-key-for-both-calls"
    assert code(any_dialect.api("POST", "/servers", SERVER, key=key)) == "insufficient_funds"
    any_dialect.control("PATCH", "/account", {"balance": "100.00"})
    assert code(any_dialect.api("POST", "/servers", SERVER, key=key)) == "insufficient_funds"


def test_the_query_is_checked_before_the_idempotency_key(any_dialect: Account) -> None:
    key = "one-key-for-all-calls"
    made = any_dialect.api("POST", "/servers", SERVER, key=key)
    refused = any_dialect.api("POST", "/servers?dry_run=1", SERVER, key=key)
    assert (code(refused), details(refused)) == ("validation_error", {"fields": {"dry_run": "unknown"}})
    replayed = any_dialect.api("POST", "/servers", SERVER, key=key)
    assert (replayed.status_code, replayed.json()["invoice_id"]) == (201, made.json()["invoice_id"])
    # A refused query does not use up the key, and a missing key is refused first.
    other = "another-key-for-these"
    assert code(any_dialect.api("POST", "/servers?dry_run=1", SERVER, key=other)) == "validation_error"
    assert any_dialect.api("POST", "/servers", SERVER, key=other).status_code == 201
    assert code(any_dialect.api("POST", "/servers?dry_run=1", SERVER, key=None)) == "idempotency_key_required"


def test_an_invoice_has_its_refunded_amount(any_dialect: Account) -> None:
    server = any_dialect.server()
    (invoice,) = any_dialect.api("GET", "/invoices").json()["data"]
    assert (invoice["status"], invoice["refunded_amount"]) == ("paid", "0.00")
    any_dialect.advance(15 * DAY)
    any_dialect.api("DELETE", f"/servers/{server}")
    shown = any_dialect.api("GET", f"/invoices/{invoice['id']}").json()
    assert (shown["status"], shown["amount"], shown["refunded_amount"]) == ("refunded", "5.00", "2.50")


def test_the_parts_of_an_hourly_refund(any_dialect: Account, dialect: str) -> None:
    server = any_dialect.order(tariff_id=3, hours=1)["server"]["id"]
    any_dialect.api("POST", f"/servers/{server}/renew", {"hours": 10})
    quote = any_dialect.api("GET", f"/servers/{server}/refund-quote").json()
    parts = [Decimal(row["refund"]) for row in quote["breakdown"]]
    assert Decimal(quote["amount"]) == Decimal("0.17")
    assert parts == ([Decimal("0.02"), Decimal("0.15")] if dialect == "spec" else [])


@pytest.mark.parametrize("how", ["real", "pending", "simulated"])
def test_the_domain_of_a_registration_has_one_type(how: str, any_dialect: Account, dialect: str) -> None:
    if how == "pending":
        any_dialect.fault({"registrar": "pending"})
    response = (any_dialect.test if how == "simulated" else any_dialect.api)(
        "POST", "/domains", {"name": "slow.com"}
    )
    answer = response.json()
    if dialect == "live":
        assert answer["domain"] == "slow.com"
    else:
        assert (answer["domain"]["name"], answer["domain"]["id"]) == ("slow.com", answer["domain_id"])
    assert (answer["domain_id"] is None) == (how != "real")
    typed = m.DomainOrderResult.model_validate(answer)
    assert (typed.domain_name, typed.domain_id) == ("slow.com", answer["domain_id"])


def test_an_expired_name_is_free_for_a_third_account(any_dialect: Account) -> None:
    any_dialect.domain("late.com")
    any_dialect.advance(366 * DAY)
    third = any_dialect.control("POST", "/accounts", {})["live_key"]
    assert any_dialect.call(third, "POST", "/domains", {"name": "late.com"}).status_code == 201


def test_an_amount_as_a_json_number(any_dialect: Account) -> None:
    """A JSON number loses its digits in parsing."""
    body = b'{"amount": 10.000, "gateway": "card"}'
    kind = {"Content-Type": "application/json"}
    assert any_dialect.api("POST", "/balance/topup", content=body, headers=kind).status_code == 201
    assert (
        any_dialect.api(
            "POST", "/balance/topup", content=body.replace(b"10.000", b'"10.000"'), headers=kind
        ).status_code
        == 400
    )


@pytest.mark.parametrize("percent", ["0", "100"])
def test_the_reason_for_no_refund_is_one_of_the_document(percent: str, dialect: str) -> None:
    account = Account(dialect=dialect)
    account.control("PATCH", "/account", {"group_discount_percent": percent})
    server = account.server()
    account.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    account.advance(30 * DAY - 1)
    quote = account.api("GET", f"/servers/{server}/refund-quote").json()
    assert (quote["amount"], quote["excluded_reason"]) == (
        "0.00",
        "unpaid" if dialect == "spec" else "consumed",
    )
    assert quote["note"] == "Nothing is left of the paid period."


def test_sandbox_keys_have_the_password_limit_too(any_dialect: Account) -> None:
    server = any_dialect.server()
    answers = [
        any_dialect.test("POST", f"/servers/{server}/actions/reset-password").status_code for _ in range(6)
    ]
    assert answers == [200] * 5 + [429]
    assert any_dialect.api("POST", f"/servers/{server}/actions/reset-password").status_code == 200


@pytest.mark.parametrize("days", [14, 1, 60])
def test_variant_terminated_after_days(days: int, any_dialect: Account) -> None:
    any_dialect.variant(terminated_after_days=days)
    server = any_dialect.server()
    any_dialect.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    any_dialect.advance((30 + days) * DAY - 1)
    assert [row["status"] for row in any_dialect.living] == ["suspended"]
    any_dialect.advance(1)
    assert any_dialect.living == []


@pytest.mark.parametrize("variant", ["allowed", "refused"])
def test_variant_suspended_renewal(variant: str, any_dialect: Account) -> None:
    any_dialect.variant(suspended_renewal=variant)
    server = any_dialect.server()
    any_dialect.api("PATCH", f"/servers/{server}", {"auto_renew": False})
    any_dialect.advance(31 * DAY)
    answer = any_dialect.api("POST", f"/servers/{server}/renew", {"months": 1})
    if variant == "refused":
        assert (code(answer), details(answer)) == ("service_state", {"status": "suspended"})
        (invoice,) = any_dialect.api("GET", "/invoices?status=not_paid").json()["data"]
        any_dialect.api("POST", f"/invoices/{invoice['id']}/pay")
    assert any_dialect.api("GET", f"/servers/{server}").json()["status"] == "active"
    assert any_dialect.moved() == Decimal("10.00")


@pytest.mark.parametrize("variant", ["allowed", "refused"])
def test_variant_expired_renewal(variant: str, any_dialect: Account) -> None:
    any_dialect.variant(expired_renewal=variant)
    domain = any_dialect.domain()
    any_dialect.advance(366 * DAY)
    again = any_dialect.api("POST", "/domains", {"name": "example.com"})
    renewed = any_dialect.api("POST", f"/domains/{domain}/renew", {"years": 1})
    states = {row["id"]: row["status"] for row in any_dialect.objects("domains")}
    if variant == "allowed":
        assert (code(again), renewed.status_code, states) == ("domain_exists", 200, {domain: "active"})
    else:
        assert (again.status_code, code(renewed)) == (201, "conflict")
        assert states == {domain: "cancelled", again.json()["domain_id"]: "active"}


@pytest.mark.parametrize("variant", ["any_time", "last_day"])
def test_variant_early_renewal(variant: str, any_dialect: Account) -> None:
    any_dialect.variant(early_renewal=variant)
    server, domain = any_dialect.server(), any_dialect.domain()
    orders = (
        (f"/servers/{server}/renew", {"months": 1}, 30),
        (f"/domains/{domain}/renew", {"years": 1}, 365),
    )
    passed = 0
    for path, body, days in orders:
        any_dialect.advance((days - 1 - passed) * DAY - 1)
        early = any_dialect.api("POST", path, body)
        any_dialect.advance(1)
        answers = early.status_code, any_dialect.api("POST", path, body).status_code
        assert answers == ((200, 200) if variant == "any_time" else (409, 200)), path
        passed = days - 1


def test_variants_and_limits_survive_a_restart_and_an_older_file(tmp_path: object) -> None:
    from pathlib import Path

    from pulumi_hosting.emulator.clock import Clock
    from pulumi_hosting.emulator.persistence import open_state
    from tests.support.account import START

    path = Path(str(tmp_path)) / "state"
    clock = Clock(manual=True, start=START)
    state_file, _ = open_state(path, clock)
    account = Account(clock, persistence=state_file)
    server = account.server()
    for _ in range(5):
        account.api("POST", f"/servers/{server}/actions/reset-password")
    del account.core.store.service.readings["transient_refusals_stored"]
    account.api("GET", "/me")
    state_file.close()
    state_file, store = open_state(path, clock)
    again = Account(clock, loaded=store, persistence=state_file)
    assert again.control("PATCH", "/service", {})["readings"]["transient_refusals_stored"] is True
    assert again.api("POST", f"/servers/{server}/actions/reset-password").status_code == 429
    state_file.close()
