"""The pipeline of a request: its steps, one by one, and their order."""

import re

import pytest

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.emulator.middleware import PIPELINE, Router
from tests.emulator.support import code, details
from tests.support.account import Account

SERVER = {"tariff_id": 1, "os": "debian-12"}


def test_the_pipeline_runs_in_this_order() -> None:
    assert [step.__name__ for step in PIPELINE] == [
        "identify_request",
        "apply_faults",
        "find_operation",
        "check_service_enabled",
        "answer_without_key",
        "authenticate",
        "count_against_rate_limit",
        "check_sandbox",
        "check_account",
        "check_scopes",
        "read_body",
        "require_idempotency_key",
        "check_query",
        "replay_stored_response",
        "validate",
        "fail_upstream",
        "run_handler",
    ]


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [("abc-1.2:3_4", "abc-1.2:3_4"), ("a b/c", "abc"), ("x" * 70, "x" * 64), ("/ /", None), (None, None)],
)
def test_request_id(sent: str | None, echoed: str | None, account: Account) -> None:
    headers = {} if sent is None else {"X-Request-ID": sent}
    given = account.api("GET", "/me", headers=headers).headers["X-Request-ID"]
    if echoed is None:
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", given)
    else:
        assert given == echoed


def test_every_operation_is_routed() -> None:
    route = Router({operation.route: operation for operation in OPERATIONS})
    for operation in OPERATIONS:
        path = operation.path
        for name in operation.path_parameters:
            path = path.replace("{" + name + "}", "7")
        found, ids = route(operation.method, path)
        assert found is operation
        assert set(ids) == set(operation.path_parameters)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/servers", "GET, POST"),
        ("HEAD", "/servers", "GET, POST"),
        ("OPTIONS", "/servers/1", "DELETE, GET, PATCH"),
        ("GET", "/domains/transfers", "POST"),
        ("DELETE", "/me", "GET"),
    ],
)
def test_405(method: str, path: str, allowed: str, account: Account) -> None:
    response = account.api(method, path)
    assert (response.status_code, response.headers["Allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/nothing",
        "/servers/",
        "/servers/0",
        "/servers/-1",
        "/servers/01",
        "/servers/x",
        "/servers/99999999999999999999",
        "/servers/%C2%B2",
    ],
)
def test_404(path: str, account: Account) -> None:
    assert code(account.api("GET", path)) == "not_found"


def test_switched_off(account: Account) -> None:
    account.control("PATCH", "/service", {"api_enabled": False})
    assert account.call(None, "GET", "/health").json()["status"] == "disabled"
    for path in ("/me", "/openapi.json"):
        assert code(account.api("GET", path)) == "api_disabled"


def test_every_answer_to_a_test_key_has_x_sandbox(account: Account) -> None:
    expired = account.new_key("test", expires_at=1)
    calls = [
        ("GET", "/me"),
        ("GET", "/nothing"),
        ("PUT", "/me"),
        ("GET", "/health"),
        ("GET", "/servers/1"),
        ("GET", "/webhooks"),
    ]
    answers = [account.test(method, path) for method, path in calls] + [account.call(expired, "GET", "/me")]
    account.control("PATCH", "/service", {"api_enabled": False})
    answers.append(account.test("GET", "/me"))
    assert [answer.status_code for answer in answers] == [200, 404, 405, 200, 404, 403, 401, 503]
    assert [answer.headers.get("X-Sandbox") for answer in answers] == ["true"] * 8
    assert "X-Sandbox" not in account.api("GET", "/me").headers


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic dTpw", "vk_live_x"])
def test_missing_and_unknown_api_keys(header: str | None, account: Account) -> None:
    headers = {} if header is None else {"Authorization": header}
    response = account.call(None, "GET", "/me", headers=headers)
    assert code(response) == "invalid_token"
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_invalid_keys_are_limited_per_address(account: Account) -> None:
    for _ in range(30):
        assert code(account.call("vk_live_wrong", "GET", "/me")) == "invalid_token"
    refused = account.call("vk_live_wrong", "GET", "/me")
    assert (code(refused), refused.headers["Retry-After"]) == ("rate_limited", "60")
    assert account.api("GET", "/me").status_code == 200
    account.advance(60)
    assert code(account.call("vk_live_wrong", "GET", "/me")) == "invalid_token"


def test_allow_list(account: Account) -> None:
    key = account.new_key(ip_allowlist=["10.0.0.0/8", "127.0.0.1"])
    assert account.call(key, "GET", "/me").json()["key"]["last_used_ip"] == "127.0.0.1"
    from pulumi_hosting.emulator.middleware import allowed

    assert not allowed("no address", ["0.0.0.0/0"])
    assert not allowed("::1", ["10.0.0.0/8"])


