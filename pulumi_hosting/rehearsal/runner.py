"""Plays a Pulumi program against a fresh emulator, through its whole life: preview, up, up again, drift, repair, destroy.

Nothing real is touched and nothing is charged: the program talks to an emulator that lives as long as the rehearsal. Every step says what
it expects, what happened and how many requests it took. After every step the account must be what the state says: an object that lives and
is in no state fails the step, with its name and its price per month. At the end nothing is left but what the API cannot delete.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from secrets import token_hex
from typing import Any

from pulumi_hosting.emulator import running
from pulumi_hosting.provider.plugin import install
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.engines import PULUMI, Engine, Run
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects

FORMS = ("pulumi-python:dynamic/hosting:", "hosting:index:")
"""What stands before a resource in Pulumi's types: dynamic resources, and the plugin's."""

GONE = "(gone)"
_ADDRESS = "/servers/{head}/ips/{tail}"  # ids of addresses and of reverse DNS are <server id>/<address id>


@dataclass(frozen=True, slots=True)
class Drift:
    """How something managed changes behind Pulumi's back: a call of the emulator's control interface on ``path``."""

    field: str
    path: str
    other: Callable[[Any], Any] | None = None
    """The value it changes to, given the present one; None = the object is deleted."""
    sent_as: str | None = None
    """What the control interface calls the field, where that differs."""

    @property
    def wire_name(self) -> str:
        """The field as Pulumi spells it."""
        head, *rest = self.field.split("_")
        return head + "".join(part.capitalize() for part in rest)

    def concerns(self, resource: Mapping[str, Any]) -> bool:
        """Whether the program manages this of the resource."""
        if self.field == "os" and resource["inputs"].get("rebuild") == "forbid":
            return False  # the program says that this must not be repaired
        return self.field == GONE or self.field in resource["outputs"].get("__managed", ())

    def happen(self, control: Control, resource: Mapping[str, Any]) -> None:
        """Let it happen to the resource, as the stack's state holds it."""
        id = str(resource["id"])
        head, _, tail = id.partition("/")
        path = self.path.format(id=id, head=head, tail=tail)
        if self.other is None:
            control("DELETE", path)
        else:
            control("PATCH", path, {self.sent_as or self.field: self.other(resource["outputs"].get(self.wire_name))})


# Per resource, every managed field that somebody can change outside, and deletion. What goes with a server comes before servers: once the
# server is deleted, nothing is left to delete.
DRIFTS: Mapping[str, Sequence[Drift]] = {
    "Ptr": (
        Drift("domain", _ADDRESS, lambda value: "elsewhere.example.net", "ptr"),
        Drift(GONE, _ADDRESS, lambda value: None, "ptr"),
    ),
    "ServerIp": (Drift(GONE, _ADDRESS),),
    "Server": (
        Drift("name", "/servers/{id}", lambda value: f"{value}-renamed"),
        Drift("notes", "/servers/{id}", lambda value: "changed in the cabinet"),
        Drift("auto_renew", "/servers/{id}", lambda value: not value),
        Drift("power", "/servers/{id}", lambda value: "active" if value == "stopped" else "stopped", "status"),
        Drift("os", "/servers/{id}", lambda value: "almalinux-9" if value != "almalinux-9" else "debian-12"),
        Drift(GONE, "/servers/{id}"),
    ),
    "SshKey": (
        Drift("name", "/ssh-keys/{id}", lambda value: f"{value}-renamed"),
        Drift(GONE, "/ssh-keys/{id}"),
    ),
    "Domain": (
        Drift("nameservers", "/domains/{id}", lambda value: ["ns1.example.org", "ns2.example.org"]),
        Drift("privacy", "/domains/{id}", lambda value: not value),
        Drift("auto_renew", "/domains/{id}", lambda value: not value),
        Drift(GONE, "/domains/{id}"),
    ),
    "WebhookSubscription": (
        Drift("url", "/webhooks/{id}", lambda value: "https://elsewhere.example.net/"),
        Drift("events", "/webhooks/{id}", lambda value: ["ping"]),
        Drift("description", "/webhooks/{id}", lambda value: "changed in the cabinet"),
        Drift("active", "/webhooks/{id}", lambda value: not value),
        Drift(GONE, "/webhooks/{id}"),
    ),
}


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

    def _drift(self, number: int, changed: list[tuple[str, str]]) -> None:
        what = ", ".join(f"{name}.{field}" for name, field in changed if field != GONE) or "all deleted"
        self._step(
            f"drift {number}: {what}", self._look, lambda run: run.exit_code == 7 and self._names(run, changed), "is found and named"
        )
        self._step(
            f"repair {number}", lambda: self.stack.up("--refresh"), lambda run: run.exit_code == 0 and bool(run.changed), "repairs it"
        )

    def _look(self) -> Run:
        return self.stack.refresh("--preview-only", "--expect-no-changes")

    def _drifts(self) -> Iterator[list[tuple[str, str]]]:
        """Round after round, change one more field outside in every resource; in the end delete all. Yields (resource, field)."""
        left = {
            resource["urn"]: [drift for drift in DRIFTS[kind] if drift.field != GONE and drift.concerns(resource)]
            for kind, resource in self._resources()
        }
        while any(left.values()):
            yield self._happen((resource, left[resource["urn"]].pop(0)) for _, resource in self._resources() if left.get(resource["urn"]))
        if left:
            yield self._happen((resource, DRIFTS[kind][-1]) for kind, resource in self._resources())

    def _happen(self, drifts: Iterable[tuple[dict[str, Any], Drift]]) -> list[tuple[str, str]]:
        changed = []
        for resource, drift in drifts:
            drift.happen(self.control, resource)
            changed.append((resource["urn"].rsplit("::", 1)[-1], drift.wire_name))
        return changed

    def _resources(self) -> list[tuple[str, dict[str, Any]]]:
        """The resources of the stack as (kind, resource), in the order in which things can happen to them."""
        exported = self.stack.export()["deployment"].get("resources", [])
        names = {form + kind: kind for kind in DRIFTS for form in FORMS}
        found = [
            (names[resource["type"]], resource)
            for resource in exported
            if resource["type"] in names and not resource.get("external") and not resource.get("delete")
        ]
        return sorted(found, key=lambda pair: list(DRIFTS).index(pair[0]))

    @staticmethod
    def _names(run: Run, changed: list[tuple[str, str]]) -> bool:
        """Whether the display tells a person which field of which resource differs, or that the resource is gone."""
        gone = {step.name for step in run.steps if step.op == "delete"}
        return all(
            name in gone if field == GONE else re.search(rf"{re.escape(name)} .*\[diff: [^]]*[-~+,]{re.escape(field)}\b", run.output)
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
