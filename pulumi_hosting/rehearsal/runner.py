"""Runs a Pulumi program through its life against a fresh emulator: preview, up, up again, drift, repair,
destroy. Or plays days of it, or of a playbook.

Nothing real is changed and nothing is charged. Each step reports what it expects, what happened and the
number of requests. After each step the account must hold exactly what the state holds: an object in no state
fails the step, with its name and price per month. At the end nothing is left but what the API cannot delete.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import monotonic

from pulumi_hosting.api.casing import camel
from pulumi_hosting.client.settings import API_KEY_SOURCES
from pulumi_hosting.emulator import running
from pulumi_hosting.offline.storage.passphrase import WEAK_SECRETS
from pulumi_hosting.provider.plugin import install
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.drift_changes import Managed, managed_resources
from pulumi_hosting.rehearsal.engines import Engine, Run, Stack
from pulumi_hosting.rehearsal.outcome import RehearsalOutcome, StepOutcome, program_cost
from pulumi_hosting.rehearsal.paid_days import PaidDays
from pulumi_hosting.rehearsal.playbooks import Ansible, Playbook
from pulumi_hosting.rehearsal.warm_python import forked

_MISSING_KEY = re.compile(r"configuration variable '([^']+)'")
"""Pulumi's message of a program that requires configuration."""

Started = Callable[[int, int | None, str], None]
"""Takes the number of a step, the number of all steps once it is known, and the step's title."""


