"""Options of single calls, closed clients, and what can be done with answers: compare, count, save."""

import json
from datetime import UTC, date, datetime
from typing import Any

import httpx
import pytest
from pydantic_core import PydanticSerializationError

from pulumi_hosting.api import models as m
from pulumi_hosting.api.secrets import MASK
from pulumi_hosting.client.exceptions import (
    ConfigurationError,
    InvalidInput,
    TransportError,
    ValidationFailed,
)
from tests.client.support import FakeTime, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")
SERVER = {"id": 1, "name": "web", "status": "active"}
CREATED = {"server": SERVER, "root_password": "Ab3-once", "charged": "5.00", "invoice_id": 7}


def test_options_hold_for_the_view_alone_and_the_rest_is_shared() -> None:
    client, script = scripted(answer(200, SERVER))
    assert client.servers.get(1).id == 1
    view = client.with_options(timeout=3, headers={"X-Team": "blue"}).with_options(headers={"X-Run": "9"})
    assert view.servers.get(1).id == client.servers.get(1).id == 1
    seen = [
        (request.extensions["timeout"]["read"], request.headers.get("X-Team"), request.headers.get("X-Run"))
        for request in script.requests
    ]
    assert seen == [(30, None, None), (3, "blue", "9"), (30, None, None)]
    assert view.transport is client.transport
    assert view.rate_limiter is client.rate_limiter


def test_the_deadline_of_a_view_ends_its_attempts() -> None:
    time = FakeTime()
    client, script = scripted(httpx.ConnectError("no"), time=time)
    with pytest.raises(TransportError):
        client.with_options(deadline=0.1).me()
    assert (len(script.requests), time.slept) == (1, [])


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"deadline": -1},
        {"timeout": "5"},
        {"headers": {"authorization": "Bearer x"}},
        {"headers": {"X-Request-ID": "mine"}},
        {"headers": {"X-A": "line\r\nX-B: 1"}},
        {"headers": {"X A": "1"}},
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any]) -> None:
    client, _ = scripted(answer(200, SERVER))
    with pytest.raises(ConfigurationError):
        client.with_options(**options)


def test_a_closed_client_raises_and_sends_nothing() -> None:
    client, script = scripted(answer(200, SERVER))
    view = client.with_options(timeout=1)
    with view:
        view.servers.get(1)
    for closed in (client, view):
        with pytest.raises(ConfigurationError, match=r"^this client is closed; nothing was sent"):
            closed.servers.get(1)
    assert len(script.requests) == 1


@pytest.mark.parametrize(("most", "pages"), [(1, 1), (2, 1), (3, 2), (9, 2)])
def test_a_list_ends_after_so_many_items_and_reads_no_page_more(most: int, pages: int) -> None:
    rows = [{**SERVER, "id": id} for id in (1, 2, 3, 4)]
    client, script = scripted(
        answer(200, {"data": rows[:2], "next_cursor": "c"}),
        answer(200, {"data": rows[2:], "next_cursor": None}),
    )
    found = [server.id for server in client.servers.list(limit=2, max_items=most)]
    assert found == [1, 2, 3, 4][:most]
    assert [request.url.params["limit"] for request in script.requests] == ["2"] * pages


@pytest.mark.parametrize("most", [0, -1, True, 1.0, "2"])
def test_max_items_is_a_whole_number_from_1(most: Any) -> None:
    client, _ = scripted(answer(200, SERVER))
    with pytest.raises(InvalidInput, match="max_items: must be a whole number from 1"):
        client.servers.list(max_items=most)


def test_objects_are_the_same_by_kind_and_id_and_equal_by_value() -> None:
    server = m.Server.model_validate(SERVER)
    detail = m.ServerDetail.model_validate({**SERVER, "status": "stopped"})
    assert server != detail
    assert server.is_same(detail)
    assert hash(server) == hash(detail)
    assert len({server, m.Server.model_validate(SERVER), detail}) == 2
    other = m.Domain.model_validate({"id": 1, "name": "example.com", "status": "active"})
    assert not server.is_same(other)
    assert not server.is_same(m.Server.model_validate({**SERVER, "id": 2}))
    assert not server.is_same(1)
    assert m.ServerFlags(blocked=True).is_same(m.ServerFlags(blocked=True))
    assert not m.ServerFlags(blocked=True).is_same(m.ServerFlags(blocked=False))


def test_saving_an_answer_never_loses_its_secret() -> None:
    client, _ = scripted(answer(201, CREATED))
    created = client.servers.create(tariff_id=1, os="debian-12", name="web")
    assert isinstance(created, m.ServerCreated)
    for save in (created.to_dict, created.model_dump_json, lambda: created.model_dump(mode="json")):
        with pytest.raises(PydanticSerializationError, match=r"holds a secret.*to_dict\(reveal=True\)"):
            save()
    with pytest.raises(TypeError):
        json.dumps(created.model_dump())
    text = json.dumps(created.to_dict(reveal=True))
    assert MASK not in text
    assert m.ServerCreated.model_validate_json(text) == created
    assert created.server.to_dict()["name"] == "web"


@pytest.mark.parametrize("since", [date(2026, 1, 2), datetime(2026, 1, 2)])  # noqa: DTZ001  # what is refused
def test_times_without_a_zone_are_refused_in_words(since: Any) -> None:
    client, _ = scripted(answer(200, {"data": []}))
    with pytest.raises(InvalidInput, match=r"since: give a datetime with a time zone.*2026-01-02"):
        client.balance.transactions(since=since)
    assert client.balance.transactions(since=datetime(2026, 1, 2, tzinfo=UTC)).all() == []


@pytest.mark.parametrize("url", ["https://localhost/", "https://169.254.169.254/", "https://0x7f.1/"])
def test_webhooks_to_private_addresses_are_refused_before_anything_is_sent(url: str) -> None:
    client, script = scripted(answer(200, {}))
    with pytest.raises(InvalidInput, match="must be an https:// URL of a public address"):
        client.webhooks.create(url=url, events=["ping"])
    assert script.requests == []


def test_a_refusal_names_the_value_and_the_words_that_are_known() -> None:
    client, _ = scripted(
        refusal(400, "validation_error", details={"fields": {"events": "unknown", "description": "bad"}}),
        refusal(400, "validation_error", details={"fields": {"status": "not_allowed"}}),
        refusal(400, "validation_error", details={"fields": {"name": "unsupported_tld"}}),
    )
    with pytest.raises(ValidationFailed) as caught:
        client.webhooks.create(url="https://a.example.org/", events=["server.burnt"], description="hush")
    assert "events: unknown, given server.burnt; this version knows server.created, " in str(caught.value)
    assert "hush" not in str(caught.value)
    with pytest.raises(
        ValidationFailed, match="not_allowed, given awake; this version knows active, stopped"
    ):
        client.servers.list(status="awake").all()
    with pytest.raises(ValidationFailed, match=r"name: unsupported_tld, given shop\.xyz"):
        client.domains.register(name="shop.xyz", years=1)
    with pytest.raises(InvalidInput, match=r"'created' is not one of server\.created, .*, or \*"):
        client.webhooks.create(url="https://a.example.org/", events=["created"])
