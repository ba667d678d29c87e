"""Pages by hand, with links that lead to the pages of the site or to files of the repository."""

import re
import tomllib
from collections.abc import Mapping
from posixpath import dirname, normpath, relpath
from urllib.parse import urlsplit

from generate.render import ROOT


def public(url: str) -> str | None:
    """The URL, or ``None`` if its host is for documentation only: a link to it would be dead."""
    return None if (urlsplit(url).hostname or "").endswith(".example") else url


URLS: Mapping[str, str | None] = {
    name: public(url)
    for name, url in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"].items()
}
"""The project's own addresses, by the names in ``pyproject.toml``."""

_CODE_OR_LINK = re.compile(
    r"""^```.*?^``` | ^(?:\ {4}|\t).*?$
      | \[ (?P<label>(?:[^]`]|`[^`]*`)*) \]\( (?P<path>[^)\s#:]+) (?P<anchor>\#[^)\s]*)? \)
      | `[^`\n]+`""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


def page(source: str, site: Mapping[str, str], files: str | None = URLS["Source"]) -> str:
    """The text of the file ``source`` of the repository.

    ``site``: the site's page for each file. ``files``: the address of the repository's files; without one a
    link to a file that the site lacks becomes its path.
    """
    here = site[source]

    def moved(found: re.Match[str]) -> str:
        if found["path"] is None:
            return found[0]
        target = normpath(f"{dirname(source)}/{found['path']}".lstrip("/"))
        if target in site:
            return f"[{found['label']}]({relpath(site[target], dirname(here) or '.')}{found['anchor'] or ''})"
        if not (ROOT / target).exists():
            return found[0]  # MkDocs names it as broken
        if files:
            return f"[{found['label']}]({files}{target}{found['anchor'] or ''})"
        return f"`{target}`" if found["label"].startswith("`") else f"{found['label']} (`{target}`)"

    return _CODE_OR_LINK.sub(moved, (ROOT / source).read_text(encoding="utf-8"))
