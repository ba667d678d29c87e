"""Pulumi: stacks of one and of 1,000 servers, and the life of 300, beside a provider that does nothing.

``make bench ARGS=stack:pulumi,native,many`` measures those rows alone that all of the words name: the engine, the
form, ``one``, ``many`` or ``life``, and ``up`` or ``refresh``. The life of 300 is create, ``up`` without a change,
refresh and destroy: the median of five rounds, beside a provider that records nothing but the inputs, and beside one
that records the same outputs.

The passphrase of the stacks is known, so the offline engine derives its key with few rounds.
"""

import json
import shlex
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

from pulumi.dynamic.dynamic import PROVIDER_KEY

from pulumi_hosting.emulator import running
from pulumi_hosting.offline.storage.passphrase import WEAK_SECRETS
from pulumi_hosting.provider.plugin.install import EXECUTABLE, place
from pulumi_hosting.rehearsal import engines
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.runner import plugin_environ
from tests.benchmarks.bench_import import LIBRARIES, run
from tests.benchmarks.measure import Ratio, compare, cpu_seconds

FORMS = ("dynamic", "native")


@dataclass(frozen=True)
class Size:
    """A program of ``servers`` servers. ``at_most``: the goals with Pulumi's CLI, by what is measured."""

    servers: int
    rounds: int
    at_most: dict[str, float]


SAME_STATE = "nothing with the same state"
CREATE, UP, REFRESH = "create", "up without a change", "refresh --preview-only"
SIZES = {
    "one": Size(1, 7, {UP: 1.15, REFRESH: 1.15}),
    "many": Size(1000, 2, {UP: 1.05, REFRESH: 1.3}),
}
LIFE = Size(300, 5, {})
STEPS: dict[str, Callable[[engines.Stack], engines.Run]] = {
    CREATE: lambda stack: stack.up(),
    UP: lambda stack: stack.up("--expect-no-changes"),
    "refresh": lambda stack: stack.refresh("--expect-no-changes"),
    "destroy": lambda stack: stack.destroy(),
}
GOALS = {CREATE: (1.5, 1.15), UP: (1.3, 1.12), "refresh": (1.4, 1.15), "destroy": (1.65, 1.12)}
"""Of a life: beside nothing, and beside the same state."""
COMMANDS: dict[str, Callable[[engines.Stack], engines.Run]] = {
    UP: lambda stack: stack.up("--expect-no-changes"),
    REFRESH: lambda stack: stack.refresh("--preview-only", "--expect-no-changes"),
}

_WORDS = {command.split()[0] for command in COMMANDS}

_PROGRAM = """
for number in range({servers}):
    Server(f"web-{{number}}", tariff_id=1, os="debian-12", name=f"web-{{number}}", notes="one of many", auto_renew=True, months=1)
"""
_HEADS = {
    "dynamic": "from pulumi_hosting import Server",
    "native": "from pulumi_hosting.native import Server",
}
_NOTHING = Path(__file__).parent / "nothing"


class Failed(Exception):
    """A command of the benchmark failed."""


@dataclass(frozen=True)
class Account:
    """An emulator without limits. ``environ`` names it; ``requests``: how many it has answered."""

    environ: dict[str, str]
    requests: Callable[[], int]


def ratios(words: Collection[str] = ()) -> Iterator[Ratio]:
    """``words``: see above; all rows without any."""
    for engine in engines.available():
        for name, size in SIZES.items():
            for form in FORMS:
                commands = [what for what in COMMANDS if not _WORDS & {*words} or what.split()[0] in words]
                if {*words} <= {engine.name, form, name, *_WORDS}:
                    yield from _measured(engine, form, size, commands)
        for form in FORMS:
            if {*words} <= {engine.name, form, "life"}:
                yield from _life(engine, form, LIFE)


def _life(engine: engines.Engine, form: str, size: Size) -> Iterator[Ratio]:
    """Each round is a new stack for each of the three, so that a busy moment of the machine meets all."""
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    ours, nothing = "ours", "nothing"
    with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder, _account() as account:
        outputs = "{}"
        for number in range(size.rounds):
            for who in (ours, nothing, SAME_STATE):
                directory = Path(folder) / f"{who} {number}"
                stack = _stack(
                    engine, form, directory, size.servers, account.environ if who == ours else None
                )
                if who == SAME_STATE:
                    stack.environ |= {"NOTHING_OUTPUTS": outputs}
                for what, step in STEPS.items():
                    taken[who, what].append(cpu_seconds(partial(_run, partial(step, stack))))
                    if (who, what) == (ours, CREATE):
                        outputs = json.dumps(_outputs_of_one(stack))
    for what, goals in GOALS.items():
        named = f"{what} ({size.servers} servers, {form}, {engine.name})"
        for base, goal in zip((nothing, SAME_STATE), goals, strict=True):
            yield Ratio(
                named,
                median(taken[ours, what]),
                base,
                median(taken[base, what]),
                f"{size.rounds} rounds",
                goal,
            )


