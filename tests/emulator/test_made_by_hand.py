"""Objects made by control calls, snapshots, events by hand, and runs that are the same to the byte."""

from typing import Any

import httpx
import pytest

from pulumi_hosting import Client
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.exactly_once.local_files import account_scope
from tests.emulator.support import PUBLIC_KEY, SERVER, code
from tests.support.account import START, Account

URL = "https://hooks.example.org/in"


def test_an_object_of_every_kind_is_made_and_read_through_the_api(account: Account) -> None:
    made = {
        path: account.control("POST", path, body)["id"]
        for path, body in {
            "/locations": {"code": "fr-par", "name": "Paris", "country": "FR", "city": "Paris"},
            "/tariffs": {"name": "Tiny", "price_monthly": "1.50", "location_id": 3},
            "/zones": {"tld": ".org", "price_register": "9.00", "price_renew": "10.00"},
            "/ssh-keys": {"name": "laptop", "public_key": PUBLIC_KEY},
            "/servers": {"id": 812, "name": "old", "tariff_id": 7, "os": "arch", "months": 3},
            "/servers/812/ips": {"bought": True, "ptr": "mail.example.org"},
            "/domains": {"name": "shop.org", "auto_renew": False},
            "/webhooks": {"url": URL},
        }.items()
    }
    image = account.control("POST", "/images", {"slug": "arch", "name": "Arch"})
    assert image["slug"] in {row["slug"] for row in account.api("GET", "/catalog/os").json()["data"]}
    tariff = account.api("GET", f"/catalog/tariffs/{made['/tariffs']}").json()
    assert (tariff["list_price_monthly"], tariff["location"]["code"]) == ("1.50", "fr-par")
    server = account.api("GET", "/servers/812").json()
    assert (server["os"], server["location"], server["billing"]["recurring_amount"]) == (
        "arch",
        "Paris",
        "10.27",
    )
    assert [ip["ptr"] for ip in account.api("GET", "/servers/812/ips").json()["data"]][
        -1
    ] == "mail.example.org"
    domain = account.api("GET", f"/domains/{made['/domains']}").json()
    assert (domain["price_renew"], domain["status"], domain["expires_at"][:10]) == (
        "10.00",
        "active",
        "2030-04-15",
    )
    for path in ("/ssh-keys", "/webhooks"):
        assert [row["id"] for row in account.api("GET", path).json()["data"]] == [made[path]]
    assert (account.balance(), account.ledger()) == ("1000.00", [])


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/tariffs", {"name": "x", "price_monthly": "1.00", "location_id": 9}, 404, "no location 9"),
        ("/servers", {"tariff_id": 99}, 404, "no tariff 99"),
        ("/servers", {"id": 20001, "ips": [{"addr": "192.0.2.1"}]}, 400, "known: id, address"),
        ("/servers", {"ips": [{"address": "192.0.2"}]}, 400, "must be an IPv4 or IPv6 address"),
        ("/servers", {"next_due_at": None}, 400, "next_due_at: must be an RFC 3339 timestamp"),
        ("/domains", {"name": "shop.example"}, 400, "Next: add the zone"),
        ("/webhooks", {"url": "http://10.0.0.1/"}, 400, "public https"),
        ("/ssh-keys", {"name": "x", "public_key": "no key"}, 400, "public_key"),
        ("/locations", {"id": 1, "code": "x", "name": "x", "country": "x", "city": "x"}, 409, "already"),
        ("/reset", {"balance": "5.00"}, 400, "unknown field: balance; known: none"),
        ("/restore", {"name": "other"}, 404, "no snapshot 'other'"),
        ("/events", {"type": "domain.renewed"}, 404, "no such object among its domains"),
        ("/events", {"type": "server.lost"}, 400, "type"),
    ],
)
def test_what_cannot_be_made(
    path: str, body: dict[str, Any], status: int, words: str, account: Account
) -> None:
    before = account.control("GET", "/objects")
    assert words in account.control("POST", path, body, status)["error"]
    assert account.control("GET", "/objects") == before


def test_a_zone_with_domains_stays(account: Account) -> None:
    account.domain("shop.com")
    account.control("DELETE", "/zones/1", status=409)
    account.control("DELETE", "/zones/2")
    assert code(account.api("POST", "/domains", {"name": "shop.net"})) == "validation_error"


def test_a_snapshot_is_restored_as_often_as_wanted(account: Account) -> None:
    account.server(name="kept")
    account.control("POST", "/snapshot")
    before = account.control("GET", "/objects"), account.ledger(), account.control("GET", "/requests")
    for _ in range(2):
        account.advance(40 * 86400)
        account.server(name="later")
        account.domain()
        account.control("POST", "/restore")
        assert (
            account.control("GET", "/objects"),
            account.ledger(),
            account.control("GET", "/requests"),
        ) == before
    assert account.control("GET", "/")["now"] == "2029-04-15T08:00:00Z"
    account.advance(31 * 86400)
    assert account.moved() == 10  # it renews: its tasks are there again


