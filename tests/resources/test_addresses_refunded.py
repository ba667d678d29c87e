"""Addresses whose purchase comes to nothing: refunded at once, refunded later, or never assigned. Each
command ends, says where the money is, and names a way out.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.planning import apply
from pulumi_hosting.resources.server_ip import SERVER_IP, ServerIpState
from pulumi_hosting.session.errors import Failed, OrderFailed, ResourceError, StillOrdered, WaitTimeout
from pulumi_hosting.session.request import Request
from tests.resources.addresses import DAY, A, bought, buy, debits, inputs_of
from tests.resources.conftest import AtTheOrder, EmulatorClock, ResourceHarness

PURCHASE = "^/servers/[0-9]+/ips$"


def kept(harness: ResourceHarness) -> Decimal:
    """What purchases of addresses cost, less what was returned."""
    invoices = harness.control("GET", "/objects")["invoices"]
    ids = {row["id"] for row in invoices if row["type"] == "ip_purchase"}
    signs = {"debit": 1, "credit": -1}
    rows = [row for row in harness.account.ledger() if row["invoice_id"] in ids]
    return sum((Decimal(row["amount"]) * signs[row["direction"]] for row in rows), Decimal(0))


def purchases(harness: ResourceHarness) -> int:
    rows = [row for row in harness.account.ledger() if row["operation"] == "add_server_ip"]
    return sum(row["direction"] == "debit" for row in rows)


def request(harness: ResourceHarness, **more: Any) -> Request:
    return harness.context(identity=A, key=harness.roomy_key(), **more)


def waited(of: Request) -> float:
    clock = of.session.clock
    assert isinstance(clock, EmulatorClock)
    return clock.elapsed


def not_assigned(harness: ResourceHarness, server: str, **more: Any) -> tuple[ServerIpState, int]:
    """A purchase whose address does not come, as the state has it, and its invoice."""
    harness.fault({"ip": "never"}, path=PURCHASE)
    saved: list[Any] = []
    with pytest.raises(WaitTimeout, match=r"is not assigned after .*the run waits for it until seven days"):
        apply.create(request(harness, **more), SERVER_IP, inputs_of(server), saved.append)
    (invoice,) = [
        row["id"]
        for row in harness.control("GET", "/objects")["invoices"]
        if row["type"] == "ip_purchase" and row["status"] == "paid"
    ]
    return saved[-1], invoice


def refund(harness: ResourceHarness, invoice: int) -> None:
    harness.control("POST", f"/invoices/{invoice}/refund", {})


def later(harness: ResourceHarness, days: float) -> None:
    harness.control("POST", "/clock", {"advance": days * DAY})


# --- refunded at once


def test_a_purchase_that_failed_and_was_refunded_is_no_purchase(
    harness: ResourceHarness, server: str
) -> None:
    harness.fault({"refunded": 502, "code": "upstream_error"}, path=PURCHASE)
    state = buy(harness, server)
    assert [state.id] == bought(harness)
    assert (purchases(harness), kept(harness)) == (2, Decimal("2.00"))


@pytest.mark.parametrize("readings", [{}, {"refusals_stored": False}], ids=str)
def test_one_that_fails_and_is_refunded_again_is_reported_at_once_and_a_later_run_buys(
    harness: ResourceHarness, server: str, readings: dict[str, Any]
) -> None:
    harness.account.variant(**readings)
    harness.fault({"refunded": 502, "code": "upstream_error"}, path=PURCHASE, times=99)
    for _ in range(2):
        context = request(harness)
        with pytest.raises(
            Failed, match=r"was refunded; 2\.00 EUR were returned, invoice [0-9]+. Next: run again"
        ):
            apply.create(context, SERVER_IP, inputs_of(server))
        assert waited(context) < 60
    assert (bought(harness), kept(harness)) == ([], Decimal("0.00"))
    harness.control("DELETE", "/faults")
    for another_machine in (False, True):
        if another_machine:
            harness.another_machine()
        assert [buy(harness, server).id] == bought(harness)
    assert kept(harness) == Decimal("2.00")


# --- refunded after it was accepted


def test_the_wait_for_an_address_ends_once_its_purchase_is_refunded(
    harness: ResourceHarness, server: str
) -> None:
    state, invoice = not_assigned(harness, server, wait_timeout=30.0)
    refund(harness, invoice)
    ways: tuple[Callable[[Any], Any], ...] = (
        lambda of: SERVER_IP.wait(of, state),
        lambda of: SERVER_IP.update(of, state, inputs_of(server), frozenset()),
    )
    for do in ways:
        context = request(harness)
        with pytest.raises(
            OrderFailed,
            match=rf"the purchase of an address for server {server} was refunded; 2\.00 EUR were returned, "
            rf"invoice {invoice}. Next: pulumi up --refresh",
        ):
            do(context)
        assert waited(context) < 60
    assert kept(harness) == Decimal("0.00")


def test_a_refunded_purchase_is_gone_when_it_is_read_and_the_next_run_buys(
    harness: ResourceHarness, server: str
) -> None:
    state, invoice = not_assigned(harness, server, wait_timeout=30.0)
    assert apply.read(request(harness), SERVER_IP, state) == state
    refund(harness, invoice)
    assert apply.read(request(harness), SERVER_IP, state) is None
    assert any(
        f"was refunded; 2.00 EUR were returned, invoice {invoice}; another is bought if it is still declared"
        in line
        for line in harness.messages
    )
    assert [buy(harness, server).id] == bought(harness)
    assert kept(harness) == Decimal("2.00")


@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
def test_a_refunded_purchase_is_forgotten_at_once(harness: ResourceHarness, server: str, days: float) -> None:
    state, invoice = not_assigned(harness, server, wait_timeout=30.0)
    refund(harness, invoice)
    later(harness, days)
    context = request(harness)
    apply.delete(context, SERVER_IP, state)
    assert waited(context) < 60
    assert any(
        f"2.00 EUR were returned, invoice {invoice}; nothing is left to remove" in line
        for line in harness.messages
    )


# --- never assigned


@pytest.mark.parametrize("elsewhere", [False, True])
def test_one_that_may_still_come_is_neither_bought_again_nor_forgotten(
    harness: ResourceHarness, server: str, elsewhere: bool
) -> None:
    state, invoice = not_assigned(harness, server, wait_timeout=30.0)
    if elsewhere:
        harness.another_machine()
    later(harness, 6.9)
    assert apply.read(request(harness), SERVER_IP, state) == state
    with pytest.raises(
        StillOrdered,
        match=rf"is on its way; 2\.00 EUR were charged, invoice {invoice}; nothing was deleted",
    ):
        apply.delete(request(harness, wait_timeout=30.0), SERVER_IP, state)
    with pytest.raises(
        ResourceError, match=r"nothing was bought. Next: run again later, or set order_attempt to 1"
    ):
        buy(harness, server, wait_timeout=30.0)
    assert kept(harness) == Decimal("2.00")


def test_it_never_keeps_its_server_from_being_deleted(harness: ResourceHarness, server: str) -> None:
    """The server is not declared any more, and goes after the address."""
    state, invoice = not_assigned(harness, server, wait_timeout=30.0)
    context = request(harness, wait_timeout=30.0, stays=lambda kind, id: False)
    apply.delete(context, SERVER_IP, state)
    assert any(
        f"2.00 EUR were charged, invoice {invoice}; if it still comes, it goes when server {server} is "
        "deleted" in line
        for line in harness.messages
    )


@pytest.mark.parametrize("days", [7.1, 30])
def test_after_seven_days_it_never_arrived(harness: ResourceHarness, server: str, days: float) -> None:
    state, invoice = not_assigned(harness, server, wait_timeout=30.0)
    later(harness, days)
    money = f"never arrived; 2.00 EUR were not returned, invoice {invoice}"
    context = request(harness)
    with pytest.raises(OrderFailed, match=money.replace(".", r"\.")):
        SERVER_IP.wait(context, state)
    assert waited(context) < 60
    assert apply.read(request(harness), SERVER_IP, state) is None
    context = request(harness)
    apply.delete(context, SERVER_IP, state)
    assert waited(context) < 60
    assert [line for line in harness.messages if f"{money}; nothing is left to remove" in line]


def test_after_seven_days_the_setting_that_is_named_buys_another(
    harness: ResourceHarness, server: str
) -> None:
    not_assigned(harness, server, wait_timeout=30.0)
    later(harness, 7.1)
    with pytest.raises(
        ResourceError, match="Next: run again later, or set order_attempt to 1 to buy another"
    ):
        buy(harness, server, wait_timeout=30.0)
    state = buy(harness, server, order_attempt=1, wait_timeout=30.0)
    assert [state.id] == bought(harness)
    assert purchases(harness) == 2
    assert Decimal("2.00") < kept(harness) < Decimal("4.00")  # until the due date of the server


def test_with_its_server_a_purchase_is_gone(harness: ResourceHarness, server: str) -> None:
    state, _ = not_assigned(harness, server, wait_timeout=30.0)
    harness.control("DELETE", f"/servers/{server}")
    assert apply.read(request(harness), SERVER_IP, state) is None
    apply.delete(request(harness), SERVER_IP, state)


def test_an_address_that_came_beside_a_failure_is_not_its_own(harness: ResourceHarness, server: str) -> None:
    """The service says that it carried nothing out, so the address that is there by then is another's."""

    def bought_by_hand() -> None:
        harness.context().client.servers.ips.add(int(server), idempotency_key="by-hand-by-hand-by-hand")
        harness.fault({"status": 502, "code": "upstream_error"}, path="/ips$", times=99)

    transport = AtTheOrder(line=f"POST /v1/servers/{server}/ips", meanwhile=bought_by_hand)
    with pytest.raises(Failed, match=r"invoice [0-9]+ is paid, and nothing shows for it"):
        buy(harness, server, transport=transport)
    assert len(bought(harness)) == len(debits(harness)) == 1
