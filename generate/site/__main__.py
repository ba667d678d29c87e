"""Writes the pages of the documentation site into ``build/site/pages`` and builds ``build/site/html``.

A broken link, a missing anchor and a page outside the navigation are errors.
"""

import argparse
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from generate.render import ROOT
from generate.site.links import URLS
from generate.site.pages import navigation, pages
from pulumi_hosting import __version__

HERE = Path(__file__).parent


def build(into: Path) -> Path:
    """The folder with the site's HTML."""
    os.environ["NO_MKDOCS_2_WARNING"] = "true"  # the theme's advertisement
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config

    written = into / "pages"
    shutil.rmtree(into, ignore_errors=True)
    for name, text in pages().items():
        (written / name).parent.mkdir(parents=True, exist_ok=True)
        (written / name).write_text(text, encoding="utf-8")
    shutil.copytree(HERE / "stylesheets", written / "stylesheets")
    shutil.copytree(ROOT / "docs" / "images", written / "images")
    config = load_config(
        str(HERE / "mkdocs.yml"),
        docs_dir=str(written),
        site_dir=str(into / "html"),
        nav=navigation(),
        site_url=URLS["Documentation"],
        repo_url=URLS["Repository"],
        copyright=f"pulumi-hosting {__version__}, Apache-2.0; the Ansible collection GPL-3.0-or-later",
        strict=True,
    )
    mkdocs_build(config)
    return into / "html"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m generate.site", description=__doc__)
    parser.add_argument(
        "--into", type=Path, default=ROOT / "build" / "site", help="folder; it is emptied first"
    )
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    print(build(parser.parse_args(arguments).into / "") / "index.html")


if __name__ == "__main__":
    main()
