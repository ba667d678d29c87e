"""Playbooks run for real: ansible-playbook in a process of its own, against an emulator over HTTP."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from pulumi_hosting.client.client import Client
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from pulumi_hosting.rehearsal.warm_python import WarmPython
from tests.support import processes
from tests.support.account import AccountView
from tests.support.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]
COLLECTION = ROOT / "ansible_collections" / "hosting" / "cloud"
BIN = Path(sys.executable).parent


@dataclass
class Played:
    """One run of a playbook: what it printed, and its tasks' results by name, in order."""

    code: int
    output: str
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __getitem__(self, task: str) -> dict[str, Any]:
        found: dict[str, Any] = next(line["result"] for line in reversed(self.lines) if line["task"] == task)
        return found

    @property
    def results(self) -> list[dict[str, Any]]:
        return [line["result"] for line in self.lines]

    @property
    def changed(self) -> list[bool]:
        return [bool(result["changed"]) for result in self.results]


@dataclass
class Ansible(AccountView):
    """Runs playbooks against one emulator, in a HOME of their own."""

    emulator: Any
    client: Client
    home: Path
    environ: dict[str, str]
    python: tuple[str, ...] = ()
    """What runs Ansible's programs: a warm Python, or nothing for the one that their first line names."""
    program: tuple[str, ...] = ()
    """What runs playbooks, where it is not the ansible-playbook of this environment."""
    plays: int = 0
    only_checks: bool = False
    by_others: bool = False
    """Whether the play that was started last has another key than the account check's."""
    plays_now: bool = False
    """Whether a play was started and not seen to end, as one that was killed: what comes then is not the
    test's own."""
    seen: set[str] = field(default_factory=set)
    """Ids of what was on the account when the last play began or ended."""
    reported: list[dict[str, Any]] = field(default_factory=list)
    """Results of the real runs so far, with a live key, for the account check."""

    def __post_init__(self) -> None:
        self.control = Control(self.emulator.control_url)
        self.account = AccountCheck(self.control)

    def expect_account(self, output: str) -> None:
        """The account must be what the results of the plays say."""
        problems = self.account.check(ManagedObjects.of_results(self.reported), printed=output)
        assert problems == [], "\n".join([*problems, output])

    def there(self) -> dict[str, set[str]]:
        """What is on the account: the ids of its objects, each with what names the object."""
        objects = self.control("GET", "/objects")
        of = {
            str(row["id"]): {str(row["id"]), row["name"]}
            for kind in ("servers", "domains")
            for row in objects[kind]
        }
        found = dict(of)
        for row in (*objects["ssh_keys"], *objects["subscriptions"]):
            found[str(row["id"])] = {str(row["id"]), row.get("name") or row["url"]}
        for row in (*objects["invoices"], *objects["orders"]):
            owners = (str(row[owner]) for owner in ("server_id", "domain_id") if row.get(owner))
            found.setdefault(str(row["id"]), {str(row["id"])}).update(
                {row.get("server_name", "")}, *(of.get(id, {id}) for id in owners)
            )
        for row in objects["addresses"]:
            server = of.get(str(row["server_id"]), set())
            found[f"{row['server_id']}/{row['id']}"] = (
                {row["address"], *server} if row["bought"] else {row["address"]}
            )
        return found

    def allow_new(self, named: set[str] | None = None) -> None:
        """Let the account hold what came since the last play and is in no result: all of it, or what one of
        these names."""
        self.account.allowed |= {
            id
            for id, names in self.there().items()
            if id not in self.seen and (named is None or names & named)
        }

    def play(
        self,
        *tasks: Mapping[str, Any],
        arguments: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> Played:
        """Run these tasks. They must end well unless they say ``ignore_errors``."""
        process = self.start(*tasks, arguments=arguments, environ=environ)
        return self.finish(process)

    def start(
        self,
        *tasks: Mapping[str, Any],
        arguments: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
        variables: Mapping[str, Any] | None = None,
        cold: bool = False,
    ) -> "subprocess.Popen[str]":
        """Start a play. ``cold``: for plays that the test kills, with real Pythons, each the child of the one
        that started it."""
        self.plays += 1
        playbook = self.home / f"play-{self.plays}.yml"
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}", **(variables or {})},
            "tasks": list(tasks),
        }
        playbook.write_text(yaml.safe_dump([play], sort_keys=False))
        return self.start_file(playbook, arguments, environ, cold=cold)

    def start_file(
        self,
        playbook: Path,
        arguments: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
        *,
        cold: bool = False,
    ) -> "subprocess.Popen[str]":
        self.record.unlink(missing_ok=True)
        self.only_checks = bool({"--check", "-C", "--syntax-check"} & set(arguments))
        self.by_others = (environ or {}).get(
            "HOSTING_API_KEY", self.emulator.live_key
        ) != self.emulator.live_key
        if not self.plays_now:
            self.allow_new()  # put there by the test itself
        self.seen, self.plays_now = set(self.there()), True
        program = self.program or (*(() if cold else self.python), str(BIN / "ansible-playbook"))
        return subprocess.Popen(
            [*program, str(playbook), *arguments],
            env={**self.environ, **(environ or {})},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: "subprocess.Popen[str]", *, well: bool = True) -> Played:
        output, _ = process.communicate(timeout=HANG_SECONDS)
        lines = (
            [json.loads(line) for line in self.record.read_text().splitlines()]
            if self.record.exists()
            else []
        )
        assert not well or process.returncode == 0, output
        if self.by_others:
            self.allow_new()  # it holds what a play with another key made
        elif not self.only_checks:
            self.reported += [
                {**line["result"], "action": line["action"], "failed": line["outcome"] == "failed"}
                for line in lines
                if not line["check_mode"]
                and line["action"].startswith(("hosting.cloud.", "ansible.builtin.async_status"))
            ]
            if named := {name for line in lines for name in named_by_failures(line["result"])}:
                self.allow_new(named)
            self.expect_account(output)
        self.seen, self.plays_now = set(self.there()), False
        return Played(process.returncode, output, lines)

    @property
    def record(self) -> Path:
        return Path(self.environ["ANSIBLE_RECORD"])

    # --- what the account came to

    def server_charges(self) -> list[dict[str, Any]]:
        """What was paid for servers."""
        return [
            movement
            for movement in self.ledger()
            if movement["operation"] == "create_server" and movement["direction"] == "debit"
        ]

    def writes(self) -> list[str]:
        requests = self.control("GET", "/requests?since=0")
        return [
            f"{request['method']} {request['path']}" for request in requests if request["method"] != "GET"
        ]


