"""A playbook in place of a Pulumi program: its check runs are previews, its runs updates."""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pulumi_hosting.rehearsal.engines import OF_THE_ACCOUNT, EngineMissing, Run, finished

_DRIFT = 3  # the callback's exit code


@dataclass(frozen=True, slots=True)
class Ansible:
    """``ansible-playbook``, as an engine. ``command``: its path."""

    command: str
    name: ClassVar[str] = "ansible"

    def __str__(self) -> str:
        return "ansible-playbook"

    def stack(
        self, program: Path, home: Path, environ: Mapping[str, str] | None = None, name: str = ""
    ) -> "Playbook":
        """The playbook ``program``; ``environ``: added to the environment of its runs."""
        return Playbook(self, program, home, dict(environ or {}))


def ansible() -> Ansible:
    """That of this Python's environment, or on PATH. Raises :class:`EngineMissing`."""
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    if path := shutil.which("ansible-playbook", path=beside):
        return Ansible(path)
    raise EngineMissing("ansible-playbook is not on PATH. Next: pip install ansible-core")


@dataclass
class Playbook:
    """A playbook and its runs. It remembers nothing, so nothing is destroyed and nothing removed."""

    engine: Ansible
    program: Path
    home: Path
    environ: dict[str, str]
    variables: list[str] = field(default_factory=list)
    look: ClassVar[str] = "check"
    act: ClassVar[str] = "run"

    def run(self, *arguments: str) -> Run:
        """``config set``: an extra variable of each run."""
        self.variables += ["--extra-vars", json.dumps({arguments[2]: arguments[3]})]
        return Run(arguments, 0, "")

    def preview(self, *flags: str) -> Run:
        return self._play("--check", "--diff", expects_none="--expect-no-changes" in flags)

    def up(self, *flags: str) -> Run:
        return self._play(expects_none=False)

    def managed(self) -> None:
        """No state says what is managed."""

    def remove(self) -> None:
        """Nothing is left in the playbook's directory."""

    def _play(self, *arguments: str, expects_none: bool) -> Run:
        report = self.home / "report.json"
        report.unlink(missing_ok=True)
        command = [self.engine.command, *arguments, *self.variables, self.program.name]
        done = finished(command, self._environment(report), self.program.resolve().parent)
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        code = 0 if done.returncode == _DRIFT else done.returncode
        if code == 0 and expects_none and found.get("drift"):
            code = 7
        output = done.stdout + done.stderr
        warnings = tuple(dict.fromkeys(re.findall(r"^\[WARNING\]: (.*)$", output, re.MULTILINE)))
        errors = tuple(str(failure["message"]) for failure in found.get("failures") or ())
        changes = {"changed": len(found.get("changes") or ())}
        return Run(arguments, code, output, (), changes, errors, warnings)

    def _environment(self, report: Path) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in OF_THE_ACCOUNT}
        callbacks = filter(None, (inherited.get("ANSIBLE_CALLBACKS_ENABLED"), "hosting.cloud.drift"))
        return {
            **inherited,
            "ANSIBLE_CALLBACKS_ENABLED": ",".join(callbacks),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "COLUMNS": "10000",  # a warning on one line
            "HOSTING_DRIFT_EXIT_CODE": str(_DRIFT),
            "HOSTING_DRIFT_REPORT": str(report),
            **self.environ,
        }
