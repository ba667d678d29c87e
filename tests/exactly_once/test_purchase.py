"""What became of a purchase, what an answer means, and the loop that sends every purchase. No account is
needed: the answers are listed.
"""

from contextlib import AbstractContextManager
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.client.exceptions import CallError, InvalidResponse, TimedOut, TransportError, error_class
from pulumi_hosting.exactly_once import journal
from pulumi_hosting.exactly_once.key_probe import KeyWalk
from pulumi_hosting.exactly_once.payments import Payment
from pulumi_hosting.exactly_once.purchase import (
    Evidence,
    Fate,
    Meaning,
    Purchase,
    Shown,
    Verdict,
    judge,
    meaning,
)
from pulumi_hosting.session.errors import Failed, LimitExceeded, ResourceError
from pulumi_hosting.session.request import Request
from tests.exactly_once.service import (
    NOW,
    PAID,
    Service,
    assert_facts_of,
    busy,
    conflict,
    invoice,
    movement,
    named,
    refusal,
)

# --- what became of it


def paid(status: str = "paid", amount: str = "12.00", returned: str = "0") -> Payment:
    return Payment(40002, status, Decimal(amount), Decimal(returned), "EUR")


RETURNED = paid("refunded", returned="12.00")
CANCELLED = paid("cancelled", returned="12.00")
IN_PART = paid("refunded", returned="11.99")
KEPT = paid()
UNPAID = paid("not_paid", amount="0")
VOID = paid("cancelled", amount="0")
PAYING = paid("pending", amount="0")
FREE = paid(amount="0")
YOUNG, OLD = timedelta(days=6.9), timedelta(days=7.1)


@pytest.mark.parametrize(
    ("status", "payment", "age", "fate"),
    [
        # nothing is known of it but its age
        (None, None, None, Fate.UNKNOWN),
        (None, None, YOUNG, Fate.UNKNOWN),
        (None, None, OLD, Fate.NEVER_ARRIVED),
        # an order, or an object that is still to come
        *((status, None, age, Fate.ON_ITS_WAY)
          for status in ("pending", "provisioning", "transfer_pending", "a word of tomorrow")
          for age in (None, YOUNG)),
        ("pending", None, OLD, Fate.NEVER_ARRIVED),
        *((status, None, age, Fate.REFUSED)
          for status in ("failed", "refused", "rejected", "error") for age in (None, YOUNG, OLD)),
        *((status, None, age, Fate.CANCELLED)
          for status in ("cancelled", "canceled", "terminated", "deleted") for age in (None, YOUNG, OLD)),
        # its money alone
        *((None, payment, age, fate)
          for payment, fate in (
              (KEPT, Fate.ON_ITS_WAY), (IN_PART, Fate.ON_ITS_WAY), (FREE, Fate.UNKNOWN),
              (RETURNED, Fate.REFUNDED), (CANCELLED, Fate.REFUNDED), (UNPAID, Fate.UNKNOWN),
              (PAYING, Fate.UNKNOWN), (VOID, Fate.CANCELLED))
          for age in (None, YOUNG)),
        (None, KEPT, OLD, Fate.NEVER_ARRIVED),
        (None, IN_PART, OLD, Fate.NEVER_ARRIVED),
        (None, UNPAID, OLD, Fate.NEVER_ARRIVED),
        (None, RETURNED, OLD, Fate.REFUNDED),
        # both
        *(("pending", payment, age, fate)
          for payment, fate in (
              (KEPT, Fate.ON_ITS_WAY), (IN_PART, Fate.ON_ITS_WAY), (FREE, Fate.ON_ITS_WAY),
              (RETURNED, Fate.REFUNDED), (CANCELLED, Fate.REFUNDED), (UNPAID, Fate.ON_ITS_WAY),
              (PAYING, Fate.ON_ITS_WAY))
          for age in (None, YOUNG)),
        ("pending", KEPT, OLD, Fate.NEVER_ARRIVED),
        ("pending", RETURNED, OLD, Fate.REFUNDED),
        *(("failed", payment, age, Fate.REFUSED)
          for payment in (KEPT, IN_PART, RETURNED, UNPAID) for age in (None, OLD)),
        *(("cancelled", payment, age, fate)
          for payment, fate in (
              (KEPT, Fate.CANCELLED), (IN_PART, Fate.CANCELLED), (UNPAID, Fate.CANCELLED),
              (RETURNED, Fate.REFUSED), (CANCELLED, Fate.REFUSED))
          for age in (None, OLD)),
    ],
)  # fmt: skip
def test_what_became_of_a_purchase(
    status: str | None, payment: Payment | None, age: timedelta | None, fate: Fate
) -> None:
    verdict = judge(Evidence(status=status, payment=payment, age=age))
    assert verdict == Verdict(fate, payment)
    is_there = judge(Evidence(is_there=True, status=status, payment=payment, age=age))
    assert is_there == Verdict(Fate.THERE, payment)
    assert not is_there.is_over
    assert not is_there.may_be_forgotten