@pytest.mark.parametrize("change", ["/reset", "/restore"])
def test_notes_about_an_account_do_not_count_for_the_next_one_at_its_address(
    account: Account, change: str
) -> None:
    def scope(account: Account) -> str:
        with Client(account.live_key, account.base_url, transport=account.transport()) as client:
            return account_scope(client)

    account.control("POST", "/snapshot")
    first = scope(account)
    assert scope(account) == first
    account.control("POST", change)
    assert first not in (scope(account), scope(Account()))


def test_an_event_by_hand(account: Account) -> None:
    account.subscribe("server.suspended", "balance.low", "ping")
    account.server(name="first")
    server = account.server(name="second")
    account.order(account.test_key)
    for body in (
        {"type": "server.suspended", "previous": {"status": "active"}},
        {"type": "balance.low"},
        {"type": "ping"},
        {"type": "invoice.paid"},
    ):
        account.control("POST", "/events", body)
    account.advance(0)
    assert [attempt.headers["X-Webhook-Event"] for attempt in account.sent] == [
        "server.suspended",
        "balance.low",
        "ping",
    ]
    assert f'"object":{{"id":{server},' in account.sent[0].payload.decode()
    assert '"object":{"subscription_id":80001,"message":"pong"}' in account.sent[2].payload.decode()
    assert account.api("GET", f"/servers/{server}").json()["status"] == "active"


def test_requests_outside_the_api_are_logged(account: Account) -> None:
    assert account.http.get("/api/v2/servers", params={"password": "cAnary7word"}).status_code == 404
    account.http.get("/favicon.ico")
    [seen] = account.control("GET", "/requests")
    assert (seen["method"], seen["path"], seen["status"], seen["stray"]) == (
        "GET",
        "/api/v2/servers",
        404,
        True,
    )
    account.api("GET", "/me")
    assert [entry["stray"] for entry in account.control("GET", "/requests")] == [True, False]


def test_the_same_requests_get_the_same_bytes() -> None:
    def played() -> list[tuple[int, bytes, httpx.Headers]]:
        account = Account(clock=Clock(manual=True, start=START), seed=4, origin="")
        account.subscribe()
        account.order(name="web")
        account.register()
        answers = [
            account.api(method, path, body, headers={"Idempotency-Key": f"key-{method}-{path}-012345"})
            for method, path, body in (
                ("GET", "/me", None),
                ("POST", "/servers", SERVER),
                ("POST", "/servers", {}),
                ("POST", "/webhooks/80001/test", None),
                ("GET", "/webhooks/80001/deliveries", None),
                ("GET", "/servers?limit=1", None),
                ("GET", "/nowhere", None),
            )
        ]
        return [(answer.status_code, answer.content, answer.headers) for answer in answers]

    first = played()
    assert first == played()
    assert all(headers["Date"] == "Sun, 15 Apr 2029 08:00:00 GMT" for *_, headers in first)


def test_no_object_takes_the_id_of_another(account: Account) -> None:
    account.control("POST", "/servers", {"id": 2_000_000_001, "name": "kept"})
    account.control("POST", "/servers", {"synthetic": True})
    made = account.control("POST", "/servers/2000000001/ips", {"id": 7, "address": "2001:DB8::7"})
    assert (made["address"], made["version"]) == ("2001:db8::7", 6)
    refused = account.control("POST", "/servers/2000000001/ips", {"id": 7}, status=409)
    assert refused["error"] == "id: there is a row 7 among the addresses already"
    assert {row["name"] for row in account.objects("servers")} == {"kept", "imported"}


def test_what_follows_from_the_id_and_the_due_date_of_a_server(account: Account) -> None:
    body = {"id": 2_000_000_001, "next_due_at": "2029-01-01T00:00:00Z"}
    flags = account.control("POST", "/servers", body)["flags"]
    assert (flags["synthetic"], flags["expired"]) == (True, True)
    body |= {"id": 2_000_000_002, "synthetic": False, "expired": False}
    flags = account.control("POST", "/servers", body)["flags"]
    assert (flags["synthetic"], flags["expired"]) == (False, False)


def test_a_snapshot_has_the_switches_of_staff_and_the_time_of_a_real_clock() -> None:
    seconds = [1000.0]
    options = {
        "dialect": "spec",
        "readings": {"key_memory": "key"},
        "routes": {"https://a.example": "http://[::1]"},
    }
    account = Account(clock=Clock(source=lambda: seconds[0]), ip_delay=5, **options)
    account.control("PATCH", "/service", {"dialect": "live", "readings": {"key_memory": "account"}})
    account.control("PUT", "/webhook-routes", {})
    account.control("POST", "/snapshot")
    seconds[0] += 60
    assert account.control("POST", "/restore")["now"] == "1970-01-01T00:16:40Z"
    service, store = account.control("PATCH", "/service", {}), account.core.store
    assert (service["dialect"], service["readings"]["key_memory"]) == ("live", "account")
    assert (store.service.routes, store.ip_delay) == ({}, 5)


def test_the_ready_line_has_the_first_keys_whatever_others_are_called(account: Account) -> None:
    account.new_key("live", name="live")
    account.core.announce("http://emulator/v1", "http://emulator/_control", 1)
    assert account.core.ready_line["live_key"] == account.live_key
