"""Plays scripts of Pulumi: a program of one form on the offline engine, one resource at a time."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal import engines
from tests.support.programs import FORMS, install_plugin
from tests.transcripts.player import Player
from tests.transcripts.scripts import Script

_OPERATIONS = ("up", "preview", "refresh", "destroy")
_NOT_SHOWN = ("__provider", "__entry")
"""Outputs of a state that are pickled code, or another text in each run."""
_SHOWN_BESIDE = ("id", "protect", "retainOnDelete", "external", "pendingReplacement")
_HEAD = "This is the offline engine of pulumi-hosting"


class Programs(Player):
    """A program and its stack."""

    def __init__(self, script: Script, folder: Path, emulator: Running) -> None:
        super().__init__(script, folder, emulator)
        (self.work / "Pulumi.yaml").write_text("name: toys\nruntime: python\n", encoding="utf-8")
        home = folder / "home"
        self.environ |= install_plugin(home) if script.form == "native" else {}
        engine = engines.choose(engines.OFFLINE)
        self.stack = engine.stack(self.work, home, self.environ)
        self.environ = self.stack.environ = self.stack.environment()
        self._declared: dict[str, tuple[str, dict[str, Any]]] = {}
        self._declare(script.declare)

    def command(self, text: str) -> None:
        if text.startswith("pulumi-hosting "):
            super().command(text)
            return
        words = text.split()
        flags = ["--parallel", "1"] if words[0] in _OPERATIONS else []
        flags += ["--yes"] if words[0] not in ("preview", "stack", "config") else []
        flags += ["--skip-preview"] if words[0] in ("up", "refresh", "destroy") else []
        run = self.stack.run(*words, *flags)
        output = "".join(line for line in run.output.splitlines(keepends=True) if not line.startswith(_HEAD))
        self.note(f"pulumi {text}", run.exit_code, output, self._state())

    # --- what the program declares

    def _declare(self, declared: Mapping[str, Any]) -> None:
        self._declared = {name: (kind, dict(given)) for name, (kind, given) in declared.items()}
        self._write()

    def _change(self, changed: Mapping[str, Mapping[str, Any]]) -> None:
        for name, given in changed.items():
            kind, before = self._declared[name]
            after = {name: value for name, value in {**before, **given}.items() if value is not None}
            self._declared[name] = (kind, after)
            self._add([f"# {name}: {', '.join(f'{field}={value!r}' for field, value in given.items())}"])
        self._write()

    def _remove(self, names: list[str]) -> None:
        for name in names:
            del self._declared[name]
            self._add([f"# {name} is removed"])
        self._write()

    def _write(self) -> None:
        lines = [f"import pulumi\nimport {FORMS[self.script.form]} as hosting\n"]
        for name, (kind, arguments) in self._declared.items():
            given = "".join(f", {key}={value!r}" for key, value in arguments.items())
            lines.append(f"{name} = hosting.{kind}({name!r}{given})")
        (self.work / "__main__.py").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _program(self, text: str) -> None:
        (self.work / "__main__.py").write_text(
            f"import pulumi\nimport {FORMS[self.script.form]} as hosting\n{textwrap.dedent(text)}",
            encoding="utf-8",
        )

    def _export(self, name: str) -> None:
        text = self.stack.run("stack", "export").output
        (self.work / name).write_text(text, encoding="utf-8")

    # --- its state

    def _state(self) -> dict[str, Any]:
        """The resources of the stack by name, as they are saved."""
        found: dict[str, Any] = {}
        (saved,) = self.stack.saved()
        for row in saved["deployment"].get("resources", []):
            if "hosting:" not in row["type"] or "providers" in row["type"]:
                continue
            name = row["urn"].rpartition("::")[2] + (" (to be deleted)" if row.get("delete") else "")
            shown = {field: row[field] for field in _SHOWN_BESIDE if row.get(field)}
            outputs = {
                field: value for field, value in (row.get("outputs") or {}).items() if field not in _NOT_SHOWN
            }
            found[f"{row['type'].rpartition(':')[2]} {name}"] = {**outputs, **shown}
        for row in saved["deployment"].get("pending_operations", []):
            found[f"pending {row['type']} {row['resource']['urn'].rpartition('::')[2]}"] = {}
        return found
