"""A stack and a playbook on one account: their commands, and the comparison of the account with what both say
of it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from tests.simulation.network import Killed, Network
from tests.simulation.playbook import Playbook
from tests.simulation.stack import Stack, StepFailed

GONE = ("cancelled", "terminated")


@dataclass
class Result:
    """How a simulation ended. ``problems``: broken promises; ``stops``: runs that a person must decide."""

    seed: int
    problems: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    commands: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)


class Frontends:
    """``program`` and ``tasks`` are what is declared now; ``outside`` what was deleted by others."""

    def __init__(self, network: Network, native: bool, seed: int = 0) -> None:
        self.network = network
        network.control("PATCH", "/account", {"balance": "100000.00"})
        self.result = Result(seed)
        self.stack = Stack(network, "dev", native=native)
        self.playbook = Playbook(network)
        self.program: dict[str, tuple[str, dict[str, Any]]] = {}
        self.tasks: list[tuple[str, dict[str, Any]]] = []
        self.outside: set[tuple[str, str]] = set()
        control: Any = OutsideControl(network, self.outside)
        self.account = AccountCheck(control)
        self.clean = {"up": True, "play": True}
        """Whether the latest run of each frontend ended without a failure."""

    def log(self, line: str) -> None:
        self.result.log.append(line)

    @property
    def living(self) -> list[dict[str, Any]]:
        """Servers that are not deleted."""
        rows = self.network.control("GET", "/objects")["servers"]
        return [row for row in rows if row["status"] not in GONE]

    def run(self, command: str) -> str | None:
        """Run ``up``, ``play``, ``refresh`` or ``destroy``; the message of its failure, or None."""
        commands: dict[str, Callable[[], Any]] = {
            "up": lambda: self.stack.up(self.program),
            "play": lambda: self.playbook.run(self.tasks),
            "refresh": self.stack.refresh,
            "destroy": self.stack.destroy,
        }
        self.result.commands[command] += 1
        try:
            commands[command]()
        except Killed:
            failure: str | None = "killed"
        except StepFailed as error:
            failure = str(error)
        else:
            failure = None
        self.result.log.extend(f"    {line}" for line in self.network.happened)
        self.network.happened.clear()
        self.log(f"{command}: {failure or 'ended'}")
        frontend = "up" if command == "destroy" else command
        if frontend in self.clean:
            self.clean[frontend] = failure is None
        problems = self.problems()
        # Whoever ended without a failure has said that the account is so.
        if frontend in self.clean and all(self.clean.values()) and not self.network.late:
            self.result.problems += [f"after {command}: {problem}" for problem in problems]
        return failure

    def problems(self) -> list[str]:
        """How the account differs from what both frontends say of it."""
        managed = ManagedObjects((*self.stack.managed, *self.playbook.managed))
        return self.account.check(managed, printed=" ".join(self.stack.messages))

    def delete_outside(self, server: dict[str, Any]) -> None:
        """A server is deleted by staff, or in the control panel."""
        self.network.control("DELETE", f"/servers/{server['id']}")
        self.outside.add(("server", str(server["id"])))

    def settle(self, runs: int, late_first: bool) -> None:
        """Faults have ended: every frontend must come to rest within so many runs, and the account must be
        what they say. ``late_first``: requests still under way are processed before, not during the runs.
        """
        network = self.network
        network.fault_rate = 0.0
        network.control("DELETE", "/faults")
        if late_first:
            network.process_late()
        at_rest = {"stack": False, "playbook": not self.tasks}
        failures: dict[str, str | None] = {}
        for _ in range(runs):
            failures["refresh"] = self.run("refresh")
            failures["stack"] = failures["refresh"] or self.run("up")
            if self.tasks:
                failures["playbook"] = self.run("play")
            if not network.late and not any(failures.values()):
                break
            network.process_late()
            network.sleep(90)
        at_rest = {name: failures.get(name) is None for name in at_rest}
        for name, quiet in at_rest.items():
            if not quiet:
                message = str(failures[name])
                self.result.stops.append(message)
                if "Next:" not in message:
                    self.result.problems.append(f"a stop without a next step: {message}")
        self._compare(all(at_rest.values()))

    def twice(self) -> list[str]:
        """Names that several living servers have, beside those that a replacement leaves."""
        leaving = {entry.id for _, entry in self.stack.leaving}
        names = Counter(row["name"] for row in self.living if str(row["id"]) not in leaving)
        return [f"{count} servers named {name}" for name, count in names.items() if count > 1]

    def _compare(self, at_rest: bool) -> None:
        problems = self.problems()
        if not at_rest:
            # A stop comes before any charge: what is on the account must not be there twice.
            problems = [
                line for line in problems if "in no state" not in line and "on the account" not in line
            ]
        self.result.problems += [*problems, *self.twice()]
        if at_rest:
            declared = {str(inputs["name"]) for kind, inputs in self.program.values() if kind == "server"}
            declared |= {
                str(options["name"])
                for name, options in self.tasks
                if name == "server" and options.get("state") != "absent"
            }
            leaving = {entry.id for _, entry in self.stack.leaving}
            names = {row["name"] for row in self.living if str(row["id"]) not in leaving}
            if names != declared:
                self.result.problems.append(f"servers {sorted(names)}, declared {sorted(declared)}")


class OutsideControl:
    """The control interface, with what was deleted through it."""

    def __init__(self, network: Network, outside: set[tuple[str, str]]) -> None:
        self._network, self.outside = network, outside

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        return self._network.control(method, path, body)
