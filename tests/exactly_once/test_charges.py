"""One charge, whatever the service answers: which key is sent next, and what is reported. No account is
needed: the answers are listed.
"""

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import (
    CallError,
    HostingError,
    InsufficientFunds,
    InvalidResponse,
    TransportError,
)
from pulumi_hosting.exactly_once.charges import Charge
from pulumi_hosting.exactly_once.payments import CLOCKS_DIFFER
from pulumi_hosting.session.errors import Failed, ResourceError
from tests.exactly_once.service import (
    NOW,
    PAID,
    Service,
    assert_facts_of,
    busy,
    conflict,
    movement,
    named,
    refusal,
)

FACTS = {"server_id": 3, "next_due_at": "2026-12-01"}


def carry_out(service: Service, facts: dict[str, Any] = FACTS, **more: Any) -> Any:
    given: dict[str, Any] = {
        "what": "renewal of server 3",
        "kind": "server_renew",
        "subject": "server 3",
        "operation": "renew_server",
        "facts": facts,
        "send": lambda idempotency_key: service.send(idempotency_key),
        "happened": service.happened,
        "ask": service.ask,
    }
    return Charge(service.request(), **{**given, **more}).once()


def keys(service: Service, *generations: int) -> list[str]:
    """The keys of the charge that these tests make."""
    return [service.ring("renew_server", FACTS).key(generation) for generation in generations]


# --- keys and locks


def test_the_keys_are_made_of_account_mode_operation_and_facts() -> None:
    service = Service([PAID])
    assert carry_out(service) is PAID
    other = Service([PAID], account_id=8)
    carry_out(other)
    carry_out(other, {**FACTS, "server_id": 4})
    carry_out(other, operation="renew_domain")
    assert service.keys == keys(service, 0)
    assert other.keys[0] == keys(other, 0)[0]
    assert len({*service.keys, *other.keys}) == 4


def test_what_is_accepted_is_sent_once() -> None:
    service = Service([PAID])
    assert carry_out(service) is PAID
    assert service.keys == keys(service, 0)
    assert (service.messages, service.asked) == ([], [])


def test_the_same_facts_wait_for_each_other_and_others_do_not() -> None:
    service = Service([PAID])
    for facts in (FACTS, dict(reversed(FACTS.items())), {**FACTS, "server_id": 4}):
        carry_out(service, facts)
    carry_out(service, operation="renew_domain")
    one, same, other, another = service.locks.names
    assert one == same
    assert len({one, other, another}) == 3


def test_an_answer_of_the_past_is_left_behind_with_its_key() -> None:
    old = SimpleNamespace(charged=Decimal("4.00"))
    service = Service([old, PAID])
    assert carry_out(service, is_of_the_past=lambda answer: answer is old) is PAID
    assert service.keys == keys(service, 0, 1)


def test_if_nothing_tells_which_keys_are_used_it_ends_after_sixteen_answers_of_the_past() -> None:
    service = Service([PAID])
    with pytest.raises(ResourceError, match="16 requests of this kind within seven days are used up"):
        carry_out(service, is_of_the_past=lambda answer: True, ask=None)
    assert service.keys == keys(service, *range(16))


# --- refusals


@pytest.mark.parametrize(
    "error",
    [
        refusal(400, "validation_error"),
        refusal(401, "unauthorized"),
        refusal(403, "insufficient_scope"),
        refusal(404, "not_found"),
        refusal(409, "service_state"),
        refusal(429, "rate_limited"),
        refusal(503, "api_disabled"),
        TransportError("no route", outcome_unknown=False),
    ],
    ids=named,
)
def test_a_refusal_is_passed_on_and_nothing_is_repeated(error: HostingError) -> None:
    service = Service([error])
    with pytest.raises(type(error)) as caught:
        carry_out(service)
    assert caught.value is error
    assert len(service.keys) == 1


def test_a_stored_refusal_that_the_account_contradicts_is_left_behind() -> None:
    service = Service([refusal(409, "service_state"), PAID])
    assert carry_out(service, is_outdated=lambda error: error.code == "service_state") is PAID
    assert service.keys == keys(service, 0, 1)


PART = int(NOW.timestamp()) // 18000
"""The five hours in which these tests run, three of which are over."""


