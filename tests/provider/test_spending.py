"""What a preview shows of a price, what stops an order, and how processes of one run count together. No
account is needed.
"""

import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.shared_store import SharedStore
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.planning.budget import Budget, Limit
from pulumi_hosting.provider import spending
from pulumi_hosting.provider.run_ledger import RunLedger
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from tests.planning.gadgets import FIVE, ME, Client, Gadget, GadgetInputs, Plain, Step, request, state

A = GadgetInputs(name="a", size=2)
NAMED = "gadget a is not valid: max_charge: "


def cost(amount: str, currency: str = "EUR", balance: str | None = None) -> Cost:
    return Cost(Decimal(amount), currency, "one gadget", None if balance is None else Decimal(balance))


def limited(limit: str | None) -> Budget:
    return Budget(Limit("maxCharge", limit))


class Served(Client):
    """A client that knows the service's time."""

    def service_now(self) -> datetime:
        return datetime(2026, 11, 22, 12, tzinfo=UTC)


# --- the preview


@pytest.mark.parametrize(
    ("balance", "told"),
    [
        (None, "will charge 5.00 EUR (one gadget); run total 7.00 EUR"),
        (
            "7.00",
            "will charge 5.00 EUR (one gadget); run total 7.00 EUR, balance 7.00 EUR (sufficient)",
        ),
        (
            "6.50",
            "warning: will charge 5.00 EUR (one gadget); run total 7.00 EUR, balance 6.50 EUR (insufficient)."
            " Next: top up 0.50 EUR",
        ),
    ],
)
def test_a_price_is_shown_with_the_total_of_the_run_and_the_balance(balance: str | None, told: str) -> None:
    budget, step = Budget(), request()
    budget.refusal("other", cost("2.00"))
    assert spending.show_price(budget, step, cost("5.00", balance=balance)) is None
    assert step.messages == [told]
    assert budget.planned(ME) == cost("5.00", balance=balance)


def test_the_total_says_what_it_leaves_out() -> None:
    budget, step = Budget(), request()
    why = "price of gadget: not known before its server exists"
    first, last = request(), request()
    first.identity, last.identity = "address", "another"
    spending.show_unpriced(budget, first, Gadget(), why)
    spending.show_price(budget, step, cost("5.00", balance="5.00"))
    spending.show_unpriced(budget, last, Gadget(), why)
    assert [*first.messages, *step.messages, *last.messages] == [
        why,
        "will charge 5.00 EUR (one gadget); run total 5.00 EUR + a gadget whose price is known later, "
        "balance 5.00 EUR (sufficient so far)",
        f"{why}; run total 5.00 EUR + 2 purchases whose prices are known later",
    ]
    budget.refusal("address", cost("2.00"))
    budget.refusal("another", cost("2.00"))
    assert budget.later() == ""


def test_a_test_key_would_charge() -> None:
    step = request(Client(is_test_key=True))
    spending.show_price(Budget(), step, cost("5.00"))
    assert step.messages == ["would charge 5.00 EUR (one gadget); run total 5.00 EUR"]


def test_beyond_the_limit_only_the_refusal_is_shown() -> None:
    step = request()
    refusal = spending.show_price(limited("4.99"), step, cost("5.00"))
    assert "more than maxCharge 4.99" in str(refusal)
    assert step.messages == []


def test_what_is_taken_over_costs_nothing() -> None:
    budget, step = limited("0"), request(Served())
    ordered = datetime(2026, 11, 22, 10, tzinfo=UTC)
    taken = Takeover(state(), "it has the tag", ordered, Decimal("5.00"), "EUR", title="gadget")
    assert spending.show_takeover(budget, step, taken) is None
    assert step.messages == ["takes over gadget 7, ordered 2 h ago, 5.00 EUR (it has the tag)"]
    assert budget.planned(ME) == Cost(Decimal("0.00"), "EUR", "it has the tag")
    assert budget.charged(ME, Decimal("5.00")) is None  # paid by its order, not by this run
    without = Takeover(state(), "it has the tag")
    spending.show_takeover(budget, step, without)
    assert len(step.messages) == 1, "once in a run"
    assert budget.planned(ME) == Cost(Decimal("0.00"), "", "it has the tag")


# --- before the order


def must_be_affordable(budget: Budget, gadget: Any = None, inputs: GadgetInputs = A) -> None:
    spending.must_be_affordable(budget, request(), gadget or Gadget(), inputs)


def test_an_order_within_the_limit_is_counted() -> None:
    budget = limited("5.00")
    must_be_affordable(budget)
    assert budget.planned(ME) == FIVE
    must_be_affordable(budget)  # planned already: what the preview saw
    assert str(budget.total("EUR")) == "5.00"
    cannot_adopt: Any = SimpleNamespace(name="a", given=lambda: {"name": "a", "size": 2})
    must_be_affordable(other := limited("5.00"), inputs=cannot_adopt)
    assert other.planned(ME) == FIVE


