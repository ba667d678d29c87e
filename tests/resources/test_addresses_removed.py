"""A deletion of an address or a PTR record deletes it or fails: the account is asked, whatever an answer says."""

from typing import Any

import pytest

from pulumi_hosting.client.exceptions import ApiError, HostingError
from pulumi_hosting.planning import engine
from pulumi_hosting.resources.ptr import PTR
from pulumi_hosting.resources.server_ip import SERVER_IP
from pulumi_hosting.resources.server_powers import SERVER
from tests.resources.conftest import GOOD, House

NOT_FOUND = {"status": 404, "code": "not_found"}
BUSY = {"status": 409, "code": "operation_in_progress"}


@pytest.fixture
def server(house: House) -> str:
    return house.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id


def made(house: House, resource: Any, **inputs: Any) -> Any:
    checked = engine.check(resource, inputs)
    assert not checked.failures
    return engine.create(house.context(identity=f"pulumi:t/dev/{resource.kind}/it"), resource, checked.inputs)


def remove(house: House, resource: Any, state: Any) -> None:
    engine.delete(house.context(identity=f"pulumi:t/dev/{resource.kind}/it"), resource, state)


def bought(house: House) -> list[Any]:
    return [row for row in house.control("GET", "/objects")["addresses"] if row.get("bought")]


def records(house: House) -> list[str]:
    return [row["ptr"] for row in house.control("GET", "/objects")["addresses"] if row["ptr"]]


@pytest.mark.parametrize("action", [NOT_FOUND, {"status": 502, "code": "upstream_error"}, {"drop": "before"}])
def test_an_address_that_is_still_there_was_not_released(house: House, server: str, action: dict[str, Any]) -> None:
    state = made(house, SERVER_IP, server_id=server)
    house.arm(action, path="^/servers/[0-9]+/ips/[0-9]+$", method="DELETE", times=9)
    with pytest.raises(HostingError):
        remove(house, SERVER_IP, state)
    assert len(bought(house)) == 1
    house.control("DELETE", "/faults")
    remove(house, SERVER_IP, state)
    assert bought(house) == []
    remove(house, SERVER_IP, state)


@pytest.mark.parametrize("action", [{"drop": "after"}, BUSY])
def test_an_address_is_released_through_a_lost_answer_and_a_busy_server(house: House, server: str, action: dict[str, Any]) -> None:
    state = made(house, SERVER_IP, server_id=server)
    house.arm(action, path="^/servers/[0-9]+/ips/[0-9]+$", method="DELETE", times=2)
    remove(house, SERVER_IP, state)
    assert bought(house) == []


@pytest.mark.parametrize("action", [NOT_FOUND, BUSY, {"status": 502, "code": "upstream_error"}])
def test_a_record_that_is_still_there_was_not_cleared(house: House, server: str, action: dict[str, Any]) -> None:
    state = made(house, PTR, server_id=server, domain="www.example.com")
    house.arm(action, path="/ptr$", method="PUT", times=9)
    with pytest.raises(ApiError):
        remove(house, PTR, state)
    assert records(house) == ["www.example.com"]
    house.control("DELETE", "/faults")
    remove(house, PTR, state)
    assert records(house) == []


def test_a_deleted_server_names_the_addresses_that_go_with_it(house: House, server: str) -> None:
    row = made(house, SERVER_IP, server_id=server)
    state = engine.read(house.context(), SERVER, SERVER.State.partial({"id": server}))
    assert state is not None
    house.told.clear()
    engine.delete(house.context(), SERVER, state)
    id = row.id.rpartition("/")[2]
    assert house.told == [f"server {server} deleted with address {row.address} (id {id}), 2.00 EUR a month; 7.00 EUR credited"]
    assert house.living == bought(house) == []


def test_a_server_is_deleted_though_its_addresses_cannot_be_listed(house: House, server: str) -> None:
    made(house, SERVER_IP, server_id=server)
    state = engine.read(house.context(), SERVER, SERVER.State.partial({"id": server}))
    assert state is not None
    house.arm({"status": 502, "code": "upstream_error"}, path="^/servers/[0-9]+/ips$", method="GET", times=9)
    house.told.clear()
    engine.delete(house.context(), SERVER, state)
    assert house.told == [f"server {server} deleted with its further addresses; 7.00 EUR credited"]
    assert house.living == bought(house) == []
