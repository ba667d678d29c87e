"""Every operation has one handler; one without a handler is answered with 501."""

import pytest

from pulumi_hosting.api.operations import BY_ID
from pulumi_hosting.emulator import middleware
from pulumi_hosting.emulator.handlers import HANDLERS
from tests.support.account import Account


def test_every_operation_has_a_handler() -> None:
    assert sorted(set(BY_ID) - set(HANDLERS)) == []


def test_every_handler_belongs_to_an_operation() -> None:
    assert sorted(set(HANDLERS) - set(BY_ID)) == []


def test_an_operation_without_a_handler_answers_501(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        middleware, "HANDLERS", {name: handler for name, handler in HANDLERS.items() if name != "get_account"}
    )
    response = account.api("GET", "/account")
    assert response.status_code == 501
    assert response.json()["error"] == {
        "code": "not_implemented",
        "message": "the emulator has no handler for get_account",
        "request_id": response.headers["X-Request-ID"],
    }
    assert account.call(None, "GET", "/account").status_code == 401
    assert account.api("GET", "/balance").status_code == 200
