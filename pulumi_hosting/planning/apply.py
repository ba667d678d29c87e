"""Does what was planned.

``create``, ``read``, ``update`` and ``delete`` are the steps that an engine with a state of its own (Pulumi)
asks for one by one. ``ensure`` and ``ensure_absent`` are the whole way for a frontend that remembers nothing
(Ansible): find, plan, apply.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning import paid_reads
from pulumi_hosting.planning.check import Checked, check, unsendable
from pulumi_hosting.planning.diff import NO_CHANGES, Diff, diff, is_same, refuse_forbidden
from pulumi_hosting.planning.modes_and_scopes import guard, refuse_other_mode, warn_of_scopes, with_id
from pulumi_hosting.planning.plan import Action, Plan, PlanOptions, deletes_double, plan, predict
from pulumi_hosting.planning.resolve_names import with_resolved_names
from pulumi_hosting.resources import powers
from pulumi_hosting.resources.base import AnyResource, State, several
from pulumi_hosting.resources.takeover import Takeover
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import NoSuchObject, ResourceConflict, ResourceError, Unchangeable
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import if_renamed, name_in

Save = Callable[[State], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done to the object, or would be: ``action``, with what can be shown of it ``before`` and
    ``after``.

    - ``state``: the object afterwards; None where it is only predicted, or gone.
    - ``changes``: the fields that differed.
    - ``cost``: what it charges, where that was asked for.
    - ``takeover``: what was, or would be, taken over instead of being made.
    """

    action: Action
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    state: State | None
    diff: Diff = NO_CHANGES
    cost: Cost | None = None
    takeover: Takeover | None = None

    @property
    def changed(self) -> bool:
        return self.action != "unchanged"


def create(
    request: Request,
    resource: AnyResource,
    inputs: Any,
    save: Save = lambda state: None,
    *,
    wait: bool = True,
) -> Any:
    """Make it and wait for it. ``save`` is called the moment an id is known, before any waiting; without
    ``wait`` an order that is still under way is left to itself."""
    refuse_other_mode(request.client, request.session.declared_mode)
    # what is paid for is saved before it is waited for
    saving = replace(request, save=lambda made: save(_stamped(made, request.mode)))
    made = resource.create(saving, inputs)
    return _created(saving, resource, inputs, made, save, wait)


def _created(
    request: Request, resource: AnyResource, inputs: Any, made: State, save: Save, wait: bool
) -> Any:
    """The state of a new object: saved, and waited for with ``wait``."""
    state = _stamped(made, request.mode)
    refuse_taken(request, resource, inputs, state)
    save(state)
    request.ownership.add(request.identity, state.id)
    if powers.is_provisional(resource, state) and not wait:
        return state
    state = _settle(request, resource, state, inputs, request.mode)
    if line := paid_reads.bought(resource, inputs, state):
        request.warn(line)
    return state


def refuse_taken(request: Request, resource: AnyResource, inputs: Any, state: State) -> None:
    """Raise ``ResourceError`` if what is adopted is to be replaced, or another declaration has it."""
    field = resource.Inputs.adopted_by(inputs.given())
    if field is None:
        return
    labels = request.ownership.labels(state.id)
    if state.id in request.owned and (not labels or request.label in labels):
        raise ResourceError(
            f"{field} names {resource.title} {state.id}, the resource being replaced; nothing was changed. "
            f"Next: leave {field} out; then a new one is made, and {resource.title} {state.id} is deleted"
        )
    if request.has_owner(state.id) or request.is_declared(state.id, getattr(state, "name", None)):
        others = sorted(map(name_in, labels - {request.label}))
        advice = if_renamed(next(iter(others), None))
        raise ResourceError(
            f"{field}: another declaration has {resource.title} {state.id} already; nothing was changed. "
            f"Next: {advice}correct {field}"
        )


