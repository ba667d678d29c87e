"""Plays a Pulumi program against a fresh emulator, through its whole life: preview, up, up again, drift, repair, destroy.

Nothing real is touched and nothing is charged: the program talks to an emulator that lives as long as the rehearsal. Every step says what
it expects, what happened, how many requests it took and what it cost.
"""

import json
import re
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from typing import Any

from pulumi_hosting.emulator import running
from pulumi_hosting.engines import Engine, Run

DYNAMIC = "pulumi-python:dynamic/hosting:"


@dataclass(frozen=True, slots=True)
class Drift:
    """How something managed changes behind Pulumi's back: a call of the emulator's control interface on ``path``."""

    field: str
    path: str
    other: Callable[[Any], Any] | None = None
    """The value it changes to, given the present one; None = the object is deleted."""

    @property
    def wire_name(self) -> str:
        """The field as Pulumi spells it."""
        head, *rest = self.field.split("_")
        return head + "".join(part.capitalize() for part in rest)


# Per resource type, every managed field that somebody can change outside, and deletion.
DRIFTS: Mapping[str, Sequence[Drift]] = {
    "Server": (
        Drift("name", "/servers/{id}", lambda value: f"{value}-renamed"),
        Drift("notes", "/servers/{id}", lambda value: "changed in the cabinet"),
        Drift("auto_renew", "/servers/{id}", lambda value: not value),
        Drift("os", "/servers/{id}", lambda value: "almalinux-9" if value != "almalinux-9" else "debian-12"),
        Drift("(gone)", "/servers/{id}"),
    ),
    "SshKey": (
        Drift("name", "/ssh-keys/{id}", lambda value: f"{value}-renamed"),
        Drift("(gone)", "/ssh-keys/{id}"),
    ),
}


@dataclass
class Control:
    """The emulator's control interface, seen from the rehearsal."""

    url: str

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310  # our own emulator on loopback
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # the same
            return json.loads(answer.read() or b"null")

    def requests(self) -> int:
        found = self("GET", "/requests?since=0")
        return len(found["requests"] if isinstance(found, dict) else found)

    def ledger(self) -> list[dict[str, Any]]:
        found = self("GET", "/ledger")
        return list(found["ledger"] if isinstance(found, dict) else found)


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
            environ = {"HOSTING_API_KEY": emulator.live_key, "HOSTING_BASE_URL": emulator.base_url}
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
        for title, changed in self._drifts():
            self._drift(title, changed)
        self._step("drift check", self._look, lambda run: run.exit_code == 0, "finds nothing more")
        self._step("destroy", self.stack.destroy, lambda run: run.exit_code == 0, "removes all")
        self._costs()

    def _drift(self, title: str, changed: list[tuple[str, str]]) -> None:
        self._step(f"drift: {title}", self._look, lambda run: run.exit_code == 7 and self._names(run, changed), "is found and named")
        self._step(
            f"repair: {title}", lambda: self.stack.up("--refresh"), lambda run: run.exit_code == 0 and bool(run.changed), "is repaired"
        )

    def _look(self) -> Run:
        return self.stack.refresh("--preview-only", "--expect-no-changes")

    def _drifts(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Change one field after the other outside, in every resource that manages it; yields the title and (resource, field)."""
        for kind, drifts in DRIFTS.items():
            for drift in drifts:
                changed = []
                for resource in self._resources(kind):
                    outputs = resource["outputs"]
                    if drift.other is None:
                        self.control("DELETE", drift.path.format(id=resource["id"]))
                    elif drift.field in outputs.get("__managed", ()):
                        patch = {drift.field: drift.other(outputs.get(drift.wire_name))}
                        self.control("PATCH", drift.path.format(id=resource["id"]), patch)
                    else:
                        continue
                    changed.append((resource["urn"].rsplit("::", 1)[-1], drift.wire_name))
                if changed:
                    yield f"{kind}.{drift.field} of {', '.join(name for name, _ in changed)}", changed

    def _resources(self, kind: str) -> list[dict[str, Any]]:
        exported = self.stack.export()["deployment"].get("resources", [])
        return [resource for resource in exported if resource["type"] == f"{DYNAMIC}{kind}"]

    @staticmethod
    def _names(run: Run, changed: list[tuple[str, str]]) -> bool:
        """Whether the display tells a person which field of which resource differs, or that the resource is gone."""
        gone = {step.name for step in run.steps if step.op == "delete"}
        return all(
            name in gone if field == "(gone)" else re.search(rf"{re.escape(name)} .*\[diff: [^]]*~{re.escape(field)}\b", run.output)
            for name, field in changed
        )

    # --- the report

    def _step(self, title: str, act: Callable[[], Run], expected: Callable[[Run], bool], promise: str) -> Run:
        before = self.control.requests()
        run = act()
        sent = self.control.requests() - before
        held = expected(run)
        what = ", ".join(f"{count} {op}" for op, count in sorted(run.changed.items())) or "no change"
        self.say(f"{'ok    ' if held else 'FAILED'} {title:<34} {promise}: {what} ({sent} requests)")
        if not held:
            self.failed.append(title)
            for line in [*run.errors, *(() if run.errors else run.output.strip().splitlines()[-12:])]:
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
