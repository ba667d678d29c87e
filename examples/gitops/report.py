"""The digest of what was reviewed, and the text that reviewers read."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plan import OF_THE_STATE, SECRET, Plan

LIMIT = 60_000
"""Characters of a comment. GitHub accepts 65,536."""
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What Pulumi writes for a value that is known after the update."""


def digest_of(plans: Iterable[Plan]) -> str:
    """The same for the same changes in any order. Secret values are ``[secret]`` in a preview."""
    rows = sorted(json.dumps(change.facts, sort_keys=True) for plan in plans for change in plan.changes)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def summary_of(plans: Iterable[Plan]) -> str:
    counts = Counter(change.action for plan in plans for change in plan.changes)
    return ", ".join(f"{count} to {action}" for action, count in sorted(counts.items())) or "nothing changes"


def changes_table(plans: Sequence[Plan]) -> list[str]:
    """Only what changes, then what the previews warn of."""
    rows = []
    for change in sorted((change for plan in plans for change in plan.changes), key=lambda row: row.name):
        values = sorted(change.fields.items())
        fields = "; ".join(f"{name}: {_value(old)} → {_value(new)}" for name, (old, new) in values)
        rows.append((change.action, code(change.name), code(fields)))
    warnings = [f"- Warning: {code(line)}" for plan in plans for line in plan.warnings]
    return [*(table(("Change", "What", "Fields"), rows) if rows else ()), *warnings]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [headers, ["---"] * len(headers), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def code(text: str) -> str:
    """Inline code, also in a table: nothing in it is Markdown, HTML, a mention or a link."""
    plain = " ".join(text.replace("`", "'").replace("|", "\\|").split())
    return f"`{plain}`" if plain else ""


def report_text(head: Sequence[str], details: Iterable[tuple[str, str]]) -> str:
    """The head, then the details; a long detail loses its beginning."""
    text = redacted("\n".join(head))
    if len(text) > LIMIT // 2:
        text = text[: LIMIT // 2].rpartition("\n")[0] + "\n\n… more changes than a comment can hold\n"
    shown = [(title, redacted(detail.strip())) for title, detail in details if detail.strip()]
    room = (LIMIT - len(text)) // max(1, len(shown)) - 200
    for title, detail in shown:
        kept = detail
        if len(detail) > room:
            kept = f"… {len(detail) - room} characters before this are left out\n{detail[-room:]}"
        fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", kept)), default=0))
        text += f"\n<details><summary>{title}</summary>\n\n{fence}text\n{kept}\n{fence}\n\n</details>\n"
    return text


def redacted(text: str) -> str:
    """Without the secrets of this job."""
    for name in (*SECRET, *OF_THE_STATE):
        if len(value := os.environ.get(name, "").strip()) >= 8:  # as the commands read it
            text = text.replace(value, "[redacted]")
    return text


def publish(text: str) -> None:
    """Print the report, and add it to the page that GitHub shows for the run."""
    print(text, flush=True)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def _value(value: Any) -> str:
    text = "(none)" if value is None else value if isinstance(value, str) else json.dumps(value)
    return "(known later)" if text == UNKNOWN else text[:80]