def _measured(engine: engines.Engine, form: str, size: Size, chosen: Collection[str]) -> Iterator[Ratio]:
    with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder, _account() as account:
        made = count()

        def stack(environ: dict[str, str] | None) -> engines.Stack:
            return _stack(engine, form, Path(folder) / str(next(made)), size.servers, environ)

        ours, base = stack(account.environ), stack(None)
        for each in (ours, base):
            _make(each)
        commands = {
            what: tuple(partial(_run, partial(COMMANDS[what], each)) for each in (ours, base))
            for what in chosen
        }
        for what, (with_ours, with_base) in commands.items():
            named = f"{what} ({size.servers} servers, {form}, {engine.name})"
            goal = size.at_most[what] if engine.name == engines.PULUMI else None
            before = account.requests()
            found = compare(named, with_ours, "nothing", with_base, size.rounds, goal)
            yield replace(found, note=f"{(account.requests() - before) // size.rounds} requests")
            if size.servers == 1 and engine.name == engines.OFFLINE:
                yield _beside_the_libraries(found)
        if size.servers > 1:
            _record(ours, base)
            for what, (with_ours, with_base) in commands.items():
                named = f"{what} ({size.servers} servers, {form}, {engine.name})"
                yield compare(named, with_ours, SAME_STATE, with_base, size.rounds)


def _outputs_of_one(stack: engines.Stack) -> dict[str, object]:
    """What a server's state holds, but for what the dynamic form keeps of its provider."""
    entries = stack.export("--show-secrets")["deployment"]["resources"]
    found = next(entry["outputs"] for entry in entries if entry["type"].endswith("Server"))
    return {
        key: json.loads(value["plaintext"]) if isinstance(value, dict) and "plaintext" in value else value
        for key, value in found.items()
        if key != PROVIDER_KEY
    }


def _record(ours: engines.Stack, base: engines.Stack) -> None:
    """Have ``base`` record the outputs of ``ours``: an engine takes longer for a larger state, whatever its
    provider does.
    """
    outputs = {
        entry["urn"]: entry.get("outputs", {})
        for entry in ours.export("--show-secrets")["deployment"]["resources"]
    }
    exported = base.export("--show-secrets")
    for entry in exported["deployment"]["resources"]:
        if entry["custom"] and entry["type"].endswith("Server"):
            provider = {key: value for key, value in entry["outputs"].items() if key == PROVIDER_KEY}
            entry["outputs"] = {**outputs[entry["urn"]], **provider}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(exported, file)
        file.flush()
        _run(partial(base.run, "stack", "import", "--file", file.name))


def _beside_the_libraries(found: Ratio) -> Ratio:
    """As the provider's process loads them, which is not kept from httpx's own command line."""
    libraries = compare("", run(LIBRARIES, has_rich=True), "", run("pass"), 7)
    return Ratio(
        f"what the provider adds to {found.what}",
        found.ours - found.base,
        "importing httpx and pydantic",
        libraries.ours - libraries.base,
        at_most=1.5,
    )


@contextmanager
def _account() -> Iterator[Account]:
    with running() as emulator:
        control = Control(emulator.control_url)
        control("PATCH", "/account", {"balance": "1000000"})
        key = control(
            "POST",
            "/keys",
            {"mode": "live", "scopes": "full", "rate_per_minute": 10**6, "rate_expensive_per_minute": 10**6},
        )
        environ = {"HOSTING_API_KEY": key["key"], "HOSTING_BASE_URL": emulator.base_url}
        yield Account(environ, control.requests)


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
        shutil.copy(_NOTHING / "nothing.py", program)
        heads.append("import nothing\nnothing.take_over()")
    elif account is None:
        (place({"PULUMI_HOME": str(home / "pulumi")}) / EXECUTABLE).write_text(
            f'#!/bin/sh\nexec {shlex.join([sys.executable, str(_NOTHING / "plugin.py")])} "$@"\n',
            encoding="utf-8",
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
