"""A headless Chromium, driven over its DevTools protocol: pages are opened, looked at and clicked as people
do it. The websocket is of the library that the emulator's web server brings along.

    def test_it(chromium: Chromium) -> None:
        page = chromium.open("http://127.0.0.1:8080/", width=390, dark=True)
        page.click("button.search")
        page.wait_for("document.querySelectorAll('li').length === 3")
        assert (page.overflowing(), page.problems) == ([], [])
"""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.support.waiting import HANG_SECONDS, wait_until

COMMANDS = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
MISSING = "no Chromium on PATH. Next: apt-get install chromium"
HEIGHT = 900

# Elements whose right edge is outside the window, unless something around them scrolls or cuts them off.
_OVERFLOWING = """
(() => {
  const width = document.documentElement.clientWidth, whole = document.documentElement.scrollWidth;
  const found = whole > width ? [`page: ${whole}px`] : [];
  for (const element of document.body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (!box.width || !box.height || box.right <= width + 1) continue;
    let around = element.parentElement;
    while (around && around !== document.body && getComputedStyle(around).overflowX === "visible")
      around = around.parentElement;
    if (!around || around === document.body)
      found.push(`${element.tagName.toLowerCase()}.${element.className}: ${Math.round(box.right)}px`);
  }
  return found;
})()
"""


class Page:
    """One tab. ``problems``: errors and warnings of its console, exceptions, and loads that failed."""

    def __init__(self, chromium: "Chromium", session: str) -> None:
        self.problems: list[str] = []
        self._chromium = chromium
        self._session = session
        self._is_loaded = False
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")

    def go(self, url: str) -> None:
        """Open an address; returns when it is loaded."""
        self._is_loaded = False
        answer = self._send("Page.navigate", url=url)
        assert "errorText" not in answer, f"{url}: {answer['errorText']}"
        while not self._is_loaded:
            self._chromium.receive()

    def resize(self, width: int, height: int = HEIGHT) -> None:
        """Set the window's width and height in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._send("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, *, dark: bool) -> None:
        """What the page is told about the user's colours."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self._send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, f"{expression}: {_exception(answer['exceptionDetails'])}"
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Return when a JavaScript expression is true."""
        wait_until(lambda: self.evaluate(f"Boolean({expression})"))

    def text(self, selector: str = "body") -> str:
        """The text that is visible in the first element that matches."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def html(self) -> str:
        """The whole document as it is now."""
        return str(self.evaluate("document.documentElement.outerHTML"))

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of the first element that matches; nothing else may cover it."""
        self.click_on(f"document.querySelector({json.dumps(selector)})")

    def click_on(self, element: str) -> None:
        """The same for the element that a JavaScript expression finds. It is found and asked for its place in
        one step: a page that is drawn again has others."""
        x, y = self.evaluate(
            f"""(() => {{
              const element = {element};
              element.scrollIntoView({{block: "center", behavior: "instant"}});
              const box = element.getBoundingClientRect();
              const x = box.x + box.width / 2, y = box.y + box.height / 2;
              const hit = document.elementFromPoint(x, y);
              if (!element.contains(hit)) throw new Error(`covered by ${{hit?.outerHTML.slice(0, 80)}}`);
              return [x, y];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def fill(self, selector: str, text: str) -> None:
        """Replace what an input field holds, as typing does."""
        self.evaluate(
            f"(field => {{ field.focus(); field.select(); }})(document.querySelector({json.dumps(selector)}))"
        )
        self._send("Input.insertText", text=text)

    def overflowing(self) -> list[str]:
        """What is wider than the window and does not scroll in a box of its own."""
        return list(self.evaluate(_OVERFLOWING))

    def screenshot(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(base64.b64decode(self._send("Page.captureScreenshot", format="png")["data"]))

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._chromium.send(method, self._session, **parameters)

    def notice(self, method: str, event: dict[str, Any]) -> None:
        """An event that the browser reported for this tab."""
        if method == "Page.loadEventFired":
            self._is_loaded = True
        elif method == "Runtime.exceptionThrown":
            self.problems.append(_exception(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            shown = (str(part.get("value", part.get("description", ""))) for part in event["args"])
            self.problems.append(" ".join(shown))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            entry = event["entry"]
            self.problems.append(f"{entry['text']} {entry.get('url', '')}".strip())


class Chromium:
    """A running browser; :func:`started` starts and ends it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self._pages: dict[str, Page] = {}
        self._answers: dict[int, dict[str, Any]] = {}

    def open(self, url: str, *, width: int = 1280, height: int = HEIGHT, dark: bool = False) -> Page:
        """A new tab with cookies and storage of its own; returns when the address is loaded."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self._pages[session] = page
        page.resize(width, height)
        page.prefer(dark=dark)
        page.go(url)
        return page

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call the DevTools protocol and return its result."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._connection.send(json.dumps(message))
        while number not in self._answers:
            self.receive()
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def receive(self) -> None:
        """Take one message: an answer, or an event of a page."""
        message = json.loads(self._connection.recv(HANG_SECONDS))
        if "id" in message:
            self._answers[message["id"]] = message
        elif page := self._pages.get(message.get("sessionId", "")):
            page.notice(message["method"], message["params"])


def _exception(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details["text"])


@contextmanager
def started() -> Iterator[Chromium]:
    """A headless Chromium; the test is skipped with one line where none is installed."""
    command = next(filter(None, map(shutil.which, COMMANDS)), None)
    if command is None:
        pytest.skip(MISSING)
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        options = [
            "--headless",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            "--disable-gpu",
            "--disable-dev-shm-usage",  # /dev/shm of a container is small
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--hide-scrollbars",
        ]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # its sandbox refuses root
        log, address = Path(folder, "log"), Path(folder, "DevToolsActivePort")
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [command, *options, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={**os.environ, "HOME": folder},
            )
        try:
            wait_until(lambda: _lines(address), process)
            port, path = _lines(address)
            url = f"ws://127.0.0.1:{port}{path}"
            # No bounds: events that a test does not read would keep the connection from closing.
            with connect(url, max_size=None, max_queue=None, open_timeout=HANG_SECONDS) as connection:
                try:
                    yield Chromium(connection)
                finally:
                    process.terminate()  # before the connection closes: the browser would not answer to that
        finally:
            process.terminate()
            process.wait(HANG_SECONDS)


def _lines(address: Path) -> list[str]:
    """Port and path of the DevTools protocol, once the browser has written both."""
    lines = address.read_text(encoding="ascii").splitlines() if address.exists() else []
    return lines if len(lines) == 2 else []
