"""Web pages from elsewhere can neither use nor read the control interface; programs can."""

import asyncio

import httpx
import pytest

from pulumi_hosting.emulator.asgi import Application
from pulumi_hosting.emulator.browser_requests import allowed_name, host_name, refusal
from tests.support.account import Account

OWN = "127.0.0.1:8080"


@pytest.mark.parametrize(
    ("headers", "given"),
    [
        ({}, None),
        ({"host": OWN}, None),
        ({"host": OWN, "content-type": "text/plain"}, None),
        ({"host": OWN, "origin": f"http://{OWN}", "sec-fetch-site": "same-origin"}, None),
        ({"host": OWN, "origin": f"https://{OWN}"}, None),  # behind a proxy that speaks https
        ({"host": "LOCALHOST:1", "origin": "http://localhost:1"}, None),
        ({"host": OWN, "sec-fetch-site": "none"}, None),  # typed by the user
        ({"host": OWN, "origin": "https://evil.example"}, "Origin https://evil.example"),
        ({"host": OWN, "origin": "null"}, "Origin null"),
        ({"host": OWN, "origin": ""}, "Origin "),
        ({"host": OWN, "origin": "http://127.0.0.1:8081"}, "Origin http://127.0.0.1:8081"),
        ({"host": OWN, "origin": f"http://{OWN}.evil.example"}, f"Origin http://{OWN}.evil.example"),
        ({"host": OWN, "origin": "http://localhost:8080"}, "Origin http://localhost:8080"),
        ({"origin": "https://evil.example"}, "Origin https://evil.example"),
        ({"host": OWN, "sec-fetch-site": "cross-site"}, "Sec-Fetch-Site cross-site"),
        ({"host": OWN, "sec-fetch-site": "same-site"}, "Sec-Fetch-Site same-site"),
        ({"host": "evil.example", "origin": "http://evil.example"}, "evil.example"),
    ],
)
def test_what_a_page_from_elsewhere_sends_is_refused(headers: dict[str, str], given: str | None) -> None:
    reason = refusal(headers, ())
    assert (reason is None) is (given is None)
    if reason is not None:
        assert f", given {given}. Next: " in reason


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.2:80",
        "localhost:8080",
        "LOCALHOST.",
        "[::1]:8080",
        "[::1]",
        "Emulator:80",
        "[::2]",
    ],
)
def test_names_of_this_machine_and_allowed_names_are_answered(host: str) -> None:
    assert refusal({"host": host}, {allowed_name("emulator"), allowed_name("[0::2]")}) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "emulator.evil.example:80",
        "evil.example@127.0.0.1",
        "10.0.0.1:80",
        "[::3]",
        ":80",
        "[",
    ],
)
def test_other_names_are_refused(host: str) -> None:
    reason = refusal({"host": host}, {"emulator"})
    assert reason is not None
    assert reason.endswith(
        f"given {host}. Next: use http://127.0.0.1:PORT, or start the emulator with "
        f"--allow-host {host_name(host)}"
    )


@pytest.mark.parametrize("value", ["http://emulator", "", "two words", "*", "a/b"])
def test_what_is_no_host_name_cannot_be_allowed(value: str) -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        allowed_name(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Origin", "https://evil.example"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ],
)
@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/reset", "{}"),
        ("POST", "/clock", '{"advance": 31536000}'),
        ("PATCH", "/account", '{"balance": "0.00"}'),
        ("POST", "/keys", '{"mode": "live"}'),
        ("GET", "/", ""),
        ("GET", "/requests", ""),
        ("GET", "/nothing", ""),
    ],
)
def test_a_page_from_elsewhere_changes_and_reads_nothing(
    name: str, value: str, kind: str, method: str, path: str, body: str, account: Account
) -> None:
    server = account.server()
    objects, now = account.control("GET", "/objects"), account.clock.now()
    headers = {"Content-Type": kind, name: value}
    refused = account.http.request(method, f"/_control{path}", content=body, headers=headers)
    assert refused.status_code == 403
    assert refused.json() == {
        "error": f"requests of other web pages are refused, given {name} {value}. Next: use the emulator's "
        "own page, /_console, or a program that sends no such header"
    }
    assert "vk_" not in refused.text
    assert "Date" in refused.headers
    assert (account.control("GET", "/objects"), account.clock.now()) == (objects, now)
    assert [row["id"] for row in account.living] == [server]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_program_may_send_any_content_type(kind: str | None, account: Account) -> None:
    account.server()
    headers = {} if kind is None else {"Content-Type": kind}
    assert account.http.post("/_control/reset", content="{}", headers=headers).status_code == 200
    assert account.living == []


def served(account: Account, path: str, host: str, *names: str) -> httpx.Response:
    """The answer of the server, which got the names with ``--host`` and ``--allow-host``."""

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(Application(account.core, set(names)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.get(path, headers={"Host": host})

    return asyncio.run(get())


@pytest.mark.parametrize("path", ["/_control", "/_control/", "/_control/objects", "/_console", "/_console/"])
def test_the_server_answers_to_its_own_names(path: str, account: Account) -> None:
    assert served(account, path, OWN).status_code == 200
    assert served(account, path, "emulator:8080", "emulator").status_code == 200
    refused = served(account, path, "evil.example", "emulator")
    assert refused.status_code == 403
    text = refused.text if path.startswith("/_console") else refused.json()["error"]
    assert (
        "given evil.example. Next: use http://127.0.0.1:PORT, or start the emulator with --allow-host "
        in text
    )
    assert account.live_key not in refused.text


def test_a_link_from_another_page_opens_the_console(account: Account) -> None:
    """The page holds no data, and cannot be framed."""
    assert account.http.get("/_console", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_the_api_answers_to_every_name(account: Account) -> None:
    assert served(account, "/v1/health", "api.example").status_code == 200
