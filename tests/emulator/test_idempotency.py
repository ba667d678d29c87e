"""The idempotency table of the document, and every reading of what it leaves open."""

import json

import pytest

from tests.emulator.support import DAY, EmulatorHarness, code

SERVER = {"tariff_id": 1, "os": "debian-12", "name": "web"}


def servers(lab: EmulatorHarness) -> int:
    return len(lab.api("GET", "/servers").json()["data"])


def test_same_key_same_request_is_replayed_without_its_secret(both: EmulatorHarness) -> None:
    key = both.idempotency_key()
    first = both.api("POST", "/servers", SERVER, key=key)
    again = both.api("POST", "/servers", SERVER, key=key)
    assert again.status_code == first.status_code == 201
    assert first.json()["root_password"]
    assert again.json() == {**first.json(), "root_password": ""}
    assert servers(both) == 1
    assert [row["replayed"] for row in both.control("GET", "/requests")][:2] == [False, True]


def test_different_body_or_endpoint_is_a_conflict(lab: EmulatorHarness) -> None:
    key, server = lab.idempotency_key(), lab.server()
    assert lab.api("POST", f"/servers/{server}/renew", {"months": 1}, key=key).status_code == 200
    assert code(lab.api("POST", f"/servers/{server}/renew", {"months": 3}, key=key)) == "idempotency_conflict"
    assert code(lab.api("POST", "/servers", SERVER, key=key)) == "idempotency_conflict"
    assert code(lab.api("POST", f"/servers/{lab.server()}/renew", {"months": 1}, key=key)) == "idempotency_conflict"
    # A conflict does not forget the first request.
    assert lab.api("POST", f"/servers/{server}/renew", {"months": 1}, key=key).status_code == 200


def test_forgotten_after_seven_days(lab: EmulatorHarness) -> None:
    key = lab.idempotency_key()
    lab.api("POST", "/servers", SERVER, key=key)
    lab.advance(7 * DAY - 1)
    lab.api("POST", "/servers", SERVER, key=key)
    assert servers(lab) == 1
    lab.advance(1)
    lab.api("POST", "/servers", SERVER, key=key)
    assert servers(lab) == 2


@pytest.mark.parametrize("key", ["short", "x" * 129, "with a space in it!", "k\u00e9y-0123456789abcdef"])
def test_keys_that_are_none(key: str, lab: EmulatorHarness) -> None:
    headers = {b"Idempotency-Key": key.encode("latin-1"), b"Authorization": f"Bearer {lab.live_key}".encode()}
    response = lab.http.post("/v1/servers", json=SERVER, headers=headers)
    assert code(response) == "validation_error"
    assert response.json()["error"]["details"] == {"fields": {"Idempotency-Key": "invalid"}}


def test_in_progress_ends_with_the_answer(lab: EmulatorHarness) -> None:
    key = lab.idempotency_key()
    meanwhile: list[object] = []
    lab.while_waiting = lambda: meanwhile.append(lab.api("POST", "/servers", SERVER, key=key).json()["error"]["code"])
    lab.fault({"delay": 0.5})
    lab.api("POST", "/servers", SERVER, key=key)
    assert (meanwhile, lab.slept) == (["idempotency_in_progress"], [0.5])
    assert lab.api("POST", "/servers", SERVER, key=key).status_code == 201
    assert servers(lab) == 1


def test_a_202_is_replayed_with_its_invoice(lab: EmulatorHarness) -> None:
    key = lab.idempotency_key()
    lab.fault({"panel_timeout": "active"})
    first = lab.api("POST", "/servers", SERVER, key=key)
    lab.advance(1)
    again = lab.api("POST", "/servers", SERVER, key=key)
    assert (again.status_code, again.json()) == (202, first.json())
    assert lab.balance() == "995.00"


def test_a_failure_after_a_refund_is_remembered(lab: EmulatorHarness) -> None:
    for kept in (True, False):
        lab.variant(refusals_stored=kept)
        key = lab.idempotency_key()
        lab.fault({"refunded": 502, "code": "upstream_error"})
        assert code(lab.api("POST", "/servers", SERVER, key=key)) == "upstream_error"
        assert code(lab.api("POST", "/servers", SERVER, key=key)) == "upstream_error"
    assert (lab.balance(), servers(lab)) == ("1000.00", 0)
    assert [row["type"] for row in lab.control("GET", "/ledger")] == ["payment", "refund"] * 2


@pytest.mark.parametrize("kept", [True, False])
def test_reading_refusals_stored(kept: bool, lab: EmulatorHarness) -> None:
    lab.variant(refusals_stored=kept)
    poor, invalid = lab.idempotency_key(), lab.idempotency_key()
    lab.control("PATCH", "/account", {"balance": "0.00"})
    assert code(lab.api("POST", "/servers", SERVER, key=poor)) == "insufficient_funds"
    assert code(lab.api("POST", "/servers", {}, key=invalid)) == "validation_error"
    lab.control("PATCH", "/account", {"balance": "100.00"})
    assert lab.api("POST", "/servers", SERVER, key=poor).status_code == (402 if kept else 201)
    assert lab.api("POST", "/servers", SERVER, key=invalid).status_code == (409 if kept else 201)


@pytest.mark.parametrize("shown", ["fresh", "stored"])
def test_reading_replay_request_id(shown: str, lab: EmulatorHarness) -> None:
    lab.variant(replay_request_id=shown)
    key = lab.idempotency_key()
    first = lab.api("POST", "/servers", {"tariff_id": 4, "os": "debian-12"}, key=key, headers={"X-Request-ID": "first"})
    again = lab.api("POST", "/servers", {"tariff_id": 4, "os": "debian-12"}, key=key, headers={"X-Request-ID": "again"})
    assert first.json()["error"]["request_id"] == "first"
    assert again.headers["X-Request-ID"] == "again"
    assert again.json()["error"]["request_id"] == ("again" if shown == "fresh" else "first")


@pytest.mark.parametrize(("memory", "expected"), [("account", 1), ("key", 2)])
def test_reading_key_memory(memory: str, expected: int, lab: EmulatorHarness) -> None:
    lab.variant(key_memory=memory)
    key, other = lab.idempotency_key(), lab.new_key()
    lab.api("POST", "/servers", SERVER, key=key)
    lab.call(other, "POST", "/servers", SERVER, key=key)
    assert servers(lab) == expected
    # Live and test never share a memory.
    assert lab.test("POST", "/servers", SERVER, key=key).json()["server"]["id"] >= 9_000_000_000


@pytest.mark.parametrize(("comparison", "expected"), [("parsed", 201), ("bytes", 409)])
def test_reading_body_comparison(comparison: str, expected: int, lab: EmulatorHarness) -> None:
    lab.variant(body_comparison=comparison)
    key, headers = lab.idempotency_key(), {"Content-Type": "application/json"}
    lab.api("POST", "/servers", content=json.dumps(SERVER), key=key, headers=headers)
    assert lab.api("POST", "/servers", content=json.dumps(SERVER), key=key, headers=headers).status_code == 201
    spaced = json.dumps(dict(reversed(SERVER.items())), indent=1)
    assert lab.api("POST", "/servers", content=spaced, key=key, headers=headers).status_code == expected


def test_the_stored_answer_is_not_changed_by_a_later_fault(lab: EmulatorHarness) -> None:
    key = lab.idempotency_key()
    lab.fault({"patch": {"server": {"name": "patched", "new": 1}}})
    assert lab.api("POST", "/servers", SERVER, key=key).json()["server"]["name"] == "patched"
    assert lab.api("POST", "/servers", SERVER, key=key).json()["server"]["name"] == "web"
