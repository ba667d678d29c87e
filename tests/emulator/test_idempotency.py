"""The idempotency table of the document and its behaviour variants."""

import json

import pytest

from tests.emulator.support import DAY, EmulatorHarness, code

SERVER = {"tariff_id": 1, "os": "debian-12", "name": "web"}


def servers(emu: EmulatorHarness) -> int:
    return len(emu.api("GET", "/servers").json()["data"])


def test_same_key_same_request_is_replayed_without_its_secret(any_dialect: EmulatorHarness) -> None:
    key = any_dialect.idempotency_key()
    first = any_dialect.api("POST", "/servers", SERVER, key=key)
    again = any_dialect.api("POST", "/servers", SERVER, key=key)
    assert again.status_code == first.status_code == 201
    assert first.json()["root_password"]
    assert again.json() == {**first.json(), "root_password": ""}
    assert servers(any_dialect) == 1
    assert [row["replayed"] for row in any_dialect.control("GET", "/requests")][:2] == [False, True]


def test_different_body_or_endpoint_is_a_conflict(emu: EmulatorHarness) -> None:
    key, server = emu.idempotency_key(), emu.server()
    assert emu.api("POST", f"/servers/{server}/renew", {"months": 1}, key=key).status_code == 200
    assert code(emu.api("POST", f"/servers/{server}/renew", {"months": 3}, key=key)) == "idempotency_conflict"
    assert code(emu.api("POST", "/servers", SERVER, key=key)) == "idempotency_conflict"
    assert (
        code(emu.api("POST", f"/servers/{emu.server()}/renew", {"months": 1}, key=key))
        == "idempotency_conflict"
    )
    # A conflict leaves the stored response of the first request.
    assert emu.api("POST", f"/servers/{server}/renew", {"months": 1}, key=key).status_code == 200


def test_a_key_expires_after_seven_days(emu: EmulatorHarness) -> None:
    key = emu.idempotency_key()
    emu.api("POST", "/servers", SERVER, key=key)
    emu.advance(7 * DAY - 1)
    emu.api("POST", "/servers", SERVER, key=key)
    assert servers(emu) == 1
    emu.advance(1)
    emu.api("POST", "/servers", SERVER, key=key)
    assert servers(emu) == 2


@pytest.mark.parametrize("key", ["short", "x" * 129, "with a space in it!", "k\u00e9y-0123456789abcdef"])
def test_invalid_idempotency_keys(key: str, emu: EmulatorHarness) -> None:
    headers = {b"Idempotency-Key": key.encode("latin-1"), b"Authorization": f"Bearer {emu.live_key}".encode()}
    response = emu.http.post("/v1/servers", json=SERVER, headers=headers)
    assert code(response) == "validation_error"
    assert response.json()["error"]["details"] == {"fields": {"Idempotency-Key": "invalid"}}


def test_in_progress_ends_with_the_answer(emu: EmulatorHarness) -> None:
    key = emu.idempotency_key()
    meanwhile: list[object] = []
    emu.while_waiting = lambda: meanwhile.append(
        emu.api("POST", "/servers", SERVER, key=key).json()["error"]["code"]
    )
    emu.fault({"delay": 0.5})
    emu.api("POST", "/servers", SERVER, key=key)
    assert (meanwhile, emu.slept) == (["idempotency_in_progress"], [0.5])
    assert emu.api("POST", "/servers", SERVER, key=key).status_code == 201
    assert servers(emu) == 1


def test_a_202_is_replayed_with_its_invoice(emu: EmulatorHarness) -> None:
    key = emu.idempotency_key()
    emu.fault({"panel_timeout": "active"})
    first = emu.api("POST", "/servers", SERVER, key=key)
    emu.advance(1)
    again = emu.api("POST", "/servers", SERVER, key=key)
    assert (again.status_code, again.json()) == (202, first.json())
    assert emu.balance() == "995.00"


