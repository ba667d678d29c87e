"""Events passed on: each is taken at least once, in the order of arrival, by a broker or an event stream."""

import asyncio
import hashlib
import hmac
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.cli import main
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.webhooks.receiver import ReceivedEvent
from pulumi_hosting.webhooks.relay import EventRefused, Form, Relay
from pulumi_hosting.webhooks.signature import parse
from tests.support.waiting import wait_until
from tests.webhooks.support import (
    LIMIT_SECONDS,
    SECRET,
    Downstream,
    Events,
    Receivers,
    body,
    no_pause,
    signed,
    until,
)

TO = "https://eda.example.org/streams/7"
KEY = "relay-secret-Walrus99"
Answer = Callable[[httpx.Request], httpx.Response]


def received(id: str = "evt_1") -> ReceivedEvent:
    raw = body(id)
    return ReceivedEvent(parse(raw), json.loads(raw), {}, datetime(2026, 1, 2, tzinfo=UTC), "delivery")


async def passed_on(answer: Answer, form: Form = Form.CLOUDEVENTS, secret: str = "") -> None:
    async with Relay(TO, form, Secret(secret), httpx.MockTransport(answer), no_pause) as relay:
        await relay(received())


def test_a_cloud_event_has_the_id_the_time_and_the_data_of_the_event() -> None:
    got: list[httpx.Request] = []
    asyncio.run(passed_on(lambda request: got.append(request) or httpx.Response(202)))  # type: ignore[func-returns-value]  # append returns None
    (request,) = got
    assert (request.method, str(request.url)) == ("POST", TO)
    assert request.headers["content-type"] == "application/cloudevents+json"
    assert "x-hub-signature-256" not in request.headers
    assert json.loads(request.content) == {
        **{"specversion": "1.0", "id": "evt_1", "source": "urn:hosting-client-api:v1"},
        **{"type": "server.created", "time": "2026-01-02T03:04:05Z", "datacontenttype": "application/json"},
        "data": {"object": {"id": 11}, "previous": None},
    }


@pytest.mark.parametrize("form", list(Form))
def test_the_body_alone_is_signed(form: Form) -> None:
    def verified(request: httpx.Request) -> httpx.Response:
        expected = hmac.new(KEY.encode(), request.content, hashlib.sha256).hexdigest()
        return httpx.Response(204 if request.headers["X-Hub-Signature-256"] == f"sha256={expected}" else 401)

    asyncio.run(asyncio.wait_for(passed_on(verified, form, KEY), LIMIT_SECONDS))


def test_an_event_stream_gets_the_event_as_it_was_delivered() -> None:
    def as_delivered(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200 if json.loads(request.content) == json.loads(body("evt_1")) else 400)

    asyncio.run(passed_on(as_delivered, Form.EDA, KEY))


def test_what_may_pass_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    def fails(request: httpx.Request) -> httpx.Response:
        tries.append(request)
        if len(tries) == 1:
            raise httpx.ConnectError("refused", request=request)
        return httpx.Response([0, 0, 429, 503, 401, 307, 200][len(tries)], headers={"Location": "/elsewhere"})

    tries: list[httpx.Request] = []
    asyncio.run(passed_on(fails, Form.EDA, KEY))
    assert len(tries) == 6
    assert "cannot relay event evt_1: ConnectError from eda.example.org; trying again in 1 s" in caplog.text
    assert "cannot relay event evt_1: eda.example.org answered HTTP 429" in caplog.text
    assert KEY not in caplog.text


def test_what_never_will_be_taken_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(EventRefused, match="HTTP 422"):
        asyncio.run(passed_on(lambda _: httpx.Response(422)))
    assert "event evt_1 was refused: HTTP 422" in caplog.text


@pytest.mark.parametrize(
    "url", ["", "eda.example.org", "ftp://example.org", "https://me:pass@example.org", "http://"]
)
def test_other_urls_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigurationError, match="--to must be an http or https URL") as refused:
        Relay(url, Form.CLOUDEVENTS, Secret(""))
    assert "pass@" not in str(refused.value)


