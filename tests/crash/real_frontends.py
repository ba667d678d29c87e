"""Pulumi programs and playbooks of the kill matrix as real processes: what is declared, what runs it, and
what it says of the account.
"""

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator import Running
from pulumi_hosting.emulator.clock import Clock
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.emulator.store import Store
from pulumi_hosting.rehearsal import engines
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.ansible.conftest import Ansible, ansible_environ
from tests.crash.cases import HOOK, LIVE_NAME, PASSWORD
from tests.crash.killing_server import KillingServer
from tests.simulation.network import Delivered
from tests.support.programs import PUBLIC_KEY, Declarations, Program, Ref, make_program
from tests.support.waiting import HANG_SECONDS

COMMANDS = ("create", "update", "delete")
"""Make everything, change everything that can be changed, remove everything."""
ANSIBLE = "ansible"
_SEED = 1
_PIPE_BYTES = 1 << 20
"""More than a pipe holds."""


@dataclass
class _Saved:
    """An account, and the files and results of the runs on it."""

    store: Store
    files: Path
    reported: list[dict[str, Any]]


class Frontend(ABC):
    """A form of Pulumi on an engine, or Ansible, on the account behind ``server``. Its files are in
    ``folder``: ``work`` is what the runs use.
    """

    def __init__(self, server: KillingServer, folder: Path) -> None:
        self.server, self.folder, self.work = server, folder, folder / "work"
        self.printed: list[str] = []
        self.reported: list[dict[str, Any]] = []
        self._saved: dict[str, _Saved] = {}
        self.work.mkdir(parents=True)
        self._use(None)
        self.account = self._running()
        self.control = Control(self.account.control_url)
        # Steps that take seconds here take hours in life: a key whose limits per minute no cell waits for.
        roomy = {"mode": "live", "rate_per_minute": 10000, "rate_expensive_per_minute": 10000}
        self.key = str(self.control("POST", "/keys", roomy)["key"])
        self.check = AccountCheck(self.control)

    def prepare(self) -> None:
        """Save what each command starts from."""
        self._save("create")
        failure = self.run("create")
        assert failure is None, failure
        self._save("update")
        self._saved["delete"] = self._saved["update"]

    def restore(self, command: str) -> None:
        """The account and the files, as they were before the command."""
        saved = self._saved[command]
        self._use(deepcopy(saved.store))
        shutil.rmtree(self.work)
        shutil.copytree(saved.files, self.work, symlinks=True)
        self.reported, self.printed = list(saved.reported), []
        self.check = AccountCheck(self.control)
        assert self.problems() == []

    def problems(self) -> list[str]:
        """How the account differs from what the frontend manages."""
        return self.check.check(self.managed(), printed=" ".join(self.printed))

    def leaks(self) -> list[str]:
        """Secrets in what was printed, and in files that are not the state."""
        kept = [path.read_text() for path in self.runtime.rglob("*") if path.is_file()]
        text = " ".join([*self.printed, *kept])
        secrets = {"the API key": self.key, "a password": PASSWORD}
        return [f"{name} was shown or kept" for name, secret in secrets.items() if secret in text]

    @property
    def runtime(self) -> Path:
        """The local files of the tool."""
        return self.work / "run"

    @abstractmethod
    def start(self, command: str) -> "subprocess.Popen[Any]":
        """A run that is killed: each of its processes is a child of the one that started it."""

    @abstractmethod
    def wait(self, process: "subprocess.Popen[Any]") -> None:
        """Return when that process has ended."""

    @abstractmethod
    def run(self, command: str) -> str | None:
        """A run to its end; the message of its failure."""

    @abstractmethod
    def managed(self) -> ManagedObjects:
        """What it holds itself to manage."""

    @abstractmethod
    def after_kill(self) -> None:
        """What a person does before the next run."""

    # --- the account

    def _use(self, store: Store | None) -> None:
        core = Core(clock=Clock(), seed=_SEED, loaded=store)
        core.announce(f"{self.server.origin}/v1", f"{self.server.origin}/_control", os.getpid())
        core.send = Delivered()
        self.core = core
        self.server.use(Transport(core))

    def _running(self) -> Running:
        return Running(**self.core.ready_line)

    def _save(self, name: str) -> None:
        files = self.folder / name
        shutil.copytree(self.work, files, symlinks=True)
        self._saved[name] = _Saved(deepcopy(self.core.store), files, list(self.reported))


class PulumiFrontend(Frontend):
    """``form``: ``dynamic`` or ``native``."""

    def __init__(self, form: str, engine: str, server: KillingServer, folder: Path) -> None:
        super().__init__(server, folder)
        self.program: Program = make_program(
            engines.choose(engine),
            self.account,
            self.work / "program",
            self.work / "home",
            form,
            HOSTING_API_KEY=self.key,
            HOSTING_RUNTIME_DIR=str(self.runtime),
        )

    def start(self, command: str) -> "subprocess.Popen[Any]":
        self._declare(command)
        operation = "destroy" if command == "delete" else "up"
        with self._output.open("wb") as output:
            return self.program.start_cold(operation, output)

    def wait(self, process: "subprocess.Popen[Any]") -> None:
        process.wait(HANG_SECONDS)
        self.printed.append(self._output.read_text(encoding="utf-8"))

    def run(self, command: str) -> str | None:
        self._declare(command)
        with self.program.stack.unchecked("the cell compares the account itself"):
            run = self.program.stack.destroy() if command == "delete" else self.program.stack.up()
        self.printed.append(run.output)
        return " ".join(run.errors) or run.output if run.exit_code else None

    def managed(self) -> ManagedObjects:
        return ManagedObjects.of_stack(*self.program.stack.saved())

    def after_kill(self) -> None:
        for path in self.work.rglob("*.json.attrs"):  # docs/troubleshooting.md
            if not path.stat().st_size:
                path.unlink()
        self.program.stack.cancel()

    @property
    def _output(self) -> Path:
        return self.work / "killed.txt"

    def _declare(self, command: str) -> None:
        self.program.declare(declared("update" if command == "update" else "create"))