@pytest.mark.parametrize(
    ("fate", "is_over"),
    [
        (Fate.THERE, False),
        (Fate.ON_ITS_WAY, False),
        (Fate.UNKNOWN, False),
        (Fate.REFUNDED, True),
        (Fate.REFUSED, True),
        (Fate.CANCELLED, True),
        (Fate.NEVER_ARRIVED, True),
    ],
)
def test_of_which_purchases_nothing_comes_any_more(fate: Fate, is_over: bool) -> None:
    assert Verdict(fate).is_over is is_over


@pytest.mark.parametrize("fate", Fate)
@pytest.mark.parametrize(
    ("payment", "keeps_nothing"),
    [
        (None, False),
        (KEPT, False),
        (IN_PART, False),
        (RETURNED, True),
        (CANCELLED, True),
        (UNPAID, True),
        (VOID, True),
        (FREE, True),
    ],
)
def test_only_what_keeps_no_money_or_is_forgotten_may_be_let_go(
    fate: Fate, payment: Payment | None, keeps_nothing: bool
) -> None:
    expected = fate is not Fate.THERE and (keeps_nothing or fate is Fate.NEVER_ARRIVED)
    assert Verdict(fate, payment).may_be_forgotten is expected


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (
            Evidence(status="cancelled", payment=RETURNED),
            "the domain shop.com was refused; 12.00 EUR were returned, invoice 40002",
        ),
        (
            Evidence(status="cancelled", payment=KEPT),
            "the domain shop.com was cancelled; 12.00 EUR were not returned, invoice 40002",
        ),
        (
            Evidence(status="failed", payment=IN_PART),
            "the domain shop.com was refused; 11.99 EUR were returned and 0.01 EUR were not returned, "
            "invoice 40002",
        ),
        (
            Evidence(payment=RETURNED),
            "the domain shop.com was refunded; 12.00 EUR were returned, invoice 40002",
        ),
        (
            Evidence(payment=KEPT, age=OLD),
            "the domain shop.com never arrived; 12.00 EUR were not returned, invoice 40002",
        ),
        (
            Evidence(status="failed", payment=UNPAID),
            "the domain shop.com was refused; nothing was charged, invoice 40002",
        ),
        (
            Evidence(status="cancelled"),
            "the domain shop.com was cancelled; what became of its charge is not known",
        ),
        (
            Evidence(),
            "the domain shop.com is not known to have arrived; what became of its charge is not known",
        ),
    ],
)
def test_a_sentence_says_what_became_of_it_and_where_the_money_is(evidence: Evidence, sentence: str) -> None:
    assert judge(evidence).sentence("the domain shop.com") == sentence


# --- what an answer means

DECIDED = {
    "idempotency_conflict": Meaning.CONFLICT,
    "idempotency_in_progress": Meaning.LOST,
    "operation_in_progress": Meaning.BUSY,
    "server_error": Meaning.FAILED,
    "upstream_error": Meaning.FAILED,
    "upstream_timeout": Meaning.LOST,
}
"""Every other code refuses, unless an attempt was lost."""
STORED_FAILURES = ("server_error", "upstream_error")


@pytest.mark.parametrize("code", CODES)
def test_what_every_code_means(code: str) -> None:
    status = CODES[code].status
    assert meaning(refusal(status, code)) is DECIDED.get(code, Meaning.REFUSED)
    after_a_loss = Meaning.FAILED if code in STORED_FAILURES else Meaning.LOST
    assert meaning(refusal(status, code, lost=True)) is after_a_loss


