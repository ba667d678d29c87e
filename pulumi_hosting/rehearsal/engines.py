"""Runs both engines: Pulumi's CLI if it is on PATH, and the offline engine, which has the same command
line.

A :class:`Stack` is one program in one stack, isolated from the user's Pulumi: it has its own state, plugins
and passphrase.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from pulumi_hosting.rehearsal.facts import JsonObject
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects

OFFLINE, PULUMI = "offline", "pulumi"
OF_THE_ACCOUNT = ("HOSTING_BUDGET", "HOSTING_MAX_CHARGE", "HOSTING_MODE", "HOSTING_STORE")
"""Variables that guard the user's account, a shared store among them. A stack of this module has none of its
money and its keys."""


class EngineError(Exception):
    """An engine failed. ``str()`` is one line: the reason and what to do next."""


class EngineMissing(EngineError):
    """The engine is not installed."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs Pulumi programs. ``name``: ``offline`` or ``pulumi``.

    ``command``: what stands before ``up``, ``preview`` … on the command line; for the offline engine without
    the Python that runs it.
    """

    name: str
    version: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()

    def stack(
        self, program: Path, home: Path, environ: Mapping[str, str] | None = None, name: str = "dev"
    ) -> "Stack":
        """A new stack of the program in ``program``, saved in ``home``.

        ``environ``: added to the environment of commands.
        """
        stack = Stack(self, program, home, name, dict(environ or {}))
        stack.init()
        return stack


@cache
def _pulumi(path: str) -> Engine:
    answer = finished([path, "version"], {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"})
    return Engine(PULUMI, answer.stdout.strip(), (path,))


def available() -> list[Engine]:
    """The installed engines: offline always, Pulumi's if its CLI is on PATH."""
    engines = [Engine(OFFLINE, "", ("-m", "pulumi_hosting.cli", "offline"))]
    if path := shutil.which("pulumi"):
        engines.append(_pulumi(path))
    return engines


def choose(name: str = "auto") -> Engine:
    """``auto``: Pulumi's if it is on PATH, else offline. Raises :class:`EngineMissing`."""
    by_name = {engine.name: engine for engine in available()}
    if name == "auto":
        return by_name.get(PULUMI, by_name[OFFLINE])
    if name not in by_name:
        raise EngineMissing(
            f"no {name} command is on PATH. Next: install Pulumi's CLI (pulumi-hosting rehearse "
            f"--install-pulumi), or use --engine offline"
        )
    return by_name[name]


@dataclass(frozen=True, slots=True)
class AnnouncedStep:
    """One announced step:

    ``op`` (create, update, replace, delete, same, refresh, read …) on ``name`` of ``type``.
    """

    op: str
    name: str
    type: str
    diffs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """The outcome of one command. ``output``: all that it printed;

    ``changes``: the summary's counts by operation.
    """

    command: tuple[str, ...]
    exit_code: int
    output: str
    steps: tuple[AnnouncedStep, ...] = ()
    changes: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> dict[str, int]:
        """Counts of actual, or planned, changes by operation."""
        return {
            op: count for op, count in self.changes.items() if op not in ("same", "read", "refresh") and count
        }


@dataclass
class Stack:
    """A program and its stack. Every method runs one command and returns its outcome."""

    engine: Engine
    program: Path
    home: Path
    name: str
    environ: dict[str, str]
    look: ClassVar[str] = "preview"
    act: ClassVar[str] = "up"
    """What its steps are called."""

    def init(self) -> None:
        (self.home / "state").mkdir(parents=True, exist_ok=True)
        run = self.run("stack", "init", self.name)
        if run.exit_code:
            self.remove()
            raise EngineError(f"the stack could not be created: {' '.join(run.output.split())}")

    def remove(self) -> None:
        """Remove the stack's settings file from the program's directory."""
        (self.program / f"Pulumi.{self.name}.yaml").unlink(missing_ok=True)

    def up(self, *flags: str) -> Run:
        return self._run_approved("up", *flags)

    def preview(self, *flags: str) -> Run:
        return self.run("preview", *flags)

    def refresh(self, *flags: str) -> Run:
        return self._run_approved("refresh", *flags)

    def destroy(self, *flags: str) -> Run:
        return self._run_approved("destroy", *flags)

    def _run_approved(self, command: str, *flags: str) -> Run:
        approved = () if "--preview-only" in flags else ("--yes", "--skip-preview")
        return self.run(command, *approved, *flags)

    def unprotect(self) -> None:
        """Let what the program protects be replaced and destroyed, until the next ``up``."""
        resources = [row for export in self.saved() for row in export["deployment"].get("resources") or ()]
        if any(row.get("protect") for row in resources):
            self.run("state", "unprotect", "--all", "--yes")

    def cancel(self) -> Run:
        return self.run("cancel", "--yes")

    def outputs(self) -> dict[str, Any]:
        return dict(json.loads(self.run("stack", "output", "--json", "--show-secrets").output or "{}"))

    def export(self, *flags: str) -> dict[str, Any]:
        """The stack's deployment, secrets encrypted unless ``--show-secrets``."""
        return dict(json.loads(self.run("stack", "export", *flags).output))

    def saved(self) -> list[dict[str, Any]]:
        """Every stack saved in ``home``, as ``export`` prints it, read from its file without an engine."""
        files = (self.home / "state" / ".pulumi" / "stacks").rglob("*.json")
        found = [json.loads(path.read_text(encoding="utf-8")).get("checkpoint") or {} for path in files]
        return [{"version": 3, "deployment": data.get("latest") or {}} for data in found]

    def managed(self) -> ManagedObjects:
        """What its state holds."""
        return ManagedObjects.of_stack(*self.saved())

    def run(self, *arguments: str) -> Run:
        """Run one command of the engine."""
        with tempfile.TemporaryDirectory(prefix="events-") as folder:
            log = Path(folder) / "events.json"
            done = finished(self.command(*arguments, event_log=log), self.environment(), self.program)
            events = _events(log)
        quiet = arguments[0] in ("stack", "config")
        output = done.stdout if quiet and done.returncode == 0 else done.stdout + done.stderr
        outcome = _steps(events), _changes(events), _errors(events), _warnings(events)
        return Run(tuple(arguments), done.returncode, output, *outcome)

    def command(self, *arguments: str, event_log: Path | None = None) -> list[str]:
        """The complete command line."""
        operation = arguments[0] in ("up", "preview", "refresh", "destroy")
        extra = ["--event-log", str(event_log)] if event_log and operation else []
        chosen = [] if arguments[:2] == ("stack", "init") else ["--stack", self.name]
        python = [sys.executable] if self.engine.name == OFFLINE else []  # as it is now: `forked` sets it
        return [*python, *self.engine.command, *arguments, *chosen, "--non-interactive", *extra]

    def environment(self) -> dict[str, str]:
        """Isolated from the user's Pulumi and account, without update checks and downloads."""
        inherited = {name: value for name, value in os.environ.items() if name not in OF_THE_ACCOUNT}
        return {
            **inherited,
            "PULUMI_HOME": str(self.home / "pulumi"),
            "PULUMI_BACKEND_URL": (self.home / "state").resolve().as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "rehearsal",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
            "PULUMI_DEBUG_COMMANDS": "true",  # enables --event-log
            "PULUMI_PYTHON_CMD": sys.executable,
            "NO_COLOR": "1",
            **self.environ,
        }