def declared(command: str) -> Declarations:
    """The program that makes, or changes, everything."""
    first = command == "create"
    return {
        "key": ("SshKey", {"public_key": PUBLIC_KEY, "name": "me" if first else "you"}),
        "web": (
            "Server",
            {
                "tariff_id": 1,
                "os": "debian-12",
                "ssh_key_ids": [Ref("key.id")],
                "notes": "one" if first else "two",
                "auto_renew": first,
                "password": PASSWORD,
            },
        ),
        "spare": ("ServerIp", {"server_id": Ref("web.id")}),
        "pointer": (
            "Ptr",
            {
                "server_id": Ref("web.id"),
                "address": Ref("spare.address"),
                "domain": f"{'a' if first else 'b'}.example.com",
            },
        ),
        "hook": ("WebhookSubscription", {"url": HOOK, "events": ["*"] if first else ["ping"]}),
        "site": ("Domain", {"name": LIVE_NAME, "auto_renew": first}),
    }


class _Playbooks(Ansible):
    """As :class:`Ansible`; the cell compares the account itself."""

    def expect_account(self, output: str) -> None:
        return


class AnsibleFrontend(Frontend):
    """ansible-playbook, each run with one task per resource."""

    def __init__(self, server: KillingServer, folder: Path, warm: WarmPython) -> None:
        super().__init__(server, folder)
        home = self.work / "home"
        home.mkdir()
        self.playbooks = _Playbooks(
            self.account,
            Client(self.key, self.account.base_url),
            home,
            ansible_environ(self.account, home, self.runtime) | {"HOSTING_API_KEY": self.key},
            (str(warm.command),),
        )
        self._bought = ""

    def prepare(self) -> None:
        super().prepare()
        rows = self.control("GET", "/objects")["addresses"]
        self._bought = next(row["address"] for row in rows if row["bought"])

    def start(self, command: str) -> "subprocess.Popen[Any]":
        return self.playbooks.start(*self._tasks(command), cold=True)

    def wait(self, process: "subprocess.Popen[Any]") -> None:
        # Workers of a killed ansible-playbook live on and hold its output: its end does not come.
        process.wait(HANG_SECONDS)
        assert process.stdout is not None
        with process.stdout as output, suppress(BlockingIOError):
            os.set_blocking(output.fileno(), False)
            self.printed.append(os.read(output.fileno(), _PIPE_BYTES).decode())

    def run(self, command: str) -> str | None:
        self.playbooks.reported = self.reported
        process = self.playbooks.start(*self._tasks(command))
        played = self.playbooks.finish(process, well=False)
        self.reported = self.playbooks.reported
        self.printed.append(played.output)
        return played.output if played.code else None

    def managed(self) -> ManagedObjects:
        return ManagedObjects.of_results(self.reported)

    def after_kill(self) -> None:
        """Nothing."""

    def _tasks(self, command: str) -> list[dict[str, Any]]:
        options = self._absent() if command == "delete" else tasks(command)
        return [
            {"name": name, f"hosting.cloud.{name}": given, "register": f"made_{name}"}
            for name, given in options.items()
        ]

    def _absent(self) -> dict[str, dict[str, Any]]:
        named: dict[str, dict[str, Any]] = {
            "domain": {"name": LIVE_NAME},
            "webhook_subscription": {"url": HOOK},
            "ptr": {"server_name": "web"},
            "server_ip": {"server_name": "web", "address": self._bought},
            "server": {"name": "web"},
            "ssh_key": {"name": "me"},
        }
        return {name: {**options, "state": "absent"} for name, options in named.items()}


def tasks(command: str) -> dict[str, dict[str, Any]]:
    """The options of the tasks that make, or change, everything, by module."""
    first = command == "create"
    return {
        "ssh_key": {"name": "me", "public_key": PUBLIC_KEY},
        "server": {
            "name": "web",
            "tariff_id": 1,
            "os": "debian-12",
            "ssh_key_ids": ["{{ made_ssh_key.ssh_key.id }}"],
            "notes": "one" if first else "two",
            "auto_renew": first,
            "password": PASSWORD,
        },
        "server_ip": {"server_name": "web"},
        "ptr": {"server_name": "web", "domain": f"{'a' if first else 'b'}.example.com"},
        "webhook_subscription": {"url": HOOK, "events": ["*"] if first else ["ping"]},
        "domain": {"name": LIVE_NAME, "auto_renew": first},
    }
