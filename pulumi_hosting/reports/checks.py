"""One line of ``pulumi-hosting doctor``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Literal, ParamSpec, Self

from pulumi_hosting.api.error_codes import parted
from pulumi_hosting.client.exceptions import CallError, HostingError
from pulumi_hosting.client.words import COMMAND_LINE

Status = Literal["ok", "note", "warning", "problem"]
"""``note``: nothing is wrong, and one may do something."""
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Check:
    """What was found.

    - ``name``: what was looked at. ``text``: what is there, or what is wrong. ``next``: one command or edit.
    - ``details``: further lines, such as every scope that is missing. ``facts``: values for machines.
    """

    status: Status
    text: str
    next: str = ""
    details: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    name: str = ""

    @classmethod
    def of_error(cls, error: HostingError, next: str = "", name: str = "") -> Self:
        """A problem that an error names. The error's own next step, unless another is given."""
        error._words = COMMAND_LINE
        text, step = parted(str(error))
        if isinstance(error, CallError):  # with status and request id, which a support case needs
            text, step = parted(error.summary)[0], parted(error.advice)[1]
        return cls("problem", text, next or step, name=name)

    def as_json(self) -> dict[str, object]:
        """The same for machines."""
        return {
            "name": self.name,
            "status": self.status,
            "text": self.text,
            "next": self.next or None,
            "details": list(self.details),
            **self.facts,
        }


def check(name: str) -> Callable[[Callable[P, Check]], Callable[P, Check]]:
    """What a function finds, under this name. An error of the service is a problem."""

    def decorated(look: Callable[P, Check]) -> Callable[P, Check]:
        @wraps(look)
        def named(*args: P.args, **kwargs: P.kwargs) -> Check:
            try:
                found = look(*args, **kwargs)
            except HostingError as error:
                found = Check.of_error(error)
            return replace(found, name=found.name or name)

        return named

    return decorated


def _found(
    status: Status, text: str, next: str = "", details: Iterable[str] = (), /, **facts: object
) -> Check:
    return Check(status, text, next, tuple(details), facts)


ok, note = partial(_found, "ok"), partial(_found, "note")
warning, problem = partial(_found, "warning"), partial(_found, "problem")
