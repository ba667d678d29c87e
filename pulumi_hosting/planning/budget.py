"""What one run may charge: a limit, and a book of what is planned. What the processes of a run plan is
counted together through its ledger: the processes of one engine run, or the tasks of a play."""

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, Protocol, TypeVar

from pulumi_hosting.api.secrets import quoted
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.planning.monthly_budget import MonthlyBudget
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import LimitExceeded

T = TypeVar("T")
NO_LIMIT = "is empty, which would be no limit. Next: give an amount such as 25.00, or unset it"

Moved = Literal["charged", "credited"]

_AMOUNT = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def money_limit(value: object) -> Decimal | None:
    """The amount that a limit of money names; None if it names none.

    >>> money_limit("25.00"), money_limit(-1), money_limit(True), money_limit("1e2")
    (Decimal('25.00'), None, None, None)
    """
    text = str(value)
    return Decimal(text) if not isinstance(value, bool) and _AMOUNT.fullmatch(text) else None


def would_charge(cost: Cost, total: Decimal) -> str:
    """What the charges of a run come to with one more order, in the words of every refusal."""
    amount = f"{cost.amount} {cost.currency}"
    return f"with {amount} for {cost.what} this run would charge {total} {cost.currency}"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a run may charge. Only this class reads it.

    - ``name``: the setting of a stack, or the option of a task; ``given``: its value, None if it has none.
    - ``less``: what to do if the limit is right, in the words of the frontend.
    - ``booked``: what was booked for a task that goes on alone; None for all others. It may charge no more.
    """

    name: str = "maxCharge"
    given: object = None
    less: str = "declare less"
    booked: Decimal | None = None

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> "Limit":
        """That of a stack's settings or a task's options; unset while its value is not known."""
        limit = cls() if "max_charge" not in settings else cls("max_charge", less="leave tasks out")
        given = settings.get(limit.name)
        if isinstance(given, str) and given.isspace():
            given = ""  # of a template, often
        return replace(limit, given=given) if isinstance(given, str | int | float) else limit

    @property
    def is_set(self) -> bool:
        return self.given is not None

    @property
    def problem(self) -> str | None:
        """Why it cannot be used; None if it can. A variable that should hold the limit and is not set must
        not lift it.

        >>> Limit(given="").problem == NO_LIMIT, Limit(given="5 EUR").problem, Limit().problem
        (True, "must be an amount of money, such as 25.00, not '5 EUR'", None)
        """
        if self.given is None or money_limit(self.given) is not None:
            return None
        if self.given == "":
            return NO_LIMIT
        return f"must be an amount of money, such as 25.00, not {quoted(self.given)}"

    def __str__(self) -> str:
        """As messages show it.

        >>> str(Limit(given=25)), str(Limit("max_charge"))
        ('maxCharge is 25', 'max_charge is not set')
        """
        return f"{self.name} is {money_limit(self.given)}" if self.is_set else f"{self.name} is not set"

    def refusal(self, cost: Cost, total: Decimal) -> str | None:
        """Why an order cannot be made with which the run would charge ``total``; None if it can."""
        if self.problem is not None:
            raise ValueError(self.problem)
        limit = money_limit(self.given)
        at_most = limit if self.booked is None else self.booked
        if at_most is None or total <= at_most:
            return None
        if self.booked is not None:
            return (
                f"{cost.what} costs {cost.amount} {cost.currency}, more than the {self.booked} that were "
                f"booked for this task of {self.name} {limit} when it began; it is not ordered. Next: run "
                "again"
            )
        return (
            f"{would_charge(cost, total)}, more than {self.name} {limit}; it is not ordered. Next: raise "
            f"{self.name}, or {self.less}"
        )


class Book:
    """What one process plans to charge, once for each identity, and what the others of its run do.

    - ``own``: what is planned here, by currency; ``elsewhere``: what the others plan.
    - ``openings``: the balances as the run first saw them, by currency: what it has paid since is among what
      it planned. None is there if no price came with a balance.
    - ``stopped``: why the run orders nothing more; None while it may.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._costs: dict[str, Cost] = {}
        self.own: dict[str, Decimal] = {}
        self.elsewhere: dict[str, Decimal] = {}
        self.openings: dict[str, Decimal] = {}
        self.stopped: str | None = None

    def planned(self, identity: str) -> Cost | None:
        return self._costs.get(identity)

    def total(self, currency: str) -> Decimal:
        """What the run charges so far, in this currency."""
        with self.lock:
            return self.own.get(currency, Decimal(0)) + self.elsewhere.get(currency, Decimal(0))

    def add(self, identity: str, cost: Cost) -> None:
        """Plan it, in place of what was planned for this identity before."""
        with self.lock:
            self.remove(identity)
            self._costs[identity] = cost
            self.own[cost.currency] = self.own.get(cost.currency, Decimal(0)) + cost.amount
            if cost.balance is not None:
                self.openings.setdefault(cost.currency, cost.balance)

    def remove(self, identity: str) -> Cost | None:
        """What was planned for this identity; from now on, nothing is."""
        with self.lock:
            cost = self._costs.pop(identity, None)
            if cost is not None:
                self.own[cost.currency] -= cost.amount
                if all(other.currency != cost.currency for other in self._costs.values()):
                    del self.own[cost.currency]
            return cost


