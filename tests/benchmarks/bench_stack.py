"""Pulumi: stacks of one and of 1,000 servers, beside the same program with a provider that does nothing.

The passphrase of the stacks is known, so the offline engine derives its key with few rounds.
"""

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pulumi_hosting.emulator import running
from pulumi_hosting.offline.storage.passphrase import WEAK_SECRETS
from pulumi_hosting.provider.plugin.install import EXECUTABLE, place
from pulumi_hosting.rehearsal import engines
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.runner import plugin_environ
from tests.benchmarks.bench_import import LIBRARIES, run
from tests.benchmarks.measure import Ratio, compare

ROUNDS = {1: 7, 1000: 3}
"""By the number of servers."""
FORMS = ("dynamic", "native")

_PROGRAM = """
for number in range({servers}):
    Server(f"web-{{number}}", tariff_id=1, os="debian-12", name=f"web-{{number}}", notes="one of many", auto_renew=True, months=1)
"""
_HEADS = {
    "dynamic": "from pulumi_hosting import Server",
    "native": "from pulumi_hosting.native import Server",
}
_NOTHING = Path(__file__).parent / "nothing" / "nothing.py"


class Failed(Exception):
    """A command of the benchmark failed."""


@dataclass(frozen=True)
class Pair:
    """The two stacks, both up, and what the emulator counts."""

    ours: engines.Stack
    base: engines.Stack
    requests: Callable[[], int]


def ratios(rounds: Mapping[int, int] = ROUNDS) -> Iterator[Ratio]:
    # As the provider's process loads them, which is not kept from httpx's own command line.
    libraries = compare("", run(LIBRARIES, has_rich=True), "", run("pass"), 7)
    for engine in engines.available():
        for servers, count in rounds.items():
            for form in FORMS:
                for found in _measured(engine, form, servers, count):
                    yield found
                    if servers == 1 and engine.name == engines.OFFLINE:
                        yield Ratio(
                            f"what the provider adds to {found.what}",
                            found.ours - found.base,
                            "importing httpx and pydantic",
                            libraries.ours - libraries.base,
                            at_most=1.5,
                        )


def _measured(engine: engines.Engine, form: str, servers: int, rounds: int) -> Iterator[Ratio]:
    with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder, running() as emulator:
        control = Control(emulator.control_url)
        control("PATCH", "/account", {"balance": "1000000"})
        key = control(
            "POST",
            "/keys",
            {"mode": "live", "scopes": "full", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6},
        )
        account = {"HOSTING_API_KEY": key["key"], "HOSTING_BASE_URL": emulator.base_url}
        pair = Pair(
            _stack(engine, form, Path(folder) / "ours", servers, account),
            _stack(engine, form, Path(folder) / "base", servers, None),
            control.requests,
        )
        for stack in (pair.ours, pair.base):
            _make(stack)
        named = f"{servers} servers, {form}, {engine.name}"
        for what, command in (
            ("up without a change", lambda stack: stack.up("--expect-no-changes")),
            ("refresh --preview-only", lambda stack: stack.refresh("--preview-only", "--expect-no-changes")),
        ):
            before = pair.requests()
            found = compare(
                f"{what} ({named})",
                partial(_run, partial(command, pair.ours)),
                "nothing",
                partial(_run, partial(command, pair.base)),
                rounds,
            )
            yield replace(found, note=f"{(pair.requests() - before) // rounds} requests")


def _stack(
    engine: engines.Engine, form: str, directory: Path, servers: int, account: dict[str, str] | None
) -> engines.Stack:
    """The program in a new stack; without an account, its provider does nothing."""
    program, home = directory / "program", directory / "home"
    program.mkdir(parents=True)
    (program / "Pulumi.yaml").write_text("name: many\nruntime: python\n", encoding="utf-8")
    heads = [_HEADS[form]]
    search = plugin_environ(home)
    if account is None and form == "dynamic":
        shutil.copy(_NOTHING, program)
        heads.append("import nothing\nnothing.take_over()")
    elif account is None:
        (place({"PULUMI_HOME": str(home / "pulumi")}) / EXECUTABLE).write_text(
            f'#!/bin/sh\nexec {shlex.join([sys.executable, str(_NOTHING)])} "$@"\n', encoding="utf-8"
        )
    (program / "__main__.py").write_text(
        "\n".join(heads) + _PROGRAM.format(servers=servers), encoding="utf-8"
    )
    return engine.stack(program, home, {**(account or {}), **search, WEAK_SECRETS: "true"})


def _make(stack: engines.Stack) -> None:
    """The first ``up``, which is not measured: Pulumi need not write its whole state for each of the
    servers.
    """
    patient = dict(stack.environ)
    stack.environ |= {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}
    _run(stack.up)
    stack.environ = patient


def _run(command: Callable[[], engines.Run]) -> None:
    run = command()
    if run.exit_code:
        raise Failed(f"`{' '.join(run.command)}` ended with {run.exit_code}: {run.output[-2000:]}")
