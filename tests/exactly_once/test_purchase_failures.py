"""One purchase: failures of the service, replays, and what the journal keeps of it."""

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import CallError, TransportError
from pulumi_hosting.exactly_once import purchase_journal
from pulumi_hosting.session.errors import Failed, ResourceError
from pulumi_hosting.session.request import Request
from tests.exactly_once.loop import KIND, SUBJECT, Loop
from tests.exactly_once.service import (
    NOW,
    PAID,
    Service,
    assert_facts_of,
    invoice,
    movement,
    named,
    refusal,
)

# --- failures of the service


def returned(*invoices: int) -> list[Any]:
    return [movement("5.00", way, number) for way in ("debit", "credit") for number in invoices]


FAILURES = [refusal(500, "server_error"), refusal(502, "upstream_error"), refusal(501, "of_tomorrow")]
each_failure = pytest.mark.parametrize("error", FAILURES, ids=named)


@each_failure
def test_a_failure_that_moved_nothing_is_followed_by_the_next_key(error: CallError) -> None:
    loop = Loop(error, PAID)
    assert loop.carry_out() is PAID
    assert (loop.service.keys, loop.looked) == (loop.keys(0, 1), ["before", "undone"])


@each_failure
def test_what_the_account_shows_after_a_failure_is_what_was_bought(error: CallError) -> None:
    loop = Loop(error, shows={"undone": ["it"]}, movements=[movement("5.00")])
    assert loop.carry_out() == "it"
    assert loop.service.keys == loop.keys(0)


@each_failure
def test_a_second_failure_that_moved_nothing_is_reported_and_leaves_no_entry(error: CallError) -> None:
    loop = Loop(error)
    with pytest.raises(Failed) as caught:
        loop.carry_out()
    assert str(caught.value) == (
        f"{error.summary} — no money moved and nothing was bought. Next: run again later"
    )
    assert (loop.service.keys, loop.entry()) == (loop.keys(0, 1), None)


@each_failure
def test_a_second_failure_whose_charge_was_returned_is_reported_with_the_money(error: CallError) -> None:
    loop = Loop(error, movements=returned(31))
    with pytest.raises(Failed) as caught:
        loop.carry_out()
    assert str(caught.value) == (
        f"{error.summary} — the order of it was refunded; 5.00 EUR were returned, invoice 31. Next: run "
        "again in a few minutes"
    )
    assert (loop.service.keys, loop.entry()) == (loop.keys(0, 1), None)


def test_a_failed_payment_whose_invoice_is_open_again_is_not_called_on_its_way() -> None:
    """The money came back, and the invoice waits to be paid as before."""
    loop = Loop(
        refusal(502, "upstream_error"),
        movements=returned(31),
        invoices={31: invoice(31, "not_paid", paid_at=None)},
    )
    with pytest.raises(Failed, match=r"5\.00 EUR were returned, invoice 31") as caught:
        loop.carry_out()
    assert "on its way" not in str(caught.value)


@each_failure
def test_a_failure_whose_charge_is_kept_stops_and_leaves_the_entry(error: CallError) -> None:
    loop = Loop(error, PAID, movements=[movement("5.00")])
    with pytest.raises(Failed) as caught:
        loop.carry_out()
    assert str(caught.value) == (
        f"{error.summary} — whether the order of it was carried out is not known: invoice 31 is paid, "
        "and nothing shows for it; nothing was repeated. Next: look at it before running again, or ask the "
        "provider"
    )
    assert_facts_of(error, caught.value)
    assert loop.service.keys == loop.keys(0)
    assert loop.entry() is not None


def test_money_of_other_purchases_is_no_reason_to_stop() -> None:
    loop = Loop(refusal(500, "server_error"), PAID, movements=[movement("5.00", invoice_id=99)])
    assert loop.carry_out() is PAID


