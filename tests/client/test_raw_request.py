"""``client.request``: operations that are newer than the table."""

from typing import Any

import httpx
import pytest

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import raw_request
from pulumi_hosting.client.exceptions import (
    ApiError,
    InvalidInput,
    InvalidResponse,
    NotFound,
    Unavailable,
    WriteRefused,
)
from pulumi_hosting.client.results import File
from tests.client.support import KEY, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")

PASSWORD = "Canary-password-1"  # made up
IDEMPOTENCY_KEY = "snapshot-2026-11-22"
BUSY = refusal(503, "temporarily_unavailable")


def test_a_read_returns_its_json_and_how_it_was_obtained() -> None:
    client, script = scripted(answer(200, {"data": [{"id": 1}]}, X_Request_ID="srv-9"))
    found = client.request("GET", "/snapshots", query={"limit": 10, "all": True, "cursor": None})
    assert found.data == {"data": [{"id": 1}]}
    assert (found.meta.request_id, found.meta.status, found.meta.attempts) == ("srv-9", 200, 1)
    (request,) = script.requests
    assert str(request.url) == "https://api.example.com/v1/snapshots?limit=10&all=true"
    assert request.headers["Authorization"] == f"Bearer {KEY}"


def test_a_read_is_retried() -> None:
    client, script = scripted(BUSY, httpx.ConnectError("no"), answer(200, [1]))
    assert client.request("GET", "/snapshots").data == [1]
    assert len(script.requests) == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_write_without_a_key_is_sent_once(method: str) -> None:
    client, script = scripted(BUSY, answer(200, {}))
    with pytest.raises(Unavailable) as caught:
        client.request(method, "/snapshots/5", body={"name": "a"})
    assert len(script.requests) == 1
    assert "Idempotency-Key" not in script.requests[0].headers
    assert caught.value.outcome_unknown


def test_a_write_with_a_key_is_retried_with_the_same_key_and_bytes() -> None:
    client, script = scripted(BUSY, BUSY, answer(201, {"id": 1}))
    found = client.request("POST", "/snapshots", body={"name": "a"}, idempotency_key=IDEMPOTENCY_KEY)
    assert (found.data, found.meta.idempotency_key) == ({"id": 1}, IDEMPOTENCY_KEY)
    assert {(request.headers["Idempotency-Key"], request.content) for request in script.requests} == {
        (IDEMPOTENCY_KEY, b'{"name":"a"}')
    }


def test_what_the_table_has_follows_its_row() -> None:
    # An order always has a key, so that it is never placed twice.
    client, script = scripted(BUSY, answer(202, {"invoice_id": 3, "status": "provisioning"}))
    client.request("POST", "/servers", body={"tariff_id": 1, "os": "debian-12"})
    keys = {request.headers["Idempotency-Key"] for request in script.requests}
    assert (len(script.requests), len(keys)) == (2, 1)
    # Percent-encoding does not hide it.
    assert raw_request.row("POST", "/%73ervers", expensive=False, keyed=False).is_keyed
    assert raw_request.row("DELETE", "/servers/5", expensive=False, keyed=False).id == "delete_server"
    with pytest.raises(InvalidInput, match="takes none"):
        client.request("PATCH", "/servers/5", body={"name": "a"}, idempotency_key=IDEMPOTENCY_KEY)


def test_ids_in_paths_do_not_make_new_operations() -> None:
    row = raw_request.row("GET", "/snapshots/5/files/6", expensive=True, keyed=False)
    assert (row.id, row.is_expensive({})) == ("GET /snapshots/{id}/files/{id}", True)


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("TRACE", "/me", "method"),
        ("get", "/me", "method"),
        ("GET", "me", "path"),
        ("GET", "/../admin", "path"),
        ("GET", "/%2e%2e/admin", "path"),
        ("GET", "/a%2Fb", "path"),
        ("GET", "//other.example.org/x", "path"),
        ("GET", "/a?b=c", "path"),
        ("GET", "/a#b", "path"),
        ("GET", "/a b", "path"),
        ("GET", "https://other.example.org", "path"),
    ],
)
def test_a_request_that_could_go_elsewhere_is_refused(method: str, path: str, field: str) -> None:
    client, script = scripted(answer(200, {}))
    with pytest.raises(InvalidInput) as caught:
        client.request(method, path)
    assert set(caught.value.fields) == {field}
    assert script.requests == []


@pytest.mark.parametrize(
    "arguments",
    [{"body": {"a": object()}}, {"body": "x" * 2_000_000}, {"query": {"a": 1.5}}, {"query": {"a": [1]}}],
)
def test_what_cannot_be_sent_is_refused(arguments: dict[str, Any]) -> None:
    client, script = scripted(answer(200, {}))
    with pytest.raises(InvalidInput):
        client.request("POST", "/snapshots", **arguments)
    assert script.requests == []


def test_a_client_that_only_reads_refuses_writes() -> None:
    client, script = scripted(answer(200, {}), read_only=True)
    with pytest.raises(WriteRefused):
        client.request("POST", "/snapshots")
    client.request("GET", "/snapshots")
    assert len(script.requests) == 1


def test_secrets_are_sent_and_removed_from_errors() -> None:
    client, script = scripted(refusal(400, "validation_error", f"no {PASSWORD}, no {KEY}"))
    body = {"password": PASSWORD, "deep": [{"token": Secret("Canary-token-22")}]}
    with pytest.raises(ApiError) as caught:
        client.request("POST", "/consoles", body=body)
    assert script.bodies == [{"password": PASSWORD, "deep": [{"token": "Canary-token-22"}]}]
    assert "no **********, no **********" in str(caught.value)
    assert PASSWORD not in repr(script.requests[0].headers)


def test_secrets_of_the_answer_are_not_printed() -> None:
    client, _ = scripted(answer(200, {"secret": PASSWORD, "echo": KEY}))
    found = client.request("GET", "/consoles/1")
    assert found.data["secret"] == Secret(PASSWORD)
    assert KEY not in found.data["echo"]
    assert PASSWORD not in repr(found) + repr(found.data)


def test_an_absent_object_is_not_a_wrong_address() -> None:
    client, _ = scripted(refusal(404, "not_found"), knows_owner=True)
    with pytest.raises(NotFound) as caught:
        client.request("GET", "/snapshots/5")
    assert "base URL" not in str(caught.value)


def test_answers_without_json() -> None:
    client, _ = scripted(
        httpx.Response(204),
        httpx.Response(200, content=b"%PDF-1\n%%EOF"),
        httpx.Response(200, content=b"<html>"),
        answer(200, {"error": {"code": "x"}}),
        httpx.Response(200, content=b'{"a": NaN}'),
    )
    assert client.request("GET", "/a").data is None
    assert isinstance(client.request("GET", "/a").data, File)
    for _ in range(3):
        with pytest.raises(InvalidResponse):
            client.request("GET", "/a")
