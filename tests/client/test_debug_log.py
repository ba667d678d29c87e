"""``HOSTING_LOG=debug``: what is printed for each attempt, and that no secret is."""

import io
import logging
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from pulumi_hosting.client import debug_log
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError, HostingError
from tests.client.support import KEY, answer, refusal, scripted
from tests.client.test_secrets import ACTS, SERVICES, leaks

pytestmark = pytest.mark.usefixtures("both")

ORDER = {"server": {"id": 1, "name": "a", "status": "active"}, "charged": "1.00", "root_password": "x7Secret"}


@pytest.fixture(autouse=True)
def _off_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOSTING_LOG", "debug")
    yield
    debug_log.follow_environment({})


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines without their time and process."""
    lines = capsys.readouterr().err.splitlines()
    found = [
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z pulumi-hosting\[\d+\] (.*)", line)
        for line in lines
    ]
    return [line[1] for line in found if line is not None]


def test_a_line_for_each_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    client, _ = scripted(
        httpx.ReadError("gone"),
        refusal(503, "temporarily_unavailable", "later", X_Request_ID="r2"),
        answer(201, ORDER, X_Request_ID="r3"),
        new_id=lambda: "id-of-16-letters",
    )
    client.servers.create(tariff_id=1, os="debian-12", idempotency_key="by-hand-0123456789")
    key = "key by-hand-0123456789"
    first, second, again, third = printed(capsys)
    assert first.startswith("POST /servers: TransportError, again in 0.")
    assert first.endswith(f" s (0.000 s, attempt 1, request id-of-16-letters, {key})")
    assert second == f"POST /servers: 503 (0.000 s, attempt 2, request r2, {key})"
    assert again.startswith("POST /servers: Unavailable, again in ")
    assert third == f"POST /servers: 201 (0.000 s, attempt 3, request r3, {key})"


def test_a_read_has_no_key_and_shows_no_query(capsys: pytest.CaptureFixture[str]) -> None:
    client, _ = scripted(answer(200, {"data": [], "next_cursor": None}, X_Request_ID="r1"))
    list(client.servers.list(status="active"))
    assert printed(capsys) == ["GET /servers: 200 (0.000 s, attempt 1, request r1)"]


def test_without_the_variable_nothing_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(answer(200))
    level = logging.getLogger("pulumi_hosting").level
    monkeypatch.delenv("HOSTING_LOG")
    client, _ = scripted(answer(200, {"status": "ok", "time": "2026-01-01T00:00:00Z"}))
    client.health()
    assert capsys.readouterr().err == ""
    assert level == logging.DEBUG
    assert logging.getLogger("pulumi_hosting").level == logging.NOTSET


def test_another_value_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_LOG", KEY)
    with pytest.raises(ConfigurationError, match="Next: set it to debug, or unset it") as caught:
        Client(KEY, "https://api.example.com/v1")
    assert leaks(str(caught.value)) == []


def test_many_clients_print_each_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        client, _ = scripted(answer(200, {"status": "ok", "time": "2026-01-01T00:00:00Z"}))
    client.health()
    assert len(printed(capsys)) == 1


def test_lines_go_where_they_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    debug_log.show_with(shown.append)
    try:
        client, _ = scripted(answer(200, {"status": "ok", "time": "2026-01-01T00:00:00Z"}))
        client.health()
    finally:
        debug_log.show_with(debug_log.to_standard_error)
    assert [line.partition("] ")[2].partition(" (")[0] for line in shown] == ["GET /health: 200"]
    assert capsys.readouterr().err == ""


def test_a_closed_standard_error_stops_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    client, script = scripted(answer(200, {"status": "ok", "time": "2026-01-01T00:00:00Z"}))
    client.health()
    assert len(script.requests) == 1


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_no_line_holds_a_secret(
    service: Callable[[httpx.Request], httpx.Response], capsys: pytest.CaptureFixture[str]
) -> None:
    for act in ACTS.values():
        client, _ = scripted(service)
        with pytest.raises(HostingError):
            act(client)
    text = capsys.readouterr().err
    assert "POST /servers: " in text
    assert leaks(text) == []


@pytest.mark.parametrize("secret", [KEY, "vk_test_other0123456789", "whsec_0123456789abcdef"])
def test_what_looks_like_a_secret_is_masked_in_every_line(
    secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client, _ = scripted(answer(200, {"status": "ok", "time": "2026-01-01T00:00:00Z"}))
    facts: Any = {"of": secret}
    logging.getLogger("pulumi_hosting.webhooks").warning("a line of another part: %s", facts)
    client.health()
    assert printed(capsys)[0] == "a line of another part: {'of': '**********'}"
