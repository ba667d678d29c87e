"""What a calendar month may cost: ``hosting:budget`` of a stack, ``budget`` of a task.

What counts is what the account shows: the debits of the month in UTC by the service's clock, whoever charged
them, the service's own renewals among them, less the refunds. Top-ups do not count. It is read again before
each purchase, while no other process that shares the store buys, with the bookings of purchases whose outcome
is not known yet. Machines that share no store may exceed it by what each of them had begun.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from decimal import Decimal

from pulumi_hosting.api.secrets import quoted
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import Forbidden, HostingError
from pulumi_hosting.exactly_once.idempotency_keys import digest
from pulumi_hosting.exactly_once.local_files import LocalFilesError, Scope, account_scope, changing, turn
from pulumi_hosting.exactly_once.purchase_journal import SENT_WITHIN
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import LimitExceeded
from pulumi_hosting.session.request import Request

_GIVEN = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)/month", re.ASCII)


class MonthlyBudget:
    """``given``: the setting's value, such as ``100.00/month``; None if it has none. ``problem``: why it
    cannot be used; None if it can.

    >>> str(MonthlyBudget("100.00/month")), MonthlyBudget("100").problem is None
    ('budget is 100.00/month', False)
    """

    def __init__(self, given: object = None) -> None:
        self.given = given if isinstance(given, str | int | float) else None  # else it is not known yet
        found = _GIVEN.fullmatch(str(given).strip())
        self._amount = Decimal(found[1]) if found else None
        self.problem = None
        if self.given is not None and found is None:
            example = "such as 100.00/month"
            self.problem = f"must be an amount of money for each month, {example}, not {quoted(given)}"
        self._lock = threading.Lock()
        self._at_first: dict[str, Decimal] | None = None

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> "MonthlyBudget":
        """That of a stack's settings, a task's options, or the environment's."""
        return cls(settings.get("budget"))

    def __bool__(self) -> bool:
        return self.given is not None

    def __str__(self) -> str:
        return f"budget is {self.given}"

    def planned(self, client: Client, cost: Cost, total: Decimal) -> str | None:
        """Why the month cannot pay for ``cost`` as well, with which the run orders for ``total``; None if it
        can. What was spent is asked for once: the run's own charges are among the ``total``."""
        if not self:
            return None
        with self._lock:
            if self._at_first is None:
                self._at_first = spent(client)
        return self._refusal(client, cost, self._at_first, total)

    @contextmanager
    def paying(self, request: Request, cost: Cost | None) -> Iterator[None]:
        """Held while ``cost`` is paid: nothing else that shares the store is bought meanwhile. Raises
        ``LimitExceeded``; nothing was sent by then. With a test key nothing is paid."""
        if not self or request.client.is_test_key or (cost is not None and not cost.amount):
            yield
            return
        with turn(request, "budget", "buying within the budget"):
            if cost is None:
                raise LimitExceeded(
                    f"its price is not known, and {self}; it is not ordered. Next: unset budget"
                )
            booked = account_scope(request.client), "bookings of the budget"
            mine, now = digest(request.identity.encode()), request.client.service_now().timestamp()
            with changing(*booked) as bookings:
                for other, (_, _, at) in [*bookings.items()]:
                    if other == mine or now - at > SENT_WITHIN.total_seconds():
                        del bookings[other]
                if (known := spent(request.client)) is not None:
                    for amount, currency, _ in bookings.values():
                        known[currency] = known.get(currency, Decimal(0)) + Decimal(amount)
                if refusal := self._refusal(request.client, cost, known, cost.amount):
                    raise LimitExceeded(refusal)
                bookings[mine] = [str(cost.amount), cost.currency, now]
            try:
                yield
            except BaseException as error:
                if getattr(error, "outcome_unknown", not isinstance(error, HostingError)):
                    raise  # it may be charged yet: the booking stays
                _forget(booked, mine)
                raise
            _forget(booked, mine)

    def _refusal(
        self, client: Client, cost: Cost, known: Mapping[str, Decimal] | None, planned: Decimal
    ) -> str | None:
        if known is None:
            return (
                f"{self}, and the key may not read what was spent (scope balance:read); {cost.what} is not "
                "ordered. Next: give the key balance:read, or unset budget"
            )
        so_far = known.get(cost.currency, Decimal("0.00"))
        if so_far + planned <= (self._amount or 0):
            return None
        also = f" and {others} for what else this run orders" if (others := planned - cost.amount) else ""
        next_month = (client.service_now().replace(day=1) + timedelta(days=32)).replace(day=1)
        later = f", or wait until {next_month:%Y-%m-%d}" if planned <= (self._amount or 0) else ""
        return (
            f"{so_far} {cost.currency} were spent this month; with {cost.amount} {cost.currency} for "
            f"{cost.what}{also} they would be {so_far + planned}, and {self}; it is not ordered. Next: raise "
            f"budget{later}"
        )


def _forget(booked: tuple[Scope, str], mine: str) -> None:
    with suppress(LocalFilesError), changing(*booked) as bookings:
        bookings.pop(mine, None)


def spent(client: Client) -> dict[str, Decimal] | None:
    """What was charged in the present month less what was refunded, by currency; None if the key may not see
    it. Raises what the request raises (API document, "Balance": ``GET /transactions``)."""
    month = client.service_now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    sums: dict[str, Decimal] = {}
    try:
        for movement in client.balance.transactions(since=month):
            known = sums.get(movement.currency, Decimal(0))
            if movement.direction == "debit":
                sums[movement.currency] = known + movement.amount
            elif movement.type == "refund":
                sums[movement.currency] = known - movement.amount
    except Forbidden:
        return None
    return sums
