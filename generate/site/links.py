"""Pages by hand, with links that lead to the pages of the site."""

import re
from collections.abc import Mapping
from posixpath import dirname, normpath, relpath

from generate.render import ROOT

SOURCE = "https://pulumi-hosting.example/source/"
"""Where files of the repository are that the site does not have."""

_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_CODE = re.compile(r"(^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def page(source: str, site: Mapping[str, str]) -> str:
    """The text of the file ``source`` of the repository. ``site``: the site's page for each file."""
    text = (ROOT / source).read_text(encoding="utf-8")
    here = site[source]

    def moved(link: re.Match[str]) -> str:
        target = normpath(f"{dirname(source)}/{link['path']}".lstrip("/"))
        anchor = link["anchor"] or ""
        if target in site:
            return relpath(site[target], dirname(here) or ".") + anchor
        if (ROOT / target).exists():
            return f"{SOURCE}{target}{anchor}"
        return link[0]  # MkDocs names it as broken

    return "".join(
        part if number % 2 else _LINK.sub(moved, part) for number, part in enumerate(_CODE.split(text))
    )