class Ledger(Protocol):
    """Where the processes of a run tell each other what they plan to charge."""

    def open(self, book: Book, identity: str) -> AbstractContextManager[object]:
        """Bring ``book`` up to date with what the others plan, but for ``identity``. At the end, tell them
        what it says. No other process of the run decides meanwhile."""


class Budget(Book):
    """What this run is going to charge, counted once per declaration, against what it may charge. Without a
    ``ledger`` the run is this process."""

    def __init__(
        self, limit: Limit | None = None, ledger: Ledger | None = None, month: MonthlyBudget | None = None
    ) -> None:
        super().__init__()
        self.limit = limit or Limit()
        self.month = month or MonthlyBudget()
        self._ledger = ledger
        self._found: set[str] = set()
        self._moved: dict[str, dict[Moved, Decimal]] = {}
        self._later: dict[str, str] = {}

    # --- what may be ordered

    def book(self, identity: str, cost: Cost) -> str | None:
        """Count an order before it is sent. Returns why it may not be made; then it is not counted."""
        return self._counted(identity, lambda: self.stopped or self._within_limit(identity, cost))

    def must_book(self, identity: str, cost: Cost | None) -> None:
        """Like ``book``; None is an unknown price. Raises ``LimitExceeded`` if it may not be made."""
        if refusal := self.unpriced() if cost is None else self.book(identity, cost):
            raise LimitExceeded(refusal)

    def refusal(self, identity: str, cost: Cost) -> str | None:
        """Why this cannot be ordered within the limit, or None. What was refused is not counted."""
        return self._counted(identity, lambda: self._within_limit(identity, cost))

    def beyond_month(self, identity: str, client: Client, cost: Cost) -> str | None:
        """Why the calendar month cannot pay for everything that this run plans; then this is not counted."""
        own = Decimal(0) if self.planned(identity) else cost.amount  # a task's is with the ledger by now
        refusal = self.month.planned(client, cost, self.total(cost.currency) + own)
        if refusal is not None and not client.is_test_key:
            self.refused(identity)
        return refusal

    def refused(self, identity: str) -> None:
        """It is not ordered for another reason than the limit, and is not counted."""
        self._counted(identity, lambda: self.remove(identity))

    @property
    def limited(self) -> str | None:
        """What limits this run, such as ``maxCharge is 25``; None if nothing does."""
        return str(self.limit) if self.limit.is_set else str(self.month) if self.month else None

    def checked(self) -> "Budget":
        """This one. Raises ``InvalidInput`` if its limit is no amount of money."""
        found = {self.limit.name: self.limit.problem, "budget": self.month.problem}
        if problems := {name: problem for name, problem in found.items() if problem is not None}:
            raise InvalidInput(problems)
        return self

    def limit_as_option(self) -> dict[str, object]:
        """Name and value of the limit, for another process that works on the same task; empty without one."""
        month: dict[str, object] = {"budget": self.month.given} if self.month else {}
        return {self.limit.name: self.limit.given, **month} if self.limit.is_set else month

    def unpriced(self) -> str | None:
        """Why something of unknown price cannot be ordered within the limit, or None if nothing limits
        it.
        """
        if self.limited is None:
            return None
        return (
            f"its price is not known, and {self.limited}; it is not ordered. Next: see why there is no "
            f"price, or leave {self.limit.name if self.limit.is_set else 'budget'} out"
        )

    def found(self, identity: str, cost: Cost) -> str | None:
        """Like ``refusal``, for what exists already: ``cost`` is nothing, and what its order once cost is
        not compared with it.
        """
        with self.lock:
            self._found.add(identity)
        return self.refusal(identity, cost)

    def is_to_be_paid(self, identity: str) -> bool:
        """Whether it was ``found`` before, and is to be priced now that it has to be paid after all."""
        with self.lock:
            was_found = identity in self._found
            self._found.discard(identity)
        return was_found

    def charged(self, identity: str, amount: Decimal) -> str | None:
        """Book what an order really cost. A sentence if that was more than announced: from then on
        ``stopped`` says so.
        """
        cost = self.planned(identity)
        if cost is None or identity in self._found or amount <= cost.amount:
            return None  # as nearly always: nothing changes for the others
        return self._counted(identity, lambda: self._exceeded(identity, cost, amount))

    # --- what it reports

    def moved(self, what: Moved, amount: Decimal, currency: str | None) -> None:
        """Money was ``charged`` to the balance, or ``credited`` to it, by this process."""
        with self.lock:
            currency = currency or self.currency or ""  # an account has one
            sums = self._moved.setdefault(currency, {"charged": Decimal("0.00"), "credited": Decimal("0.00")})
            sums[what] += amount

    def lacking(self, currency: str) -> Decimal | None:
        """What the balance lacks for everything that this run orders: for its total, with what deletions have
        credited so far. Zero or less: nothing; None: the balance is not known."""
        with self.lock:
            opening = self.openings.get(currency)
            credited = self._moved.get(currency, {}).get("credited", Decimal(0))
            return None if opening is None else self.total(currency) - opening - credited

    def summary(self) -> str:
        """What this process has charged and credited, in a line; empty if nothing.

        >>> budget = Budget()
        >>> budget.moved("charged", Decimal("5.00"), "EUR"); budget.summary()
        'charged 5.00 EUR, credited 0.00'
        """
        with self.lock:
            return "; ".join(
                f"charged {sums['charged']} {currency}, credited {sums['credited']}"
                for currency, sums in self._moved.items()
            )

    def priced_later(self, identity: str, what: str) -> None:
        """``what`` is bought, too, at a price that only a later question can tell."""
        with self.lock:
            if identity not in self._costs:
                self._later[identity] = what

    @property
    def currency(self) -> str | None:
        """The currency in which this run pays; the first of several, None before the first price."""
        with self.lock:
            return next(iter({**self._moved, **self.own}), None)

    def later(self) -> str:
        """What the total leaves out, since its price is known later; empty if nothing.

        >>> budget = Budget()
        >>> budget.priced_later("a", "server address"); budget.later()
        ' + a server address whose price is known later'
        >>> budget.priced_later("b", "server address"); budget.later()
        ' + 2 purchases whose prices are known later'
        """
        with self.lock:
            found = [*self._later.values()]
        if len(found) > 1:
            return f" + {len(found)} purchases whose prices are known later"
        return f" + a {found[0]} whose price is known later" if found else ""

    # --- how it is counted

    def _counted(self, identity: str, decide: Callable[[], T]) -> T:
        """Decide while no other process of the run does, with what the others have planned."""
        try:
            shared = self._ledger.open(self, identity) if self._ledger else nullcontext()
            with shared, self.lock:
                return decide()
        except LocalFilesError:
            if self.limited:
                raise
        with self.lock:
            return decide()  # nothing is limited here, so nothing depends on the others

    def _within_limit(self, identity: str, cost: Cost) -> str | None:
        self._later.pop(identity, None)
        self.add(identity, cost)
        refusal = self.limit.refusal(cost, self.total(cost.currency))
        if refusal is not None:
            self.remove(identity)
        return refusal

    def _exceeded(self, identity: str, announced: Cost, amount: Decimal) -> str:
        self.add(identity, replace(announced, amount=amount))
        currency = announced.currency
        limit = f", and {self.limited}" if self.limited else ""
        self.stopped = (
            f"{amount} {currency} were charged for {announced.what}, announced were {announced.amount}; this "
            f"run has charged {self.total(currency)} {currency}{limit}"
        )
        return self.stopped
