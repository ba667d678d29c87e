"""Invalid values are refused with the right error: no 500, no charge, no conversion of types."""

import json
from collections.abc import Callable, Iterator
from typing import Any, get_args

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from pulumi_hosting.emulator import dialects
from tests.emulator.calls import CALLS
from tests.emulator.support import PUBLIC_KEY, code, details
from tests.support.account import START, Account

# --- integers ----------------------------------------------------------------------------------------------

WRONG = [True, False, 1.0, "1", None, [1], {"1": 1}, -1, 2**63]


def numbers(kind: Any) -> bool:
    """Whether an annotation is one of integers, lists of them included."""
    return kind is int or type(kind) is int or any(numbers(part) for part in get_args(kind))


def integer_fields() -> Iterator[tuple[str, str]]:
    for operation in OPERATIONS:
        if operation.request is not None:
            yield from (
                (operation.id, name)
                for name, field in operation.request.model_fields.items()
                if numbers(field.annotation)
            )


def integer_queries() -> Iterator[tuple[str, str]]:
    for operation in OPERATIONS:
        if operation.query is not None:
            yield from (
                (operation.id, name)
                for name, field in operation.query.model_fields.items()
                if numbers(field.annotation)
            )


def again(account: Account, operation: Operation, body: Any) -> httpx.Response:
    """The request of a call again, with another body."""
    path = str(CALLS[operation.id](account).request.url.raw_path, "ascii").removeprefix("/v1")
    return account.api(operation.method, path, body)


def body_of(account: Account, operation: Operation) -> dict[str, Any]:
    body: dict[str, Any] = account.control("GET", "/requests")[-1]["body"] or {}
    return body


def test_the_integer_fields_are_known() -> None:
    fields = set(integer_fields())
    assert {
        ("create_server", "tariff_id"),
        ("create_server", "months"),
        ("renew_server", "hours"),
        ("add_server_ip", "count"),
    } <= fields
    assert {("create_server", "ssh_key_ids"), ("register_domain", "years")} <= fields


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize(("id", "field"), list(integer_fields()))
def test_integer_fields_refuse_other_types(id: str, field: str, wrong: Any, any_dialect: Account) -> None:
    operation = BY_ID[id]
    CALLS[id](any_dialect)
    body = {
        name: value
        for name, value in body_of(any_dialect, operation).items()
        if name not in ("months", "hours") or field == name
    }
    if operation.id == "register_domain":
        body["name"] = "other.com"
    path = any_dialect.control("GET", "/requests")[-1]["path"]
    before = any_dialect.control("GET", "/ledger")
    many = field.endswith("_ids")
    for value in ([wrong], wrong) if many and wrong != [1] else (wrong,):
        if many and value == [1]:
            continue
        refused = any_dialect.api(operation.method, path, {**body, field: value})
        assert refused.status_code == 400, (value, refused.text)
        assert any(name.split(".")[0] in (field, "months", "hours") for name in details(refused)["fields"]), (
            details(refused)
        )
    assert any_dialect.control("GET", "/ledger") == before


NO_INTEGERS = (
    *("true", "false", "1.0", "null", "", "01", " 1", "1 ", "+1", "1e1"),
    *("\uff10", "-1", "99999999999999999999"),
)


@pytest.mark.parametrize(("id", "field"), list(integer_queries()))
def test_integer_parameters_refuse_other_text(id: str, field: str, any_dialect: Account) -> None:
    CALLS[id](any_dialect)
    path = any_dialect.control("GET", "/requests")[-1]["path"]
    query = {"tariff_id": "1"} if id == "get_quote" else {}
    refused = {
        wrong: code(any_dialect.api("GET", path, params={**query, field: wrong})) for wrong in NO_INTEGERS
    }
    assert {*refused.values()} <= {"validation_error", "invalid_period"}, refused


@pytest.mark.parametrize(
    "operation", [row for row in OPERATIONS if row.request is not None], ids=lambda row: row.id
)
def test_null_is_accepted_where_it_has_a_meaning(operation: Operation, any_dialect: Account) -> None:
    assert operation.request is not None
    CALLS[operation.id](any_dialect)
    path, body = (any_dialect.control("GET", "/requests")[-1][name] for name in ("path", "body"))
    for field in operation.request.model_fields:
        answer = any_dialect.api(operation.method, path, {**(body or {}), field: None})
        if operation.request.may_be_null(field):
            assert answer.status_code < 300, answer.text
        else:
            assert answer.status_code == 400, (field, answer.text)


# --- amounts and timestamps -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "amount",
    [
        "1e27",
        "1e400",
        "-1e27",
        "1000000000000000000000000000000",
        '"1e3"',
        '"٣.00"',
        '"1.00\\n"',
        "NaN",
        "-0.01",
    ],
)
def test_invalid_amounts(amount: str, any_dialect: Account) -> None:
    key, kind = "one-key-for-both-calls", {"Content-Type": "application/json"}
    for _ in range(2):
        refused = any_dialect.api(
            "POST",
            "/balance/topup",
            content=f'{{"amount": {amount}, "gateway": "card"}}',
            headers=kind,
            key=key,
        )
        assert refused.status_code == 400, refused.text
    assert any_dialect.control("GET", "/ledger") == []


