"""What became of a purchase, and what an answer means: pure functions, as tables."""

from datetime import timedelta
from decimal import Decimal

import pytest

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.client.exceptions import CallError, InvalidResponse, TimedOut, TransportError, error_class
from pulumi_hosting.exactly_once.payments import Payment
from pulumi_hosting.exactly_once.purchase import (
    Evidence,
    Fate,
    Meaning,
    Verdict,
    judge,
    meaning,
)
from tests.exactly_once.service import (
    refusal,
)

# --- the judgement


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
def test_only_what_keeps_no_money_or_is_forgotten_may_be_forgotten_by_a_deletion(
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
def test_a_sentence_says_the_outcome_and_where_the_money_is(evidence: Evidence, sentence: str) -> None:
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
