# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Does the work of every module of the collection in the controller, where the API is asked from anyway.

A module costs a process of its own that first imports everything it needs. Here the core is imported once, by Ansible's own process, and
every fork inherits it. Whatever needs the module itself gets it: another host, another user, ``async``, a controller without the core.
``meta/runtime.yml`` sends all modules to this one file; its name is a module's because Ansible wants it so.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible import constants
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action import ActionBase

from ansible_collections.hosting.cloud.plugins.module_utils.runner import (
    Call,
    Module,
    connected,
    private_lines,
    refusal_of_arguments,
    unusable,
    without_unknown_items,
)

if TYPE_CHECKING:
    from pulumi_hosting.api.client import Client
    from pulumi_hosting.resources.budget import Budget

try:
    import httpx

    from pulumi_hosting.api.operations import OPERATIONS
    from pulumi_hosting.api.transport import tls_context

    importlib.import_module("tenacity")  # the client loads it with its first request
    importlib.import_module("pulumi_hosting.resources.actions")  # every noun and the engine with it
except ImportError:  # the module then says what is missing, and where
    pass
else:
    # For the forks to inherit: what would be put off until it is needed would be made anew in each of them.
    httpx.Client(verify=tls_context(None)).close()
    for row in OPERATIONS:
        for model in (*row.responses.values(), row.query, row.request):
            if hasattr(model, "model_rebuild"):
                model.model_rebuild()
    for part in ("deeds", "nouns", "reads"):
        importlib.import_module(f"ansible_collections.hosting.cloud.plugins.module_utils.{part}")
    unusable()

_CLIENTS: dict[tuple[object, ...], Client] = {}


class ActionModule(ActionBase):
    """One task."""

    _supports_async = True
    _supports_check_mode = True
    _supports_diff = True
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        name = self._task.action.rpartition(".")[2]
        if not self._is_for_the_controller() or unusable() is not None:
            return self._by_module(task_vars)
        module: Module = importlib.import_module(f"ansible_collections.hosting.cloud.plugins.modules.{name}").MODULE
        call = FastCall(self, module, name)
        if call.refusal is not None:
            return call.printed({"failed": True, **refusal_of_arguments(call.refusal), "msg": call.refusal})
        result = module.answer(call)
        if "failure" in result:
            result["failed"] = True
        return call.printed(result)

    def _is_for_the_controller(self) -> bool:
        return self._connection.transport == "local" and not self._task.async_val and not self._play_context.become

    def _by_module(self, task_vars: Any) -> dict[str, Any]:
        """Have the module do it. What the run may still charge travels with it, and what it charged, or may have charged, comes back.

        Tasks that are limited are done one after the other; those with ``async`` go on by themselves and are not counted.
        """
        arguments = dict(self._task.args)
        limit = arguments.get("max_charge") or self.environment().get("HOSTING_MAX_CHARGE")
        charges = charges_file(bool(self._task.check_mode))
        left = _left(limit, charges)
        if left is None:
            return self._module(arguments, task_vars)
        arguments["max_charge"] = str(left)
        if self._task.async_val:
            return self._module(arguments, task_vars)
        with _locked(charges.with_suffix(".modules.json")):
            arguments["max_charge"] = str(_left(limit, charges))
            result = self._module(arguments, task_vars)
            charged = result.get("charge") or (result.get("failure") or {}).get("charge")
            if isinstance(charged, dict):
                with _locked(charges) as planned:
                    planned[os.urandom(8).hex()] = (charged["amount"], charged["currency"], "by a module")
        return result

    def _module(self, arguments: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars, wrap_async=self._task.async_val)
        return result

    def environment(self) -> dict[str, str]:
        """The controller's own, and what the task says under ``environment``: that is meant for a module's process, which there is none
        of here."""
        said: dict[str, Any] = {}
        self._compute_environment_string(said)
        return {**os.environ, **{name: str(value) for name, value in said.items()}}


