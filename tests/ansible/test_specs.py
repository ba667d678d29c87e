"""The modules' own descriptions against the core: options, documentation, action group, versions. No playbook
is run."""

import ast
import importlib
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ansible_collections.hosting.cloud.plugins.module_utils import version
from generate import collection, returns
from pulumi_hosting.actions import ACTIONS
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import Inputs
from pulumi_hosting.schema.fields import fields
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.ansible.conftest import COLLECTION, ROOT

DECLARED = list(RESOURCES)
SOURCES = {module.name: module.source for module in collection.modules()}
MODULES = sorted(path.stem for path in (COLLECTION / "plugins" / "modules").glob("*.py"))
EMPTY_TEXTS = 0
"""Results whose description only repeats their name."""
WITHOUT_CHOICES = {("server", "months")}  # the model refuses other months with a rule, not with a type
ONE_ONLY = {("server", "tariff_id")}  # several tariffs are given by their names


def module(name: str) -> Any:
    return importlib.import_module(f"ansible_collections.hosting.cloud.plugins.modules.{name}")


def documented(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(module(name).DOCUMENTATION)
    return loaded


def ansible_type(annotation: Any) -> dict[str, Any]:
    """What Ansible calls the type of a model's field."""
    if typing.get_origin(annotation) is typing.Annotated:
        return ansible_type(annotation.__origin__)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        one, *lists = [part for part in typing.get_args(annotation) if part is not type(None)]
        return ansible_type(lists[0] if lists else one)  # a list takes one, too
    if typing.get_origin(annotation) is typing.Literal:
        return {"type": "str", "choices": list(typing.get_args(annotation))}
    if typing.get_origin(annotation) is list:
        return {"type": "list", "elements": ansible_type(typing.get_args(annotation)[0])["type"]}
    if typing.get_origin(annotation) is dict:
        return {"type": "dict"}
    return {"type": {str: "str", int: "int", bool: "bool", Secret: "str"}[annotation]}


def inputs(kind: str) -> type[Inputs]:
    model: type[Inputs] = RESOURCES[kind].Inputs
    return model


def test_every_resource_every_action_and_every_read_has_a_module() -> None:
    by_resources = {"getServer", "getDomain", "getWebhook"}  # read by id; the resource's own read asks for it
    inside = {"getServerRefundQuote", "getInvoicePdf", "getWebhookDelivery"}  # options of others
    named = {
        lookup
        for told in SOURCES.values()
        for entry in (told, *_entries(told))
        for lookup in (entry.get("lookup"), entry.get("one"))
    }
    assert named - {None} | by_resources | inside == set(LOOKUPS)
    assert {told["resource"] for told in SOURCES.values() if "resource" in told} == set(RESOURCES)
    actions = {told["action"] for told in SOURCES.values() if "action" in told}
    assert actions | {"server_restart", "server_reinstall"} == set(ACTIONS)  # these two are states of server
    assert sorted(SOURCES) == MODULES


def _entries(told: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from told.get("contains", {}).values()
    yield from told.get("also_returns", {}).values()


@pytest.mark.parametrize("kind", DECLARED)
def test_every_input_is_an_option(kind: str) -> None:
    own = set(SOURCES[kind].get("options", ())) - set(inputs(kind).model_fields)
    assert set(module(kind).OPTIONS) - own - {"max_charge", "idempotency_scope"} | set(
        SOURCES[kind].get("without", ())
    ) == set(inputs(kind).model_fields)


@pytest.mark.parametrize(
    ("kind", "name", "field"),
    [
        (kind, name, field)
        for kind in DECLARED
        for name, field in inputs(kind).model_fields.items()
        if name not in SOURCES[kind].get("without", ())
    ],
)
def test_an_option_has_the_type_of_its_input(kind: str, name: str, field: FieldInfo) -> None:
    option = {
        key: value
        for key, value in module(kind).OPTIONS[name].items()
        if key in ("type", "elements", "choices")
    }
    if (kind, name) in WITHOUT_CHOICES:
        option.pop("choices")
    if (kind, name) in ONE_ONLY:
        option = {"type": "list", "elements": option["type"]}
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


@pytest.mark.parametrize("name", MODULES)
def test_secrets_are_no_log_and_nothing_else_is(name: str) -> None:
    hidden = {option for option, spec in module(name).MODULE.argument_spec.items() if spec.get("no_log")}
    own = (
        inputs(name).secret_fields()
        if name in RESOURCES
        else ACTIONS[name].Inputs.secret_fields()
        if name in ACTIONS
        else frozenset()
    )
    own = own | ({"auth_code"} if name == "domain_transfer" else set())
    assert hidden == {"api_key", "store"} | own


@pytest.mark.parametrize("kind", DECLARED)
def test_no_option_is_required_or_has_a_default(kind: str) -> None:
    """An option that is not mentioned must stay not mentioned: required for a new object only, and never by
    default."""
    mine = {
        name: option for name, option in module(kind).OPTIONS.items() if name in inputs(kind).model_fields
    }
    assert [name for name, option in mine.items() if "default" in option or option.get("required")] == []


@pytest.mark.parametrize("name", MODULES)
def test_the_documentation_is_complete(name: str) -> None:
    loaded, shown = documented(name), yaml.safe_load(module(name).RETURN)
    assert loaded["module"] == name
    assert set(module(name).OPTIONS) - {"max_charge"} <= set(loaded.get("options", {}))
    assert all(
        option["description"] and all(option["description"]) for option in loaded.get("options", {}).values()
    )
    assert "hosting.cloud.client" in loaded["extends_documentation_fragment"]
    assert ("hosting.cloud.client.money" in loaded["extends_documentation_fragment"]) == (
        "max_charge" in module(name).OPTIONS
    )
    assert shown
    assert any(f"hosting.cloud.{name}" in task for task in yaml.safe_load(module(name).EXAMPLES))


@pytest.mark.parametrize("kind", DECLARED)
def test_the_result_has_every_field_but_the_secrets(kind: str) -> None:
    shown = yaml.safe_load(module(kind).RETURN)[kind]["contains"]
    state = RESOURCES[kind].State
    assert list(shown) == [field for field in state.model_fields if field not in state.secret_fields()]


def shown_models(name: str) -> dict[str, type[BaseModel]]:
    """The models of what a module returns, by the result's name."""
    told = SOURCES[name]
    if "lookup" in told:
        if "resource" in told:
            return {told["result"]: RESOURCES[told["resource"]].State}
        model = next(LOOKUPS[told["lookup"]].value.models(), None)
        return {} if model is None else {told["result"]: model}
    if name in ACTIONS:
        return {ACTIONS[name].result: ACTIONS[name].Result}
    kind = name.replace("domain_transfer", "domain")
    return {kind: RESOURCES[kind].State}


def wrong_samples(contains: dict[str, Any], model: type[BaseModel], path: str) -> list[str]:
    """Samples that are none of the values which the API document names, no time, or no money."""
    wrong = []
    for field in fields(model):
        shown = contains.get(returns.RENAMED.get(f"{path}.{field.name}", field.name))
        if shown is None:
            continue
        inner = field.type.of.model if field.type.of is not None else field.type.model
        if "contains" in shown and inner is not None:
            wrong += wrong_samples(shown["contains"], inner, f"{path}.{field.name}")
            continue
        sample = shown["sample"]
        known = returns.known_values(model, field.name)
        for value in sample if isinstance(sample, list) else [sample]:
            if known and value not in known:
                wrong.append(f"{path}.{field.name}: {value!r} is none of {known}")
        if field.name.endswith("_at") or field.name == "time":
            datetime.fromisoformat(sample)
        if field.name.startswith("price_") or field.name in ("charged", "amount"):
            Decimal(sample)
    return wrong


@pytest.mark.parametrize("name", MODULES)
def test_samples_are_values_that_the_field_can_have(name: str) -> None:
    returned = yaml.safe_load(module(name).RETURN)
    for result, model in shown_models(name).items():
        assert wrong_samples(returned[result].get("contains", {}), model, result) == []


def test_texts_of_results_say_more_than_the_name() -> None:
    """A description that only repeats the field's name is useless."""
    empty = [
        f"{name}.{path}"
        for name in MODULES
        for path, shown in described(yaml.safe_load(module(name).RETURN))
        if shown["description"].rstrip(".").lower().replace("the ", "")
        == path.rpartition(".")[2].replace("_", " ")
    ]
    rule = "descriptions in RETURN of plugins/modules/ that only repeat the field's name (CONTRIBUTING.md)"
    assert len(empty) <= EMPTY_TEXTS, f"{rule}: {empty}"


def described(shown: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, item in shown.items():
        yield f"{path}{name}", item
        yield from described(item.get("contains", {}), f"{path}{name}.")


def test_every_module_is_in_the_action_group_and_has_the_action_plugin() -> None:
    runtime = yaml.safe_load((COLLECTION / "meta" / "runtime.yml").read_text())
    assert runtime["action_groups"]["all"] == MODULES
    for name in MODULES:
        stub = importlib.import_module(f"ansible_collections.hosting.cloud.plugins.action.{name}")
        assert stub.ActionModule.__module__.endswith(".plugin_utils.controller_action")
    assert runtime["requires_ansible"].startswith(">=2.18")


def test_the_collection_has_the_version_of_the_package() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((COLLECTION / "galaxy.yml").read_text())["version"] == version.VERSION == package
    assert (COLLECTION / "requirements.txt").read_text().startswith(f"pulumi-hosting >= {version.CORE} ")


def test_every_module_is_in_the_changelog_under_the_version_that_added_it() -> None:
    released = yaml.safe_load((COLLECTION / "changelogs" / "changelog.yaml").read_text())["releases"]
    named = {
        entry["name"]: version
        for version, release in released.items()
        for entry in release.get("modules", ())
    }
    assert named == {name: documented(name)["version_added"] for name in MODULES}


def test_nothing_of_the_core_is_needed_to_read_the_modules() -> None:
    """Sanity, ansible-doc and Galaxy read them where only Ansible is."""
    for path in Path(COLLECTION / "plugins").rglob("*.py"):
        outside = [
            line
            for line in path.read_text().splitlines()
            if line.startswith(("import pulumi_hosting", "from pulumi_hosting"))
        ]
        assert outside == [], path


def test_the_plugins_do_not_import_each_other_in_a_circle() -> None:
    """Imports inside functions count too."""
    prefix = "ansible_collections.hosting.cloud."
    imports: dict[str, set[str]] = {}
    for path in (COLLECTION / "plugins").rglob("*.py"):
        found = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module
        ]
        name = prefix + ".".join(path.relative_to(COLLECTION).with_suffix("").parts)
        imports[name] = {str(node.module) for node in found} | {
            f"{node.module}.{alias.name}" for node in found for alias in node.names
        }
    own = {name: names & imports.keys() - {name} for name, names in imports.items()}
    # For type checkers only: a failure shows what its task had done before.
    own[f"{prefix}plugins.module_utils.failures"] -= {f"{prefix}plugins.module_utils.task"}
    order = [*TopologicalSorter(own).static_order()]  # raises CycleError
    assert order.index(f"{prefix}plugins.module_utils.module") < order.index(
        f"{prefix}plugins.modules.server"
    )
