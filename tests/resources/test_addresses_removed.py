"""A deletion of an address or a PTR record deletes it or fails: the account is asked, whatever an answer
says.
"""

from typing import Any

import pytest

from pulumi_hosting.client.exceptions import ApiError, HostingError
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.ptr import PTR
from pulumi_hosting.resources.server_ip import SERVER_IP
from pulumi_hosting.resources.server_powers import SERVER
from tests.resources.conftest import GOOD, ResourceHarness

NOT_FOUND = {"status": 404, "code": "not_found"}
BUSY = {"status": 409, "code": "operation_in_progress"}
STATE = {"status": 409, "code": "service_state"}


@pytest.fixture
def server(harness: ResourceHarness) -> str:
    return harness.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id


def made(harness: ResourceHarness, resource: Any, **inputs: Any) -> Any:
    checked = check(resource, inputs)
    assert not checked.failures
    return apply.create(
        harness.context(identity=f"pulumi:t/dev/{resource.kind}/it"), resource, checked.inputs
    )


def remove(harness: ResourceHarness, resource: Any, state: Any) -> None:
    apply.delete(harness.context(identity=f"pulumi:t/dev/{resource.kind}/it"), resource, state)


def bought(harness: ResourceHarness) -> list[Any]:
    return [row for row in harness.control("GET", "/objects")["addresses"] if row.get("bought")]


def records(harness: ResourceHarness) -> list[str]:
    return [row["ptr"] for row in harness.control("GET", "/objects")["addresses"] if row["ptr"]]


@pytest.mark.parametrize("action", [NOT_FOUND, {"status": 502, "code": "upstream_error"}, {"drop": "before"}])
def test_an_address_that_is_still_there_was_not_released(
    harness: ResourceHarness, server: str, action: dict[str, Any]
) -> None:
    state = made(harness, SERVER_IP, server_id=server)
    harness.fault(action, path="^/servers/[0-9]+/ips/[0-9]+$", method="DELETE", times=9)
    with pytest.raises(HostingError):
        remove(harness, SERVER_IP, state)
    assert len(bought(harness)) == 1
    harness.control("DELETE", "/faults")
    remove(harness, SERVER_IP, state)
    assert bought(harness) == []
    remove(harness, SERVER_IP, state)


@pytest.mark.parametrize("action", [{"drop": "after"}, BUSY])
def test_an_address_is_released_through_a_lost_answer_and_a_busy_server(
    harness: ResourceHarness, server: str, action: dict[str, Any]
) -> None:
    state = made(harness, SERVER_IP, server_id=server)
    harness.fault(action, path="^/servers/[0-9]+/ips/[0-9]+$", method="DELETE", times=2)
    remove(harness, SERVER_IP, state)
    assert bought(harness) == []


@pytest.mark.parametrize("action", [NOT_FOUND, BUSY, STATE, {"status": 502, "code": "upstream_error"}])
def test_a_record_that_is_still_there_was_not_cleared(
    harness: ResourceHarness, server: str, action: dict[str, Any]
) -> None:
    state = made(harness, PTR, server_id=server, domain="www.example.com")
    harness.fault(action, path="/ptr$", method="PUT", times=9)
    with pytest.raises(ApiError):
        remove(harness, PTR, state)
    assert records(harness) == ["www.example.com"]
    harness.control("DELETE", "/faults")
    remove(harness, PTR, state)
    assert records(harness) == []


def test_a_record_went_with_a_server_that_is_deleted_and_still_listed(
    harness: ResourceHarness, server: str
) -> None:
    harness.account.variant(deleted_servers="listed")
    state = made(harness, PTR, server_id=server, domain="a.example.com")
    harness.control("DELETE", f"/servers/{server}")
    remove(harness, PTR, state)


def test_a_deleted_server_names_the_addresses_that_go_with_it(harness: ResourceHarness, server: str) -> None:
    row = made(harness, SERVER_IP, server_id=server)
    state = apply.read(harness.context(), SERVER, SERVER.State.partial({"id": server}))
    assert state is not None
    harness.messages.clear()
    apply.delete(harness.context(), SERVER, state)
    id = row.id.rpartition("/")[2]
    assert harness.messages == [
        f"server {server} deleted with address {row.address} (id {id}), 2.00 EUR a month; 7.00 EUR credited"
    ]
    assert harness.living == bought(harness) == []


def test_a_server_is_deleted_though_its_addresses_cannot_be_listed(
    harness: ResourceHarness, server: str
) -> None:
    made(harness, SERVER_IP, server_id=server)
    state = apply.read(harness.context(), SERVER, SERVER.State.partial({"id": server}))
    assert state is not None
    harness.fault(
        {"status": 502, "code": "upstream_error"}, path="^/servers/[0-9]+/ips$", method="GET", times=9
    )
    harness.messages.clear()
    apply.delete(harness.context(), SERVER, state)
    assert harness.messages == [f"server {server} deleted with its further addresses; 7.00 EUR credited"]
    assert harness.living == bought(harness) == []
