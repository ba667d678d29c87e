"""The templates of ``pulumi new``, without Pulumi: one program in three languages, of what the package
has. They run on Pulumi's CLI in tests/pulumi/test_source_plugin.py.
"""

import ast
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pulumi_hosting.provider.names import camel, token
from pulumi_hosting.provider.plugin.package_schema import package_spec

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "templates"
Declared = dict[str, tuple[str, frozenset[str]]]
"""Name → class, and the inputs that are given, as on the wire."""


def project(language: str) -> dict[str, Any]:
    text = (TEMPLATES / language / "Pulumi.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text.replace("${PROJECT}", "p").replace("${DESCRIPTION}", "d"))
    return found


def in_yaml() -> Declared:
    return {
        name: (made["type"].rpartition(":")[2], frozenset(made["properties"]))
        for name, made in project("yaml")["resources"].items()
    }


def in_python() -> Declared:
    tree = ast.parse((TEMPLATES / "python" / "__main__.py").read_text(encoding="utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("hosting.")
    ]
    return {
        ast.literal_eval(call.args[0]): (
            ast.unparse(call.func).removeprefix("hosting."),
            frozenset(camel(str(keyword.arg)) for keyword in call.keywords),
        )
        for call in calls
    }


def in_typescript() -> Declared:
    text = (TEMPLATES / "typescript" / "index.ts").read_text(encoding="utf-8")
    made = re.findall(r'new hosting\.(\w+)\("(\w+)", \{(.*?)\}\);', text, re.DOTALL)
    return {name: (kind, frozenset(re.findall(r"(\w+): ", inputs))) for kind, name, inputs in made}


LANGUAGES: dict[str, Callable[[], Declared]] = {
    "python": in_python,
    "typescript": in_typescript,
    "yaml": in_yaml,
}


def test_every_folder_is_a_template_of_a_known_language() -> None:
    assert {path.name for path in TEMPLATES.iterdir()} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_declares_what_the_package_has_and_the_others_declare(language: str) -> None:
    declared, spec = LANGUAGES[language](), package_spec("1.2.3")["resources"]
    assert declared == in_yaml()
    assert {kind for kind, _ in declared.values()} == {"Server", "SshKey"}
    for kind, given in declared.values():
        made = spec[token(kind)]
        assert set(made["requiredInputs"]) <= given <= set(made["inputProperties"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_names_the_repository_and_asks_for_what_the_program_reads(language: str) -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = project(language)
    assert made["packages"] == {"hosting": about["urls"]["Repository"]}
    asked = made["template"]["config"]
    # Not for the key: `pulumi new -c hosting:apiKey=…` stores a secret in plain text.
    assert set(asked) == {"hosting:baseUrl", "tariff", "publicKey"}
    assert not any("default" in setting for setting in asked.values())  # a tariff costs money
    program = "".join(
        path.read_text(encoding="utf-8").partition("\nconfig:")[2] or path.read_text(encoding="utf-8")
        for path in (TEMPLATES / language).iterdir()
        if path.name in ("__main__.py", "index.ts") or (language, path.name) == ("yaml", "Pulumi.yaml")
    )
    for name in ("tariff", "publicKey"):
        assert re.search(rf'"{name}"|\$\{{{name}\}}', program)


def test_the_packages_of_the_template_in_typescript_are_those_of_the_example() -> None:
    template, example = (
        json.loads((folder / "package.json").read_text(encoding="utf-8"))
        for folder in (TEMPLATES / "typescript", ROOT / "examples" / "typescript")
    )
    assert template == {**example, "name": "${PROJECT}"}
