"""The checks and the sentences of the API document that they check, from ``document.json``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """``cost``: what a departure costs users. ``sentences``: what it checks, quoted from the document."""

    id: str
    cost: str
    sentences: tuple[str, ...]


_TEXT = json.loads(files(__package__).joinpath("document.json").read_text("utf-8"))
SENTENCES: Mapping[str, list[str] | str] = dict(_TEXT["sentences"])
"""Every sentence, in order -> its checks, or the reason why it has none."""
AFTER: Mapping[str, list[str]] = {id: causes.split() for id, causes in _TEXT["after"].items()}
"""A check -> those whose departure can make it depart too."""
CHECKS: Mapping[str, CheckFacts] = {
    id: CheckFacts(id, cost, tuple(text for text, checks in SENTENCES.items() if id in checks))
    for id, cost in _TEXT["checks"].items()
}
