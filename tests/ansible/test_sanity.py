"""ansible-test over the collection: sanity without an ignore entry, units, integration. Only with ``-m sanity``: the first run installs its
own tools and takes minutes; they are kept in ``.ansible`` of the checkout."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible.conftest import BIN, COLLECTION, ROOT

pytestmark = pytest.mark.sanity
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def environ() -> Iterator[dict[str, str]]:
    """A HOME that persists, and on PATH the Python that is asked for as itself: shims of version managers fail once the environment is
    cleared."""
    home = ROOT / ".ansible"
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for release in ("24_2", "25_2"):
        shutil.copy(Path(__file__).with_name("get_pip.py"), cache / f"get_pip_{release}.py")
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    path = os.pathsep.join([str(BIN), str(Path(sys.base_prefix) / "bin"), "/usr/bin", "/bin"])
    yield {**kept, "HOME": str(home), "LC_ALL": "C.UTF-8", "ANSIBLE_COLLECTIONS_PATH": str(ROOT), "PATH": path}
    shutil.rmtree(COLLECTION / "tests" / "output", ignore_errors=True)


def ansible_test(environ: dict[str, str], what: str, *arguments: str) -> str:
    command = [str(BIN / "ansible-test"), what, "--local", "--python", VERSION, *arguments]
    done = subprocess.run(
        command,
        cwd=COLLECTION,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_sanity(environ: dict[str, str]) -> None:
    assert list((COLLECTION / "tests").glob("sanity/ignore*")) == []
    assert 'Running sanity test "validate-modules"' in ansible_test(environ, "sanity")


def test_units(environ: dict[str, str]) -> None:
    assert "passed" in ansible_test(environ, "units")


def test_integration(environ: dict[str, str], emulator: Any) -> None:
    config = COLLECTION / "tests" / "integration" / "integration_config.yml"
    assert not config.exists(), "an own configuration stands here: not touched"
    config.touch(mode=0o600)
    try:
        config.write_text(yaml.safe_dump({"hosting_base_url": emulator.base_url, "hosting_api_key": emulator.live_key}))
        assert "failed=0" in ansible_test(environ, "integration")
    finally:
        config.unlink()
        config.with_name("inventory").unlink(missing_ok=True)  # ansible-test leaves the one it made
