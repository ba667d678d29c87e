"""What one run may charge."""

import re
import threading
from dataclasses import replace
from decimal import Decimal
from typing import Literal

from pulumi_hosting.session.cost import Cost

NOT_A_LIMIT = "must be an amount of money, such as 25.00"
NO_LIMIT = "is empty, which would be no limit. Next: give an amount such as 25.00, or unset it"

Moved = Literal["charged", "credited"]

_AMOUNT = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


def money_limit(value: object) -> Decimal | None:
    """The amount that a limit of money names; None where it names none.

    >>> money_limit("25.00"), money_limit(-1), money_limit(True), money_limit("1e2")
    (Decimal('25.00'), None, None, None)
    """
    text = str(value)
    return Decimal(text) if not isinstance(value, bool) and _AMOUNT.fullmatch(text) else None


class Budget:
    """What this run is going to charge, counted once per declaration, against what it may charge."""

    def __init__(self, setting: str = "maxCharge") -> None:
        self._setting = setting
        self._lock = threading.Lock()
        self._planned: dict[str, Cost] = {}
        self._sums: dict[str, Decimal] | None = {}
        self._opening: dict[str, Decimal] = {}
        self._found: set[str] = set()
        self._exceeded: str | None = None
        self._moved: dict[str, dict[Moved, Decimal]] = {}
        self._later: dict[str, str] = {}
        self.limit: Decimal | None = None

    def total(self, currency: str) -> Decimal:
        """What the run charges so far, in this currency."""
        with self._lock:
            return self._total(currency)

    def opening(self, currency: str) -> Decimal | None:
        """The balance as this run first saw it: what it has paid since is among what it planned. None if no
        price came with a balance."""
        with self._lock:
            return self._opening.get(currency)

    def moved(self, what: Moved, amount: Decimal, currency: str | None) -> None:
        """Money was ``charged`` to the balance, or ``credited`` to it, by this process."""
        with self._lock:
            currency = currency or self._currency() or ""  # an account has one
            sums = self._moved.setdefault(currency, {"charged": Decimal("0.00"), "credited": Decimal("0.00")})
            sums[what] += amount

    def lacking(self, currency: str) -> Decimal | None:
        """What the balance lacks for everything that this run orders: for its total, with what deletions have
        credited so far. Zero or less: nothing; None: the balance is not known."""
        with self._lock:
            opening = self._opening.get(currency)
            credited = self._moved.get(currency, {}).get("credited", Decimal(0))
            return None if opening is None else self._total(currency) - opening - credited

    def summary(self) -> str:
        """What this process has charged and credited, in a line; empty if nothing.

        >>> budget = Budget()
        >>> budget.moved("charged", Decimal("5.00"), "EUR"); budget.summary()
        'charged 5.00 EUR, credited 0.00'
        """
        with self._lock:
            return "; ".join(
                f"charged {sums['charged']} {currency}, credited {sums['credited']}"
                for currency, sums in self._moved.items()
            )

    def priced_later(self, identity: str, what: str) -> None:
        """``what`` is bought, too, at a price that only a later question can tell."""
        with self._lock:
            if identity not in self._planned:
                self._later[identity] = what

    @property
    def currency(self) -> str | None:
        """The currency in which this run pays; the first of several, None before the first price."""
        with self._lock:
            return self._currency()

    def later(self) -> str:
        """What the total leaves out, since its price is known later; empty if nothing.

        >>> budget = Budget()
        >>> budget.priced_later("a", "server address"); budget.later()
        ' + a server address whose price is known later'
        >>> budget.priced_later("b", "server address"); budget.later()
        ' + 2 purchases whose prices are known later'
        """
        with self._lock:
            found = [*self._later.values()]
        if len(found) > 1:
            return f" + {len(found)} purchases whose prices are known later"
        return f" + a {found[0]} whose price is known later" if found else ""

    def planned(self, identity: str) -> Cost | None:
        with self._lock:
            return self._planned.get(identity)

    def refusal(self, identity: str, cost: Cost) -> str | None:
        """Why this cannot be ordered within the limit, or None. What was refused is not counted."""
        with self._lock:
            self._book(identity, cost)
            total = self._total(cost.currency)
            if self.limit is None or total <= self.limit:
                return None
            self._unbook(identity)
        return (
            f"with {cost.amount} {cost.currency} for {cost.what} this run would charge {total} "
            f"{cost.currency}, more than {self._setting} {self.limit}; it is not ordered. Next: raise "
            f"{self._setting}, or declare less"
        )

    def refused(self, identity: str) -> None:
        """It is not ordered for another reason than the limit, and is not counted."""
        with self._lock:
            self._unbook(identity)

    def unpriced(self) -> str | None:
        """Why something of unknown price cannot be ordered within the limit, or None where nothing limits
        it.
        """
        if self.limit is None:
            return None
        return (
            f"its price is not known, and {self._setting} is {self.limit}; it is not ordered. Next: see why "
            f"there is no price, or leave {self._setting} out"
        )

    def found(self, identity: str, cost: Cost) -> str | None:
        """Like ``refusal``, for what exists already: ``cost`` is nothing, and what its order once cost is
        not compared with it.
        """
        with self._lock:
            self._found.add(identity)
        return self.refusal(identity, cost)

    def is_to_be_paid(self, identity: str) -> bool:
        """Whether it was ``found`` before, and is to be priced now that it has to be paid after all."""
        with self._lock:
            was_found = identity in self._found
            self._found.discard(identity)
        return was_found

    def charged(self, identity: str, amount: Decimal) -> str | None:
        """Book what an order really cost. A sentence where that was more than announced: from then on
        ``stopped`` says so.
        """
        with self._lock:
            cost = self._announced_less(identity, amount)
            if cost is None:
                return None
            self._book(identity, replace(cost, amount=amount))
            total = self._total(cost.currency)
            limit = f", and {self._setting} is {self.limit}" if self.limit is not None else ""
            self._exceeded = (
                f"{amount} {cost.currency} were charged for {cost.what}, announced were {cost.amount}; this "
                f"run has charged {total} {cost.currency}{limit}"
            )
            return self._exceeded

    @property
    def stopped(self) -> str | None:
        """Why nothing more may be ordered in this run; None while it may."""
        with self._lock:
            return self._exceeded

    def _announced_less(self, identity: str, amount: Decimal) -> Cost | None:
        """What was announced, where the order cost more."""
        cost = self._planned.get(identity)
        return None if cost is None or identity in self._found or amount <= cost.amount else cost

    def _currency(self) -> str | None:
        return next(iter({**self._moved, **self._own_totals()}), None)

    def _total(self, currency: str) -> Decimal:
        return self._own_totals().get(currency, Decimal(0))

    def _own_totals(self) -> dict[str, Decimal]:
        """What is planned here by currency. Not added up again for each of a thousand declarations."""
        if self._sums is None:
            self._sums = {}
            for cost in self._planned.values():
                self._add(self._sums, cost)
        return self._sums

    def _book(self, identity: str, cost: Cost) -> None:
        before = self._planned.get(identity)
        self._planned[identity] = cost
        self._later.pop(identity, None)
        if cost.balance is not None:
            self._opening.setdefault(cost.currency, cost.balance)
        if before is None and self._sums is not None:
            self._add(self._sums, cost)
        elif before is None or (before.currency, before.amount) != (cost.currency, cost.amount):
            self._sums = None

    def _unbook(self, identity: str) -> None:
        self._planned.pop(identity, None)
        self._sums = None

    @staticmethod
    def _add(sums: dict[str, Decimal], cost: Cost) -> None:
        sums[cost.currency] = sums.get(cost.currency, Decimal(0)) + cost.amount