def wait(request: Request, resource: AnyResource, state: Any) -> Any:
    """Only wait, writing nothing: for a state whose id is provisional. Raises ``WaitTimeout``."""
    if isinstance(resource, powers.Provisioned):
        state = _stamped(resource.wait(request, state), state.mode)
    request.ownership.add(request.identity, state.id)
    return state


def resume(request: Request, resource: AnyResource, state: Any, inputs: Any) -> Any:
    """Go on waiting for what an earlier run began: a state whose id is provisional."""
    guard(request, resource, state)
    return _settle(request, resource, state, inputs, state.mode or request.mode)


def _settle(request: Request, resource: AnyResource, state: Any, inputs: Any, mode: str) -> Any:
    if isinstance(resource, powers.Settled):
        state = _stamped(resource.settle(request, state, inputs), mode)
    request.ownership.add(request.identity, state.id)
    return state


def _stamped(state: Any, mode: str | None) -> Any:
    return state.model_copy(update={"mode": mode})


def read(request: Request, resource: AnyResource, last: Any) -> Any:
    """The object as it is now, or None if it is gone. What was simulated and cannot be read back stays as
    it was recorded.
    """
    made, has_test_key = powers.recorded_mode(resource, last), request.client.is_test_key
    if made == "test" and not has_test_key:
        guard(request, resource, last)
    if _is_only_recorded(resource, last):
        return last
    if powers.sandbox_of(resource) == "refused" and has_test_key:
        request.info(f"{resource.title} {last.id} cannot be read with a test key: using the last known state")
        return last
    found = resource.read(request, last.id, last)
    if found is not None:
        return found.model_copy(update={"mode": made or powers.mode_of(resource, found)})
    # A state that does not say which key made it: with a test key, absence says nothing where such objects
    # are never listed.
    is_unclear = made is None and has_test_key and powers.sandbox_of(resource) != "listed"
    known = [value for name, value in last.values().items() if name != "id" and value not in (None, "", [])]
    return last if is_unclear and known else None


def _is_only_recorded(resource: AnyResource, state: State) -> bool:
    """Whether it was simulated, and cannot be read back."""
    return powers.recorded_mode(resource, state) == "test" and powers.sandbox_of(resource) != "listed"


def update(request: Request, resource: AnyResource, state: Any, inputs: Any, fields: frozenset[str]) -> Any:
    """Apply ``fields`` in place. What was only simulated and cannot be read back changes in the record
    alone.
    """
    guard(request, resource, state)
    if _is_only_recorded(resource, state):
        request.info(f"{resource.title} {state.id} was simulated, and so is its change")
        desired = {name: getattr(inputs, name) for name in fields if name in resource.State.model_fields}
        return state.model_copy(update=desired)
    return _stamped(resource.update(request, state, inputs, fields), state.mode or request.mode)


def delete(request: Request, resource: AnyResource, state: Any) -> None:
    """Remove it; gone already = done."""
    guard(request, resource, state)
    if _is_only_recorded(resource, state):
        request.info(f"{resource.title} {state.id} was simulated: there is nothing to remove")
    else:
        resource.delete(request, state)


