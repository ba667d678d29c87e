"""One simulation: what happens is drawn from a seed, and the account is compared with what both frontends
say of it."""

import os
import random
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from tests.simulation.network import Killed, Network
from tests.simulation.playbook import Playbook
from tests.simulation.stack import Stack, StepFailed
from tests.support.programs import PUBLIC_KEY

DELAYS = (0, 60, 3600, 6.9 * 86400, 7.1 * 86400, 20 * 86400)
"""Seconds between two commands: short, and on both sides of the seven days for which keys are remembered."""
LATEST = 3600
"""Seconds after which no request is processed any more that was sent before."""
VARIANTS: dict[str, tuple[Any, ...]] = {
    "refusals_stored": (True, False),
    "transient_refusals_stored": (True, False),
    "replay_request_id": ("fresh", "stored"),
    "body_comparison": ("parsed", "bytes"),
    "deleted_servers": ("gone", "listed"),
    "duplicate_ssh_key": ("conflict", "second"),
}
"""Behaviour variants of the service (docs/emulator-control.md)."""
RUNS = 4
"""So many further runs a frontend may need once all faults have ended."""


@dataclass
class Verdict:
    """How a simulation ended. ``problems``: broken promises; ``stops``: runs that a person must decide."""

    seed: int
    problems: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    commands: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)