def test_an_order_beyond_the_limit_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput) as caught:
        must_be_affordable(limited("4.99"))
    assert caught.value.fields.keys() == {"max_charge"}
    assert str(caught.value).startswith(
        NAMED + "with 5.00 EUR for one gadget this run would charge 5.00 EUR, more than maxCharge 4.99"
    )


def test_an_order_of_unknown_price_is_refused_within_a_limit() -> None:
    with pytest.raises(InvalidInput) as caught:
        must_be_affordable(limited("100"), Gadget(price=None))
    assert str(caught.value).startswith(NAMED + "its price is not known, and maxCharge is 100")
    must_be_affordable(limited(None), Gadget(price=None))


def test_the_price_that_was_planned_counts_rather_than_the_one_of_now() -> None:
    budget = limited("5.00")
    budget.refusal(ME, cost("4.00"))
    must_be_affordable(budget)
    assert budget.planned(ME) == cost("4.00")


def test_what_would_be_taken_over_is_not_compared_with_the_limit() -> None:
    budget = limited("0")
    must_be_affordable(budget, Gadget(taken=Takeover(state(), "it has the tag", currency="EUR")))
    assert budget.planned(ME) == Cost(Decimal("0.00"), "EUR", "it has the tag")


def test_what_costs_nothing_is_always_affordable() -> None:
    stopped = limited("0")
    stopped.refusal("other", cost("0.00"))
    stopped.charged("other", Decimal("9.00"))
    must_be_affordable(stopped, Plain())
    must_be_affordable(stopped, inputs=GadgetInputs(name="a", size=2, adopt_id="7"))
    assert stopped.planned(ME) is None


@pytest.mark.parametrize("limit", ["100", None])
def test_after_a_charge_that_was_not_announced_nothing_is_ordered(limit: str | None) -> None:
    budget = limited(limit)
    budget.refusal("other", cost("5.00"))
    exceeded = budget.charged("other", Decimal("6.00"))
    with pytest.raises(ResourceError) as caught:
        must_be_affordable(budget)
    assert str(caught.value) == (
        f"nothing more is ordered in this run: {exceeded}. Next: look at the invoice, then run again"
    )


# --- after the order


def made(charged: str | None, currency: str | None = "EUR") -> Any:
    return SimpleNamespace(id="7", charged=charged, currency=currency)


def test_what_an_order_cost_beyond_its_price_is_told() -> None:
    budget, step = limited(None), request()
    budget.refusal(ME, cost("5.00"))
    for kept in (made("5.00"), made(None), state()):  # the last is of a kind that is not paid for
        bought = spending.PaidCreation(budget, step)
        bought.save(kept)
        assert (bought.made, bought.exceeded) == (kept, None)
    bought = spending.PaidCreation(budget, step)
    bought.save(made("5.01"))
    assert bought.exceeded == (
        "5.01 EUR were charged for one gadget, announced were 5.00; this run has charged 5.01 EUR; nothing "
        "more is ordered in this run. Next: look at the invoice, then run again"
    )


def test_a_charge_is_shown_and_counted_once_and_what_was_taken_over_is_none() -> None:
    budget, step = limited(None), request()
    budget.refusal(ME, cost("5.00"))
    bought = spending.PaidCreation(budget, step)
    bought.save(made(None))  # the order is not answered yet
    paid: Any = SimpleNamespace(id="7", charged="5.00", currency="EUR", invoice_id="4711")
    bought.save(paid)
    bought.save(made("5.00"))
    assert step.messages == ["charged 5.00 EUR (one gadget), invoice 4711"]
    assert budget.summary() == "charged 5.00 EUR, credited 0.00"
    for other in (request(taken_over={"7"}), request(Client(is_test_key=True))):
        spending.PaidCreation(budget, other).save(made("5.00"))
        assert other.messages == []
    unpriced = request()
    spending.PaidCreation(Budget(), unpriced).save(made("5.00", None))
    assert unpriced.messages == ["charged 5.00"]
    assert budget.summary() == "charged 5.00 EUR, credited 0.00"


def test_what_exists_is_told_with_what_it_cost() -> None:
    assert spending.exists(request(), Gadget(), made("5.00")) == "gadget 7 exists and was charged 5.00 EUR"
    assert spending.exists(request(), Gadget(), made("5.00", None)) == "gadget 7 exists and was charged 5.00"
    assert spending.exists(request(), Gadget(), made(None)) == "gadget 7 exists"
    assert spending.exists(request(), Gadget(), state()) == "gadget 7 exists"
    without_currency: Any = SimpleNamespace(id="7", charged="5.00")
    assert spending.exists(request(), Gadget(), without_currency) == "gadget 7 exists and was charged 5.00"
    step: Step = request(taken_over={"7"})
    assert spending.exists(step, Gadget(), made("5.00")) == "gadget 7 exists"


# --- several processes of one run


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "run"))
    return "scope"


def ledger(scope: str, run: str | None = "127.0.0.1:1") -> RunLedger:
    made = RunLedger(lambda: scope)
    made.run = run
    return made


