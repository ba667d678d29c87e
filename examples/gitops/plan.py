"""Settings, commands that are given no more secrets than they need, and what a run would change."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

FAILED, MISUSED, FOUND = 1, 2, 7
SECRET = ("HOSTING_API_KEY", "HOSTING_TEST_KEY", "HOSTING_LIVE_KEY", "GITHUB_TOKEN", "GITLAB_TOKEN")
"""Variables that no child process inherits. One that needs a key is given it as HOSTING_API_KEY."""
MAX_CHARGE = "HOSTING_MAX_CHARGE"
"""What one run may charge on the live account. A rehearsal and a stack in the sandbox are not given it: they
create the whole program, and charge nothing real.
"""
PROGRESS_SECONDS = 30
"""How often a command that runs on is named: a job that prints nothing looks as if it hung."""
OF_THE_STATE = (
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_CONFIG_PASSPHRASE_FILE",
    "HOSTING_STORE",  # its address may hold a password
)
CLOSED_TO_TEST_KEYS = re.compile(r"(cannot|closed to).* test key")
"""What the provider says of something that it leaves out with a test key."""
NO_CAUSE = re.compile(r"(?:error: )?(?:preview|update|refresh|destroy) failed")
"""What Pulumi says of the stack when one of its resources failed."""
REFUSED_TO_TEST_KEYS = re.compile(r"sandbox_not_supported|sandbox_disabled")
"""Codes of calls that fail with a test key and would not with a live one."""


class Stop(Exception):
    """Ends the pipeline with one line and an exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Change:
    """One change of a plan. ``facts`` go into the digest: no secret, no price, no date."""

    action: str
    name: str
    facts: Mapping[str, Any]
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass
class Plan:
    """What a run would change. ``error``: why that is not known, or not completely. ``unchecked``,
    ``warnings``: lines for reviewers. ``renewals``: what it charges to keep objects paid, beside the changes.
    ``source``: the JSON that the plan was read from.
    """

    changes: list[Change] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    renewals: Decimal = Decimal(0)
    error: str = ""
    details: str = ""
    source: str = ""


class Run(NamedTuple):
    """A command that ended."""

    code: int
    stdout: str
    stderr: str = ""

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


class Managed(NamedTuple):
    """What is managed: the ``arguments`` of ``pulumi-hosting audit`` that name it, and why they do not name
    all of it.
    """

    arguments: list[str]
    gaps: list[str]


class Drift(NamedTuple):
    """How a part differs from the account: ``done`` ends with FOUND if it does."""

    done: Run
    managed: Managed


def run(
    command: Iterable[str], directory: Path, environ: Mapping[str, str], without: Iterable[str] = ()
) -> Run:
    """Run a command, and print on standard error when it begins, that it runs on, and when it ends. No key of
    this process, and no limit, reaches it but those in ``environ``.
    """
    hidden = {*SECRET, MAX_CHARGE, *without}
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    arguments, began = [*command], time.monotonic()
    title = shown(arguments)
    print(f"$ {title}", file=sys.stderr, flush=True)
    with subprocess.Popen(
        arguments,
        cwd=directory,
        env={**inherited, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while True:
            try:
                stdout, stderr = process.communicate(timeout=PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                lasted = time.monotonic() - began
                print(f"  {title}: {lasted:.0f} s so far", file=sys.stderr, flush=True)
    print(
        f"  exit code {process.returncode} after {time.monotonic() - began:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    return Run(process.returncode, stdout, stderr)


def shown(command: Iterable[str]) -> str:
    """The program and its first words, without options and what may be long."""
    words = [word for word in command if not word.startswith("-")]
    return " ".join([Path(words[0]).name, *words[1:4]])


def setting(name: str, default: str | None = None) -> str:
    """A variable of the environment; an empty one counts as not set, as CI services leave it."""
    value = os.environ.get(name) or default
    if value is None:
        raise Stop(f"{name} is not set. Next: set it in the job's environment (docs/gitops.md)", MISUSED)
    return value


def key(kind: str) -> dict[str, str]:
    """The environment of a command that needs the ``test`` or the ``live`` key."""
    given = setting(f"HOSTING_{kind.upper()}_KEY")
    if given.startswith("vk_test_") != (kind == "test"):
        raise Stop(f"HOSTING_{kind.upper()}_KEY holds no {kind} key. Next: correct the CI variable", MISUSED)
    return {"HOSTING_API_KEY": given, "HOSTING_STRICT": "true"}


def limit() -> dict[str, str]:
    """The environment of a command that looks at the live stack as a merge does, if a limit is set."""
    return {MAX_CHARGE: given} if (given := os.environ.get(MAX_CHARGE)) else {}


def last_line(text: str) -> str:
    """The last line that speaks of an error and of its cause, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    causes = [line for line in errors if not NO_CAUSE.fullmatch(line)]
    return (causes or errors or lines or ["no output"])[-1]
