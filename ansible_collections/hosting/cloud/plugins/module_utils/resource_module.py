# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that bring one object to its declared state.

The options of a task are the inputs of a resource; ``pulumi_hosting.planning`` finds the object, plans and
applies.
Nothing is remembered from one run to the next, so the options must name the object.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, cast

from . import predictions
from .json_types import Json, Values
from .module import HostingModule, as_charge, charge_of, models_of, shown_fields
from .secret_file import SecretFile
from .shared_options import STATE_OPTION, WAIT_OPTIONS, for_display
from .task import ModuleTask, TaskProgress

with suppress(ImportError):  # the task then says what is missing, and where
    from pydantic import BaseModel

    from pulumi_hosting.client.exceptions import InvalidInput
    from pulumi_hosting.exactly_once import purchase_journal
    from pulumi_hosting.exactly_once.purchase_journal import SENT_WITHIN, Entry, paid_for
    from pulumi_hosting.planning import apply
    from pulumi_hosting.planning.apply import Outcome
    from pulumi_hosting.planning.check import declared
    from pulumi_hosting.resources import RESOURCES
    from pulumi_hosting.resources.base import AnyResource, State
    from pulumi_hosting.session.request import Request

if TYPE_CHECKING:
    from pulumi_hosting.actions import ActionOutcome
    from pulumi_hosting.actions.keep_paid import Renewal
    from pulumi_hosting.exactly_once.payments import Payment

NEVER_AGAIN = ("server", "server_ip", "ssh_key", "webhook_subscription")
"""Kinds whose ids are not used twice: of several hosts, one reports that an object was made, or deleted."""
ALREADY_ABSENT = "absent"
"""The id of no object: see ``ResourceModule.id_of``."""


