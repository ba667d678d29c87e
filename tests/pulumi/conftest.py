"""A Pulumi program on an engine against a fresh emulator."""

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.provider.plugin_install import install
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import PULUMI, Engine, Run
from tests.checked import CheckedStack, checked

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE me@host"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9m3rTnO8rG1ktXvhfQAuMVVBJ9bUeAnHP4oDVM7WuY me@other"


@dataclass
class Program:
    """The program's directory, its stack, and the account it works on."""

    directory: Path
    stack: CheckedStack
    emulator: Any
    control: Control

    def write(self, body: str) -> None:
        """The program: ``body`` after the imports."""
        head = "import pulumi\nfrom pulumi_hosting import Server, SshKey\n\n"
        (self.directory / "__main__.py").write_text(head + textwrap.dedent(body), encoding="utf-8")

    def objects(self, kind: str) -> list[dict[str, Any]]:
        return list(self.control("GET", "/objects")[kind])

    @property
    def living(self) -> list[dict[str, Any]]:
        return [server for server in self.objects("servers") if server["status"] not in ("cancelled", "terminated")]

    def charges(self) -> int:
        """Purchases less refunds, counted."""
        rows = [row for row in self.control.ledger() if row["type"] in ("payment", "refund")]
        return sum(1 if row["direction"] == "debit" else -1 for row in rows)


def make_program(engine: Engine, emulator: Any, directory: Path, home: Path, **environ: str) -> Program:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "Pulumi.yaml").write_text("name: toys\nruntime: python\n", encoding="utf-8")
    # Steps that take seconds here take hours in life: a key whose limits per minute no test waits for.
    roomy = {"mode": "live", "rate_per_minute": 10000, "rate_expensive_per_minute": 10000}
    key = Control(emulator.control_url)("POST", "/keys", roomy)["key"]
    account = {"HOSTING_API_KEY": key, "HOSTING_BASE_URL": emulator.base_url, **environ}
    control = Control(emulator.control_url)
    return Program(directory, checked(engine.stack(directory, home, account), control), emulator, control)


@pytest.fixture
def program(engine: Engine, emulator: Any, tmp_path: Path) -> Program:
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home")


DAILY = {("dynamic", "spec"), ("native", "live")}
"""The pairs of form and dialect that every run of the tests takes; the others are ``slow``."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if {"formed", "dialect"} <= given.keys() and (given["formed"], given["dialect"]) not in DAILY:
            item.add_marker(pytest.mark.slow)
        if {"formed", "orphan"} <= given.keys() and (given["formed"] == "native") != given["orphan"]:
            item.add_marker(pytest.mark.slow)  # each form is killed in one of the two ways


FORMS = {"dynamic": "pulumi_hosting", "native": "pulumi_hosting.native"}
"""Form → the module its classes are imported from."""


class Ref(str):
    """A value of a program that stands in it as it is, such as ``web.id``."""

    def __repr__(self) -> str:
        return str(self)


@dataclass
class FormProgram(Program):
    """A program of one form, made of declarations: variable → (class, arguments)."""

    form: str = "dynamic"

    def declare(self, declarations: dict[str, tuple[str, dict[str, Any]]], extra: str = "") -> None:
        lines = [f"import pulumi\nimport {FORMS[self.form]} as hosting\n"]
        for name, (kind, arguments) in declarations.items():
            given = "".join(f", {key}={value!r}" for key, value in arguments.items())
            lines.append(f"{name} = hosting.{kind}({name!r}{given})")
        (self.directory / "__main__.py").write_text("\n".join([*lines, textwrap.dedent(extra)]) + "\n", encoding="utf-8")

    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources of the stack by name, as they are stored."""
        stored = self.stack.export("--show-secrets")["deployment"].get("resources", [])
        return {item["urn"].rpartition("::")[2]: item for item in stored if "hosting:" in item["type"] and "providers" not in item["type"]}

    def run(self, run: Run, changed: dict[str, int] | None = None) -> Run:
        """A run that must have gone well, and changed so many."""
        assert run.exit_code == 0, run.output
        if changed is not None:
            assert run.changed == changed, run.output
        return run


def make_form_program(form: str, engine: Engine, emulator: Any, directory: Path, home: Path, **environ: str) -> FormProgram:
    """As ``make_program``; for form two the plugin is installed where the engine looks."""
    search = {}
    if form == "native":
        place = install(environ={"PULUMI_HOME": str(home / "pulumi"), "PATH": ""})
        # Pulumi's own CLI finds it below PULUMI_HOME, and would warn of one on PATH; the offline engine looks on PATH alone.
        search = {} if engine.name == PULUMI else {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    made = make_program(engine, emulator, directory, home, **search, **environ)
    return FormProgram(made.directory, made.stack, made.emulator, made.control, form)


@pytest.fixture(params=FORMS)
def formed(request: pytest.FixtureRequest, engine: Engine, emulator: Any, tmp_path: Path) -> FormProgram:
    """A program, once in each form."""
    return make_form_program(request.param, engine, emulator, tmp_path / "program", tmp_path / "home")
