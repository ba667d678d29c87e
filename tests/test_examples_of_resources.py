"""The example of each resource: in YAML it names only what the schema has, and each form does on an emulator
what it says. The examples of lookups ask for what they name.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from generate import lookup_examples
from pulumi_hosting.api.casing import camel
from pulumi_hosting.provider.names import class_of, token
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import Engine
from pulumi_hosting.rehearsal.runner import plugin_environ
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.checked import checked
from tests.test_examples_pulumi import CONFIG, compiled, done, problems, script

__all__ = ["script"]  # a fixture

FOLDER = Path(__file__).parent.parent / "examples" / "resources"
KINDS = list(RESOURCES)


def settings(kind: str) -> list[str]:
    """The settings that the example reads."""
    return list(program(kind).get("config", {}))


def program(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / kind / "Pulumi.yaml").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_yaml_names_only_what_the_schema_has(kind: str) -> None:
    assert list(problems(program(kind))) == []
    assert token(class_of(kind)) in {one["type"] for one in program(kind)["resources"].values()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["python", "yaml"])
def test_it_is_made_and_made_once(
    form: str, kind: str, engine: Engine, emulator: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: shop\nruntime: python\n", encoding="utf-8")
    if form == "python":
        shutil.copy(FOLDER / kind / "__main__.py", folder)
    else:
        text = {"config": {}, "variables": {}, **program(kind)}
        (folder / "shop.yaml").write_text(yaml.safe_dump(text), encoding="utf-8")
        shutil.copy(Path(__file__).parent / "pulumi" / "yaml_player.py", folder / "__main__.py")
    home = tmp_path / "home"
    environ = {
        "HOSTING_API_KEY": emulator.live_key,
        "HOSTING_BASE_URL": emulator.base_url,
        **plugin_environ(home),
    }
    stack = checked(engine.stack(folder, home, environ), Control(emulator.control_url))
    for name in settings(kind):
        done(stack.run("config", "set", name, CONFIG[name]))
    made = done(stack.up())
    assert made.changed == {"create": len(program(kind)["resources"]) + 1}
    assert set(map(camel, stack.outputs())) == set(program(kind)["outputs"])
    assert None not in stack.outputs().values()
    assert done(stack.up("--expect-no-changes")).changed == {}
    done(stack.destroy())


@pytest.mark.slow
def test_typescript_compiles(script: Path) -> None:
    """The examples of the resources, and those of the lookups."""
    files = []
    for kind in KINDS:
        files.append(f"{kind}.ts")
        shutil.copy(FOLDER / kind / "index.ts", script / files[-1])
    for name, lookup in LOOKUPS.items():
        files.append(f"{name}.ts")
        (script / files[-1]).write_text(lookup_examples.typescript(lookup), encoding="utf-8")
    assert compiled(script, *files) == ""


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_in_yaml_names_only_what_the_schema_has(name: str) -> None:
    text = lookup_examples.yaml(LOOKUPS[name])
    assert list(problems(yaml.safe_load(text))) == []
    assert json.dumps(token(name)).strip('"') in text