def member(scope: str, run: str | None = "127.0.0.1:1", limit: str | None = "10.00") -> Budget:
    return Budget(Limit("maxCharge", limit), ledger(scope, run))


def test_processes_of_a_run_count_together(scope: str) -> None:
    one, other, third = (member(scope) for _ in range(3))
    assert one.refusal("a", cost("4.00")) is None
    assert one.refusal("b", cost("1.00")) is None
    assert one.refusal("u", cost("9.00", "USD")) is None
    assert other.refusal("c", cost("2.00")) is None
    assert third.refusal("d", cost("3.01")) is not None  # 10.01
    assert third.refusal("d", cost("3.00")) is None
    assert str(third.total("EUR")) == "10.00"
    assert one.refusal("a", cost("4.01")) is not None
    assert str(one.total("EUR")) == "6.00"  # its own and the others', without what was refused
    assert other.refusal("e", cost("1.00", "USD")) is None
    assert str(other.total("USD")) == "10.00"


def test_other_runs_and_other_accounts_count_for_themselves(scope: str) -> None:
    assert member(scope).refusal("a", cost("10.00")) is None
    assert member(scope, "127.0.0.1:2").refusal("b", cost("10.00")) is None
    assert member("another").refusal("c", cost("10.00")) is None
    assert member(scope, None).refusal("d", cost("10.00")) is None
    assert member(scope).refusal("e", cost("0.01")) is not None


def test_where_the_run_is_not_known_only_this_process_counts(scope: str) -> None:
    budget = Budget(ledger=RunLedger(lambda: pytest.fail("no file is needed")))
    assert budget.refusal("a", cost("10.00")) is None


def test_what_was_charged_is_booked_for_all(scope: str) -> None:
    one, other = member(scope), member(scope)
    one.refusal("a", cost("4.00"))
    other.refusal("b", cost("1.00"))
    assert one.charged("a", Decimal("9.00")) == (
        "9.00 EUR were charged for one gadget, announced were 4.00; this run has charged 10.00 EUR, and "
        "maxCharge is 10.00"
    )
    assert other.refusal("c", cost("0.01")) is not None


def test_processes_that_have_ended_do_not_count(scope: str) -> None:
    ended = ledger(scope)
    ended._member = "999999999-00000000"  # the id of no process
    assert Budget(ledger=ended).refusal("a", cost("10.00")) is None
    assert member(scope).refusal("b", cost("10.00")) is None
    runs = local_files.read(local_files.Scope(scope), "charges of the runs")
    assert [name.partition("-")[0] for name in runs["127.0.0.1:1"]] == [str(os.getpid())]
    gone = ledger(scope, "127.0.0.1:3")
    gone._member = "999999999-00000000"
    Budget(ledger=gone).refusal("a", cost("1.00"))
    member(scope).refusal("c", cost("0.00"))
    assert [*local_files.read(local_files.Scope(scope), "charges of the runs")] == ["127.0.0.1:1"]


def test_what_the_processes_share_does_not_grow_with_the_declarations(scope: str) -> None:
    shared = ledger(scope)
    budget = Budget(ledger=shared)
    for number in range(100):
        assert budget.refusal(str(number), cost("1.00")) is None
    assert budget.refusal("0", cost("3.00")) is None
    assert budget.refusal("dollars", cost("2.00", "USD")) is None
    assert local_files.read(local_files.Scope(scope), "charges of the runs") == {
        "127.0.0.1:1": {shared._member: {"EUR": ["102.00"], "USD": ["2.00"]}}
    }


def test_what_changes_nothing_is_not_written(scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = member(scope)
    budget.refusal("a", cost("1.00"))
    monkeypatch.setattr(SharedStore, "keep", lambda *_, **__: pytest.fail("written"))
    assert budget.refusal("a", cost("1.00")) is None
    assert budget.charged("a", Decimal("1.00")) is None
    assert budget.charged("b", Decimal("1.00")) is None


def test_without_the_file_a_limit_stops_and_no_limit_goes_on(
    scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise local_files.LocalFilesError("no room")

    monkeypatch.setattr(SharedStore, "keep", fail)
    with pytest.raises(local_files.LocalFilesError, match="no room"):
        member(scope).refusal("a", cost("1.00"))
    unlimited = member(scope, limit=None)
    assert unlimited.refusal("a", cost("1.00")) is None
    assert str(unlimited.total("EUR")) == "1.00"


def test_a_process_waits_half_a_minute_for_the_file(scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = list[Any]()

    def lock(store: SharedStore, name: str, timeout: float, *, what: str) -> Any:
        waits.append((what, timeout))
        raise local_files.LockTimeout("busy")

    monkeypatch.setattr(SharedStore, "lock", lock)
    with pytest.raises(local_files.LockTimeout):
        member(scope).refusal("a", cost("1.00"))
    assert waits == [("notes on charges of the runs", 30.0)]