def test_a_refusal_that_time_may_lift_is_asked_for_once_more_with_the_key_of_these_five_hours() -> None:
    service = Service([refusal(409, "conflict"), PAID])
    assert carry_out(service, may_be_lifted=lambda error: True) is PAID
    assert service.keys == keys(service, 0, PART)
    again = Service([error := refusal(409, "conflict")])
    with pytest.raises(type(error)) as caught:
        carry_out(again, may_be_lifted=lambda error: True)
    assert caught.value is error
    assert again.keys == keys(again, 0, PART)


def test_no_other_key_is_sent_when_one_of_the_next_five_hours_may_be_sent_beside_it() -> None:
    service = Service([error := refusal(409, "conflict")], takes=1.6 * 3600)
    with pytest.raises(type(error)):
        carry_out(service, may_be_lifted=lambda error: True)
    assert service.keys == keys(service, 0)
    later = Service([refusal(409, "conflict"), PAID], takes=2.1 * 3600)
    assert carry_out(later, may_be_lifted=lambda error: True) is PAID
    assert later.keys == keys(later, 0, PART + 1)


def test_a_refusal_that_comes_back_under_every_key_is_passed_on() -> None:
    error = refusal(409, "service_state")
    service = Service([error])
    with pytest.raises(type(error)) as caught:
        carry_out(service, is_outdated=lambda error: True)
    assert caught.value is error
    assert service.keys == keys(service, *range(16))


@pytest.mark.parametrize(
    ("required", "price", "funds", "is_repeated"),
    [
        ("5.00", None, Decimal("5.00"), True),
        ("5.00", Decimal("9.00"), Decimal("5.00"), True),
        ("5.00", Decimal("1.00"), Decimal("4.99"), False),
        (None, Decimal("5.00"), Decimal("5.00"), True),
        (None, Decimal("5.00"), Decimal("4.99"), False),
        (None, None, Decimal("1000.00"), False),
        ("5.00", None, refusal(403, "insufficient_scope"), False),
    ],
)
def test_a_stored_refusal_for_lack_of_funds_holds_until_the_balance_covers_it(
    required: str | None, price: Decimal | None, funds: Any, is_repeated: bool
) -> None:
    service = Service([refusal(402, "insufficient_funds", required=required), PAID], funds=funds)
    if is_repeated:
        assert carry_out(service, price=price, is_outdated=lambda error: True) is PAID
    else:
        with pytest.raises(InsufficientFunds):
            carry_out(service, price=price, is_outdated=lambda error: True)
    assert len(service.keys) == 1 + is_repeated


# --- another operation, another process


@pytest.mark.parametrize("is_stored", [False, True])
def test_while_another_operation_runs_it_waits_and_goes_on_from_a_stored_refusal(is_stored: bool) -> None:
    service = Service([*(busy() for _ in range(4)), PAID])
    if is_stored:
        service.meanwhile = lambda: service.knows.update(service.keys)
    assert carry_out(service) is PAID
    assert service.clock.slept == [0.5, 1.0, 2.0, 4.0]
    assert service.keys == keys(service, *(range(5) if is_stored else [0] * 5))
    assert service.messages == ["renewal of server 3: another operation is running"] * 4


def test_if_nothing_tells_whether_the_refusal_was_stored_the_same_key_is_sent_again() -> None:
    service = Service([busy(), PAID])
    assert carry_out(service, ask=None) is PAID
    assert service.keys == keys(service, 0, 0)


def test_the_other_operation_may_have_been_this_charge() -> None:
    service = Service([busy()], shows=[True])
    assert carry_out(service) is None
    assert len(service.keys) == 1


def test_the_wait_for_another_operation_ends() -> None:
    error = busy()
    service = Service([error])
    with pytest.raises(type(error)) as caught:
        carry_out(service)
    assert caught.value is error
    assert 600 <= service.clock.elapsed < 607


def test_a_key_of_another_request_is_left_behind() -> None:
    service, asked = Service([conflict(), PAID]), list[int]()
    assert carry_out(service, bound_elsewhere=lambda: asked.append(1)) is PAID
    assert service.keys == keys(service, 0, 1)
    assert (service.clock.slept, asked) == ([7.0], [1])
    assert service.messages == ["renewal of server 3: another request is known under its key; looking again"]


