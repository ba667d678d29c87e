"""Registrations that come to nothing, and names that another stack registers at the same moment. Each command
ends, says where the money is, and takes over nothing that it did not order.
"""

import re
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import DomainUnavailable
from pulumi_hosting.exactly_once import domain_order
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.resources.domain_powers import DOMAIN
from pulumi_hosting.session.errors import Failed, NotOurs, ResourceError, StillOrdered
from pulumi_hosting.session.request import Request
from tests.resources.conftest import AtTheOrder, EmulatorClock, ResourceHarness

DEV, PROD = "pulumi:t/dev/domain/shop", "pulumi:t/prod/domain/shop"
NAME = "example-1.com"
DAY = 86400
INPUTS = check(DOMAIN, {"name": NAME}).inputs


def request(harness: ResourceHarness, identity: str = DEV, **more: Any) -> Request:
    return harness.context(identity=identity, **more)


def create(harness: ResourceHarness, identity: str = DEV, **more: Any) -> Any:
    return apply.create(request(harness, identity, **more), DOMAIN, INPUTS)


def rows(harness: ResourceHarness) -> list[tuple[int, str]]:
    return [(row["id"], row["status"]) for row in harness.control("GET", "/objects")["domains"]]


def invoice(harness: ResourceHarness) -> int:
    (row,) = harness.control("GET", "/objects")["invoices"]
    found: int = row["id"]
    return found


def money(harness: ResourceHarness) -> tuple[int, Decimal]:
    """How often something was charged, and what is kept of it."""
    ledger = harness.account.ledger()
    debits = [Decimal(row["amount"]) for row in ledger if row["direction"] == "debit"]
    credits = [Decimal(row["amount"]) for row in ledger if row["direction"] == "credit"]
    return len(debits), sum(debits, Decimal(0)) - sum(credits, Decimal(0))


def waited(of: Request) -> float:
    clock = of.session.clock
    assert isinstance(clock, EmulatorClock)
    return clock.elapsed


def later(harness: ResourceHarness, days: float) -> None:
    harness.control("POST", "/clock", {"advance": days * DAY})


def pending(harness: ResourceHarness, registrar: str = "never") -> Any:
    """A registration that the registrar has not decided about."""
    harness.fault({"registrar": registrar}, path="^/domains$")
    state = create(harness)
    assert state.status == "pending"
    return state


def cancel(harness: ResourceHarness, refund: bool) -> None:
    """The registrar refused it, as staff does by hand."""
    (row,) = rows(harness)
    harness.control("PATCH", f"/domains/{row[0]}", {"status": "cancelled"})
    if refund:
        harness.control("POST", f"/invoices/{invoice(harness)}/refund", {})


def sentence(harness: ResourceHarness, refund: bool) -> str:
    became, money = ("refused", "returned") if refund else ("cancelled", "not returned")
    return f"the registration of {NAME} was {became}; 12.00 EUR were {money}, invoice {invoice(harness)}"


refunded = pytest.mark.parametrize("refund", [True, False])


# --- pending, then refused


@refunded
@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
def test_a_registration_that_was_refused_is_gone_when_it_is_read(
    harness: ResourceHarness, refund: bool, days: float
) -> None:
    state = pending(harness)
    cancel(harness, refund)
    later(harness, days)
    says = sentence(harness, refund)
    assert apply.read(request(harness), DOMAIN, state) is None
    told = [line for line in harness.messages if "it is ordered again if it is still declared" in line]
    assert [line.startswith(says) for line in told] == [True]


@refunded
def test_a_change_of_one_that_was_refused_says_so(harness: ResourceHarness, refund: bool) -> None:
    state = pending(harness)
    cancel(harness, refund)
    wanted = check(DOMAIN, {"name": NAME, "auto_renew": True}).inputs
    with pytest.raises(ResourceError, match=re.escape(sentence(harness, refund)) + ".*Next: "):
        DOMAIN.update(request(harness), state, wanted, frozenset({"auto_renew"}))


