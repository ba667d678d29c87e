"""The collection as users get it: a tarball that is built, installed and played outside the repository."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible.conftest import BIN, COLLECTION, Ansible
from tests.ansible.test_docs import code_blocks
from tests.ansible.test_playbooks import KEY_LINE
from tests.ansible.test_specs import MODULES

pytestmark = pytest.mark.slow

RUBBISH = (
    ".ansible/cache",
    ".mypy_cache/3.11/x.json",
    ".pytest_cache/x",
    "changelogs/.plugin-cache.yaml",
    "hosting-cloud-0.0.1.tar.gz",
    "plugins/modules/__pycache__/server.cpython-311.pyc",
    "tests/integration/integration_config.yml",
    "tests/integration/inventory",
    "tests/output/junit/x.xml",
)
SECRET = "vk_live_" + "s" * 24


def only(collections: Path) -> dict[str, str]:
    """Ansible looks for collections in this directory, and in no other: not where Python looks, which is
    where this checkout is.
    """
    return {"ANSIBLE_COLLECTIONS_PATH": str(collections), "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false"}


def galaxy(home: Path, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run ``ansible-galaxy collection`` in a directory of its own, where nothing of the repository is to
    be found.
    """
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **only(home / "installed")}
    command = [str(BIN / "ansible-galaxy"), "collection", *arguments]
    done = subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the collection in which all lies around that work on it leaves behind."""
    home = tmp_path_factory.mktemp("built")
    copy = home / "cloud"
    shutil.copytree(COLLECTION, copy)
    for name in RUBBISH:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(f"hosting_api_key: {SECRET}\n")
    galaxy(home, "build", "--output-path", str(home), str(copy))
    (built,) = home.glob("*.tar.gz")
    return built


@pytest.fixture
def installed(tarball: Path, tmp_path: Path) -> Path:
    """The directory that holds the tarball's content as ``ansible_collections/hosting/cloud``."""
    galaxy(tmp_path, "install", "--offline", "--collections-path", str(tmp_path / "installed"), str(tarball))
    return tmp_path / "installed"


def test_the_tarball_holds_the_collection_and_nothing_else(tarball: Path) -> None:
    with tarfile.open(tarball) as opened:
        names = {member.name for member in opened.getmembers() if member.isfile()}
        content = b"".join(
            file.read() for member in opened.getmembers() if (file := opened.extractfile(member)) is not None
        )
    assert {f"plugins/modules/{name}.py" for name in MODULES} < names
    assert {
        "README.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "COPYING",
        "CHANGELOG.rst",
        "requirements.txt",
        "meta/runtime.yml",
        "meta/execution-environment.yml",
    } < names
    assert names & set(RUBBISH) == set()
    assert [
        name for name in names if "__pycache__" in name or name.endswith(".pyc") or "/output/" in name
    ] == []
    assert [name for name in names if Path(name).name.startswith(".") and Path(name).name != ".keep"] == []
    assert SECRET.encode() not in content
    assert (
        tarball.name
        == f"hosting-cloud-{yaml.safe_load((COLLECTION / 'galaxy.yml').read_text())['version']}.tar.gz"
    )


def test_what_is_installed_is_verified(installed: Path) -> None:
    home = installed.parent
    assert "Successfully verified" in galaxy(home, "verify", "--offline", "hosting.cloud").stdout
    changed = installed / "ansible_collections" / "hosting" / "cloud" / "plugins" / "modules" / "server.py"
    changed.write_text("# something else\n")
    assert (
        "plugins/modules/server.py"
        in galaxy(home, "verify", "--offline", "hosting.cloud", check=False).stdout
    )


def test_the_first_guide_is_played_outside_the_repository(ansible: Ansible, installed: Path) -> None:
    """As it stands there. The interpreter that is named does not exist: the controller alone does the
    work.
    """
    (ansible.home / ".ssh").mkdir()
    (ansible.home / ".ssh" / "id_ed25519.pub").write_text(KEY_LINE + "\n")
    playbook = ansible.home / "site.yml"
    playbook.write_text(code_blocks("guide_getting_started")[0])
    arguments = ("--extra-vars", "ansible_python_interpreter=/nonexistent/python", "-vvv")

    first = ansible.finish(ansible.start_file(playbook, arguments, only(installed)))
    again = ansible.finish(ansible.start_file(playbook, arguments, only(installed)))

    assert (first.changed, again.changed) == ([False, True, True, False], [False] * 4)
    assert [server["name"] for server in ansible.living] == ["web-1"]
    assert first["Tell where it is"]["msg"] == ansible.living[0]["ip"]


def test_execution_environments_find_what_it_needs(installed: Path) -> None:
    done = subprocess.run(
        [str(BIN / "ansible-builder"), "introspect", str(installed)],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = yaml.safe_load(done.stdout)
    lines = (COLLECTION / "requirements.txt").read_text().splitlines()
    assert [without_comment(requirement) for requirement in found["python"]] == [
        without_comment(line) for line in lines
    ]
    assert found["system"] == []


def without_comment(requirement: str) -> str:
    return requirement.partition("#")[0].strip()


def test_galaxy_would_import_it(tarball: Path, tmp_path: Path) -> None:
    """What Ansible Galaxy checks of an upload, apart from ansible-test, which has a test of its
    own.
    """
    settings = tmp_path / "galaxy-importer.cfg"
    settings.write_text("[galaxy-importer]\nRUN_ANSIBLE_TEST = False\nCHECK_CHANGELOG = True\n")
    environ = {
        "HOME": str(tmp_path),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "GALAXY_IMPORTER_CONFIG": str(settings),
    }
    command = [sys.executable, "-m", "galaxy_importer.main", str(tarball)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    assert "Importer processing completed successfully" in printed
    assert [line for line in printed.splitlines() if line.startswith(("ERROR", "WARNING"))] == []
