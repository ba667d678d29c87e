"""``pulumi-hosting validate`` of programs in YAML and TypeScript: what stays with a server that is kept."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulumi_hosting.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
YAML = """\
name: shop
runtime: yaml
resources:
  web:
    type: hosting:index:Server
    properties: {tariffId: 1, os: debian-12}
    options: OPTIONS
  box:
    type: other:index:Box
    options: {protect: true}
  mail:
    type: hosting:index:ServerIp
    properties: {serverId: "${web.id}"}
    options: OF_IT
"""
SCRIPT = """\
import * as hosting from "pulumi-hosting";
// new hosting.ServerIp("no", {}, { deletedWith: web }) with protect: true
const kept: pulumi.CustomResourceOptions = { protect: true };
const box = new Box("box", { protect: true });
export const web: hosting.Server = new hosting.Server("web", {
    tariffId: 1, os: "debian-12", notes: "a { brace, and (more",
}, OPTIONS);
const mail = new hosting.ServerIp(
    `mail`, { serverId: web.id }, OF_IT,
);
"""
WITH_IT = {"yaml": '{deletedWith: "${web}"}', "nodejs": "{ deletedWith: web }"}
LINES = {"yaml": "Pulumi.yaml:11", "nodejs": "index.ts:8"}

# The server's options and those of the address, in YAML and in TypeScript; the option that keeps the server.
WRONG = {
    "protected": ("{protect: true}", "{ protect: true }", None, None, "protect"),
    "retained": (
        "{retainOnDelete: true}",
        "{ aliases: [{ name: 'x' }], retainOnDelete: true }",
        None,
        None,
        "retainOnDelete",
    ),
    "of a parent": ('{parent: "${box}"}', "{ parent: box }", None, None, "protect"),
    "quoted": ('{"protect": yes}', "{ protect: true, ...more }", None, None, "protect"),
}
RIGHT = {
    "neither": ("{}", "{}", None, None),
    "switched off": ("{protect: false}", "{ protect: false, retainOnDelete: undefined }", None, None),
    "against its parent": (
        '{parent: "${box}", protect: false}',
        "{ parent: box, protect: false }",
        None,
        None,
    ),
    "not with it": ("{protect: true}", "{ protect: true }", "{}", "{}"),
    "kept too": (
        "{protect: true}",
        "{ protect: true }",
        '{deletedWith: "${web}", protect: true}',
        "{ deletedWith: web, protect: true }",
    ),
    "kept by it": (
        "{protect: true}",
        "{ protect: true }",
        '{deletedWith: "${web}", parent: "${web}"}',
        "{ deletedWith: web, parent: web }",
    ),
    "with another": (
        "{protect: true}",
        "{ protect: true }",
        '{deletedWith: "${box}"}',
        "{ deletedWith: box }",
    ),
    "not known": ('{protect: "${isKept}"}', "{ protect: isKept }", None, None),
}


def validated(directory: Path, *flags: str) -> Result:
    return CliRunner().invoke(main, ["validate", str(directory), *flags])


def program(directory: Path, runtime: str, of_server: str, of_it: str | None) -> Path:
    of_it = of_it or WITH_IT[runtime]
    if runtime == "yaml":
        text = YAML.replace("OPTIONS", of_server).replace("OF_IT", of_it)
        (directory / "Pulumi.yaml").write_text(text, encoding="utf-8")
    else:
        (directory / "Pulumi.yaml").write_text("name: shop\nruntime: nodejs\n", encoding="utf-8")
        script = SCRIPT.replace("OPTIONS", of_server).replace("OF_IT", of_it)
        (directory / "index.ts").write_text(script, encoding="utf-8")
    return directory


@pytest.mark.parametrize("runtime", WITH_IT)
@pytest.mark.parametrize("case", WRONG)
def test_what_would_stay_with_its_server_is_a_mistake(tmp_path: Path, case: str, runtime: str) -> None:
    in_yaml, in_script, yaml_of_it, script_of_it, option = WRONG[case]
    given = (in_yaml, yaml_of_it) if runtime == "yaml" else (in_script, script_of_it)
    answer = validated(program(tmp_path, runtime, *given))
    assert answer.stdout.splitlines() == [
        f"{LINES[runtime]}: ServerIp('mail'): it is deletedWith web, which {option} keeps: Pulumi would "
        "report it as deleted, and it stays and is billed. Next: remove deletedWith"
    ]
    assert answer.exit_code == 7


@pytest.mark.parametrize("runtime", WITH_IT)
@pytest.mark.parametrize("case", RIGHT)
def test_what_goes_or_is_kept_alone_is_none(tmp_path: Path, case: str, runtime: str) -> None:
    in_yaml, in_script, yaml_of_it, script_of_it = RIGHT[case]
    given = (in_yaml, yaml_of_it) if runtime == "yaml" else (in_script, script_of_it)
    answer = validated(program(tmp_path, runtime, *given))
    assert answer.stdout == "2 resources read, none goes with a server that stays.\n"
    assert answer.exit_code == 0


@pytest.mark.parametrize("options", ["kept", "{ ...kept }", "{ version: '1', ...kept }"])
def test_options_of_a_constant_count(tmp_path: Path, options: str) -> None:
    assert "which protect keeps" in validated(program(tmp_path, "nodejs", options, None)).stdout


def test_a_record_stays_and_costs_nothing(tmp_path: Path) -> None:
    path = program(tmp_path, "yaml", "{protect: true}", None) / "Pulumi.yaml"
    path.write_text(path.read_text().replace("index:ServerIp", "Ptr"), encoding="utf-8")  # the short form
    assert validated(tmp_path).stdout.endswith(
        "Ptr('mail'): it is deletedWith web, which protect keeps: Pulumi would report it as deleted, and it "
        "stays. Next: remove deletedWith\n"
    )


def test_components_in_yaml_are_read_too(tmp_path: Path) -> None:
    program(tmp_path, "yaml", "{protect: true}", None)
    text = (tmp_path / "Pulumi.yaml").read_text()
    head, _, resources = text.partition("resources:\n")
    inside = "".join(f"    {line}\n" for line in resources.splitlines())
    (tmp_path / "Pulumi.yaml").write_text(f"{head}components:\n  shop:\n    resources:\n{inside}")
    assert "Pulumi.yaml:13: ServerIp('mail')" in validated(tmp_path).stdout


@pytest.mark.parametrize(
    "text", ["resources: [", "resources: 1", "[]", "", "resources: {web: 1, mail: {options: 2}}"]
)
def test_a_program_that_is_none_gives_one_line_or_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: yaml\n", encoding="utf-8")
    (tmp_path / "Main.yaml").write_text(text, encoding="utf-8")
    answer = validated(tmp_path)
    assert len((answer.stdout + answer.stderr).splitlines()) == 1
    assert "Traceback" not in answer.output
    assert answer.exit_code == (2 if text == "resources: [" else 0)


@pytest.mark.parametrize(
    "script", ["new Server(", "const web = new hosting.Server('web', {", "new A(')", "{[(", "new X<Y>()"]
)
def test_a_script_that_is_none_is_read_as_far_as_it_goes(tmp_path: Path, script: str) -> None:
    program(tmp_path, "nodejs", "{ protect: true }", None)
    (tmp_path / "other.ts").write_text(script, encoding="utf-8")
    assert validated(tmp_path).exit_code == 7


def test_packages_and_types_are_not_read(tmp_path: Path) -> None:
    program(tmp_path, "nodejs", "{}", None)
    wrong = SCRIPT.replace("OPTIONS", "{ protect: true }").replace("OF_IT", WITH_IT["nodejs"])
    for name in ("node_modules/shop/index.ts", "sdks/hosting/index.ts", "types.d.ts"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(wrong, encoding="utf-8")
    assert validated(tmp_path).exit_code == 0


@pytest.mark.parametrize("directory", ["yaml", "typescript"])
def test_the_examples_have_none(directory: str) -> None:
    answer = validated(EXAMPLES / directory)
    assert answer.stdout == "4 resources read, none goes with a server that stays.\n"


def test_another_language_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: go\n", encoding="utf-8")
    answer = validated(tmp_path)
    assert answer.exit_code == 2
    assert "runtime is 'go'" in answer.output
