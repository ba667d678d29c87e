"""Every answer says when it was sent, by the emulator's own clock: over HTTP, in process, under ``/v1`` and beside it."""

from email.utils import formatdate, parsedate_to_datetime

import httpx

from pulumi_hosting.emulator import running
from tests.emulator.support import START, EmulatorHarness


def sent_at(response: httpx.Response) -> float:
    text = response.headers.get_list("Date")
    assert len(text) == 1
    assert text == [formatdate(parsedate_to_datetime(text[0]).timestamp(), usegmt=True)]
    return parsedate_to_datetime(text[0]).timestamp()


def test_every_answer_has_the_time_of_the_emulator(both: EmulatorHarness) -> None:
    both.advance(3 * 86400 + 0.7)
    answers = [
        both.api("GET", "/balance"),
        both.api("GET", "/servers/1"),
        both.api("DELETE", "/me"),
        both.call(None, "GET", "/me"),
        both.api("POST", "/ssh-keys", {"name": ""}),
        both.http.get("/v1/health"),
        both.http.get("/v1/openapi.json"),
        both.http.get("/_control/"),
        both.http.get("/_control/objects"),
        both.http.get("/_control/nothing"),
    ]
    assert {sent_at(answer) for answer in answers} == {START + 3 * 86400}


def test_the_date_of_a_replayed_a_late_and_a_cut_answer(lab: EmulatorHarness) -> None:
    key = "a-key-that-is-replayed"
    first = lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}, key=key)
    lab.advance(60)
    again = lab.api("POST", "/servers", {"tariff_id": 1, "os": "debian-12"}, key=key)
    assert (sent_at(first), sent_at(again)) == (START, START + 60)
    lab.fault({"delay": 30})
    lab.while_waiting = lambda: lab.clock.advance(30)
    assert sent_at(lab.api("GET", "/me")) == START + 90


def test_the_date_over_http_is_that_of_the_clock_and_not_of_the_machine() -> None:
    with running(clock="manual") as emulator, httpx.Client(headers={"Authorization": f"Bearer {emulator.live_key}"}) as http:
        before = sent_at(http.get(f"{emulator.control_url}/"))
        httpx.post(f"{emulator.control_url}/clock", json={"advance": 40 * 86400}).raise_for_status()
        origin = emulator.base_url.removesuffix("/v1")
        paths = ("/v1/me", "/v1/nothing", "/_control/", "/_control/odd", "/elsewhere")
        assert {sent_at(http.get(origin + path)) for path in paths} == {before + 40 * 86400}


def test_an_armed_answer_with_other_headers(both: EmulatorHarness) -> None:
    """A service whose answers have no ``Date``, or a wrong one, can be played."""
    both.fault({"headers": {"date": None, "Cache-Control": None, "X-Odd": "1"}})
    answer = both.api("GET", "/me")
    assert not {"date", "cache-control"} & {name.lower() for name in answer.headers}
    assert (answer.headers["X-Odd"], answer.json()["livemode"]) == ("1", True)
    both.fault({"headers": {"Date": "Thu, 01 Jan 1970 00:00:00 GMT"}})
    assert sent_at(both.api("GET", "/me")) == 0
    assert sent_at(both.api("GET", "/me")) == START
    for wrong in ({"X Y": "1"}, {"X": 1}, {"X": "a\r\nb"}, {"X": "é"}, ["X"]):
        both.control("POST", "/faults", {"action": {"headers": wrong}}, status=400)
