"""Installation as README and docs/installing.md describe it: each block runs as pasted."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path
from uuid import UUID

import pytest

from tools.package_page import absolute

ROOT = Path(__file__).parent.parent
VERSION = version("pulumi-hosting")
BLOCK = re.compile(r"(?:^    .+\n)+", re.MULTILINE)
OF_TESTS = next(folder for folder in sys.path if folder.endswith("site-packages"))
AS_ON_THIS_MACHINE = f"""
set -e
python3() {{
    command python3 "$@"
    echo {OF_TESTS} > "$(echo "$3"/lib/python3*/site-packages)/dependencies.pth"
    for command in ansible-galaxy ansible-playbook; do
        sed "1s|.*|#!$3/bin/python|" {Path(sys.executable).parent}/$command > "$3/bin/$command"
        chmod +x "$3/bin/$command"
    done
}}
if ! command -v pulumi > /dev/null; then pulumi() {{ pulumi-hosting offline "$@"; }}; fi
trap 'kill $HOSTING_EMULATOR_PID 2> /dev/null || true' EXIT
"""
"""Before a block: its environments see the packages that are here, so nothing is downloaded."""


def blocks(section: str, page: str = "README.md") -> list[str]:
    """The commands of a section, as they are pasted."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [textwrap.dedent(block) for block in BLOCK.findall(text)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what a release consists of."""
    folder = tmp_path_factory.mktemp("dist")
    run(f".ci/build {folder}", os.environ["HOME"], os.environ["PATH"])
    return folder


