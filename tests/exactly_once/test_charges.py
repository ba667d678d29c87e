"""One charge, whatever the service answers: which key is sent next, and what is reported. No account is
needed: the answers are listed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulumi_hosting.client.absence import KeyOwner
from pulumi_hosting.client.exceptions import (
    CallError,
    HostingError,
    InsufficientFunds,
    InvalidResponse,
    TransportError,
    error_class,
)
from pulumi_hosting.exactly_once.charges import GENERATIONS, Once
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.session.clock import Clock
from pulumi_hosting.session.errors import Failed, ResourceError
from pulumi_hosting.session.ownership import Ownership
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PAID = SimpleNamespace(charged=Decimal("5.00"))
FACTS = {"server_id": 3, "next_due_at": "2026-12-01"}


def refusal(status: int, code: str, *, lost: bool = False, **details: Any) -> CallError:
    """An answer with an error; ``lost``: an earlier attempt of the call was lost."""
    error = error_class(status, code)(
        status=status, code=code, message="no", details=details, request_id="req-1"
    )
    error.outcome_unknown = lost
    return error


def assert_facts_of(error: CallError, failed: Failed) -> None:
    """What is reported carries the facts of the answer."""
    assert failed.request_id == error.request_id == "req-1"
    assert (failed.code, failed.status) == (getattr(error, "code", None), getattr(error, "status", None))


def busy() -> CallError:
    return refusal(409, "operation_in_progress")


def named(error: HostingError) -> str:
    return str(getattr(error, "code", type(error).__name__))


def movement(amount: str, direction: str = "debit", invoice_id: int | None = 31) -> Any:
    return SimpleNamespace(invoice_id=invoice_id, direction=direction, amount=Decimal(amount))


class StoppedClock(Clock):
    """It moves only where something waits, or the service takes its time."""

    def __init__(self) -> None:
        self.elapsed, self.slept = 0.0, list[float]()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.elapsed)

    def monotonic(self) -> float:
        return self.elapsed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds


class Locks(Ownership):
    """Notes the names that are locked, and whether one is."""

    def __init__(self) -> None:
        super().__init__()
        self.names, self.held = list[str](), False

    @contextmanager
    def lock(self, natural_key: str) -> Iterator[None]:
        self.names.append(natural_key)
        self.held = True
        yield
        self.held = False


@dataclass(eq=False)
class Service:
    """The service, by what it answers. ``answers``: to one key after the other, the last one from then on;
    ``shows``: whether the account shows the charge, the same way."""

    answers: list[Any]
    shows: list[bool] = field(default_factory=lambda: [False])
    funds: Any = Decimal("100.00")
    movements: Any = ()
    takes: float = 0.0
    """Seconds to each answer."""
    keys: list[str] = field(default_factory=list)
    """What was sent."""
    asked_since: datetime | None = None
    transport: Any = field(default_factory=lambda: SimpleNamespace(observer=None))
    is_test_key: bool = False

    def __post_init__(self) -> None:
        self.clock, self.locks, self.messages = StoppedClock(), Locks(), list[str]()
        self.balance = SimpleNamespace(get=self._funds, transactions=self._transactions)
        self.invoices = SimpleNamespace(get=lambda id: SimpleNamespace(id=id))
        self.key_owner = KeyOwner(self.me)

    def me(self) -> Any:
        return SimpleNamespace(account_id=7, livemode=True)

    def service_now(self) -> datetime:
        return NOW

    def send(self, key: str) -> Any:
        assert self.locks.held
        self.keys.append(key)
        self.clock.elapsed += self.takes
        return _next(self.answers)

    def _funds(self) -> Any:
        return SimpleNamespace(balance=_raised(self.funds))

    def _transactions(self, since: datetime) -> Any:
        self.asked_since = since
        return _raised(self.movements)

    def charge(self, facts: dict[str, Any] = FACTS, **more: Any) -> Once[Any]:
        session = Session(cast(Any, self), clock=self.clock, ownership=self.locks, poll_interval=7.0)
        return Once(
            **{
                "request": Request(session, "pulumi:t/dev/server/a", info=self.messages.append),
                "what": "renewal of server 3",
                "operation": "renew_server",
                "facts": facts,
                "send": self.send,
                "happened": lambda: _next(self.shows),
                **more,
            }
        )


def _raised(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def _next(values: list[Any]) -> Any:
    return _raised(values[0] if len(values) == 1 else values.pop(0))


# --- keys and locks


def test_the_keys_are_made_of_account_mode_operation_and_facts() -> None:
    charge = Service([PAID]).charge()
    assert charge.keys == KeyRing(7, True, "action:renew_server", "renew_server", FACTS)


def test_what_is_accepted_is_sent_once() -> None:
    service = Service([PAID])
    charge = service.charge()
    assert charge.carry_out() is PAID
    assert service.keys == [charge.keys.key(0)]
    assert service.messages == []


def test_the_same_facts_wait_for_each_other_and_others_do_not() -> None:
    service = Service([PAID])
    for facts in (FACTS, dict(reversed(FACTS.items())), {**FACTS, "server_id": 4}):
        service.charge(facts).carry_out()
    service.charge(operation="renew_domain").carry_out()
    one, same, other, another = service.locks.names
    assert one == same
    assert len({one, other, another}) == 3


def test_an_answer_of_the_past_is_left_behind_with_its_key() -> None:
    old = SimpleNamespace(charged=Decimal("4.00"))
    service = Service([old, PAID])
    charge = service.charge(is_of_the_past=lambda answer: answer is old)
    assert charge.carry_out() is PAID
    assert service.keys == [charge.keys.key(0), charge.keys.key(1)]


def test_after_sixteen_answers_of_the_past_it_ends() -> None:
    service = Service([PAID])
    with pytest.raises(ResourceError) as caught:
        service.charge(is_of_the_past=lambda answer: True).carry_out()
    assert str(caught.value) == (
        "renewal of server 3: 16 tries within seven days are used up. Next: wait for the oldest to be "
        "forgotten"
    )
    assert len(set(service.keys)) == len(service.keys) == GENERATIONS


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
        service.charge().carry_out()
    assert caught.value is error
    assert len(service.keys) == 1


def test_a_stored_refusal_that_the_account_contradicts_is_left_behind() -> None:
    service = Service([refusal(409, "service_state"), PAID])
    charge = service.charge(contradicted=lambda error: error.code == "service_state")
    assert charge.carry_out() is PAID
    assert service.keys == [charge.keys.key(0), charge.keys.key(1)]


def test_a_refusal_that_comes_back_under_every_key_is_passed_on() -> None:
    error = refusal(409, "service_state")
    service = Service([error])
    with pytest.raises(type(error)) as caught:
        service.charge(contradicted=lambda error: True).carry_out()
    assert caught.value is error
    assert len(service.keys) == GENERATIONS


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
    charge = service.charge(price=price, contradicted=lambda error: True)
    if is_repeated:
        assert charge.carry_out() is PAID
    else:
        with pytest.raises(InsufficientFunds):
            charge.carry_out()
    assert len(service.keys) == 1 + is_repeated


# --- another operation, another process


def test_while_another_operation_runs_it_waits_and_takes_keys_of_the_moment() -> None:
    service = Service([*(busy() for _ in range(4)), PAID])
    charge = service.charge()
    assert charge.carry_out() is PAID
    assert service.clock.slept == [0.5, 1.0, 2.0, 4.0]
    second = int(NOW.timestamp())
    moments = [second + 1, second + 1 + 2, second + 3 + 3, second + 7 + 4]  # never one of them twice
    assert service.keys == [
        charge.keys.key(0),
        *(replace(charge.keys, attempt=moment).key(0) for moment in moments),
    ]
    assert service.messages == ["renewal of server 3: another operation is running"] * 4


def test_the_other_operation_may_have_been_this_charge() -> None:
    service = Service([busy()], shows=[True])
    assert service.charge().carry_out() is None
    assert len(service.keys) == 1


def test_the_wait_for_another_operation_ends() -> None:
    error = busy()
    service = Service([error])
    with pytest.raises(type(error)) as caught:
        service.charge().carry_out()
    assert caught.value is error
    assert 600 <= service.clock.elapsed < 607


def test_a_key_of_another_request_is_left_behind() -> None:
    service, asked = Service([refusal(409, "idempotency_conflict"), PAID]), list[int]()
    charge = service.charge(bound_elsewhere=lambda: asked.append(1))
    assert charge.carry_out() is PAID
    assert service.keys == [charge.keys.key(0), charge.keys.key(1)]
    assert (service.clock.slept, asked) == ([7.0], [1])
    assert service.messages == ["renewal of server 3: another request of the kind is known; looking again"]


def test_the_other_request_may_have_made_this_charge() -> None:
    service = Service([refusal(409, "idempotency_conflict")], shows=[True])
    assert service.charge(bound_elsewhere=lambda: pytest.fail("it shows")).carry_out() is None
    assert len(service.keys) == 1


def test_where_the_other_request_may_have_charged_nothing_more_is_sent() -> None:
    def stop() -> None:
        raise ResourceError("look at it")

    service = Service([refusal(409, "idempotency_conflict")])
    with pytest.raises(ResourceError, match="look at it"):
        service.charge(bound_elsewhere=stop).carry_out()
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
    assert service.charge().carry_out() is None
    assert len(service.keys) == 1


@each_loss
def test_a_lost_answer_that_the_account_does_not_show_ends_the_run(error: CallError) -> None:
    service = Service([error])
    with pytest.raises(Failed) as caught:
        service.charge(contradicted=lambda error: True).carry_out()
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
    for status, code in ((500, "internal_error"), (502, "upstream_error"), (504, "upstream_timeout"))
]
each_failure = pytest.mark.parametrize("error", FAILURES, ids=named)
is_ours: dict[str, Any] = {"concerns": lambda invoice: invoice.id in (31, 32)}


@each_failure
def test_after_a_failure_of_the_service_the_account_tells(error: CallError) -> None:
    service = Service([error], shows=[True], movements=[movement("5.00")])
    assert service.charge(**is_ours).carry_out() is None
    assert len(service.keys) == 1


@each_failure
def test_a_failure_that_charged_is_reported_with_the_invoice(error: CallError) -> None:
    service = Service([error, PAID], movements=[movement("0.50")])
    with pytest.raises(Failed) as caught:
        service.charge(**is_ours).carry_out()
    assert str(caught.value).startswith(
        f"{error.summary} — invoice 31 is paid, and the renewal of server 3 does not show; nothing was "
        "repeated. Next: look at it before running again, or ask the provider"
    )
    assert_facts_of(error, caught.value)
    assert len(service.keys) == 1


@pytest.mark.parametrize(
    ("movements", "outcome"),
    [
        ([movement("5.00"), movement("3.00", "credit")], "invoice 31 is paid"),
        ([movement("3.00", "credit"), movement("5.00")], "invoice 31 is paid"),
        ([movement("5.00"), movement("5.00", "credit")], r"the charge was returned \(invoice 31\)"),
        (
            [movement("5.00", way, invoice) for way in ("debit", "credit") for invoice in (32, 31)],
            r"the charge was returned \(invoice 32\)",
        ),
        (
            [movement("5.00"), movement("5.00", "credit"), movement("5.00", "debit", 32)],
            "invoice 32 is paid",
        ),
    ],
)
def test_a_failure_whose_charge_was_returned_is_not_repeated_either(
    movements: list[Any], outcome: str
) -> None:
    error = refusal(502, "upstream_error")
    service = Service([error, PAID], movements=movements)
    with pytest.raises(Failed, match=outcome) as caught:
        service.charge(**is_ours).carry_out()
    assert_facts_of(error, caught.value)
    assert "nothing was repeated" in str(caught.value)
    assert len(service.keys) == 1


@pytest.mark.parametrize(
    "movements", [[], [movement("5.00", "debit", 99)], [movement("5.00", "debit", None)]]
)
def test_a_failure_that_charged_nothing_of_ours_is_repeated(movements: list[Any]) -> None:
    service = Service([refusal(500, "internal_error"), PAID], movements=movements)
    charge = service.charge(**is_ours)
    assert charge.carry_out() is PAID
    assert service.keys == [charge.keys.key(0), charge.keys.key(1)]
    assert service.asked_since == NOW - timedelta(minutes=5)


def test_a_movement_without_an_invoice_hides_none_that_has_one() -> None:
    service = Service(
        [refusal(500, "internal_error")], movements=[movement("1.00", "debit", None), movement("5.00")]
    )
    with pytest.raises(Failed, match="invoice 31 is paid"):
        service.charge(**is_ours).carry_out()


@pytest.mark.parametrize(
    "error", [refusal(403, "insufficient_scope"), TransportError("cut", outcome_unknown=False)], ids=named
)
def test_where_the_movements_of_money_cannot_be_seen_nothing_is_repeated(error: CallError) -> None:
    failure = refusal(500, "internal_error")
    service = Service([failure, PAID], movements=error)
    with pytest.raises(Failed, match="was carried out is not known") as caught:
        service.charge(**is_ours).carry_out()
    assert_facts_of(failure, caught.value)
    assert len(service.keys) == 1


def test_where_no_money_moves_none_is_looked_for() -> None:
    service = Service([refusal(502, "upstream_error"), PAID], movements=AssertionError("asked"))
    assert service.charge().carry_out() is PAID


def test_a_timeout_behind_the_service_is_never_repeated() -> None:
    service = Service([refusal(504, "upstream_timeout"), PAID])
    with pytest.raises(Failed, match="was carried out is not known"):
        service.charge(**is_ours).carry_out()
    assert len(service.keys) == 1


@pytest.mark.parametrize(("takes", "tries"), [(61.0, 2), (59.0, 3), (121.0, 1)])
def test_failures_are_repeated_for_two_minutes(takes: float, tries: int) -> None:
    service = Service([refusal(500, "internal_error")], takes=takes)
    with pytest.raises(Failed, match="was carried out is not known"):
        service.charge().carry_out()
    assert len(service.keys) == tries
