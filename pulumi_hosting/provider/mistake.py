"""A mistake in a program, and how to name it in a message. Loads next to nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Mistake:
    """``resource``: its class, such as ``Server``, and its ``name``; of a lookup its function, and no name.
    Both are empty if it is about no resource and no lookup.
    """

    file: str
    line: int
    resource: str
    name: str
    message: str

    def __str__(self) -> str:
        what = f"{subject(self.resource, self.name)}: " if self.resource else ""
        return f"{self.file}:{self.line}: {what}{self.message}"


def subject(resource: str, name: str) -> str:
    """``Server('web')``; ``get_server()`` of a lookup."""
    return f"{resource}({name!r})" if name else f"{resource}()"


def like(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of ``names`` that a wrong one is like."""
    return next(iter(get_close_matches(name, [*names], 1, cutoff)), None)
