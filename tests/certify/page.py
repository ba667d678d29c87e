"""Writes docs/certify.md from the sentences and their checks: ``python -m tests.certify.page``."""

from pathlib import Path

from pulumi_hosting.certify.document import CHECKS, SENTENCES

PAGE = Path(__file__).parents[2] / "docs/certify.md"
_MARK = "<!-- written by python -m tests.certify.page -->"


def page() -> str:
    """What the page has to be: its text by hand, then every sentence and every check."""
    by_hand = PAGE.read_text("utf-8").partition(_MARK)[0]
    lines = ["## The sentences of the document", "", "| Sentence | Checked by, or why not |", "|---|---|"]
    for text, checks in SENTENCES.items():
        shown = checks if isinstance(checks, str) else ", ".join(f"`{id}`" for id in checks)
        # a row of a table has bars of its own
        quoted = text.replace("\\|", "|").replace("|", "\\|")
        lines.append(f"| {quoted} | {shown} |")
    lines += ["", "## What a departure costs users", "", "| Check | Cost |", "|---|---|"]
    lines += [f"| `{check.id}` | {check.cost} |" for check in CHECKS.values()]
    return f"{by_hand}{_MARK}\n\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
