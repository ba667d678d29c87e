"""Details of the document: payloads of deliveries, owners of names, buckets, spellings, impossible values."""

import ipaddress
import random
from functools import cache
from typing import Any

import pytest

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator import webhook_delivery
from tests.emulator.calls import CALLS
from tests.emulator.support import DAY, code, details
from tests.support.account import Account


def test_a_delivery_shows_its_payload_by_dialect(any_dialect: Account, dialect: str) -> None:
    hook = any_dialect.subscribe("server.created")["id"]
    any_dialect.server()
    any_dialect.advance(0)
    (listed,) = any_dialect.api("GET", f"/webhooks/{hook}/deliveries").json()["data"]
    again = any_dialect.api("POST", f"/webhooks/deliveries/{listed['id']}/redeliver").json()["delivery"]
    ping = any_dialect.api("POST", f"/webhooks/{hook}/test").json()["delivery"]
    alone = any_dialect.api("GET", f"/webhooks/deliveries/{listed['id']}").json()["payload"]
    assert (alone["type"], alone["data"]["object"]["name"]) == ("server.created", "web")
    if dialect == "spec":
        assert listed["payload"] == again["payload"] == alone
        assert ping["payload"]["type"] == "ping"
    else:
        assert not {"payload"} & (set(listed) | set(again) | set(ping))


def test_the_openapi_document_is_packed_for_those_who_ask(any_dialect: Account) -> None:
    plain, packed, refused = (
        any_dialect.http.get("/v1/openapi.json", headers={"Accept-Encoding": asked})
        for asked in ("identity", "br, gzip;q=0.5", "gzip;q=0")
    )
    sizes = [int(answer.headers["Content-Length"]) for answer in (plain, packed, refused)]
    assert plain.json() == packed.json() == refused.json()
    assert (sizes[1] < sizes[0] / 8, sizes[2]) == (True, sizes[0])
    assert [answer.headers["Vary"] for answer in (plain, packed)] == ["Accept-Encoding"] * 2


def test_the_openapi_document_has_the_bounds_of_the_dialect(any_dialect: Account, dialect: str) -> None:
    schemas = any_dialect.http.get("/v1/openapi.json").json()["components"]["schemas"]
    order, renewal, registration = (
        schemas[name]["properties"] for name in ("ServerCreate", "RenewRequest", "DomainRegister")
    )
    bounds = (
        order["hours"]["maximum"],
        renewal["hours"]["maximum"],
        registration["nameservers"]["maxItems"],
        "auto_renew" in registration,
    )
    assert bounds == ((720, 720, 4, True) if dialect == "spec" else (1, 2160, 2, False))


@pytest.mark.parametrize("type", ["server created", "x" * 65, "é.é", "server.created\n"])
def test_text_that_cannot_be_an_event_type_is_refused(type: str, any_dialect: Account) -> None:
    hook = any_dialect.subscribe()["id"]
    refused = any_dialect.api("GET", f"/webhooks/{hook}/deliveries", params={"event_type": type})
    assert (code(refused), list(details(refused)["fields"])) == ("validation_error", ["event_type"])
    assert any_dialect.api("GET", f"/webhooks/{hook}/deliveries?event_type=server.moved").json()["data"] == []


# --- a name has one owner ---------------------------------------------------------------------------------


def active_rows(account: Account, name: str = "") -> list[tuple[str, int]]:
    rows = account.control("GET", "/objects")["domains"]
    return [
        (row["name"], row["account_id"])
        for row in rows
        if row["status"] in ("active", "expired") and name in row["name"]
    ]


def test_a_transfer_ends_the_domain_of_the_other_account(any_dialect: Account) -> None:
    other = any_dialect.control("POST", "/accounts", {})
    mine = any_dialect.domain("moved.com")
    any_dialect.call(
        other["live_key"], "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"}
    )
    again = any_dialect.call(
        other["live_key"], "POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"}
    )
    assert code(again) == "domain_exists"
    any_dialect.advance(4 * DAY)
    assert any_dialect.api("GET", f"/domains/{mine}").json()["status"] == "active"
    any_dialect.advance(DAY)
    assert active_rows(any_dialect) == [("moved.com", other["account_id"])]
    assert any_dialect.api("GET", f"/domains/{mine}").json()["status"] == "cancelled"
    assert code(any_dialect.api("POST", f"/domains/{mine}/renew", {"years": 1})) == "conflict"


def test_an_expired_domain_is_renewed_not_registered_again(any_dialect: Account) -> None:
    domain = any_dialect.domain("late.com")
    any_dialect.api("PATCH", f"/domains/{domain}", {"auto_renew": False})
    any_dialect.advance(366 * DAY)
    before = any_dialect.control("GET", "/ledger")
    assert code(any_dialect.api("POST", "/domains", {"name": "late.com"})) == "domain_exists"
    assert (
        code(any_dialect.api("POST", "/domains/transfers", {"name": "late.com", "auth_code": "abc"}))
        == "domain_exists"
    )
    shown = any_dialect.api("GET", "/domains/availability?name=late.com").json()
    assert (shown["available"], shown["reason"]) == (False, "taken")
    assert any_dialect.control("GET", "/ledger") == before
    assert any_dialect.api("POST", f"/domains/{domain}/renew", {"years": 1}).is_success
    assert any_dialect.api("GET", f"/domains/{domain}").json()["status"] == "active"


