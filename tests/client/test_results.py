"""Lists, walks over pages, and what stands beside a result."""

import copy
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import InvalidResponse
from pulumi_hosting.client.results import UNSET, Document, Done, File, Items, given
from tests.client.support import CLIENT_ONLY, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")


def order(number: int) -> dict[str, Any]:
    return {"invoice_id": number, "status": "provisioning"}


def page(numbers: list[int], cursor: Any) -> httpx.Response:
    return answer(200, {"data": [order(number) for number in numbers], "next_cursor": cursor})


def test_a_walk_reads_a_page_when_it_is_needed() -> None:
    client, script = scripted(page([1, 2], "c1"), page([3], "c2"), page([4], None))
    walk = client.orders.list(status="provisioning")
    assert script.requests == []
    items = iter(walk)
    assert [next(items).invoice_id, next(items).invoice_id] == [1, 2]
    assert len(script.requests) == 1
    assert [item.invoice_id for item in items] == [3, 4]
    # The same filters with each cursor: a cursor is bound to them.
    assert [dict(request.url.params) for request in script.requests] == [
        {"status": "provisioning", "limit": "100"},
        {"status": "provisioning", "limit": "100", "cursor": "c1"},
        {"status": "provisioning", "limit": "100", "cursor": "c2"},
    ]


def test_every_loop_is_a_walk_of_its_own() -> None:
    client, script = scripted(page([1], None))
    walk = client.orders.list()
    assert [len(list(walk)), len(list(walk))] == [1, 1]
    assert len(script.requests) == 2


@pytest.mark.parametrize("last", [None, ""])
def test_a_walk_ends_at_null_and_at_an_empty_cursor(last: Any) -> None:
    client, script = scripted(page([1], last))
    assert len(list(client.orders.list())) == 1
    assert len(script.requests) == 1


def test_a_walk_ends_where_the_cursor_is_absent() -> None:
    client, _ = scripted(answer(200, {"data": [order(1)]}))
    assert [item.invoice_id for item in client.orders.list()] == [1]


def test_a_walk_can_start_in_the_middle_with_pages_of_any_size() -> None:
    client, script = scripted(page([5], None))
    list(client.orders.list(cursor="here", limit=5))
    assert dict(script.requests[0].url.params) == {"cursor": "here", "limit": "5"}


@pytest.mark.parametrize(
    "pages", [[page([1], "a"), page([2], "a")], [page([1], "a"), page([2], "b"), page([3], "a")]]
)
def test_a_cursor_that_comes_twice_is_an_error(pages: list[httpx.Response]) -> None:
    client, _ = scripted(*pages)
    with pytest.raises(InvalidResponse, match="same page cursor twice") as caught:
        list(client.orders.list())
    assert caught.value.operation == "list_orders"
    client, _ = scripted(page([1], "start"))
    with pytest.raises(InvalidResponse):
        list(client.orders.list(cursor="start"))


@CLIENT_ONLY
def test_pages_can_be_read_one_by_one_and_carry_their_meta() -> None:
    client, _ = scripted(page([1], "c1"), page([2], None))
    pages = list(client.orders.list().pages())
    assert [one.next_cursor for one in pages] == ["c1", None]
    assert all(one.meta is not None and one.meta.operation == "list_orders" for one in pages)
    assert repr(client.orders.list()) == "<Pages of list_orders>"


def test_an_empty_list_is_empty_and_no_list_is_an_error() -> None:
    client, _ = scripted(answer(200, {"data": []}))
    assert list(client.orders.list()) == []
    client, _ = scripted(answer(200, {"data": None}))
    with pytest.raises(InvalidResponse, match="data"):
        list(client.orders.list())
    with pytest.raises(InvalidResponse, match="data"):
        client.ssh_keys.list()


def key(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"key{number}", "public_key": "ssh-ed25519 AAAA"}


