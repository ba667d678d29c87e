"""What a run may charge: sums, limits, and what is said where one is exceeded."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.planning.budget import Book, Budget, Limit, money_limit
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError


def cost(amount: str, currency: str = "EUR", balance: str | None = None) -> Cost:
    return Cost(Decimal(amount), currency, "one server", None if balance is None else Decimal(balance))


def limited(limit: str | None, setting: str = "maxCharge") -> Budget:
    return Budget(Limit(setting, limit))


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        ("25.00", "25.00"),
        ("0", "0"),
        (25, "25"),
        (25.5, "25.5"),
        ("9" * 15 + "." + "9" * 15, "9" * 15 + "." + "9" * 15),
        *(
            (wrong, None)
            for wrong in (
                "", "-1", "+1", "1e2", "5.", ".5", "5,00", "\u0665", " 5", "5\n", "NaN", "9" * 16,
                "1." + "9" * 16, True, False, None, 1e20,
            )
        ),
    ],
)  # fmt: skip
def test_a_limit_is_a_plain_amount(given: Any, amount: str | None) -> None:
    assert money_limit(given) == (None if amount is None else Decimal(amount))
    assert str(money_limit(given)) == str(amount)


@pytest.mark.parametrize("given", ["", " ", "5 EUR", True])
def test_what_is_no_limit_is_never_taken_for_none(given: Any) -> None:
    limit = Limit(given=given)
    assert limit.is_set
    assert limit.problem is not None
    with pytest.raises(ValueError, match=limit.problem[:20]):
        Budget(limit).refusal("a", cost("0.00"))


def test_a_task_that_goes_on_alone_may_charge_what_was_booked() -> None:
    budget = Budget(Limit("max_charge", "99", booked=Decimal("5.00")))
    assert budget.refusal("a", cost("5.00")) is None
    assert budget.refusal("b", cost("0.01")) == (
        "one server costs 0.01 EUR, more than the 5.00 that were booked for this task of max_charge 99 when "
        "it began; it is not ordered. Next: run again"
    )


def test_nothing_is_booked_once_the_run_is_stopped() -> None:
    budget = limited(None)
    assert budget.book("a", cost("5.00")) is None
    budget.charged("a", Decimal("6.00"))
    assert budget.book("b", cost("1.00")) == budget.stopped
    assert budget.planned("b") is None


class Shared:
    """A ledger in which others plan 4.00, and which notes what it is told."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.told = list[tuple[str, dict[str, Decimal]]]()

    @contextmanager
    def open(self, book: Book, identity: str) -> Iterator[None]:
        book.elsewhere = {"EUR": Decimal("4.00")}
        yield
        self.told.append((identity, dict(book.own)))
        if self.failure is not None:
            raise self.failure


def test_what_others_plan_counts_and_each_decision_is_told() -> None:
    ledger = Shared()
    budget = Budget(Limit(given="10.00"), ledger)
    assert budget.refusal("a", cost("6.00")) is None
    assert "this run would charge 10.01 EUR" in str(budget.refusal("b", cost("0.01")))
    budget.refused("a")
    six = {"EUR": Decimal("6.00")}
    assert ledger.told == [("a", six), ("b", six), ("a", {})]
    assert str(budget.total("EUR")) == "4.00"


def test_a_ledger_that_fails_stops_a_run_with_a_limit_only() -> None:
    ledger = Shared(LocalFilesError("no room"))
    with pytest.raises(LocalFilesError, match="no room"):
        Budget(Limit(given="10.00"), ledger).refusal("a", cost("1.00"))
    unlimited = Budget(ledger=ledger)
    assert unlimited.refusal("a", cost("1.00")) is None
    assert unlimited.planned("a") == cost("1.00")


def test_costs_add_up_once_per_declaration_and_currency() -> None:
    budget = Budget()
    assert repr(budget.total("EUR")) == "Decimal('0')"
    assert budget.refusal("a", cost("5.00")) is None
    assert budget.refusal("a", cost("6.00")) is None  # planned again
    assert budget.refusal("b", cost("0.10")) is None
    assert budget.refusal("c", cost("7.00", "USD")) is None
    assert (str(budget.total("EUR")), str(budget.total("USD"))) == ("6.10", "7.00")
    assert budget.planned("a") == cost("6.00")
    assert budget.planned("d") is None


