"""The collection's molecule scenario: declared, declared again without a change, looked at, removed."""

import os
import subprocess
from typing import Any

import pytest

from tests.ansible.conftest import BIN, COLLECTION, Ansible

pytestmark = pytest.mark.slow


def test_the_scenario(ansible: Ansible, emulator: Any) -> None:
    environ = {
        name: value for name, value in ansible.environ.items() if not name.startswith("ANSIBLE_CALLBACK")
    }
    done = subprocess.run(
        [str(BIN / "molecule"), "test"],
        cwd=COLLECTION / "extensions",
        env={**environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    for step in ("syntax", "converge", "idempotence", "verify", "cleanup"):
        assert f"default > {step}: Executed: Successful" in done.stdout, done.stdout
    assert len(ansible.server_charges()) == 1
    assert ansible.living == []
