# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that do one thing to what exists already, and refuse to do it twice for one intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ansible_collections.hosting.cloud.plugins.module_utils.files import SecretFile
from ansible_collections.hosting.cloud.plugins.module_utils.runner import (
    WAIT_OPTIONS,
    Call,
    Done,
    Module,
    charge,
    context_of,
    limited,
)

if TYPE_CHECKING:
    from pulumi_hosting.actions import ActionResult
    from pulumi_hosting.session.context import Context


class ActionModule(Module):
    """Does what the core's action of this name does."""

    shared: ClassVar[Mapping[str, Any]] = WAIT_OPTIONS

    def __init__(self, name: str, options: Mapping[str, Any], **rules: Any) -> None:
        super().__init__(options, **rules)
        self.name = name
        subject = name.partition("_")[0]
        self.kind = {"webhook": "webhook_subscription"}.get(subject, subject)

    def work(self, call: Call) -> dict[str, Any]:
        context = context_of(call, self.name, read_only=call.check_mode)
        return self.act(call, context)

    def act(self, call: Call, context: Context) -> dict[str, Any]:
        return self.result(call, self.deed(call, context, dry_run=call.check_mode))

    def deed(self, call: Call, context: Context, *, dry_run: bool) -> ActionResult:
        from ansible_collections.hosting.cloud.plugins.module_utils import effects
        from pulumi_hosting.actions import ACTIONS, act, check

        action = ACTIONS[self.name]
        given = {name: value for name in action.Inputs.model_fields if (value := call.params.get(name)) is not None}
        inputs = check(action, given)
        named = "/".join(str(value) for value in given.values() if isinstance(value, str | int))
        call.done = Done(f"the {action.title} was carried out", lambda: self.unfinished(call))
        deed = act(context, action, inputs, dry_run=dry_run, approve=limited(call, f"{self.name}/{named}"))
        if call.planned is not None and dry_run:
            effects.of_deed(call.planned, self.name, deed)
        if deed.result is not None and not isinstance(deed.result, list):
            values, secret = deed.result.values(), deed.result.secret_fields()
            call.hide(str(value) for name, value in values.items() if name in secret and value)
        return deed

    def unfinished(self, call: Call) -> dict[str, Any]:
        """What is known of an action that failed after it was paid."""
        if call.paid is None:
            return {"changed": call.wrote}
        booked = call.booking[1] if call.booking else None
        amount = call.paid.get("charged") or call.paid.get("amount") or (booked.amount if booked else None)
        call.movement = f"{self.name}/{call.paid.get('invoice_id') or ''}"
        currency = call.paid.get("currency") or (booked.currency if booked else None)
        return {"changed": True, "charge": {"amount": None if amount is None else str(amount), "currency": currency}}

    def result(self, call: Call, deed: ActionResult) -> dict[str, Any]:
        """One shape on every path."""
        from pulumi_hosting.actions import ACTIONS

        action = ACTIONS[self.name]
        hidden = action.Result.secret_fields()
        empty: Any = [] if action.many else {name: None for name in action.Result.model_fields if name not in hidden}
        result: dict[str, Any] = {"changed": deed.changed, action.result: empty if deed.after is None else deed.after}
        if deed.note:
            result["note"] = deed.note
        if self.charges:
            result["charge"] = _charged(deed)
            call.movement = f"{self.name}/{_movement(deed)}" if result["charge"] else None
        if call.wants_diff and deed.changed:
            before, after = _changed(deed)
            result["diff"] = {"before": before, "after": after}
        return result


class PasswordModule(ActionModule):
    """Its file tells whether the password is known already; only where it is not, another one is made."""

    def act(self, call: Call, context: Context) -> dict[str, Any]:
        file = SecretFile("password_file", call.params["password_file"])
        if file.exists:
            known = self.result(call, self.deed(call, context, dry_run=True))
            known.pop("diff", None)
            return {**known, "changed": False, "note": f"{file.path} is there already"}
        file.must_be_writable()
        deed = self.deed(call, context, dry_run=call.check_mode)
        if not call.check_mode:
            file.keep(deed.result.values()["password"], context.mode, call.warn)
        result = self.result(call, deed)
        if call.wants_diff:
            result["diff"] = {"before": {}, "after": {"password_file": str(file.path)}}
        return result


def _charged(deed: ActionResult) -> dict[str, Any] | None:
    """What it charged, where the service said so, else what it was to charge. A price that is not known is not shown as free."""
    if not deed.changed:
        return None
    known = deed.after if isinstance(deed.after, Mapping) else {}
    if deed.cost is None:
        return {"amount": known.get("charged"), "currency": known.get("currency")}
    return charge(known.get("charged") or str(deed.cost.amount), known.get("currency") or deed.cost.currency)


def _movement(deed: ActionResult) -> str:
    """What names the charge: its invoice, else the object and what was paid until before."""
    known = deed.after if isinstance(deed.after, Mapping) else {}
    return str(known.get("invoice_id") or f"{known.get('id')} {deed.change[0] if deed.change else ''}")


def _changed(deed: ActionResult) -> tuple[Any, Any]:
    """Only what differs and was planned: a real run shows the same difference as check mode, though its answer brings more."""
    if deed.change is not None:
        return deed.change
    before, after, predicted = deed.before, deed.after, deed.predicted
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or not isinstance(predicted, Mapping):
        return before or {}, after or {}
    fields = sorted(name for name in predicted if name in before and predicted[name] is not None and before[name] != predicted[name])
    return {name: before[name] for name in fields}, {name: after[name] for name in fields}
