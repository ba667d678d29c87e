"""The Containerfile: its commands one by one, in a virtual environment instead of an image.
CI builds the image."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest

from pulumi_hosting.client.client import Client
from tests.support.waiting import HANG_SECONDS
from tests.test_install import run

ROOT = Path(__file__).parent.parent
STEPS = [
    line.partition(" ")[::2]
    for line in (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def only(instruction: str) -> str:
    (found,) = [rest for name, rest in STEPS if name == instruction]
    return found


def test_it_runs_without_root_and_as_a_user_who_exists() -> None:
    last = [name for name, _ in STEPS].index("FROM", 1)
    assert f"useradd --uid {only('USER')} " in dict(STEPS[last:])["RUN"]
    assert int(only("USER")) > 0
    assert [name for name, _ in STEPS[last:]].index("USER") > [name for name, _ in STEPS[last:]].index("RUN")


def test_it_copies_what_the_repository_has() -> None:
    copied = [rest.split()[:-1] for name, rest in STEPS if name == "COPY" and "--from" not in rest]
    assert {"pyproject.toml", "pulumi_hosting"} < {name for names in copied for name in names}
    assert all((ROOT / name).exists() for names in copied for name in names)


def test_it_and_the_source_plugin_can_use_a_shared_store() -> None:
    extras = [rest.partition(".[")[2].partition("]")[0] for name, rest in STEPS if name == "RUN"]
    plugin = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()[-1]
    assert [found.split(",")[-1] for found in extras if found] == ["redis"]
    assert plugin == ".[pulumi,redis]"


@pytest.mark.slow
def test_its_commands_make_what_it_runs(tmp_path: Path) -> None:
    source, home, opt = tmp_path / "source", tmp_path / "home", tmp_path / "hosting"
    home.mkdir()
    for name, rest in STEPS:
        *names, target = rest.split()
        if name == "COPY" and "--from" not in rest:
            for copied in names:
                place = source / target / (copied.rpartition("/")[2] if target.endswith("/") else "")
                place.parent.mkdir(parents=True, exist_ok=True)
                ignored = shutil.ignore_patterns("__pycache__")
                if (ROOT / copied).is_dir():
                    shutil.copytree(ROOT / copied, place, ignore=ignored)
                else:
                    shutil.copy(ROOT / copied, place)
    commands = [rest.replace("/opt/hosting", str(opt)) for name, rest in STEPS if name == "RUN"]
    make, *installs, _ = commands  # the last one, of the image alone, makes a user
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    run(make, str(home), path)
    (site,) = (opt / "lib").glob("python3*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    for command in installs:
        # ansible-core is there already, and its programs are those of the tests
        command = command.replace(f"{opt}/bin/ansible-galaxy", "ansible-galaxy")
        run(f"cd {source} && {command}", str(home), path)
    assert {"pulumi-hosting", "pulumi-resource-hosting"} <= {path.name for path in (opt / "bin").iterdir()}
    listed = run(f"ansible-galaxy collection list -p {opt}/collections hosting.cloud", str(home), path)
    assert str(opt) in listed

    check = json.loads(only("HEALTHCHECK").partition(" CMD ")[2])
    entry, arguments = json.loads(only("ENTRYPOINT")), json.loads(only("CMD"))
    arguments[arguments.index("0.0.0.0")] = "127.0.0.1"  # noqa: S104  # the container's own network
    arguments[arguments.index("8080")] = "0"
    environ = {"PATH": f"{opt}/bin:/usr/bin:/bin", "HOME": str(home)}
    emulate = [str(opt / "bin" / entry[0]), *arguments]
    with subprocess.Popen(emulate, cwd=home, env=environ, stdout=subprocess.PIPE, text=True) as emulator:
        assert emulator.stdout is not None
        ready = json.loads(emulator.stdout.readline())
        port = str(httpx.URL(ready["base_url"]).port)
        checked = [str(opt / "bin" / check[0]), *(part.replace("8080", port) for part in check[1:])]
        assert subprocess.run(checked, env=environ, timeout=HANG_SECONDS, check=False).returncode == 0
        for host, status in (("emulator", 200), ("elsewhere.example", 403)):
            answer = httpx.get(f"{ready['control_url']}/objects", headers={"Host": host}, trust_env=False)
            assert answer.status_code == status
        with Client(ready["live_key"], ready["base_url"]) as client:
            assert client.me().livemode
        emulator.terminate()
    unhealthy = subprocess.run(checked, env=environ, stderr=subprocess.DEVNULL, check=False)
    assert unhealthy.returncode != 0
