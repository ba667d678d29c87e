# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The action plugin of every module: runs a task in the controller, without starting a process for the
module.

The module itself runs where that cannot be done: another host, another user, ``async``, a controller without
the package.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import nullcontext, suppress
from decimal import Decimal
from importlib import import_module
from pathlib import Path

from ansible import constants
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action import ActionBase

from ..module_utils.failures import failed, invalid_arguments, unusable
from ..module_utils.json_types import Json, Values
from ..module_utils.module import HostingModule, settle_charge
from ..module_utils.module_process import CONTROLLER
from ..module_utils.run_memory import UNKNOWN_ACCOUNT, RunMemory
from ..module_utils.shared_options import (
    boolean_problem,
    for_display,
    key_source_problem,
    private_key_lines,
    without_unknown_items,
)
from ..module_utils.task import ModuleTask, new_client
from .run_files import RunFiles

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.client import debug_log
    from pulumi_hosting.client.client import Client
    from pulumi_hosting.client.exceptions import HostingError
    from pulumi_hosting.planning.budget import Budget
    from pulumi_hosting.session.cost import Cost


_CLIENTS: dict[tuple[object, ...], Client] = {}


def module_named(name: str) -> HostingModule:
    """The module of the collection with this name."""
    found: HostingModule = import_module(f"ansible_collections.hosting.cloud.plugins.modules.{name}").MODULE
    return found


def shared_client(params: Values, read_only: bool) -> Client:
    """A client that the items of a loop share, and so its connection. A worker never uses one of the process
    it was forked from."""
    times = params["timeout"], params["rate_limit_timeout"]
    key = (os.getpid(), read_only, params["api_key"], params["base_url"], params.get("store"), *times)
    if key not in _CLIENTS:
        _CLIENTS[key] = new_client(params, read_only)
    return _CLIENTS[key]