def plugin_environ(home: Path) -> dict[str, str]:
    """Install the plugin for a stack saved in ``home``.

    Returns the variables with which every engine finds it.
    """
    place = install.install(environ={"PULUMI_HOME": str(home / "pulumi"), "PATH": ""})
    # The offline engine searches PATH only. Pulumi's CLI searches PULUMI_HOME too, but prefers what it finds
    # on PATH, such as the plugin of an active virtual environment.
    return {"PATH": f"{place}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


@dataclass
class Rehearsal:
    """One program on one engine, or one playbook. ``report`` takes each line of the report, ``started`` each
    step.

    - ``balance``: what the account holds at the start; None: the emulator's opening balance.
    - ``days``: play so many days after the first `up` in place of drift and repair.
    - ``profile``: a file of `certify --save`; ``dialect``: if it is not that of the profile, or `spec`.
    """

    engine: Engine | Ansible
    program: Path
    report: Callable[[str], None] = print
    dialect: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    started: Started = lambda number, total, title: None
    days: int | None = None
    balance: Decimal | None = None
    profile: Path | None = None
    steps: int | None = field(default=None, init=False)
    stack: Stack | Playbook = field(init=False)

    def run(self) -> RehearsalOutcome:
        """Run all steps."""
        self.outcome = RehearsalOutcome(str(self.program), str(self.engine))
        is_offline = self.engine.name == "offline"
        remark = " (for trying and testing; real stacks are run by pulumi)" if is_offline else ""
        self.report(f"engine: {self.engine}{remark}")
        with (
            # An engine, a program and a provider for each step: most of their time would be imports.
            forked(),
            tempfile.TemporaryDirectory(prefix="rehearsal-") as home,
            running(dialect=self.dialect, profile=self.profile) as emulator,
        ):
            self.control = Control(emulator.control_url)
            self.outcome.dialect = self.control("PATCH", "/service", {})["dialect"]
            self.account = AccountCheck(self.control)
            if self.balance is not None:
                self.control("PATCH", "/account", {"balance": f"{self.balance:.2f}"})
            self.base_url = emulator.base_url
            account = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
            account |= dict.fromkeys(API_KEY_SOURCES, "")
            account |= above_limits(self.program)
            # The passphrase of a rehearsal is no secret: the long derivation of its key would guard nothing.
            environ = {**account, **plugin_environ(Path(home)), WEAK_SECRETS: "true"}
            self.report(f"emulator: dialect {self.outcome.dialect}, at {emulator.base_url}")
            # A random name: the stack's settings file is beside the program's own ones, and is removed at the
            # end.
            self.stack = self.engine.stack(
                self.program, Path(home), environ, name=f"rehearsal-{token_hex(4)}"
            )
            try:
                for key, value in self.config.items():
                    self.stack.run("config", "set", key, value)
                self._run_steps()
                if self.outcome.failed and isinstance(self.stack, Stack):
                    self.stack.unprotect()
                    self.stack.destroy()  # the program may have clean-up of its own
            finally:
                self.stack.remove()
        self.report(f"rehearsal: {self.outcome.conclusion}")
        return self.outcome

    # --- the steps

    def _run_steps(self) -> None:
        stack = self.stack
        if self._step(stack.look, stack.preview, _changes, "shows the planned resources").exit_code:
            return
        if self._step(stack.act, stack.up, _changes, "creates them").exit_code:
            return
        self.outcome.cost = program_cost(self.control, self.base_url, self.control.ledger())
        if self.days is not None:
            self._play_days(self.days)
        elif isinstance(stack, Stack):
            self._drift_steps()
        if isinstance(stack, Stack):
            self._step("destroy", stack.destroy, _succeeds, self._removed)
        self.report(f"cost: {self.outcome.cost}")

    def _play_days(self, days: int) -> None:
        """Run what the nightly job and a merge would, on each day on which they may say something new."""
        shown: set[str] = set()
        with PaidDays(self.control, self.base_url, days) as paid:
            self.account.allowed.add(paid.subscription)
            for day in paid.stops():
                look = partial(self.stack.preview, "--expect-no-changes")
                run = self._step(f"day {day}: {self.stack.look}", look, _is_answered, "succeeds")
                paid.heard(self.stack.look, run.warnings)
                for line in dict.fromkeys(run.warnings):
                    if line not in shown:
                        self.report(f"       {line}")
                shown.update(run.warnings)
                if run.exit_code:
                    run = self._step(f"day {day}: {self.stack.act}", self.stack.up, _succeeds, "succeeds")
                    paid.heard(self.stack.act, run.warnings)
        self.outcome.losses = paid.losses
        for loss in paid.losses:
            self.report(f"LOST   {loss}")

    def _drift_steps(self) -> None:
        self._step(
            "up again",
            lambda: self.stack.up("--expect-no-changes"),
            lambda run: run.exit_code == 0 and not run.changed,
            "changes nothing",
        )
        self._step("drift check", self._check_drift, _succeeds, "finds nothing")
        for number, changed in enumerate(self._drifts(), 1):
            self._drift(number, changed)
        self._step("drift check", self._check_drift, _succeeds, "finds nothing more")

    def _drift(self, number: int, changed: list[tuple[str, str | None]]) -> None:
        what = ", ".join(f"{name}.{field}" for name, field in changed if field) or "all deleted"
        self._step(
            f"drift {number}: {what}",
            self._check_drift,
            lambda run: run.exit_code == 7 and self._names(run, changed),
            "is found and named",
        )
        self._step(f"repair {number}", lambda: self.stack.up("--refresh"), _changes, "repairs it")

    def _check_drift(self) -> Run:
        return self._program.refresh("--preview-only", "--expect-no-changes")

    def _drifts(self) -> Iterator[list[tuple[str, str | None]]]:
        """Round after round, change one more field outside in every resource; at the end delete all.

        Yields (resource, field as Pulumi spells it); the field is None if the object was deleted.
        """
        left = {managed.urn: managed.fields() for managed in self._resources()}
        rounds = max(map(len, left.values()), default=-1) + 1
        self.steps = 6 + 2 * rounds
        while any(left.values()):
            changed: list[tuple[str, str | None]] = []
            for managed in self._resources():
                if left.get(managed.urn):
                    field = left[managed.urn].pop(0)
                    managed.change(self.control, field)
                    changed.append((managed.name, camel(field)))
            yield changed
        if left:
            existing = self._resources()
            for managed in existing:
                managed.delete(self.control)
            yield [(managed.name, None) for managed in existing]

    def _resources(self) -> list[Managed]:
        return managed_resources(self._program.export())

    @staticmethod
    def _names(run: Run, changed: list[tuple[str, str | None]]) -> bool:
        """Whether the display shows which field of which resource differs, or that the resource is gone."""
        gone = {step.name for step in run.steps if step.op == "delete"}
        return all(
            re.search(rf"{re.escape(name)} .*\[diff: [^]]*[-~+,]{re.escape(field)}\b", run.output)
            if field
            else name in gone
            for name, field in changed
        )

    @property
    def _program(self) -> Stack:
        """The stack of a program: drift is made in what its state holds."""
        assert isinstance(self.stack, Stack)  # noqa: S101 — a playbook plays days alone
        return self.stack

    # --- the report

    def _step(
        self,
        title: str,
        act: Callable[[], Run],
        expected: Callable[[Run], bool],
        expectation: str | Callable[[], str],
    ) -> Run:
        """Run one step and report it. An ``expectation`` that depends on what the step left is asked then."""
        self.started(len(self.outcome.steps) + 1, self.steps, title)
        # The emulator's clock moves between steps, so that the limits per minute are not reached.
        self.control("POST", "/clock", {"advance": 60})
        if isinstance(self.stack, Stack):
            self.stack.unprotect()  # drift and the end replace and destroy what the program protects
        before, began = self.control.requests(), monotonic()
        run = act()
        seconds, sent = monotonic() - began, self.control.requests() - before
        managed = self.stack.managed()
        problems = [] if managed is None else self.account.check(managed, printed=run.output)
        passed = expected(run) and not problems
        text = expectation if isinstance(expectation, str) else expectation()
        if not passed:
            messages = run.errors or (() if expected(run) else run.output.strip().splitlines()[-12:])
            lines = [line.strip() for message in messages for line in message.splitlines()]
            problems = [*problems, *lines, *self._missing_configuration(messages)]
        step = StepOutcome(title, passed, text, run.changed, sent, seconds, tuple(problems), run.warnings)
        self.outcome.steps.append(step)
        result = "ok    " if passed else "FAILED"
        self.report(f"{result} {title:<34} {text}: {step.what} ({sent} requests)")
        for line in step.problems:
            self.report(f"       | {line}")
        return run

    def _removed(self) -> str:
        """What the destroy removed. What the API cannot delete, or the stack took over, stays."""
        remaining = self.account.remaining()
        return f"removes all but {', '.join(remaining)}" if remaining else "removes all"

    def _missing_configuration(self, messages: Iterable[str]) -> Iterator[str]:
        """How to give the configuration that the program misses: the stack of a rehearsal is a new one."""
        for key in dict.fromkeys(key for message in messages for key in _MISSING_KEY.findall(message)):
            yield f"Next: pulumi-hosting rehearse {self.program} --config {key}=<value>"


def above_limits(program: Path) -> dict[str, str]:
    """Variables that come before the limits in a project's own file: those are limits of the live account."""
    text = "".join(path.read_text(encoding="utf-8") for path in program.glob("Pulumi.y*ml"))
    high = {
        "maxCharge": ("HOSTING_MAX_CHARGE", "1000000.00"),
        "budget": ("HOSTING_BUDGET", "1000000.00/month"),
    }
    return dict(variable for name, variable in high.items() if f"hosting:{name}" in text)


def _succeeds(run: Run) -> bool:
    return run.exit_code == 0


def _is_answered(run: Run) -> bool:
    return run.exit_code in (0, 7)


def _changes(run: Run) -> bool:
    return run.exit_code == 0 and bool(run.changed)
