"""The idempotency table of the document and its behaviour variants."""

import json

import pytest

from tests.emulator.support import DAY, code
from tests.support.account import Account

SERVER = {"tariff_id": 1, "os": "debian-12", "name": "web"}


def servers(account: Account) -> int:
    return len(account.api("GET", "/servers").json()["data"])


def test_same_key_same_request_is_replayed_without_its_secret(any_dialect: Account) -> None:
    key = any_dialect.idempotency_key()
    first = any_dialect.api("POST", "/servers", SERVER, key=key)
    again = any_dialect.api("POST", "/servers", SERVER, key=key)
    assert again.status_code == first.status_code == 201
    assert first.json()["root_password"]
    assert again.json() == {**first.json(), "root_password": ""}
    assert servers(any_dialect) == 1
    assert [row["replayed"] for row in any_dialect.control("GET", "/requests")][:2] == [False, True]


def test_different_body_or_endpoint_is_a_conflict(account: Account) -> None:
    key, server = account.idempotency_key(), account.server()
    assert account.api("POST", f"/servers/{server}/renew", {"months": 1}, key=key).status_code == 200
    assert (
        code(account.api("POST", f"/servers/{server}/renew", {"months": 3}, key=key))
        == "idempotency_conflict"
    )
    assert code(account.api("POST", "/servers", SERVER, key=key)) == "idempotency_conflict"
    assert (
        code(account.api("POST", f"/servers/{account.server()}/renew", {"months": 1}, key=key))
        == "idempotency_conflict"
    )
    # A conflict leaves the stored response of the first request.
    assert account.api("POST", f"/servers/{server}/renew", {"months": 1}, key=key).status_code == 200


def test_a_key_expires_after_seven_days(account: Account) -> None:
    key = account.idempotency_key()
    account.api("POST", "/servers", SERVER, key=key)
    account.advance(7 * DAY - 1)
    account.api("POST", "/servers", SERVER, key=key)
    assert servers(account) == 1
    account.advance(1)
    account.api("POST", "/servers", SERVER, key=key)
    assert servers(account) == 2


@pytest.mark.parametrize("key", ["short", "x" * 129, "with a space in it!", "k\u00e9y-0123456789abcdef"])
def test_invalid_idempotency_keys(key: str, account: Account) -> None:
    headers = {
        b"Idempotency-Key": key.encode("latin-1"),
        b"Authorization": f"Bearer {account.live_key}".encode(),
    }
    response = account.http.post("/v1/servers", json=SERVER, headers=headers)
    assert code(response) == "validation_error"
    assert response.json()["error"]["details"] == {"fields": {"Idempotency-Key": "invalid"}}


def test_in_progress_ends_with_the_answer(account: Account) -> None:
    key = account.idempotency_key()
    meanwhile: list[object] = []
    account.while_waiting = lambda: meanwhile.append(
        account.api("POST", "/servers", SERVER, key=key).json()["error"]["code"]
    )
    account.fault({"delay": 0.5})
    account.api("POST", "/servers", SERVER, key=key)
    assert (meanwhile, account.slept) == (["idempotency_in_progress"], [0.5])
    assert account.api("POST", "/servers", SERVER, key=key).status_code == 201
    assert servers(account) == 1


def test_a_202_is_replayed_with_its_invoice(account: Account) -> None:
    key = account.idempotency_key()
    account.fault({"panel_timeout": "active"})
    first = account.api("POST", "/servers", SERVER, key=key)
    account.advance(1)
    again = account.api("POST", "/servers", SERVER, key=key)
    assert (again.status_code, again.json()) == (202, first.json())
    assert account.balance() == "995.00"


def test_a_failure_after_a_refund_is_stored(account: Account) -> None:
    for kept in (True, False):
        account.variant(refusals_stored=kept)
        key = account.idempotency_key()
        account.fault({"refunded": 502, "code": "upstream_error"})
        assert code(account.api("POST", "/servers", SERVER, key=key)) == "upstream_error"
        assert code(account.api("POST", "/servers", SERVER, key=key)) == "upstream_error"
    assert (account.balance(), servers(account)) == ("1000.00", 0)
    assert [row["type"] for row in account.control("GET", "/ledger")] == ["payment", "refund"] * 2


@pytest.mark.parametrize("kept", [True, False])
def test_variant_refusals_stored(kept: bool, account: Account) -> None:
    account.variant(refusals_stored=kept)
    low_on_balance, invalid = account.idempotency_key(), account.idempotency_key()
    account.control("PATCH", "/account", {"balance": "0.00"})
    assert code(account.api("POST", "/servers", SERVER, key=low_on_balance)) == "insufficient_funds"
    assert code(account.api("POST", "/servers", {}, key=invalid)) == "validation_error"
    account.control("PATCH", "/account", {"balance": "100.00"})
    assert account.api("POST", "/servers", SERVER, key=low_on_balance).status_code == (402 if kept else 201)
    assert account.api("POST", "/servers", SERVER, key=invalid).status_code == (409 if kept else 201)


@pytest.mark.parametrize("shown", ["fresh", "stored"])
def test_variant_replay_request_id(shown: str, account: Account) -> None:
    account.variant(replay_request_id=shown)
    key = account.idempotency_key()
    first = account.api(
        "POST", "/servers", {"tariff_id": 4, "os": "debian-12"}, key=key, headers={"X-Request-ID": "first"}
    )
    again = account.api(
        "POST", "/servers", {"tariff_id": 4, "os": "debian-12"}, key=key, headers={"X-Request-ID": "again"}
    )
    assert first.json()["error"]["request_id"] == "first"
    assert again.headers["X-Request-ID"] == "again"
    assert again.json()["error"]["request_id"] == ("again" if shown == "fresh" else "first")


@pytest.mark.parametrize(("memory", "expected"), [("account", 1), ("key", 2)])
def test_variant_key_memory(memory: str, expected: int, account: Account) -> None:
    account.variant(key_memory=memory)
    key, other = account.idempotency_key(), account.new_key()
    account.api("POST", "/servers", SERVER, key=key)
    account.call(other, "POST", "/servers", SERVER, key=key)
    assert servers(account) == expected
    # Live and test never share stored responses.
    assert account.test("POST", "/servers", SERVER, key=key).json()["server"]["id"] >= 9_000_000_000


@pytest.mark.parametrize(("comparison", "expected"), [("parsed", 201), ("bytes", 409)])
def test_variant_body_comparison(comparison: str, expected: int, account: Account) -> None:
    account.variant(body_comparison=comparison)
    key, headers = account.idempotency_key(), {"Content-Type": "application/json"}
    account.api("POST", "/servers", content=json.dumps(SERVER), key=key, headers=headers)
    assert (
        account.api("POST", "/servers", content=json.dumps(SERVER), key=key, headers=headers).status_code
        == 201
    )
    spaced = json.dumps(dict(reversed(SERVER.items())), indent=1)
    assert account.api("POST", "/servers", content=spaced, key=key, headers=headers).status_code == expected


def test_the_stored_answer_is_not_changed_by_a_later_fault(account: Account) -> None:
    key = account.idempotency_key()
    account.fault({"patch": {"server": {"name": "patched", "new": 1}}})
    assert account.api("POST", "/servers", SERVER, key=key).json()["server"]["name"] == "patched"
    assert account.api("POST", "/servers", SERVER, key=key).json()["server"]["name"] == "web"