@pytest.mark.parametrize(
    ("status", "means", "after_a_loss"),
    [
        (400, Meaning.REFUSED, Meaning.LOST),
        (403, Meaning.REFUSED, Meaning.LOST),
        (404, Meaning.REFUSED, Meaning.LOST),
        (409, Meaning.REFUSED, Meaning.LOST),
        (418, Meaning.REFUSED, Meaning.LOST),
        (429, Meaning.REFUSED, Meaning.LOST),
        (500, Meaning.FAILED, Meaning.FAILED),
        (501, Meaning.FAILED, Meaning.LOST),
        (502, Meaning.FAILED, Meaning.FAILED),
        (503, Meaning.REFUSED, Meaning.LOST),
        (504, Meaning.LOST, Meaning.LOST),
        (507, Meaning.FAILED, Meaning.LOST),
    ],
)
def test_what_a_code_of_tomorrow_means(status: int, means: Meaning, after_a_loss: Meaning) -> None:
    assert meaning(refusal(status, "a_code_of_tomorrow")) is means
    assert meaning(refusal(status, "a_code_of_tomorrow", lost=True)) is after_a_loss


@pytest.mark.parametrize("status", [400, 404, 500, 502, 503, 504])
def test_an_answer_of_a_gateway_decides_nothing_while_an_attempt_may_be_under_way(status: int) -> None:
    code = f"http_{status}"
    foreign = error_class(status, code)(status=status, code=code, message="")
    foreign.outcome_unknown = True
    assert meaning(foreign) is Meaning.LOST


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (TransportError("cut", outcome_unknown=True), Meaning.LOST),
        (TransportError("no route", outcome_unknown=False), Meaning.REFUSED),
        (TimedOut("too late", outcome_unknown=True), Meaning.LOST),
        (TimedOut("no connection", outcome_unknown=False), Meaning.REFUSED),
        (InvalidResponse("no JSON"), Meaning.LOST),
    ],
    ids=str,
)
def test_what_no_usable_answer_means(error: CallError, means: Meaning) -> None:
    assert meaning(error) is means


# --- the loop

KIND, SUBJECT = "server", "the one"
LOOKS = ("before", "busy", "conflict", "lost", "failed")


class Loop:
    """One purchase from a service, and what is looked at and asked on the way. ``shows``: what the account
    shows at each look, by its reason."""

    def __init__(self, *answers: Any, shows: dict[str, list[Any]] | None = None, **service: Any) -> None:
        self.service = Service([*answers] or [PAID], **service)
        self.service.meanwhile = self._note_entry
        self.shows = shows or {}
        self.looked = list[str]()
        self.entries = list[bool]()
        """Whether the journal had an entry, at each request."""
        self.request = self.service.request()
        self.ring = self.service.ring("create_server", {}, self.request.identity)

    def keys(self, *generations: int) -> list[str]:
        return [self.ring.key(generation) for generation in generations]

    def entry(self) -> journal.Entry | None:
        """What a new process is told by the journal."""
        return journal.interrupted(self.service.request(), KIND, SUBJECT)

    def report(self) -> None:
        """The frontend has been given what this request came to."""
        journal.reported(self.request.client, self.request.unreported)

    def _note_entry(self) -> None:
        self.entries.append(self.entry() is not None)

    def _look(self, when: str) -> Shown[Any] | None:
        self.looked.append(when)
        found = self.shows.get(when, [None])
        shown = found[0] if len(found) == 1 else found.pop(0)
        return None if shown is None else Shown(shown)

    def purchase(self, **more: Any) -> Purchase[Any, Any]:
        def turn() -> AbstractContextManager[object]:
            return self.service.locks.lock(SUBJECT)

        given: dict[str, Any] = {
            "walk": lambda: KeyWalk(self.ring, ask=self.service.ask),
            "look": self._look,
            "send": self.service.send,
            "accept": lambda answer, walk: answer,
            "turn": turn,
            "subject": SUBJECT,
            "concerns": lambda found: found.id in (31, 32),
        }
        return Purchase(self.request, "order of it", KIND, **{**given, **more})

    def carry_out(self, **more: Any) -> Any:
        return self.purchase(**more).carry_out()


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

    loop.request.approve = lambda: look("approval")
    loop.carry_out(look=look)
    assert held == [True, True, True]
    assert not loop.service.locks.held


