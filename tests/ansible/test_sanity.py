"""ansible-test over the collection, without an ignore entry: sanity and units under the ansible-core of this
environment. Under every other one that is supported: what depends on the core, the units, and the integration
targets of the resources in ``make test-all``; all of it in ``make test-matrix``. Each works in a copy of the
collection, so that they run beside each other.

ansible-test installs tools of its own when it first runs. They are kept in ``.ansible`` of the checkout, and
so are the matrix's cores.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.release import __version__ as OWN_CORE

from tests.ansible.conftest import BIN, COLLECTION, ROOT
from tests.ansible.test_integration import LADDER, assert_nothing_left, configuration

KEPT = ROOT / ".ansible"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
CORES = {
    "2.18": ("3.11", "3.12", "3.13"),
    "2.19": ("3.11", "3.12", "3.13"),
    "2.20": ("3.12", "3.13", "3.14"),
    "2.21": ("3.12", "3.13", "3.14"),
}
"""The supported releases of ansible-core, and the Pythons that each runs its controller with."""
OTHERS = [release for release in CORES if not OWN_CORE.startswith(f"{release}.")]
OF_THE_CORE = (
    "action-plugin-docs",
    "ansible-doc",
    "compile",
    "import",
    "runtime-metadata",
    "validate-modules",
)
"""Sanity tests whose answer depends on the release. The others judge the text alone, as those of the
environment's own core do."""
NEEDS = ("pytest", "pytest-xdist", "pytest-mock")
"""What the units need beside the core: ansible-test's runner."""


@dataclass(frozen=True)
class Core:
    """One ansible-core: where its programs are, the Python it has, the home of ansible-test, and a copy of
    the collection."""

    bin: Path
    python: str
    python_bin: Path
    home: Path
    collection: Path

    def test(self, what: str, *arguments: str) -> str:
        """Run ``ansible-test``; its output. It must end well."""
        # As itself, not through a version manager: its shims fail as soon as ansible-test clears the
        # environment.
        path = os.pathsep.join([str(self.bin), str(self.python_bin), "/usr/bin", "/bin"])
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        done = subprocess.run(
            [str(self.bin / "ansible-test"), what, "--local", "--python", self.python, *arguments],
            cwd=self.collection,
            env={
                **kept,
                "HOME": str(self.home),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_COLLECTIONS_PATH": str(self.collection.parents[2]),
                "PATH": path,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def sanity_and_units(self, *tests: str) -> None:
        """All sanity tests, or these."""
        assert list((self.collection / "tests").glob("sanity/*")) == [], "an ignore entry"
        chosen = [word for test in tests for word in ("--test", test)]
        assert 'Running sanity test "validate-modules"' in self.test("sanity", *chosen)
        assert " passed in " in self.test("units")


def prepared(bin: Path, python: str, python_bin: Path, folder: Path) -> Core:
    """With a home that persists, and what stands in for the installer that ansible-test would download."""
    home, copy = KEPT / "homes" / bin.parent.name, folder / "ansible_collections" / "hosting" / "cloud"
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for release in ("24_2", "25_2"):
        shutil.copy(Path(__file__).with_name("get_pip.py"), cache / f"get_pip_{release}.py")
    shutil.copytree(COLLECTION, copy, ignore=shutil.ignore_patterns("__pycache__", "output"))
    return Core(bin, python, python_bin, home, copy)


@pytest.mark.slow
def test_sanity_and_units(tmp_path: Path) -> None:
    prepared(BIN, VERSION, Path(sys.base_prefix) / "bin", tmp_path).sanity_and_units()


@pytest.mark.matrix
@pytest.mark.parametrize("release", OTHERS)
@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_supported_core(release: str, everything: bool, emulator: Any, tmp_path: Path) -> None:
    core = installed(release, tmp_path)
    print(f"ansible-core {core_version(core)} on Python {core.python}")
    core.sanity_and_units(*([] if everything else OF_THE_CORE))
    config = core.collection / "tests" / "integration" / "integration_config.yml"
    config.touch(mode=0o600)
    config.write_text(yaml.safe_dump(configuration(emulator)))
    assert "failed=0" in core.test("integration", *([] if everything else LADDER))
    assert_nothing_left(emulator)


def installed(release: str, folder: Path) -> Core:
    """The newest ansible-core of this release in an environment of its own, with the first of its Pythons
    that is on this machine.
    """
    version, program = next(
        ((version, found) for version in CORES[release] if (found := python(version))), (None, None)
    )
    if version is None or program is None:
        pytest.skip(
            f"ansible-core {release} was not tried: no Python {' or '.join(CORES[release])} on this machine"
        )
    home = KEPT / "cores" / f"{release}-py{version}"
    wanted = [f"ansible-core~={release}.0", *NEEDS]
    ready = home / "ready"
    if not ready.exists() or ready.read_text() != "\n".join(wanted):
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([program, "-m", "venv", str(home)], check=True)
        subprocess.run(
            [
                str(home / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "--quiet",
                *wanted,
                "--editable",
                str(ROOT),
            ],
            check=True,
        )
        ready.write_text("\n".join(wanted))
    return prepared(home / "bin", version, program.parent, folder)


def python(version: str) -> Path | None:
    """The Python of this version that is on the machine: on PATH, or kept by pyenv. It is tried, and
    names itself.
    """
    for candidate in [
        f"python{version}",
        *map(str, Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python{version}")),
    ]:
        if shutil.which(candidate) is None:
            continue
        asked = subprocess.run(
            [candidate, "-c", "import ensurepip, sys; print(sys.base_prefix)"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0:
            return Path(asked.stdout.strip()) / "bin" / f"python{version}"
    return None


def core_version(core: Core) -> str:
    asked = [str(core.bin / "python"), "-c", "import ansible; print(ansible.__version__)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
