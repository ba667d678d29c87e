"""The repository as a source plugin of Pulumi's CLI: one line installs it, in every language, with no plugin on
PATH and nothing of ours on an index. What it depends on comes from the package index.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.emulator import Running
from pulumi_hosting.rehearsal.control_client import Control
from tests.support import git_server
from tests.support.programs import PUBLIC_KEY
from tests.test_layout import tracked_files

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION, URL = PROJECT["version"], PROJECT["urls"]["Repository"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.program("pulumi"),
]

YAML = """\
name: shop
runtime: yaml
resources:
  web:
    type: hosting:index:Server
    properties: {tariffId: 1, os: debian-12}
"""
TYPESCRIPT = """\
import * as hosting from "pulumi-hosting";

new hosting.Server("web", { tariffId: 1, os: "debian-12" });
"""
PYTHON = """\
import pulumi_hosting_sdk as hosting

hosting.Server("web", tariff_id=1, os="debian-12")
"""
GO = """\
package main

import (
	"IMPORT"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		_, err := hosting.NewServer(ctx, "web", &hosting.ServerArgs{
			TariffId: pulumi.Int(1), Os: pulumi.String("debian-12"),
		})
		return err
	})
}
"""


def needs_host(language: str) -> pytest.MarkDecorator:
    return pytest.mark.program(f"pulumi-language-{language}")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the repository, as it is now, without the tests."""
    folder = tmp_path_factory.mktemp("team") / "pulumi-hosting"
    for path in (path for path in tracked_files() if not path.is_relative_to(ROOT / "tests")):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """Commit everything, as the version."""
    for command in (
        ["add", "--all"],
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "all"],
        ["tag", "--force", f"v{VERSION}"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True, stdout=subprocess.DEVNULL)


@dataclass
class Shop:
    """A program in a folder of its own, with a home of Pulumi's in which nothing is installed."""

    emulator: Running
    folder: Path
    home: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tools = self.home / "bin"
        for place in (self.folder, self.home / "state", tools):
            place.mkdir(parents=True)
        (tools / "python3").symlink_to(Path(sys.executable).resolve())
        programs = ("pulumi", "node", "npm", "go")
        folders = {str(Path(found).parent) for name in programs if (found := shutil.which(name))}
        folders.discard(str(Path(sys.executable).parent))  # it has our plugin
        path = os.pathsep.join((str(tools), *sorted(folders), "/usr/bin", "/bin"))
        assert shutil.which("pulumi-resource-hosting", path=path) is None
        inherited = ("HOME", "SSL_CERT_FILE", "GOFLAGS", "GOPROXY", "GOSUMDB", "GOMODCACHE", "GOCACHE")
        self.environ = {
            **{name: os.environ[name] for name in inherited if name in os.environ},
            **{
                name: value for name, value in os.environ.items() if name.lower().startswith(("pip_", "npm_"))
            },
            "PATH": path,
            "LC_ALL": "C.UTF-8",
            "PULUMI_HOME": str(self.home / "pulumi"),
            "PULUMI_BACKEND_URL": f"file://{self.home / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "x",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_REGISTRY_RESOLVE": "true",
            "NO_COLOR": "1",
            "npm_config_prefer_offline": "true",
            "GOFLAGS": "-mod=mod",
            "HOSTING_API_KEY": self.emulator.live_key,
            "HOSTING_BASE_URL": self.emulator.base_url,
            "HOSTING_RUNTIME_DIR": os.environ["HOSTING_RUNTIME_DIR"],
        }

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name.replace("__", ".")).write_text(text, encoding="utf-8")

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        shown = done.stdout + done.stderr
        assert done.returncode == 0, shown[-6000:]
        return shown

    def buys_and_deletes_one_server(self, times: int = 1) -> None:
        """``times``: how many the account has bought then."""
        control = Control(self.emulator.control_url)
        self("up", "--yes", "--skip-preview")
        assert [server["name"] for server in alive(control)] == ["web"]
        self("preview", "--expect-no-changes")
        self("destroy", "--yes")
        assert alive(control) == []
        bought = [row for row in control.ledger() if row["operation"] == "create_server"]
        assert len(bought) == times


def alive(control: Control) -> list[dict[str, Any]]:
    return [server for server in control("GET", "/objects")["servers"] if server["status"] == "active"]


@pytest.fixture
def shop(emulator: Running, tmp_path: Path) -> Shop:
    return Shop(emulator, tmp_path / "shop", tmp_path / "home")


def add(shop: Shop, source: str) -> str:
    shown = shop("package", "add", source)
    assert "Added package" in shown
    return shown


@needs_host("yaml")
def test_a_program_in_yaml_names_the_path_of_a_clone(shop: Shop, repository: Path) -> None:
    shop.write(Pulumi__yaml=f"{YAML}packages:\n  hosting: {repository}\n")
    shop("install")
    shop("stack", "init", "dev")
    shop.buys_and_deletes_one_server()
    status = ["git", "status", "--porcelain"]
    assert subprocess.run(status, cwd=repository, check=True, capture_output=True).stdout == b""


