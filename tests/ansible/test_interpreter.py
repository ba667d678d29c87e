"""An interpreter without the core, and one with an old core: one line that says what to install, and into
which.

Once it is the interpreter of a module, once the one that Ansible itself runs with.
"""

import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from ansible_collections.hosting.cloud.plugins.module_utils.version import CORE
from tests.ansible.conftest import ROOT, Ansible, Played

pytestmark = pytest.mark.slow


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An interpreter of its own that has nothing but Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    return tmp_path / "bare" / "bin" / "python"


@pytest.fixture
def bare_with_ansible(bare: Path) -> Path:
    """The same with ansible-core, and what that needs."""
    packages = packages_of(bare)
    for needed in closure("ansible-core"):
        for name in {
            file.parts[0] for file in needed.files or () if file.parts[0] not in ("..", "__pycache__")
        }:
            (packages / name).symlink_to(Path(str(needed.locate_file(name))))
    return bare


def packages_of(python: Path) -> Path:
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    return packages


def closure(name: str) -> Iterator[Distribution]:
    """A distribution that is installed here, and all that it requires."""
    seen: dict[str, Distribution] = {}
    wanted = [name]
    for each in wanted:
        if each not in seen:
            seen[each] = distribution(each)
            requirements = map(Requirement, seen[each].requires or ())
            wanted += [
                str(found.name).lower()
                for found in requirements
                if found.marker is None or found.marker.evaluate({"extra": ""})
            ]
    yield from seen.values()


def give(python: Path, version: str | None) -> None:
    """Make it find the package of this checkout, with this version; None: without one."""
    packages = packages_of(python)
    (packages / "all.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    shutil.rmtree(packages / "pulumi_hosting-0.0.9.dist-info", ignore_errors=True)
    if version is not None:
        old = packages / f"pulumi_hosting-{version}.dist-info"
        old.mkdir()
        (old / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pulumi-hosting\nVersion: {version}\n")


def task(python: Path, **more: Any) -> dict[str, Any]:
    return {
        "name": "read",
        "hosting.cloud.server_info": {},
        "vars": {"ansible_python_interpreter": str(python)},
        "ignore_errors": True,
        **more,
    }


def is_one_line_for(played: Played, python: Path, told: str) -> None:
    message = played["read"]["msg"]
    assert played["read"]["failure"]["code"] == "missing_library"
    assert told in message
    assert f"Next: {python} -m pip install PATH, that of a clone or of the wheel" in message
    assert "\n" not in message
    assert "Traceback" not in played.output


def test_a_module_without_and_with_an_old_core(ansible: Ansible, bare: Path) -> None:
    # else looked for in the user's own HOME
    ansible.environ["ANSIBLE_ASYNC_DIR"] = str(ansible.home / "async")
    by_module = task(bare, **{"async": 60, "poll": 1})
    is_one_line_for(ansible.play(by_module), bare, f"pulumi-hosting >= {CORE}")
    give(bare, "0.0.9")
    is_one_line_for(ansible.play(by_module), bare, "version 0.0.9 is installed")
    give(bare, None)
    assert ansible.play(by_module)["read"]["servers"] == []


def test_a_controller_without_and_with_an_old_core(ansible: Ansible, bare_with_ansible: Path) -> None:
    python = bare_with_ansible
    ansible.program = (str(python), "-m", "ansible", "playbook")
    is_one_line_for(ansible.play(task(python)), python, f"pulumi-hosting >= {CORE}")
    # the module's interpreter has it, and that will do
    assert ansible.play(task(Path(sys.executable)))["read"]["servers"] == []
    give(python, "0.0.9")
    is_one_line_for(ansible.play(task(python)), python, "version 0.0.9 is installed")
    give(python, None)
    assert ansible.play(task(Path("/nonexistent/python")))["read"]["servers"] == []
