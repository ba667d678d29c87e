"""Plays scripts of Pulumi: a program of one form on the offline engine, one resource at a time."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal import engines
from tests.support.programs import FORMS, Ref, install_plugin
from tests.transcripts.player import Player, without_secrets
from tests.transcripts.scripts import Script

_OPERATIONS = ("up", "preview", "refresh", "destroy")
_NOT_SHOWN = ("__provider", "__entry")
"""Outputs of a state that are pickled code, or another text in each run."""
_SHOWN_BESIDE = ("id", "protect", "retainOnDelete", "external", "pendingReplacement")
_HEAD = "This is the offline engine of pulumi-hosting"


class Programs(Player):
    """A program and its stack."""

    engine = engines.choose(engines.OFFLINE)

    def __init__(self, script: Script, folder: Path, emulator: Running) -> None:
        super().__init__(script, folder, emulator)
        (self.work / "Pulumi.yaml").write_text("name: toys\nruntime: python\n", encoding="utf-8")
        home = folder / "home"
        self.environ |= install_plugin(home) if script.form == "native" else {}
        self.stack = self.engine.stack(self.work, home, self.environ)
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
        flags = flags[:2] if "--preview-only" in words else flags
        run = self.stack.run(*words, *flags)
        self.note(f"pulumi {text}", run.exit_code, "\n".join(self.printed(run)), self._state())

    def printed(self, run: engines.Run) -> Iterable[str]:
        """What is written down of what it printed."""
        return _in_order(run.output)

    # --- what the program declares

    def _declare(self, declared: Mapping[str, Any]) -> None:
        if self.parts:
            self._add([f"# declared: {', '.join(declared)}"])
        self._declared = {name: (kind, dict(given)) for name, (kind, given) in declared.items()}
        self._write()

    def _change(self, changed: Mapping[str, Mapping[str, Any]]) -> None:
        for name, given in changed.items():
            kind, before = self._declared[name]
            after = {name: value for name, value in {**before, **given}.items() if value is not None}
            self._declared[name] = (kind, after)
            shown = (f"{field}={value!r}" for field, value in without_secrets(given).items())
            self._add([f"# {name}: {', '.join(shown)}"])
        self._write()

    def _remove(self, names: list[str]) -> None:
        for name in names:
            del self._declared[name]
            self._add([f"# {name} is removed"])
        self._write()

    def _write(self) -> None:
        """Each resource after the one before it, so that every run does the same in the same order."""
        lines, before = [f"import pulumi\nimport {FORMS[self.script.form]} as hosting\n"], ""
        for name, (kind, arguments) in self._declared.items():
            after = f"pulumi.ResourceOptions(depends_on=[{before}])"
            opts = f"pulumi.ResourceOptions.merge({after}, {arguments.get('opts')!r})"
            arguments = {**arguments, "opts": Ref(opts)} if before else arguments
            given = "".join(f", {key}={value!r}" for key, value in arguments.items())
            before = name
            lines.append(f"{name} = hosting.{kind}({name!r}{given})")
        (self.work / "__main__.py").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _program(self, text: str) -> None:
        (self.work / "__main__.py").write_text(
            f"import pulumi\nimport {FORMS[self.script.form]} as hosting\n{textwrap.dedent(text)}",
            encoding="utf-8",
        )

    def _save(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            done = self._call(self.stack.command(*text.split()))
            (self.work / name).write_text(done.stdout, encoding="utf-8")
            self.note(f"pulumi {text} > {name}", done.returncode, done.stderr)

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


def _in_order(output: str) -> Iterator[str]:
    """Lines of a run: first its messages, then its steps, because a message of a provider may be shown
    before or after the step that it belongs to.
    """
    messages: list[str] = []
    steps: list[str] = []
    is_mixed = False
    for line in output.splitlines():
        if line.startswith(_HEAD):
            continue
        if not line.startswith(" "):
            yield from (*messages, *steps, line)
            messages, steps = [], []
            is_mixed = line.endswith("):")
        elif is_mixed and line.startswith("    ") and not line.startswith("      "):
            messages.append(line)
        else:
            steps.append(line)
    yield from (*messages, *steps)
