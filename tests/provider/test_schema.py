"""The package schema: valid by Pulumi's own metamodel, and whole."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from pulumi_hosting import installation
from pulumi_hosting.provider.names import camel, token
from pulumi_hosting.provider.names import class_of as class_name
from pulumi_hosting.provider.plugin.package_schema import package_spec
from pulumi_hosting.provider.resource_shape import secrets_of
from pulumi_hosting.provider.stack_settings import SETTINGS
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.lookups import LOOKUPS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SPEC = package_spec("1.2.3")
SPECS = {kind: SPEC["resources"][token(class_name(kind))] for kind in RESOURCES}

# The metamodel is a file of Pulumi's Go module, taken by the ordinary Go client; it is not ours to copy.
METAMODEL = "github.com/pulumi/pulumi/pkg/v3@v3.259.0"


@cache
def metamodel() -> dict[str, Any]:
    run = subprocess.run(
        ["go", "mod", "download", "-json", METAMODEL], check=False, capture_output=True, text=True
    )
    if run.returncode != 0:
        pytest.skip(f"go cannot download {METAMODEL}, which holds the metamodel")
    folder = Path(json.loads(run.stdout)["Dir"])
    found: dict[str, Any] = json.loads((folder / "codegen/schema/pulumi.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.program("go")  # the metamodel is a file of Pulumi's Go module
def test_it_is_valid_by_pulumis_metamodel() -> None:
    validator = jsonschema_rs.Draft202012Validator(metamodel())
    assert [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(SPEC)] == []


@pytest.mark.program("go")
def test_the_metamodel_refuses_what_is_wrong() -> None:
    validator = jsonschema_rs.Draft202012Validator(metamodel())
    broken = package_spec("1.2.3")
    broken["resources"][token("Server")]["inputProperties"]["os"] = {"type": "text"}
    assert not validator.is_valid(broken)


def test_it_says_where_it_comes_from_as_the_package_does() -> None:
    urls = PROJECT["urls"]
    assert (SPEC["homepage"], SPEC["repository"]) == (urls["Homepage"], urls["Repository"])
    assert (SPEC["publisher"], SPEC["license"]) == (PROJECT["name"], PROJECT["license"])
    assert (ROOT / SPEC["logoUrl"].removeprefix(urls["Source"])).is_file()


@pytest.mark.parametrize(
    ("origin", "download"),
    [
        ('{"url": "https://git.example/t/x", "vcs_info": {"vcs": "git"}}', "git://git.example/t/x"),
        ('{"url": "https://user:canary@git.example/t/x", "vcs_info": {"vcs": "git"}}', None),
        ('{"url": "ssh://git@git.example/t/x", "vcs_info": {"vcs": "git"}}', None),
        ('{"url": "file:///nowhere", "dir_info": {"editable": true}}', None),
        (None, None),
    ],
)
def test_it_is_downloaded_from_the_repository_that_it_was_installed_from(
    monkeypatch: pytest.MonkeyPatch, origin: str | None, download: str | None
) -> None:
    monkeypatch.setattr(installation, "_origin", lambda: json.loads(origin or "{}"))
    assert package_spec("1.2.3").get("pluginDownloadURL") == download


@pytest.mark.parametrize("kind", RESOURCES)
def test_every_field_of_every_resource_is_in_it(kind: str) -> None:
    resource, spec = RESOURCES[kind], SPECS[kind]
    assert set(spec["inputProperties"]) == {*map(camel, resource.Inputs.model_fields), "waitTimeout"}
    assert set(spec["properties"]) == {
        camel(name) for name in (*resource.Inputs.model_fields, *resource.State.model_fields)
    } - {"id"}
    needed = {camel(name) for name, info in resource.Inputs.model_fields.items() if info.is_required()}
    needed -= {camel(name) for name in resource.Inputs.named_by()}
    assert set(spec["requiredInputs"]) == needed - ({"name"} if resource.default_name else set())
    assert spec["aliases"] == [{"type": f"pulumi-python:dynamic/hosting:{class_name(resource.kind)}"}]
    for properties in (spec["inputProperties"], spec["properties"]):
        assert {name for name, found in properties.items() if found.get("secret")} == {
            name for name in map(camel, secrets_of(resource)) if name in properties
        }
        assert all(found["description"] for found in properties.values())


@pytest.mark.parametrize("kind", RESOURCES)
def test_what_replaces_says_so(kind: str) -> None:
    inputs = RESOURCES[kind].Inputs
    replacing = {
        name for name, found in SPECS[kind]["inputProperties"].items() if found.get("willReplaceOnChanges")
    }
    assert replacing == {camel(name) for name in inputs.model_fields if inputs.trait(name).replaces}


def test_the_schema_has_no_other_resources_or_functions() -> None:
    assert len(SPEC["resources"]) == len(RESOURCES)
    assert set(SPEC["functions"]) == {token(name) for name in LOOKUPS}


def test_every_setting_can_be_given_to_the_stack_and_to_a_provider() -> None:
    for properties in (SPEC["config"]["variables"], SPEC["provider"]["inputProperties"]):
        assert {name: found["defaultInfo"]["environment"] for name, found in properties.items()} == {
            name: [variable] for name, variable in SETTINGS.items()
        }
        assert [name for name, found in properties.items() if found.get("secret")] == ["apiKey", "store"]


def references(spec: Any) -> Iterator[str]:
    if isinstance(spec, dict):
        if isinstance(spec.get("$ref"), str):
            yield spec["$ref"]
        for part in spec.values():
            yield from references(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from references(part)


def test_every_reference_leads_to_a_type_and_every_type_is_needed() -> None:
    found = {ref.removeprefix("#/types/") for ref in references(SPEC)} - {"pulumi.json#/Any"}
    assert found == set(SPEC["types"])


def test_ids_of_the_account_are_text_and_numbers_of_the_catalog_are_numbers() -> None:
    def properties(spec: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(spec, dict):
            for key, part in spec.items():
                if key in ("properties", "inputProperties") and isinstance(part, dict):
                    yield from part.items()
                yield from properties(part)

    found = [
        (name, spec["type"])
        for name, spec in properties(SPEC)
        if re.fullmatch(r"\w+Id", name) and "type" in spec
    ]
    assert {kind for name, kind in found if name not in ("tariffId", "locationId")} == {"string"}
    assert {kind for name, kind in found if name in ("tariffId", "locationId")} == {"integer"}


def test_no_default_is_sent_for_an_argument_that_is_not_given() -> None:
    assert not any(
        "default" in found for spec in SPECS.values() for found in spec["inputProperties"].values()
    )


def test_other_languages_do_not_take_this_packages_name() -> None:
    assert SPEC["language"]["python"]["packageName"] != "pulumi_hosting"


def test_it_is_the_same_every_time() -> None:
    assert json.dumps(package_spec("1.2.3")) == json.dumps(SPEC)


@pytest.mark.program("pulumi")
def test_pulumi_makes_libraries_from_it(tmp_path: Path) -> None:
    cli = str(shutil.which("pulumi"))
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SPEC), encoding="utf-8")
    environ = {
        "PATH": str(Path(cli).parent),
        "HOME": str(tmp_path),
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
    }
    for language, written in (
        ("nodejs", "nodejs/sshKey.ts"),
        ("python", "python/pulumi_hosting_sdk/ssh_key.py"),
    ):
        command = [
            cli,
            "package",
            "gen-sdk",
            str(schema),
            "--language",
            language,
            "-o",
            str(tmp_path / "sdk"),
        ]
        run = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
        if "GeneratePackage not implemented" in run.stderr:
            pytest.skip(f"the host for {language} beside this pulumi makes no packages")
        assert run.returncode == 0, run.stderr
        assert (tmp_path / "sdk" / written).is_file()
