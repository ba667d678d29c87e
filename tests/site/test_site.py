"""The documentation site as readers see it: links lead somewhere, pages fit a phone and a desk, search finds
what one looks for. The build itself refuses broken links and anchors between pages.
"""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from generate.collection import modules
from generate.site.pages import IDS
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.support.browser import Chromium

pytestmark = pytest.mark.slow

WIDTHS = (390, 1280)
STILL = "<style>* { transition: none !important; animation: none !important }</style>"
"""So that a page is measured as it stays after its window was made wider."""


BROKEN = """
[...document.querySelectorAll(".md-content :not(pre) > code")].filter(
    code => /^\\S{1,34}$/.test(code.textContent)
        && new Set([...code.getClientRects()].map(line => line.top)).size > 1
).map(code => code.textContent + " is broken")
"""


class Links(HTMLParser):
    """What a page refers to, and the places in it that others may refer to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.found.append(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def pages(html: Path) -> Iterator[str]:
    """The addresses of the pages below the site's own."""
    for file in sorted(html.rglob("index.html")):
        yield file.parent.relative_to(html).as_posix().removeprefix(".") + "/"


def test_there_is_a_page_for_each_resource_module_and_lookup(html: Path) -> None:
    for kind, resource in RESOURCES.items():
        text = (html / "resources" / kind / "index.html").read_text(encoding="utf-8")
        places = Links(text).places
        assert {"example", "arguments", "outputs", "import", "scopes-of-the-api-key"} <= places
        assert f"{IDS[kind]}\n" in text
        assert [name for name in resource.Inputs.model_fields if f"<code>{name}</code>" not in text] == []
        assert all(f">{language}</label>" in text for language in ("Python", "YAML", "TypeScript", "Ansible"))
    for module in modules():
        text = (html / "modules" / module.name / "index.html").read_text(encoding="utf-8")
        assert [name for name in module.options if f"<code>{name}</code>" not in text] == []
        assert "Returns" in text
    lookups = {
        place
        for file in (html / "lookups").rglob("index.html")
        for place in Links(file.read_text(encoding="utf-8")).places
    }
    assert {lookup.name for lookup in LOOKUPS.values()} <= lookups


def test_no_link_is_dead(html: Path) -> None:
    parsed = {
        page: Links((html / page.lstrip("/") / "index.html").read_text("utf-8")) for page in pages(html)
    }
    dead = []
    for page, links in parsed.items():
        here = f"/{page.lstrip('/')}"
        for link in links.found:
            address, place = urldefrag(urljoin(here, link))
            parts = urlsplit(address)
            if (parts.hostname or "").endswith(".example"):  # for documentation only
                dead.append(f"{here}: {link}")
            if parts.scheme or parts.netloc or address.startswith("data:"):
                continue
            target = html / unquote(parts.path).lstrip("/")
            if not target.exists():
                dead.append(f"{here}: {link}")
            elif place and not place.startswith("__") and target.is_dir():
                name = parts.path.lstrip("/") or "/"
                if unquote(place) not in parsed[name].places:
                    dead.append(f"{here}: {link}")
    assert len(parsed) > 60
    assert dead == []


def test_nothing_is_fetched_from_another_host_and_every_page_fits_and_breaks_no_literal(
    site: str, html: Path, chromium: Chromium
) -> None:
    page = chromium.open(f"{site}/", width=WIDTHS[0])
    found = []
    for name in pages(html):
        page.go(f"{site}/{name.lstrip('/')}")
        page.evaluate(f"document.head.insertAdjacentHTML('beforeend', {STILL!r})")
        for width in WIDTHS:
            page.resize(width)
            found += [f"{name} at {width}: {it}" for it in (*page.overflowing(), *page.evaluate(BROKEN))]
    assert found == []
    assert page.problems == []
    hosts = "[...new Set(performance.getEntriesByType('resource').map(one => new URL(one.name).origin))]"
    assert page.evaluate(hosts) == [site]


def test_records_that_have_every_word_and_explain_none_are_not_searched(html: Path) -> None:
    found = json.loads((html / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    searched = {entry["location"].partition("/")[0] for entry in found}
    assert searched & {"order", "changelog", "pipeline-run"} == {"order"}
    assert [entry["location"] for entry in found if "Source: <code>" in entry["text"]] == []


ANSWERS = {
    "costs-and-limits": ("maxCharge", "max_charge", "HOSTING_MAX_CHARGE", "spend limit"),
    "cancel": ("refund", "delete a server", "destroy"),
    "webhooks": ("webhook signature", "verify webhook"),
    "paid-time": ("budget", "HOSTING_BUDGET", "auto renew", "keep_paid"),
    "order": ("order a server", "reverse dns"),
    "change": ("reinstall", "drift", "rebuild"),
    "adopt": ("adopt", "pulumi import"),
    "move": ("move between stacks", "from Ansible to Pulumi", "rename"),
    "unit-testing": ("mocks", "pytest", "test key"),
    "gitops": ("pull request", "GitHub Actions"),
    "several-stacks": ("scope", "takeover"),
    "teams": ("redis",),
    "crashes": ("crash",),
    "troubleshooting": ("killed",),
    "from-hcloud-or-terraform": ("terraform",),
    "exporter": ("prometheus",),
    "configuration": ("HOSTING_API_KEY",),
    "rate-limits": ("rate limit",),
    "reference/errors": ("insufficient_funds",),
    "modules/webhook_redeliver": ("webhook_redeliver",),
}
"""The page that the search must name first, by what readers look for."""


@pytest.mark.parametrize("width", WIDTHS)
def test_the_search_names_first_what_explains_a_word(width: int, site: str, chromium: Chromium) -> None:
    page = chromium.open(f"{site}/", width=width)
    if width < 960:  # the field is behind an icon
        page.click("label.md-header__button[for=__search]")
    for words, answer in ((words, answer) for answer, asked in ANSWERS.items() for words in asked):
        page.evaluate("document.querySelector('.md-search__input').focus()")
        page.fill(".md-search__input", words)
        page.evaluate("document.querySelector('.md-search__input').dispatchEvent(new Event('keyup'))")
        first = "document.querySelector('.md-search-result__link')?.pathname"
        page.wait_for(f"{first} === '/{answer}/'")
    assert page.problems == []


def test_tabs_show_the_same_language_on_every_example(site: str, chromium: Chromium) -> None:
    page = chromium.open(f"{site}/lookups/servers/")
    shown = (
        "[...document.querySelectorAll('.tabbed-set')].map(one => [...one.querySelectorAll('input')]"
        ".findIndex(input => input.checked))"
    )
    assert set(page.evaluate(shown)) == {0}
    page.click(".tabbed-labels > label:nth-child(3)")
    page.wait_for(f"{shown}.every(number => number === 2)")
    assert page.problems == []
