"""Versions on a machine against each other: of Pulumi, the plugin, ansible-core and the collection."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from pulumi_hosting.installation import INSTALL_COLLECTION, NEWER_VERSION
from pulumi_hosting.provider.plugin import install
from pulumi_hosting.reports import installed_versions
from pulumi_hosting.reports.checks import Check

PACKAGE = metadata.version("pulumi-hosting")


class Machine:
    """Programs on PATH, Pulumi's folder, and collections, all of them empty at first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        self.environ = {
            "PATH": str(folder / "bin"),
            "PULUMI_HOME": str(folder / "pulumi"),
            "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
            "HOSTING_API_KEY": "vk_live_canary",
        }
        self.plugin = install.place(self.environ)

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def collection(self, version: str, core: str, ansible: str = "2.18.0") -> None:
        home = self.folder / "collections/ansible_collections/hosting/cloud"
        (home / "meta").mkdir(parents=True)
        (home / "plugins/module_utils").mkdir(parents=True)
        (home / "meta/runtime.yml").write_text(f"---\nrequires_ansible: '>={ansible}'\n", encoding="utf-8")
        (home / "plugins/module_utils/version.py").write_text(
            f'VERSION = "{version}"\nCORE = "{core}"\n', encoding="utf-8"
        )

    def launcher(self, python: str) -> None:
        self.plugin.mkdir(parents=True)
        (self.plugin / install.EXECUTABLE).write_text(
            f'#!/bin/sh\nexec {python} -P -m pulumi_hosting.provider.plugin "$@"\n', encoding="utf-8"
        )

    def check(self, name: str) -> Check:
        found = {check.name: check for check in installed_versions.checks(self.environ)}
        return found[name]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if "site-packages" in place])
    return Machine(tmp_path)


def test_a_machine_with_the_package_alone(machine: Machine) -> None:
    assert machine.check("package").facts == {"version": PACKAGE}
    assert machine.check("pulumi").text.endswith("and no CLI on PATH")
    plugin = machine.check("plugin")
    assert (plugin.status, plugin.next) == ("note", "pulumi-hosting plugin install")
    collection = machine.check("collection")
    assert (collection.status, collection.text) == ("note", "hosting.cloud is not installed")


@pytest.mark.parametrize(
    ("cli", "status"), [("v3.100.0", "ok"), ("v2.9.0", "problem"), ("v4.0.0", "problem")]
)
def test_cli_and_sdk(machine: Machine, cli: str, status: str) -> None:
    machine.program("pulumi", f"echo {cli}")
    found = machine.check("pulumi")
    assert (found.status, found.facts["cli"]) == (status, cli.removeprefix("v"))
    assert bool(found.next) == (status == "problem")


def test_a_cli_is_not_given_the_key(machine: Machine) -> None:
    machine.program("pulumi", 'echo "v3.1.${#HOSTING_API_KEY}"')
    assert machine.check("pulumi").facts["cli"] == "3.1.0"


def test_a_cli_that_fails_is_no_cli(machine: Machine) -> None:
    machine.program("pulumi", "exit 3")
    assert machine.check("pulumi").facts["cli"] is None


def test_the_plugin_of_this_python(machine: Machine) -> None:
    machine.launcher(sys.executable)
    assert machine.check("plugin").status == "ok"
    assert machine.check("plugin").facts["path"] == str(machine.plugin)


@pytest.mark.parametrize(
    ("python", "status", "text"),
    [
        ("/bin/sh", "warning", "starts /bin/sh, and this is "),
        ("/nowhere/python", "problem", "which is not there"),
    ],
)
def test_the_plugin_of_another_python(machine: Machine, python: str, status: str, text: str) -> None:
    machine.launcher(python)
    found = machine.check("plugin")
    assert found.status == status
    assert text in found.text
    assert found.next == "pulumi-hosting plugin install"


def test_the_plugin_on_the_path(machine: Machine) -> None:
    machine.program(install.EXECUTABLE, "exit 0")
    plugin = machine.check("plugin")
    assert (plugin.status, plugin.next) == ("ok", "")
    assert plugin.text == f"{machine.folder / 'bin' / install.EXECUTABLE}, which Pulumi's CLI finds on PATH"


def test_the_plugin_of_another_version(machine: Machine) -> None:
    machine.plugin.with_name("resource-hosting-v0.0.1").mkdir(parents=True)
    found = machine.check("plugin")
    assert found.status == "warning"
    assert found.text == f"resource-hosting-v0.0.1 is installed, and this package is {machine.plugin.name}"


@pytest.mark.parametrize(
    ("version", "core", "status", "next_step"),
    [
        (PACKAGE, PACKAGE, "ok", ""),
        ("99.0.0", PACKAGE, "warning", f"{INSTALL_COLLECTION} --force, in a clone of pulumi-hosting"),
        ("99.0.0", "99.0.0", "problem", NEWER_VERSION),
    ],
)
def test_the_collection(machine: Machine, version: str, core: str, status: str, next_step: str) -> None:
    machine.collection(version, core)
    found = machine.check("collection")
    assert (found.status, found.next) == (status, next_step)
    assert found.facts["version"] == version


def test_an_ansible_that_is_too_old(machine: Machine) -> None:
    machine.collection(PACKAGE, PACKAGE, ansible="99.1")
    found = machine.check("ansible-core")
    assert (found.status, found.next) == ("problem", "pip install 'ansible-core>=99.1'")


def test_an_ansible_in_another_python(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "ansible-core":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    real = metadata.version
    monkeypatch.setattr(metadata, "version", version)
    assert machine.check("ansible-core").next == "pip install ansible-core"
    machine.program("ansible", "echo 'ansible [core 2.19.1]'")
    found = machine.check("ansible-core")
    assert (found.status, found.facts["version"]) == ("warning", "2.19.1")
    assert found.next == "install pulumi-hosting in that Python too"