class ResourceModule(HostingModule):
    """Brings one object of ``kind`` to its ``state``. ``clears``: the value that an explicit null of an
    option means."""

    shared: ClassVar[Values] = {**WAIT_OPTIONS, "state": STATE_OPTION}
    file_option: ClassVar = ""
    """The option that names the file for what the service shows once."""

    def __init__(self, kind: str, options: Values, *, clears: Values | None = None, **rules: Any) -> None:
        super().__init__(options, **rules)
        self.kind = kind
        self.clears = clears or {}

    @property
    def resource(self) -> AnyResource:
        return RESOURCES[self.kind]

    def load(self) -> list[type[BaseModel]]:
        resource = self.resource
        return [resource.Inputs, *models_read(resource)]

    def work(self, task: ModuleTask) -> Json:
        resource = self.resource
        named = {name: task.given[name] for name in resource.Inputs.model_fields if name in task.given}
        desired = named | self.implied(task)
        if (result := self.known_result(task, desired)) is not None:
            return result
        request = task.request(f"{self.kind}/{self.identity(task, desired)}", shared=True)
        if (result := self.begin(task, request)) is not None:
            return result
        checked = declared(resource, desired)
        if checked.failures:
            raise InvalidInput(checked.failures, resource.called(desired))

        def save(made: State) -> None:
            created = apply.Outcome("created", None, apply.shown(resource, made), made)
            task.hide_secrets_of(made)
            task.progress = TaskProgress(_exists(resource, made), lambda: self.result(task, desired, created))
            request.save(made)

        approve = partial(task.approve, request.identity, task.budget.checked())
        options = apply.ApplyOptions(
            task.check_mode, bool(task.params["wait"]), self.is_priced(task, desired), approve, save
        )
        id = self.id_of(task, request, checked.inputs)
        interrupted = None if task.check_mode else purchase_journal.interrupted(request, self.kind)
        if id == ALREADY_ABSENT:
            outcome = apply.Outcome("unchanged", None, None, None)
        else:
            ensure = apply.ensure_absent if self.is_absent(task) else apply.ensure
            outcome = ensure(request, resource, checked.inputs, id=id, options=options)
        if outcome.changed:
            done = f"the {resource.title} was {outcome.action}"
            if outcome.action == "created" and outcome.state:
                done = _exists(resource, outcome.state)
            task.progress = TaskProgress(done, lambda: self.result(task, desired, outcome))
        if outcome.takeover is not None:
            task.warn(outcome.takeover.announcement(request.client.service_now()))
        if outcome.state is not None:
            task.hide_secrets_of(outcome.state)
        for remark in outcome.diff.remarks:
            task.warn(remark)
        result = self._kept_paid(task, request, checked.inputs, outcome, self.result(task, desired, outcome))
        result = self.finish(task, request, outcome, result)  # may wait for what a renewal resumes
        if self.kind in NEVER_AGAIN and outcome.action in ("created", "deleted") and request.mode != "test":
            task.charge_name = self.change_name(task, outcome)
        if interrupted is not None:
            result = self.with_unreported(task, interrupted, outcome, result)
        if task.check_mode:  # at the end: what the task still reads is the account before it
            predictions.of_outcome(task.memory, request, resource, checked.inputs, outcome)
        return result

    def _kept_paid(
        self, task: ModuleTask, request: Request, inputs: Any, outcome: Outcome, result: Json
    ) -> Json:
        """The result, once the object is renewed as ``keep_paid`` asks; in check mode, with what that would
        bring."""
        given, before = inputs.given(), outcome.before
        is_kept = given.get("keep_paid") and outcome.action in ("unchanged", "updated")
        if not (is_kept and before and outcome.after):
            return result
        from pulumi_hosting.actions.keep_paid import renewal, unreported

        state = outcome.state or self.resource.State.partial(before)
        due = renewal(request, self.resource, state, given)
        if due is not None:  # what is paid must not depend on how another task saw it
            request = replace(request, session=task.request("").session)
            due = renewal(request, self.resource, state, given)
        if due is None:
            paid = None if task.check_mode else unreported(request, self.resource, state, given)
            return result if paid is None else self._paid_before(task, paid, "renewed it", result)
        approve = partial(task.approve, f"{request.identity} keep_paid", task.budget.checked())
        done = (due.plan if task.check_mode else due.carry_out)(request, approve)
        if done is None:
            return result
        if task.check_mode:
            predictions.of_action(task.memory, due.action.kind, done)
        return self._with_renewal(task, due, done, result)

    def _with_renewal(self, task: ModuleTask, due: Renewal, done: ActionOutcome, result: Json) -> Json:
        """The result, with what the renewal charged and changed."""
        known, shown = cast(Values, done.after), dict(result[self.kind])
        shown.update((name, known[name]) for name in (due.date, "status", "power") if name in shown)
        named = known.get("invoice_id") or f"{known['id']} {done.change}"
        task.charge_name = f"{due.action.kind}/{named}"
        result = {**result, "changed": True, self.kind: shown, "charge": charge_of(known, done.cost)}
        if task.diff and done.change is not None:
            sides = zip(("before", "after"), done.change, strict=True)
            there = result.get("diff") or {}
            result["diff"] = {side: {**there.get(side, {}), "renewal": change} for side, change in sides}
        task.progress = TaskProgress(f"the {self.resource.title} was renewed", lambda: result)
        return result

    # --- what differs from one resource to another

    def called(self, task: ModuleTask) -> str:
        return self.resource.called(task.params)

    def identity(self, task: ModuleTask, desired: Values) -> str:
        """What names the object among those of its kind."""
        return str(task.params.get("name") or "")

    def implied(self, task: ModuleTask) -> Json:
        """Inputs that the task asks for in another way than by their value: an explicit null clears some."""
        return {
            name: value for name, value in self.clears.items() if name in task.written - task.given.keys()
        }

    def is_absent(self, task: ModuleTask) -> bool:
        """Whether the object is to be absent."""
        return task.params.get("state") == "absent"

    def secret_file(self, task: ModuleTask) -> SecretFile | None:
        """The file of ``file_option``; None if the task names none, or the object is to be absent."""
        path = task.params.get(self.file_option)
        return SecretFile(self.file_option, path) if path and not self.is_absent(task) else None

    def is_priced(self, task: ModuleTask, desired: Values) -> bool:
        """Whether the price must be known before anything is ordered."""
        return task.check_mode or task.budget.limited is not None

    def known_result(self, task: ModuleTask, desired: Values) -> Json | None:
        """The result, where it is known without asking the service; else None."""
        return None

    def begin(self, task: ModuleTask, request: Request) -> Json | None:
        """Prepare the task. Returns its result where the task asks for something else than a declared state;
        else None."""
        if (file := self.secret_file(task)) is not None:
            file.must_be_writable()
        return None

    def id_of(self, task: ModuleTask, request: Request, inputs: Any) -> str | None:
        """The object's id, where it is known. ``ALREADY_ABSENT``: there is no such object, and there is to be
        none."""
        id: str | None = task.params.get("id")
        return id

    def finish(self, task: ModuleTask, request: Request, outcome: Outcome, result: Json) -> Json:
        """The result, once what remains to be done is done."""
        return result

    # --- the result

    def result(self, task: ModuleTask, desired: Values, outcome: Outcome) -> Json:
        """The task's result: the same fields whatever happened."""
        result: Json = {
            "changed": outcome.changed,
            self.kind: None if outcome.after is None else shown_fields(self.resource.State, outcome.after),
        }
        if self.charges:
            result["charge"] = self.charged(task, outcome)
            found = outcome.state is not None and outcome.action == "created" and outcome.takeover is None
            if found and result["charge"] is None:
                # An earlier run bought it, or another host at the same moment.
                return {**result, "changed": False}
        if task.diff and outcome.changed:
            result["diff"] = difference(self.resource, desired, outcome)
        return result

    def charged(self, task: ModuleTask, outcome: Outcome) -> Json | None:
        """What this task's own request charged, or would charge. Sets ``task.charge_name``."""
        if outcome.action != "created" or outcome.takeover is not None:
            return None
        after, cost = outcome.after or {}, outcome.cost
        task.charge_name = self.change_name(task, outcome)
        if outcome.state is None:
            return as_charge(str(cost.amount), cost.currency) if cost else None
        if after.get("charged") is None and after.get("mode") != "test" and task.lost_answer:
            return self.charged_by_invoice(task, after)
        if task.replayed and not task.lost_answer:
            return None  # another run ordered it at the same moment
        return as_charge(after.get("charged"), after.get("currency") or (cost.currency if cost else None))

    def change_name(self, task: ModuleTask, outcome: Outcome) -> str:
        """What names an object that is made or deleted among the changes of the run. Several hosts would make
        it once; after a deletion check mode would make it again."""
        if outcome.action == "deleted":
            named = f"{(outcome.before or {})['id']} deleted"
        elif outcome.state is None:
            named = self.identity(task, outcome.after or {})
        else:
            return f"{self.kind}/{outcome.state.values().get('invoice_id') or outcome.state.id}"
        effects = task.memory.effects if task.check_mode else ()
        return f"{self.kind}/{named}/{sum(effect[0] == 'delete' for effect in effects)}"

    def with_unreported(self, task: ModuleTask, interrupted: Entry, outcome: Outcome, result: Json) -> Json:
        """The result, with what an interrupted run charged for the object and could not report."""
        shown = outcome.after or outcome.before or {}
        if result.get("charge") is not None:
            return result
        paid = purchase_journal.unreported(task.client(False), interrupted, self.kind, shown)
        if paid is None:
            return result
        return self._paid_before(task, paid, f"bought {self.resource.title} {shown['id']}", result)

    def _paid_before(self, task: ModuleTask, paid: Payment, done: str, result: Json) -> Json:
        """The result, with what an interrupted run paid."""
        task.warn(f"an interrupted run {done}: {paid.charged}")
        task.charge_name = f"{self.kind}/{paid.invoice_id}"
        return {**result, "changed": True, "charge": as_charge(str(paid.paid), paid.currency)}

    def charged_by_invoice(self, task: ModuleTask, after: Values) -> Json | None:
        """What a purchase charged whose answer was lost: the amount of the object's invoice."""
        client = task.client(False)
        now = client.service_now()
        began = now - SENT_WITHIN - timedelta(seconds=task.params["wait_timeout"] or 0.0)
        if paid := paid_for(client, self.kind, after, began, now):
            task.charge_name = f"{self.kind}/{paid.invoice_id}"
            return as_charge(str(paid.paid), paid.currency)
        task.warn(
            "the response of the order was lost, and its invoice cannot be read: the charge for the "
            f"{self.resource.title} with id {after['id']} is not known"
        )
        return {"amount": None, "currency": None}


