"""Expected outputs beside the examples: what one sees, without what differs from run to run.

``WRITE_EXPECTED=1 pytest …`` writes them again. Look at the difference before you commit it.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DIFFERS = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| UTC|\+00:00)?"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "<date>"),
    (re.compile(r"\b\d{5,}\b"), "<id>"),
    (re.compile(r"^.*Duration: .*\n", re.MULTILINE), ""),
    (re.compile(r"\(\d+(\.\d+)?m?s\)"), ""),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
    (re.compile(r"\*{4,}$", re.MULTILINE), "****"),
    (re.compile(r"run total \d+\.\d+"), "run total <amount>"),
    (re.compile(r"(run total <amount> [A-Z]+) \+ [^,\n]* known later"), r"\1"),
    (re.compile(r"\(sufficient so far\)"), "(sufficient)"),
    (re.compile(r"\n{3,}"), "\n\n"),
)
# The steps of a Pulumi run: resources that do not depend on each other come in any order.
_STEPS = re.compile(r"(^(?:Previewing|Updating|Destroying).*:\n)((?:.+\n)*)", re.MULTILINE)


class Transcript:
    """Commands and what they print, for one example."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._addresses: dict[str, str] = {}

    def know_addresses(self, objects: Mapping[str, Any]) -> None:
        """Name addresses after their servers: which server gets which one depends on the order of the run.
        ``objects``: what the account holds, while it holds them.
        """
        servers = {row["id"]: row["name"] for row in objects["servers"]}
        for row in objects["addresses"]:
            which = "bought address" if row["bought"] else "address"
            self._addresses[row["address"]] = f"<{which} of {servers[row['server_id']]}>"

    def add(self, command: str, output: str) -> None:
        """``command``: as a reader of the example types it."""
        self._parts.append(f"$ {command}\n{normal(output).strip()}\n")

    def assert_expected(self, file: Path) -> None:
        """The file holds these commands and outputs."""
        text = "\n".join(self._parts)
        for address, name in self._addresses.items():
            text = re.sub(rf"(?<![\d.]){re.escape(address)}(?![\d.]*\d)", name, text)
        if os.environ.get("WRITE_EXPECTED"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8"), (
            f"{file} differs. Next: WRITE_EXPECTED=1, and look at the difference"
        )


def normal(text: str) -> str:
    """``text`` with ids and times replaced, without durations and colours."""
    for pattern, replacement in _DIFFERS:
        text = pattern.sub(replacement, text)
    return _STEPS.sub(lambda found: found[1] + "".join(sorted(found[2].splitlines(keepends=True))), text)