def test_a_failure_after_a_refund_is_stored(emu: EmulatorHarness) -> None:
    for kept in (True, False):
        emu.variant(refusals_stored=kept)
        key = emu.idempotency_key()
        emu.fault({"refunded": 502, "code": "upstream_error"})
        assert code(emu.api("POST", "/servers", SERVER, key=key)) == "upstream_error"
        assert code(emu.api("POST", "/servers", SERVER, key=key)) == "upstream_error"
    assert (emu.balance(), servers(emu)) == ("1000.00", 0)
    assert [row["type"] for row in emu.control("GET", "/ledger")] == ["payment", "refund"] * 2


@pytest.mark.parametrize("kept", [True, False])
def test_variant_refusals_stored(kept: bool, emu: EmulatorHarness) -> None:
    emu.variant(refusals_stored=kept)
    low_on_balance, invalid = emu.idempotency_key(), emu.idempotency_key()
    emu.control("PATCH", "/account", {"balance": "0.00"})
    assert code(emu.api("POST", "/servers", SERVER, key=low_on_balance)) == "insufficient_funds"
    assert code(emu.api("POST", "/servers", {}, key=invalid)) == "validation_error"
    emu.control("PATCH", "/account", {"balance": "100.00"})
    assert emu.api("POST", "/servers", SERVER, key=low_on_balance).status_code == (402 if kept else 201)
    assert emu.api("POST", "/servers", SERVER, key=invalid).status_code == (409 if kept else 201)


@pytest.mark.parametrize("shown", ["fresh", "stored"])
def test_variant_replay_request_id(shown: str, emu: EmulatorHarness) -> None:
    emu.variant(replay_request_id=shown)
    key = emu.idempotency_key()
    first = emu.api(
        "POST", "/servers", {"tariff_id": 4, "os": "debian-12"}, key=key, headers={"X-Request-ID": "first"}
    )
    again = emu.api(
        "POST", "/servers", {"tariff_id": 4, "os": "debian-12"}, key=key, headers={"X-Request-ID": "again"}
    )
    assert first.json()["error"]["request_id"] == "first"
    assert again.headers["X-Request-ID"] == "again"
    assert again.json()["error"]["request_id"] == ("again" if shown == "fresh" else "first")


@pytest.mark.parametrize(("memory", "expected"), [("account", 1), ("key", 2)])
def test_variant_key_memory(memory: str, expected: int, emu: EmulatorHarness) -> None:
    emu.variant(key_memory=memory)
    key, other = emu.idempotency_key(), emu.new_key()
    emu.api("POST", "/servers", SERVER, key=key)
    emu.call(other, "POST", "/servers", SERVER, key=key)
    assert servers(emu) == expected
    # Live and test never share stored responses.
    assert emu.test("POST", "/servers", SERVER, key=key).json()["server"]["id"] >= 9_000_000_000


@pytest.mark.parametrize(("comparison", "expected"), [("parsed", 201), ("bytes", 409)])
def test_variant_body_comparison(comparison: str, expected: int, emu: EmulatorHarness) -> None:
    emu.variant(body_comparison=comparison)
    key, headers = emu.idempotency_key(), {"Content-Type": "application/json"}
    emu.api("POST", "/servers", content=json.dumps(SERVER), key=key, headers=headers)
    assert (
        emu.api("POST", "/servers", content=json.dumps(SERVER), key=key, headers=headers).status_code == 201
    )
    spaced = json.dumps(dict(reversed(SERVER.items())), indent=1)
    assert emu.api("POST", "/servers", content=spaced, key=key, headers=headers).status_code == expected


def test_the_stored_answer_is_not_changed_by_a_later_fault(emu: EmulatorHarness) -> None:
    key = emu.idempotency_key()
    emu.fault({"patch": {"server": {"name": "patched", "new": 1}}})
    assert emu.api("POST", "/servers", SERVER, key=key).json()["server"]["name"] == "patched"
    assert emu.api("POST", "/servers", SERVER, key=key).json()["server"]["name"] == "web"