def test_a_negative_price_is_none() -> None:
    with pytest.raises(ResourceError, match=r"^the service names a price of -0\.01 EUR for one server, and"):
        cost("-0.01")
    assert cost("0.00").amount == 0


def test_up_to_the_limit_is_ordered_and_not_a_cent_more() -> None:
    budget = limited("10.00")
    assert budget.refusal("a", cost("9.99")) is None
    assert budget.refusal("b", cost("0.02")) == (
        "with 0.02 EUR for one server this run would charge 10.01 EUR, more than maxCharge 10.00; it is not "
        "ordered. Next: raise maxCharge, or declare less"
    )
    assert budget.planned("b") is None  # what was refused is not counted
    assert budget.refusal("b", cost("0.01")) is None
    assert str(budget.total("EUR")) == "10.00"
    assert budget.refusal("c", cost("0.00")) is None
    assert budget.refusal("d", cost("1.00", "USD")) is None  # the limit holds for each currency


def test_the_setting_is_named_as_its_frontend_does() -> None:
    assert "more than max_charge 1; it is not ordered. Next: raise max_charge, or" in str(
        limited("1", "max_charge").refusal("a", cost("2.00"))
    )


def test_what_has_no_price_is_not_ordered_within_a_limit() -> None:
    assert limited(None).unpriced() is None
    assert limited("0").unpriced() == (
        "its price is not known, and maxCharge is 0; it is not ordered. Next: see why there is no price, or "
        "leave maxCharge out"
    )


def test_the_first_balance_that_is_seen_is_the_opening_one() -> None:
    budget = Budget()
    for identity, price in {
        "a": cost("5.00"),
        "b": cost("5.00", balance="20.00"),
        "c": cost("5.00", balance="15.00"),
        "d": cost("5.00", "USD", "7.00"),
    }.items():
        assert (budget.openings.get("EUR") is None) is (identity in "ab")
        budget.refusal(identity, price)
    assert (budget.openings.get("EUR"), budget.openings.get("USD")) == (Decimal("20.00"), Decimal("7.00"))


@pytest.mark.parametrize(("limit", "told"), [("20.00", ", and maxCharge is 20.00"), (None, "")])
def test_a_charge_above_the_announced_one_stops_the_run(limit: str | None, told: str) -> None:
    budget = limited(limit)
    budget.refusal("a", cost("5.00"))
    budget.refusal("b", cost("3.00"))
    assert budget.stopped is None
    exceeded = (
        "5.01 EUR were charged for one server, announced were 5.00; this run has charged 8.01 EUR" + told
    )
    assert budget.charged("a", Decimal("5.01")) == exceeded
    assert budget.stopped == exceeded
    assert str(budget.total("EUR")) == "8.01"
    assert budget.planned("a") == cost("5.01")
    assert budget.charged("a", Decimal("5.01")) is None  # booked already
    assert budget.stopped == exceeded


@pytest.mark.parametrize("amount", ["5.00", "4.99", "0"])
def test_what_was_announced_or_less_may_be_charged(amount: str) -> None:
    budget = Budget()
    budget.refusal("a", cost("5.00"))
    assert budget.charged("a", Decimal(amount)) is None
    assert (budget.stopped, str(budget.total("EUR"))) == (None, "5.00")


def test_what_was_not_planned_or_was_found_exceeds_nothing() -> None:
    budget = limited("1.00")
    assert budget.charged("a", Decimal("50.00")) is None
    assert budget.found("b", cost("0.00")) is None
    assert budget.charged("b", Decimal("50.00")) is None
    assert (budget.stopped, str(budget.total("EUR"))) == (None, "0.00")
    assert "more than maxCharge 1.00" in str(budget.found("c", cost("2.00")))


def test_what_moved_is_summed_up_by_currency() -> None:
    budget = Budget()
    assert budget.summary() == ""
    budget.moved("charged", Decimal("5.00"), "EUR")
    budget.moved("charged", Decimal("7.50"), "EUR")
    budget.moved("credited", Decimal("4.98"), None)  # the answer did not name the currency
    assert budget.summary() == "charged 12.50 EUR, credited 4.98"
    budget.moved("credited", Decimal("1.00"), "USD")
    assert budget.summary() == "charged 12.50 EUR, credited 4.98; charged 0.00 USD, credited 1.00"
