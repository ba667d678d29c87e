"""What is wrong with the arguments of a declaration, told with the resource and the line of the program."""

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pulumi

_PACKAGES = tuple(
    str(Path(file).parent) + os.sep
    for file in (Path(__file__).parent, pulumi.__file__)  # ours, and Pulumi's SDK
)


class WrongArguments(pulumi.RunError, TypeError):
    """A resource was declared with arguments that it does not take. The program ends with this one line."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the program: ``__main__.py:12``, relative to the current folder where it is below that."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Watcher(Protocol):
    """Hears of every declaration of a program that is only checked."""

    def declared(self, type: str, name: str, place: Place) -> None:
        """A resource is declared. ``type``: its class, such as ``Server``."""

    def mistake(self, type: str, name: str, place: Place, text: str, fields: Collection[str]) -> None:
        """Something is wrong with its arguments; ``fields``: those it is about."""


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


def refuse(type: str, name: str, text: str, fields: Collection[str] = ()) -> None:
    """Raise :class:`WrongArguments` with the resource and the line of the program, or report it."""
    place = program_line()
    if _watcher is None:
        raise WrongArguments(f"{place}: {type}({name!r}): {text}")
    _watcher.mistake(type, name, place, text, fields)


def grouped(names: Sequence[str]) -> Sequence[Sequence[str]]:
    """How wrong arguments are told: all in the one line that ends the program, or a line for each."""
    if not names:
        return []
    return [names] if _watcher is None else [[name] for name in names]


def program_line() -> Place:
    """The line of the program that is being run: the innermost one outside of this package and the SDK."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    file = frame.f_code.co_filename
    try:
        shown = os.path.relpath(file)
    except (OSError, ValueError):  # no current folder, or another drive
        shown = file
    return Place(file if shown.startswith(os.pardir) else shown, frame.f_lineno)
