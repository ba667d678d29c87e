# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that bring one object to its declared state.

The options of a task are the desired inputs; ``pulumi_hosting.planning`` finds the object, plans and applies.
Nothing is remembered from one run to the next, so the options must name the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from ansible_collections.hosting.cloud.plugins.module_utils import predictions
from ansible_collections.hosting.cloud.plugins.module_utils.module import HostingModule, as_charge
from ansible_collections.hosting.cloud.plugins.module_utils.options import STATE_OPTION, WAIT_OPTIONS
from ansible_collections.hosting.cloud.plugins.module_utils.secret_file import SecretFile
from ansible_collections.hosting.cloud.plugins.module_utils.task import Progress, Task

if TYPE_CHECKING:
    from pulumi_hosting.planning.engine import ApplyOptions, Outcome
    from pulumi_hosting.resources.base import Resource, State
    from pulumi_hosting.session.context import Context


class ResourceModule(HostingModule):
    """Brings one object of ``kind`` to its ``state``. ``clears``: the value that an explicit null of an
    option means."""

    shared: ClassVar[Mapping[str, Any]] = {**WAIT_OPTIONS, "state": STATE_OPTION}

    def __init__(self, kind: str, options: Mapping[str, Any], *, clears: Mapping[str, Any] | None = None, **rules: Any) -> None:
        super().__init__(options, **rules)
        self.kind = kind
        self.clears = clears or {}

    @property
    def resource(self) -> Resource[Any, Any]:
        from pulumi_hosting.resources import RESOURCES

        return RESOURCES[self.kind]

    def work(self, task: Task) -> dict[str, Any]:
        desired = self.desired(task)
        context = task.context(f"{self.kind}/{self.identity(task, desired)}")
        return self.bring(task, context, desired)

    def bring(self, task: Task, context: Context, desired: dict[str, Any]) -> dict[str, Any]:
        """Bring the account to the desired state, or to the object's absence. Returns the result."""
        outcome = self.ensure(task, context, desired, self.inputs(desired), task.params.get("id"))
        return self.result(task, desired, outcome)

    def identity(self, task: Task, desired: Mapping[str, Any]) -> str:
        """What names the object among those of its kind."""
        return str(task.params.get("name") or "")

    def desired(self, task: Task) -> dict[str, Any]:
        """The inputs that the task names. A null counts only where it clears a value: templates omit options
        with it."""
        given = {name: task.params.get(name) for name in self.resource.Inputs.model_fields if name in task.written}
        nulls = {name: self.clears[name] for name, value in given.items() if value is None and name in self.clears}
        return {name: value for name, value in given.items() if value is not None} | nulls

    def inputs(self, desired: Mapping[str, Any]) -> Any:
        """The desired inputs, validated. Raises ``InvalidInput``."""
        from pulumi_hosting.client.exceptions import InvalidInput
        from pulumi_hosting.planning import engine

        checked = engine.declared(self.resource, desired)
        if checked.failures:
            raise InvalidInput(checked.failures, self.resource.title)
        return checked.inputs

    def is_absent(self, task: Task) -> bool:
        """Whether the object is to be absent."""
        return bool(task.params["state"] == "absent")

    def ensure(self, task: Task, context: Context, desired: Mapping[str, Any], inputs: Any, id: str | None) -> Outcome:
        """Find the object, plan, and apply the plan unless in check mode. ``id``: of the object, where it is
        known."""
        from pulumi_hosting.planning import engine

        resource, terms = self.resource, self.terms(task, context, desired)

        def save(made: State) -> None:
            created = engine.Outcome("created", None, engine.shown(resource, made), made)
            task.hide_secrets_of(made)
            task.progress = Progress(_exists(resource, made), lambda: self.result(task, desired, created))
            terms.save(made)

        ensure = engine.ensure_absent if self.is_absent(task) else engine.ensure
        outcome = ensure(context, resource, inputs, id=id, terms=replace(terms, save=save))
        if outcome.changed:
            made = outcome.action == "created" and outcome.state
            what = _exists(resource, made) if made else f"the {resource.title} was {outcome.action}"
            task.progress = Progress(what, lambda: self.result(task, desired, outcome))
        if task.check_mode:
            predictions.of_outcome(task.memory, context, resource, inputs, outcome)
        if outcome.takeover is not None:
            task.warn(outcome.takeover.announcement(context.client.service_now()))
        if outcome.state is not None:
            task.hide_secrets_of(outcome.state)
        for remark in outcome.diff.remarks:
            task.warn(remark)
        return outcome

    def terms(self, task: Task, context: Context, desired: Mapping[str, Any]) -> ApplyOptions:
        from pulumi_hosting.planning.engine import ApplyOptions

        priced = task.check_mode or task.params.get("max_charge") is not None
        approve = task.approval(context.identity)
        return ApplyOptions(task.check_mode, bool(task.params["wait"]), priced, approve, context.save)

    # --- the result

    def result(self, task: Task, desired: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
        """The task's result: the same fields whatever happened."""
        result: dict[str, Any] = {
            "changed": outcome.changed,
            self.kind: None if outcome.after is None else shown_fields(self.resource, outcome.after),
        }
        if self.charges:
            result["charge"] = self.charged(task, outcome)
            if outcome.state is not None and outcome.action == "created" and result["charge"] is None:
                # An earlier run bought it, or another host at the same moment.
                return {**result, "changed": False}
        if task.diff and outcome.changed:
            result["diff"] = difference(self.resource, desired, outcome)
        return result

    def charged(self, task: Task, outcome: Outcome) -> dict[str, Any] | None:
        """What this task's own request charged, or would charge. Sets ``task.charge_name``."""
        if outcome.action != "created" or outcome.takeover is not None:
            return None
        after, cost = outcome.after or {}, outcome.cost
        if outcome.state is None:
            # Several hosts would make it once. After a deletion it would be made again.
            effects = task.memory.effects if task.check_mode else ()
            deletions = sum(effect[0] == "delete" for effect in effects)
            task.charge_name = f"{self.kind}/{self.identity(task, after)}/{deletions}"
            return as_charge(str(cost.amount), cost.currency) if cost else None
        task.charge_name = f"{self.kind}/{after.get('invoice_id') or after['id']}"
        if after.get("charged") is None and after.get("mode") != "test" and task.lost_orders:
            return self.charged_by_invoice(task, after)
        if task.replayed and not task.lost_orders:
            return None  # another run ordered it at the same moment
        return as_charge(after.get("charged"), after.get("currency") or (cost.currency if cost else None))

    def charged_by_invoice(self, task: Task, after: Mapping[str, Any]) -> dict[str, Any]:
        """What a purchase charged whose answer was lost: the amount of the object's newest invoice."""
        from pulumi_hosting.client.exceptions import ApiError

        field = "domain_id" if self.kind == "domain" else "server_id"
        id = str(after.get("server_id") or after["id"])
        try:
            for invoice in islice(task.client(False).invoices.list(), 20):
                if invoice.paid_at is not None and any(str(getattr(item, field)) == id for item in invoice.items or ()):
                    task.charge_name = f"{self.kind}/{invoice.id}"
                    return {"amount": str(invoice.amount), "currency": invoice.currency}
        except ApiError:
            pass  # the key lacks the scope invoices:read
        task.warn(
            f"the answer of the order was lost, and its invoice cannot be seen: what {self.kind} {after['id']} cost is not known here"
        )
        return {"amount": None, "currency": None}


class TransferModule(ResourceModule):
    """A domain that is transferred from another registrar. The module never gives one up."""

    shared: ClassVar[Mapping[str, Any]] = WAIT_OPTIONS

    def is_absent(self, task: Task) -> bool:
        return False


class WebhookSubscriptionModule(ResourceModule):
    """If ``secret_file`` does not exist, the signing secret is not known, and a new one is made."""

    def identity(self, task: Task, desired: Mapping[str, Any]) -> str:
        return str(desired.get("url") or "")

    def bring(self, task: Task, context: Context, desired: dict[str, Any]) -> dict[str, Any]:
        path = task.params.get("secret_file")
        if not path or self.is_absent(task):
            return super().bring(task, context, desired)
        file = SecretFile("secret_file", path)
        file.must_be_writable()
        is_missing = not file.exists
        outcome = self.ensure(task, context, desired, self.inputs(desired), task.params.get("id"))
        result = self.result(task, desired, outcome)
        is_new = outcome.action in ("created", "replaced")
        if not (is_missing or is_new):
            return result
        if not is_new:
            task.warn(f"{file.path} does not exist: a new secret is made, and the old one stops working at once")
        if outcome.state is not None and not task.check_mode:
            state = outcome.state if is_new else self._with_new_secret(context, outcome.state)
            task.hide_secrets_of(state)
            file.keep(state.values().get("secret"), context.mode, task.warn)
        if task.diff:
            diff = result.get("diff") or {"before": {}, "after": {}}
            result["diff"] = {"before": diff["before"], "after": {**diff["after"], "secret_file": path}}
        return {**result, "changed": True}

    def _with_new_secret(self, context: Context, state: Any) -> Any:
        from pulumi_hosting.planning import engine

        inputs = self.inputs({"rotation": "the secret is not known here"})
        return engine.update(context, self.resource, state, inputs, frozenset({"rotation"}))


def _exists(resource: Resource[Any, Any], made: State) -> str:
    """What was made, in words."""
    kind, colon, number = made.id.partition(":")
    if not colon:
        return f"{resource.title} {made.id} exists"
    if kind == "order":
        return f"order {number} is placed"
    return f"an address for server {made.values().get('server_id')} is ordered"


def shown_fields(resource: Resource[Any, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of the resource but its secrets; null where a value is not known."""
    hidden = resource.State.secret_fields()
    return {name: values.get(name) for name in resource.State.model_fields if name not in hidden}


def difference(resource: Resource[Any, Any], desired: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """The named inputs before and after, sorted and without secrets; the same in check mode and in a real
    run."""
    hidden = resource.Inputs.secret_fields()
    desired = {name: value for name, value in desired.items() if name not in hidden}
    changes = {change.field: change for change in outcome.diff.changes if change.field not in hidden}
    known = outcome.before or {}
    same = {name: known[name] for name in desired if name not in changes and known.get(name) is not None}
    if outcome.action == "created":
        before, after = {}, desired
    elif outcome.action == "deleted":
        before, after = shown_fields(resource, known), {}
    else:
        replaced = {"id": known.get("id")} if outcome.action == "replaced" else {}
        before = {**replaced, **same, **{name: change.before for name, change in changes.items()}}
        after = {**same, **{name: change.after for name, change in changes.items()}}
    return {"before": dict(sorted(before.items())), "after": dict(sorted(after.items()))}
