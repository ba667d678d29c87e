"""What the emulator once answered otherwise than the document says: deliveries, owners of names, buckets, spellings, impossible values."""

import ipaddress
import random
from typing import Any

import pytest

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator import webhook_delivery
from tests.emulator.support import DAY, EmulatorHarness, code, details
from tests.emulator.test_contract import SCENES

# --- deliveries show what was sent -----------------------------------------------------------------------------------------------


def test_a_delivery_shows_its_event_where_the_dialect_says(both: EmulatorHarness, dialect: str) -> None:
    hook = both.subscribe("server.created")["id"]
    both.server()
    both.advance(0)
    (listed,) = both.api("GET", f"/webhooks/{hook}/deliveries").json()["data"]
    again = both.api("POST", f"/webhooks/deliveries/{listed['id']}/redeliver").json()["delivery"]
    ping = both.api("POST", f"/webhooks/{hook}/test").json()["delivery"]
    alone = both.api("GET", f"/webhooks/deliveries/{listed['id']}").json()["payload"]
    assert (alone["type"], alone["data"]["object"]["name"]) == ("server.created", "web")
    if dialect == "spec":
        assert listed["payload"] == again["payload"] == alone
        assert ping["payload"]["type"] == "ping"
    else:
        assert not {"payload"} & (set(listed) | set(again) | set(ping))


@pytest.mark.parametrize("type", ["server created", "x" * 65, "é.é", "server.created\n"])
def test_what_can_be_no_event_type_is_refused(type: str, both: EmulatorHarness) -> None:
    hook = both.subscribe()["id"]
    refused = both.api("GET", f"/webhooks/{hook}/deliveries", params={"event_type": type})
    assert (code(refused), list(details(refused)["fields"])) == ("validation_error", ["event_type"])
    assert both.api("GET", f"/webhooks/{hook}/deliveries?event_type=server.moved").json()["data"] == []


# --- a name has one owner --------------------------------------------------------------------------------------------------------


def living(lab: EmulatorHarness, name: str = "") -> list[tuple[str, int]]:
    rows = lab.control("GET", "/objects")["domains"]
    return [(row["name"], row["account_id"]) for row in rows if row["status"] in ("active", "expired") and name in row["name"]]


def test_a_transfer_ends_the_other_account_s_domain(both: EmulatorHarness) -> None:
    other = both.control("POST", "/accounts", {})
    mine = both.domain("moved.com")
    both.call(other["live_key"], "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"})
    again = both.call(other["live_key"], "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"})
    assert code(again) == "domain_exists"
    both.advance(4 * DAY)
    assert both.api("GET", f"/domains/{mine}").json()["status"] == "active"
    both.advance(DAY)
    assert living(both) == [("moved.com", other["account_id"])]
    assert both.api("GET", f"/domains/{mine}").json()["status"] == "cancelled"
    assert code(both.api("POST", f"/domains/{mine}/renew", {"years": 1})) == "conflict"


def test_an_expired_domain_is_renewed_and_not_bought_again(both: EmulatorHarness) -> None:
    domain = both.domain("late.com")
    both.api("PATCH", f"/domains/{domain}", {"auto_renew": False})
    both.advance(366 * DAY)
    before = both.control("GET", "/ledger")
    assert code(both.api("POST", "/domains", {"name": "late.com"})) == "domain_exists"
    assert code(both.api("POST", "/domains/transfers", {"name": "late.com", "auth_code": "abc"})) == "domain_exists"
    shown = both.api("GET", "/domains/availability?name=late.com").json()
    assert (shown["available"], shown["reason"]) == (False, "taken")
    assert both.control("GET", "/ledger") == before
    assert both.api("POST", f"/domains/{domain}/renew", {"years": 1}).is_success
    assert both.api("GET", f"/domains/{domain}").json()["status"] == "active"


def test_an_expired_domain_that_somebody_else_registered_is_gone(both: EmulatorHarness) -> None:
    domain = both.domain("late.com")
    both.advance(366 * DAY)
    other = both.control("POST", "/accounts", {})
    assert both.call(other["live_key"], "GET", "/domains/availability?name=late.com").json()["available"] is True
    assert both.call(other["live_key"], "POST", "/domains", {"name": "late.com"}).status_code == 201
    assert code(both.api("POST", f"/domains/{domain}/renew", {"years": 1})) == "conflict"
    assert living(both) == [("late.com", other["account_id"])]
    assert code(both.api("POST", "/domains", {"name": "late.com"})) == "domain_taken"


