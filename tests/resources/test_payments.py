"""Payments of invoices and top-ups of the balance."""

from decimal import Decimal

import pytest

from pulumi_hosting.client.exceptions import (
    InvalidInput,
)
from pulumi_hosting.session.errors import ResourceError
from tests.resources.actions import do, one, sent
from tests.resources.charges import _unpaid_renewal, client
from tests.resources.conftest import KillingTransport, ProcessKilled, ResourceHarness


def test_what_cannot_be_paid_says_why(harness: ResourceHarness) -> None:
    topup = client(harness).balance.topup(amount="10.00", gateway="card").invoice_id
    with pytest.raises(
        ResourceError, match="is a top-up of the balance and cannot be paid from it; nothing was sent"
    ):
        do(harness, "invoice_pay", {"id": topup})
    with pytest.raises(ResourceError, match="there is no invoice with id 999 on this account"):
        do(harness, "invoice_pay", {"id": "999"})
    id = _unpaid_renewal(harness)
    for status in ("cancelled", "refunded", "pending", "failed", "disputed"):
        harness.fault({"patch": {"status": status}}, path=f"^/invoices/{id}$", method="GET")
        with pytest.raises(
            ResourceError, match=f"invoice {id} is {status} and cannot be paid; nothing was sent. Next: "
        ):
            do(harness, "invoice_pay", {"id": id})
        assert sent(harness) == []


def test_a_paid_invoice_shows_what_it_was_for(harness: ResourceHarness) -> None:
    id = _unpaid_renewal(harness)
    result = do(harness, "invoice_pay", {"id": id})
    assert (result.result.status, result.result.type, result.result.amount) == ("paid", "vds_renewal", "5.00")
    assert result.result.server_ids == [str(next(iter(client(harness).servers.list())).id)]
    assert Decimal(result.result.balance_after) == client(harness).balance.get().balance
    assert result.result.paid_at


def test_a_simulated_payment_moves_nothing(harness: ResourceHarness) -> None:
    id = _unpaid_renewal(harness)
    before = harness.account.ledger()
    result = do(harness, "invoice_pay", {"id": id}, key=harness.account.test_key)
    assert (result.changed, result.result.status, result.result.mode) == (True, "paid", "test")
    assert harness.account.ledger() == before


# --- balance_topup -----------------------------------------------------------------------------------------

DESIRED = {"amount": "50", "gateway": "card", "balance_below": 2000}


def unpaid(harness: ResourceHarness) -> list[int]:
    return [invoice.id for invoice in client(harness).invoices.list(type="topup")]


def test_a_topup_is_asked_for_once(any_dialect: ResourceHarness) -> None:
    predicted = do(any_dialect, "balance_topup", DESIRED, dry_run=True)
    assert (predicted.changed, sent(any_dialect), predicted.cost) == (True, [], None)
    result = do(any_dialect, "balance_topup", DESIRED)
    assert result.changed
    assert result.result.payment_url.startswith("https://")
    assert (result.result.amount, result.result.gateway, result.result.currency, result.result.balance) == (
        "50.00",
        "card",
        "EUR",
        "1000.00",
    )
    for name, value in one(predicted.after).items():
        assert value in (None, one(result.after)[name]), name
    seen = do(any_dialect, "balance_topup", DESIRED, dry_run=True)
    assert (seen.changed, seen.result.payment_url, seen.result.invoice_id, sent(any_dialect)) == (
        False,
        None,
        result.result.invoice_id,
        [],
    )
    again = do(any_dialect, "balance_topup", DESIRED)
    assert (again.changed, again.result) == (False, result.result)
    assert [str(id) for id in unpaid(any_dialect)] == [result.result.invoice_id]
    # Paid, and below the mark again: a new one.
    any_dialect.control("POST", f"/invoices/{result.result.invoice_id}/confirm", {})
    assert do(any_dialect, "balance_topup", DESIRED).result.invoice_id != result.result.invoice_id
    assert len(unpaid(any_dialect)) == 2


def test_a_balance_that_suffices_is_left_alone(harness: ResourceHarness) -> None:
    result = do(harness, "balance_topup", {**DESIRED, "balance_below": "1000.00"})
    assert (result.changed, result.result.invoice_id, result.result.balance, sent(harness)) == (
        False,
        None,
        "1000.00",
        [],
    )
    assert result.note == "the balance is 1000.00 EUR, which is not below 1000.00"


@pytest.mark.parametrize(
    ("more", "field"),
    [({"amount": "4.99"}, "amount"), ({"amount": "10001"}, "amount"), ({"gateway": "gold"}, "gateway")],
)
def test_bounds_and_gateways_are_asked_for_before_anything_is_sent(
    harness: ResourceHarness, more: dict[str, str], field: str
) -> None:
    for dry_run in (True, False):
        with pytest.raises(InvalidInput) as caught:
            do(harness, "balance_topup", {**DESIRED, **more}, dry_run=dry_run)
        assert set(caught.value.fields) == {field}
        assert sent(harness) == []


@pytest.mark.parametrize("after", [False, True])
def test_killed_anywhere_there_is_one_topup(harness: ResourceHarness, after: bool) -> None:
    at = 0
    while True:
        try:
            do(harness, "balance_topup", DESIRED, transport=KillingTransport(at, after))
        except ProcessKilled:
            at += 1
            continue
        break
    assert at > 3
    assert len(unpaid(harness)) == 1


def test_the_lost_answer_of_a_topup_is_looked_up(harness: ResourceHarness) -> None:
    harness.fault({"drop": "after"}, path="^/balance/topup$", times=50)
    result = do(harness, "balance_topup", DESIRED)
    assert result.result.invoice_id == str(unpaid(harness)[0])
    assert result.result.payment_url


def test_a_link_that_the_key_may_not_ask_for_is_left_out(harness: ResourceHarness) -> None:
    made = do(harness, "balance_topup", DESIRED).result
    scopes = [scope for scope in client(harness).me().scopes if scope != "invoices:pay"]
    key = harness.control("POST", "/keys", {"mode": "live", "scopes": scopes})["key"]
    result = do(harness, "balance_topup", DESIRED, key=key)
    assert (result.changed, result.result.invoice_id, result.result.payment_url) == (
        False,
        made.invoice_id,
        None,
    )
    assert any("its payment link cannot be shown" in line for line in harness.messages)


def test_a_simulated_topup_makes_no_invoice(harness: ResourceHarness) -> None:
    first, second = (
        do(harness, "balance_topup", DESIRED, key=harness.account.test_key).result for _ in range(2)
    )
    assert first.mode == second.mode == "test"
    assert first.invoice_id != second.invoice_id  # the keys of a test key are random, so neither is a replay
    assert unpaid(harness) == []
