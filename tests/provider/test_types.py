"""What type checkers find in programs: nothing in a right one, and each mistake at its line."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

RIGHT = """\
import pulumi
import pulumi_hosting as hosting
from pulumi_hosting import native

opts = pulumi.ResourceOptions(protect=True)
key = hosting.SshKey("deploy", public_key="ssh-ed25519 AAAA")
web = hosting.Server("web", tariff_id=1, os="debian-12", months=3, ssh_key_ids=[key.id], power="running")
hosting.Server("other", hosting.ServerArgs(tariff="VDS-1", os="debian-12", rebuild="forbid"), opts)
native.Server("third", None, opts, os="debian-12", tariff_id=1, billing_cycle="hourly")
on = pulumi.Output.from_input(True)
hosting.Server("four", os="debian-12", tariff_id=1, power=on.apply(lambda on: "running" if on else "stopped"))
mail = hosting.ServerIp("mail", server=web)
hosting.Ptr("mail", server=web, address=mail.address, domain="mail.example.com")
hosting.WebhookSubscription("news", url="https://example.com/x", events=["server.created", "*"])
name: pulumi.Output[str] = web.name
address: pulumi.Output[str] = mail.address
ip: pulumi.Output[str | None] = web.ip
servers: list[str] = [found.name for found in hosting.get_servers(status="active")]
hosting.get_servers(status="of_a_later_version")
"""

WRONG = """\
import pulumi
import pulumi_hosting as hosting
from pulumi_hosting import native

opts = pulumi.ResourceOptions(protect=True)
hosting.Server("a", tariff_id=1, os="debian-12", months=2)  # wrong
hosting.Server("b", tariff_id=1, os="debian-12", power="off")  # wrong
hosting.Server("c", tariff_id=1, os="debian-12", rebuild="never")  # wrong
native.Server("d", tariff_id=1, os="debian-12", billing_cycle="yearly")  # wrong
hosting.Server("e", tarif_id=1, os="debian-12")  # wrong
hosting.ServerArgs(tariff_id=1)  # wrong
hosting.ServerArgs(tariff_id=1, os="debian-12", months=2)  # wrong
hosting.Server("f", tariff_id="one", os="debian-12")  # wrong
hosting.Server("g", hosting.DomainArgs(name="example.com"), opts)  # wrong
hosting.Server("h", opts)  # wrong
ip: pulumi.Output[str] = hosting.Server("i", tariff_id=1, os="debian-12").ip  # wrong
hosting.get_quote(tariff_id=1, months=2)  # wrong
hosting.Ptr("j", server="web", domain="mail.example.com")  # wrong
hosting.Server("k", tariff_id=1)  # missing
hosting.Domain("l")  # missing
"""


def marked(*marks: str) -> list[int]:
    return [
        number
        for number, line in enumerate(WRONG.splitlines(), 1)
        if line.endswith(tuple(f"# {mark}" for mark in marks))
    ]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


@pytest.mark.slow
def test_mypy_says_in_one_line_what_is_wrong(programs: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir=cache",
        "right.py",
        "wrong.py",
    ]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=programs)
    errors = [line for line in run.stdout.splitlines() if ": error: " in line]
    assert [line.split(":")[:2] for line in errors] == [
        ["wrong.py", str(number)] for number in marked("wrong")
    ]
    by_line = dict(zip(marked("wrong"), errors, strict=True))
    assert 'Argument "months" to "Server" has incompatible type "Literal[2]"' in by_line[6]
    assert 'did you mean "tariff_id"?' in by_line[10]
    assert "overload" not in run.stdout


@pytest.mark.slow
@pytest.mark.program("node")
def test_pyright_finds_missing_arguments_too(programs: Path) -> None:
    found = Counter(_pyright(programs))
    assert found == Counter(("wrong.py", number) for number in marked("wrong", "missing"))


def _pyright(folder: Path) -> Iterator[tuple[str, int]]:
    """File and line of each error."""
    spec = find_spec("pyright")
    assert spec is not None
    assert spec.origin is not None
    checker = Path(spec.origin).parent / "dist" / "index.js"
    command = ["node", str(checker), "--outputjson", "--pythonpath", sys.executable, "right.py", "wrong.py"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    for item in json.loads(run.stdout)["generalDiagnostics"]:
        if item["severity"] == "error":
            yield Path(item["file"]).name, item["range"]["start"]["line"] + 1