class ControllerAction(ActionBase):
    """One task."""

    _supports_async = True
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: object = None, task_vars: Values | None = None) -> Json:
        super().run(tmp, task_vars)
        name = self._task.action.rpartition(".")[2]
        module = module_named(name)
        if unusable() is not None:  # nothing of the run can be known here: the module limits itself alone
            return self._run_module(None, task_vars)
        # Ansible's worker processes have no standard error.
        debug_log.show_with(lambda line: self._display.display(line, stderr=True))
        # made by Ansible for this run, and removed with it
        files = RunFiles(Path(constants.DEFAULT_LOCAL_TMP))
        task = self._task_of(module, files, task_vars)
        if task.budget.limited and not task.check_mode:
            task.warnings += files.charges_of_killed_runs()  # this run's limit does not count them
        if not self._is_for_the_controller():
            result = self._by_module(task, module, files, task_vars)
            return self._with(simulated(task, result), result)
        result = module.answer(task)
        task.warnings += simulated(task, result)
        if "failure" not in result and result.get("changed") and not task.check_mode:
            files.forget_planned()
        return self._printed(task, result)

    def _is_for_the_controller(self) -> bool:
        return (
            self._connection.transport == "local"
            and not self._task.async_val
            and not self._play_context.become
        )

    # --- in the controller

    def _task_of(self, module: HostingModule, files: RunFiles, task_vars: Values | None) -> ModuleTask:
        """The task's arguments, validated as a module's process validates them."""
        given = dict(self._task.args)
        check_mode, spec = bool(self._task.check_mode), module.argument_spec
        arguments = without_unknown_items(given) if check_mode else dict(given)
        own: Json = {}
        self._compute_environment_string(own)
        # Ansible applies the task's `environment` to a module's process only.
        environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
        for option, described in spec.items():
            if arguments.get(option) is None and "fallback" in described:
                for variable in environment.keys() & described["fallback"][1]:
                    arguments[option] = environment[variable]
        validated = ArgumentSpecValidator(spec, **module.rules).validate(arguments)
        refusal = key_source_problem(own) or boolean_problem(spec, given)
        if refusal is None and validated.error_messages:
            refusal = validated.errors.msg
            if isinstance(validated.errors[0], UnsupportedError):
                refusal = f"Unsupported parameters for ({self._task.action}) module: {refusal}"
        params = dict(validated.validated_parameters)
        # Ansible's numbers remember where they were written; the client refuses them
        for name, value in params.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                params[name] = float(value) if isinstance(value, float) else int(value)
        memory = RunMemory(
            files,
            account=lambda: _account_of(task),
            rights=lambda: _rights_of(task),
            key=hashlib.sha256(f"{params['base_url']} {params['api_key']}".encode()).hexdigest(),
            holder=f"{(task_vars or {}).get('inventory_hostname', '')} {self._task._uuid}",
            check_mode=check_mode,
        )
        task = ModuleTask(
            params,
            frozenset(given),
            check_mode,
            bool(self._task.diff),
            memory,
            refusal,
            shared_client,
            lambda line: self._display.display(f"{(task_vars or {}).get('inventory_hostname', '')}: {line}"),
        )
        task.hide({*validated._no_log_values, *private_key_lines(arguments)})
        return task

    @staticmethod
    def _printed(task: ModuleTask, result: Json) -> Json:
        """The result as a module prints it: with the arguments, and without secrets."""
        if "failure" in result:
            result["failed"] = True
        result.setdefault("invocation", {"module_args": for_display(task.params)})
        if task.warnings:
            result["warnings"] = list(task.warnings)
        shown: Json = remove_values(result, task.secrets)
        return shown

    # --- by the module

    def _by_module(
        self, task: ModuleTask, module: HostingModule, files: RunFiles, task_vars: Values | None
    ) -> Json:
        """Let the module's process run the task. It is given what the run knows, and returns what is new.

        Tasks with a limit run one after the other. A task with ``async`` goes on alone, so its price is
        booked before.
        """
        warnings = list(task.warnings)
        if task.refusal is not None:
            return self._with(warnings, self._run_module(None, task_vars))
        task.memory.declare(*module.declared_servers(task))
        try:
            budget = task.budget.checked()
        except HostingError as error:
            return self._printed(task, failed(error))
        if self._task.async_val:
            return self._with(warnings, self._alone(task, module, task_vars))
        limited = bool(budget.limited)
        with files.one_module_at_a_time() if limited else nullcontext():
            known = task.memory.for_module(charges=limited)
            result = self._run_module(known, task_vars, budget)
            _remember(task, result)
        return self._with(warnings, result)

    def _alone(self, task: ModuleTask, module: HostingModule, task_vars: Values | None) -> Json:
        """Price the task here, book it, and let it begin. With a limit it may charge what was booked and no
        more."""
        budget = task.budget
        if not (budget.limited or module.charges):
            return self._run_module(None, task_vars)
        priced = task.only_priced()
        predicted = module.answer(priced)
        failure = predicted.get("failure") or {}
        if not budget.limited and failure.get("code") != "max_charge":
            # What cannot be priced here is left to the job, unless the run orders nothing more.
            return self._run_module(None, task_vars)
        if failure:
            return self._printed(task, predicted)
        if (predicted.get("charge") or {"amount": "0"})["amount"] is None:
            text = "its price is not known before it begins, and async with max_charge needs it"
            return self._printed(task, invalid_arguments(f"{text}. Next: leave async or max_charge out"))
        amount = str(priced.booking[1].amount) if priced.booking else "0"
        return self._run_module({"booked": {"amount": amount}}, task_vars, budget)

    def _run_module(
        self, known: Values | None, task_vars: Values | None, budget: Budget | None = None
    ) -> Json:
        """``known``: what it gets to know of the run; None if it acts alone."""
        arguments = {**self._task.args, **(budget.limit_as_option() if budget else {})}
        if known is not None:
            arguments[CONTROLLER] = {**known, "log": os.environ.get("HOSTING_LOG")}
        wrap_async = self._task.async_val
        result: Json = self._execute_module(module_args=arguments, task_vars=task_vars, wrap_async=wrap_async)
        for line in (result.get(CONTROLLER) or {}).get("log") or ():
            self._display.display(line, stderr=True)
        if wrap_async or result.get("changed") or result.get("failed"):
            RunFiles(Path(constants.DEFAULT_LOCAL_TMP)).forget_snapshots()
        return result

    def _with(self, warnings: list[str], result: Json) -> Json:
        if self._task.async_val:  # what the job returns replaces this result
            for line in warnings:
                self._display.warning(line)
        elif warnings:
            result["warnings"] = [*result.get("warnings", ()), *warnings]
        return result


def simulated(task: ModuleTask, result: Values) -> list[str]:
    """That a test key's changes are not real, with the first one of the run: results show it by the mode of
    their object alone."""
    if task.check_mode or not result.get("changed") or not task.params.get("api_key"):
        return []
    if not task.client(True).is_test_key or not task.memory.is_first("simulated"):
        return []
    return [
        "this is a test key: what its tasks report as changed is simulated; nothing real is made, changed or "
        "charged"
    ]


def _remember(task: ModuleTask, result: Json) -> None:
    """Remember what a module's process reports, and take it out of the result."""
    news: Values = result.pop(CONTROLLER, None) or {}
    for effect in news.get("planned") or () if task.check_mode else ():
        task.memory.predict(effect)
    task.charge_name = news.get("charge_name")
    if booking := news.get("booking"):
        identity, amount, currency, what = booking
        task.booking = identity, Cost(Decimal(amount), currency, what)
        Budget(ledger=task.memory).book(*task.booking)
    settle_charge(task, result)


def _account_of(task: ModuleTask) -> str:
    """Whose money the task spends: two keys of one account have one limit. Asks the service."""
    if not task.params.get("api_key"):
        return UNKNOWN_ACCOUNT
    try:
        me = task.client(task.check_mode).key_owner.get()
    except HostingError:
        return UNKNOWN_ACCOUNT
    service = hashlib.sha256(str(task.params["base_url"]).encode()).hexdigest()[:16]
    return f"{me.account_id} {'live' if me.livemode else 'test'} {service}"


def _rights_of(task: ModuleTask) -> str:
    """What the task's key may do."""
    return " ".join(sorted(task.client(task.check_mode).key_owner.get().scopes))