@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
def test_one_whose_charge_was_returned_is_forgotten_at_once(harness: ResourceHarness, days: float) -> None:
    state = pending(harness)
    cancel(harness, refund=True)
    later(harness, days)
    of = request(harness)
    apply.delete(of, DOMAIN, state)
    assert waited(of) < 60
    assert f"{sentence(harness, True)}; nothing is left to remove" in harness.messages


def test_one_whose_charge_is_kept_stops_the_deletion_and_says_where_the_money_is(
    harness: ResourceHarness,
) -> None:
    state = pending(harness)
    cancel(harness, refund=False)
    of = request(harness)
    with pytest.raises(StillOrdered, match=re.escape(sentence(harness, False)) + "; nothing was deleted"):
        apply.delete(of, DOMAIN, state)
    assert waited(of) < 60


@refunded
@pytest.mark.parametrize("days", [0, 30])
def test_one_that_was_registered_by_hand_after_the_refusal_is_another_domain(
    harness: ResourceHarness, refund: bool, days: float
) -> None:
    state = pending(harness)
    cancel(harness, refund)
    new = harness.control("POST", "/domains", {"name": NAME})["id"]
    later(harness, days)
    assert apply.read(request(harness), DOMAIN, state) is None
    with pytest.raises(NotOurs, match=f"is gone, and domain {new} has its name; nothing was changed"):
        apply.delete(request(harness), DOMAIN, state)


def test_no_charge_of_a_moment_ago_is_announced_for_an_order_that_was_cancelled(
    harness: ResourceHarness,
) -> None:
    """As on an emulator whose clock stands still: no time tells the replay from a new order."""
    pending(harness)
    cancel(harness, refund=False)
    state = create(harness)
    debits = [row["at"] for row in harness.account.ledger() if row["direction"] == "debit"]
    assert len(debits) == 1 + (state.charged is not None)


@refunded
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("readings", [{}, {"refusals_stored": False}], ids=str)
def test_the_next_run_registers_it_again_and_announces_no_replay(
    harness: ResourceHarness, refund: bool, elsewhere: bool, readings: dict[str, Any]
) -> None:
    harness.account.variant(**readings)
    pending(harness)
    cancel(harness, refund)
    later(harness, 0.01)
    if elsewhere:
        harness.another_machine()
    state = create(harness)
    assert state.status == "active"
    assert [status for id, status in rows(harness) if str(id) == state.id] == ["active"]
    assert money(harness) == (2, Decimal("12.00") if refund else Decimal("24.00"))


@pytest.mark.parametrize("days", [1.1, 6.9, 8, 30])
def test_a_refusal_of_the_registrar_itself_ends_likewise(harness: ResourceHarness, days: float) -> None:
    state = pending(harness, "refused")
    later(harness, days)
    assert apply.read(request(harness), DOMAIN, state) is None
    assert [line for line in harness.messages if line.startswith(sentence(harness, True))]
    again = create(harness)
    assert (again.status, money(harness)) == ("active", (2, Decimal("12.00")))


# --- pending and never decided


@pytest.mark.parametrize("days", [0, 6.9])
def test_one_that_is_still_pending_is_neither_ordered_again_nor_forgotten(
    harness: ResourceHarness, days: float
) -> None:
    state = pending(harness)
    later(harness, days)
    seen = apply.read(request(harness), DOMAIN, state)
    assert seen is not None
    assert seen.status == "pending"
    assert money(harness) == (1, Decimal("12.00"))


def unlisted(harness: ResourceHarness) -> Any:
    """An order that was accepted, and that no list ever shows."""
    state = pending(harness)
    (row,) = rows(harness)
    harness.control("DELETE", f"/domains/{row[0]}")
    return state.model_copy(update={"id": NAME})


