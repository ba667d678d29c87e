"""The console in a browser: what it shows is what the account holds, and what one does on it happens."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from pulumi_hosting.api.models.webhooks import DELIVERY_HEADERS
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from tests.emulator.support import OVER_HTTP, PUBLIC_KEY, SERVER
from tests.emulator.test_console import KINDS
from tests.support.browser import Chromium, Page

pytestmark = [pytest.mark.slow, pytest.mark.emulator(clock="manual", seed=12)]

ORIGIN = "https://hooks.example.org"
PASSWORD = "Canary-0123"
WINDOWS = [(390, False), (390, True), (1280, False), (1280, True)]


@pytest.fixture
def control(emulator: Running) -> Control:
    return Control(emulator.control_url)


@pytest.fixture
def api(emulator: Running) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {emulator.live_key}"}
    with httpx.Client(base_url=emulator.base_url, headers=headers, **OVER_HTTP) as client:
        yield client


def ordered(api: httpx.Client, name: str) -> dict[str, Any]:
    """A server, bought."""
    body = {**SERVER, "name": name, "password": PASSWORD}
    answer = api.post("/servers", json=body, headers={"Idempotency-Key": f"console-{name:0>16}"})
    assert answer.status_code == 201, answer.text
    server: dict[str, Any] = answer.json()["server"]
    return server


@pytest.fixture
def secrets(emulator: Running, control: Control, api: httpx.Client) -> list[str]:
    """An account with one of everything; what must not be seen of it."""
    hook = api.post("/webhooks", json={"url": f"{ORIGIN}/in", "events": ["*"]}).json()
    web = ordered(api, "web")
    api.post(f"/servers/{web['id']}/ips", headers={"Idempotency-Key": "console-address-1"})
    api.post("/ssh-keys", json={"name": "laptop", "public_key": PUBLIC_KEY})
    key = {"Idempotency-Key": "console-domain-01"}
    api.post("/domains", json={"name": "shop-example.com"}, headers=key)
    reset = api.post(f"/servers/{web['id']}/actions/reset-password").json()["password"]
    assert {kind: len(rows) for kind, rows in control("GET", "/objects").items() if kind in HELD} == HELD
    return [emulator.live_key, emulator.test_key, hook["secret"], PASSWORD, reset]


HELD = {"servers": 1, "addresses": 3, "domains": 1, "ssh_keys": 1, "subscriptions": 1}


def opened(chromium: Chromium, emulator: Running, **window: Any) -> Page:
    page = chromium.open(emulator.console_url, **window)
    page.wait_for("document.querySelector('#connection').textContent === '● live'")
    return page


def press(page: Page, place: str, text: str) -> None:
    """Click the first button below ``place`` that begins with this text."""
    found = (
        f"[...document.querySelectorAll('{place} button')].find(one => one.textContent.startsWith('{text}'))"
    )
    page.wait_for(found)
    page.click_on(found)


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_it_fits_the_window_and_shows_no_secret(
    width: int, dark: bool, chromium: Chromium, emulator: Running, secrets: list[str]
) -> None:
    page = opened(chromium, emulator, width=width, dark=dark)
    kinds = page.evaluate("[...document.querySelectorAll('#kinds button')].map(tab => tab.dataset.kind)")
    assert set(HELD) <= set(kinds)
    for kind in kinds:
        page.click(f"#kinds [data-kind={kind}]")
        more = "button[aria-expanded=false]"
        while page.evaluate(f"Boolean(document.querySelector('{more}'))"):
            page.click(more)
        assert page.overflowing() == [], kind
        assert [secret for secret in secrets if secret in page.html()] == [], kind
    assert page.problems == []


def test_it_shows_what_the_account_holds_and_updates_itself(
    chromium: Chromium, emulator: Running, api: httpx.Client, control: Control, secrets: list[str]
) -> None:
    page = opened(chromium, emulator)
    balance = control("GET", "/objects")["accounts"][0]["balance"]
    assert page.text("#balance") == f"{balance} EUR"
    assert "web" in page.text("#object-table")
    for kind, text in (("domains", "shop-example.com"), ("ssh_keys", "laptop"), ("subscriptions", ORIGIN)):
        page.click(f"#kinds [data-kind={kind}]")
        assert text in page.text("#object-table")
    for row in control("GET", "/ledger"):
        assert row["amount"] in page.text("#ledger")
    assert "/ssh-keys" in page.text("#request-table")
    assert "domain.registered" in page.text("#delivery-table")

    page.click("#kinds [data-kind=servers]")
    ordered(api, "second")
    page.wait_for("document.querySelector('#object-table').innerText.includes('second')")
    page.wait_for("document.querySelectorAll('#ledger tbody tr').length === 4")
    assert page.text("#count-servers") == "2"
    assert page.text("#balance") == f"{control('GET', '/objects')['accounts'][0]['balance']} EUR"
    assert page.problems == []


def test_the_clock_moves(chromium: Chromium, emulator: Running, control: Control, secrets: list[str]) -> None:
    page = opened(chromium, emulator)
    before = page.text("#now")
    page.click("[data-advance='86400']")
    page.wait_for(f"document.querySelector('#now').textContent !== {before!r}")
    assert control("GET", "/")["now"].replace("T", " ").replace("Z", " UTC") == page.text("#now")
    page.fill("#advance [name=amount]", "40")
    page.click("#advance button:not([type])")
    page.wait_for("document.querySelector('#ledger').innerText.includes('billing')")
    renewed = control("GET", "/ledger")[-1]
    (server,) = control("GET", "/objects")["servers"]
    assert (renewed["operation"], renewed["object_id"]) == ("billing", server["id"])
    assert page.problems == []
    page.fill("#advance [name=amount]", "999999")
    page.click("#advance button:not([type])")
    page.wait_for("document.querySelector('#clock-message').className === 'message failed'")
    assert "advance" in page.text("#clock-message")


def test_what_falls_due_next_is_listed_and_gone_to(
    chromium: Chromium, emulator: Running, control: Control, secrets: list[str]
) -> None:
    page = opened(chromium, emulator)
    shown = page.evaluate(
        "[...document.querySelectorAll('#due-table tbody td:nth-child(3)')].map(cell => cell.innerText)"
    )
    assert shown == [entry["what"].replace("_", " ") for entry in control("GET", "/due")]
    page.fill("#clock input[type=search]", "SERVER web due")
    page.wait_for("document.querySelectorAll('#due-table tbody tr').length === 2")
    (due,) = [entry for entry in control("GET", "/due") if entry["what"] == "server_due"]
    page.fill("#clock input[type=search]", due["at"])
    page.wait_for("document.querySelectorAll('#due-table tbody tr').length === 1")
    press(page, "#due-table", "go there")
    page.wait_for("document.querySelector('#ledger').innerText.includes('billing')")
    assert control("GET", "/")["now"] == due["at"]
    assert (control("GET", "/ledger")[-1]["operation"], page.problems) == ("billing", [])


def test_an_object_is_changed_behind_the_tools_back(
    chromium: Chromium, emulator: Running, api: httpx.Client, control: Control, secrets: list[str]
) -> None:
    page = opened(chromium, emulator)
    (server,) = control("GET", "/objects")["servers"]
    press(page, "#object-table", "more")
    press(page, "#object-table", "change")
    page.fill("#change [name=name]", "renamed")
    page.fill("#change [name=auto_renew]", "false")
    page.fill("#change [name=power]", "flying")
    page.click("#change button:not([type])")
    page.wait_for("document.querySelector('#change-message').className === 'message failed'")
    assert "power" in page.text("#change-message")
    page.fill("#change [name=power]", "stopped")
    page.click("#change button:not([type])")
    page.wait_for("!document.querySelector('#change').open")
    (changed,) = control("GET", "/objects")["servers"]
    differing = {name for name in server if server[name] != changed[name]} & set(KINDS["servers"]["edit"])
    assert differing == {"name", "auto_renew", "power"}
    assert (changed["name"], changed["auto_renew"], changed["power"]) == ("renamed", False, "stopped")
    press(page, "#object-table", "suspend")
    page.wait_for("document.querySelector('#object-table .bad')")
    assert control("GET", "/objects")["servers"][0]["status"] == "suspended"

    press(page, "#object-table", "fault")
    page.click("#arm button:not([type])")
    page.wait_for("document.querySelector('#count-faults').textContent === '1'")
    path = f"/servers/{server['id']}"
    assert (api.get("/servers").status_code, api.get(path).status_code, api.get(path).status_code) == (
        200,
        503,
        200,
    )

    press(page, "#object-table", "go to server due soon")
    press(page, "#object-table", "go to server due: ")
    page.click("#kinds [data-kind=invoices]")
    page.wait_for("document.querySelector('#object-table').innerText.includes('not_paid')")
    (unpaid,) = [row for row in control("GET", "/objects")["invoices"] if row["status"] == "not_paid"]
    press(page, "#object-table", "more")
    press(page, "#object-table", "refund")
    page.wait_for("document.querySelector('#object-message').className === 'message failed'")
    assert f"invoice {unpaid['id']} is not_paid" in page.text("#object-message")
    press(page, "#object-table", "confirm")
    page.wait_for("document.querySelector('#object-message').className === 'message'")
    paid = [row["status"] for row in control("GET", "/objects")["invoices"] if row["id"] == unpaid["id"]]
    assert paid == ["paid"]

    page.click("#kinds [data-kind=servers]")
    press(page, "#object-table", "delete")
    page.wait_for("document.querySelector('#count-servers').textContent === '0'")
    assert (control("GET", "/objects")["servers"], api.get(path).status_code) == ([], 404)
    assert (
        [problem.rpartition("/_control/")[2] for problem in page.problems]
        == [  # the two refusals
            path[1:],
            f"invoices/{unpaid['id']}/refund",
        ]
    )


def test_a_delivery_shows_what_was_sent(
    chromium: Chromium, emulator: Running, control: Control, secrets: list[str]
) -> None:
    control("POST", "/clock", {"advance": 1})
    page = opened(chromium, emulator)
    page.fill("#deliveries input[type=search]", "domain.registered")
    page.wait_for("document.querySelectorAll('#delivery-table tbody tr').length === 1")
    press(page, "#delivery-table", "more")
    (sent,) = [
        row for row in control("GET", "/objects")["deliveries"] if row["event_type"] == "domain.registered"
    ]
    text = page.text("#delivery-table pre")
    head, body = text.split("\n\n", 1)
    assert dict(line.split(": ", 1) for line in head.splitlines()) == sent["headers"]
    assert set(DELIVERY_HEADERS) <= set(sent["headers"])
    assert json.loads(body) == json.loads(sent["payload"])
    assert page.problems == []


def test_faults_are_armed_and_removed(
    chromium: Chromium, emulator: Running, api: httpx.Client, control: Control
) -> None:
    page = opened(chromium, emulator)
    page.fill("#arm [name=path]", "^/me$")
    page.fill("#arm [name=times]", "2")
    page.click("#arm button:not([type])")
    page.wait_for("document.querySelector('#count-faults').textContent === '1'")
    (fault,) = control("GET", "/faults")
    assert (fault["path"], fault["times"], fault["action"]["status"]) == ("^/me$", 2, 503)
    assert api.get("/me").status_code == 503
    page.wait_for("document.querySelector('#request-table .bad')")
    page.click("#fault-table tbody button:last-child")
    page.wait_for("document.querySelector('#count-faults').textContent === '0'")
    assert control("GET", "/faults") == []
    assert api.get("/me").status_code == 200

    page.fill("#arm [name=action]", "{")
    page.click("#arm button:not([type])")
    page.wait_for("document.querySelector('#faults-message').className === 'message failed'")
    assert "Action is not JSON" in page.text("#faults-message")
    assert page.problems == []


def test_reset_asks_first(
    chromium: Chromium, emulator: Running, control: Control, secrets: list[str]
) -> None:
    page = opened(chromium, emulator)
    page.click("#ask-reset")
    page.click("#cancel-reset")
    assert len(control("GET", "/objects")["servers"]) == 1
    page.click("#ask-reset")
    page.click("#do-reset")
    page.wait_for("document.querySelector('#count-servers').textContent === '0'")
    assert page.text("#balance") == "1000.00 EUR"
    assert "none" in page.text("#ledger")
    assert "none" in page.text("#request-table")
    held = control("GET", "/objects")
    assert {kind: held[kind] for kind in HELD} == {kind: [] for kind in HELD}
    assert control("GET", "/ledger") == []
    assert page.problems == []
