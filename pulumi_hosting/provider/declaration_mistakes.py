"""What is wrong with the arguments of a declaration or of a lookup, with the resource and the line of
the program.
"""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pulumi

from pulumi_hosting.provider.mistake import like, subject

_PACKAGES = (
    *(str(Path(file).parent) + os.sep for file in (Path(__file__).parent, pulumi.__file__)),
    "<frozen importlib",
)
"""Files that are no program: ours, Pulumi's SDK, and what imports."""


class WrongArguments(pulumi.RunError, TypeError):
    """A resource or a lookup was given arguments that it does not take. The program ends with this one
    line.
    """


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the program: ``__main__.py:12``, relative to the current folder if it is below that."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Watcher(Protocol):
    """Hears of every declaration and every lookup of a program that is only checked."""

    def declared(self, type: str, name: str, place: SourceLine) -> None:
        """A resource is declared. ``type``: its class, such as ``Server``."""

    def looked_up(self, function: str, args: Mapping[str, Any], place: SourceLine) -> None:
        """A lookup is asked. ``args``: as on Pulumi's wire."""

    def mistake(self, type: str, name: str, place: SourceLine, text: str, fields: Collection[str]) -> None:
        """Something is wrong with the arguments; ``fields``: those it is about. A lookup has no ``name``."""


_watcher: Watcher | None = None


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Within, a wrong argument is reported to ``watcher`` and left out; the declaration goes on."""
    global _watcher  # one program per process, which registers from callbacks of any context
    _watcher = watcher
    try:
        yield
    finally:
        _watcher = None


def declared(type: str, name: str) -> None:
    """Tell the watcher, if there is one."""
    if _watcher is not None:
        _watcher.declared(type, name, program_line())


def looked_up(function: str, args: Mapping[str, Any]) -> None:
    """Tell the watcher, if there is one."""
    if _watcher is not None:
        _watcher.looked_up(function, args, program_line())


def refuse(type: str, name: str, text: str, fields: Collection[str] = ()) -> None:
    """Raise :class:`WrongArguments` with the resource and the line of the program, or report it."""
    place = program_line()
    if _watcher is None:
        raise WrongArguments(f"{place}: {subject(type, name)}: {text}")
    _watcher.mistake(type, name, place, text, fields)


def grouped(names: Sequence[str]) -> Sequence[Sequence[str]]:
    """How wrong arguments are reported: all in the one line that ends the program, or a line for each."""
    if not names:
        return []
    return [names] if _watcher is None else [[name] for name in names]


def refuse_names(
    type: str, name: str, given: Collection[str], valid: Iterable[str], needed: Mapping[str, Sequence[str]]
) -> list[str]:
    """Refuse the arguments that it does not take, and say which are missing.

    ``needed``: argument → those of which one is to be given. Returns the arguments that it does not take,
    if they are reported.
    """
    inputs = sorted(valid)
    unknown = sorted(set(given).difference(inputs))
    meant: set[str] = set()
    for wrong in grouped(unknown):
        right = {name: found for name in wrong if (found := like(name, inputs))}
        meant.update(right.values())
        steps = (
            f"write {right[key]} in place of {key}" if key in right else f"remove {key}" for key in wrong
        )
        refuse(
            type,
            name,
            f"{_quoted('unknown argument', wrong)}. Valid arguments: {', '.join(inputs) or 'none'}. "
            f"Next: {', '.join(steps)}",
            [*wrong, *right.values(), *(key for key in needed if not meant.isdisjoint(needed[key]))],
        )
    absent = [name for name, choice in needed.items() if meant.union(given).isdisjoint(choice)]
    for missing in grouped(sorted(absent)):
        wanted = ", ".join(" or ".join(needed[name]) for name in missing)
        refuse(type, name, f"{_quoted('missing argument', missing)}. Next: give {wanted}", missing)
    return unknown


def _quoted(what: str, names: Iterable[str]) -> str:
    """``missing argument 'os'``; ``missing arguments 'os', 'tariff_id'``."""
    quoted = [repr(name) for name in sorted(names)]
    return f"{what}{'s' if len(quoted) > 1 else ''} {', '.join(quoted)}"


def program_line() -> SourceLine:
    """The line of the program that is being run: the innermost one outside of this package and the SDK."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    file = frame.f_code.co_filename
    try:
        shown = os.path.relpath(file)
    except (OSError, ValueError):  # no current folder, or another drive
        shown = file
    return SourceLine(file if shown.startswith(os.pardir) else shown, frame.f_lineno)