def test_an_order_that_no_list_shows_may_still_come_for_seven_days(harness: ResourceHarness) -> None:
    state = unlisted(harness)
    later(harness, 6.9)
    assert apply.read(request(harness), DOMAIN, state) == state
    with pytest.raises(StillOrdered, match=f"the registration of {NAME} is "):
        apply.delete(request(harness, wait_timeout=30.0), DOMAIN, state)


@pytest.mark.parametrize("days", [8, 30])
def test_after_seven_days_it_never_arrived(harness: ResourceHarness, days: float) -> None:
    state = unlisted(harness)
    later(harness, days)
    assert apply.read(request(harness), DOMAIN, state) is None
    of = request(harness)
    apply.delete(of, DOMAIN, state)
    assert waited(of) < 60
    told = [line for line in harness.messages if f"the registration of {NAME} never arrived" in line]
    assert len(told) == 2
    again = create(harness)
    assert (again.status, money(harness)[0]) == ("active", 2)


# --- another stack at the same moment


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize("registrar", [None, "never"])
def test_a_name_that_another_stack_registers_at_the_same_moment_is_refused_and_not_adopted(
    harness: ResourceHarness, registrar: str | None
) -> None:
    other = list[Any]()

    def register() -> None:
        if registrar:
            harness.fault({"registrar": registrar}, path="^/domains$")
        other.append(create(harness, PROD))

    of = request(harness, transport=AtTheOrder(line="POST /v1/domains", meanwhile=register))
    with pytest.raises(DomainUnavailable) as caught:
        apply.create(of, DOMAIN, INPUTS)
    assert caught.value.code in ("domain_taken", "domain_exists")
    assert not of.taken_over
    assert len(rows(harness)) == 1
    assert money(harness) == (1, Decimal("12.00"))
    assert other[0].name == NAME
    with pytest.raises(ResourceError, match=r"nothing was ordered. Next: set adopt_id"):
        create(harness)  # and the next run does not adopt it either


@pytest.mark.usefixtures("machines")
def test_after_an_unknown_outcome_a_domain_that_is_found_is_what_was_ordered(
    harness: ResourceHarness,
) -> None:
    harness.fault({"drop": "after"}, path="^/domains$", times=99)
    state = create(harness)
    assert [(int(state.id), "active")] == rows(harness)
    assert money(harness) == (1, Decimal("12.00"))


def test_two_runs_of_one_name_on_one_machine_take_turns(harness: ResourceHarness) -> None:
    first = create(harness)
    again = create(harness)
    assert (first.id, again.id) == (again.id, str(rows(harness)[0][0]))
    assert money(harness)[0] == 1


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("Domain shop.com", True),
        ("Refund: Domain SHOP.com.", True),
        ("Domain my-shop.com", False),
        ("Domain www.shop.com", False),
        ("Domain shop.com.example", False),
        ("Domain shop.community", False),
    ],
)
def test_the_invoice_of_a_longer_name_is_another_ones(text: str, is_meant: bool) -> None:
    invoice = m.Invoice(
        id=1,
        status="paid",
        amount=Decimal("9.00"),
        currency="EUR",
        type="domain_registration",
        description=text,
    )
    request: Any = None  # nothing is asked: the invoice names no domain by its number
    assert domain_order.concerns(request, invoice, "shop.com") is is_meant


@pytest.mark.usefixtures("machines")
def test_a_name_that_another_stack_took_before_a_failure_is_not_its_own(harness: ResourceHarness) -> None:
    """The service says that it carried nothing out, so the domain that is there by then is another's."""

    def taken() -> None:
        create(harness, "pulumi:t/dev/domain/shop")
        harness.fault({"status": 502, "code": "upstream_error"}, path="^/domains$", times=99)

    transport = AtTheOrder(line="POST /v1/domains", meanwhile=taken)
    with pytest.raises(Failed, match=r"invoice [0-9]+ is paid, and nothing shows for it"):
        create(harness, "pulumi:t/prod/domain/shop", transport=transport)
    assert len(rows(harness)) == 1
    assert harness.charges == 1
