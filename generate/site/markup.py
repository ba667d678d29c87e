"""Markdown of the pages that are made from declarations."""

import re
from collections.abc import Iterable, Mapping
from textwrap import indent
from typing import Any

from generate.render import cell

_MACRO = re.compile(r"\b(RV|[BCEIMOPV])\(((?:[^()]|\([^()]*\))*)\)")
_CODE = re.compile(r"(`[^`]*`)")


def tabs(examples: Mapping[str, tuple[str, str]]) -> str:
    """One tab for each language: its title, the name of its highlighting, the text."""
    return "\n".join(
        f'=== "{title}"\n\n' + indent(f"```{language}\n{text.strip()}\n```\n", " " * 4)
        for title, (language, text) in examples.items()
    )


def safe(text: str | None) -> str:
    """A description in a table's cell: what looks like HTML outside of code is text."""
    parts = _CODE.split(cell(text))
    return "".join(
        part if number % 2 else part.replace("<", "&lt;").replace("*", "\\*")
        for number, part in enumerate(parts)
    )


def ansible(text: str | Iterable[str]) -> str:
    """A text of Ansible's documentation, with its macros, as Markdown."""
    whole = text if isinstance(text, str) else " ".join(text)
    return _MACRO.sub(_macro, whole)


def _macro(found: re.Match[str]) -> str:
    kind, content = found[1], found[2]
    if kind == "B":
        return f"**{content}**"
    if kind == "I":
        return f"*{content}*"
    if kind == "M" and content.startswith("hosting.cloud."):
        name = content.removeprefix("hosting.cloud.")
        return f"[`{name}`]({name}.md)"
    return f"`{content.removeprefix('ignore:') or 'an empty text'}`"


def kind_of(option: Mapping[str, Any]) -> str:
    """The type of an option or input, with its choices."""
    if "choices" in option:
        return " or ".join(f"`{choice}`" for choice in option["choices"])
    return f"list of {option.get('elements', 'str')}" if option["type"] == "list" else str(option["type"])
