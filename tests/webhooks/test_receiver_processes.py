"""A receiver in a process of its own: killed, and as the documentation shows it."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.webhooks.support import LIMIT_SECONDS, SECRET, Receivers, body, signed

PROGRAM = """
import asyncio, logging, sys
from pulumi_hosting.webhooks.receiver import Receiver, ReceiverOptions

async def never_returns(received):
    await asyncio.Event().wait()

logging.basicConfig(level=logging.INFO, format="%(message)s")
options = {"port": 0, "path": "/hosting", "secret": sys.argv[1], "state_file": sys.argv[2]}
asyncio.run(Receiver(ReceiverOptions.from_values(options)).run(never_returns))
"""


@contextmanager
def started(program: str, *arguments: str, **options: Any) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A process that runs a receiver, and its URL."""
    command, pipe = [sys.executable, "-c", program, *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options) as process:
        assert process.stderr is not None
        yield process, process.stderr.readline().rpartition("listening on ")[2].strip()
        process.kill()


def test_a_kill_loses_no_event(receivers: Receivers, state_file: Path) -> None:
    raw = body("evt_1")
    with started(PROGRAM, SECRET, str(state_file)) as (killed, url):
        assert httpx.post(url, content=raw, headers=signed(raw), timeout=LIMIT_SECONDS).status_code == 200
        killed.kill()

    async def later() -> None:
        async with receivers.run() as running:
            assert await running.deliver(raw) == 200
            assert await running.events.ids() == ["evt_1"]
            assert running.events.offered == ["evt_1"]

    asyncio.run(later())


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text()
    (program,) = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Receiver(" in text]
    (tmp_path / "webhook-secret").write_text(SECRET)
    program = program.replace('"port": 5000', '"port": 0, "state_file": "events.sqlite"')
    raw = body("evt_1")
    with started(program, cwd=tmp_path) as (process, url):
        assert httpx.post(url, content=raw, headers=signed(raw), timeout=LIMIT_SECONDS).status_code == 200
        assert process.stdout is not None
        assert process.stdout.readline() == "server.created 11\n"
