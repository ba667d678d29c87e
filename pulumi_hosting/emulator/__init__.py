"""An emulator of the API in a process of its own; ``in_process_transport`` has it in this process, without a
socket::

    with pulumi_hosting.emulator.running(seed=1) as emulator:
        client = Client(emulator.live_key, emulator.base_url)
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

__all__ = ["NotStarted", "Running", "running"]


@dataclass(frozen=True)
class Running:
    """The ready line of a running emulator. Its repr does not show the keys."""

    base_url: str
    control_url: str
    console_url: str
    live_key: str
    test_key: str
    pid: int

    def __repr__(self) -> str:
        return f"<emulator at {self.base_url}, process {self.pid}>"


class NotStarted(Exception):
    """The emulator did not start; its standard error has the reason."""


@contextmanager
def running(
    *,
    host: str = "127.0.0.1",
    allow_host: Iterable[str] = (),
    port: int = 0,
    dialect: str | None = None,
    state: str | PathLike[str] | None = None,
    seed: int = 0,
    clock: str = "real",
    now: str | None = None,
    account: str | PathLike[str] | None = None,
    profile: str | PathLike[str] | None = None,
    provisioning_delay: float = 0.0,
    ip_delay: float = 0.0,
    tls: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
    webhook_route: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """Start an emulator in a process of its own and stop it at the end of the block.

    The options are those of ``pulumi-hosting emulator``. Raises :class:`NotStarted`.
    """
    with subprocess.Popen(command_line(locals()), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield wait_until_ready(process)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def command_line(options: Mapping[str, Any]) -> list[str]:
    """What starts an emulator with these options of :func:`running`."""
    return [sys.executable, "-m", "pulumi_hosting.emulator", *_arguments(options)]


def _arguments(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if name == "allow_host":
            yield from (text for host in value for text in (option, host))
        elif name == "webhook_route":
            yield from (text for route in (value or {}).items() for text in (option, "=".join(route)))
        elif name == "tls" and value:
            yield from (option, *map(str, value))
        elif value is not None:
            yield from (option, str(value))


def wait_until_ready(process: "subprocess.Popen[str]") -> Running:
    """The ready line of a process, once it has printed it. Raises :class:`NotStarted`."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise NotStarted(
            f"the emulator ended with exit code {process.wait()} before it was ready; see its standard error"
        )
    return Running(**json.loads(line))