@pytest.mark.parametrize(
    "error", [refusal(403, "insufficient_scope"), TransportError("cut", outcome_unknown=False)], ids=named
)
def test_if_the_money_cannot_be_seen_nothing_is_repeated_and_the_entry_stays(error: CallError) -> None:
    loop = Loop(refusal(500, "server_error"), PAID, movements=error)
    with pytest.raises(Failed, match="was carried out is not known"):
        loop.carry_out()
    assert loop.service.keys == loop.keys(0)
    assert loop.entry() is not None


def test_a_timeout_behind_the_service_is_never_followed_by_another_key() -> None:
    loop = Loop(refusal(504, "upstream_timeout"), PAID)
    with pytest.raises(Failed, match="was carried out is not known"):
        loop.carry_out()
    assert loop.service.keys == loop.keys(0)
    assert loop.entry() is not None


def test_a_test_key_pays_nothing_so_no_money_is_looked_for() -> None:
    loop = Loop(
        refusal(500, "server_error"), PAID, is_test_key=True, movements=AssertionError("it was asked for")
    )
    assert loop.carry_out() is PAID
    assert loop.entries == [False, False]


# --- replays


def test_the_replay_of_something_of_the_past_is_left_behind() -> None:
    old = SimpleNamespace(charged=Decimal("4.00"))
    loop = Loop(old, PAID)
    loop.service.knows.update(loop.keys(0, 1, 2))
    assert loop.carry_out(accept=lambda answer, walk: None if answer is old else answer) is PAID
    assert loop.service.keys == loop.keys(0, 3)


def test_an_answer_to_an_unused_key_is_no_replay_and_nothing_is_bought_beside_it() -> None:
    loop = Loop(PAID)

    def send(idempotency_key: str) -> Any:
        assert len(loop.service.keys) < 20, "it never ends"
        return Service.send(loop.service, idempotency_key)

    with pytest.raises(ResourceError):
        loop.carry_out(send=send, accept=lambda answer, walk: None)
    assert loop.service.keys == loop.keys(0, 1)


# --- the journal


def test_an_entry_is_there_while_it_is_sent_and_until_it_is_reported() -> None:
    loop = Loop(refusal(500, "server_error"), PAID)
    assert loop.entry() is None
    loop.carry_out()
    assert loop.entries == [True, True]
    assert loop.entry() is not None
    loop.report()
    assert loop.entry() is None


class Killed(BaseException):
    """The process ends here."""


def test_a_killed_run_leaves_its_entry_and_the_next_one_keeps_when_it_began() -> None:
    loop = Loop(Killed(), PAID)
    with pytest.raises(Killed):
        loop.carry_out()
    first = loop.entry()
    assert first is not None
    loop.service.clock.elapsed += 3600
    again = loop.purchase()
    again.carry_out()
    assert again.interrupted == first
    assert loop.entry() == first
    loop.report()
    assert loop.entry() is None


def test_what_a_killed_run_bought_is_found_with_its_entry() -> None:
    loop = Loop(Killed())
    with pytest.raises(Killed):
        loop.carry_out()
    loop.shows["before"] = ["it"]
    again = loop.purchase()
    assert again.carry_out() == "it"
    assert again.interrupted is not None


def test_the_entry_of_another_purchase_is_none_of_this_one() -> None:
    loop = Loop(Killed())
    with pytest.raises(Killed):
        loop.carry_out()
    other: list[Request] = [loop.service.request("pulumi:t/dev/server/b")]
    assert purchase_journal.interrupted(other[0], KIND, SUBJECT) is None
    assert purchase_journal.interrupted(loop.service.request(), KIND, "another") is None
    assert purchase_journal.interrupted(loop.service.request(), "domain", SUBJECT) is None


def test_money_is_looked_at_from_the_first_request_of_this_call_on() -> None:
    loop = Loop(refusal(500, "server_error"), PAID, takes=30.0)
    purchase = loop.purchase()
    loop.service.clock.elapsed = 1000.0
    assert purchase.started() == NOW + timedelta(seconds=1000)  # nothing was sent yet
    purchase.carry_out()
    assert purchase.started() == NOW + timedelta(seconds=1000)
    assert loop.service.clock.elapsed == 1060.0
