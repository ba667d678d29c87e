"""Fails when the places that name this project's version disagree: pyproject.toml, the package, the changelog, the collection."""

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pulumi_hosting

ROOT = Path(__file__).parent.parent
GALAXY = ROOT / "ansible_collections" / "hosting" / "cloud" / "galaxy.yml"


def versions() -> Mapping[str, str]:
    """The version by the place that names it."""
    found = {
        "pyproject.toml": str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]),
        "pulumi_hosting.__version__": pulumi_hosting.__version__,
        "CHANGELOG.md": _first(r"^## \[(\d[^\]]*)\]", ROOT / "CHANGELOG.md"),
    }
    if GALAXY.exists():
        found[str(GALAXY.relative_to(ROOT))] = _first(r"^version:\s*[\"']?([^\s\"']+)", GALAXY)
    return found


def _first(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match.group(1) if match else "none"


def main() -> int:
    found = versions()
    if len(set(found.values())) == 1:
        return 0
    print("The versions disagree: " + ", ".join(f"{place} {version}" for place, version in found.items()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
