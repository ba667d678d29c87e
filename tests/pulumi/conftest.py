"""A Pulumi program on an engine against a fresh emulator."""

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.engines import Engine, Stack
from pulumi_hosting.rehearsal import Control

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE me@host"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB9m3rTnO8rG1ktXvhfQAuMVVBJ9bUeAnHP4oDVM7WuY me@other"


@dataclass
class Program:
    """The program's directory, its stack, and the account it works on."""

    directory: Path
    stack: Stack
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
    directory.mkdir(exist_ok=True)
    (directory / "Pulumi.yaml").write_text("name: toys\nruntime: python\n", encoding="utf-8")
    account = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url, **environ}
    return Program(directory, engine.stack(directory, home, account), emulator, Control(emulator.control_url))


@pytest.fixture
def program(engine: Engine, emulator: Any, tmp_path: Path) -> Program:
    return make_program(engine, emulator, tmp_path / "program", tmp_path / "home")
