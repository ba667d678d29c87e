"""Every operation of the table answers in both dialects, with a body its model accepts and the headers every
answer has.
"""

import pytest
from pydantic import TypeAdapter

from pulumi_hosting.api.operations import BY_ID, OPERATIONS, Operation
from tests.emulator.calls import CALLS, EXPLICIT_CALLS
from tests.emulator.support import PUBLIC_KEY, code
from tests.support.account import Account


def test_explicit_calls_belong_to_operations() -> None:
    assert set(EXPLICIT_CALLS) <= set(BY_ID)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_answer(operation: Operation, any_dialect: Account, dialect: str) -> None:
    response = CALLS[operation.id](any_dialect)
    expected = operation.live_status if dialect == "live" and operation.live_status else operation.success
    assert response.status_code == expected, response.text
    assert (response.request.method, operation.auth or "authorization" not in response.request.headers) == (
        operation.method,
        True,
    )

    model = operation.responses.get(response.status_code, operation.responses[operation.success])
    if model is None:
        assert response.content == b""
    elif model is bytes:
        assert response.headers["Content-Type"] == "application/pdf"
    else:
        assert response.headers["Content-Type"] == "application/json"
        parsed = TypeAdapter(model).validate_json(response.content)
        assert parsed is not None

    assert response.headers["X-Request-ID"]
    assert response.headers["Cache-Control"] == (
        "public, max-age=300" if operation.id == "get_openapi" else "no-store"
    )
    expensive = operation.is_expensive(dict(response.request.url.params)) or (
        dialect == "live" and operation.live_expensive
    )
    if operation.auth:
        assert response.headers["X-RateLimit-Limit"] == ("20" if expensive else "120")


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_sandbox_mode(operation: Operation, any_dialect: Account) -> None:
    """A test key is answered by the operation's sandbox mode, always with X-Sandbox."""
    path = str(CALLS[operation.id](any_dialect).request.url.raw_path, "ascii").removeprefix("/v1")
    request = any_dialect.control("GET", "/requests")[-1]
    if operation.sandbox == "forbidden":
        assert code(any_dialect.test(operation.method, path, request["body"])) == "sandbox_not_supported"
        return
    before = everything(any_dialect)
    response = any_dialect.test(operation.method, path, request["body"])
    assert response.headers["X-Sandbox"] == "true"
    if operation.sandbox == "fake":
        assert everything(any_dialect) == before


def everything(account: Account) -> object:
    """All objects and movements, without sandbox servers and the times keys were used."""
    objects = account.control("GET", "/objects")
    del objects["keys"]
    objects["servers"] = [row for row in objects["servers"] if row["id"] < 9_000_000_000]
    objects["addresses"] = [row for row in objects["addresses"] if row["server_id"] < 9_000_000_000]
    return objects, account.control("GET", "/ledger")


def test_a_simulated_write_has_the_fields_of_a_real_one(any_dialect: Account, dialect: str) -> None:
    """The answers of the same call with a live and a test key fit the same model."""
    for operation in OPERATIONS:
        # After the live call the object is gone, or paid.
        if operation.sandbox != "fake" or operation.method == "DELETE" or operation.id == "pay_invoice":
            continue
        account = Account(dialect=dialect)
        live = CALLS[operation.id](account)
        request = account.control("GET", "/requests")[-1]
        body = {
            **(request["body"] or {}),
            **({"auth_code": "x1234567"} if operation.id == "transfer_domain" else {}),
        } or None
        body = (
            {**(body or {}), "name": "other.com"}
            if operation.id in ("register_domain", "transfer_domain")
            else body
        )
        if operation.id == "create_ssh_key":
            body = {"name": "b", "public_key": PUBLIC_KEY}
        response = account.test(operation.method, request["path"], body)
        assert response.status_code == live.status_code, (operation.id, response.text)
        model = operation.responses.get(response.status_code, operation.responses[operation.success])
        TypeAdapter(model).validate_json(response.content)
        assert set(response.json()) == set(live.json()), operation.id


def test_every_difference_of_the_dialects_is_used() -> None:
    """Every listed difference is used in the code and has two values."""
    from pathlib import Path

    import pulumi_hosting.emulator
    from pulumi_hosting.emulator import dialects

    root = Path(pulumi_hosting.emulator.__file__).parent
    source = "".join(path.read_text() for path in root.rglob("*.py"))
    names = {name for name, value in vars(dialects).items() if isinstance(value, dialects.Deviation)}
    assert len(names) == len(dialects.DIFFERENCES)
    for name in names:
        assert f"{name}(" in source, name
        assert vars(dialects)[name].spec != vars(dialects)[name].live
