# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A call that arrives as an ordinary module: a process of its own, on whatever host the task runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hosting.cloud.plugins.module_utils.ledger import JobLedger, Ledger
from ansible_collections.hosting.cloud.plugins.module_utils.planned import Planned
from ansible_collections.hosting.cloud.plugins.module_utils.runner import (
    Call,
    booleans,
    connected,
    private_lines,
    refusal_of_arguments,
    without_unknown_items,
)

if TYPE_CHECKING:
    from pulumi_hosting.client.client import Client

CONTROLLER = "_hosting"
"""The argument in which the controller hands over what the run knows, and the part of the result in which it gets back what is new:

- to the module: ``spent`` (currency → amount), ``stopped``, ``booked`` (for a task that goes on alone), ``planned`` (effects).
- to the controller: ``movement``, ``booking`` (identity, amount, currency), ``stopped``, ``planned`` (new effects).
"""


class Task(AnsibleModule, Call):
    """A module's call."""

    def _load_params(self) -> None:
        super()._load_params()
        given: dict[str, Any] = dict(self.params)
        self.handed: dict[str, Any] | None = given.pop(CONTROLLER, None)
        self.params = given
        self.written = frozenset(given)
        self.refusal = booleans(self.argument_spec, self.params)
        known = self.handed or {}
        self._ledger = JobLedger(known.get("spent") or {}, known.get("booked"), known.get("stopped"))
        self._effects: list[Any] = list(known.get("planned") or [])
        self._known_effects = len(self._effects)
        if self.params.get("_ansible_check_mode"):
            self.planned = Planned.in_memory(self._effects)
        self.no_log_values.update(private_lines(self.params))
        if self.params.get("_ansible_check_mode"):
            self.params = without_unknown_items(self.params)

    @property
    def wants_diff(self) -> bool:  # type: ignore[override]  # read, never set
        return bool(self._diff)

    def warn(self, warning: str, **more: Any) -> None:
        AnsibleModule.warn(self, warning, **more)

    def hide(self, secrets: Iterable[str]) -> None:
        self.no_log_values.update(secrets)

    def connect(self, read_only: bool) -> Client:
        return connected(self.params, read_only, self)

    def ledger(self) -> Ledger:
        return self._ledger

    def fail_json(self, msg: str, **facts: Any) -> NoReturn:
        super().fail_json(**{**refusal_of_arguments(msg), **facts, "msg": msg})
        raise SystemExit

    def end(self, result: dict[str, Any]) -> NoReturn:
        """Print the result and end the process. What the controller is to settle goes with it."""
        if self.handed is not None and not self.handed.get("booked"):
            identity, cost = self.booking or (None, None)
            booked = None if cost is None else {"identity": identity, "amount": str(cost.amount), "currency": cost.currency}
            result[CONTROLLER] = {
                "movement": self.movement,
                "booking": booked,
                "stopped": self._ledger.stopped,
                "planned": self._effects[self._known_effects :],
            }
        if "failure" in result:
            self.fail_json(**result)
        self.exit_json(**result)
        raise SystemExit
