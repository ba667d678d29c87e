"""What one run may charge, over all its provider processes.

An engine starts one process for each provider that a program declares, and tells each of them its own
address. What the processes of one address plan to charge on one account is kept in a small private file, and
counted together. Entries of processes that have ended do not count, so a run that was killed leaves nothing
behind, and a preview nothing for the update that follows it.
"""

import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import uuid4

from pulumi_hosting.client.private_directory import process_runs
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.planning.budget import Budget
from pulumi_hosting.session.cost import Cost

_PURPOSE = "charges of the runs"
_TIMEOUT = 30.0  # seconds to wait for another process, which holds the file for milliseconds

Bookings = dict[str, list[str]]
"""Currency → what a process plans to charge in it, and the balance as the run first saw it, if it did."""


class RunBudget(Budget):
    """``run``: the engine's address; None where it is not known, and then only this process is counted."""

    def __init__(self, scope: Callable[[], str]) -> None:
        super().__init__("maxCharge")
        self.run: str | None = None
        self._scope = scope
        self._member = f"{os.getpid()}-{uuid4().hex[:8]}"
        self._elsewhere: dict[str, Decimal] = {}

    def refusal(self, identity: str, cost: Cost) -> str | None:
        return self._shared(lambda: super(RunBudget, self).refusal(identity, cost))

    def refused(self, identity: str) -> None:
        self._shared(lambda: super(RunBudget, self).refused(identity))

    def charged(self, identity: str, amount: Decimal) -> str | None:
        with self._lock:
            if self._announced_less(identity, amount) is None:
                return None  # as nearly always: nothing changes for the others
        return self._shared(lambda: super(RunBudget, self).charged(identity, amount))

    def _total(self, currency: str) -> Decimal:
        return super()._total(currency) + self._elsewhere.get(currency, Decimal(0))

    def _shared(self, decide: Callable[[], str | None]) -> str | None:
        """Decide while no other process of this user does, with what the others of this run have planned."""
        if self.run is None:
            return decide()
        try:
            scope = self._scope()
            with local_files.lock(scope, _PURPOSE, _TIMEOUT):
                runs = _of_the_living(local_files.read(scope, _PURPOSE, survives=False))
                members = runs.setdefault(self.run, {})
                booked = members.pop(self._member, None)
                self._elsewhere = {}
                for bookings in members.values():
                    for currency, (amount, *opening) in bookings.items():
                        planned = self._elsewhere.get(currency, Decimal(0))
                        self._elsewhere[currency] = planned + Decimal(amount)
                        for balance in opening:
                            self._opening[currency] = Decimal(balance)
                decision = decide()
                members[self._member] = self._bookings()
                if members[self._member] != booked:
                    local_files.write(scope, _PURPOSE, runs, survives=False)
                return decision
        except local_files.LocalFilesError:
            if self.limit is not None:
                raise
            return decide()  # nothing is limited here, so nothing depends on the others

    def _bookings(self) -> Bookings:
        with self._lock:
            opening = {currency: [str(balance)] for currency, balance in self._opening.items()}
            return {
                currency: [str(amount), *opening.get(currency, [])]
                for currency, amount in self._own_totals().items()
            }


def _of_the_living(runs: dict[str, Any]) -> dict[str, dict[str, Bookings]]:
    """Without the members that have ended, and the runs that have no other."""
    living = {
        run: {member: bookings for member, bookings in members.items() if _lives(member)}
        for run, members in runs.items()
    }
    return {run: members for run, members in living.items() if members}


def _lives(member: str) -> bool:
    return process_runs(int(member.partition("-")[0]))
