"""What one run may charge."""

import threading
from decimal import Decimal, InvalidOperation

from pulumi_hosting.resources.base import Cost

NOT_A_LIMIT = "must be an amount of money, such as 25.00"


def money_limit(value: object) -> Decimal | None:
    """The amount that a limit of money names; None where it names none.

    >>> money_limit("25.00"), money_limit(-1), money_limit(True)
    (Decimal('25.00'), None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


class Budget:
    """What this run is going to charge, counted once per declaration, against what it may charge."""

    def __init__(self, setting: str = "maxCharge") -> None:
        self._setting = setting
        self._lock = threading.Lock()
        self._planned: dict[str, Cost] = {}
        self._opening: dict[str, Decimal] = {}
        self.limit: Decimal | None = None

    def total(self, currency: str) -> Decimal:
        """What the run charges so far, in this currency."""
        with self._lock:
            return self._total(currency)

    def opening(self, cost: Cost) -> Decimal | None:
        """The balance as this run first saw it: what it has paid since is among what it planned."""
        with self._lock:
            return cost.balance if cost.balance is None else self._opening.setdefault(cost.currency, cost.balance)

    def planned(self, identity: str) -> Cost | None:
        with self._lock:
            return self._planned.get(identity)

    def refusal(self, identity: str, cost: Cost) -> str | None:
        """Why this cannot be ordered within the limit, or None. What was refused is not counted."""
        with self._lock:
            self._planned[identity] = cost
            total = self._total(cost.currency)
            if self.limit is None or total <= self.limit:
                return None
            del self._planned[identity]
        return (
            f"with {cost.amount} {cost.currency} for {cost.what} this run would charge {total} {cost.currency}, more than "
            f"{self._setting} {self.limit}; it is not ordered. Next: raise {self._setting}, or declare less"
        )

    def _total(self, currency: str) -> Decimal:
        return sum((cost.amount for cost in self._planned.values() if cost.currency == currency), Decimal(0))
