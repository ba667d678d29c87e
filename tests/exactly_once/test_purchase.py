"""What became of a purchase, what an answer means, and the loop that sends every purchase. No account is
needed: the answers are listed.
"""

from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from pulumi_hosting.client.exceptions import CallError, InvalidResponse, TransportError
from pulumi_hosting.exactly_once.idempotency_keys import KeyWalk
from pulumi_hosting.session.errors import Failed, LimitExceeded, ResourceError
from tests.exactly_once.loop import Loop
from tests.exactly_once.service import (
    NOW,
    PAID,
    Service,
    assert_facts_of,
    busy,
    conflict,
    named,
    refusal,
)


def test_what_is_there_is_not_bought_approved_or_noted() -> None:
    loop = Loop(shows={"before": ["it"]})
    loop.request.approve = lambda: pytest.fail("nothing is paid")
    assert loop.carry_out() == "it"
    assert (loop.service.keys, loop.looked, loop.entry()) == ([], ["before"], None)


def test_what_is_not_there_is_sent_once_with_the_first_key() -> None:
    loop = Loop(PAID)
    assert loop.carry_out() is PAID
    assert (loop.service.keys, loop.service.asked, loop.looked) == (loop.keys(0), [], ["before"])


def test_the_walk_begins_at_the_generation_that_is_handed_in() -> None:
    loop = Loop(PAID)
    assert loop.carry_out(walk=lambda: KeyWalk(loop.ring, 3, loop.service.ask)) is PAID
    assert loop.service.keys == loop.keys(3)


def test_the_turn_is_held_while_it_looks_asks_for_approval_and_sends() -> None:
    loop = Loop(refusal(500, "server_error"), PAID)
    held = list[bool]()

    def look(when: str) -> None:
        held.append(loop.service.locks.held)

    def approve() -> AbstractContextManager[None]:
        look("approval")
        return nullcontext()

    loop.request.approve = approve
    loop.carry_out(look=look)
    assert held == [True, True, True]
    assert not loop.service.locks.held


def test_a_refused_approval_sends_nothing_and_notes_nothing() -> None:
    loop = Loop()

    def refuse() -> NoReturn:
        raise LimitExceeded("too much")

    loop.request.approve = refuse
    with pytest.raises(LimitExceeded):
        loop.carry_out()
    assert (loop.service.keys, loop.entry(), loop.service.locks.held) == ([], None, False)


def test_a_cancelled_run_sends_nothing_and_notes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, order = Loop(), list[str]()

    def cancelled() -> None:
        order.append("cancelled")
        raise KeyboardInterrupt

    def approve() -> AbstractContextManager[None]:
        order.append("approved")
        return nullcontext()

    monkeypatch.setattr(loop.service.clock, "raise_if_cancelled", cancelled)
    loop.request.approve = approve
    with pytest.raises(KeyboardInterrupt):
        loop.carry_out()
    assert order == ["approved", "cancelled"]
    assert (loop.service.keys, loop.entry(), loop.service.locks.held) == ([], None, False)


# --- refusals

REFUSALS = [
    refusal(400, "validation_error"),
    refusal(401, "invalid_token"),
    refusal(403, "insufficient_scope"),
    refusal(404, "not_found"),
    refusal(409, "no_capacity"),
    refusal(429, "rate_limited"),
    refusal(503, "temporarily_unavailable"),
    TransportError("no route", outcome_unknown=False),
]


@pytest.mark.parametrize("error", REFUSALS, ids=named)
def test_a_refusal_is_passed_on_and_leaves_no_entry(error: CallError) -> None:
    loop = Loop(error)
    with pytest.raises(type(error)) as caught:
        loop.carry_out()
    assert caught.value is error
    assert (loop.service.keys, loop.entries, loop.entry()) == (loop.keys(0), [True], None)


def test_a_stale_refusal_is_left_behind() -> None:
    loop = Loop(refusal(409, "no_capacity"), PAID)
    assert loop.carry_out(is_outdated=lambda error: error.code == "no_capacity") is PAID
    assert loop.service.keys == loop.keys(0, 1)


def test_a_refusal_to_an_unused_key_is_not_stale_whatever_the_account_shows() -> None:
    error = refusal(409, "no_capacity")
    loop = Loop(error)
    with pytest.raises(type(error)) as caught:
        loop.carry_out(is_outdated=lambda error: True)
    assert caught.value is error
    assert (loop.service.keys, loop.entry()) == (loop.keys(0, 1), None)


