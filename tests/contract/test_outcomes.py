"""A keyed call that failed can be repeated with the Idempotency-Key of its error: it is charged once."""

from collections.abc import Callable
from typing import Any

import pytest

from pulumi_hosting.api.operations import OPERATIONS
from pulumi_hosting.client import exceptions
from tests.contract.harness import ApiHarness

KEYED = [operation.id for operation in OPERATIONS if operation.is_keyed]
LOST = {"drop": "after"}
FAILS = {"status": 503, "code": "temporarily_unavailable"}


def ready(api: ApiHarness, operation_id: str) -> Callable[..., Any]:
    """What sends the operation for an object made for it, with a key if one is given."""
    live = api.live
    make: dict[str, Callable[[], tuple[tuple[int, ...], dict[str, Any]]]] = {
        "create_topup": lambda: ((), {"amount": "10.00", "gateway": "card"}),
        "pay_invoice": lambda: ((api.unpaid_invoice_id(),), {}),
        "create_server": lambda: ((), {"tariff_id": api.tariff().id, "os": "debian-12", "name": "web"}),
        "delete_server": lambda: ((api.server().id,), {}),
        "renew_server": lambda: ((api.server().id,), {"months": 1}),
        "add_server_ip": lambda: ((api.server().id,), {}),
        "register_domain": lambda: ((), {"name": "example.com", "privacy": True}),
        "renew_domain": lambda: ((api.domain_id(),), {"years": 1}),
        "transfer_domain": lambda: ((), {"name": "example.net", "auth_code": "code-1234"}),
    }
    ids, body = make[operation_id]()
    return lambda key=None: live.call(operation_id, *ids, body=body, idempotency_key=key)


def movements(api: ApiHarness) -> int:
    return len(api.control("GET", "/ledger"))


@pytest.mark.parametrize("operation_id", KEYED)
@pytest.mark.parametrize("faults", [[LOST], [LOST, FAILS], [FAILS]], ids=["lost", "lost, then 503", "503"])
def test_a_repetition_with_the_errors_key_is_carried_out_once(
    api: ApiHarness, operation_id: str, faults: list[dict[str, Any]]
) -> None:
    send = ready(api, operation_id)
    before = movements(api)
    operation = next(row for row in OPERATIONS if row.id == operation_id)
    path = (
        "^"
        + operation.path.replace("{server_id}", "[0-9]+")
        .replace("{domain_id}", "[0-9]+")
        .replace("{invoice_id}", "[0-9]+")
        + "$"
    )
    for number, fault in enumerate(faults):
        last = number == len(faults) - 1
        body = {
            "method": operation.method,
            "path": path,
            "action": fault,
            "after": number,
            "times": 9 if last else 1,
        }
        api.control("POST", "/faults", body)
    with pytest.raises(exceptions.CallError) as caught:
        send()
    error = caught.value
    assert error.idempotency_key
    assert error.request_id
    assert error.attempts == 6
    assert error.outcome_unknown == (LOST in faults)
    processed = movements(api)
    api.control("DELETE", "/faults")
    send(error.idempotency_key)
    after = movements(api)
    if LOST in faults:
        assert after == processed
        assert f'idempotency_key="{error.idempotency_key}"' in str(error)
    else:
        assert processed == before
        assert "may have been processed" not in str(error)
    api.control("POST", "/clock", {"advance": 10})
    send(error.idempotency_key)
    assert movements(api) == after
