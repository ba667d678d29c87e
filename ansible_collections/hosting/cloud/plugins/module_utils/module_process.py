# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A module in a process of its own, on whatever host the task runs."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from .failures import invalid_arguments
from .json_types import Json
from .run_memory import RunMemory
from .shared_options import boolean_problem, for_display, private_key_lines, without_unknown_items
from .task import ModuleTask

CONTROLLER = "_hosting"
"""The argument in which the controller hands over what the run knows, and the part of the result that returns
what is new.

- To the module: ``RunMemory.for_module``, ``booked`` for a task that goes on alone, and ``log``, the
  controller's ``HOSTING_LOG``.
- To the controller: ``charge_name``, ``booking`` (identity, amount, currency, what it is for), ``planned``
  (new changes), ``log`` (lines of the debug log).
"""


class ModuleProcess(AnsibleModule):
    """Reads the arguments of a :class:`ModuleTask` and prints its result."""

    params: Json
    written: frozenset[str]
    refusal: str | None
    from_controller: Json | None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        known = self.from_controller or {}
        memory = RunMemory.of_controller(known, check_mode=self.check_mode)
        self.task = ModuleTask(
            self.params, self.written, self.check_mode, bool(self._diff), memory, self.refusal
        )
        self._known_changes = len(memory.effects)
        self._log_lines = _debug_log(known.get("log"))

    def _load_params(self) -> None:
        super()._load_params()
        given: Json = dict(self.params)
        self.from_controller = given.pop(CONTROLLER, None)
        self.written = frozenset(given)
        self.refusal = boolean_problem(self.argument_spec, given)
        self.no_log_values.update(private_key_lines(given))
        self.params = without_unknown_items(given) if given.get("_ansible_check_mode") else given

    def _log_invocation(self) -> None:
        params, self.params = self.params, for_display(self.params)
        super()._log_invocation()
        self.params = params

    def fail_json(self, msg: str, **facts: Any) -> NoReturn:
        super().fail_json(**{**invalid_arguments(msg), **facts, "msg": msg})
        raise SystemExit

    def end(self, result: Json) -> NoReturn:
        """Print the result, with what the controller must remember, and end the process."""
        task = self.task
        self.no_log_values.update(task.secrets)
        for warning in task.warnings:
            self.warn(warning)
        if self.from_controller is not None and not self.from_controller.get("booked"):
            booking = None
            if task.booking:
                identity, cost = task.booking
                booking = [identity, str(cost.amount), cost.currency, cost.what]
            result[CONTROLLER] = {
                "charge_name": task.charge_name,
                "booking": booking,
                "planned": task.memory.effects[self._known_changes :],
                "log": self._log_lines,
            }
        result["invocation"] = {"module_args": for_display(self.params)}
        if "failure" in result:
            self.fail_json(**result)
        self.exit_json(**result)
        raise SystemExit


def _debug_log(level: str | None) -> list[str]:
    """The list that the lines of ``HOSTING_LOG`` will be in: Ansible does not show a module's standard
    error."""
    lines: list[str] = []
    if level:
        os.environ["HOSTING_LOG"] = level
        with suppress(ImportError):  # reported by the task itself
            from pulumi_hosting.client import debug_log

            debug_log.show_with(lines.append)
    return lines
