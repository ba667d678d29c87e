"""The answers that a resumed run takes from the state file in place of sending again."""

import json
import os
import secrets
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, TextIO

from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.report import Stopped

_KEPT_HEADERS = ("content-", "x-", "retry-after", "allow", "cache-control", "date", "www-")


class KeptAnswers:
    """The answers of the steps that a resumed run must not do again: one JSON object per line, in order."""

    def __init__(self, path: Path | None, base_url: str) -> None:
        self.id = secrets.token_hex(4)
        self._waiting: list[dict[str, Any]] = []
        self._file: TextIO | None = None
        self._path = path
        if path is None:
            return
        lines = _lines(path) if path.exists() else []
        if lines:
            if lines[0].get("base_url") != base_url:
                raise Stopped(f"{path} belongs to a run at {lines[0].get('base_url')}. Next: another --state")
            self.id, self._waiting = lines[0]["id"], lines[1:]
        self._file = os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), "a")
        if not lines:
            self._write({"id": self.id, "base_url": base_url})

    @property
    def resumed(self) -> bool:
        return bool(self._waiting)

    def take(self, sent: str) -> HttpAnswer | None:
        """The kept answer of the next step, if an earlier run got it."""
        if not self._waiting or self._waiting[0]["sent"] != sent:
            self._waiting.clear()
            return None
        row = self._waiting.pop(0)
        return HttpAnswer(sent, row["status"], row["headers"], b64decode(row["content"]), replayed=True)

    def add(self, answer: HttpAnswer) -> None:
        headers = {name: text for name, text in answer.headers.items() if name.startswith(_KEPT_HEADERS)}
        content = b64encode(answer.content).decode()
        self._write({"sent": answer.sent, "status": answer.status, "headers": headers, "content": content})

    def _write(self, row: object) -> None:
        if self._file is not None:
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def forget(self) -> None:
        self.close()
        self._file = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _lines(path: Path) -> list[dict[str, Any]]:
    """A line that a kill cut short is taken out of the file, or the next one would be a part of it."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
    try:
        return [json.loads(line) for line in content[:whole].splitlines()]
    except ValueError:  # a version before this one added to a line that was cut short
        raise Stopped(f"{path} is damaged. Next: another --state") from None
