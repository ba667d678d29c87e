"""The loop: what is sent again, with what, after how long; and what is not."""

import json
from typing import Any

import httpx
import pytest

from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from pulumi_hosting.client.exceptions import (
    ApiError,
    ConfigurationError,
    IdempotencyInProgress,
    InvalidResponse,
    RateLimited,
    ServerError,
    TransportError,
    Unavailable,
)
from tests.client.support import BASE, CLIENT_ONLY, KEY, FakeTime, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")

SERVER = {"id": 1, "name": "a", "status": "active"}
CREATED = {"server": SERVER, "charged": "5.00"}


def test_all_attempts_of_a_keyed_call_have_one_key_the_same_bytes_and_ids_of_their_own() -> None:
    client, script = scripted(
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        refusal(409, "idempotency_in_progress", Retry_After="2"),
        refusal(504, "upstream_timeout"),
        httpx.Response(502, text="<html>"),
        answer(201, CREATED),
    )
    result = client.servers.create(tariff_id=1, os="debian-12", custom_fields={"b": "1", "a": "2"})
    assert result.meta is not None
    assert result.meta.attempts == 6
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1
    assert len({request.content for request in script.requests}) == 1
    assert len({request.headers["X-Request-ID"] for request in script.requests}) == 6


def test_a_key_that_is_given_is_used() -> None:
    client, script = scripted(answer(201, CREATED))
    client.servers.create(tariff_id=1, os="debian-12", idempotency_key="my-own-key-0001-0001")
    assert script.requests[0].headers["Idempotency-Key"] == "my-own-key-0001-0001"


def test_two_calls_have_two_keys() -> None:
    client, script = scripted(answer(201, CREATED))
    client.servers.create(tariff_id=1, os="debian-12")
    client.servers.create(tariff_id=1, os="debian-12")
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 2


FIELDS: dict[str, dict[str, Any]] = {
    "create_topup": {"amount": "10.00", "gateway": "card"},
    "create_server": {"tariff_id": 1, "os": "debian-12"},
    "update_server": {"name": "a"},
    "renew_server": {"months": 1},
    "power_server": {"action": "stop"},
    "reinstall_server": {"os": "debian-12"},
    "create_ssh_key": {
        "name": "a",
        "public_key": ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"),
    },
    "register_domain": {"name": "example.com"},
    "set_domain_nameservers": {"nameservers": ["ns1.example.net", "ns2.example.net"]},
    "update_domain": {"privacy": True},
    "renew_domain": {"years": 1},
    "transfer_domain": {"name": "example.com", "auth_code": "code"},
    "create_webhook": {"url": "https://hooks.example.org/", "events": ["ping"]},
    "update_webhook": {"active": True},
}
QUERIES: dict[str, dict[str, Any]] = {
    "get_quote": {"tariff_id": 1},
    "check_domain_availability": {"name": "example.com"},
}


def call(client: Any, operation: Operation) -> Any:
    ids = [1] * len(operation.path_parameters)
    return client.call(operation.id, *ids, query=QUERIES.get(operation.id), body=FIELDS.get(operation.id))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_every_row_is_repeated_as_it_allows(operation: Operation) -> None:
    """Against a service that answers 503 for ever: reads and keyed mutations try six times, the others once;
    a 500 ends all of them.
    """
    client, script = scripted(refusal(503, "temporarily_unavailable"))
    with pytest.raises(Unavailable):
        call(client, operation)
    assert len(script.requests) == (6 if operation.retry in ("safe", "idempotency_key") else 1)

    client, script = scripted(refusal(500, "server_error"))
    with pytest.raises(ServerError):
        call(client, operation)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "operation", [row for row in OPERATIONS if row.is_write], ids=lambda operation: operation.id
)
def test_a_lost_answer_to_a_write_says_that_its_outcome_is_unknown(operation: Operation) -> None:
    client, script = scripted(httpx.ReadError("reset"))
    with pytest.raises(TransportError, match="may have been processed") as caught:
        call(client, operation)
    assert caught.value.outcome_unknown
    assert len(script.requests) == (6 if operation.is_keyed else 1)


def test_a_lost_answer_to_a_read_changed_nothing() -> None:
    client, _ = scripted(httpx.ReadError("reset"))
    with pytest.raises(TransportError, match="Nothing was changed") as caught:
        client.servers.get(1)
    assert not caught.value.outcome_unknown


def test_a_request_that_was_never_sent_has_a_known_outcome() -> None:
    client, script = scripted(httpx.ConnectError("refused"))
    with pytest.raises(TransportError, match="Nothing was changed") as caught:
        client.servers.power(1, action="stop")
    assert not caught.value.outcome_unknown
    assert len(script.requests) == 1


def test_retry_after_is_obeyed() -> None:
    time = FakeTime()
    client, _ = scripted(refusal(429, "rate_limited", Retry_After="17"), answer(200, SERVER), time=time)
    client.servers.get(1)
    assert 17 <= sum(time.slept) <= 17.5


