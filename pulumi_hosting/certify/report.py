"""The result of a run, for people and as JSON."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

OK, DEPARTURE, NOT_CHECKED = "ok", "departure", "not checked"


class Stopped(Exception):
    """The run ends here: a bound is reached, or the deployment does not answer."""


@dataclass(slots=True)
class Finding:
    """``verdict``: ``ok``, ``departure`` or ``not checked``; ``detail`` says what differs, or why it was not
    checked. ``request`` and ``answer`` are the last ones seen, secrets masked.
    """

    check: str
    sentences: tuple[str, ...]
    cost: str
    verdict: str = NOT_CHECKED
    detail: str = ""
    request: str = ""
    answer: str = ""


@dataclass(slots=True)
class Conformance:
    """``profile``: what the deployment does where the document leaves a choice. ``left_behind``: objects that
    the run made and could not remove. ``unfinished``: why the run stopped, if it did.
    """

    results: list[Finding] = field(default_factory=list)
    profile: dict[str, Any] = field(default_factory=dict)
    left_behind: list[str] = field(default_factory=list)
    requests: int = 0
    charged: str = "0.00"
    unfinished: str = ""

    @property
    def departures(self) -> list[Finding]:
        return [result for result in self.results if result.verdict == DEPARTURE]

    @property
    def exit_code(self) -> int:
        """0 without a departure, 7 with one, 1 when the run was not finished."""
        return 7 if self.departures else 1 if self.unfinished else 0

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(result.verdict for result in self.results)

    @property
    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "exit_code": self.exit_code, "counts": dict(self.counts)}

    def text(self) -> str:
        lines = []
        for result in self.departures:
            lines += [f"departure {result.check}: {result.detail}", f"  costs users: {result.cost}"]
            lines += [f"  the document: {text}" for text in result.sentences]
            lines += [f"  {line}" for line in (result.request, result.answer) if line]
        if skipped := [result for result in self.results if result.verdict == NOT_CHECKED]:
            reasons: dict[str, list[str]] = {}
            for result in skipped:
                reasons.setdefault(result.detail, []).append(result.check)
            lines += ["", "not checked:", *(f"  {why}: {', '.join(which)}" for why, which in reasons.items())]
        if self.left_behind:
            lines += ["", "left behind:", *(f"  {thing}" for thing in self.left_behind)]
        if self.unfinished:
            lines += ["", f"not finished: {self.unfinished}"]
        number = len(self.departures)
        departed = f"{number} {DEPARTURE}{'' if number == 1 else 's'}"
        counts = f"{self.counts.get(OK, 0)} ok, {departed}, {self.counts.get(NOT_CHECKED, 0)} not checked"
        return "\n".join([*lines, "", f"{counts}; {self.requests} requests, {self.charged} charged"]).strip()
