# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that carry out one of the actions of ``pulumi_hosting.actions``: renew, pay, reset a password …

An action is carried out once for one intent: repeated, it changes and charges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from . import predictions
from .json_types import Json, Values
from .module import HostingModule, charge_of, shown_fields
from .secret_file import SecretFile
from .shared_options import WAIT_OPTIONS
from .task import ModuleTask, TaskProgress

with suppress(ImportError):  # the task then says what is missing, and where
    from pydantic import BaseModel

    from pulumi_hosting.session.request import Request


if TYPE_CHECKING:
    from pulumi_hosting.actions import Action, ActionOutcome


class CoreActionModule(HostingModule):
    """Carries out the action of this ``name``. (Not to be confused with Ansible's own ``ActionModule``.)"""

    shared: ClassVar[Values] = WAIT_OPTIONS

    def __init__(self, name: str, options: Values, **rules: Any) -> None:
        super().__init__(options, **rules)
        self.name = name

    @property
    def action(self) -> Action[Any, Any]:
        from pulumi_hosting.actions import ACTIONS

        return ACTIONS[self.name]

    def load(self) -> list[type[BaseModel]]:
        return [self.action.Inputs, self.action.Result]

    def called(self, task: ModuleTask) -> str:
        return self.action.called(task.params)

    def work(self, task: ModuleTask) -> Json:
        return self.act(task, task.request(self.name))

    def act(self, task: ModuleTask, request: Request) -> Json:
        """Carry it out, or predict it in check mode. Returns the result."""
        return self.result(task, self.carry_out(task, request, dry_run=task.check_mode))

    def given(self, task: ModuleTask, request: Request) -> Json:
        """The inputs that the task names."""
        return task.chosen(self.action.Inputs.model_fields)

    def carry_out(self, task: ModuleTask, request: Request, *, dry_run: bool) -> ActionOutcome:
        from pulumi_hosting.actions import act, check

        given = self.given(task, request)
        inputs = check(self.action, given)
        named = "/".join(str(value) for value in given.values() if isinstance(value, str | int))
        task.progress = TaskProgress(f"the {self.action.title} was carried out", lambda: self.progress(task))
        approve = partial(task.approve, f"{self.name}/{named}", task.budget.checked())
        done = act(request, self.action, inputs, dry_run=dry_run, approve=approve)
        if task.check_mode and dry_run:
            predictions.of_action(task.memory, self.name, done)
        if done.result is not None and not isinstance(done.result, list):
            task.hide_secrets_of(done.result)
        return done

    def progress(self, task: ModuleTask) -> Json:
        """What is known of an action that failed after it was paid."""
        if task.payment is None:
            return {"changed": task.wrote}
        paid = task.payment
        task.charge_name = f"{self.name}/{paid.get('invoice_id') or ''}"
        amount = paid.get("charged") or paid.get("amount")
        made = charge_of({**paid, "charged": amount}, task.booking[1] if task.booking else None)
        return {"changed": True, "charge": made}

    def result(self, task: ModuleTask, done: ActionOutcome) -> Json:
        """The task's result: the same fields whatever happened."""
        action = self.action
        empty: Any = [] if action.many else shown_fields(action.Result, {})
        result: Json = {"changed": done.changed, action.result: empty if done.after is None else done.after}
        if done.note:
            result["note"] = done.note
        if self.charges:
            known = done.after if isinstance(done.after, Mapping) else {}
            result["charge"] = charge_of(known, done.cost) if done.changed else None
            # Its invoice, else the object and the end of its period before.
            named = known.get("invoice_id") or f"{known.get('id')} {done.change[0] if done.change else ''}"
            task.charge_name = f"{self.name}/{named}" if result["charge"] else None
        if task.diff and done.changed:
            before, after = _difference(done)
            result["diff"] = {"before": before, "after": after}
        return result


class PasswordModule(CoreActionModule):
    """If ``password_file`` exists, the password is known and nothing is changed."""

    def act(self, task: ModuleTask, request: Request) -> Json:
        file = SecretFile("password_file", task.params["password_file"])
        if file.exists:
            known = self.result(task, self.carry_out(task, request, dry_run=True))
            known.pop("diff", None)
            return {**known, "changed": False, "note": f"{file.path} is there already"}
        file.must_be_writable()
        done = self.carry_out(task, request, dry_run=task.check_mode)
        if not task.check_mode:
            file.keep(done.result.values()["password"], request.mode, task.warn)
        result = self.result(task, done)
        result.pop("diff", None)
        return file.in_diff(result) if task.diff else result


def _difference(done: ActionOutcome) -> tuple[Any, Any]:
    """What differs of the fields that were predicted, so that a real run shows the same as check mode."""
    if done.change is not None:
        return done.change
    before, after, predicted = done.before, done.after, done.predicted
    if not (isinstance(before, Mapping) and isinstance(after, Mapping) and isinstance(predicted, Mapping)):
        return before or {}, after or {}
    known = {name: value for name, value in predicted.items() if name in before and value is not None}
    fields = sorted(name for name, value in known.items() if before[name] != value)
    return {name: before[name] for name in fields}, {name: after[name] for name in fields}
