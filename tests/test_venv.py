"""``tools/venv.sh`` makes an environment from a lock file, with an empty home, no terminal and the index that
pip knows. The lock file here holds uv, what builds the project, and little else.
"""

import hashlib
import os
import re
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILD = ("uv", "hatchling", "editables", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers")
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "sample"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["sample"]
"""
FELL_BACK = "uv could not install it: pip does"
WRONG = "0" * 64

pytestmark = pytest.mark.slow


def locked(name: str) -> str:
    """The lines of the lock file that pin a package."""
    text = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(name)}==(?:.*\\\n)*.*\n", text, re.MULTILINE)
    assert found, name
    return found[0]


@dataclass
class Clone:
    """A project with our scripts, its lock file, and an environment that is made from it."""

    folder: Path
    lines: dict[str, str] = field(default_factory=lambda: {name: locked(name) for name in BUILD})

    @property
    def bin(self) -> Path:
        return self.folder / ".venv" / "bin"

    def make(self, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the script with an empty home, outside of a terminal."""
        (self.folder / "requirements-dev.lock").write_text("".join(self.lines.values()))
        home = self.folder / "home"
        subprocess.run(["rm", "-rf", str(home)], check=True)
        home.mkdir()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
        return subprocess.run(
            ["bash", "tools/venv.sh", ".venv"],
            cwd=self.folder,
            env={**environ, "HOME": str(home), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )

    def has(self, module: str) -> bool:
        return (
            subprocess.run([str(self.bin / "python"), "-c", f"import {module}"], check=False).returncode == 0
        )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone whose environment is ready. The tests add to it, one after the other."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "tools").mkdir()
    for script in ("venv.sh", "python.sh"):
        (folder / "tools" / script).write_text((ROOT / "tools" / script).read_text(encoding="utf-8"))
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "sample").mkdir()
    (folder / "sample" / "__init__.py").touch()
    made = Clone(folder)
    done = made.make()
    assert (done.returncode, done.stderr) == (0, "")
    assert "installing what requirements-dev.lock names" in done.stdout
    assert made.has("hatchling")
    assert made.has("sample")
    assert (made.bin / "uv").exists()
    assert (made.bin / "pip").exists()
    return made


def installer(clone: Clone, package: str) -> str:
    """What installed a package: tools write their name beside it."""
    (note,) = clone.folder.glob(f".venv/lib/python3*/site-packages/{package}-*.dist-info/INSTALLER")
    return note.read_text().strip()


def test_uv_installs_and_pip_installs_uv(clone: Clone) -> None:
    assert installer(clone, "uv") == "pip"
    assert {installer(clone, name) for name in ("hatchling", "packaging", "sample")} == {"uv"}


def test_a_home_that_cannot_be_written_to_has_no_cache(clone: Clone) -> None:
    clone.lines["iniconfig"] = locked("iniconfig")
    done = clone.make(HOME="/dev/null/home")
    assert (done.returncode, done.stderr) == (0, "")
    assert installer(clone, "iniconfig") == "uv"


def test_pip_installs_where_uv_fails(clone: Clone) -> None:
    clone.lines["mdurl"] = locked("mdurl")
    done = clone.make(UV_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    assert FELL_BACK in done.stderr
    assert installer(clone, "mdurl") == "pip"


def test_pip_installs_where_uv_cannot_be_installed(clone: Clone) -> None:
    subprocess.run([str(clone.bin / "pip"), "uninstall", "--quiet", "--yes", "uv"], check=True)
    right = clone.lines.pop("uv")
    clone.lines["markupsafe"] = locked("markupsafe")
    try:
        done = clone.make()
    finally:
        clone.lines["uv"] = right
    assert done.returncode == 0, done.stderr
    assert FELL_BACK in done.stderr
    assert installer(clone, "markupsafe") == "pip"


def test_a_wrong_hash_stops_both(clone: Clone) -> None:
    subprocess.run([str(clone.bin / "pip"), "uninstall", "--quiet", "--yes", "mdurl"], check=True)
    clone.lines["mdurl"] = re.sub(r"sha256:\w+", f"sha256:{WRONG}", locked("mdurl"))
    try:
        done = clone.make()
    finally:
        del clone.lines["mdurl"]
    assert done.returncode != 0
    assert FELL_BACK in done.stderr
    assert WRONG in done.stderr
    assert not clone.has("mdurl")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """A package index with one package: its address, the line that pins the package, and who asked."""
    wheel = tmp_path / "lonely-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as parts:
        parts.writestr("lonely.py", "")
        parts.writestr("lonely-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: lonely\nVersion: 1\n")
        parts.writestr(
            "lonely-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        parts.writestr("lonely-1.dist-info/RECORD", "")
    content, asked = wheel.read_bytes(), list[str]()
    digest = hashlib.sha256(content).hexdigest()

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers["User-Agent"])
            page = f'<a href="/{wheel.name}#sha256={digest}">{wheel.name}</a>'.encode()
            body = content if self.path.endswith(".whl") else page
            self.send_response(200 if "lonely" in self.path else 404)
            self.send_header("Content-Type", "text/html" if body is page else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield (
        f"http://127.0.0.1:{server.server_port}/simple",
        f"lonely==1 \\\n    --hash=sha256:{digest}\n",
        asked,
    )
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"])
def test_uv_asks_the_index_that_pip_knows(clone: Clone, index: tuple[str, str, list[str]], name: str) -> None:
    url, line, asked = index
    subprocess.run(
        [str(clone.bin / "pip"), "uninstall", "--quiet", "--yes", "lonely"], check=True, capture_output=True
    )
    clone.lines["lonely"] = line
    try:
        done = clone.make(**{name: url}, NO_PROXY="127.0.0.1")
    finally:
        del clone.lines["lonely"]
    assert (done.returncode, done.stderr) == (0, "")
    assert installer(clone, "lonely") == "uv"
    assert any("uv/" in agent for agent in asked)
