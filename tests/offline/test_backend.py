"""Files: stacks, locks, projects, configuration."""

import json
import stat
import sys
from pathlib import Path

import pytest

from pulumi_hosting.offline import InvalidConfiguration, StackLocked, StackNotFound
from pulumi_hosting.offline.model.property_values import SecretValue
from pulumi_hosting.offline.storage.backend import Backend, backend_directory, write_private
from pulumi_hosting.offline.storage.passphrase import Crypter
from pulumi_hosting.offline.storage.project import StackConfig, find_python, load_project
from tests.offline.test_secrets import PULUMI_SALT


def test_the_backend_directory(tmp_path: Path) -> None:
    assert backend_directory({}, tmp_path) == tmp_path / ".pulumi-offline"
    assert backend_directory({"PULUMI_BACKEND_URL": f"file://{tmp_path}/a%20b"}, Path()) == tmp_path / "a b"
    assert backend_directory({"PULUMI_BACKEND_URL": "file://~/x"}, Path()) == Path.home() / "x"
    with pytest.raises(InvalidConfiguration, match="file://DIR"):
        backend_directory({"PULUMI_BACKEND_URL": "s3://bucket"}, tmp_path)


def test_stacks_are_created_and_removed(tmp_path: Path) -> None:
    backend = Backend(tmp_path, "toys")
    assert backend.stacks() == []
    backend.create("dev")
    backend.create("prod")
    assert backend.stacks() == ["dev", "prod"]
    assert backend.read("dev") is None
    with pytest.raises(InvalidConfiguration, match="already exists"):
        backend.create("dev")
    backend.select("dev")
    assert backend.selected() == "dev"
    backend.remove("dev")
    assert backend.selected() is None
    assert backend.stacks() == ["prod"]
    for missing in (backend.read, backend.select):
        with pytest.raises(StackNotFound, match="Next: run `pulumi-hosting offline stack init dev`"):
            missing("dev")


def test_a_saved_state_is_complete_and_private(tmp_path: Path) -> None:
    backend = Backend(tmp_path, "toys")
    backend.create("dev")
    backend.write("dev", '{"resources": []}')
    file = backend.stack_file("dev")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {
        "version": 3,
        "checkpoint": {"stack": "organization/toys/dev", "latest": {"resources": []}},
    }
    assert sorted(path.name for path in file.parent.iterdir()) == ["dev.json", "dev.json.bak"]
    file.write_text("{")
    with pytest.raises(InvalidConfiguration, match="not valid JSON"):
        backend.read("dev")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    write_private(tmp_path / "x", "old")
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "x", "\ud800")
    assert (tmp_path / "x").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_one_lock_at_a_time(tmp_path: Path) -> None:
    backend = Backend(tmp_path, "toys")
    with pytest.raises(StackNotFound):
        backend.locked("dev").__enter__()
    assert not list(tmp_path.iterdir())
    backend.create("dev")
    with backend.locked("dev"):
        with pytest.raises(
            StackLocked,
            match=r"locked by 1 lock\(s\).*`pulumi-hosting offline cancel`.*\n  "
            r"file://.*pid",
        ):
            backend.locked("dev").__enter__()
        (backend.lock_directory("dev") / "broken.json").write_text("{")
        with pytest.raises(StackLocked, match=r"2 lock\(s\)"):
            backend.locked("dev").__enter__()
        assert backend.break_locks("dev") == 2
    with backend.locked("dev"):
        assert len(list(backend.lock_directory("dev").iterdir())) == 1
    assert not list(backend.lock_directory("dev").iterdir())


# Projects.


def project(folder: Path, text: str) -> Path:
    (folder / "Pulumi.yaml").write_text(text)
    return folder


def test_a_project_is_found_from_a_subdirectory(tmp_path: Path) -> None:
    project(tmp_path, "name: toys\nruntime: {name: python, options: {virtualenv: venv}}\nmain: src/\n")
    (tmp_path / "src").mkdir()
    found = load_project(tmp_path / "src")
    assert (found.name, found.root, found.program, found.directory) == (
        "toys",
        tmp_path,
        tmp_path / "src",
        tmp_path / "src",
    )
    assert found.stack_file("dev") == tmp_path / "Pulumi.dev.yaml"
    assert found.options == {"virtualenv": "venv"}


def test_main_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    found = load_project(project(tmp_path, "name: toys\nruntime: python\nmain: app.py\n"))
    assert (found.program, found.directory) == (tmp_path / "app.py", tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: toys\nruntime: nodejs", "runs Python programs only"),
        ("runtime: python", "no name"),
        ("name: toys\nruntime: python\nmain: nowhere", "could not find the program"),
        ("- a", "must be a mapping"),
        ("a: [", "not valid YAML"),
    ],
)
def test_a_wrong_project_is_one_clear_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InvalidConfiguration, match=problem) as raised:
        load_project(project(tmp_path, text))
    assert "\n" not in str(raised.value)


def test_no_project(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"no Pulumi\.yaml"):
        load_project(tmp_path)
    with pytest.raises(InvalidConfiguration, match="not a directory"):
        load_project(tmp_path / "nowhere")


def test_the_python_of_the_program(tmp_path: Path) -> None:
    plain = load_project(project(tmp_path, "name: toys\nruntime: python"))
    assert find_python(plain, {}) == sys.executable
    assert find_python(plain, {"PULUMI_PYTHON_CMD": "python3.12"}) == "python3.12"
    own = load_project(project(tmp_path, "name: toys\nruntime: {name: python, options: {virtualenv: venv}}"))
    with pytest.raises(InvalidConfiguration, match="virtualenv"):
        find_python(own, {})
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").touch()
    assert find_python(own, {}) == str(tmp_path / "venv" / "bin" / "python")


# Configuration.


def test_configuration(tmp_path: Path) -> None:
    text = (
        "name: toys\nruntime: python\nconfig:\n  region: {default: fi}\n  aws:zone: a\n  none: {type: "
        "string}\n"
    )
    config = StackConfig.load(load_project(project(tmp_path, text)), "dev")
    crypter = Crypter("x", PULUMI_SALT)
    config.set("size", "large")
    config.set("toy:apiKey", "hush", crypter)
    config.data["config"]["toys:flag"] = True
    config.data["config"]["toys:list"] = [1, 2]
    config.save()
    again = StackConfig.load(config.project, "dev")
    assert again.values(crypter) == {
        "toys:region": "fi",
        "aws:zone": "a",
        "toys:size": "large",
        "toy:apiKey": SecretValue("hush"),
        "toys:flag": "true",
        "toys:list": "[1, 2]",
    }
    assert "hush" not in again.path.read_text()
    with pytest.raises(InvalidConfiguration, match="encryptionsalt"):
        again.values(None)


def test_a_stack_keeps_its_salt(tmp_path: Path) -> None:
    config = StackConfig.load(load_project(project(tmp_path, "name: toys\nruntime: python")), "dev")
    assert config.crypter("x") is None
    salt = config.ensure_crypter({"PULUMI_CONFIG_PASSPHRASE": "x"}).state
    again = StackConfig.load(config.project, "dev")
    assert again.ensure_crypter({"PULUMI_CONFIG_PASSPHRASE": "x"}).state == salt
