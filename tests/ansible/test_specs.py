"""The modules' own descriptions against the core: options, documentation, action group, versions. No playbook is run."""

import importlib
import tomllib
import types
import typing
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic.fields import FieldInfo

from pulumi_hosting.api.redact import Secret
from pulumi_hosting.resources import NOUNS
from pulumi_hosting.resources.base import Inputs
from tests.ansible.conftest import COLLECTION, ROOT

DECLARED = [kind for kind in NOUNS if kind in ("server", "ssh_key")]
"""The nouns that have modules; the others are declared with Pulumi only."""
MODULES = sorted(path.stem for path in (COLLECTION / "plugins" / "modules").glob("*.py"))
FRONTEND_ONLY = {"id"}
"""Options of a noun's module that are no input of the noun: how it is named where nothing is remembered."""
FILTERS = {"server_info": {"id", "name", "status", "ip"}, "ssh_key_info": {"id", "name", "fingerprint"}}
ONLY_IN_ANSIBLE_CHOICES = {"months"}  # the model refuses other months with a rule, not with a type


def module(name: str) -> Any:
    return importlib.import_module(f"ansible_collections.hosting.cloud.plugins.modules.{name}")


def runner() -> Any:
    return importlib.import_module("ansible_collections.hosting.cloud.plugins.module_utils.runner")


def documented(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(module(name).DOCUMENTATION)
    return loaded


def ansible_type(annotation: Any) -> dict[str, Any]:
    """What Ansible calls the type of a model's field."""
    if typing.get_origin(annotation) is typing.Annotated:
        return ansible_type(annotation.__origin__)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        (one,) = [part for part in typing.get_args(annotation) if part is not type(None)]
        return ansible_type(one)
    if typing.get_origin(annotation) is typing.Literal:
        return {"type": "str", "choices": list(typing.get_args(annotation))}
    if typing.get_origin(annotation) is list:
        return {"type": "list", "elements": ansible_type(typing.get_args(annotation)[0])["type"]}
    if typing.get_origin(annotation) is dict:
        return {"type": "dict"}
    return {"type": {str: "str", int: "int", bool: "bool", Secret: "str"}[annotation]}


def inputs(kind: str) -> type[Inputs]:
    model: type[Inputs] = NOUNS[kind].Inputs
    return model


def test_every_declared_noun_has_a_module_and_one_to_read() -> None:
    assert sorted([*DECLARED, *(f"{kind}_info" for kind in DECLARED)]) == MODULES


@pytest.mark.parametrize("kind", DECLARED)
def test_every_option_is_an_input_and_every_input_an_option(kind: str) -> None:
    assert set(module(kind).OPTIONS) - FRONTEND_ONLY == set(inputs(kind).model_fields)


@pytest.mark.parametrize(
    ("kind", "name", "field"), [(kind, name, field) for kind in DECLARED for name, field in inputs(kind).model_fields.items()]
)
def test_an_option_has_the_type_of_its_input(kind: str, name: str, field: FieldInfo) -> None:
    option = {key: value for key, value in module(kind).OPTIONS[name].items() if key in ("type", "elements", "choices")}
    if name in ONLY_IN_ANSIBLE_CHOICES:
        option.pop("choices")
    assert option == ansible_type(field.annotation)


def test_choices_that_the_model_keeps_as_a_rule_are_those_of_the_rule() -> None:
    for months in range(1, 25):
        allowed = months in module("server").OPTIONS["months"]["choices"]
        raw = {"tariff_id": 1, "os": "debian-12", "name": "web-1", "months": months}
        if allowed:
            assert inputs("server").model_validate(raw).given()["months"] == months
        else:
            with pytest.raises(ValueError, match="months"):
                inputs("server").model_validate(raw)


@pytest.mark.parametrize("kind", DECLARED)
def test_secret_inputs_are_no_log_and_no_others_are(kind: str) -> None:
    hidden = {name for name, option in module(kind).OPTIONS.items() if option.get("no_log")}
    assert hidden == inputs(kind).secret_fields()


@pytest.mark.parametrize("kind", DECLARED)
def test_nothing_is_required_or_given_by_the_option_list(kind: str) -> None:
    """An option that is not mentioned must stay not mentioned: required for a new object only, and never by default."""
    assert [name for name, option in module(kind).OPTIONS.items() if "default" in option or option.get("required")] == []
    documentation = documented(kind)["options"]
    needed = {name for name, field in inputs(kind).model_fields.items() if field.is_required()}
    assert {name for name, option in documentation.items() if "Needed to" in " ".join(option["description"])} == needed


@pytest.mark.parametrize("name", MODULES)
def test_the_documentation_is_complete(name: str) -> None:
    loaded, shown = documented(name), yaml.safe_load(module(name).RETURN)
    assert loaded["module"] == name
    assert loaded["version_added"] == runner().VERSION
    assert set(loaded["options"]) == set(module(name).OPTIONS)
    assert "hosting.cloud.client" in loaded["extends_documentation_fragment"]
    kind = name.removesuffix("_info")
    (entry,) = shown.values()
    visible = set(NOUNS[kind].State.model_fields) - NOUNS[kind].State.secret_fields()
    assert list(entry["contains"]) == [field for field in NOUNS[kind].State.model_fields if field in visible]
    assert all({"description", "type", "sample"} <= set(field) for field in entry["contains"].values())
    assert "ansible_playbook_python" in module(name).EXAMPLES


@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_the_modules_that_read(name: str) -> None:
    assert set(module(name).OPTIONS) == FILTERS[name]


def test_the_action_group_names_every_module() -> None:
    runtime = yaml.safe_load((COLLECTION / "meta" / "runtime.yml").read_text())
    assert runtime["action_groups"]["all"] == MODULES
    assert runtime["requires_ansible"].startswith(">=2.18")


def test_one_version_everywhere() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    galaxy = yaml.safe_load((COLLECTION / "galaxy.yml").read_text())["version"]
    changes = yaml.safe_load((COLLECTION / "changelogs" / "changelog.yaml").read_text())["releases"]
    assert galaxy == runner().VERSION == package
    assert galaxy in changes
    assert (COLLECTION / "requirements.txt").read_text().strip() == f"pulumi-hosting >= {runner().CORE}"


def test_every_module_is_in_the_changelog() -> None:
    released = yaml.safe_load((COLLECTION / "changelogs" / "changelog.yaml").read_text())["releases"].values()
    assert sorted(entry["name"] for release in released for entry in release.get("modules", ())) == MODULES


def test_nothing_of_the_core_is_needed_to_read_the_modules() -> None:
    """Sanity, ansible-doc and Galaxy read them where only Ansible is."""
    for path in Path(COLLECTION / "plugins").rglob("*.py"):
        outside = [line for line in path.read_text().splitlines() if line.startswith(("import pulumi_hosting", "from pulumi_hosting"))]
        assert outside == [], path