def shown(resource: AnyResource, state: State) -> dict[str, Any]:
    """What can be shown of an object, whether it was made just now or found."""
    return {**state.shown(), "mode": powers.mode_of(resource, state)}


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How ``ensure`` acts.

    - ``dry_run``: send no write and do not wait; the outcome is the one of the real run, as far as it can be
      known.
    - ``wait``: whether to wait for an order that is still under way.
    - ``priced``: whether the price must be known before anything is ordered; ``approve`` gets it, None
      where it cannot be known, and raises ``ResourceError`` to refuse.
    - ``save``: called with the object the moment it is made, before anything else can fail.
    """

    dry_run: bool = False
    wait: bool = True
    priced: bool = False
    approve: Callable[[Cost | None], None] = lambda cost: None
    save: Save = lambda state: None


def ensure(
    request: Request,
    resource: AnyResource,
    inputs: Any,
    *,
    id: str | None = None,
    options: ApplyOptions = ApplyOptions(),
) -> Outcome:
    """Bring the account to what ``inputs`` declare. ``id`` names the object where it is known (a rename, for
    example).

    ``inputs`` may come from ``declared``: what is missing for a new object is an ``InvalidInput`` when one
    has to be made, and so is what only the account can tell (catalog, stock).
    """
    current = _lookup(request, resource, inputs, id)
    if resource.Inputs.resolved_fields(inputs.model_fields_set):
        inputs = with_resolved_names(request, resource, inputs, current)
    if current is not None:
        return _ensure_existing(request, resource, inputs, current, id, options)
    if isinstance(resource, powers.Renamable) and id is None:
        resource.refuse_renamed(request, inputs, "ordered")
    if type(inputs) is not resource.Inputs:
        inputs = _whole(resource, inputs)
    plan_options = PlanOptions(
        priced=options.priced, predicted=options.dry_run, scopes="warn" if options.dry_run else "refuse"
    )
    planned = plan(request, resource, Checked(inputs, {}, inputs), options=plan_options)
    for warning in planned.warnings:
        request.warn(warning)
    if planned.refusals:
        raise InvalidInput(dict(planned.refusals), resource.called(inputs.given()))
    cost, taken = planned.cost, planned.takeover
    before = shown(resource, taken.state) if taken else None
    if isinstance(resource, powers.Priced) and options.priced:
        if taken is None:
            try:
                options.approve(cost)
            except ResourceError as refused:  # who runs it may think that it exists
                refused.args = (f"it is not on the account; {refused}",)
                raise
        request = _asking_before_it_pays(request, resource, inputs, cost if taken is None else None, options)
    if options.dry_run:
        if cost is not None:
            if cost.choices:
                request.warn(f"would charge {cost}")
            paid_reads.remark_on_order(request, cost)
            if line := paid_reads.to_be_bought(resource, inputs):
                request.warn(line)
        return Outcome("created", before, planned.predicted, None, cost=cost, takeover=taken)
    refuse_other_mode(request.client, request.session.declared_mode)
    saving = replace(request, save=lambda made: options.save(_stamped(made, request.mode)))
    made = resource.create(saving, inputs)
    state = _created(saving, resource, inputs, made, options.save, options.wait)
    return Outcome("created", before, state.shown(), state, cost=cost, takeover=taken)


def _asking_before_it_pays(
    request: Request, resource: powers.Priced, inputs: Any, approved: Cost | None, options: ApplyOptions
) -> Request:
    """The same, that asks before its purchase. Without an ``approved`` cost, an object was announced as found
    and may have to be paid after all."""

    def approve() -> AbstractContextManager[object]:
        cost = approved or resource.cost(request, inputs.given())
        if approved is None:
            options.approve(cost)
        return request.session.paying(request, cost)

    return replace(request, approve=approve)


def _ensure_existing(
    request: Request, resource: AnyResource, inputs: Any, current: Any, id: str | None, options: ApplyOptions
) -> Outcome:
    """Wait for what is still being made, then change it where it differs."""
    before, settled = current.shown(), NO_CHANGES
    if powers.is_provisional(resource, current):
        settled = _set_by_settling(resource, current, inputs)
        if options.dry_run or not options.wait:
            if not (settled and options.wait):
                return Outcome("unchanged", before, before, current)
            return Outcome("updated", before, predict(resource, inputs, current), current, settled)
        current = resume(request, resource, current, inputs)
    plan_options = PlanOptions(predicted=options.dry_run)
    planned = plan(request, resource, Checked(inputs, {}, inputs), current, options=plan_options)
    refuse_forbidden(resource, current, planned.changes)
    for warning in planned.warnings:
        request.warn(warning)
    for double in planned.doubles:
        request.warn(deletes_double(resource, double))
    paid_reads.tell(request, resource, current, inputs.given())
    if planned.action != "unchanged":
        return _ensure_change(request, resource, inputs, current, planned, before, id, options)
    after = current.shown()
    if settled and not planned.changes:
        return Outcome("updated", before, after, current, settled)
    return Outcome("unchanged", after, after, current, NO_CHANGES if planned.changes else planned.changes)


def _ensure_change(
    request: Request,
    resource: AnyResource,
    inputs: Any,
    current: Any,
    planned: Plan,
    before: Mapping[str, Any],
    id: str | None,
    options: ApplyOptions,
) -> Outcome:
    """Update or replace the object as planned, or say what that would bring."""
    found = planned.changes
    sent = {name: value for name, value in inputs.given().items() if found.replaces or name in found.fields}
    if wrong := unsendable(resource, sent):
        raise InvalidInput(wrong, resource.called(inputs.given()))
    if id is not None and (
        named := [field for field in powers.natural_key(resource) if field in found.fields]
    ):
        _refuse_taken_name(request, resource, inputs, current, named[0])
    is_new = planned.action == "replaced"
    if is_new and resource.replacement != "free":
        raise Unchangeable(_cannot_change(resource, current, found, inputs))
    inputs = _whole(resource, inputs, current) if is_new else inputs
    if options.dry_run:
        warn_of_scopes(request, resource, "create" if is_new else "update")
        after = predict(resource, inputs, None) if is_new else planned.predicted
        return Outcome(planned.action, before, after, None, found)
    if is_new:
        delete(request, resource, current)
        state = create(request, resource, inputs, wait=options.wait)
    else:
        state = update(request, resource, current, inputs, found.fields)
    return Outcome(planned.action, before, state.shown(), state, found)


def predict_create(resource: AnyResource, raw: Mapping[str, Any], unknown: Collection[str]) -> Outcome:
    """The outcome of making an object of which ``unknown`` inputs are only known later. Nothing is asked.
    Raises ``InvalidInput``.
    """
    checked = check(resource, raw, unknown)
    if checked.failures:
        raise InvalidInput(checked.failures, resource.title)
    return Outcome("created", None, predict(resource, checked.known, None), None)


def _whole(resource: AnyResource, inputs: Any, current: State | None = None) -> Any:
    """Inputs that a new object can be made of; what was not mentioned is taken over from the ``current``
    one.
    """
    known = current.values() if current else {}
    kept = {
        name: known[name]
        for name, info in resource.Inputs.model_fields.items()
        if info.is_required() and known.get(name) is not None
    }
    checked = check(resource, {**kept, **inputs.given()})
    if checked.failures:
        what = resource.called(inputs.given())
        raise InvalidInput(checked.failures, f"{what} does not exist yet, and as a new one it")
    return checked.inputs


def _find(request: Request, resource: AnyResource, inputs: Any) -> Any:
    return resource.find(request, inputs) if isinstance(resource, powers.Findable) else None


def ensure_absent(
    request: Request,
    resource: AnyResource,
    inputs: Any,
    *,
    id: str | None = None,
    options: ApplyOptions = ApplyOptions(),
) -> Outcome:
    """Bring the account to not having the object. An order of it that is still under way is waited for:
    it may become a server. That there is nothing to delete is never concluded from what was seen earlier.
    """
    current = _lookup(replace(request, fresh=True), resource, inputs, id, must_exist=False)
    if current is None:
        if isinstance(resource, powers.Renamable) and id is None:
            resource.refuse_renamed(request, inputs, "deleted")
        return Outcome("unchanged", None, None, None)
    if id is not None:
        _refuse_another(resource, inputs, current)
    if isinstance(resource, powers.Registered) and resource.is_released(current):
        request.warn(
            f"{resource.title} {getattr(current, 'name', current.id)} stays on the account: it cannot be "
            f"deleted via the API; auto-renew is off"
        )
        return Outcome("unchanged", None, None, None)
    if options.dry_run:
        warn_of_scopes(request, resource, "delete")
    else:
        delete(request, resource, current)
        if id is None and current.id in request.gone:
            # The list that showed it was old: the name may be another object's by now.
            again = _lookup(replace(request, fresh=True), resource, inputs, None, must_exist=False)
            if again is not None and again.id not in request.gone:
                return ensure_absent(request, resource, inputs, options=options)
    return Outcome("deleted", current.shown(), None, None)


def _set_by_settling(resource: AnyResource, current: State, inputs: Any) -> Diff:
    """What ``settle`` will set on an object that is still coming: the inputs that can change in place and
    are not so yet.
    """

    def is_set(name: str) -> bool:
        trait = resource.Inputs.trait(name)
        others = (trait.replaces, trait.when_creating, trait.rebuilds, trait.policy, trait.waits)
        return not any(others)

    desired = {name: value for name, value in inputs.given().items() if is_set(name)}
    return diff(resource, current.values(), desired)


def _lookup(
    request: Request, resource: AnyResource, inputs: Any, id: str | None, *, must_exist: bool = True
) -> Any:
    if id is not None:
        resource.must_be_id(id)
        # What the service may rewrite (a key's comment) is compared as declared, as by the natural key.
        named = {
            field: value for field, value in inputs.given().items() if field in powers.natural_key(resource)
        }
        found = resource.read(request, id, resource.State.partial({**named, "id": id}))
        # a replacement has another id: the declaration that asked for it must hold afterwards
        is_named = any(getattr(inputs, field) is not None for field in powers.natural_key(resource))
        may_be_replaced = must_exist and resource.replacement == "free" and is_named
    if id is None or (found is None and may_be_replaced):
        found = _find(request, resource, inputs)
    if found is not None:
        return _stamped(found, powers.mode_of(resource, found))
    if id is not None and must_exist:
        raise NoSuchObject(
            f"there is no {resource.title} with id {id} on this account. Next: correct the id, or "
            "leave it out to create one"
        )
    return None


def _refuse_another(resource: AnyResource, inputs: Any, current: State) -> None:
    """Stop before the object of an id is removed although the declaration names another one: an id may be
    stale.
    """
    given, known = inputs.given(), current.values()
    for field in powers.natural_key(resource):
        is_given = given.get(field) is not None and field in known
        if is_given and not is_same(resource, field, known[field], given[field]):
            raise ResourceError(
                f"the {resource.title} with id {current.id} has {field} {known[field]!r}, not "
                f"{given[field]!r}; nothing was removed. Next: correct the id, or leave {field} out"
            )


def _refuse_taken_name(
    request: Request, resource: AnyResource, inputs: Any, current: State, field: str
) -> None:
    """Stop before the object named by its id becomes indistinguishable from another, by its new ``field``."""
    other = _find(request, resource, inputs)
    if other is not None and other.id != current.id:
        raise ResourceConflict(
            f"{resource.title} {current.id} cannot become {inputs.given()[field]!r}: {resource.title} "
            f"{other.id} already has that {field}; nothing was changed. Next: choose another {field}, or "
            f"delete {resource.title} {other.id} first",
            id=other.id,
        )


def _any_of(value: object) -> str:
    return " or ".join(map(repr, several(value)))


def _cannot_change(resource: AnyResource, current: State, found: Diff, inputs: Any) -> str:
    what = "; ".join(
        f"{by} is {getattr(current, by)!r}, not {_any_of(inputs.given()[by])}"
        if (by := resource.Inputs.named_by().get(change.field)) in inputs.given()
        else f"{change.field} is {change.before!r}, not {_any_of(change.after)}"
        for change in found.changes
        if change.replaces
    )
    step = "delete it first and order again"
    if all(resource.Inputs.trait(field).rebuilds for field in found.replaces):
        name = getattr(current, "name", None) or current.id
        step = f"have it reinstalled, which erases its disk (state: reinstalled, erase: {name})"
    return (
        f"{with_id(resource, current)}: {what}, and that cannot be changed in place; nothing was changed. "
        f"Next: declare it as it is, or {step}"
    )
