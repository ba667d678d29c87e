# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tasks of one run charge on one account, against what they may charge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pulumi_hosting.session.cost import Cost


class Ledger(ABC):
    """A purchase is booked before it is sent, and settled when its task has ended. What is booked and never settled stays counted: it may
    have been charged."""

    @abstractmethod
    def book(self, identity: str, cost: Cost, limit: Decimal | None) -> str | None:
        """Count a purchase. Returns why it may not be made, in which case it is not counted.

        ``identity``: what is bought, such as ``server/web-1``; booked again (a retry, a rescue, the same task on another host), it is
        counted once. ``limit``: the task's ``max_charge``; None where the task has none.
        """

    @abstractmethod
    def settle(self, identity: str, charged: Mapping[str, Any] | None) -> None:
        """The task has ended. ``charged``: what its own request charged (``amount``, ``currency``); None if nothing."""

    @abstractmethod
    def claim(self, movement: str) -> bool:
        """Whether no other task of the run has reported this charge. ``movement`` names it: an invoice, or the object that was bought."""

    @abstractmethod
    def stop(self, reason: str) -> None:
        """Refuse every further purchase of the run on this account."""

    @property
    @abstractmethod
    def stopped(self) -> str | None:
        """Why nothing more may be bought, if so."""


def beyond(cost: Cost, total: Decimal, limit: Decimal) -> str:
    """Why a purchase is refused that would make the run's ``total`` larger than its ``limit``."""
    return (
        f"with {cost.amount} {cost.currency} for {cost.what} this run would charge {total} {cost.currency}, more than max_charge {limit}; "
        "it is not ordered. Next: raise max_charge, or leave tasks out"
    )


class JobLedger(Ledger):
    """For a module in a process of its own: it is told what the run has spent, and the controller settles what it returns.

    ``spent``: currency → amount. ``booked``: what the controller has booked for this one task, which may go on alone (``async``).
    """

    def __init__(self, spent: Mapping[str, str], booked: Mapping[str, Any] | None = None, stopped: str | None = None) -> None:
        self._spent = {currency: Decimal(amount) for currency, amount in spent.items()}
        self._booked, self._stopped = booked, stopped
        self._own: dict[str, Cost] = {}

    def book(self, identity: str, cost: Cost, limit: Decimal | None) -> str | None:
        if self._stopped is not None:
            return self._stopped
        own = sum((other.amount for name, other in self._own.items() if name != identity), Decimal(0)) + cost.amount
        if self._booked is not None:
            amount = Decimal(str(self._booked["amount"]))
            if own > amount:
                return (
                    f"{cost.what} costs {cost.amount} {cost.currency}, more than the {amount} that were booked for this task of max_charge "
                    f"{limit} when it began; it is not ordered. Next: run again"
                )
        elif limit is not None and (total := self._spent.get(cost.currency, Decimal(0)) + own) > limit:
            return beyond(cost, total, limit)
        self._own[identity] = cost
        return None

    def settle(self, identity: str, charged: Mapping[str, Any] | None) -> None:
        self._own.pop(identity, None)

    def claim(self, movement: str) -> bool:
        return True

    def stop(self, reason: str) -> None:
        self._stopped = reason

    @property
    def stopped(self) -> str | None:
        return self._stopped
