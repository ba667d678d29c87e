"""The outcome of a cell of the kill matrix."""

from dataclasses import dataclass, field

RERUNS = 2
"""So many further runs a command may need after a kill."""


@dataclass
class Result:
    """``problems``: broken promises. ``stop``: the message of a run that a person must decide;
    ``resolved_by``: what was done as it says. ``reruns``: how many were needed. ``is_reached``: whether
    the run came to where it was to be killed.
    """

    cell: str
    problems: list[str] = field(default_factory=list)
    stop: str | None = None
    resolved_by: str | None = None
    reruns: int = 0
    is_reached: bool = True