class FastCall(Call):
    """A task that is worked on in the controller. ``refusal``: why its options cannot be used, if so."""

    def __init__(self, action: ActionModule, module: Module, name: str) -> None:
        arguments = dict(action._task.args)
        self.written = frozenset(arguments)
        self.check_mode = bool(action._task.check_mode)
        self.wants_diff = bool(action._task.diff)
        self._warnings: list[str] = []
        self._task = str(action._task._uuid)
        spec = module.argument_spec
        environment = action.environment()
        for option, described in spec.items():
            for variable in described["fallback"][1] if arguments.get(option) is None and "fallback" in described else ():
                if variable in environment:
                    arguments[option] = environment[variable]
        validated = ArgumentSpecValidator(spec, **module.rules).validate(arguments)
        self._secrets: set[str] = {*validated._no_log_values, *private_lines(arguments)}
        self.params = validated.validated_parameters
        if self.check_mode:
            self.params = without_unknown_items(self.params)
        self.refusal: str | None = None
        if validated.error_messages:
            wrong = validated.errors.msg
            is_unknown = isinstance(validated.errors[0], UnsupportedError)
            self.refusal = f"Unsupported parameters for ({action._task.action}) module: {wrong}" if is_unknown else wrong

    def warn(self, warning: str) -> None:
        self._warnings.append(warning)

    def hide(self, secrets: Iterable[str]) -> None:
        self._secrets.update(secrets)

    def connect(self, read_only: bool) -> Client:
        # The items of a loop share one process, and so one connection; a fork must never use its parent's.
        key = (os.getpid(), read_only, self.params["api_key"], self.params["base_url"], self.params["timeout"])
        if key not in _CLIENTS:
            _CLIENTS[key] = connected(self.params, read_only)
        return _CLIENTS[key]

    def budget(self) -> Budget:
        # A task that is tried again means the same charge; another task, or another account, another one.
        account = hashlib.sha256(f"{self.params['base_url']} {self.params['api_key']}".encode()).hexdigest()
        return run_budget(f"{self._task}/{account}", charges_file(self.check_mode))

    def release(self) -> None:
        super().release()
        with _locked(charges_file(self.check_mode)) as planned:
            for identity in [name for name in planned if name.startswith(f"{self._task}/")]:
                del planned[identity]

    def foretell(self, kind: str, name: str) -> None:
        with _locked(_foretold_file()) as foretold:
            foretold[f"{kind}/{name}"] = True

    def is_foretold(self, kind: str, name: str) -> bool:
        with _locked(_foretold_file()) as foretold:
            return f"{kind}/{name}" in foretold

    def printed(self, result: dict[str, Any]) -> dict[str, Any]:
        """As a module prints it: with the arguments, and no secret in it."""
        result.setdefault("invocation", {"module_args": self.params})
        if self._warnings:
            result["warnings"] = list(self._warnings)
        shown: dict[str, Any] = remove_values(result, self._secrets)
        return shown


# --- what a run of ansible-playbook has charged so far -----------------------------------------------------------------------


def _left(limit: Any, charges: Path) -> Decimal | None:
    """What the run may still charge; None where there is no limit, or none that can be used, which the module then says."""
    try:
        whole = Decimal(str(limit))
    except InvalidOperation:
        return None
    if not whole.is_finite() or whole < 0:
        return None
    with _locked(charges) as planned:
        spent = sum((Decimal(charge[0]) for charge in planned.values()), Decimal(0))
    return max(whole - spent, Decimal(0))


def run_budget(who: str, charges: Path) -> Budget:
    """The budget of this run of Ansible. Its tasks run in forks, so what they plan to charge is kept in a file of the run's own."""
    from pulumi_hosting.resources.base import Cost
    from pulumi_hosting.resources.budget import Budget

    class RunBudget(Budget):
        def refusal(self, identity: str, cost: Cost) -> str | None:
            with _locked(charges) as planned:
                for other, (amount, currency, what) in planned.items():
                    self._planned[other] = Cost(Decimal(amount), currency, what)
                refused = super().refusal(f"{who}/{identity}", cost)
                if refused is None:
                    planned[f"{who}/{identity}"] = (str(cost.amount), cost.currency, cost.what)
                return refused

    return RunBudget("max_charge")


def charges_file(check_mode: bool) -> Path:
    """Where they are kept: in the directory that Ansible makes for this run, and removes with it. What is only predicted is kept apart."""
    return Path(constants.DEFAULT_LOCAL_TMP) / f"hosting.cloud.{'predicted' if check_mode else 'charged'}.json"


def _foretold_file() -> Path:
    """Where a check run keeps what its tasks would make, for those that come later."""
    return Path(constants.DEFAULT_LOCAL_TMP) / "hosting.cloud.foretold.json"


@contextmanager
def _locked(file: Path) -> Iterator[dict[str, Any]]:
    """The content of a JSON file, for one process at a time; changes are kept."""
    with open(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        text = opened.read()
        content: dict[str, Any] = json.loads(text) if text else {}
        yield content
        opened.seek(0)
        opened.truncate()
        json.dump(content, opened)
