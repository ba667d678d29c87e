"""A mistake of a program, as it is told. Loads nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """``resource``: its class, such as ``Server``, and its ``name``; of a lookup its function, and no name.
    Both are empty where it is about no resource and no lookup.
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