class TransferModule(ResourceModule):
    """A domain that is transferred from another registrar. The module never gives one up."""

    shared: ClassVar[Values] = WAIT_OPTIONS


class WebhookSubscriptionModule(ResourceModule):
    """If ``secret_file`` does not exist, the signing secret is not known, and a new one is made."""

    file_option: ClassVar = "secret_file"

    def identity(self, task: ModuleTask, desired: Values) -> str:
        return str(desired.get("url") or "")

    def finish(self, task: ModuleTask, request: Request, outcome: Outcome, result: Json) -> Json:
        file = self.secret_file(task)
        is_new = outcome.action in ("created", "replaced")
        if file is None or (file.exists and not is_new):
            return result
        if not is_new:
            task.warn(f"{file.path} is not there: a new secret is made, and the old one stops at once")
        if outcome.state is not None and not task.check_mode:
            state = outcome.state if is_new else self._with_new_secret(request, outcome.state)
            task.hide_secrets_of(state)
            file.keep(state.values().get("secret"), request.mode, task.warn)
        return {**(file.in_diff(result) if task.diff else result), "changed": True}

    def _with_new_secret(self, request: Request, state: Any) -> Any:
        inputs = declared(self.resource, {"rotation": "the secret is not known here"}).inputs
        return apply.update(request, self.resource, state, inputs, frozenset({"rotation"}))


