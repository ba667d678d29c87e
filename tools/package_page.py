"""Metadata hook of the build backend: the README as package index pages show it, where links that are
relative to the repository lead nowhere."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, source: str) -> str:
    """The Markdown with its relative links below ``source``, the URL of the repository's files.

    >>> absolute("[a](docs/a.md#b) [c](https://example.org) [d](#e)", "https://example.com/source/")
    '[a](https://example.com/source/docs/a.md#b) [c](https://example.org) [d](#e)'
    """
    return _RELATIVE_LINK.sub(lambda link: f"]({source}{link[1]})", text)


class PackagePage(MetadataHookInterface):
    """Sets ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, metadata["urls"]["Source"]),
        }
