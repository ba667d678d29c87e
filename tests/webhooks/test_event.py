"""What an event is about, as the model of its kind; and the recipes of the page."""

import asyncio
import base64
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import InvalidResponse, WebhookRejected
from pulumi_hosting.webhooks import parse, verify
from tests.webhooks.support import SECRET, body, signed

OBJECTS: dict[str, tuple[type[m.Response], dict[str, Any]]] = {
    "server": (m.ServerDetail, {"id": 5, "name": "web", "status": "active"}),
    "invoice": (
        m.Invoice,
        {"id": 5, "type": "other", "status": "paid", "amount": "1.00", "currency": "EUR", "items": []},
    ),
    "balance": (
        m.Balance,
        {"balance": "1.00", "currency": "EUR", "upcoming_7d": "2.00", "upcoming_30d": "3.00"},
    ),
    "domain": (m.Domain, {"id": 5, "name": "example.com", "status": "active"}),
    "key": (m.ApiKey, {"id": 5, "name": "ci", "scopes": [], "mode": "live"}),
    "ping": (m.Response, {"subscription_id": 5, "message": "pong"}),
}
TYPES = [*m.EVENT_TYPES, "server.moved"]


@pytest.mark.parametrize("type", TYPES)
def test_an_event_has_the_model_of_its_kind_and_no_other(type: str) -> None:
    kind = type.partition(".")[0]
    model, data = OBJECTS[kind]
    event = parse(body("evt_1", type, data={"object": {**data, "field_of_later": [1]}}))
    found = getattr(event, kind)
    assert isinstance(found, model)
    assert found.model_dump(mode="json", include=set(data)) == data
    assert [other for other in OBJECTS if getattr(event, other) is not None] == [kind]
    assert event.previous is None


def test_fields_before_a_change_have_the_types_of_the_model() -> None:
    _, server = OBJECTS["server"]
    before = {"status": "active", "created_at": "2026-01-02T03:04:05Z", "of_later": "x"}
    event = parse(body("evt_1", "server.suspended", data={"object": server, "previous": before}))
    assert event.previous is not None
    assert event.previous["created_at"].year == 2026
    assert (event.previous["status"], event.previous["of_later"]) == ("active", "x")


def test_unknown_types_and_objects_that_cannot_be_read_still_are_events() -> None:
    event = parse(body("evt_1", "volume.moved", data={"object": {"id": 5}, "previous": {"size": 1}}))
    assert (event.object, event.previous, event.server) == ({"id": 5}, {"size": 1}, None)
    broken = parse(body("evt_2", data={"object": {"name": "web"}, "previous": {"name": "old"}}))
    assert (broken.object, broken.previous) == ({"name": "web"}, {"name": "old"})
    with pytest.raises(InvalidResponse, match="evt_2: its server cannot be read"):
        _ = broken.server


def test_a_body_may_be_text_and_the_signature_decides() -> None:
    raw = body("evt_1", data={"object": {"name": "Zürich"}})
    headers = signed(raw)
    assert verify(raw.decode(), headers, SECRET).id == "evt_1"
    for other in (raw.decode() + " ", "\udc80", ""):
        with pytest.raises(WebhookRejected, match="no signature"):
            verify(other, headers, SECRET)


# --- the recipes


def recipe(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    page = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- recipe: {name} -->\n```python\n(.*?)```", page, re.DOTALL)
    assert found
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(found[1], "docs/webhooks.md", "exec"), names)  # noqa: S102  # the page's own program
    return names


@pytest.mark.parametrize("framework", ["fastapi", "flask", "lambda"])
def test_a_recipe_takes_what_is_signed_and_nothing_else(
    framework: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = recipe(framework, monkeypatch)
    raw = body("evt_1", data={"object": {"id": 5, "name": "Zürich"}})

    def post(raw: bytes, headers: dict[str, str]) -> int:
        if framework == "lambda":
            for coded in ({"body": raw.decode()}, {"body": base64.b64encode(raw), "isBase64Encoded": True}):
                status: int = program["handler"]({**coded, "headers": headers}, None)["statusCode"]
            return status
        if framework == "flask":
            found: int = program["app"].test_client().post("/hosting", data=raw, headers=headers).status_code
            return found
        return asyncio.run(to_app(raw, headers)).status_code

    async def to_app(raw: bytes, headers: dict[str, str]) -> httpx.Response:
        transport = httpx.ASGITransport(program["app"])
        async with httpx.AsyncClient(transport=transport, base_url="https://a.example.org") as client:
            return await client.post("/hosting", content=raw, headers=headers)

    assert post(raw, signed(raw)) == 204
    assert "evt_1 server.created" in capsys.readouterr().out
    assert post(raw + b" ", signed(raw)) == 401
    assert post(raw, signed(raw, age=time.time() / 2)) == 401
    assert "evt_1" not in capsys.readouterr().out
