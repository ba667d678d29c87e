"""What the tests of the emulator share."""

import ssl
from typing import Any

import httpx

from pulumi_hosting.api.error_codes import CODES
from tests.support.account import Account
from tests.support.waiting import HANG_SECONDS

DAY = 86400
# For clients of an emulator process: by default httpx loads the certificates of the machine, which takes
# longer than a test, and gives up after 5 seconds.
OVER_HTTP: dict[str, Any] = {
    "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    "timeout": HANG_SECONDS,
}
SERVER = {"tariff_id": 1, "os": "debian-12"}
# Webhook URLs with a route.
GOOD, ODD = "https://hooks.example.org/good", "https://hooks.example.org/é?q=ö€"

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEm8X0vP7oV4F7x1O2gYb8m5yqgC7z4qI0g2w5m3nKpQ me@example"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEm8X0vP7oV4F7x1O2gYb8m5yqgC7z4qI0g2w5m3nKpA you@example"


def code(response: httpx.Response) -> str:
    """The error code of a refusal, its envelope checked."""
    error = response.json()["error"]
    assert error["request_id"] == response.headers["X-Request-ID"]
    assert error["message"]
    assert response.status_code == CODES[error["code"]].status
    name: str = error["code"]
    return name


def details(response: httpx.Response) -> Any:
    return response.json()["error"].get("details")


def subscribe(account: Account, url: str) -> int:
    account.control("PUT", "/webhook-routes", {"https://hooks.example.org": "http://127.0.0.1:9"})
    id: int = account.api(
        "POST", "/webhooks", {"url": url, "events": ["server.created", "invoice.paid"]}
    ).json()["id"]
    return id


def assert_deliveries_work(account: Account) -> None:
    """A new event is delivered."""
    account.core.send = account.receive
    hook = subscribe(account, "https://hooks.example.org/later")
    seen = len(account.sent)
    account.server()
    account.advance(0)
    assert [
        attempt.target
        for attempt in account.sent[seen:]
        if attempt.target and attempt.target.endswith("/later")
    ], hook


READS = (
    "/me",
    "/account",
    "/balance",
    "/transactions",
    "/invoices",
    "/servers",
    "/orders",
    "/ssh-keys",
    "/domains",
    "/keys",
    "/webhooks",
)


def assert_reads_work(account: Account) -> None:
    """Reads of everything on the account succeed."""
    key = account.new_key(rate_per_minute=1000)
    assert {
        path: status for path in READS if (status := account.call(key, "GET", path).status_code) != 200
    } == {}
    for path in ("/", "/objects", "/ledger", "/requests"):
        account.control("GET", path)


def one_of_each(account: Account) -> dict[str, list[dict[str, Any]]]:
    """What ``GET /objects`` answers once the account has something of every kind."""
    account.subscribe()
    server = account.server()
    account.api("POST", f"/servers/{server}/ips")
    account.domain()
    account.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY})
    account.fault({"panel_timeout": "active"})
    account.api("POST", "/servers", SERVER)
    account.core.store.email(account.objects("accounts")[0]["id"], "Your subscription is disabled")
    found: dict[str, list[dict[str, Any]]] = account.control("GET", "/objects")
    return found
