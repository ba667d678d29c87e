"""What the tests of pages rely on: the browser reports what is wrong with a page."""

from pathlib import Path

import pytest

from tests.support import browser
from tests.support.browser import Chromium

PAGE = """<!doctype html><title>before</title>
<div class="wide" style="width: 500px">wide</div>
<div style="overflow: auto"><div style="width: 900px">scrolls</div></div>
<img src="missing.png"><input><button>end</button>
<script>
document.querySelector("button").onclick = () => {
  console.error(document.querySelector("input").value);
  document.title = "after";
};
missing();
</script>"""


@pytest.mark.slow
def test_what_is_wrong_with_a_page_is_found(chromium: Chromium, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGE, encoding="utf-8")
    page = chromium.open(file.as_uri(), width=390, dark=True)
    assert page.overflowing() == ["page: 508px", "div.wide: 508px"]
    script, image = sorted(page.problems, key=lambda problem: "ERR_FILE_NOT_FOUND" in problem)
    assert "missing is not defined" in script
    assert "missing.png" in image
    page.problems.clear()
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    page.fill("input", "typed")
    page.click("button")
    page.wait_for("document.title === 'after'")
    assert page.problems == ["typed"]
    page.resize(1280)
    page.prefer(dark=False)
    assert page.overflowing() == []
    assert not page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")


def test_a_missing_browser_is_one_line_that_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "COMMANDS", ("no-such-browser",))
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"), browser.started():
        pass
