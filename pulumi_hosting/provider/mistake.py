"""A mistake of a program, as it is told. Loads nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mistake:
    """``resource``: its class, such as ``Server``, and its ``name``; empty where the program itself ended."""

    file: str
    line: int
    resource: str
    name: str
    message: str

    def __str__(self) -> str:
        subject = f"{self.resource}({self.name!r}): " if self.resource else ""
        return f"{self.file}:{self.line}: {subject}{self.message}"
