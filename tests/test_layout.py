"""The repository as a whole: what ships, what is generated, what must not be written anywhere."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.resources import RESOURCES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pulumi_hosting"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def python(code: str, *arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments], check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


# --- what ships --------------------------------------------------------------------------------------------


def test_pulumi_does_not_take_the_package_for_a_plugin_to_download() -> None:
    assert json.loads((PACKAGE / "pulumi-plugin.json").read_text(encoding="utf-8")) == {"resource": False}


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_the_wheel_carries_everything_and_nothing_else(tmp_path: Path) -> None:
    # Built by the backend itself, in this environment: no download, no isolation.
    code = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    wheel = tmp_path / run.stdout.split()[-1]
    names = set(
        python(
            "import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep='\\n')", str(wheel)
        ).split()
    )
    package = {str(path.relative_to(ROOT)) for path in tracked_files() if path.is_relative_to(PACKAGE)}
    assert package <= names
    assert {"pulumi_hosting/py.typed", "pulumi_hosting/pulumi-plugin.json"} <= names
    pipelines = ROOT / "examples" / "gitops"
    assert {name.partition("/")[2] for name in names if name.startswith("pulumi_hosting_gitops/")} == {
        str(path.relative_to(pipelines)) for path in tracked_files() if path.is_relative_to(pipelines)
    }
    assert {name.split("/")[0] for name in names} == {
        "pulumi_hosting",
        "pulumi_hosting_gitops",
        f"pulumi_hosting-{PROJECT['project']['version']}.dist-info",
    }


# Everything that comes with an extra. What is left is what `pip install pulumi-hosting` gives.
EXTRAS = (
    "pulumi",
    "grpc",
    "google",
    "click",
    "cryptography",
    "starlette",
    "uvicorn",
    "prometheus_client",
    "uvloop",
    "httptools",
    "yaml",
    "pytest",
    "ansible",
)

BLOCKED_IMPORT = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[2].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize(
    "module",
    ["pulumi_hosting", "pulumi_hosting.client.client", "pulumi_hosting.webhooks", "pulumi_hosting.resources"],
)
def test_the_base_install_is_enough(module: str) -> None:
    python(BLOCKED_IMPORT, module, ",".join(EXTRAS))


def test_the_blocker_of_the_test_above_blocks() -> None:
    run = subprocess.run(
        [sys.executable, "-c", BLOCKED_IMPORT, "grpc", "grpc"], check=False, capture_output=True, text=True
    )
    assert "No module named 'grpc'" in run.stderr


def test_importing_the_package_loads_nothing_big() -> None:
    loaded = python("import sys, pulumi_hosting; print(*sys.modules)").split()
    assert not {"httpx", "pydantic", "pulumi", "grpc", "starlette", "uvicorn"} & set(loaded)


# --- what is written twice must be equal -------------------------------------------------------------------


def test_the_links_of_the_documentation_lead_somewhere() -> None:
    broken = []
    for page in (path for path in tracked_files() if path.suffix == ".md"):
        # Code is no link, though a pattern may look like one.
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            goal = (page.parent / path) if path else page
            if path.endswith("/"):  # as Pulumi's registry links its pages
                goal = goal.with_suffix(".md")
            if not goal.exists() or (anchor and anchor not in _anchors(goal)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# --- what must not be written ------------------------------------------------------------------------------

# Built from pieces, so that this file does not find itself.
PLACES = {
    "a package index": re.compile(
        "|".join(
            [
                "pypi" + r"\.org",
                "python" + r"hosted\.org",
                "files\\.python" + "hosted",
                "--find" + "-links [^ ]",
            ]
        )
    ),
    "a directory of one machine": re.compile(r"(?<![\w.])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me)/\w"),
    "a private key": re.compile("-----BEGIN " + r"[A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}"),
}


@pytest.mark.parametrize("what", PLACES)
def test_no_file_names(what: str) -> None:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in PLACES[what].finditer(text)]
    assert found == [], "\n".join(found)


def test_every_exception_to_a_rule_says_why() -> None:
    mark = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:\s*no cover)(?P<rest>.*)$")
    bare = []
    for path in (path for path in tracked_files() if path.suffix == ".py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = mark.search(line)
            if match and not re.search(r"[a-z]+ [a-z]+", match["rest"]):  # words, after the codes
                bare.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert bare == [], "an exception to a rule carries its reason on the same line:\n" + "\n".join(bare)


# --- what is locked ----------------------------------------------------------------------------------------


def test_the_lock_holds_every_direct_dependency_with_hashes() -> None:
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    locked = {_name(line) for line in re.findall(r"^[A-Za-z0-9][^ =]*(?===)", lock, re.MULTILINE)}
    wanted: list[str] = [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]
    extras: dict[str, Any] = PROJECT["project"]["optional-dependencies"]
    wanted += [requirement for extra in extras.values() for requirement in extra]
    names = {_name(requirement) for requirement in wanted} - {"pulumi-hosting"}
    assert names <= locked
    for block in re.split(r"\n(?=\S)", lock):
        assert block.startswith("#") or "--hash=sha256:" in block, block.splitlines()[0]


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0].lower().replace("_", "-").replace(".", "-")


def test_every_dependency_has_its_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    bare = [
        line.strip() for line in lines if re.match(r'^\s+"[\w.-]+(\[\w+\])?>=', line) and "# " not in line
    ]
    assert bare == []


# --- make --------------------------------------------------------------------------------------------------


def test_make_alone_lists_the_commands() -> None:
    listing = subprocess.run(["make"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert {"demo", "test", "lint", "bench", "generate", "lock"} <= set(re.findall(r"make (\w+)", listing))


# --- layers ------------------------------------------------------------------------------------------------


def test_resources_do_not_import_each_other() -> None:
    def kind_of(module: str) -> str | None:
        kinds = [kind for kind in RESOURCES if f"{module}_".startswith(f"{kind}_")]
        return max(kinds, key=len, default=None)

    package = "pulumi_hosting.resources."
    found = []
    for path in (PACKAGE / "resources").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {
            name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
        }
        others = {kind_of(name.removeprefix(package)) for name in imported if name.startswith(package)}
        if kind_of(path.stem) is not None:
            found += [(path.stem, other) for other in others - {None, kind_of(path.stem)}]
    assert found == []


# --- size --------------------------------------------------------------------------------------------------

MOST_LINES = 500


def test_no_file_written_by_hand_is_long() -> None:
    suffixes = {".py", ".pyi", ".j2", ".md", ".yml", ".yaml", ".toml", ".sh", ".ts"}
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked_files()
        if path.suffix in suffixes and "recordings" not in path.parts
        for text in [path.read_text(encoding="utf-8")]
        if (lines := text.count("\n")) > MOST_LINES and "Generated by" not in text[:400]
    }
    assert long == {}


# --- one name, one meaning ---------------------------------------------------------------------------------

# Modules that share a name because they are the same thing at two places.
SAME_THING = {
    "base": "the base class of the folder",
    "client": "the client, and the documentation fragment of its options",
    "clock": "the time, handed in",
    "cost": "what making something charges, and the command that adds it up",
    "errors": "the errors of the package",
    "failures": "an error as the frontend shows it",
    "module_scopes": "the scopes of each module; one is generated by the other",
    "key_owner": "whose key a client has; one is generated from the other, as is the client itself",
    "lookups": "the functions of Pulumi are generated from the schema's lookups",
    "order_wait": "the wait of both clients; one is generated from the other",
    "periods": "billing periods, as the client and as the service count them",
    "version": "the version, as Pulumi and as Ansible spell it",
}
# Folders with one file per area, resource or module: the files are named after what they are about.
BY_SUBJECT = re.compile(
    r"pulumi_hosting/(api/models|api/operations|client/services|client/async_services)/"
    r"|pulumi_hosting/(emulator/handlers|resources|actions)/"
    r"|pulumi_hosting/(cli|reports|provider/sdk/declarations|provider/sdk/results)/"
    r"|ansible_collections/hosting/cloud/plugins/(action|callback|inventory|doc_fragments|modules)/"
)


def test_two_modules_of_one_name_mean_the_same() -> None:
    code = re.compile(r"(pulumi_hosting|ansible_collections/hosting/cloud/plugins|generate)/.*\.py")
    names: dict[str, set[str]] = {}
    for path in tracked_files():
        file = str(path.relative_to(ROOT))
        is_witness = file.startswith(
            "pulumi_hosting/certify/"
        )  # it stands apart, and none of ours imports it
        if code.fullmatch(file) and not path.stem.startswith("__") and not is_witness:
            names.setdefault(path.stem, set()).add("a subject" if BY_SUBJECT.match(file) else file)
    twice = {name for name, files in names.items() if len(files) > 1}
    assert twice - set(SAME_THING) == set(), "rename one of them, or say what they have in common"
    assert set(SAME_THING) - twice == set(), "no longer needed here"