def test_an_expired_domain_registered_by_another_account_is_cancelled(any_dialect: Account) -> None:
    domain = any_dialect.domain("late.com")
    any_dialect.advance(366 * DAY)
    other = any_dialect.control("POST", "/accounts", {})
    assert (
        any_dialect.call(other["live_key"], "GET", "/domains/availability?name=late.com").json()["available"]
        is True
    )
    assert any_dialect.call(other["live_key"], "POST", "/domains", {"name": "late.com"}).status_code == 201
    assert code(any_dialect.api("POST", f"/domains/{domain}/renew", {"years": 1})) == "conflict"
    assert active_rows(any_dialect) == [("late.com", other["account_id"])]
    assert code(any_dialect.api("POST", "/domains", {"name": "late.com"})) == "domain_taken"


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 12))]
)
def test_a_name_never_has_two_active_rows(seed: int, any_dialect: Account) -> None:
    """Random operations of two accounts on one name."""
    rng = random.Random(seed)  # noqa: S311  # a test
    first = any_dialect.control("PATCH", "/account", {"balance": "100000.00"})
    other = any_dialect.control("POST", "/accounts", {"balance": "100000.00"})
    tokens = [
        any_dialect.control("POST", "/keys", {"mode": "live", "account_id": id})["key"]
        for id in (first["id"], other["account_id"])
    ]
    for _ in range(60):
        token = rng.choice(tokens)
        owned = any_dialect.call(token, "GET", "/domains").json()["data"]
        action = rng.choice(["register", "pending", "transfer", "renew", "switch", "wait", "expire"])
        if action in ("register", "pending"):
            if action == "pending":
                any_dialect.fault({"registrar": "pending"}, path="^/domains$")
            any_dialect.call(token, "POST", "/domains", {"name": "one.com"})
            any_dialect.control("DELETE", "/faults")
        elif action == "transfer":
            any_dialect.call(token, "POST", "/domains/transfers", {"name": "one.com", "auth_code": "abc"})
        elif action in ("renew", "switch") and owned:
            id = rng.choice(owned)["id"]
            path, body = (
                (f"/domains/{id}/renew", {"years": 1})
                if action == "renew"
                else (f"/domains/{id}", {"auto_renew": rng.random() < 0.5})
            )
            any_dialect.call(token, "POST" if action == "renew" else "PATCH", path, body)
        elif action == "wait":
            any_dialect.advance(rng.choice([1, 3, 6, 200]) * DAY)
        elif action == "expire" and owned:
            any_dialect.control(
                "PATCH", f"/domains/{rng.choice(owned)['id']}", {"status": rng.choice(["expired", "active"])}
            )
        assert len(active_rows(any_dialect)) <= 1, (seed, active_rows(any_dialect))


# --- buckets in the OpenAPI document ----------------------------------------------------------------------


@cache
def paths_of(dialect: str) -> dict[str, Any]:
    """Those of the OpenAPI document. It takes longer to make than an operation."""
    found: dict[str, Any] = Account(dialect=dialect).http.get("/v1/openapi.json").json()["paths"]
    return found


@pytest.mark.parametrize("operation", [row for row in OPERATIONS if row.auth], ids=lambda row: row.id)
def test_the_openapi_document_has_the_bucket_that_is_counted(
    operation: Any, any_dialect: Account, dialect: str
) -> None:
    response = CALLS[operation.id](any_dialect)
    described = paths_of(dialect)[operation.path][operation.method.lower()]
    given = dict(response.request.url.params)
    when = described.get("x-expensive-when", {})
    expensive = described["x-expensive"] or any(given.get(name) in values for name, values in when.items())
    assert response.headers["X-RateLimit-Limit"] == ("20" if expensive else "120")


# --- spellings --------------------------------------------------------------------------------------------


def test_an_ip_filter_matches_any_spelling(any_dialect: Account) -> None:
    any_dialect.server()
    wanted = any_dialect.server()
    v4, v6 = (row["address"] for row in any_dialect.api("GET", f"/servers/{wanted}/ips").json()["data"])
    for text in (v4, v6, v6.upper(), ipaddress.ip_address(v6).exploded, v6.replace("::", ":0:0:0:", 1)):
        found = any_dialect.api("GET", "/servers", params={"ip": text}).json()["data"]
        assert [row["id"] for row in found] == [wanted], text
    for text in ("198.18", "nonsense", "2001:db8::ffff"):
        assert any_dialect.api("GET", "/servers", params={"ip": text}).json()["data"] == []


# --- impossible values ------------------------------------------------------------------------------------


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
def test_an_unreachable_webhook_url_is_refused(url: str, any_dialect: Account) -> None:
    refused = any_dialect.api("POST", "/webhooks", {"url": url, "events": ["*"]})
    assert (code(refused), list(details(refused)["fields"])) == ("validation_error", ["url"])
    hook = any_dialect.subscribe()["id"]
    assert code(any_dialect.api("PATCH", f"/webhooks/{hook}", {"url": url})) == "validation_error"
    assert webhook_delivery.url_problem(url) is not None
    any_dialect.control("PATCH", f"/webhooks/{hook}", {"url": url}, status=400)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org./x",
        "https://HOOKS.example.org:8443/?a=b#c",
        "https://1.1.1.1/",
        "https://xn--bcher-kva.example/",
    ],
)
def test_a_public_webhook_url_is_accepted(url: str, any_dialect: Account) -> None:
    assert any_dialect.api("POST", "/webhooks", {"url": url, "events": ["*"]}).status_code == 201