def models_read(resource: AnyResource) -> list[type[BaseModel]]:
    """What a task reads of objects of this kind: their state, and the lists of their area of the API, if it
    has the name of the kind. Loads what reads them, too."""
    area = f"{resource.api_name or resource.parent or resource.kind}s"
    if find_spec(f"pulumi_hosting.api.operations.{area}") is None:
        return [resource.State]
    rows = import_module(f"pulumi_hosting.api.operations.{area}").OPERATIONS
    import_module(f"pulumi_hosting.client.services.{area}")
    return [resource.State, *models_of(row for row in rows if row.paging != "none")]


def _exists(resource: AnyResource, made: State) -> str:
    """What was made, in words."""
    kind, colon, number = made.id.partition(":")
    if not colon:
        return f"{resource.title} {made.id} exists"
    if kind == "order":
        return f"order {number} is placed"
    return f"an address for server {made.values().get('server_id')} is ordered"


def difference(resource: AnyResource, desired: Values, outcome: Outcome) -> Json:
    """The named inputs before and after, sorted and without secrets; the same in check mode and in a real
    run."""
    hidden = resource.Inputs.secret_fields()
    desired = {name: value for name, value in for_display(desired).items() if name not in hidden}
    changes = {change.field: change for change in outcome.diff.changes if change.field not in hidden}
    known = outcome.before or {}
    same = {name: known[name] for name in desired if name not in changes and known.get(name) is not None}
    if outcome.action == "created":
        before, after = same, desired  # nothing was there, or what is taken over
    elif outcome.action == "deleted":
        before, after = shown_fields(resource.State, known), {}
    else:
        replaced = {"id": known.get("id")} if outcome.action == "replaced" else {}
        before = {**replaced, **same, **{name: change.before for name, change in changes.items()}}
        after = {**same, **{name: change.after for name, change in changes.items()}}
    return {"before": dict(sorted(before.items())), "after": dict(sorted(after.items()))}