@pytest.mark.parametrize("seed", range(12))
def test_a_name_never_has_two_living_rows(seed: int, both: EmulatorHarness) -> None:
    """Random operations of two accounts on one name."""
    dice = random.Random(seed)  # noqa: S311  # a test
    first = both.control("PATCH", "/account", {"balance": "100000.00"})
    other = both.control("POST", "/accounts", {"balance": "100000.00"})
    tokens = [both.control("POST", "/keys", {"mode": "live", "account_id": id})["key"] for id in (first["id"], other["account_id"])]
    for _ in range(60):
        token = dice.choice(tokens)
        owned = both.call(token, "GET", "/domains").json()["data"]
        action = dice.choice(["register", "pending", "transfer", "renew", "switch", "wait", "expire"])
        if action in ("register", "pending"):
            if action == "pending":
                both.fault({"registrar": "pending"}, path="^/domains$")
            both.call(token, "POST", "/domains", {"name": "one.com"})
            both.control("DELETE", "/faults")
        elif action == "transfer":
            both.call(token, "POST", "/domains/transfers", {"name": "one.com", "auth_code": "abc"})
        elif action in ("renew", "switch") and owned:
            id = dice.choice(owned)["id"]
            path, body = (
                (f"/domains/{id}/renew", {"years": 1}) if action == "renew" else (f"/domains/{id}", {"auto_renew": dice.random() < 0.5})
            )
            both.call(token, "POST" if action == "renew" else "PATCH", path, body)
        elif action == "wait":
            both.advance(dice.choice([1, 3, 6, 200]) * DAY)
        elif action == "expire" and owned:
            both.control("PATCH", f"/domains/{dice.choice(owned)['id']}", {"status": dice.choice(["expired", "active"])})
        assert len(living(both)) <= 1, (seed, living(both))


# --- the description says what the buckets do ------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", [row for row in OPERATIONS if row.auth], ids=lambda row: row.id)
def test_the_description_names_the_bucket_that_is_played(operation: Any, both: EmulatorHarness) -> None:
    response = SCENES[operation.id](both)
    described = both.http.get("/v1/openapi.json").json()["paths"][operation.path][operation.method.lower()]
    given = dict(response.request.url.params)
    when = described.get("x-expensive-when", {})
    expensive = described["x-expensive"] or any(given.get(name) in values for name, values in when.items())
    assert response.headers["X-RateLimit-Limit"] == ("20" if expensive else "120")


# --- spellings -------------------------------------------------------------------------------------------------------------------


def test_an_address_is_found_in_any_spelling(both: EmulatorHarness) -> None:
    both.server()
    wanted = both.server()
    v4, v6 = (row["address"] for row in both.api("GET", f"/servers/{wanted}/ips").json()["data"])
    for text in (v4, v6, v6.upper(), ipaddress.ip_address(v6).exploded, v6.replace("::", ":0:0:0:", 1)):
        found = both.api("GET", "/servers", params={"ip": text}).json()["data"]
        assert [row["id"] for row in found] == [wanted], text
    for text in ("198.18", "nonsense", "2001:db8::ffff"):
        assert both.api("GET", "/servers", params={"ip": text}).json()["data"] == []


# --- impossible values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://a..b.example/",
        "https://.a.example/",
        "https://a.example\x00/",
        "https://a.exa mple/",
        "https://[v1.a]/",
        "https://[::1",
        "https://h.example.org:0/",
        "https://h.example.org:99999/",
        "https://-a.example/",
        "https://a_b.example/",
        f"https://{'a' * 64}.example/",
        "https://[fe80::1%25eth0]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "https://224.0.0.1/",
        "https://169.254.169.254/",
        "https://0.0.0.0/",
        "https://2130706433/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://metadata.internal/",
        "https:///path",
    ],
)
def test_a_url_that_nothing_can_be_sent_to_is_refused(url: str, both: EmulatorHarness) -> None:
    refused = both.api("POST", "/webhooks", {"url": url, "events": ["*"]})
    assert (code(refused), list(details(refused)["fields"])) == ("validation_error", ["url"])
    hook = both.subscribe()["id"]
    assert code(both.api("PATCH", f"/webhooks/{hook}", {"url": url})) == "validation_error"
    assert webhook_delivery.url_problem(url) is not None
    both.control("PATCH", f"/webhooks/{hook}", {"url": url}, status=400)


@pytest.mark.parametrize(
    "url", ["https://hooks.example.org./x", "https://HOOKS.example.org:8443/?a=b#c", "https://1.1.1.1/", "https://xn--bcher-kva.example/"]
)
def test_a_public_url_is_taken(url: str, both: EmulatorHarness) -> None:
    assert both.api("POST", "/webhooks", {"url": url, "events": ["*"]}).status_code == 201
