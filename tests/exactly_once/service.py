"""The service, by what it answers to a purchase: no account is needed, the answers are listed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import CallError, HostingError, InvalidResponse, error_class
from pulumi_hosting.client.shared_store import Files, SharedStore
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing
from pulumi_hosting.session.clock import RunClock
from pulumi_hosting.session.errors import Failed
from pulumi_hosting.session.ownership import Ownership
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.session import Session

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PAID = SimpleNamespace(charged=Decimal("5.00"))


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
    code = "invalid_response" if isinstance(error, InvalidResponse) else getattr(error, "code", None)
    assert (failed.code, failed.status) == (code, getattr(error, "status", None))


def busy() -> CallError:
    return refusal(409, "operation_in_progress")


def conflict() -> CallError:
    return refusal(409, "idempotency_conflict")


def named(error: HostingError) -> str:
    return str(getattr(error, "code", type(error).__name__))


def movement(amount: str, direction: str = "debit", invoice_id: int | None = 31) -> Any:
    return SimpleNamespace(invoice_id=invoice_id, direction=direction, amount=Decimal(amount))


def invoice(id: int, status: str = "paid", amount: str = "5.00", **more: Any) -> m.Invoice:
    """An invoice of a moment ago; paid unless ``paid_at`` says otherwise."""
    given = {"type": "vds_renewal", "created_at": NOW, "paid_at": NOW, **more}
    return m.Invoice(id=id, status=status, amount=Decimal(amount), currency="EUR", **given)


class StoppedClock(RunClock):
    """It moves only where something waits, or the service takes its time."""

    def __init__(self) -> None:
        self.elapsed, self.slept, self.is_cancelled = 0.0, list[float](), False

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
        try:
            yield
        finally:
            self.held = False


@dataclass(eq=False)
class Service:
    """The service. ``answers``: to one key after the other, the last one from then on; ``shows``: whether the
    account shows what was bought, the same way; ``knows``: keys that a question shows to be used."""

    answers: list[Any]
    shows: list[bool] = field(default_factory=lambda: [False])
    funds: Any = Decimal("100.00")
    movements: Any = ()
    invoices: Any = field(default_factory=dict)
    """By id, if they are not paid ones of 5.00 EUR."""
    knows: set[str] = field(default_factory=set)
    takes: float = 0.0
    """Seconds to each answer."""
    meanwhile: Callable[[], None] = lambda: None
    """Called while a request is under way."""
    keys: list[str] = field(default_factory=list)
    """What was sent."""
    asked: list[str] = field(default_factory=list)
    """The keys that were asked about."""
    asked_since: datetime | None = None
    observer: Any = None
    is_test_key: bool = False
    base_url: str = "https://hosting.example/v1"
    account_id: int = 7
    store: SharedStore = field(default_factory=Files)

    def __post_init__(self) -> None:
        self.clock, self.locks, self.messages = StoppedClock(), Locks(), list[str]()
        self.balance = SimpleNamespace(get=self._funds, transactions=self._transactions)
        known, self.invoices = self.invoices, SimpleNamespace(get=self._invoice)
        self._known: dict[int, Any] = known

    @property
    def key_owner(self) -> Any:
        me = SimpleNamespace(account_id=self.account_id, livemode=not self.is_test_key)
        return SimpleNamespace(is_known=True, get=lambda ask=None: me)

    @property
    def known_time(self) -> datetime:
        return self.service_now()

    def service_now(self) -> datetime:
        return NOW + timedelta(seconds=self.clock.elapsed)

    def send(self, key: str) -> Any:
        assert self.locks.held
        self.keys.append(key)
        self.clock.elapsed += self.takes
        self.meanwhile()
        return _next(self.answers)

    def ask(self, id: int, key: str) -> Any:
        """The question about a key; it binds none."""
        self.asked.append(key)
        raise conflict() if key in self.knows else refusal(404, "not_found")

    def happened(self) -> bool:
        shown: bool = _next(self.shows)
        return shown

    def request(self, identity: str = "pulumi:t/dev/server/a", **more: Any) -> Request:
        """A new request of the same process."""
        session = Session(cast(Any, self), clock=self.clock, ownership=self.locks, poll_interval=7.0)
        return Request(session, identity, info=self.messages.append, **more)

    def ring(self, operation: str, facts: dict[str, Any], identity: str = "") -> KeyRing:
        return KeyRing(
            self.account_id, not self.is_test_key, identity or f"action:{operation}", operation, facts
        )

    def _funds(self) -> Any:
        return SimpleNamespace(balance=_raised(self.funds))

    def _transactions(self, since: datetime) -> Any:
        self.asked_since = since
        return _raised(self.movements)

    def _invoice(self, id: int) -> Any:
        return _raised(self._known[id] if id in self._known else invoice(id))


def _raised(value: Any) -> Any:
    if isinstance(value, BaseException):
        raise value
    return value


def _next(values: list[Any]) -> Any:
    return _raised(values[0] if len(values) == 1 else values.pop(0))
