# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The action plugin of every module: runs a task in the controller, without starting a process for the module.

The package ``pulumi_hosting`` is imported once by Ansible's own process, and its worker processes inherit it. The module itself runs where
that cannot be done: another host, another user, ``async``, a controller without the package.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible import constants
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.module_utils.errors import UnsupportedError
from ansible.plugins.action import ActionBase

from ansible_collections.hosting.cloud.plugins.module_utils.planned import Planned
from ansible_collections.hosting.cloud.plugins.module_utils.runner import (
    Call,
    Module,
    booleans,
    connected,
    limit_of,
    private_lines,
    refusal_of_arguments,
    tried,
    unusable,
    watched,
    without_unknown_items,
)
from ansible_collections.hosting.cloud.plugins.module_utils.task import CONTROLLER
from ansible_collections.hosting.cloud.plugins.plugin_utils import run_file

if TYPE_CHECKING:
    from pulumi_hosting.client.client import Client

try:
    import httpx

    from pulumi_hosting.api.operations import OPERATIONS
    from pulumi_hosting.client.transport import tls_context

    importlib.import_module("tenacity")  # the client loads it with its first request
    importlib.import_module("pulumi_hosting.actions")  # every resource and the engine with it
except ImportError:  # the module then says what is missing, and where
    pass
else:
    # For the forks to inherit: what would be put off until it is needed would be made anew in each of them.
    httpx.Client(verify=tls_context(None)).close()
    for row in OPERATIONS:
        for model in (*row.responses.values(), row.query, row.request):
            if hasattr(model, "model_rebuild"):
                model.model_rebuild()
    for part in ("deeds", "effects", "nouns", "reads"):
        importlib.import_module(f"ansible_collections.hosting.cloud.plugins.module_utils.{part}")
    unusable()

_CLIENTS: dict[tuple[object, ...], Client] = {}


class ControllerAction(ActionBase):
    """One task."""

    _supports_async = True
    _supports_check_mode = True
    _supports_diff = True
    _requires_connection = False

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        name = self._task.action.rpartition(".")[2]
        module: Module = importlib.import_module(f"ansible_collections.hosting.cloud.plugins.modules.{name}").MODULE
        call = FastCall(self, module, task_vars)
        killed = call.killed_runs()
        if not self._is_for_the_controller() or unusable() is not None:
            result = self._by_module(call, module, task_vars)
            if killed and self._task.async_val:  # what the job returns takes the place of this result
                for line in killed:
                    self._display.warning(line)
            elif killed:
                result["warnings"] = [*result.get("warnings", ()), *killed]
            return result
        for line in killed:
            call.warn(line)
        result = module.answer(call)
        if "failure" in result:
            result["failed"] = True
        elif result.get("changed") and not call.check_mode:
            run_file.forget_planned(_folder())
        return call.printed(result)

    def _is_for_the_controller(self) -> bool:
        return self._connection.transport == "local" and not self._task.async_val and not self._play_context.become

    def _by_module(self, call: FastCall, module: Module, task_vars: Any) -> dict[str, Any]:
        """Have the module do it. What the run knows travels with it, and what is new comes back.

        Tasks that are limited are done one after the other. A task with ``async`` goes on alone, so its price is asked for, and booked,
        before it begins.
        """
        if unusable() is not None:  # nothing of the run can be known here: the module says what is missing, or limits itself alone
            return self._module({}, task_vars)
        if call.refusal is not None:
            return self._module({}, task_vars)
        limit = call.params.get("max_charge")
        known: dict[str, Any] = {} if call.planned is None else {"planned": call.planned.effects}
        if limit is None and self._task.async_val:
            # Booked for later tasks that have a limit. What cannot be priced from here is left to the job.
            predicted = module.answer(call.rehearsal()) if module.charges else {}
            if (predicted.get("failure") or {}).get("code") == "max_charge":  # the run orders nothing more
                return call.printed({**predicted, "failed": True})
            return self._module({}, task_vars)
        if limit is None:
            result = self._module({"known": known}, task_vars)
            call.settle(result.pop(CONTROLLER, None) or {}, result)
            return result
        refused = tried(lambda: {"limit": limit_of(limit)})
        if "failure" in refused:
            return call.printed({**refused, "failed": True})
        ledger = call.ledger()
        if self._task.async_val:
            return self._on_its_own(call, module, limit, task_vars)
        with run_file.locked(_folder() / "hosting.cloud.modules.json"):
            handed = {**known, "spent": ledger.spent(), "stopped": ledger.stopped}
            result = self._module({"max_charge": limit, "known": handed}, task_vars)
            call.settle(result.pop(CONTROLLER, None) or {}, result)
        return result

    def _on_its_own(self, call: FastCall, module: Module, limit: str, task_vars: Any) -> dict[str, Any]:
        """Price the task here, book it, and let it begin: it may charge what was booked and no more."""
        rehearsal = call.rehearsal()
        predicted = module.answer(rehearsal)
        if "failure" in predicted:
            return call.printed({**predicted, "failed": True})
        if (predicted.get("charge") or {"amount": "0"})["amount"] is None:
            text = "its price is not known before it begins, and async with max_charge needs it. Next: leave async or max_charge out"
            return call.printed({"failed": True, **refusal_of_arguments(text)})
        amount = str(rehearsal.booking[1].amount) if rehearsal.booking else "0"
        return self._module({"max_charge": limit, "known": {"booked": {"amount": amount}}}, task_vars)

    def _module(self, handed: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        arguments = dict(self._task.args)
        if "known" in handed:
            arguments[CONTROLLER] = handed["known"]
        if "max_charge" in handed:
            arguments["max_charge"] = handed["max_charge"]
        result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars, wrap_async=self._task.async_val)
        return result

    def environment(self) -> dict[str, str]:
        """The controller's own, and what the task says under ``environment``: that is meant for a module's process, which there is none
        of here."""
        said: dict[str, Any] = {}
        self._compute_environment_string(said)
        return {**os.environ, **{name: str(value) for name, value in said.items()}}