@dataclass
class Relayed(Events):
    """A handler that passes on. ``got``: the ids that the other side was sent; it refuses evt_1 once."""

    got: list[str] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.got.append(json.loads(request.content)["id"])
        return httpx.Response(400 if self.got == ["evt_0", "evt_1"] else 200)

    async def handle(self, received: ReceivedEvent) -> None:
        transport = httpx.MockTransport(self.answer)
        async with Relay(TO, Form.CLOUDEVENTS, Secret(""), transport, no_pause) as relay:
            await relay(received)


def test_events_go_on_in_order_and_what_was_refused_at_the_next_start(receivers: Receivers) -> None:
    ids = [f"evt_{number}" for number in range(5)]
    relayed = Relayed()

    async def deliver() -> None:
        async with receivers.run(relayed) as running:
            for id in ids:
                assert await running.deliver(body(id)) == 200
            await until(lambda: len(relayed.got) == 5)
        async with receivers.run(relayed):
            await until(lambda: len(relayed.got) == 6)

    asyncio.run(deliver())
    assert relayed.got == [*ids, "evt_1"]


@pytest.fixture
def downstream() -> Iterator[Downstream]:
    with Downstream() as started:
        yield started


@contextmanager
def relaying(to: str, state_file: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    environ = {**os.environ, "HOSTING_WEBHOOK_SECRET": SECRET, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "pulumi_hosting.cli", "webhook", "relay", "--port", "0", "--to", to]
    command += ["--state-file", str(state_file)]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("listening on http://127.0.0.1:"), line + process.stderr.read()
            yield process, line.removeprefix("listening on ").strip()
        finally:
            process.kill()


@pytest.mark.slow
def test_two_relays_behind_a_proxy_lose_nothing_when_they_are_killed(
    tmp_path: Path, downstream: Downstream
) -> None:
    """As the service does, each event is delivered again until it was answered with 200, to either relay. One
    of them is killed in the middle, twice, and started again."""
    ids = [f"evt_{number}" for number in range(120)]
    files = [tmp_path / "one.sqlite", tmp_path / "two.sqlite"]
    with relaying(downstream.url, files[0]) as (_, one):
        for beginning in (0, 40, 80):
            with relaying(downstream.url, files[1]) as (process, two), httpx.Client() as http:
                for number, id in enumerate(ids[beginning : beginning + 40]):
                    if number == 25 and beginning < 80:
                        process.kill()
                    raw = body(id)
                    for url in (one, two) * 2 if number % 2 else (two, one) * 2:
                        try:
                            if http.post(url, content=raw, headers=signed(raw)).status_code == 200:
                                break
                        except httpx.HTTPError:
                            continue
                if beginning == 80:
                    wait_until(lambda: set(downstream.ids) == set(ids))
    assert set(downstream.ids) == set(ids)


@pytest.mark.parametrize(
    ("options", "environ", "line"),
    [
        (["--to", TO], {}, "error: no webhook secret. Next: set HOSTING_WEBHOOK_SECRET to"),
        (
            ["--to", TO, "--form", "eda"],
            {"HOSTING_WEBHOOK_SECRET": SECRET},
            "error: the form eda needs a secret",
        ),
        (["--to", "nowhere"], {"HOSTING_WEBHOOK_SECRET": SECRET}, "error: --to must be an http or https URL"),
    ],
)
def test_settings_that_cannot_be_used_end_it_with_one_line(
    options: list[str], environ: dict[str, str], line: str, tmp_path: Path
) -> None:
    given = ["webhook", "relay", "--port", "0", "--state-file", str(tmp_path / "events.sqlite"), *options]
    answer = CliRunner().invoke(main, given, env={"HOSTING_RELAY_SECRET": None, **environ})
    assert answer.exit_code == 2
    assert answer.stderr.splitlines()[-1].startswith(line)
