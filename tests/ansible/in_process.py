"""Runs modules in this process against an emulator in this process: what a play does, without the price of
ansible-playbook."""

import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.hosting.cloud.plugins.module_utils.run_memory import RunMemory
from ansible_collections.hosting.cloud.plugins.module_utils.shared_options import (
    boolean_problem,
    without_unknown_items,
)
from ansible_collections.hosting.cloud.plugins.module_utils.task import ModuleTask
from ansible_collections.hosting.cloud.plugins.plugin_utils.run_files import RunFiles
from pulumi_hosting.client.client import Client
from pulumi_hosting.emulator.in_process_transport import Transport
from pulumi_hosting.rehearsal.account_check import AccountCheck
from pulumi_hosting.rehearsal.managed_objects import ManagedObjects
from tests.ansible.test_specs import module
from tests.support.account import START, Account

Step = tuple[str, dict[str, Any]]
"""The name and the options of a task."""
BASE_URL = "http://127.0.0.1:1/v1"


def task_of(play: "Play", name: str, options: Mapping[str, Any]) -> ModuleTask:
    """A task of the play, with its arguments validated as by Ansible."""
    made = module(name).MODULE
    defaults = {option: value for option, value in play.defaults.items() if option in made.argument_spec}
    given = {"api_key": play.key, "base_url": BASE_URL, **defaults, **options}
    validated = ArgumentSpecValidator(made.argument_spec, **made.rules).validate(
        without_unknown_items(given) if play.check_mode else given
    )
    params = validated.validated_parameters
    memory = RunMemory(
        RunFiles(play.folder),
        account=lambda: str(params["api_key"]).split("_")[1],
        rights=lambda: str(params["api_key"]),
        key=str(params["api_key"]),
        holder=play.host,
        check_mode=play.check_mode,
    )
    refusal = boolean_problem(made.argument_spec, given) or (
        validated.errors.msg if validated.error_messages else None
    )
    return ModuleTask(
        params,
        frozenset(given),
        play.check_mode,
        True,
        memory,
        refusal,
        open_client=lambda given, read_only: play.client(given["api_key"], read_only),
    )


def result_of(name: str, task: ModuleTask) -> dict[str, Any]:
    """Run the task; its result, as a playbook registers it."""
    result = module(name).MODULE.answer(task)
    return {
        **result,
        "action": name,
        "failed": "failure" in result,
        "warnings": task.warnings,
        "invocation": {"module_args": dict(task.params)},
    }


class _Hooked(Transport):
    """Calls the play's ``before_write`` before its next write arrives, once; answers orders of servers with
    the play's ``damage``."""

    def __init__(self, play: "Play") -> None:
        super().__init__(play.emulated.core, sleep=play.emulated.slept.append)
        self._play = play

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "GET":
            happens, self._play.before_write = self._play.before_write, lambda: None
            happens()
        answer = super().handle_request(request)
        if self._play.damage is None or (request.method, request.url.path) != ("POST", "/v1/servers"):
            return answer
        return httpx.Response(
            answer.status_code, headers={"Content-Type": "application/json"}, content=self._play.damage
        )


class Play:
    """One run of a playbook: ``play("server", name="web-1", …)`` runs a task and returns its result with its
    warnings.

    ``defaults``: module defaults for all tasks. ``account``: what the account check knows of earlier runs.
    """

    def __init__(
        self, emulated: Account, *, check_mode: bool = False, key: str | None = None, **defaults: Any
    ) -> None:
        self.emulated, self.check_mode, self.defaults = emulated, check_mode, defaults
        self.key = key or emulated.live_key
        self.host = "localhost"
        self.folder = Path(tempfile.mkdtemp(prefix="play-"))
        self.before_write: Callable[[], object] = lambda: None
        self.damage: bytes | None = None
        self.results: list[dict[str, Any]] = []

    def client(self, key: str, read_only: bool) -> Client:
        transport = _Hooked(self)
        return Client(
            key,
            self.defaults.get("base_url", BASE_URL),
            transport=transport,
            clock=self.emulated.clock.now,
            sleep=lambda seconds: self.emulated.advance(seconds),
            read_only=read_only,
        )

    def __call__(self, name: str, /, **options: Any) -> dict[str, Any]:
        result = result_of(name, task_of(self, name, options))
        self.results.append(result)
        return result

    def run(self, *tasks: Step) -> list[dict[str, Any]]:
        """The results of these tasks; a failure does not end the run."""
        return [self(name, **options) for name, options in tasks]


def ahead(days: int) -> str:
    """The date so many days after the emulator's clock begins."""
    return (datetime.fromtimestamp(START, UTC) + timedelta(days=days)).date().isoformat()


def account_problems(emulated: Account, *plays: Play) -> list[str]:
    """What does not fit between the account and the results of the plays, which followed one another."""
    results = [result for play in plays for result in play.results if not play.check_mode]
    return AccountCheck(emulated.control).check(
        ManagedObjects.of_results(results), printed=" ".join(str(result["warnings"]) for result in results)
    )


def charged(emulated: Account) -> list[str]:
    """The amounts of the account's debits, oldest first."""
    return [row["amount"] for row in emulated.control("GET", "/ledger") if row["direction"] == "debit"]
