"""Damaged files: the error is one line that names the file, the exit code is 2, nothing is written."""

import copy
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_hosting.cli.offline import offline
from pulumi_hosting.offline import InvalidConfiguration
from pulumi_hosting.offline.storage.backend import Backend, write_private

URN = "urn:pulumi:dev::toys::toy:index:Thing::a"
GOOD: dict[str, Any] = {
    "version": 3,
    "checkpoint": {
        "stack": "organization/toys/dev",
        "latest": {
            "manifest": {"time": "2026-11-22T00:00:00Z", "magic": "", "version": "v3.259.0"},
            "secrets_providers": {
                "type": "passphrase",
                "state": {"salt": "v1:c2FsdA==:v1:bm9uY2U=:dGV4dA=="},
            },
            "resources": [
                {
                    "urn": "urn:pulumi:dev::toys::pulumi:pulumi:Stack::toys-dev",
                    "type": "pulumi:pulumi:Stack",
                    "custom": False,
                },
                {
                    "urn": URN,
                    "type": "toy:index:Thing",
                    "custom": True,
                    "id": "a#1",
                    "inputs": {"name": "a", "tags": ["x"]},
                    "outputs": {
                        "name": "a",
                        "once": {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"},
                    },
                    "parent": "urn:pulumi:dev::toys::pulumi:pulumi:Stack::toys-dev",
                    "dependencies": [],
                    "propertyDependencies": {"name": None},
                    "customTimeouts": {"create": 3},
                },
            ],
            "pending_operations": [
                {"resource": {"urn": URN, "type": "toy:index:Thing", "custom": True}, "type": "creating"}
            ],
        },
    },
}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
COMMANDS = (
    ["stack", "output"],
    ["stack", "export", "--show-secrets"],
    ["destroy", "--preview-only"],
    ["stack", "ls"],
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document, itself included."""
    yield at
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*at, key))


def replaced(value: Any, at: tuple[Any, ...], by: Any) -> Any:
    if not at:
        return by
    changed = copy.copy(value)
    changed[at[0]] = replaced(value[at[0]], at[1:], by)
    return changed


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "Pulumi.yaml").write_text("name: toys\nruntime: python\n", encoding="utf-8")
    (root / "__main__.py").write_text("", encoding="utf-8")
    done = run(root, "stack", "init", "dev")
    assert done.exit_code == 0, done.output
    return root


def run(root: Path, *arguments: str) -> Result:
    environ = {"PULUMI_CONFIG_PASSPHRASE": "x", "PULUMI_BACKEND_URL": None}
    return CliRunner(env=environ).invoke(offline, [*arguments, "--cwd", str(root)])


def assert_one_line_and_untouched(root: Path, file: Path, text: bytes) -> None:
    settings_file = root / "Pulumi.dev.yaml"
    settings_before = settings_file.read_bytes()
    file.write_bytes(text)
    for command in COMMANDS:
        done = run(root, *command)
        assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
        assert done.exit_code in (0, 1, 2), done.output
        if done.exit_code:
            # A state that can be read may be refused (a pending create, a missing provider): in one line too.
            assert done.exit_code == 2 or "error: " in done.output
            assert "Traceback" not in done.output
            assert done.exit_code == 1 or len(done.stderr.splitlines()) == 1, done.stderr
        assert file.read_bytes() == text
    if file != settings_file:
        assert settings_file.read_bytes() == settings_before


@settings(max_examples=30)
@given(ANY)
def test_any_json_as_state(project: Path, value: Any) -> None:
    assert_one_line_and_untouched(
        project, Backend(project / ".pulumi-offline", "toys").stack_file("dev"), json.dumps(value).encode()
    )


@settings(max_examples=60)
@given(st.data())
def test_any_value_in_a_state(project: Path, data: st.DataObject) -> None:
    at = data.draw(st.sampled_from(list(places(GOOD))))
    text = json.dumps(replaced(GOOD, at, data.draw(ANY))).encode()
    assert_one_line_and_untouched(
        project, Backend(project / ".pulumi-offline", "toys").stack_file("dev"), text
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b'{"version":3,"checkpoint":null}',
        b"\xff\xfe",
        b"{" * 100_000,
        b'{"version": 4, "checkpoint": {}}',
        b"[" * 90_000,
    ],
    ids=["empty", "list", "null", "no checkpoint", "no text", "cut off", "newer", "deep"],
)
def test_the_error_of_a_damaged_state_names_it_and_its_backup(project: Path, text: bytes) -> None:
    file = Backend(project / ".pulumi-offline", "toys").stack_file("dev")
    file.write_bytes(text)
    done = run(project, "stack", "output")
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {file} is not a stack's state: ")
    assert "Nothing was changed. Next: " in line
    assert file.read_bytes() == text


def test_the_backup_in_that_error_is_a_state(tmp_path: Path) -> None:
    backend = Backend(tmp_path, "toys")
    backend.create("dev")
    backend.write("dev", '{"resources": []}')
    backend.write("dev", '{"resources": [], "metadata": {}}')
    file = backend.stack_file("dev")
    file.write_text("{", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match=r"Next: \S+dev\.json\.bak is the state one save earlier"):
        backend.read("dev")
    Path(f"{file}.bak").replace(file)
    assert backend.read("dev") == {"resources": []}
    assert backend.stacks() == ["dev"]


@settings(max_examples=30)
@given(ANY, st.sampled_from(["", "config", "encryptionsalt", "config.toys:a", "config.toys:a.secure"]))
def test_any_value_in_the_settings_of_a_stack(project: Path, value: Any, at: str) -> None:
    Backend(project / ".pulumi-offline", "toys").write("dev", None)
    file = project / "Pulumi.dev.yaml"
    before = file.read_bytes()
    document = value
    for key in reversed(at.split(".") if at else []):
        document = {key: document}
    text = yaml.safe_dump(document).encode()
    file.write_bytes(text)
    try:
        for command in (["config", "get", "a"], ["stack", "output"]):
            done = run(project, *command)
            assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
            if done.exit_code:
                assert done.exit_code == 2, done.output
                assert len(done.stderr.splitlines()) == 1, done.stderr
                # A stack without salt gets one.
                assert file.read_bytes() == text or b"encryptionsalt" in file.read_bytes()
    finally:
        file.write_bytes(before)


@settings(max_examples=30)
@given(
    ANY,
    st.sampled_from(
        ["", "name", "runtime", "runtime.options", "main", "config", "config.a", "options", "options.refresh"]
    ),
)
def test_any_value_in_the_project_file(tmp_path_factory: pytest.TempPathFactory, value: Any, at: str) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "__main__.py").write_text("", encoding="utf-8")
    document: Any = value
    for key in reversed(at.split(".") if at else []):
        document = {key: document}
    if at:
        document = {"name": "toys", "runtime": {"name": "python"}} | document
    file = root / "Pulumi.yaml"
    text = yaml.safe_dump(document).encode()
    file.write_bytes(text)
    for command in (["stack", "ls"], ["stack", "init", "dev"], ["config", "get", "a"]):
        done = run(root, *command)
        assert done.exception is None or isinstance(done.exception, SystemExit), (command, done.exception)
        if done.exit_code:
            assert done.exit_code in (2, 6), done.output
            assert len(done.stderr.splitlines()) == 1, done.stderr
    assert file.read_bytes() == text


def test_a_save_is_synced_and_keeps_the_previous_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File and directory are synced, in this order: content, copy, name."""
    file, saved = tmp_path / "dev.json", tmp_path / "dev.json.bak"
    write_private(file, "old", backup=saved)
    assert not saved.exists()
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def fsync(handle: int) -> None:
        done.append("directory" if stat.S_ISDIR(os.fstat(handle).st_mode) else "content")
        sync(handle)

    def renamed(source: str | Path, target: str | Path) -> None:
        done.append(Path(target).name)
        assert file.exists()  # a kill at any time finds a state there
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", renamed)
    write_private(file, "new", backup=saved)
    assert done == ["content", "dev.json.bak", "dev.json", "directory"]
    assert (file.read_text(encoding="utf-8"), saved.read_text(encoding="utf-8")) == ("new", "old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.json", "dev.json.bak"]