@pytest.mark.parametrize(
    "moment",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "0000-01-01T00:00:00Z",
        "2029-02-30T00:00:00Z",
        "0",
    ],
)
def test_invalid_timestamps(moment: str, any_dialect: Account) -> None:
    for name in ("since", "until"):
        refused = any_dialect.api("GET", "/transactions", params={name: moment})
        assert (code(refused), list(details(refused)["fields"])) == ("validation_error", [name])


# --- keys and hosts ---------------------------------------------------------------------------------------

KIND, MATERIAL, _ = PUBLIC_KEY.split()


@pytest.mark.parametrize(
    "key",
    [
        f"{KIND} ÄÄÄÄ",
        f"{KIND} {MATERIAL[:-4]}",
        f"{KIND} {MATERIAL[:-24]}",
        f"{KIND} {MATERIAL}AAAA",
        f"ssh-rsa {MATERIAL}",
        f"{KIND} AAAAC3NzaC1lZDI1NTE5",
        f"{KIND} !!!!",
        f"{KIND} =",
    ],
)
def test_invalid_ssh_keys(key: str, any_dialect: Account) -> None:
    refused = any_dialect.api("POST", "/ssh-keys", {"name": "a", "public_key": key})
    assert (code(refused), details(refused)["fields"]) == ("validation_error", {"public_key": "invalid"})
    assert any_dialect.api("GET", "/ssh-keys").json()["data"] == []


@pytest.mark.parametrize(
    "hosts",
    [["1.2.3.4", "5.6.7.8"], ["a.example.net", "1.2.3.4"], ["a..example.net", "b.example.net"], ["a", "b"]],
)
def test_a_name_server_is_a_host_name(hosts: list[str], any_dialect: Account) -> None:
    domain = any_dialect.domain()
    before = any_dialect.control("GET", "/ledger")
    for method, path, body in (
        ("POST", "/domains", {"name": "new.com"}),
        ("POST", "/domains/transfers", {"name": "moved.com", "auth_code": "abc"}),
        ("PUT", f"/domains/{domain}/nameservers", {}),
    ):
        refused = any_dialect.api(method, path, {**body, "nameservers": hosts})
        assert code(refused) == "validation_error"
        assert all(name.startswith("nameservers") for name in details(refused)["fields"])
    assert any_dialect.control("GET", "/ledger") == before


# --- never 500 --------------------------------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            "\x00",
            "é",
            "1e999",
            "🙂",
            "a" * 5000,
            "https://[::1",
            "https://a.b\x00/",
            "ssh-ed25519 ÄÄÄÄ",
            "xn--a",
            "xn--zzzzz",
            "-",
        ]
    ),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


def mutated(
    draw: Callable[[st.SearchStrategy[Any]], Any], account: Account, operation: Operation
) -> httpx.Response:
    """The request of a call with some of its values replaced."""
    request = account.control("GET", "/requests")[-1]
    path = request["path"]
    if operation.path_parameters and draw(st.booleans()):
        path = "/".join(
            str(draw(st.integers(-5, 2**65))) if part.isdigit() else part for part in path.split("/")
        )
    params = {}
    if operation.query is not None:
        params = {name: draw(TEXTS) for name in operation.query.model_fields if draw(st.booleans())}
    options: dict[str, Any] = {
        "params": {name: value.encode("utf-8", "replace").decode() for name, value in params.items()}
    }
    if operation.request is not None:
        names = [*operation.request.model_fields, draw(TEXTS)]
        body = {**(request["body"] or {}), **{name: draw(VALUES) for name in names if draw(st.booleans())}}
        options["content"] = json.dumps(body).encode()
        options["headers"] = {"Content-Type": "application/json"}
    return account.call(
        account.live_key if draw(st.booleans()) else account.test_key, operation.method, path, **options
    )


WITH_INPUTS = [
    row for row in OPERATIONS if row.query is not None or row.request is not None or row.path_parameters
]


@pytest.mark.parametrize("operation", WITH_INPUTS, ids=lambda row: row.id)
def test_random_bodies_cause_no_500(operation: Operation) -> None:
    account = Account()
    account.receiver_status = 200

    @settings(
        max_examples=settings().max_examples // 8,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        account.control("POST", "/reset", {})
        dialect = data.draw(st.sampled_from(get_args(dialects.Dialect)))
        account.control("PATCH", "/service", {"dialect": dialect})
        CALLS[operation.id](account)
        response = mutated(data.draw, account, operation)
        assert response.status_code < 500, response.text
        account.control("GET", "/objects")

    run()
    assert account.clock.now() == START
