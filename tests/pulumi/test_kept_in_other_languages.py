"""``deletedWith`` beside ``protect`` or ``retainOnDelete`` in programs without our classes: Pulumi reports a
deletion and asks no provider. ``validate`` warns of it, ``audit`` names what is left.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from generate import typescript
from pulumi_hosting.cli import main
from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.engines import PULUMI, Run, choose
from tests.support.deletions import Before, present
from tests.support.programs import Program, make_program

KEEPING = ["protect", "retainOnDelete"]
PYTHON = """
web = pulumi.CustomResource("hosting:index:Server", "web", {"tariffId": 1, "os": "debian-12", "name": "web"},
    pulumi.ResourceOptions(KEEP=True))
mail = pulumi.CustomResource("hosting:index:ServerIp", "mail", {"serverId": web.id, "address": None},
    pulumi.ResourceOptions(WITH_IT))
"""
YAML = """\
name: toys
runtime: yaml
resources:
  web:
    type: hosting:index:Server
    properties: {tariffId: 1, os: debian-12}
    options: {KEEP: true}
  mail:
    type: hosting:index:ServerIp
    properties: {serverId: "${web.id}"}
    options: {WITH_IT}
"""
SCRIPT = """\
import * as hosting from "pulumi-hosting";

const web = new hosting.Server("web", { tariffId: 1, os: "debian-12" }, { KEEP: true });
const mail = new hosting.ServerIp("mail", { serverId: web.id }, { WITH_IT });
"""


def tool(program: Program, *arguments: object) -> Result:
    environ = {
        "HOSTING_API_KEY": program.stack.environ["HOSTING_API_KEY"],
        "HOSTING_BASE_URL": program.emulator.base_url,
    }
    return CliRunner().invoke(main, [str(argument) for argument in arguments], env=environ)


def destroyed(program: Program) -> Run:
    with program.stack.unchecked("Pulumi forgets what goes with a server that it does not delete"):
        return program.stack.destroy()


def assert_audit_names_what_is_left(program: Program, tmp_path: Path) -> None:
    """After a destroy that reported a deletion which was not made."""
    before = Before(program)
    ((kind, address),) = [one for one in before.present if one[0] == "ServerIp"]
    run = destroyed(program)
    assert before.false_claims(run) == [f"{kind} mail ({address}) is said to be deleted, and is not so"]
    assert (kind, address) in present(program)
    export = tmp_path / "stack.json"
    export.write_text(json.dumps(program.stack.export()), encoding="utf-8")
    audit = tool(program, "audit", "--stack", export, "--json")
    assert audit.exit_code == 7, audit.output
    rows = {row["id"]: row for row in json.loads(audit.stdout)["unmanaged"]}
    assert rows[address]["price_monthly"] == "2.00"
    assert rows[address]["adopt"] == f"pulumi import hosting:index:ServerIp NAME {address}"


def assert_released(program: Program) -> None:
    """After a destroy of a program that follows the warning."""
    before = Before(program)
    run = destroyed(program)
    assert before.false_claims(run) == []
    assert {kind for kind, _ in present(program)} == {"Server"}
    assert "released; nothing is refunded for it" in run.output


@pytest.mark.parametrize("keep", ["protect", pytest.param("retain_on_delete", marks=[pytest.mark.slow])])
def test_audit_names_what_a_destroy_left_with_a_kept_server(
    native: Program, tmp_path: Path, keep: str
) -> None:
    """In Python without our classes, as with a generated SDK: on the offline engine too."""
    native.write(PYTHON.replace("KEEP", keep).replace("WITH_IT", "deleted_with=web"))
    native.run(native.stack.up())
    assert_audit_names_what_is_left(native, tmp_path)


def in_language(program: Program, text: str, keep: str, with_it: str) -> None:
    """Write the program."""
    file = {YAML: "Pulumi.yaml", SCRIPT: "index.ts"}[text]
    text = text.replace("KEEP", keep).replace("WITH_IT", with_it)
    (program.directory / file).write_text(text, encoding="utf-8")


@pytest.fixture
def other(emulator: Running, tmp_path: Path) -> Program:
    """A program on Pulumi's CLI, to be written in another language."""
    return make_program(choose(PULUMI), emulator, tmp_path / "program", tmp_path / "home", "native")


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEPING)
@pytest.mark.program("pulumi", "pulumi-language-yaml")
def test_yaml(other: Program, tmp_path: Path, keep: str) -> None:
    in_language(other, YAML, keep, 'deletedWith: "${web}"')
    warned_and_left_and_released(other, tmp_path, YAML, keep)


@pytest.mark.slow
@pytest.mark.parametrize("keep", KEEPING)
@pytest.mark.program("pulumi", "pulumi-language-nodejs")
def test_typescript(other: Program, npm_modules: Path, tmp_path: Path, keep: str) -> None:
    (other.directory / "Pulumi.yaml").write_text("name: toys\nruntime: nodejs\n", encoding="utf-8")
    example = Path(__file__).parents[2] / "examples" / "typescript"
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(example / name, other.directory)
    typescript.write(other.directory / "sdks" / "hosting")
    (other.directory / "node_modules").mkdir()
    for package in npm_modules.iterdir():
        (other.directory / "node_modules" / package.name).symlink_to(package)
    (other.directory / "node_modules" / "pulumi-hosting").symlink_to(other.directory / "sdks" / "hosting")
    in_language(other, SCRIPT, keep, "deletedWith: web")
    warned_and_left_and_released(other, tmp_path, SCRIPT, keep)


def warned_and_left_and_released(program: Program, tmp_path: Path, text: str, keep: str) -> None:
    warned = tool(program, "validate", program.directory)
    assert warned.exit_code == 7
    assert (
        f"which {keep} keeps: Pulumi would report it as deleted, and it stays and is billed" in warned.stdout
    )
    program.run(program.stack.up())
    servers: list[Any] = program.living_ids
    assert_audit_names_what_is_left(program, tmp_path)
    # What the warning says next: an up from here finds the address again.
    in_language(program, text, keep, "")
    assert tool(program, "validate", program.directory).exit_code == 0
    if keep == "protect":
        program.run(program.stack.up())
        assert program.living_ids == servers
        assert_released(program)