def test_a_refused_approval_sends_nothing_and_notes_nothing() -> None:
    loop = Loop()

    def refuse() -> None:
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

    monkeypatch.setattr(loop.service.clock, "raise_if_cancelled", cancelled)
    loop.request.approve = lambda: order.append("approved")
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
    assert (loop.service.keys, loop.looked) == (loop.keys(0, 2), ["before", "conflict"])


def test_after_a_conflict_the_other_request_may_show_shortly() -> None:
    loop = Loop(conflict(), shows={"conflict": [None, None, "it"]})
    assert loop.carry_out(under_way=30.0) == "it"
    assert (loop.service.clock.slept, loop.service.keys) == ([7.0, 7.0, 7.0], loop.keys(0))


def test_after_a_conflict_it_waits_as_long_as_another_request_may_be_under_way() -> None:
    loop = Loop(conflict(), PAID)
    assert loop.carry_out(under_way=30.0) is PAID
    assert loop.service.clock.slept == [7.0] * 5


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

    loop.service.ask, loop.service.send = ask, send  # type: ignore[method-assign]


def must_not_be_asked() -> None:
    pytest.fail("only the question had bound the key")


def test_a_key_that_only_the_question_bound_is_followed_by_the_next_one() -> None:
    loop = Loop(refusal(409, "no_capacity"), PAID)
    binding(loop)
    found = loop.carry_out(is_outdated=lambda error: True, bound_elsewhere=must_not_be_asked)
    assert found is PAID
    assert loop.service.keys == loop.keys(0, 1, 2)  # three expensive requests at most
    assert (loop.looked, loop.service.clock.slept) == (["before"], [])


def test_a_refusal_after_the_questions_own_key_is_of_this_moment() -> None:
    error = refusal(409, "no_capacity")
    loop = Loop(error)
    binding(loop)
    with pytest.raises(type(error)) as caught:
        loop.carry_out(is_outdated=lambda error: True, bound_elsewhere=must_not_be_asked)
    assert caught.value is error
    assert loop.service.keys == loop.keys(0, 1, 2)


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


# --- failures of the service


def returned(*invoices: int) -> list[Any]:
    return [movement("5.00", way, number) for way in ("debit", "credit") for number in invoices]


FAILURES = [refusal(500, "server_error"), refusal(502, "upstream_error"), refusal(501, "of_tomorrow")]
each_failure = pytest.mark.parametrize("error", FAILURES, ids=named)


@each_failure
def test_a_failure_that_moved_nothing_is_followed_by_the_next_key(error: CallError) -> None:
    loop = Loop(error, PAID)
    assert loop.carry_out() is PAID
    assert (loop.service.keys, loop.looked) == (loop.keys(0, 1), ["before", "failed"])


@each_failure
def test_what_the_account_shows_after_a_failure_is_what_was_bought(error: CallError) -> None:
    loop = Loop(error, shows={"failed": ["it"]}, movements=[movement("5.00")])
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

    def send(key: str) -> Any:
        assert len(loop.service.keys) < 20, "it never ends"
        return Service.send(loop.service, key)

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
    assert journal.interrupted(other[0], KIND, SUBJECT) is None
    assert journal.interrupted(loop.service.request(), KIND, "another") is None
    assert journal.interrupted(loop.service.request(), "domain", SUBJECT) is None


def test_money_is_looked_at_from_the_first_request_of_this_call_on() -> None:
    loop = Loop(refusal(500, "server_error"), PAID, takes=30.0)
    purchase = loop.purchase()
    loop.service.clock.elapsed = 1000.0
    assert purchase.started() == NOW + timedelta(seconds=1000)  # nothing was sent yet
    purchase.carry_out()
    assert purchase.started() == NOW + timedelta(seconds=1000)
    assert loop.service.clock.elapsed == 1060.0
