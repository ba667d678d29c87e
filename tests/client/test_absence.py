"""A 404 is believed by a client that has had an answer to ``GET /me`` at its base URL, and by no other."""

import threading
from typing import Any

import httpx
import pytest

from pulumi_hosting.api.operations import OPERATIONS, Operation
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ApiError, InsufficientFunds, NotFound
from tests.client.support import BASE, CLIENT_ONLY, answer, refusal, scripted
from tests.client.test_retries import FIELDS
from tests.support.account import Account

pytestmark = pytest.mark.usefixtures("both")

GONE = refusal(404, "not_found")
PAGE = httpx.Response(200, html="<h1>Welcome</h1>")
ABOUT_OBJECTS = [operation for operation in OPERATIONS if "not_found" in operation.error_codes]


@pytest.fixture(scope="module")
def me() -> httpx.Response:
    """An answer to ``GET /me``."""
    return answer(200, Account().api("GET", "/me").json())


def paths(requests: list[httpx.Request]) -> list[str]:
    return [request.url.path.removeprefix("/v1") for request in requests]


def test_a_404_asks_once_whether_this_is_the_api(me: httpx.Response) -> None:
    client, script = scripted(GONE, me, GONE)
    for id in (1, 2):
        with pytest.raises(NotFound, match="not found on this account"):
            client.servers.get(id)
    assert paths(script.requests) == ["/servers/1", "/me", "/servers/2"]


def test_a_client_that_knows_its_key_sends_nothing_more(me: httpx.Response) -> None:
    client, script = scripted(me, GONE)
    client.me()
    with pytest.raises(NotFound):
        client.servers.get(1)
    assert paths(script.requests) == ["/me", "/servers/1"]


def test_without_a_404_nothing_more_is_sent() -> None:
    client, script = scripted(refusal(402, "insufficient_funds"))
    with pytest.raises(InsufficientFunds):
        client.servers.renew(1, months=1)
    assert paths(script.requests) == ["/servers/1/renew"]


@pytest.mark.parametrize(
    "other", [GONE, httpx.Response(404, html="<h1>?</h1>"), PAGE, answer(302, Location="https://x.example")]
)
def test_where_something_else_answers_the_address_is_wrong(other: httpx.Response) -> None:
    client, _ = scripted(GONE, other)
    with pytest.raises(ApiError) as caught:
        client.servers.get(1)
    assert not isinstance(caught.value, NotFound)
    assert caught.value.code == "http_404"
    assert str(caught.value).startswith(
        f"server 1: no API answers at the base URL {BASE}. Next: correct the base URL"
    )


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (refusal(401, "invalid_token"), "the API key is not valid"),
        (refusal(403, "ip_not_allowed"), "the API key may not be used from this address"),
        (refusal(500, "server_error"), "the service failed"),
        (refusal(503, "temporarily_unavailable"), "the service is not available at the moment"),
        (refusal(429, "rate_limited", Retry_After="9000"), "too many requests with this key"),
        (httpx.ConnectError("refused"), "cannot reach api.example.com"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_the_question_fails_absence_is_not_proven(failure: Any, why: str) -> None:
    client, _ = scripted(GONE, failure, deadline=60, rate_limit_timeout=60)
    with pytest.raises(ApiError) as caught:
        client.servers.get(1)
    line = str(caught.value)
    assert not isinstance(caught.value, NotFound)
    assert line.startswith(
        f"server 1: 404, which does not prove that the object is gone: the base URL {BASE}"
    )
    assert why in line
    assert line.count("Next: ") == 1
    assert (caught.value.status, caught.value.operation) == (404, "get_server")


def test_the_question_is_repeated_as_every_read_is(me: httpx.Response) -> None:
    client, script = scripted(GONE, refusal(503, "temporarily_unavailable"), me)
    with pytest.raises(NotFound):
        client.servers.get(1)
    assert paths(script.requests) == ["/servers/1", "/me", "/me"]


def test_what_is_known_of_the_outcome_stays_known() -> None:
    client, script = scripted(httpx.ReadError("gone"), GONE, refusal(401, "invalid_token"))
    with pytest.raises(ApiError) as caught:
        client.servers.delete(1)
    assert caught.value.outcome_unknown
    assert caught.value.idempotency_key == script.requests[0].headers["Idempotency-Key"]
    assert caught.value.attempts == 2


def test_a_refused_key_ends_the_run_here_too() -> None:
    client, script = scripted(GONE, refusal(401, "invalid_token"))
    client.keeps_refusal = True
    for _ in range(2):
        with pytest.raises(ApiError):
            client.servers.get(1)
    assert len(script.requests) == 2


def test_a_list_is_no_object() -> None:
    client, script = scripted(GONE)
    with pytest.raises(ApiError, match="no API answers") as caught:
        client.servers.list().first()
    assert not isinstance(caught.value, NotFound)
    assert paths(script.requests) == ["/servers"]


def test_a_proxy_on_the_way_to_the_api_proves_nothing_and_is_named(me: httpx.Response) -> None:
    client, _ = scripted(me, httpx.Response(404, html="<h1>?</h1>"))
    client.me()
    with pytest.raises(
        ApiError, match=r"without the API's error envelope. Next: check the proxies"
    ) as caught:
        client.servers.get(1)
    assert not isinstance(caught.value, NotFound)


def test_an_operation_that_is_newer_than_this_version_is_asked_about_too(me: httpx.Response) -> None:
    for last, kind in ((me, NotFound), (GONE, ApiError)):
        client, script = scripted(GONE, last)
        with pytest.raises(ApiError) as caught:
            client.request("DELETE", "/snapshots/5")
        assert type(caught.value) is kind
        assert paths(script.requests) == ["/snapshots/5", "/me"]


@CLIENT_ONLY
def test_threads_share_the_question(me: httpx.Response) -> None:
    meeting = threading.Barrier(4)
    asked = list[str]()

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/v1/me":
            return httpx.Response(200, content=me.content)
        meeting.wait(timeout=10)
        return httpx.Response(404, content=GONE.content)

    client, _ = scripted(respond)
    gone = list[int]()

    def look(id: int) -> None:
        try:
            client.servers.get(id)
        except NotFound:
            gone.append(id)

    threads = [threading.Thread(target=look, args=(id,)) for id in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(gone) == [1, 2, 3, 4]
    assert asked.count("/v1/me") == 1


# --- the service's own envelope


@pytest.fixture(scope="module")
def account() -> Account:
    return Account()


def ask(account: Account, base_url: str, operation: Operation) -> None:
    """Call it about an object that is not on the account."""
    ids = [20001] * len(operation.path_parameters)
    query = {"tariff_id": 999} if operation.id == "get_quote" else {}
    with Client(account.live_key, base_url, transport=account.transport()) as client:
        client.call(operation.id, *ids, query=query, body=FIELDS.get(operation.id))


def test_every_object_of_a_path_is_covered() -> None:
    assert {operation.id for operation in ABOUT_OBJECTS} == {
        "get_quote",
        *(operation.id for operation in OPERATIONS if operation.path_parameters),
    }


@CLIENT_ONLY
@pytest.mark.parametrize("operation", ABOUT_OBJECTS, ids=lambda operation: operation.id)
def test_no_method_says_that_an_object_is_gone_at_a_wrong_version(
    account: Account, operation: Operation
) -> None:
    with pytest.raises(NotFound):
        ask(account, account.base_url, operation)
    wrong = f"{account.base_url[:-1]}2"
    with pytest.raises(ApiError, match=f"no API answers at the base URL {wrong}") as caught:
        ask(account, wrong, operation)
    assert not isinstance(caught.value, NotFound)
