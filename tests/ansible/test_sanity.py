"""ansible-test over the collection, without an ignore entry: sanity and units under the ansible-core of this
environment, and under every other one that is supported, with the integration targets, where the marker
``matrix`` is asked for (``make test-matrix``, the last part of ``make test-all``). They share files of the
collection, so they run one after the other.

ansible-test installs tools of its own when it first runs. They are kept in ``.ansible`` of the checkout, and
so are the matrix's cores.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible.conftest import BIN, COLLECTION, ROOT
from tests.ansible.test_integration import configuration

KEPT = ROOT / ".ansible"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
CORES = {
    "2.18": ("3.11", "3.12", "3.13"),
    "2.19": ("3.11", "3.12", "3.13"),
    "2.20": ("3.12", "3.13", "3.14"),
    "2.21": ("3.12", "3.13", "3.14"),
}
"""The supported releases of ansible-core, and the Pythons that each runs its controller with."""
NEEDS = ("pytest", "pytest-xdist", "pytest-mock")
"""What the units need beside the core: ansible-test's runner."""


@dataclass(frozen=True)
class Core:
    """One ansible-core: where its programs are, and the Python it has."""

    bin: Path
    python: str
    python_bin: Path

    def test(self, what: str, *arguments: str) -> str:
        """Run ``ansible-test``; its output. It must end well."""
        # As itself, not through a version manager: its shims fail as soon as ansible-test clears the
        # environment.
        path = os.pathsep.join([str(self.bin), str(self.python_bin), "/usr/bin", "/bin"])
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        done = subprocess.run(
            [str(self.bin / "ansible-test"), what, "--local", "--python", self.python, *arguments],
            cwd=COLLECTION,
            env={
                **kept,
                "HOME": str(KEPT),
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
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

    def sanity_and_units(self) -> None:
        assert list((COLLECTION / "tests").glob("sanity/*")) == [], "an ignore entry"
        assert 'Running sanity test "validate-modules"' in self.test("sanity")
        assert " passed in " in self.test("units")


@pytest.fixture(autouse=True)
def prepared() -> Iterator[None]:
    """A HOME that persists, with what stands in for the installer that ansible-test would download."""
    cache = KEPT / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for release in ("24_2", "25_2"):
        shutil.copy(Path(__file__).with_name("get_pip.py"), cache / f"get_pip_{release}.py")
    yield
    shutil.rmtree(COLLECTION / "tests" / "output", ignore_errors=True)


@pytest.mark.slow
def test_sanity_and_units() -> None:
    Core(BIN, VERSION, Path(sys.base_prefix) / "bin").sanity_and_units()


@pytest.mark.matrix
@pytest.mark.parametrize("release", CORES)
def test_every_supported_core(release: str, emulator: Any) -> None:
    core = installed(release)
    print(f"ansible-core {core_version(core)} on Python {core.python}")
    core.sanity_and_units()
    config = COLLECTION / "tests" / "integration" / "integration_config.yml"
    assert not config.exists(), "an own configuration stands here: not touched"
    config.touch(mode=0o600)
    try:
        config.write_text(yaml.safe_dump(configuration(emulator)))
        assert "failed=0" in core.test("integration")
    finally:
        config.unlink()
        config.with_name("inventory").unlink(missing_ok=True)  # ansible-test leaves the one it made


def installed(release: str) -> Core:
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
    return Core(home / "bin", version, program.parent)


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