def test_what_never_reached_the_service_is_not_taken_for_a_stale_refusal() -> None:
    loop = Loop(TransportError("no route", outcome_unknown=False))
    with pytest.raises(TransportError):
        loop.carry_out(is_outdated=lambda error: True)
    assert loop.service.keys == loop.keys(0)


# --- conflicts


def test_a_conflict_with_another_request_looks_again_then_takes_the_next_key() -> None:
    loop = Loop(conflict(), PAID)
    loop.service.knows.update(loop.keys(0, 1))
    assert loop.carry_out() is PAID
    assert loop.service.keys == loop.keys(0, 2)
    assert loop.looked == ["before", *["conflict"] * (len(loop.looked) - 1)]


def test_after_a_conflict_the_other_request_may_show_shortly() -> None:
    loop = Loop(conflict(), shows={"conflict": [None, None, "it"]})
    assert loop.carry_out(under_way=30.0) == "it"
    assert (loop.service.clock.slept, loop.service.keys) == ([7.0, 7.0, 7.0], loop.keys(0))


def test_after_a_conflict_it_waits_as_long_as_another_request_may_be_under_way() -> None:
    loop = Loop(conflict(), PAID)
    assert loop.carry_out(under_way=30.0) is PAID
    assert 30 <= sum(loop.service.clock.slept) <= 42
    assert set(loop.service.clock.slept) == {7.0}


def test_if_the_other_request_may_have_charged_nothing_more_is_sent() -> None:
    loop = Loop(conflict())

    def stop() -> None:
        raise ResourceError("look at it")

    with pytest.raises(ResourceError, match="look at it"):
        loop.carry_out(bound_elsewhere=stop)
    assert loop.service.keys == loop.keys(0)


def binding(loop: Loop) -> None:
    """The service stores refusals, so that a question binds its key, and an order with it is in conflict."""
    bound = dict[str, int]()

    def ask(id: int, key: str) -> None:
        loop.service.asked.append(key)
        if key in loop.service.knows or bound.setdefault(key, id) != id:
            raise conflict()
        raise refusal(404, "not_found")

    def send(key: str) -> Any:
        if key in bound:
            loop.service.keys.append(key)
            raise conflict()
        return Service.send(loop.service, key)

    loop.service.ask, loop.service.send = ask, send  # type: ignore[method-assign]  # a stub stands in


def must_not_be_asked() -> None:
    pytest.fail("only the question had bound the key")


def test_a_key_that_only_the_question_bound_is_followed_by_the_next_one() -> None:
    loop = Loop(refusal(409, "no_capacity"), PAID)
    binding(loop)
    found = loop.carry_out(is_outdated=lambda error: True, bound_elsewhere=must_not_be_asked)
    assert found is PAID
    assert loop.service.keys == loop.keys(0, 1, 2)  # three expensive requests at most
    assert (loop.looked, loop.service.clock.slept) == (["before"], [])


def test_a_refusal_that_comes_back_is_of_this_moment() -> None:
    """The key after one that only the question had bound was not asked about, so it is tried twice."""
    error = refusal(409, "no_capacity")
    loop = Loop(error)
    binding(loop)
    with pytest.raises(type(error)) as caught:
        loop.carry_out(is_outdated=lambda error: True, bound_elsewhere=must_not_be_asked)
    assert caught.value is error
    assert loop.service.keys in (loop.keys(0, 1, 2), loop.keys(0, 1, 2, 3, 4))


# --- keys that were passed


def ordered_meanwhile(loop: Loop) -> None:
    """Another run of the declaration ordered with the next key, after this one had looked."""
    loop.service.knows.update(loop.keys(0, 1))
    loop.shows["conflict"] = ["it"]


@pytest.mark.parametrize(
    ("answer", "more"),
    [
        (SimpleNamespace(charged=Decimal("4.00")), {"accept": lambda answer, walk: None}),
        (refusal(409, "no_capacity"), {"is_outdated": lambda error: True}),
        (refusal(500, "server_error"), {}),
    ],
    ids=["replay", "stale refusal", "failure"],
)
def test_what_was_ordered_with_a_key_that_is_passed_is_found_before_anything_is_sent(
    answer: Any, more: dict[str, Any]
) -> None:
    loop = Loop(answer, PAID)
    ordered_meanwhile(loop)
    assert loop.carry_out(**more) == "it"
    assert loop.service.keys == loop.keys(0)


