"""What follows from the version in pyproject.toml and from CHANGELOG.md: the collection's version,
requirements and changelog.
"""

import re
import tomllib
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import yaml

from generate.collection import COLLECTION, dumped, modules
from generate.render import ROOT, formatted, render

OWNED: tuple[str, ...] = ()

HEADING = re.compile(r"^## \[(?P<version>\d[^]]*)\] - (?P<date>\d{4}-\d\d-\d\d)", re.MULTILINE)
SUMMARY = re.compile(r"^### Ansible collection\n\n(?P<text>.+?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def files() -> Mapping[str, str]:
    """The text of every file."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    found = releases()
    if version not in found:
        raise LookupError(
            f"CHANGELOG.md has no section for version {version} of pyproject.toml. Next: add "
            f"## [{version}] - <date>"
        )
    galaxy = (ROOT / COLLECTION / "galaxy.yml").read_text(encoding="utf-8")
    filters = {"yaml": dumped, "underlined": lambda text, mark: f"{text}\n{mark * len(text)}"}
    changelog = render(
        "collection/changelog.yaml.j2",
        filters,
        releases={name: _entry(release) for name, release in found.items()},
    )
    return {
        f"{COLLECTION}/galaxy.yml": re.sub(
            r"^version: \S+", f"version: {version}", galaxy, flags=re.MULTILINE
        ),
        f"{COLLECTION}/requirements.txt": (
            f"pulumi-hosting >= {version}  # written by `make generate` from pyproject.toml\n"
        ),
        f"{COLLECTION}/changelogs/changelog.yaml": changelog,
        f"{COLLECTION}/CHANGELOG.rst": render("collection/CHANGELOG.rst.j2", filters, releases=found),
        **formatted(
            {
                f"{COLLECTION}/plugins/module_utils/version.py": render(
                    "collection/version.py.j2", version=version
                )
            }
        ),
    }


def releases() -> Mapping[str, Mapping[str, object]]:
    """Summary, date, modules and plugins of each version in CHANGELOG.md, the newest first."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = list(HEADING.finditer(text))
    found = {}
    for heading, following in zip(sections, [*sections[1:], None], strict=True):
        summary = SUMMARY.search(text, heading.end(), following.start() if following else len(text))
        version = heading["version"]
        found[version] = {
            "date": heading["date"],
            "summary": " ".join(summary["text"].split()).replace("`", "") if summary else "",
            "modules": {
                one.name: one.source["short_description"]
                for one in sorted(modules(), key=lambda one: one.name)
                if one.source["version_added"] == version
            },
            "plugins": {kind: _plugins(kind, version) for kind in ("callback", "inventory")},
        }
    return found


def _plugins(kind: str, version: str) -> Mapping[str, str]:
    """The plugins that were added in a version, by name."""
    found = {}
    for path in sorted((ROOT / COLLECTION / "plugins" / kind).glob("*.py")):
        plugin = import_module(f"{COLLECTION.replace('/', '.')}.plugins.{kind}.{path.stem}")
        source = yaml.safe_load(plugin.DOCUMENTATION)
        if source["version_added"] == version:
            found[path.stem] = source["short_description"]
    return found


def _entry(release: Mapping[str, Any]) -> dict[str, object]:
    """A release in changelog.yaml."""
    return {
        "changes": {"release_summary": release["summary"]},
        "modules": [
            {"description": text, "name": name, "namespace": ""} for name, text in release["modules"].items()
        ],
        "plugins": {
            kind: [{"description": text, "name": name, "namespace": None} for name, text in plugins.items()]
            for kind, plugins in release["plugins"].items()
            if plugins
        },
        "release_date": release["date"],
    }