class Scenario:
    """The actions of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"scenario {seed}")  # noqa: S311  # repeatable on purpose
        rng = self.rng
        self.verdict = Verdict(seed)
        self.network = Network(seed, provisioning_delay=rng.choice((0, 0, 45)))
        self.network.control("PATCH", "/account", {"balance": "100000.00"})
        variants = {name: rng.choice(values) for name, values in VARIANTS.items() if rng.random() < 0.4}
        self.network.control(
            "PATCH", "/service", {"readings": variants, "dialect": rng.choice(("spec", "spec", "live"))}
        )
        self.stack = Stack(self.network, "dev", native=rng.random() < 0.5)
        self.playbook = Playbook(self.network)
        self.program = self._program()
        self.tasks = self._tasks()
        self.outside: set[tuple[str, str]] = set()
        control: Any = _Control(self.network, self.outside)
        self.account = AccountCheck(control)
        self.clean = {"up": True, "play": True}
        """Whether the latest run of each frontend ended without a failure."""
        self.log(f"{'native' if self.stack.native else 'dynamic'}, variants {variants}")

    def log(self, line: str) -> None:
        self.verdict.log.append(line)

    # --- what is declared

    def _program(self) -> dict[str, tuple[str, dict[str, Any]]]:
        rng = self.rng
        program: dict[str, tuple[str, dict[str, Any]]] = {}
        if rng.random() < 0.4:
            program["key"] = ("ssh_key", {"name": "me", "public_key": PUBLIC_KEY})
        for name in ("web", "db")[: rng.choice((1, 1, 2))]:
            program[name] = ("server", {"name": name, "tariff_id": 1, "os": "debian-12"})
            if "key" in program and rng.random() < 0.5:
                program[name][1]["ssh_key_ids"] = ["=key"]
            if rng.random() < 0.3:
                program[name][1]["notes"] = "first"
        if rng.random() < 0.3:
            program["address"] = ("server_ip", {"server_id": "=web"})
        if rng.random() < 0.3:
            program["domain"] = ("domain", {"name": "example.com", "auto_renew": True})
        if rng.random() < 0.3:
            program["hook"] = (
                "webhook_subscription",
                {"url": "https://hooks.example.org/x", "events": ["*"]},
            )
        return program

    def _tasks(self) -> list[tuple[str, dict[str, Any]]]:
        tasks: list[tuple[str, dict[str, Any]]] = []
        for number in range(self.rng.choice((0, 1, 1, 2))):
            tasks.append(("server", {"name": f"play-{number}", "tariff_id": 1, "os": "debian-12"}))
            if self.rng.random() < 0.3:
                tasks[-1][1]["notes"] = "played"
        if tasks and self.rng.random() < 0.3:
            tasks.append(("domain", {"name": "example.net", "auto_renew": False}))
        return tasks

    # --- what happens

    def run(self) -> Verdict:
        """Run it all. Whatever goes wrong stands in the verdict."""
        before = os.environ.get("HOSTING_RUNTIME_DIR")
        with tempfile.TemporaryDirectory(prefix="sim-") as folder:
            os.environ["HOSTING_RUNTIME_DIR"] = f"{folder}/run"
            try:
                self._disturbed()
                self._settle()
            finally:
                if before is None:
                    del os.environ["HOSTING_RUNTIME_DIR"]
                else:
                    os.environ["HOSTING_RUNTIME_DIR"] = before
        return self.verdict

    def _disturbed(self) -> None:
        network, rng = self.network, self.rng
        for _ in range(rng.randint(1, 5)):
            network.fault_rate = rng.choice((0.0, 0.03, 0.1, 0.25))
            if rng.random() < 0.2:
                action = rng.choice(("active", "cancelled", "failed"))
                network.control(
                    "POST",
                    "/faults",
                    {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": action}},
                )
            self._command(rng.choice(("up", "up", "up", "play", "play", "refresh", "edit", "outside")))
            delay = rng.choice(DELAYS[:4]) if rng.random() < 0.8 else rng.choice(DELAYS)
            if delay > LATEST:
                network.process_late()
            network.sleep(delay)
        network.fault_rate = 0.0

    def _command(self, command: str) -> str | None:
        """Run one command; the message of its failure, or None."""
        self.verdict.commands[command] += 1
        try:
            if command == "up":
                self.stack.up(self.program)
            elif command == "play":
                self.playbook.run(self.tasks)
            elif command == "refresh":
                self.stack.refresh()
            elif command == "edit":
                self._edit()
            else:
                self._change_outside()
        except Killed:
            failure: str | None = "killed"
        except StepFailed as error:
            failure = str(error)
        else:
            failure = None
        self._take_log()
        self.log(f"{command}: {failure or 'ended'}")
        if command in self.clean:
            self.clean[command] = failure is None
        problems = self._problems()
        # Whoever ended without a failure has said that the account is so.
        if command in self.clean and all(self.clean.values()) and not self.network.late:
            self.verdict.problems += [f"after {command}: {problem}" for problem in problems]
        return failure

    def _problems(self) -> list[str]:
        """How the account differs from what both frontends say of it."""
        managed = ManagedObjects((*self.stack.managed, *self.playbook.managed))
        return self.account.check(managed, printed=" ".join(self.stack.messages))

    def _take_log(self) -> None:
        self.verdict.log.extend(f"    {line}" for line in self.network.happened)
        self.network.happened.clear()

    def _edit(self) -> None:
        """The program is changed: a setting, an image, a resource more or less."""
        rng = self.rng
        servers = [inputs for kind, inputs in self.program.values() if kind == "server"]
        choice = rng.choice(("notes", "os", "remove", "hook"))
        if choice == "notes":
            rng.choice(servers)["notes"] = rng.choice(("second", "third"))
        elif choice == "os":
            rng.choice(servers)["os"] = "ubuntu-24.04"
        elif choice == "hook" and "hook" in self.program:
            self.program["hook"][1]["events"] = ["ping"]
        elif choice == "remove" and self.clean["up"]:
            # What a failed run bought and the program then leaves out is in no state: a known limit.
            used = {str(value) for _, inputs in self.program.values() for value in inputs.values()}
            for name in reversed(list(self.program)):
                if name != "web" and not any(f"={name}" in value for value in used):
                    del self.program[name]
                    break
        self.log(f"    edited: {choice}")

    def _change_outside(self) -> None:
        """A change by staff, or in the control panel."""
        rng, control = self.rng, self.network.control
        objects = control("GET", "/objects")
        servers = [row for row in objects["servers"] if row["status"] not in ("cancelled", "terminated")]
        if not servers:
            return
        server = rng.choice(servers)
        if rng.random() < 0.4:
            control("DELETE", f"/servers/{server['id']}")
            self.outside.add(("server", str(server["id"])))
        else:
            control("PATCH", f"/servers/{server['id']}", {"auto_renew": not server["billing"]["auto_renew"]})
        self.log(f"    changed outside: server {server['id']}")

    # --- how it must end

    def _settle(self) -> None:
        """Faults have ended: every frontend must come to rest, and the account must be what they say."""
        network = self.network
        network.fault_rate = 0.0
        network.control("DELETE", "/faults")
        if network.late and self.rng.random() < 0.5:
            network.process_late()  # else during the next run
        at_rest = {"stack": False, "playbook": not self.tasks}
        failures: dict[str, str | None] = {}
        for _ in range(RUNS):
            failures["refresh"] = self._command("refresh")
            failures["stack"] = failures["refresh"] or self._command("up")
            if self.tasks:
                failures["playbook"] = self._command("play")
            if not network.late and not any(failures.values()):
                break
            network.process_late()
            network.sleep(90)
        at_rest = {name: failures.get(name) is None for name in at_rest}
        for name, quiet in at_rest.items():
            if not quiet:
                message = str(failures[name])
                self.verdict.stops.append(message)
                if "Next:" not in message:
                    self.verdict.problems.append(f"a stop without a next step: {message}")
        self._compare(all(at_rest.values()))

    def _compare(self, at_rest: bool) -> None:
        network = self.network
        problems = self._problems()
        if not at_rest:
            # A stop comes before any charge: what is on the account must not be there twice.
            problems = [
                line for line in problems if "in no state" not in line and "on the account" not in line
            ]
        self.verdict.problems += problems
        names = Counter(
            row["name"]
            for row in network.control("GET", "/objects")["servers"]
            if row["status"] not in ("cancelled", "terminated")
            and str(row["id"]) not in {entry.id for _, entry in self.stack.leaving}
        )
        self.verdict.problems += [
            f"{count} servers named {name}" for name, count in names.items() if count > 1
        ]
        if at_rest:
            declared = {str(inputs["name"]) for kind, inputs in self.program.values() if kind == "server"}
            declared |= {str(options["name"]) for name, options in self.tasks if name == "server"}
            if set(names) != declared:
                self.verdict.problems.append(f"servers {sorted(names)}, declared {sorted(declared)}")


class _Control:
    """The control interface, with what was deleted through it."""

    def __init__(self, network: Network, outside: set[tuple[str, str]]) -> None:
        self._network, self.outside = network, outside

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        return self._network.control(method, path, body)


def run(seed: int) -> Verdict:
    """The simulation of one seed. The same seed ends the same way. A defect is a broken promise too."""
    scenario = Scenario(seed)
    try:
        return scenario.run()
    except Exception:  # noqa: BLE001  # told with the seed that repeats it
        scenario.verdict.problems.append(traceback.format_exc(limit=-8))
        return scenario.verdict