def named_by_failures(result: Mapping[str, Any]) -> set[str]:
    """What a task named that failed when it may have made or bought something: ids and names in its arguments
    and in its message."""
    failure = result.get("failure") or {}
    names = {
        name
        for item in result.get("results") or ()
        if isinstance(item, Mapping)
        for name in named_by_failures(item)
    }
    if (
        failure.get("charge")
        or failure.get("outcome_unknown")
        or failure.get("code") in ("wait_timeout", "server_error")
    ):
        arguments = (result.get("invocation") or {}).get("module_args") or {}
        given = (arguments.get(name) for name in ("id", "name", "url", "server_id", "server_name"))
        names |= {str(value) for value in given if value} | set(
            re.findall(r"(?:server|order|domain|address)[ :](\d+)", result["msg"])
        )
    return names


def ansible_environ(emulator: Any, home: Path, runtime: Path | None = None) -> dict[str, str]:
    """A HOME without anything in it, the collection of this checkout, and the key. ``runtime``: for local
    files; without it, that of the test.
    """
    return {
        "HOME": str(home),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "0",
        "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "record",
        "ANSIBLE_RECORD": str(home / "results.jsonl"),
        "ANSIBLE_ROLES_PATH": str(COLLECTION / "tests" / "integration" / "targets"),
        "HOSTING_API_KEY": emulator.live_key,
        "HOSTING_BASE_URL": emulator.base_url,
        # of this test alone: keys repeat, and another test's rate limit is not this one's
        "HOSTING_RUNTIME_DIR": str(runtime or os.environ["HOSTING_RUNTIME_DIR"]),
    }


@pytest.fixture
def ansible(emulator: Any, warm_python: WarmPython, tmp_path: Path) -> Iterator[Ansible]:
    """Ansible in an environment of its own, on a warm Python."""
    home = tmp_path / "home"
    home.mkdir()
    with Client(emulator.live_key, emulator.base_url) as client:
        yield Ansible(emulator, client, home, ansible_environ(emulator, home), (str(warm_python.command),))
    shutil.rmtree(home, ignore_errors=True)


def kill_all(process: "subprocess.Popen[str]") -> None:
    """SIGKILL to the process and all its descendants: Ansible's workers lead sessions of their own, so no
    group holds them all."""
    processes.kill(processes.stop(process.pid))
    process.communicate()


def kill_workers(process: "subprocess.Popen[str]") -> None:
    """SIGKILL to all descendants of the process, and not to itself."""
    for child in processes.children(process.pid):
        processes.kill(processes.stop(child))
