"""``client.orders.wait``."""

import copy
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import NotFound, OrderFailed, WaitTimeout
from tests.client.support import FakeTime, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")

SERVER = {
    "id": 7,
    "name": "web",
    "status": "active",
    "billing": {"cycle": "monthly", "recurring_amount": "3.00"},
    "created_at": "2026-01-02T03:04:05Z",
}


def order(status: str, **fields: Any) -> Any:
    return answer(200, {"invoice_id": 3, "status": status, **fields})


def test_an_order_is_read_until_its_server_is_there() -> None:
    time = FakeTime()
    client, script = scripted(
        order("provisioning"),
        order("processing"),
        order("active"),  # the server does not show yet
        order("active", server_id=7),
        answer(200, SERVER),
        time=time,
    )
    told: list[str] = []
    server = client.orders.wait(3, on_wait=lambda found: told.append(found.status))
    assert server.id == 7
    assert told == ["provisioning", "processing", "active"]
    assert time.slept == [0.5, 1.0, 2.0]
    assert [request.url.path for request in script.requests] == ["/v1/orders/3"] * 4 + ["/v1/servers/7"]


def test_a_server_that_exists_already_needs_no_request() -> None:
    client, script = scripted(answer(201, {"server": SERVER, "charged": "3.00"}))
    created = client.servers.create(tariff_id=1, os="debian-12")
    assert isinstance(created, m.ServerCreated)
    assert client.orders.wait(created) is created.server
    assert len(script.requests) == 1


def test_an_order_that_was_accepted_is_waited_for() -> None:
    client, script = scripted(
        answer(202, {"invoice_id": 3, "status": "provisioning"}),
        order("active", server_id=7),
        answer(200, SERVER),
    )
    assert client.orders.wait(client.servers.create(tariff_id=1, os="debian-12")).name == "web"
    assert script.requests[1].url.path == "/v1/orders/3"


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_an_order_that_ended_without_a_server_is_an_error(status: str) -> None:
    client, _ = scripted(order("provisioning"), order(status, failure_reason="no capacity"))
    with pytest.raises(OrderFailed, match=f"order 3 ended as {status}: no capacity") as caught:
        client.orders.wait(3)
    for error in (caught.value, copy.copy(caught.value)):
        assert (error.invoice_id, error.status) == (3, status)


def test_a_wait_ends_in_time_and_says_how_to_go_on() -> None:
    time = FakeTime()
    client, _ = scripted(order("provisioning"), time=time)
    with pytest.raises(WaitTimeout, match=r"client\.orders\.wait\(3\)") as caught:
        client.orders.wait(3, timeout=20.0, poll_interval=4.0)
    assert caught.value.id == "3"
    assert sum(time.slept) >= 20.0
    assert max(time.slept) == 4.0


def test_an_order_that_is_not_paid_is_not_waited_for() -> None:
    time = FakeTime()
    client, _ = scripted(order("invoice_created"), time=time)
    with pytest.raises(WaitTimeout, match=r"Next: client\.invoices\.pay\(3\)"):
        client.orders.wait(3)
    assert time.slept == []


def test_an_order_that_does_not_exist_is_not_found() -> None:
    client, _ = scripted(refusal(404, "not_found"), knows_owner=True)
    with pytest.raises(NotFound):
        client.orders.wait(3)


def test_the_reads_of_a_wait_yield_to_others() -> None:
    from pulumi_hosting.client import polling as polls

    client, _ = scripted(order("provisioning"), order("active", server_id=7), answer(200, SERVER))
    announced: list[bool] = []
    take = polls.take

    def counted() -> bool:
        announced.append(take())
        return announced[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(polls, "take", counted)
        client.orders.wait(3)
    assert announced == [False, True, False]