def test_the_other_request_may_have_made_this_charge() -> None:
    service = Service([conflict()], shows=[True])
    assert carry_out(service, bound_elsewhere=lambda: pytest.fail("it shows")) is None
    assert len(service.keys) == 1


def test_where_the_other_request_may_have_charged_nothing_more_is_sent() -> None:
    def stop() -> None:
        raise ResourceError("look at it")

    service = Service([conflict()])
    with pytest.raises(ResourceError, match="look at it"):
        carry_out(service, bound_elsewhere=stop)
    assert len(service.keys) == 1


# --- lost answers

LOST = [
    TransportError("cut", outcome_unknown=True, request_id="req-1"),
    InvalidResponse("no JSON", request_id="req-1"),
    refusal(401, "unauthorized", lost=True),
    refusal(404, "not_found", lost=True),
    refusal(409, "idempotency_in_progress", lost=True),
    refusal(429, "rate_limited", lost=True),
    refusal(503, "temporarily_unavailable", lost=True),
]
each_loss = pytest.mark.parametrize(
    "error", LOST, ids=lambda error: getattr(error, "code", type(error).__name__)
)


@each_loss
def test_after_a_lost_answer_the_account_tells(error: CallError) -> None:
    service = Service([error], shows=[True])
    assert carry_out(service) is None
    assert len(service.keys) == 1


@each_loss
def test_a_lost_answer_that_the_account_does_not_show_ends_the_run(error: CallError) -> None:
    service = Service([error])
    with pytest.raises(Failed) as caught:
        carry_out(service, is_outdated=lambda error: True)
    assert str(caught.value).startswith(
        f"{error.summary} — whether the renewal of server 3 was carried out is not known; it does not show "
        "yet. Next: run again: the same request is repeated, never a second one"
    )
    assert_facts_of(error, caught.value)
    assert len(service.keys) == 1


# --- failures of the service

FAILURES = [
    refusal(status, code, lost=lost)
    for lost in (False, True)
    for status, code in ((500, "internal_error"), (502, "upstream_error"))
]
each_failure = pytest.mark.parametrize("error", FAILURES, ids=named)
is_ours: dict[str, Any] = {"concerns": lambda invoice: invoice.id in (31, 32)}


@each_failure
def test_after_a_failure_of_the_service_the_account_tells(error: CallError) -> None:
    service = Service([error], shows=[True], movements=[movement("5.00")])
    assert carry_out(service, **is_ours) is None
    assert len(service.keys) == 1


@each_failure
def test_a_failure_that_charged_is_reported_with_the_invoice(error: CallError) -> None:
    service = Service([error, PAID], movements=[movement("0.50")])
    with pytest.raises(Failed) as caught:
        carry_out(service, **is_ours)
    assert str(caught.value).startswith(
        f"{error.summary} — whether the renewal of server 3 was carried out is not known: invoice 31 is "
        "paid, and nothing shows for it; nothing was repeated. Next: look at it before running again, or ask "
        "the provider"
    )
    assert_facts_of(error, caught.value)
    assert len(service.keys) == 1


def returned(*invoices: int) -> list[Any]:
    return [movement("5.00", way, number) for way in ("debit", "credit") for number in invoices]


KEPT = [
    [movement("5.00"), movement("3.00", "credit")],
    [movement("3.00", "credit"), movement("5.00")],
    [*returned(32), movement("5.00")],
    [movement("5.00"), *returned(32)],
]


@pytest.mark.parametrize("movements", KEPT)
def test_a_failure_whose_charge_was_kept_in_part_is_not_repeated(movements: list[Any]) -> None:
    error = refusal(502, "upstream_error")
    service = Service([error, PAID], movements=movements)
    with pytest.raises(Failed, match=r"invoice 31 is paid.*nothing was repeated") as caught:
        carry_out(service, **is_ours)
    assert_facts_of(error, caught.value)
    assert service.keys == keys(service, 0)


@pytest.mark.parametrize("movements", KEPT)
def test_a_second_failure_whose_charge_was_kept_in_part_is_not_reported_as_returned(
    movements: list[Any],
) -> None:
    service = Service([refusal(502, "upstream_error")])

    def move() -> None:
        if len(service.keys) == 2:
            service.movements = movements

    service.meanwhile = move
    with pytest.raises(Failed, match=r"invoice 31 is paid.*nothing was repeated"):
        carry_out(service, **is_ours)
    assert service.keys == keys(service, 0, 1)


