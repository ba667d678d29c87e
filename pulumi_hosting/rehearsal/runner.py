"""Plays a Pulumi program against a fresh emulator, through its whole life: preview, up, up again, drift, repair, destroy.

Nothing real is touched and nothing is charged: the program talks to an emulator that lives as long as the rehearsal. Every step says what
it expects, what happened and how many requests it took. After every step the account must be what the state says: an object that lives and
is in no state fails the step, with its name and its price per month. At the end nothing is left but what the API cannot delete.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from secrets import token_hex

from pulumi_hosting.api.casing import camel
from pulumi_hosting.emulator import running
from pulumi_hosting.provider.plugin import install
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.drift import Managed, managed_resources
from pulumi_hosting.rehearsal.engines import PULUMI, Engine, Run
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects


def plugin_environ(engine: Engine, home: Path) -> dict[str, str]:
    """Put the plugin where ``engine`` finds it for a stack kept below ``home``; what that adds to the stack's environment."""
    place = install.install(environ={"PULUMI_HOME": str(home / "pulumi"), "PATH": ""})
    # Pulumi's own CLI finds it below PULUMI_HOME, and would warn of one on PATH; the offline engine looks on PATH alone.
    return {} if engine.name == PULUMI else {"PATH": f"{place}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


@dataclass
class Rehearsal:
    """One program on one engine. ``say`` receives each line of the report."""

    engine: Engine
    program: Path
    say: Callable[[str], None] = print
    dialect: str = "spec"
    config: Mapping[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def play(self) -> bool:
        """Run everything; True when every expectation held."""
        self.say(
            f"engine: {self.engine}" + (" (for trying and testing; real stacks are run by pulumi)" if self.engine.name == "offline" else "")
        )
        with tempfile.TemporaryDirectory(prefix="rehearsal-") as home, running(dialect=self.dialect) as emulator:
            self.control = Control(emulator.control_url)
            self.account = AccountCheck(self.control)
            account = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
            environ = {**account, **plugin_environ(self.engine, Path(home))}
            self.say(f"emulator: dialect {self.dialect}, at {emulator.base_url}")
            # A name nobody has: the settings file of the stack stands beside the program's own, and goes with the rehearsal.
            self.stack = self.engine.stack(self.program, Path(home), environ, name=f"rehearsal-{token_hex(4)}")
            try:
                for key, value in self.config.items():
                    self.stack.run("config", "set", key, value)
                self._acts()
                if self.failed:
                    self.stack.destroy()  # the emulator ends here anyway; the program's own clean-up should run as well
            finally:
                self.stack.remove()
        self.say("rehearsal: " + ("everything as expected" if not self.failed else f"not as expected: {'; '.join(self.failed)}"))
        return not self.failed

    # --- the acts

    def _acts(self) -> None:
        looked = self._step("preview", self.stack.preview, lambda run: run.exit_code == 0 and bool(run.changed), "shows what would be made")
        if looked.exit_code:
            return
        first = self._step("up", self.stack.up, lambda run: run.exit_code == 0 and bool(run.changed), "makes it")
        if first.exit_code:
            return
        self._step(
            "up again", lambda: self.stack.up("--expect-no-changes"), lambda run: run.exit_code == 0 and not run.changed, "changes nothing"
        )
        self._step("drift check", self._look, lambda run: run.exit_code == 0, "finds nothing")
        for number, changed in enumerate(self._drifts(), 1):
            self._drift(number, changed)
        self._step("drift check", self._look, lambda run: run.exit_code == 0, "finds nothing more")
        self._step("destroy", self.stack.destroy, lambda run: run.exit_code == 0, "removes all")
        self._costs()

    def _drift(self, number: int, changed: list[tuple[str, str | None]]) -> None:
        what = ", ".join(f"{name}.{field}" for name, field in changed if field) or "all deleted"
        self._step(
            f"drift {number}: {what}", self._look, lambda run: run.exit_code == 7 and self._names(run, changed), "is found and named"
        )
        self._step(
            f"repair {number}", lambda: self.stack.up("--refresh"), lambda run: run.exit_code == 0 and bool(run.changed), "repairs it"
        )

    def _look(self) -> Run:
        return self.stack.refresh("--preview-only", "--expect-no-changes")

    def _drifts(self) -> Iterator[list[tuple[str, str | None]]]:
        """Round after round, change one more field outside in every resource; at the end delete all.

        Yields (resource, field as Pulumi spells it); the field is None where the object was deleted.
        """
        left = {managed.urn: managed.fields() for managed in self._resources()}
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
        return managed_resources(self.stack.export())

    @staticmethod
    def _names(run: Run, changed: list[tuple[str, str | None]]) -> bool:
        """Whether the display shows which field of which resource differs, or that the resource is gone."""
        gone = {step.name for step in run.steps if step.op == "delete"}
        return all(
            name in gone if field is None else re.search(rf"{re.escape(name)} .*\[diff: [^]]*[-~+,]{re.escape(field)}\b", run.output)
            for name, field in changed
        )

    # --- the report

    def _step(self, title: str, act: Callable[[], Run], expected: Callable[[Run], bool], promise: str) -> Run:
        # A rehearsal does in a minute what takes a day: time passes between its steps, so that no limit per minute is met by haste.
        self.control("POST", "/clock", {"advance": 60})
        before = self.control.requests()
        run = act()
        sent = self.control.requests() - before
        problems = self.account.check(ManagedObjects.of_stack(*self.stack.saved()), printed=run.output)
        held = expected(run) and not problems
        what = ", ".join(f"{count} {op}" for op, count in sorted(run.changed.items())) or "no change"
        self.say(f"{'ok    ' if held else 'FAILED'} {title:<34} {promise}: {what} ({sent} requests)")
        if not held:
            self.failed.append(title)
            told = run.errors or (() if expected(run) else run.output.strip().splitlines()[-12:])
            for line in [*problems, *told]:
                self.say(f"       | {line}")
        return run

    def _costs(self) -> None:
        charged = refunded = Decimal(0)
        for movement in self.control.ledger():
            amount = abs(Decimal(str(movement["amount"])))
            if movement["direction"] == "debit":
                charged += amount
            else:
                refunded += amount
        self.say(f"cost: {charged} charged, {refunded} refunded, in {self.control.requests()} requests")


def rehearse(
    engine: Engine, program: Path, say: Callable[[str], None] = print, *, dialect: str = "spec", config: Mapping[str, str] | None = None
) -> bool:
    """Play the program in ``program`` on ``engine`` with this stack configuration; True when everything went as expected."""
    return Rehearsal(engine, program, say, dialect, config or {}).play()
