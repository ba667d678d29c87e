"""One line of ``pulumi-hosting doctor``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from pulumi_hosting.client.exceptions import CallError, HostingError

Status = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found.

    - ``name``: what was looked at. ``text``: what is there, or what is wrong. ``next``: one command or edit.
    - ``details``: further lines, such as every scope that is missing. ``facts``: values for machines.
    """

    name: str
    status: Status
    text: str
    next: str = ""
    details: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_error(cls, name: str, error: HostingError, next: str = "") -> Self:
        """A problem that an error names. The error's own next step, unless another is given."""
        text, _, step = str(error).partition("Next: ")
        if isinstance(error, CallError):  # with status and request id, which a support case needs
            text, step = error.summary, error.advice.partition("Next: ")[2]
        return cls(name, "problem", text.rstrip(". "), next or step)

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "name": self.name,
            "status": self.status,
            "text": self.text,
            "next": self.next or None,
            "details": list(self.details),
            **self.facts,
        }