def test_a_short_list_is_a_sequence() -> None:
    client, _ = scripted(answer(200, {"data": [key(1), key(2)]}, X_Request_ID="list-1"))
    keys = client.ssh_keys.list()
    assert len(keys) == 2
    assert keys[0].name == "key1"
    assert [one.id for one in keys[1:]] == [2]
    assert keys == client.ssh_keys.list()
    assert keys == list(keys)
    assert keys != Items([])
    assert keys != 5
    assert keys[1] in keys
    assert keys.meta is not None
    assert keys.meta.request_id == "list-1"
    assert repr(Items([])) == "Items([])"
    with pytest.raises(TypeError):
        hash(keys)


def test_a_cursor_on_a_short_list_is_followed() -> None:
    client, script = scripted(
        answer(200, {"data": [key(1)], "next_cursor": "more"}),
        answer(200, {"data": [key(2)], "next_cursor": None}),
    )
    assert [one.id for one in client.ssh_keys.list()] == [1, 2]
    assert dict(script.requests[1].url.params) == {"cursor": "more"}


def test_every_result_knows_how_it_was_obtained() -> None:
    headers = {
        "X_Request_ID": "req-9",
        "X_RateLimit_Limit": "20",
        "X_RateLimit_Remaining": "19",
        "X_RateLimit_Reset": "1767225600",
    }
    client, script = scripted(
        refusal(503, "temporarily_unavailable"),
        answer(201, {"server": SERVER, "charged": "5.00"}, X_Sandbox="true", **headers),
    )
    created = client.servers.create(tariff_id=1, os="debian-12")
    assert isinstance(created, m.ServerCreated)
    assert created.meta is not None
    assert (created.meta.request_id, created.meta.status, created.meta.sandbox, created.meta.attempts) == (
        "req-9",
        201,
        True,
        2,
    )
    assert created.meta.idempotency_key == script.requests[0].headers["Idempotency-Key"]
    limit = created.meta.rate_limit
    assert limit is not None
    assert (limit.bucket, limit.limit, limit.remaining, limit.reset) == (
        "expensive",
        20,
        19,
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    # What is inside a result did not come by a call of its own.
    assert created.server.meta is None


SERVER = {"id": 1, "name": "a", "status": "active"}


@pytest.mark.parametrize("number", ["", "-1", "many", "1.5", "9" * 12, "٣"])
def test_invalid_rate_limit_headers_are_ignored(number: str) -> None:
    client, _ = scripted(httpx.Response(200, json=SERVER, headers=[(b"X-RateLimit-Limit", number.encode())]))
    meta = client.servers.get(1).meta
    assert meta is not None
    assert meta.rate_limit is None
    assert meta.sandbox is False
    assert len(meta.request_id) == 32


def test_the_bucket_follows_the_query() -> None:
    client, _ = scripted(answer(200, SERVER, X_RateLimit_Limit="120"))
    normal, live = client.servers.get(1).meta, client.servers.get(1, include="live").meta
    assert normal is not None
    assert live is not None
    assert normal.rate_limit is not None
    assert live.rate_limit is not None
    assert (normal.rate_limit.bucket, live.rate_limit.bucket) == ("normal", "expensive")


def test_how_a_result_was_obtained_is_no_part_of_its_value() -> None:
    client, _ = scripted(answer(200, SERVER, X_Request_ID="a"), answer(200, SERVER, X_Request_ID="b"))
    first, second = client.servers.get(1), client.servers.get(1)
    assert first == second
    assert first.meta != second.meta
    assert first.model_dump() == second.model_dump()
    assert "meta" not in repr(first)
    assert copy.deepcopy(first) == first


def test_an_answer_without_a_body_is_done() -> None:
    client, _ = scripted(httpx.Response(204))
    done = client.ssh_keys.delete(1)
    assert isinstance(done, Done)
    assert done.meta is not None
    assert done.meta.status == 204


def test_files_and_open_objects() -> None:
    assert repr(File(b"%PDF-1")) == "<File of 6 bytes>"
    client, _ = scripted(answer(200, {"openapi": "3.1.0", "anything": [1]}))
    document = client.openapi()
    assert isinstance(document, Document)
    assert document["anything"] == [1]
    assert document.meta is not None


def test_an_unset_argument_is_left_out() -> None:
    assert given(a=1, b=UNSET, c=None) == {"a": 1, "c": None}
    assert repr(UNSET) == "UNSET"
    assert not UNSET