@needs_host("nodejs")
def test_a_program_in_typescript_adds_the_path_of_a_clone(
    shop: Shop, repository: Path, npm_modules: Path, tmp_path: Path
) -> None:
    shop.write(Pulumi__yaml="name: shop\nruntime: nodejs\n", index__ts=TYPESCRIPT)
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(ROOT / "examples" / "typescript" / name, shop.folder)
    shutil.copytree(npm_modules, shop.folder / "node_modules", symlinks=True)
    add(shop, str(repository))
    shop("stack", "init", "dev")
    shop.buys_and_deletes_one_server()
    begins(shop, template(repository, tmp_path, "typescript"))


@needs_host("python")
def test_a_program_in_python_adds_the_path_of_a_clone(shop: Shop, repository: Path, tmp_path: Path) -> None:
    runtime = "{name: python, options: {toolchain: pip, virtualenv: venv}}"
    shop.write(Pulumi__yaml=f"name: shop\nruntime: {runtime}\n", requirements__txt="pulumi>=3.227\n")
    (shop.folder / "__main__.py").write_text(PYTHON, encoding="utf-8")
    add(shop, str(repository))
    shop("stack", "init", "dev")
    shop.buys_and_deletes_one_server()
    begins(shop, template(repository, tmp_path, "python"))


@needs_host("go")
def test_a_program_in_go_adds_the_path_of_a_clone(shop: Shop, repository: Path) -> None:
    empty = "package main\n\nfunc main() {}\n"
    shop.write(Pulumi__yaml="name: shop\nruntime: go\n", go__mod="module shop\n\ngo 1.24\n", main__go=empty)
    shown = add(shop, str(repository))
    (path,) = re.findall(r'^ +"(\S+/hosting)"$', shown, re.MULTILINE)  # "import … in your Go code with"
    shop.write(main__go=GO.replace("IMPORT", path))
    shop("stack", "init", "dev")
    shop.buys_and_deletes_one_server()


def with_address(folder: Path, address: str) -> None:
    """Let the templates in ``folder`` name another address of the repository."""
    for path in folder.glob("*/Pulumi.yaml"):
        text = path.read_text(encoding="utf-8")
        assert URL in text
        path.write_text(text.replace(URL, address), encoding="utf-8")


def template(repository: Path, tmp_path: Path, language: str) -> str:
    """A copy of the template that names the path of the clone."""
    shutil.copytree(repository / "templates", tmp_path / "templates")
    with_address(tmp_path / "templates", str(repository))
    return str(tmp_path / "templates" / language)


@pytest.fixture
def address(repository: Path, tmp_path: Path, shop: Shop) -> Iterator[str]:
    """The https address of the repository on a server of this machine, whose certificate the shop trusts."""
    served, work = tmp_path / "served", tmp_path / "work"
    address = "https://127.0.0.1/team/pulumi-hosting.git"
    subprocess.run(["git", "clone", "-q", str(repository), str(work)], check=True)
    with_address(work / "templates", address)
    commit(work)
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(work), str(served / "team/pulumi-hosting.git")], check=True
    )
    try:
        with git_server.serving(served, tmp_path) as trusted:
            shop.environ["SSL_CERT_FILE"] = str(trusted)
            yield address
    except PermissionError:
        pytest.skip("only root may listen on port 443 here")


@needs_host("yaml")
def test_a_program_in_yaml_adds_the_address_of_the_repository_or_begins_with_its_template(
    shop: Shop, address: str
) -> None:
    shop.write(Pulumi__yaml=YAML)
    add(shop, address)
    (installed,) = (shop.home / "pulumi" / "plugins").glob("resource-*/PulumiPlugin.yaml")
    assert installed.parent.name == f"resource-127.0.0.1_team_pulumi-hosting.git-v{VERSION}"
    shop("stack", "init", "dev")
    shop.buys_and_deletes_one_server()
    shown = shop("package", "get-schema", f"{address}@{VERSION}")
    schema = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    # where a machine that has only the program and its classes finds the plugin
    assert schema["pluginDownloadURL"] == address.replace("https://", "git://")
    begins(shop, f"{address}/templates/yaml")


def begins(shop: Shop, template: str) -> None:
    """Make a program of a template, as a new user does, and run it."""
    shop.folder = shop.folder.with_name("new")
    shop.folder.mkdir()
    given = {
        "hosting:baseUrl": shop.environ.pop("HOSTING_BASE_URL"),
        "tariff": "1",
        "publicKey": PUBLIC_KEY,
    }
    settings = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
    shop("new", template, "--yes", "--name", "begun", "--stack", "dev", *settings)
    shop.buys_and_deletes_one_server(times=2)