def test_while_a_request_with_a_key_that_is_passed_is_under_way_nothing_is_sent() -> None:
    loop = Loop(SimpleNamespace(charged=Decimal("4.00")), PAID)
    ask = loop.service.ask

    def asking(id: int, key: str) -> Any:
        if key == loop.keys(1)[0]:
            raise refusal(409, "idempotency_in_progress")
        return ask(id, key)

    loop.service.ask = asking  # type: ignore[method-assign]  # a stub stands in
    with pytest.raises(ResourceError):
        loop.carry_out(accept=lambda answer, walk: None, under_way=30.0)
    assert loop.service.keys == loop.keys(0)


# --- another operation is running


def test_while_another_operation_runs_it_looks_and_sends_the_same_key() -> None:
    loop = Loop(busy(), busy(), PAID)
    assert loop.carry_out() is PAID
    assert loop.service.keys == loop.keys(0, 0, 0)
    assert loop.looked == ["before", "busy", "busy"]
    assert loop.service.clock.slept == [0.5, 1.0]
    assert loop.service.messages == ["order of it: another operation is running"] * 2


def test_the_other_operation_may_have_been_this_purchase() -> None:
    loop = Loop(busy(), shows={"busy": ["it"]})
    assert loop.carry_out() == "it"
    assert loop.service.keys == loop.keys(0)


def test_a_stored_refusal_of_a_running_operation_is_left_behind() -> None:
    loop = Loop(busy(), PAID)
    loop.service.knows.update(loop.keys(0))
    assert loop.carry_out() is PAID
    assert loop.service.keys == loop.keys(0, 1)


def test_a_key_that_was_asked_about_while_another_operation_ran_is_not_taken_for_anothers() -> None:
    """The refusal is not stored, and the question about it is."""
    loop = Loop(busy(), PAID)
    binding(loop)
    assert loop.carry_out(bound_elsewhere=must_not_be_asked) is PAID
    assert loop.service.keys == loop.keys(0, 0, 1)


def test_what_keys_are_made_of_may_change_while_it_waits() -> None:
    loop = Loop(busy(), PAID)
    rings = [loop.ring, loop.service.ring("create_server", {"seen": 1}, loop.request.identity)]
    assert loop.carry_out(walk=lambda: KeyWalk(rings.pop(0), ask=loop.service.ask)) is PAID
    other = loop.service.ring("create_server", {"seen": 1}, loop.request.identity)
    assert loop.service.keys == [loop.ring.key(0), other.key(0)]


def test_the_wait_for_another_operation_ends_and_leaves_no_entry() -> None:
    error = busy()
    loop = Loop(error)
    with pytest.raises(type(error)) as caught:
        loop.carry_out()
    assert caught.value is error
    assert 600 <= loop.service.clock.elapsed < 607
    assert loop.entry() is None


# --- lost answers

LOST = [
    TransportError("cut", outcome_unknown=True, request_id="req-1"),
    InvalidResponse("no JSON", request_id="req-1"),
    refusal(404, "not_found", lost=True),
    refusal(409, "idempotency_conflict", lost=True),
    refusal(409, "idempotency_in_progress"),
    refusal(409, "operation_in_progress", lost=True),
    refusal(503, "temporarily_unavailable", lost=True),
]
each_loss = pytest.mark.parametrize("error", LOST, ids=named)


@each_loss
def test_a_lost_answer_is_looked_for_once_and_no_other_key_is_sent(error: CallError) -> None:
    loop = Loop(error)
    with pytest.raises(Failed) as caught:
        loop.carry_out(is_outdated=lambda error: True)
    assert str(caught.value) == (
        f"{error.summary} — whether the order of it was carried out is not known; it does not show yet. "
        "Next: run again: the same request is repeated, never a second one"
    )
    assert_facts_of(error, caught.value)
    assert (loop.service.keys, loop.looked) == (loop.keys(0), ["before", "lost"])
    entry = loop.entry()
    assert entry is not None
    assert (entry.key, entry.at) == (loop.keys(0)[0], NOW)


@each_loss
def test_what_the_account_shows_after_a_loss_is_what_was_bought(error: CallError) -> None:
    loop = Loop(error, shows={"lost": ["it"]})
    assert loop.carry_out() == "it"
    assert loop.service.keys == loop.keys(0)


def test_an_answer_that_could_be_read_in_part_tells_before_the_account_does() -> None:
    loop = Loop(InvalidResponse("no JSON"))
    assert loop.carry_out(in_part=lambda error: "a part") == "a part"
    assert loop.looked == ["before"]


def test_only_an_answer_that_came_is_read_in_part() -> None:
    loop = Loop(TransportError("cut", outcome_unknown=True))
    with pytest.raises(Failed):
        loop.carry_out(in_part=lambda error: "a part")