def test_a_date_to_wait_for_is_obeyed() -> None:
    time = FakeTime()
    client, _ = scripted(
        refusal(503, "api_disabled", Retry_After="Sun, 06 Nov 1994 08:50:07 GMT"),
        answer(200, SERVER),
        time=time,
        wall=lambda: 784_111_777.0,
    )
    client.servers.get(1)
    (slept,) = time.slept
    assert 30 <= slept <= 30.5


def test_a_wait_that_takes_too_long_does_not_start() -> None:
    time = FakeTime()
    client, script = scripted(
        refusal(429, "rate_limited", Retry_After="61"), time=time, rate_limit_timeout=60
    )
    with pytest.raises(RateLimited) as caught:
        client.servers.get(1)
    assert caught.value.retry_after == 61
    assert time.slept == []
    assert len(script.requests) == 1


def test_the_deadline_bounds_all_attempts_together() -> None:
    time = FakeTime()
    client, script = scripted(
        refusal(409, "idempotency_in_progress", Retry_After="10"), time=time, deadline=60
    )
    with pytest.raises(IdempotencyInProgress):
        client.servers.delete(1)
    assert 50 <= sum(time.slept) < 60
    assert len(script.requests) == len(time.slept) + 1


def test_an_attempt_gets_no_more_time_than_is_left() -> None:
    time = FakeTime()
    client, script = scripted(
        refusal(503, "temporarily_unavailable", Retry_After="50"),
        answer(200, SERVER),
        time=time,
        deadline=60,
        timeout=30,
    )
    client.servers.get(1)
    first, second = (request.extensions["timeout"]["read"] for request in script.requests)
    assert first == 30
    assert second == pytest.approx(60 - sum(time.slept))


@pytest.mark.parametrize(
    "final",
    [refusal(404, "not_found"), refusal(402, "insufficient_funds"), refusal(409, "operation_in_progress")],
)
def test_a_refusal_is_an_answer(final: httpx.Response) -> None:
    client, script = scripted(final, knows_owner=True)
    with pytest.raises(ApiError) as caught:
        client.servers.delete(1)
    assert len(script.requests) == 1
    assert caught.value.operation == "delete_server"
    assert caught.value.request_id == "srv-1"


def test_a_damaged_answer_is_not_asked_for_again() -> None:
    client, script = scripted(
        httpx.Response(200, text="<html>hello</html>", headers={"Content-Type": "text/html; charset=utf-8"})
    )
    with pytest.raises(InvalidResponse, match="text/html"):
        client.servers.get(1)
    assert len(script.requests) == 1


# --- threads and the object itself


@CLIENT_ONLY
def test_one_client_serves_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def echo(request: httpx.Request) -> httpx.Response:
        number = int(request.url.path.rsplit("/", 1)[1])
        return answer(
            200, {"id": number, "name": "a", "status": "active"}, X_Request_ID=request.headers["X-Request-ID"]
        )

    client, _ = scripted(echo)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(client.servers.get, range(1, 201)))
    assert [server.id for server in found] == list(range(1, 201))
    assert len({server.meta.request_id for server in found if server.meta}) == 200


@CLIENT_ONLY
def test_a_client_is_closed_at_the_end_of_its_block() -> None:
    client, _ = scripted(answer(200, SERVER))
    with client as same:
        assert same is client
        assert client.servers.get(1).id == 1
    client.close()
    with pytest.raises(ConfigurationError, match=r"^this client is closed; nothing was sent"):
        client.servers.get(1)
    assert client.base_url == BASE
    assert repr(client) == f"<Client of {BASE} with key vk_live_…{KEY[-4:]}>"


def test_every_attempt_is_logged_without_its_content(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="pulumi_hosting")
    client, _ = scripted(
        refusal(503, "temporarily_unavailable", X_Request_ID="one"), answer(200, SERVER, X_Request_ID="two")
    )
    client.servers.get(1)
    lines = [record.getMessage() for record in caplog.records if record.name == "pulumi_hosting"]
    assert lines[0] == "GET /servers/1: 503 (0.000 s, attempt 1, request one)"
    assert lines[1].startswith("GET /servers/1: Unavailable, again in 0.")
    assert lines[2] == "GET /servers/1: 200 (0.000 s, attempt 2, request two)"
    assert json.dumps(SERVER) not in caplog.text
    assert BY_ID["get_server"].summary not in caplog.text


@pytest.mark.parametrize("kind", [KeyError, ValueError, RuntimeError])
def test_what_a_transport_of_the_callers_raises_becomes_an_error_of_ours_and_is_not_asked_again(
    kind: type[Exception],
) -> None:
    client, script = scripted(kind("a bug"))
    with pytest.raises(TransportError, match=kind.__name__) as caught:
        client.servers.create(tariff_id=1, os="debian-12")
    assert caught.value.outcome_unknown
    assert len(script.requests) == 1