def test_a_revoked_key_is_invalid(account: Account) -> None:
    me = account.test("GET", "/me").json()["key"]["id"]
    other = account.api("GET", "/me").json()["key"]["id"]
    assert details(account.test("DELETE", f"/keys/{other}")) == {"required": ["self"]}
    assert account.test("DELETE", f"/keys/{me}").json()["key"]["active"] is False
    assert code(account.test("GET", "/me")) == "invalid_token"
    assert code(account.api("DELETE", f"/keys/{me}")) == "conflict"


def test_two_buckets_in_fixed_windows(account: Account) -> None:
    key = account.new_key(rate_per_minute=3, rate_expensive_per_minute=2)
    remaining = [account.call(key, "GET", "/me").headers["X-RateLimit-Remaining"] for _ in range(3)]
    assert remaining == ["2", "1", "0"]
    account.advance(20)
    refused = account.call(key, "GET", "/balance")
    assert details(refused) == {"bucket": "normal", "limit": 3}
    assert refused.headers["Retry-After"] == "40"
    assert refused.headers["X-RateLimit-Reset"] == str(int(account.clock.now()) + 40)
    # The other bucket is not affected.
    assert account.call(key, "GET", "/catalog/quote?tariff_id=1").headers["X-RateLimit-Limit"] == "2"
    account.advance(40)
    assert account.call(key, "GET", "/me").headers["X-RateLimit-Remaining"] == "2"


def test_expensive_when(account: Account) -> None:
    server = account.server()
    assert account.api("GET", f"/servers/{server}").headers["X-RateLimit-Limit"] == "120"
    assert account.api("GET", f"/servers/{server}?include=live").headers["X-RateLimit-Limit"] == "20"
    assert account.api("GET", f"/servers/{server}/ips").headers["X-RateLimit-Limit"] == "120"
    account.control("PATCH", "/service", {"dialect": "live"})
    assert account.api("GET", f"/servers/{server}/ips").headers["X-RateLimit-Limit"] == "20"


def test_refused_calls_count_too_and_the_control_interface_does_not(account: Account) -> None:
    account.api("GET", "/servers?limit=x")
    account.api("GET", "/servers/1")
    account.control("GET", "/objects")
    assert account.api("GET", "/me").headers["X-RateLimit-Remaining"] == "117"


@pytest.mark.parametrize("operation", [row for row in OPERATIONS if row.scopes], ids=lambda row: row.id)
def test_scopes(operation: object, account: Account) -> None:
    from pulumi_hosting.api.operations import SCOPES, Operation

    assert isinstance(operation, Operation)
    path = re.sub(r"{\w+}", "1", operation.path)
    key = account.new_key(scopes=[scope for scope in SCOPES if scope not in operation.scopes])
    response = account.call(key, operation.method, path)
    assert (code(response), details(response)) == ("insufficient_scope", {"required": list(operation.scopes)})


def test_objects_of_another_account_do_not_exist(account: Account) -> None:
    other = account.control("POST", "/accounts", {"balance": "50.00", "currency": "USD"})["live_key"]
    theirs = account.order(other)
    assert code(account.api("GET", f"/servers/{theirs['server']['id']}")) == "not_found"
    assert code(account.api("GET", f"/invoices/{theirs['invoice_id']}")) == "not_found"
    assert code(account.api("DELETE", f"/servers/{theirs['server']['id']}")) == "not_found"
    assert account.api("GET", "/servers").json()["data"] == []
    assert (
        account.call(other, "GET", "/balance").json() | {"balance": "45.00", "currency": "USD"}
        == account.call(other, "GET", "/balance").json()
    )


def test_early_refusals_do_not_use_up_an_idempotency_key(account: Account) -> None:
    key = account.idempotency_key()
    narrow = account.new_key(scopes=["servers:read"])
    slow = account.new_key(rate_expensive_per_minute=0)
    assert code(account.call(narrow, "POST", "/servers", SERVER, key=key)) == "insufficient_scope"
    assert code(account.call(slow, "POST", "/servers", SERVER, key=key)) == "rate_limited"
    assert code(account.call("vk_live_x", "POST", "/servers", SERVER, key=key)) == "invalid_token"
    account.fault({"status": 503})
    assert code(account.api("POST", "/servers", SERVER, key=key)) == "temporarily_unavailable"
    assert account.api("POST", "/servers", {**SERVER, "name": "fresh"}, key=key).status_code == 201


def test_a_call_knows_its_key_and_operation_only_after_their_steps(account: Account) -> None:
    from pulumi_hosting.emulator.call import Call
    from pulumi_hosting.emulator.messages import ApiRequest

    assert account.api("GET", "/me").status_code == 200
    (logged,) = account.core.store.requests.values()
    call = Call(account.core.store, ApiRequest("GET", "/me"), logged, 0.0)
    for name in ("key", "account", "operation"):
        with pytest.raises(AttributeError, match=name):
            getattr(call, name)


@pytest.mark.parametrize("path", ["/health?a=1&a=2", "/health?%ff", "/openapi.json?a=1"])
def test_what_needs_no_key_is_always_answered(path: str, account: Account) -> None:
    assert account.call(None, "GET", path).status_code == 200
