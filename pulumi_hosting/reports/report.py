"""What a command answers: one value, which the command line prints as text, as Markdown or as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    """One sentence each, with texts of the account. ``title``: what stands above them in Markdown."""

    label: str
    title: str
    lines: Sequence[str]


Section = str | Table | Summary | Points
"""A text stands as it is."""


@dataclass(frozen=True, slots=True)
class Report:
    """``facts``: all of it for machines. ``warnings``: what goes to standard error, in every form."""

    facts: Mapping[str, object]
    sections: Sequence[Section] = ()
    warnings: Sequence[str] = ()
    exit_code: int = 0