def finished(
    command: Sequence[str], environ: Mapping[str, str], folder: Path | None = None, most: float | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command has printed, and its exit code. Its input is empty. After ``most`` seconds it is ended;
    then this raises ``TimeoutExpired``.
    """
    return subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=most,
        check=False,
    )


def _events(log: Path) -> list[JsonObject]:
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.strip()]


def _of_kind(events: Sequence[JsonObject], kind: str) -> list[JsonObject]:
    return [event[kind] for event in events if kind in event]


def _steps(events: Sequence[JsonObject]) -> tuple[AnnouncedStep, ...]:
    """A refresh announces "refresh"; its outcome is the operation that it found."""
    announced = [event["metadata"] for event in _of_kind(events, "resourcePreEvent")]
    refreshed = {metadata["urn"] for metadata in announced if metadata["op"] == "refresh"}
    steps = []
    for event in events:
        if "resourcePreEvent" in event:
            metadata = event["resourcePreEvent"]["metadata"]
            counts = metadata["op"] != "refresh"
        else:
            metadata = event.get("resOutputsEvent", {}).get("metadata")
            counts = bool(metadata) and metadata["urn"] in refreshed
        if counts:
            diffs = metadata.get("diffs") or sorted(metadata.get("detailedDiff") or {})
            name = metadata["urn"].rsplit("::", 1)[-1]
            steps.append(AnnouncedStep(metadata["op"], name, metadata["type"], tuple(diffs)))
    return tuple(steps)


def _changes(events: Sequence[JsonObject]) -> dict[str, int]:
    summaries = _of_kind(events, "summaryEvent")
    return dict(summaries[-1].get("resourceChanges") or {}) if summaries else {}


def _errors(events: Sequence[JsonObject]) -> tuple[str, ...]:
    found = _of_kind(events, "diagnosticEvent")
    return tuple(_text(item) for item in found if item.get("severity") == "error")


def _warnings(events: Sequence[JsonObject]) -> tuple[str, ...]:
    """Each once; a dynamic provider prints its own as ``<name>: warning: <text>``.

    >>> printed = {"severity": "info#err", "message": "<{%reset%}>web: warning: Soon: …<{%reset%}>"}
    >>> _warnings([{"diagnosticEvent": printed}, {"diagnosticEvent": printed}])
    ('Soon: …',)
    """
    found = []
    for item in _of_kind(events, "diagnosticEvent"):
        text = _text(item)
        printed = re.match(r"(?:\S+: )?warning: (.*)", text, re.DOTALL)
        if printed or item.get("severity") == "warning":
            found.append(printed[1] if printed else text)
    return tuple(dict.fromkeys(found))


def _text(diagnostic: JsonObject) -> str:
    """The message without the marks with which Pulumi colours it."""
    return re.sub(r"<\{%.*?%\}>", "", diagnostic["message"]).strip()


def install() -> Engine:
    """Pulumi's CLI of the SDK's version, downloaded to Pulumi's folder. Raises :class:`EngineMissing`."""
    from pulumi_hosting.offline import OfflineError  # Pulumi's SDK: a CPU second
    from pulumi_hosting.offline.download import download_cli

    try:
        return _pulumi(download_cli())
    except OfflineError as error:
        raise EngineMissing(f"{error}. Next: install it yourself, or use --engine offline") from None
