"""A Pulumi program on an engine, in a stack of its own, and the emulated account it works on."""

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pulumi_hosting.emulator import Running
from pulumi_hosting.provider.plugin.install import EXECUTABLE, place
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine, Run
from pulumi_hosting.rehearsal.runner import plugin_environ
from pulumi_hosting.rehearsal.warm_python import PYTHON
from tests.checked import CheckedStack, checked
from tests.support.account import AccountView
from tests.support.waiting import interruptible

FORMS = {"dynamic": "pulumi_hosting", "native": "pulumi_hosting.native"}
"""Form → the module its classes are imported from."""
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE me@host"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9m3rTnO8rG1ktXvhfQAuMVVBJ9bUeAnHP4oDVM7WuY me@other"

# Steps that take seconds here take hours in life: a key whose limits per minute no test waits for.
ROOMY = {"mode": "live", "rate_per_minute": 10000, "rate_expensive_per_minute": 10000}

Declarations = dict[str, tuple[str, dict[str, Any]]]
"""Variable → (class, arguments)."""


class Ref(str):
    """A value of a program that stands in it as it is, such as ``web.id``."""

    def __repr__(self) -> str:
        return str(self)


@dataclass
class Program(AccountView):
    """A program of one form: its directory, its stack, and the account it works on."""

    directory: Path
    stack: CheckedStack
    emulator: Running
    control: Control
    form: str = "dynamic"

    # --- its text

    def write(self, body: str, form: str | None = None) -> None:
        """The program: ``body`` after the imports."""
        module = FORMS[form or self.form]
        head = f"import pulumi\nimport {module} as hosting\nfrom {module} import Server, SshKey\n\n"
        (self.directory / "__main__.py").write_text(head + textwrap.dedent(body), encoding="utf-8")

    def declare(self, declarations: Declarations, extra: str = "") -> None:
        """The program: these declarations, then ``extra``."""
        lines = []
        for name, (kind, arguments) in declarations.items():
            given = "".join(f", {key}={value!r}" for key, value in arguments.items())
            lines.append(f"{name} = hosting.{kind}({name!r}{given})")
        self.write("\n".join([*lines, textwrap.dedent(extra)]) + "\n")

    # --- its runs

    def run(self, run: Run, changed: dict[str, int] | None = None) -> Run:
        """A run that must have gone well, and changed so many."""
        assert run.exit_code == 0, run.output
        if changed is not None:
            assert run.changed == changed, run.output
        return run

    def start_cold(
        self,
        operation: str = "up",
        output: int | IO[bytes] = subprocess.DEVNULL,
        process_group: int | None = None,
    ) -> "subprocess.Popen[bytes]":
        """An operation under way, for tests that kill it: its processes are real Pythons, and each is the
        child of the one that started it. ``output``: where it prints; ``process_group``: 0 for a new one.
        """
        warm = sys.executable
        command = self.stack.command(operation, "--yes", "--skip-preview")
        with interruptible():
            return subprocess.Popen(
                [PYTHON if part == warm else part for part in command],
                cwd=self.directory,
                env=self.stack.environment() | {"PULUMI_PYTHON_CMD": PYTHON},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=process_group,
            )

    def use_new_key(self) -> None:
        """The next runs have another key of the account, with limits of its own."""
        self.stack.environ["HOSTING_API_KEY"] = self.control("POST", "/keys", ROOMY)["key"]

    # --- its stack

    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources of the stack by name, as they are stored, secrets in plain text."""
        stored = self.stack.export("--show-secrets")["deployment"].get("resources", [])
        return {
            item["urn"].rpartition("::")[2]: item
            for item in stored
            if "hosting:" in item["type"] and "providers" not in item["type"]
        }

    def state(self, type: str = "hosting:index:Server") -> dict[str, Any]:
        """The one resource of that type, as it is stored, secrets encrypted."""
        (found,) = [item for item in self.stack.export()["deployment"]["resources"] if item["type"] == type]
        resource: dict[str, Any] = found
        return resource


def messages(run: Run) -> str:
    """What was reported in a run, once: Pulumi's CLI prints it in its lines of progress too."""
    return run.output.rpartition("Diagnostics:\n")[2]


def make_program(
    engine: Engine, emulator: Running, directory: Path, home: Path, form: str = "dynamic", **environ: str
) -> Program:
    """A program of ``form``; for the native provider the plugin is installed where the engine looks."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "Pulumi.yaml").write_text("name: toys\nruntime: python\n", encoding="utf-8")
    control = Control(emulator.control_url)
    key = control("POST", "/keys", ROOMY)["key"]
    search = install_plugin(home) if form == "native" else {}
    account = {"HOSTING_API_KEY": key, "HOSTING_BASE_URL": emulator.base_url, **search, **environ}
    return Program(
        directory, checked(engine.stack(directory, home, account), control), emulator, control, form
    )


def install_plugin(home: Path) -> dict[str, str]:
    """Put the plugin where engines look; what to add to the environment. It runs on the Python that the
    engine's programs run on.
    """
    found = plugin_environ(home)
    launcher = place({"PULUMI_HOME": str(home / "pulumi")}) / EXECUTABLE
    text = launcher.read_text(encoding="utf-8")
    assert f"exec {sys.executable} " in text
    launcher.write_text(
        text.replace(f"exec {sys.executable} ", 'exec "$PULUMI_PYTHON_CMD" '), encoding="utf-8"
    )
    # Pulumi's CLI finds it below PULUMI_HOME, as a user's does, and none on PATH.
    return {**found, "PULUMI_IGNORE_AMBIENT_PLUGINS": "true"}
