"""What the provider processes of one engine run plan to charge, counted together.

An engine starts one process for each provider that a program declares, and tells each of them its own
address. What the processes of one address plan to charge on one account is kept in a small private note.
Entries of processes that have ended do not count, so a run that was killed leaves nothing behind, and a
preview nothing for the update that follows it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import uuid4

from pulumi_hosting.client.private_directory import process_runs
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.planning.budget import Book

_PURPOSE = "charges of the runs"

Bookings = dict[str, list[str]]
"""Currency → what a process plans to charge in it, and the balance as the run first saw it, if it did."""


class RunLedger:
    """``run``: the engine's address; None if it is not known, and then only this process is counted. A run is
    on one machine, and its ledger among the files of that one."""

    def __init__(self, scope: Callable[[], str]) -> None:
        self.run: str | None = None
        self._scope = scope
        self._member = f"{os.getpid()}-{uuid4().hex[:8]}"

    @contextmanager
    def open(self, book: Book, identity: str) -> Iterator[None]:
        if self.run is None:
            yield
            return
        with local_files.changing(local_files.Scope(self._scope()), _PURPOSE, survives=False) as note:
            runs = _of_the_living(note)
            members = runs.setdefault(self.run, {})
            members.pop(self._member, None)
            elsewhere: dict[str, Decimal] = {}
            for bookings in members.values():
                for currency, (amount, *opening) in bookings.items():
                    elsewhere[currency] = elsewhere.get(currency, Decimal(0)) + Decimal(amount)
                    for balance in opening:
                        book.openings[currency] = Decimal(balance)
            book.elsewhere = elsewhere
            yield
            members[self._member] = _bookings(book)
            note.clear()
            note.update(runs)


def _bookings(book: Book) -> Bookings:
    with book.lock:
        opening = {currency: [str(balance)] for currency, balance in book.openings.items()}
        return {currency: [str(amount), *opening.get(currency, [])] for currency, amount in book.own.items()}


def _of_the_living(runs: dict[str, Any]) -> dict[str, dict[str, Bookings]]:
    """Without the members that have ended, and the runs that have no other."""
    living = {
        run: {member: bookings for member, bookings in members.items() if _lives(member)}
        for run, members in runs.items()
    }
    return {run: members for run, members in living.items() if members}


def _lives(member: str) -> bool:
    return process_runs(int(member.partition("-")[0]))
