"""An interpreter without the core, and one with an old core: one line that says what to install, and into which."""

import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ansible.conftest import ROOT, Ansible


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An interpreter of its own that has nothing but Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    return tmp_path / "bare"


def task(interpreter: Path) -> dict[str, object]:
    return {
        "name": "read",
        "hosting.cloud.server_info": {},
        "vars": {"ansible_python_interpreter": str(interpreter)},
        "ignore_errors": True,
    }


def test_without_and_with_an_old_core(ansible: Ansible, bare: Path) -> None:
    interpreter = bare / "bin" / "python"
    missing = ansible.play(task(interpreter))
    assert missing["read"]["failure"]["code"] == "missing_library"
    assert "pulumi-hosting >= 0.1.0" in missing["read"]["msg"]
    assert str(interpreter) in missing["read"]["msg"]

    (packages,) = bare.glob("lib/python*/site-packages")
    (packages / "all.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    old = packages / "pulumi_hosting-0.0.9.dist-info"
    old.mkdir()
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: pulumi-hosting\nVersion: 0.0.9\n")
    outdated = ansible.play(task(interpreter))
    assert outdated["read"]["failure"]["code"] == "missing_library"
    assert "version 0.0.9 is installed" in outdated["read"]["msg"]
    assert str(interpreter) in outdated["read"]["msg"]
    for played in (missing, outdated):
        assert "Traceback" not in played.output
        assert "\n" not in played["read"]["msg"]
