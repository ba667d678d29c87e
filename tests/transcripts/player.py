"""Plays the steps of a script against an emulator, and writes down what is seen from outside."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from tests.ansible.conftest import BIN, ROOT
from tests.support.programs import ROOMY
from tests.transcripts.changes import changes
from tests.transcripts.normal import START, Names
from tests.transcripts.scripts import Script, Step

_WRONG_KEY = "vk_live_" + "wrong" * 8
SECRET_FIELDS = ("password", "auth_code")
"""Inputs that no recording shows."""


class Player:
    """``parts``: the recording so far. ``environ``: the variables of commands."""

    kept = "state"
    """What the changes after a command are of."""

    def __init__(self, script: Script, folder: Path, emulator: Running) -> None:
        self.script, self.work, self.emulator = script, folder / "work", emulator
        self.control = Control(emulator.control_url)
        now = datetime.fromisoformat(self.control("GET", "/")["now"]).timestamp()
        self.control("POST", "/clock", {"advance": START - now})
        live: str = self.control("POST", "/keys", ROOMY)["key"]
        self.keys = {"live": live, "test": emulator.test_key, "wrong": _WRONG_KEY}
        paths = {str(folder / "work"): "<dir>", str(folder / "home"): "<home>", str(ROOT): "<repo>"}
        self.names = Names({**paths, str(folder): "<folder>", str(BIN): "<bin>"})
        self.parts: list[str] = []
        self.environ = {
            **os.environ,
            "HOSTING_API_KEY": self.keys["live"],
            "HOSTING_BASE_URL": emulator.base_url,
        }
        self._seen: dict[str, Any] = {}
        self._movements = 0
        self._requests = 0

    # --- steps

    def step(self, step: Step) -> None:
        if isinstance(step, str):
            self.command(step)
            return
        for kind, given in step.items():
            getattr(self, f"_{kind}")(given)

    def command(self, text: str) -> None:
        """A command of the project."""
        words = text.removeprefix("pulumi-hosting ").split()
        done = self._call([sys.executable, "-m", "pulumi_hosting.cli", *words])
        self.note(f"pulumi-hosting {' '.join(words)}", done.returncode, done.stdout + done.stderr)

    def _call(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=self.work,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def _account(self, calls: list[list[Any]]) -> None:
        for method, path, *body in calls:
            self.control(method, path, *body)
            said = json.dumps(body[0]) if body else ""
            self._add([f"# the account: {method} {path} {said}".rstrip()])
        self._movements = len(self.control("GET", "/ledger"))

    def _key(self, name: str) -> None:
        if name == "read only":
            self.keys[name] = self.control("POST", "/keys", {**ROOMY, "scopes": ["read_only"]})["key"]
        if name == "other account":
            self.keys[name] = self.control("POST", "/accounts", {})["live_key"]
        self._add([f"# key: {name}"])
        self._set("HOSTING_API_KEY", self.keys.get(name))

    def _environ(self, variables: Mapping[str, str | None]) -> None:
        for name, value in variables.items():
            self._add([f"# {name}={'' if value is None else value}"])
            self._set(name, value)

    def _set(self, name: str, value: str | None) -> None:
        self.environ.pop(name, None)
        if value is not None:
            self.environ[name] = value

    def _show(self, names: list[str]) -> None:
        for name in names:
            text = (self.work / name).read_text(encoding="utf-8")
            self._add([f"# {name}", *(f"| {line}".rstrip() for line in text.splitlines())])

    def _file(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.work / name).write_text(text, encoding="utf-8")

    # --- what is written down

    def note(self, command: str, exit_code: int, output: str, after: Mapping[str, Any] | None = None) -> None:
        """A command, what it printed and sent, what it cost, and what differs in ``after``."""
        lines = [f"$ {command}", f"exit {exit_code}"]
        lines += [f"| {line}".rstrip() for line in output.splitlines() if line.strip()]
        requests = list(self._new_requests())
        lines += ["requests:", *(f"  {line}" for line in requests)] if requests else []
        ledger = self.control("GET", "/ledger")
        moved = ledger[self._movements :]
        self._movements = len(ledger)
        lines += [f"money: {row['direction']} {row['amount']} {row['operation']}" for row in moved]
        if after is not None:
            differences = list(changes(self._seen, after))
            lines += [f"{self.kept}:" if differences else f"{self.kept}: unchanged"]
            lines += [f"  {line}" for line in differences]
            self._seen = dict(after)
        self._add(lines)

    def _add(self, lines: list[str]) -> None:
        self.parts.append("".join(f"{line}\n" for line in self.names.normal("\n".join(lines)).split("\n")))

    def _new_requests(self) -> Iterator[str]:
        for row in self.control("GET", f"/requests?since={self._requests}"):
            self._requests = row["seq"]
            headers = row["headers"]
            key = "live" if row["key_id"] else "unknown"
            key = "test" if row["key_id"] == 502 else key
            auth = f"{key} key" if "authorization" in headers else "no key"
            given = headers.get("idempotency-key")
            parts = [row["method"], row["path"] + (f"?{row['query']}" if row["query"] else ""), f"({auth})"]
            parts += [self.names.know_key(given)] if given else []
            parts += [json.dumps(row["body"], ensure_ascii=False)] if row["body"] is not None else []
            code = ((row["response"] or {}) if isinstance(row["response"], dict) else {}).get("error")
            code = code.get("code") if isinstance(code, dict) else None
            yield " ".join([*parts, "->", str(row["status"]), *([code] if code else [])])


def without_secrets(given: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as a recording shows them."""
    return {name: "<secret>" if name in SECRET_FIELDS else value for name, value in given.items()}