def run(command: str, home: str, path: str) -> str:
    """A command of the README. The packages that it needs are there already, so nothing is downloaded."""
    environ = {
        "HOME": home,
        "PATH": path,
        "BIN": str(Path(sys.executable).parent),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false",  # where this checkout is
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of build_isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


ACCOUNT = """
python -c "
import json, os, urllib.request
found = json.load(urllib.request.urlopen(os.environ['HOSTING_EMULATOR_CONTROL_URL'] + '/objects'))
print('on the account:', [server['name'] for server in found['servers']])"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "sections", [("Pulumi", "Forty servers that were made by hand"), ("Ansible",)], ids=lambda names: names[0]
)
def test_the_blocks_of_the_readme_run_as_pasted(sections: tuple[str, ...], tmp_path: Path) -> None:
    """In an empty home, and the account has what they declare."""
    pasted = "\n".join(block for section in sections for block in blocks(section))
    pulumi = [str(Path(found).parent)] if (found := shutil.which("pulumi")) else []
    python = Path(sys.executable).resolve().parent
    command = AS_ON_THIS_MACHINE + pasted + ACCOUNT
    told = run(command, str(tmp_path), ":".join([str(python), *pulumi, "/usr/bin", "/bin"]))
    assert told.splitlines()[-1] == "on the account: ['web']"


@pytest.mark.slow
def test_the_files_that_a_page_names_install_everything(built: Path, tmp_path: Path) -> None:
    build, *install = blocks("Files for other machines", "docs/installing.md")[0].splitlines()
    assert build == ".ci/build dist"
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    site = next((tmp_path / "venv" / "lib").glob("python3*/site-packages"))
    (site / "dependencies.pth").write_text(f"{OF_TESTS}\n")
    path = f"{python.parent}:{Path(sys.executable).parent}:/usr/bin:/bin"
    for command in install:
        run(command.replace("dist/", f"{built}/"), str(tmp_path), path)

    told = run(
        "cd $HOME && python -c 'import pulumi_hosting, pulumi_hosting.native as n; print(n.__file__)' "
        "&& pulumi-hosting --version && ansible-galaxy collection list hosting.cloud",
        str(tmp_path),
        path,
    )
    module, printed, *collections = told.splitlines()
    assert module.startswith(str(site))
    assert printed.endswith(VERSION)
    assert str(tmp_path / ".ansible") in "".join(collections)


@pytest.mark.slow
def test_a_release_is_a_wheel_an_sdist_a_tarball_a_list_of_parts_and_their_checksums(built: Path) -> None:
    rows = [line.split("  ") for line in (built / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in rows}
    assert set(sums) == {path.name for path in built.iterdir()} - {"SHA256SUMS", ".gitignore"}
    assert len(sums) == 4
    for name, digest in sums.items():
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == digest
    with tarfile.open(built / f"pulumi_hosting-{VERSION}.tar.gz") as sdist:
        assert f"pulumi_hosting-{VERSION}/tools/package_page.py" in sdist.getnames()  # it builds from itself


@pytest.mark.slow
def test_a_release_that_is_built_again_has_the_same_bytes(built: Path, tmp_path: Path) -> None:
    run(f"umask 077; .ci/build {tmp_path}", os.environ["HOME"], os.environ["PATH"])
    assert (tmp_path / "SHA256SUMS").read_text() == (built / "SHA256SUMS").read_text()


@pytest.mark.slow
def test_the_tarball_of_the_collection_holds_what_ansible_galaxy_lists(built: Path) -> None:
    with tarfile.open(built / f"hosting-cloud-{VERSION}.tar.gz") as archive:
        members = archive.getmembers()
        listing = archive.extractfile("FILES.json")
        assert listing is not None
        listed = {row["name"]: row for row in json.load(listing)["files"]}
        for member in members:
            digest = listed.get(member.name, {}).get("chksum_sha256")
            if digest is not None and (file := archive.extractfile(member)):
                assert hashlib.sha256(file.read()).hexdigest() == digest
    assert {member.name for member in members} == {*listed, "FILES.json", "MANIFEST.json"} - {"."}
    assert {(member.mtime, member.uid, member.uname) for member in members} == {(315532800, 0, "")}


@pytest.mark.slow
def test_the_list_of_parts_names_every_dependency_once_and_the_files(built: Path) -> None:
    found = json.loads((built / f"pulumi_hosting-{VERSION}.cdx.json").read_text())
    assert (found["bomFormat"], found["specVersion"], found["version"]) == ("CycloneDX", "1.6", 1)
    assert UUID(found["serialNumber"].removeprefix("urn:uuid:")).version == 5
    parts = {part["name"]: part for part in (found["metadata"]["component"], *found["components"])}
    refs = [part["bom-ref"] for part in parts.values()]
    assert len({*refs}) == len(refs) == len(found["components"]) + 1
    for row in found["dependencies"]:
        assert {row["ref"], *row["dependsOn"]} <= {*refs}
    for name, file in (
        ("pulumi-hosting", f"pulumi_hosting-{VERSION}-py3-none-any.whl"),
        ("hosting.cloud", f"hosting-cloud-{VERSION}.tar.gz"),
    ):
        digest = hashlib.sha256((built / file).read_bytes()).hexdigest()
        assert parts[name]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    for name, scope in (("httpx", "required"), ("pydantic-core", "required"), ("pulumi", "optional")):
        assert parts[name]["scope"] == scope
        assert parts[name]["version"] == version(name)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra in project["optional-dependencies"].keys() - {"dev"}:
        lines += project["optional-dependencies"][extra]
    direct = {re.split(r"[\[>]", line)[0] for line in lines}
    assert {name.lower() for name in direct} <= set(parts)
    assert not {"mypy", "ruff", "hatchling"} & set(parts)  # what only tests and builds need


def test_a_tag_that_is_not_the_version_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(ROOT / ".ci" / "build"), str(tmp_path), "v9.9.9"],
        env={**os.environ, "BIN": str(Path(sys.executable).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert f"v9.9.9 is not v{VERSION}. Next:" in done.stderr


@pytest.mark.slow
def test_the_links_of_the_package_page_are_absolute(built: Path) -> None:
    with zipfile.ZipFile(built / f"pulumi_hosting-{VERSION}-py3-none-any.whl") as wheel:
        metadata = Parser().parsestr(wheel.read(f"pulumi_hosting-{VERSION}.dist-info/METADATA").decode())
    page = metadata.get_payload()
    assert isinstance(page, str)
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) == 6  # five, and the picture
    assert [link for link in links if not link.startswith("https://")] == []
    urls = dict(str(entry).split(", ") for entry in metadata.get_all("Project-URL", []))
    assert {"Homepage", "Documentation", "Source", "Repository", "Issues", "Changelog"} == set(urls)
    assert f"{urls['Source']}docs/client.md" in links


def test_only_relative_links_are_changed() -> None:
    assert absolute("[a](docs/a.md#b), [c](https://x.example), [d](#e)", "https://s.example/") == (
        "[a](https://s.example/docs/a.md#b), [c](https://x.example), [d](#e)"
    )
