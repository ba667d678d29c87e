"""Every answer has a Date by the emulator's clock: over HTTP, in process, in the control interface."""

from email.utils import formatdate, parsedate_to_datetime

import httpx
import pytest

from pulumi_hosting.emulator import running
from tests.emulator.support import OVER_HTTP
from tests.support.account import START, Account


def sent_at(response: httpx.Response) -> float:
    text = response.headers.get_list("Date")
    assert len(text) == 1
    assert text == [formatdate(parsedate_to_datetime(text[0]).timestamp(), usegmt=True)]
    return parsedate_to_datetime(text[0]).timestamp()


def test_every_answer_has_the_time_of_the_clock(any_dialect: Account) -> None:
    any_dialect.advance(3 * 86400 + 0.7)
    answers = [
        any_dialect.api("GET", "/balance"),
        any_dialect.api("GET", "/servers/1"),
        any_dialect.api("DELETE", "/me"),
        any_dialect.call(None, "GET", "/me"),
        any_dialect.api("POST", "/ssh-keys", {"name": ""}),
        any_dialect.http.get("/v1/health"),
        any_dialect.http.get("/v1/openapi.json"),
        any_dialect.http.get("/_control/"),
        any_dialect.http.get("/_control/objects"),
        any_dialect.http.get("/_control/nothing"),
    ]
    assert {sent_at(answer) for answer in answers} == {START + 3 * 86400}


def test_the_date_of_replayed_and_delayed_answers(account: Account) -> None:
    key = "a-key-that-is-replayed"
    first = account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}, key=key)
    account.advance(60)
    again = account.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}, key=key)
    assert (sent_at(first), sent_at(again)) == (START, START + 60)
    account.fault({"delay": 30})
    account.while_waiting = lambda: account.clock.advance(30)
    assert sent_at(account.api("GET", "/me")) == START + 90


@pytest.mark.usefixtures("warm")
def test_the_date_over_http_is_the_time_of_the_clock() -> None:
    with (
        running(clock="manual") as emulator,
        httpx.Client(**OVER_HTTP, headers={"Authorization": f"Bearer {emulator.live_key}"}) as http,
    ):
        before = sent_at(http.get(f"{emulator.control_url}/"))
        http.post(f"{emulator.control_url}/clock", json={"advance": 40 * 86400}).raise_for_status()
        origin = emulator.base_url.removesuffix("/v1")
        paths = ("/v1/me", "/v1/nothing", "/_control/", "/_control/odd", "/elsewhere")
        assert {sent_at(http.get(origin + path)) for path in paths} == {before + 40 * 86400}


def test_a_fault_changes_headers(any_dialect: Account) -> None:
    """A fault removes or changes ``Date``."""
    any_dialect.fault({"headers": {"date": None, "Cache-Control": None, "X-Odd": "1"}})
    answer = any_dialect.api("GET", "/me")
    assert not {"date", "cache-control"} & {name.lower() for name in answer.headers}
    assert (answer.headers["X-Odd"], answer.json()["livemode"]) == ("1", True)
    any_dialect.fault({"headers": {"Date": "Thu, 01 Jan 1970 00:00:00 GMT"}})
    assert sent_at(any_dialect.api("GET", "/me")) == 0
    assert sent_at(any_dialect.api("GET", "/me")) == START
    for wrong in ({"X Y": "1"}, {"X": 1}, {"X": "a\r\nb"}, {"X": "é"}, ["X"]):
        any_dialect.control("POST", "/faults", {"action": {"headers": wrong}}, status=400)