class FastCall(Call):
    """A task that is worked on in the controller."""

    def __init__(self, action: ControllerAction, module: Module, task_vars: Any) -> None:
        arguments = dict(action._task.args)
        self.written = frozenset(arguments)
        self.check_mode = bool(action._task.check_mode)
        self.wants_diff = bool(action._task.diff)
        self._warnings: list[str] = []
        host = (task_vars or {}).get("inventory_hostname", "")
        self._holder = f"{host} {action._task._uuid}"
        spec = module.argument_spec
        self.refusal = booleans(spec, arguments)
        environment = action.environment()
        for option, described in spec.items():
            for variable in described["fallback"][1] if arguments.get(option) is None and "fallback" in described else ():
                if variable in environment:
                    arguments[option] = environment[variable]
        validated = ArgumentSpecValidator(spec, **module.rules).validate(arguments)
        self._secrets: set[str] = {*validated._no_log_values, *private_lines(arguments)}
        self.params = {name: _number(value) for name, value in validated.validated_parameters.items()}
        if self.check_mode:
            self.params = without_unknown_items(self.params)
            self.planned = run_file.planned(_folder(), self._key)
        if validated.error_messages and self.refusal is None:
            wrong = validated.errors.msg
            is_unknown = isinstance(validated.errors[0], UnsupportedError)
            self.refusal = f"Unsupported parameters for ({action._task.action}) module: {wrong}" if is_unknown else wrong

    @property
    def _key(self) -> str:
        """What stands for the key and the service that the task uses."""
        return hashlib.sha256(f"{self.params['base_url']} {self.params['api_key']}".encode()).hexdigest()

    def rehearsal(self) -> FastCall:
        """The same task in check mode, but for the booking, which is real: to know its price. Files are the job's affair."""
        twin: FastCall = object.__new__(FastCall)
        twin.__dict__.update(self.__dict__)
        twin.check_mode = True
        twin.params = {name: None if name.endswith("_file") else value for name, value in self.params.items()}
        twin.planned = Planned.in_memory([])
        twin.ledger = self.ledger  # type: ignore[method-assign]  # what is booked is real
        return twin

    def warn(self, warning: str) -> None:
        self._warnings.append(warning)

    def hide(self, secrets: Iterable[str]) -> None:
        self._secrets.update(secrets)

    def connect(self, read_only: bool) -> Client:
        # The items of a loop share one process, and so one connection; a fork must never use its parent's.
        key = (os.getpid(), read_only, self.params["api_key"], self.params["base_url"], self.params["timeout"])
        if key not in _CLIENTS:
            _CLIENTS[key] = connected(self.params, read_only)
        return watched(_CLIENTS[key], self)

    def ledger(self) -> run_file.RunLedger:
        file = _folder() / (run_file.PREDICTED if self.check_mode else run_file.CHARGED)
        return run_file.RunLedger(file, self._account(), self._holder)

    def killed_runs(self) -> list[str]:
        """What runs that were killed had charged, one line each: the limit of this run begins at nothing."""
        return run_file.of_killed_runs(_folder()) if self.params.get("max_charge") is not None and not self.check_mode else []

    def _account(self) -> str:
        """Whose money it is: two keys of one account have one limit. ``UNKNOWN`` where the key is known elsewhere only."""
        from pulumi_hosting.client.exceptions import HostingError
        from pulumi_hosting.session.context import account

        if not self.params.get("api_key"):
            return run_file.UNKNOWN
        try:
            me = account(self.connect(self.check_mode))
        except HostingError:
            return run_file.UNKNOWN
        where = hashlib.sha256(str(self.params["base_url"]).encode()).hexdigest()[:16]
        return f"{me.account_id} {'live' if me.livemode else 'test'} {where}"

    def settle(self, news: dict[str, Any], result: dict[str, Any]) -> None:
        """Note what a module's process reports."""
        from pulumi_hosting.session.cost import Cost

        if self.planned is not None:
            for effect in news.get("planned") or ():
                self.planned.note(effect)
        booking = news.get("booking")
        if news.get("stopped"):
            self.ledger().stop(news["stopped"])
        if booking is not None:
            cost = Cost(Decimal(booking["amount"]), booking["currency"], "")
            self.ledger().book(booking["identity"], cost, None)
            self.booking = (booking["identity"], cost)
        failure = result.get("failure")
        made = result.get("charge")
        if failure is not None and made is None and "charge" not in failure and booking is not None:
            self.ledger().settle(booking["identity"], None)
        if made is not None and made["amount"] is not None:
            movement = news.get("movement")
            if movement is not None and not self.ledger().claim(movement):
                result.update(changed=False, charge=None)
                made = None
            self.ledger().settle(booking["identity"] if booking else movement or "", made)
        elif failure is None and booking is not None:
            self.ledger().settle(booking["identity"], None)

    def printed(self, result: dict[str, Any]) -> dict[str, Any]:
        """As a module prints it: with the arguments, and no secret in it."""
        result.setdefault("invocation", {"module_args": self.params})
        if self._warnings:
            result["warnings"] = list(self._warnings)
        shown: dict[str, Any] = remove_values(result, self._secrets)
        return shown


def _number(value: Any) -> Any:
    """A plain number: Ansible's own carry where they were written, and the client takes no other than Python's."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, float) else value


def _folder() -> Path:
    """The directory that Ansible makes for this run, and removes with it."""
    return Path(constants.DEFAULT_LOCAL_TMP)
