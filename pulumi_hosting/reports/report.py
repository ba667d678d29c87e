"""What a command answers: one value, which the command line prints as text, as Markdown or as JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from pulumi_hosting.rehearsal.facts import for_json

if TYPE_CHECKING:
    from pulumi_hosting.session.request import Request

Step = Callable[[int, int | None, str], None]
"""Shows which step begins: its number, from 1, of how many (None: not known), and its title."""
Asking = Callable[[], "AbstractContextManager[tuple[Request, Step]]"]
"""Connects to the account that a command asks, until the end of the context. Raises ``CannotAnswer`` for what
the client or the account refuses."""
FOUND = 7
"""Exit code when something is to be done, as of ``pulumi preview --expect-no-changes``."""


class CannotAnswer(Exception):
    """A command that could not do its work. ``str()`` is one line: the reason and what to do next."""

    exit_code = 1


class Unusable(CannotAnswer):
    """The command cannot begin with what it was given."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Table:
    """``foreign``: the columns with texts of the account or of a program. ``title``: Markdown folds the table
    below it; empty: it is open.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    foreign: Sequence[int] = ()
    title: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """The answer to the question of the command, in one line."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Points:
    """One sentence each, with texts of the account. ``title``: what stands above them in Markdown, and above
    the answer if they are ``urgent``.
    """

    label: str
    title: str
    lines: Sequence[str]
    urgent: bool = False


Section = str | Table | Summary | Points
"""A text stands as it is."""


@dataclass(frozen=True, slots=True)
class Report:
    """``facts``: all of it for machines. ``warnings``: what goes to standard error, in every form."""

    facts: Mapping[str, object]
    sections: Sequence[Section] = ()
    warnings: Sequence[str] = ()
    exit_code: int = 0


def money(amount: Decimal | None, currency: str | None) -> str:
    """An amount with two digits, rounded as in JSON, or ``not known``.

    >>> money(Decimal("5"), "EUR"), money(None, "EUR")
    ('5.00 EUR', 'not known')
    """
    return "not known" if amount is None else f"{for_json(amount)} {currency or ''}".rstrip()


def totals(amounts: Iterable[tuple[Decimal | None, str | None]]) -> str:
    """The sum in each currency; free things do not count.

    >>> totals([(Decimal(1), "EUR"), (Decimal(0), None), (Decimal(2), "EUR")]), totals([])
    ('3.00 EUR', '0.00')
    """
    sums: dict[str, Decimal] = {}
    for amount, currency in amounts:
        if amount:
            sums[currency or ""] = sums.get(currency or "", Decimal(0)) + amount
    return ", ".join(money(amount, currency) for currency, amount in sorted(sums.items())) or "0.00"


def not_read(what: str, why: str, verb: str = "read") -> str:
    """The warning that some objects were not read. A reason may begin with what it is about.

    >>> not_read("servers", "servers: the service failed"), not_read("servers", "the key lacks a scope")
    ('servers were not read: the service failed', 'servers were not read: the key lacks a scope')
    """
    subject, _, reason = why.partition(": ")
    be = "were" if what.endswith("s") else "was"
    return f"{what} {be} not {verb}: {reason if subject.casefold() == what.casefold() else why}"


def counted(number: int, what: str) -> str:
    """A number of things, in a sentence.

    >>> counted(1, "problem"), counted(0, "problem")
    ('1 problem', '0 problems')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def plural(kind: str) -> str:
    """Objects of a kind, in a sentence.

    >>> plural("ssh_key")
    'ssh keys'
    """
    return f"{kind.replace('_', ' ')}s"
