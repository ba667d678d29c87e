"""What the files of an import begin and end with, whatever they are written in: what to run next, and what is
not in them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from textwrap import wrap

from pulumi_hosting.api.secrets import clean_text
from pulumi_hosting.reports.account_import import AccountImport, unreadable_inputs
from pulumi_hosting.resources import RESOURCES

Steps = tuple[tuple[str, str], ...]
"""Commands in order, each with what it does."""


@dataclass(frozen=True, slots=True)
class Written:
    """``files``: name → text; ``steps``: what to run once they are written."""

    files: Mapping[str, str]
    steps: Steps


def commented(lines: Iterable[str]) -> str:
    """The lines as comments of Python and of YAML. Nothing that the account shows can end a comment."""
    return "".join(f"# {clean_text(line)}".rstrip() + "\n" for line in lines)


def next_steps(steps: Steps) -> list[str]:
    """The commands in one column, what they do in the next."""
    width = max(len(command) for command, _ in steps)
    return [f"{command.ljust(width)}  # {does}" if does else command for command, does in steps]


def introduction(found: AccountImport, steps: Steps, secrets: str) -> str:
    """The comment that a file begins with. ``secrets``: how to declare what the API does not show."""
    hidden = _unreadable(found.counts())
    lines = [
        "Everything on the account, as `pulumi-hosting import` found it. HOSTING_API_KEY and",
        "HOSTING_BASE_URL name the account.",
        "",
        "Next:",
        *(f"  {line}" for line in next_steps(steps)),
    ]
    if hidden:
        missing = f"Not shown by the API, not needed, and so not written: {hidden}. {secrets}"
        lines += ["", *wrap(missing, 90, break_long_words=False, break_on_hyphens=False)]
    return commented(lines)


def _unreadable(counts: Mapping[str, int]) -> str:
    parts = []
    for kind in counts:
        if fields := unreadable_inputs(RESOURCES[kind]):
            parts.append(f"{', '.join(fields)} of a {RESOURCES[kind].title}")
    return "; ".join(parts)


def remainder(found: AccountImport) -> str:
    """The comment that a file ends with: what is on the account and not in it. Empty where nothing is."""
    lines = [f"  {one}" for one in found.left_out]
    lines += [f"  every {RESOURCES[kind].title}: {reason}" for kind, reason in found.unread.items()]
    return commented(["", "Not in this file:", *lines]).removeprefix("#") if lines else ""
