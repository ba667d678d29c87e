"""The sentences of the API document: a row of a table is one, text and list items are split at full stops."""

import re
from pathlib import Path

DOCUMENT = Path(__file__).with_name("hosting-client-api-v1.md")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*{])")
_MARKER = re.compile(r"\s*(?:[-*]|\d+\.)\s+")


def sentences(text: str) -> list[str]:
    """In their order, each once.

    >>> sentences("# Head\\n\\n1. One is. Two\\n   are.\\n\\n| A | B |\\n|---|---|\\n| `x` | y. Z |")
    ['One is.', 'Two are.', '| `x` | y. Z |']
    """
    found: list[str] = []
    lines = [*text.splitlines(), ""]
    block: list[str] = []
    for number, line in enumerate(lines):
        marker = _MARKER.match(line)
        if block and (not line.strip() or line.startswith(("|", "#")) or marker):
            found += _END.split(" ".join(" ".join(block).split()))
            block = []
        if line.startswith("|"):
            is_header = lines[number + 1].startswith("|--")
            if not is_header and not line.startswith("|--"):
                found.append(" ".join(line.split()))
        elif line.strip() and not line.startswith("#"):
            block.append(line[marker.end() :] if marker else line)
    return list(dict.fromkeys(found))
