"""One simulation: what happens is drawn from a seed, and the account is compared with what both frontends
say of it."""

import os
import random
import tempfile
import traceback
from typing import Any

from tests.simulation.frontends import Frontends, Result
from tests.simulation.network import Network
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


class Scenario(Frontends):
    """The actions of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"scenario {seed}")  # noqa: S311  # repeatable on purpose
        rng = self.rng
        network = Network(seed, provisioning_delay=rng.choice((0, 0, 45)))
        variants = {name: rng.choice(values) for name, values in VARIANTS.items() if rng.random() < 0.4}
        network.control(
            "PATCH", "/service", {"readings": variants, "dialect": rng.choice(("spec", "spec", "live"))}
        )
        super().__init__(network, native=rng.random() < 0.5, seed=seed)
        self.program = self._program()
        self.tasks = self._tasks()
        self.log(f"{'native' if self.stack.native else 'dynamic'}, variants {variants}")

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

    def play(self) -> Result:
        """Run it all. Whatever goes wrong stands in the result."""
        before = os.environ.get("HOSTING_RUNTIME_DIR")
        with tempfile.TemporaryDirectory(prefix="sim-") as folder:
            os.environ["HOSTING_RUNTIME_DIR"] = f"{folder}/run"
            try:
                self._disturbed()
                self.settle(RUNS, late_first=bool(self.network.late) and self.rng.random() < 0.5)
            finally:
                if before is None:
                    del os.environ["HOSTING_RUNTIME_DIR"]
                else:
                    os.environ["HOSTING_RUNTIME_DIR"] = before
        return self.result

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

    def _command(self, command: str) -> None:
        if command == "edit":
            self._edit()
        elif command == "outside":
            self._change_outside()
        else:
            self.run(command)

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
        rng, servers = self.rng, self.living
        if not servers:
            return
        server = rng.choice(servers)
        if rng.random() < 0.4:
            self.delete_outside(server)
        else:
            change = {"auto_renew": not server["billing"]["auto_renew"]}
            self.network.control("PATCH", f"/servers/{server['id']}", change)
        self.log(f"    changed outside: server {server['id']}")


def run(seed: int) -> Result:
    """The simulation of one seed. The same seed ends the same way. A defect is a broken promise too."""
    scenario = Scenario(seed)
    try:
        return scenario.play()
    except Exception:  # noqa: BLE001  # told with the seed that repeats it
        scenario.result.problems.append(traceback.format_exc(limit=-8))
        return scenario.result
