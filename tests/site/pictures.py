"""Writes the pictures of the documentation: the comment of docs/gitops.md as a forge shows it, and the site.

``python -m tests.site.pictures``, after a change of the comment or of the site's look. Needs Chromium.
"""

import tempfile
import textwrap
from pathlib import Path

from markdown import markdown  # type: ignore[import-untyped]  # mkdocs brings it along, without types

from generate.render import ROOT
from generate.site.__main__ import build
from tests.site.conftest import serving
from tests.site.test_site import STILL
from tests.support.browser import Chromium, started

IMAGES = ROOT / "docs" / "images"
COMMENT = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 14px; font: 16px/1.5 sans-serif; color: #1f2328; }
.comment { border: 1px solid #d0d7de; border-radius: 6px; overflow: hidden; }
.author { background: #f6f8fa; border-bottom: 1px solid #d0d7de; padding: 10px 20px; }
.author span { color: #59636e; }
.text { padding: 4px 20px 12px; }
h2 { font-size: 20px; }
code { font-size: 13px; background: #eff1f3; border-radius: 6px; padding: 3px 5px; }
table { border-collapse: collapse; margin: 14px 0; }
th, td { border: 1px solid #d0d7de; padding: 5px 12px; text-align: left; }
</style><div class="comment"><div class="author"><b>github-actions</b> <span>bot commented</span></div>
<div class="text">"""


def comment() -> str:
    """The comment that docs/gitops.md shows, as HTML."""
    page = (ROOT / "docs" / "gitops.md").read_text(encoding="utf-8")
    shown = page.partition("\n## The comment\n\n")[2].partition("\n- ")[0]
    return f"{COMMENT}{markdown(textwrap.dedent(shown), extensions=['tables'])}</div></div>"


def write_comment(chromium: Chromium, folder: Path) -> None:
    (folder / "comment.html").write_text(comment(), encoding="utf-8")
    page = chromium.open((folder / "comment.html").as_uri(), width=948)
    page.resize(948, page.evaluate("document.body.offsetHeight"))
    page.screenshot(IMAGES / "pull-request-comment.png")


def write_site(chromium: Chromium, site: str) -> None:
    for name, path in (("home", ""), ("resource", "resources/server/")):
        chromium.open(f"{site}/{path}").screenshot(IMAGES / f"site-{name}.png")
    page = chromium.open(f"{site}/", height=860)
    page.evaluate("document.querySelector('.md-search__input').focus()")
    page.fill(".md-search__input", "maxCharge")
    page.evaluate("document.querySelector('.md-search__input').dispatchEvent(new Event('keyup'))")
    page.wait_for("document.querySelector('.md-search-result__link')")
    page.screenshot(IMAGES / "site-search.png")
    phone = chromium.open(f"{site}/modules/server/", width=390, height=844, dark=True)
    phone.evaluate(f"document.head.insertAdjacentHTML('beforeend', {STILL!r})")
    phone.evaluate("document.querySelector('#options').scrollIntoView({behavior: 'instant'})")
    phone.screenshot(IMAGES / "site-module-narrow-dark.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, started() as chromium:
        write_comment(chromium, Path(name))
        with serving(build(Path(name) / "site")) as site:  # it shows the comment
            write_site(chromium, site)


if __name__ == "__main__":
    main()
