"""Targets, operations that run the program, and the state."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pulumi_hosting.offline import InvalidConfiguration, OfflineStack
from pulumi_hosting.offline.model.property_values import Properties
from pulumi_hosting.offline.storage.backend import Backend
from tests.offline.conftest import TWO, Command, MakeProject, called, methods, names, up, write
from tests.offline.test_secrets import PULUMI_SALT


def test_wrong_targets(make_project: MakeProject) -> None:
    project = make_project(TWO)
    type = "urn:pulumi:dev::toys::pulumi-python:dynamic/toy:Thing"
    result = project.stack().up(targets=(f"{type}::b",))
    assert result.exit_code == 1
    assert f"Resource '{type}::b' depends on '{type}::a'" in result.errors[0]
    assert project.things() == {}
    result = project.stack().up(targets=(f"{type}::unknown",))
    assert result.errors[0] == f"Target '{type}::unknown' could not be found in the stack."
    up(project)
    result = project.stack().destroy(targets=(f"{type}::a",))
    assert result.exit_code == 1
    assert "--target-dependents" in result.errors[0]
    assert set(project.things()) == {"a#1", "b#1"}
    assert project.stack().destroy(targets=(f"{type}::a",), target_dependents=True).changes == {
        "delete": 2,
        "same": 1,
    }
    assert project.things() == {}


@pytest.mark.parametrize("operation", ["up", "preview", "refresh", "destroy"])
def test_an_operation_reads_the_state_once(
    operation: str, make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = make_project('Thing("a", {"name": "a"})').stack()
    assert stack.up().exit_code == 0
    read, stacks = Backend.read, []

    def noted(backend: Backend, stack: str) -> Properties | None:
        stacks.append(stack)
        return read(backend, stack)

    monkeypatch.setattr(Backend, "read", noted)
    assert getattr(stack, operation)().exit_code == 0
    assert stacks == ["dev"]


def test_a_target_keeps_undeclared_resources(make_project: MakeProject) -> None:
    project = make_project(TWO)
    up(project)
    write(project, 'Thing("b", {"name": "b", "note": "new"})')
    type = "urn:pulumi:dev::toys::pulumi-python:dynamic/toy:Thing"
    assert project.stack().up(targets=("**::other*",)).changes == {"same": 3}
    assert set(project.things()) == {"a#1", "b#1"}
    result = project.stack().refresh(targets=(f"{type}::a",))
    assert names(result, "refresh") == ["a"]


def test_destroy_with_the_program_uses_its_configuration(make_project: MakeProject) -> None:
    project = make_project(TWO)
    project.stack().set_config("toy:apiKey", "k1", secret=True)
    up(project)
    project.stack().set_config("toy:apiKey", "k2", secret=True)
    project.forget_calls()
    result = project.stack().destroy(run_program=True)
    assert (result.exit_code, project.things(), project.state()["resources"]) == (0, {}, [])
    assert project.calls()[0] == {"method": "Configure", "key": "k2"}
    assert methods(project).count("Delete") == 2
    # A resource that does not exist is not made for being destroyed.
    result = project.stack().destroy(run_program=True)
    assert (result.exit_code, project.things()) == (0, {})
    assert "Create" not in methods(project)


def test_refresh_with_the_program_finds_deleted_objects(make_project: MakeProject) -> None:
    project = make_project(TWO)
    up(project)
    world = json.loads((project.service / "world.json").read_text())
    del world["things"]["a#1"]
    (project.service / "world.json").write_text(json.dumps(world))
    result = project.stack().refresh(run_program=True)
    assert result.exit_code == 0
    assert {item["name"]: item.get("dependencies") for item in project.state()["resources"]} == {
        "toys-dev": None,
        "b": None,
    }
    write(project, 'Thing("b", {"name": "b"})')
    # What the program does not mention is refreshed too, and never deleted by a refresh.
    write(project, "")
    result = project.stack().refresh(run_program=True)
    assert names(result, "refresh") == ["b"]
    assert list(project.things()) == ["b#1"]


def test_a_resource_whose_provider_is_not_in_the_state(make_project: MakeProject) -> None:
    project = make_project(TWO)
    up(project)
    data = project.stack().export()
    data["deployment"]["resources"] = [
        item for item in data["deployment"]["resources"] if "providers" not in item["type"]
    ]
    project.stack().import_state(data)
    result = project.stack().refresh()
    assert result.exit_code == 1
    assert "could not find provider" in result.errors[0]


def test_export_and_import(make_project: MakeProject) -> None:
    project = make_project(TWO)
    up(project)
    stack = project.stack()
    shown = stack.export(show_secrets=True)
    assert "once-a#1" in json.dumps(shown)
    assert "once-a#1" not in json.dumps(stack.export())
    stack.import_state(shown)
    assert "once-a#1" not in stack.backend.stack_file("dev").read_text()
    assert up(project).changes == {"same": 3}
    with pytest.raises(InvalidConfiguration, match="another stack"):
        stack.import_state(json.loads(json.dumps(shown).replace("urn:pulumi:dev", "urn:pulumi:prod")))
    with pytest.raises(InvalidConfiguration, match="version 3"):
        stack.import_state({"version": 2})
    with pytest.raises(InvalidConfiguration, match="passphrase secrets only"):
        stack.import_state({"version": 3, "deployment": {"secrets_providers": {"type": "cloud"}}})


def test_a_state_with_another_salt(make_project: MakeProject) -> None:
    project = make_project(TWO)
    up(project)
    # A checkout without the stack's config file: the salt comes back from the state.
    (project.directory / "Pulumi.dev.yaml").unlink()
    assert up(project).changes == {"same": 3}
    salt = (project.directory / "Pulumi.dev.yaml").read_text()
    # Another salt in the file: the state is read with its own and written with the new one.
    (project.directory / "Pulumi.dev.yaml").unlink()
    other = OfflineStack(project.directory, "other", environ=project.environ)
    other.init()
    shutil.copy(project.directory / "Pulumi.other.yaml", project.directory / "Pulumi.dev.yaml")
    assert up(project).changes == {"same": 3}
    assert (project.directory / "Pulumi.dev.yaml").read_text() != salt
    assert "once-a#1" in json.dumps(project.stack().export(show_secrets=True))


def test_a_wrong_passphrase_changes_nothing(make_project: MakeProject) -> None:
    project = make_project(TWO)
    up(project)
    saved = project.stack().backend.stack_file("dev").read_text()
    project.environ["PULUMI_CONFIG_PASSPHRASE"] = "wrong"
    with pytest.raises(InvalidConfiguration, match="incorrect passphrase"):
        up(project)
    assert project.stack().backend.stack_file("dev").read_text() == saved


@pytest.mark.parametrize("flag", ["--replace", pytest.param("--target-replace", marks=pytest.mark.slow)])
def test_replace_on_demand_checks_as_new_and_asks_for_no_diff(make_project: MakeProject, flag: str) -> None:
    project = make_project('Thing("a", {"name": "a"})\nThing("b", {"name": "b"})', form="native")
    assert project.stack().up().exit_code == 0
    (urn,) = [
        item["urn"] for item in project.stack().export()["deployment"]["resources"] if item.get("id") == "a#1"
    ]
    project.forget_calls()
    done = Command(project)("up", "--yes", "--skip-preview", "--stack", "dev", flag, urn)
    assert done.exit_code == 0, done.output
    calls = [call for call in project.calls() if call.get("name") == "a"]
    assert [call["method"] for call in calls] == ["Check", "Create", "Delete"]
    assert not calls[0].get("olds")
    assert set(project.things()) == {"a#2", "b#1"}
    others = [call["method"] for call in project.calls() if call.get("name") == "b"]
    assert others == (["Check", "Diff"] if flag == "--replace" else [])


@pytest.mark.parametrize(
    "command", ["up", *(pytest.param(name, marks=pytest.mark.slow) for name in ("preview", "destroy"))]
)
def test_the_option_refresh_always(make_project: MakeProject, command: str) -> None:
    project = make_project('Thing("a", {"name": "a"})', form="native")
    assert project.stack().up().exit_code == 0
    project.forget_calls()
    file = project.directory / "Pulumi.yaml"
    file.write_text(file.read_text() + "options: {refresh: always}\n")
    assert project.stack().run(command).exit_code == 0  # type: ignore[arg-type]  # a command's name
    assert called(project, "Read") == ["a#1"]
    file.write_text(file.read_text().replace("always", "never"))
    with pytest.raises(Exception, match="refresh must be 'always'"):
        project.stack()


@pytest.mark.program("pulumi")
def test_pulumi_and_the_offline_engine_share_a_state(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project(TWO + 'pulumi.export("once", a.secretOut)', salt=PULUMI_SALT)
    project.environ |= {
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_BACKEND_URL": (project.directory / ".pulumi-offline").as_uri(),
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }

    def pulumi(*arguments: str) -> str:
        command = ["pulumi", *arguments, "--stack", "dev", "--non-interactive"]
        done = subprocess.run(
            command, cwd=project.directory, env=project.environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    up(project)
    assert "once-a#1" in pulumi("stack", "export", "--show-secrets")
    pulumi("up", "--yes", "--skip-preview", "--expect-no-changes")
    assert up(project, expect_no_changes=True).exit_code == 0
    pulumi("destroy", "--yes", "--skip-preview")
    assert up(project).changes == {"create": 3}
