"""What a rehearsal found: its steps, what the program costs, and what would be lost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.facts import JsonObject, ReportFacts

_GONE = ("cancelled", "terminated", "transferred_out")


@dataclass(frozen=True, slots=True)
class StepOutcome(ReportFacts):
    """One step. ``expected``: what it should do, in words. ``changes``: counts by operation. ``problems``:
    what was not as expected, line by line. ``warnings``: those of the run.
    """

    JSON = ("title", "passed", "expected", "changes", "requests", "seconds", "problems", "warnings")

    title: str
    passed: bool
    expected: str
    changes: Mapping[str, int]
    requests: int
    seconds: float
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        """The changes in words."""
        return ", ".join(f"{count} {op}" for op, count in sorted(self.changes.items())) or "no change"


@dataclass(frozen=True, slots=True)
class ProgramCost(ReportFacts):
    """What the program costs; the drifts and repairs of the rehearsal are not in it. Amounts are in
    ``currency``.

    - ``first_up``: what the first `up` charges.
    - ``per_month``: the price per month of what it makes, by the price list; of a domain a twelfth of its
      price per year.
    - ``refunded_at_once``: what is credited if everything is destroyed right after the first `up`.
    """

    JSON = ("first_up", "per_month", "refunded_at_once", "currency")

    first_up: Decimal
    per_month: Decimal
    refunded_at_once: Decimal
    currency: str

    def __str__(self) -> str:
        return (
            f"{self.first_up} {self.currency} at the first up, {self.per_month} {self.currency} per month, "
            f"{self.refunded_at_once} {self.currency} refunded if destroyed at once"
        )


@dataclass(frozen=True, slots=True)
class Loss(ReportFacts):
    """An object whose paid time ended.

    - ``became``: ``suspended``, ``terminated`` or ``expired``; ``at``: when.
    - ``announced``: days before, by each run, job and event that named it; 0: on the day itself.
    """

    JSON = ("kind", "id", "name", "became", "at", "announced")

    kind: str
    id: str
    name: str
    became: str
    at: datetime
    announced: Mapping[str, int]

    def __str__(self) -> str:
        first = sorted(self.announced.items(), key=lambda item: (-item[1], item[0]))
        by_whom = ", ".join(f"{by} {days}" for by, days in first)
        said = f"announced by {by_whom} days before" if by_whom else "not announced"
        return f"{self.at:%Y-%m-%d}: {self.kind} {self.id} ({self.name}) is {self.became}; {said}"


@dataclass
class RehearsalOutcome(ReportFacts):
    """One rehearsal. ``cost``: None if the first `up` failed. ``losses``: in order of time."""

    JSON = ("program", "engine", "dialect", "passed", "failed", "cost", "requests", "losses", "steps")

    program: str
    engine: str
    dialect: str = "spec"
    steps: list[StepOutcome] = field(default_factory=list)
    cost: ProgramCost | None = None
    losses: list[Loss] = field(default_factory=list)

    @property
    def failed(self) -> list[str]:
        """The titles of the steps that were not as expected."""
        return [step.title for step in self.steps if not step.passed]

    @property
    def passed(self) -> bool:
        return bool(self.steps) and not self.failed

    @property
    def requests(self) -> int:
        return sum(step.requests for step in self.steps)

    @property
    def conclusion(self) -> str:
        """In words."""
        steps = f"not as expected: {'; '.join(self.failed)}" if self.failed else "everything as expected"
        lost = dict.fromkeys(f"{loss.kind} {loss.id} ({loss.name})" for loss in self.losses)
        return f"{steps}; would be lost: {', '.join(lost)}" if lost else steps


def program_cost(control: Control, base_url: str, movements: Iterable[JsonObject]) -> ProgramCost:
    """The cost of what is on an emulator's account, right after the first `up`. ``movements``: its movements
    of money. The requests are sent with a key of their own, which no limit holds up.
    """
    objects = control("GET", "/objects")
    account = objects["accounts"][0]
    living = {
        kind: [row for row in objects[kind] if row["status"] not in _GONE] for kind in ("servers", "domains")
    }
    monthly = [Decimal(row["price_monthly"]) for row in living["servers"]]
    monthly += [Decimal(row["price_monthly"]) for row in objects["addresses"] if row["bought"]]
    monthly += [Decimal(row["price_renew"]) / 12 for row in living["domains"]]
    paid = [
        Decimal(row["amount"]) * (1 if row["direction"] == "debit" else -1)
        for row in movements
        if row["type"] in ("payment", "refund")
    ]
    limits = {"rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6}
    key = control("POST", "/keys", {"mode": "live", "scopes": ["servers:read"], **limits})["key"]
    quotes = [
        Control(base_url)("GET", f"/servers/{row['id']}/refund-quote", Authorization=f"Bearer {key}")
        for row in living["servers"]
    ]
    refunds = [Decimal(quote["amount"]) for quote in quotes]
    return ProgramCost(_sum(paid), _sum(monthly), _sum(refunds), str(account["currency"]))


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0)).quantize(Decimal("0.01"), ROUND_HALF_UP)