@pytest.mark.parametrize("invoices", [(31,), (32, 31)])
def test_a_failure_whose_charge_was_returned_is_repeated_with_the_next_key(invoices: tuple[int]) -> None:
    """The first one may be the answer of an earlier run."""
    service = Service([refusal(502, "upstream_error"), PAID], movements=returned(*invoices))
    assert carry_out(service, **is_ours) is PAID
    assert service.keys == keys(service, 0, 1)


@pytest.mark.parametrize("invoices", [(31,), (31, 32)])
def test_a_second_charge_that_was_returned_ends_it(invoices: tuple[int]) -> None:
    """An invoice that was not there at the failure before shows that this one is no replay."""
    error = refusal(502, "upstream_error")
    service = Service([error], movements=returned(*invoices))

    def charge_again() -> None:
        if len(service.keys) == 2:
            service.movements = returned(*invoices, 33)

    service.meanwhile = charge_again
    with pytest.raises(Failed) as caught:
        carry_out(service, concerns=lambda invoice: True)
    assert str(caught.value) == (
        f"{error.summary} — the renewal of server 3 was refunded; 5.00 EUR were returned, invoice 33. "
        "Next: run again in a few minutes"
    )
    assert_facts_of(error, caught.value)
    assert service.keys == keys(service, 0, 1)


@pytest.mark.parametrize(
    "movements", [[], [movement("5.00", "debit", 99)], [movement("5.00", "debit", None)]]
)
def test_a_failure_that_charged_nothing_of_ours_is_repeated(movements: list[Any]) -> None:
    service = Service([refusal(500, "internal_error"), PAID], movements=movements)
    assert carry_out(service, **is_ours) is PAID
    assert service.keys == keys(service, 0, 1)
    assert service.asked_since == NOW - CLOCKS_DIFFER


def test_money_is_looked_at_from_the_first_request_on() -> None:
    service = Service([refusal(500, "internal_error"), refusal(500, "internal_error"), PAID], takes=30.0)
    service.clock.elapsed = 1000.0
    assert carry_out(service, **is_ours) is PAID
    assert service.asked_since == NOW + timedelta(seconds=1000) - CLOCKS_DIFFER


def test_a_movement_without_an_invoice_hides_none_that_has_one() -> None:
    service = Service(
        [refusal(500, "internal_error")], movements=[movement("1.00", "debit", None), movement("5.00")]
    )
    with pytest.raises(Failed, match="invoice 31 is paid"):
        carry_out(service, **is_ours)


@pytest.mark.parametrize(
    "error", [refusal(403, "insufficient_scope"), TransportError("cut", outcome_unknown=False)], ids=named
)
def test_where_the_movements_of_money_cannot_be_seen_nothing_is_repeated(error: CallError) -> None:
    failure = refusal(500, "internal_error")
    service = Service([failure, PAID], movements=error)
    with pytest.raises(Failed, match="was carried out is not known") as caught:
        carry_out(service, **is_ours)
    assert_facts_of(failure, caught.value)
    assert len(service.keys) == 1


def test_where_no_money_moves_none_is_looked_for() -> None:
    service = Service([refusal(502, "upstream_error"), PAID], movements=AssertionError("asked"))
    assert carry_out(service) is PAID


def test_a_timeout_behind_the_service_is_never_repeated() -> None:
    service = Service([refusal(504, "upstream_timeout"), PAID])
    with pytest.raises(Failed, match="was carried out is not known"):
        carry_out(service, **is_ours)
    assert len(service.keys) == 1


@pytest.mark.parametrize(("takes", "tries"), [(61.0, 2), (59.0, 3), (121.0, 2)])
def test_failures_are_repeated_for_two_minutes_and_once_at_least(takes: float, tries: int) -> None:
    error = refusal(500, "internal_error")
    service = Service([error], takes=takes)
    with pytest.raises(Failed) as caught:
        carry_out(service, **is_ours)
    assert str(caught.value) == (
        f"{error.summary} — no money moved and nothing was bought. Next: run again later"
    )
    assert service.keys == keys(service, *range(tries))
