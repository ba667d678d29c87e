# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A call that arrives as an ordinary module: a process of its own, on whatever host the task runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.hosting.cloud.plugins.module_utils.runner import (
    Call,
    connected,
    new_budget,
    private_lines,
    refusal_of_arguments,
    without_unknown_items,
)

if TYPE_CHECKING:
    from pulumi_hosting.api.client import Client
    from pulumi_hosting.resources.budget import Budget


class Task(AnsibleModule, Call):
    """A module's call."""

    def _load_params(self) -> None:
        super()._load_params()
        self.written = frozenset(self.params)
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
        return connected(self.params, read_only)

    def budget(self) -> Budget:
        return new_budget()

    def foretell(self, kind: str, name: str) -> None:
        """A module's process knows of no other task."""

    def is_foretold(self, kind: str, name: str) -> bool:
        return False

    def fail_json(self, msg: str, **facts: Any) -> NoReturn:
        super().fail_json(**{**refusal_of_arguments(msg), **facts, "msg": msg})
        raise SystemExit

    def end(self, result: dict[str, Any]) -> NoReturn:
        """Print the result and end the process."""
        if "failure" in result:
            self.fail_json(**result)
        self.exit_json(**result)
        raise SystemExit
