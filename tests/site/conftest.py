"""The documentation site, built once for all tests of this folder."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generate.site.__main__ import build


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the site's HTML."""
    return build(tmp_path_factory.mktemp("site") / "site")


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving(html: Path) -> Iterator[str]:
    """The address at which a folder is served on this machine."""
    handler = functools.partial(_Handler, directory=str(html))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="session")
def site(html: Path) -> Iterator[str]:
    """The address of the site on this machine."""
    with serving(html) as address:
        yield address
