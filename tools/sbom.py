"""Prints what a release consists of and depends on: a list of parts (SBOM) in CycloneDX's JSON.

    python tools/sbom.py dist/pulumi_hosting-VERSION-py3-none-any.whl dist/hosting-cloud-VERSION.tar.gz

Dependencies come from the metadata of the installed packages, in the versions of requirements-dev.lock, with
which the release was tested; those of an extra are optional. No time and no random number is in it: the same
release gives the same bytes.
"""

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = frozenset(PROJECT["optional-dependencies"]) - {"dev"}


def locked() -> dict[str, str]:
    """Name → version."""
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    rows = re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in rows}


def needs(name: str, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
    """The requirements of an installed package, with these extras, on this platform."""
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            yield requirement


def closure(name: str, extras: frozenset[str]) -> dict[str, set[str]]:
    """What the package needs, directly or not: name → names of what that needs."""
    found: dict[str, set[str]] = {}
    waiting = [(canonicalize_name(name), extras)]
    while waiting:
        one, with_extras = waiting.pop()
        wanted = list(needs(one, with_extras))
        before = found.setdefault(one, set())
        new = {canonicalize_name(requirement.name) for requirement in wanted} - before
        before |= new
        waiting += [
            (canonicalize_name(requirement.name), frozenset(requirement.extras))
            for requirement in wanted
            if canonicalize_name(requirement.name) in new
        ]
    return found


def sbom(wheel: Path, collection: Path) -> dict[str, Any]:
    name, version = PROJECT["name"], PROJECT["version"]
    own = f"pkg:pypi/{name}@{version}"
    versions = locked()
    always, graph = closure(name, frozenset()), closure(name, EXTRAS)

    def purl(package: str) -> str:
        return own if package == name else f"pkg:pypi/{package}@{versions[package]}"

    components = [
        {
            "type": "library",
            "bom-ref": purl(package),
            "name": package,
            "version": versions[package],
            "purl": purl(package),
            "scope": "required" if package in always else "optional",
        }
        for package in sorted(graph.keys() - {name})
    ]
    tarball = f"pkg:generic/hosting.cloud@{version}"
    components.append(_file("hosting.cloud", tarball, version, "GPL-3.0-or-later", collection))
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _file(name, own, version, PROJECT["license"], wheel)},
        "components": components,
        "dependencies": [
            *({"ref": purl(one), "dependsOn": sorted(map(purl, graph[one]))} for one in sorted(graph)),
            {"ref": tarball, "dependsOn": [own]},
        ],
    }
    return {"serialNumber": uuid5(NAMESPACE_URL, json.dumps(made, sort_keys=True)).urn, **made}


def _file(name: str, purl: str, version: str, license: str, path: Path) -> dict[str, Any]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [{"license": {"id": license}}],
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


if __name__ == "__main__":
    print(json.dumps(sbom(Path(sys.argv[1]), Path(sys.argv[2])), indent=2))
