"""Any order of edits, commands, faults, waits and changes by others, found and shortened by hypothesis."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.simulation.frontends import Frontends
from tests.simulation.network import FAULTS, Network
from tests.support.programs import PUBLIC_KEY

DAY = 86400.0
MEMORY = 7 * DAY
"""So long the service remembers an idempotency key."""
RUNS = 2
SERVERS, PLAYED = ("web", "db"), ("play-0", "play-1")
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "key": ("ssh_key", {"name": "me", "public_key": PUBLIC_KEY}),
    "address": ("server_ip", {"server_id": "=web"}),
    "domain": ("domain", {"name": "example.com", "auto_renew": True}),
    "hook": ("webhook_subscription", {"url": "https://hooks.example.org/x", "events": ["*"]}),
}
KINDS = (*FAULTS, "500", "timeout before", "timeout after")
COMMANDS = st.sampled_from(("up", "up", "up", "play", "play", "refresh"))
NOTES = st.sampled_from(("first", "second", "third"))


class BothFrontends(RuleBasedStateMachine):
    """A stack and a playbook on one account."""

    @initialize(
        native=st.booleans(),
        delay=st.sampled_from((0, 45)),
        dialect=st.sampled_from(("spec", "live")),
        declared=st.sets(st.sampled_from((*PLAYED, *OTHERS))),
    )
    def begin(self, native: bool, delay: int, dialect: str, declared: set[str]) -> None:
        self.before = os.environ.get("HOSTING_RUNTIME_DIR")
        self.folder = Path(tempfile.mkdtemp(prefix="stateful-"))
        os.environ["HOSTING_RUNTIME_DIR"] = str(self.folder)
        network = Network(0, provisioning_delay=delay)
        network.control("PATCH", "/service", {"dialect": dialect})
        self.both = Frontends(network, native)
        self.replaced: set[str] = set()
        """Names of servers whose replacement is not complete."""
        self.may_stop = False
        """Whether something happened after which a person may have to decide."""
        self.unfinished_for = 0.0
        """Seconds since a command failed that did not end since."""
        for name in ("web", *sorted(declared)):
            self.declare(name, None)

    @property
    def program(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return self.both.program

    # --- what is declared

    @rule(name=st.sampled_from((*SERVERS, *PLAYED, *OTHERS)), notes=st.none() | NOTES)
    def declare(self, name: str, notes: str | None) -> None:
        if name in OTHERS:
            if name not in self.program and (name != "address" or "web" in self.program):
                kind, given = OTHERS[name]
                self.program[name] = (kind, dict(given))
            return
        inputs: dict[str, Any] = {"name": name, "tariff_id": 1, "os": "debian-12"}
        if name in SERVERS:
            inputs = self.program.setdefault(name, ("server", inputs))[1]
        else:
            self.declare_absent(name)
            self.both.tasks[-1] = ("server", inputs)
        if notes:
            inputs["notes"] = notes

    @rule(name=st.sampled_from(PLAYED))
    def declare_absent(self, name: str) -> None:
        tasks = [task for task in self.both.tasks if task[1]["name"] != name]
        self.both.tasks = [*tasks, ("server", {"name": name, "state": "absent"})]

    @rule(name=st.sampled_from(SERVERS), image=st.sampled_from(("debian-12", "ubuntu-24.04")))
    def change_image(self, name: str, image: str) -> None:
        if name in self.program and self.program[name][1]["os"] != image:
            self.program[name][1]["os"] = image
            self.replaced.add(name)

    @precondition(lambda self: self.both.clean["up"])
    @rule(name=st.sampled_from((*SERVERS, *OTHERS)))
    def remove(self, name: str) -> None:
        """Only after a clean run: what a failed one bought is in no state."""
        if not (name == "web" and "address" in self.program):
            self.program.pop(name, None)

    # --- what is run, and what goes wrong

    @rule(command=COMMANDS)
    def run(self, command: str) -> None:
        self.both.run(command)
        if command == "up" and self.both.clean["up"]:
            self.replaced.clear()

    @rule(command=COMMANDS, kind=st.sampled_from(KINDS), after=st.integers(0, 12), times=st.integers(1, 3))
    def run_with_a_fault(self, command: str, kind: str, after: int, times: int) -> None:
        self.both.network.planned = [""] * after + [kind] * times
        self.run(command)

    @rule(command=COMMANDS, after=st.integers(0, 3))
    def run_killed_before_it_saves(self, command: str, after: int) -> None:
        self.both.network.killed_at_save = after
        self.run(command)

    @precondition(lambda self: self.both.clean["up"] and self.both.stack.entries)
    @rule(kind=st.sampled_from(("", *KINDS)), after=st.integers(0, 6))
    def destroy(self, kind: str, after: int) -> None:
        """Only after a clean run, as docs/crashes.md says. A domain stays, and must then be adopted."""
        self.both.network.planned = [""] * after + [kind]
        self.may_stop |= "domain" in self.both.stack.entries
        self.both.run("destroy")
        if self.both.clean["up"]:
            self.program.clear()
        else:  # only a refresh shows the engine what is gone
            self.both.network.planned.clear()
            self.both.network.killed_at_save = None
            self.both.run("refresh")

    @rule(outcome=st.sampled_from(("active", "cancelled", "failed")))
    def plan_slow_order(self, outcome: str) -> None:
        fault = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": outcome}}
        self.both.network.control("POST", "/faults", fault)

    @precondition(lambda self: self.both.network.late)
    @rule()
    def process_late(self) -> None:
        self.both.network.process_late()

    @rule(seconds=st.sampled_from((60.0, 3600.0, 6.9 * DAY, 7.1 * DAY)))
    def wait(self, seconds: float) -> None:
        network = self.both.network
        if seconds > 60:
            network.process_late()  # no network keeps a request for so long
        network.sleep(seconds)
        self.unfinished_for = 0.0 if all(self.both.clean.values()) else self.unfinished_for + seconds
        self.may_stop |= self.unfinished_for >= MEMORY

    @precondition(lambda self: self.both.living)
    @rule(number=st.integers(0, 3), is_deleted=st.booleans())
    def change_in_control_panel(self, number: int, is_deleted: bool) -> None:
        living = self.both.living
        server = living[number % len(living)]
        if is_deleted:
            self.both.delete_outside(server)
        else:
            change = {"auto_renew": not server["billing"]["auto_renew"]}
            self.both.network.control("PATCH", f"/servers/{server['id']}", change)

    # --- what must hold

    @invariant()
    def nothing_is_bought_twice_and_every_report_is_true(self) -> None:
        both = self.both
        twice = [line for line in both.twice() if not any(line.endswith(name) for name in self.replaced)]
        assert [*both.result.problems, *twice] == []

    @invariant()
    def nothing_shows_a_secret(self) -> None:
        both = self.both
        shown = [*both.result.log, *both.stack.messages]
        shown += [str([result.get("msg"), result["warnings"]]) for result in both.playbook.results]
        assert not [line for line in shown for secret in both.network.secrets if secret in line]

    def teardown(self) -> None:
        """Faults end: both come to rest within two runs, and the account is what they say."""
        both = self.both
        try:
            both.network.planned.clear()
            both.network.killed_at_save = None
            both.settle(RUNS, late_first=True)
            assert both.result.problems == []
            assert self.may_stop or both.result.stops == []
        finally:
            shutil.rmtree(self.folder)
            if self.before is None:
                del os.environ["HOSTING_RUNTIME_DIR"]
            else:
                os.environ["HOSTING_RUNTIME_DIR"] = self.before


EXAMPLES = 15 if settings().max_examples < 100 else 40
"""In the loop, and in the profile ``thorough``; ``make prove ARGS=histories`` plays more."""
TestBothFrontends = BothFrontends.TestCase
HISTORIES = settings(derandomize=True, stateful_step_count=15)
TestBothFrontends.settings = settings(HISTORIES, max_examples=EXAMPLES)
