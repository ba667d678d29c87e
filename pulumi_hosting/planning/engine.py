"""Check, diff, plan, apply: the reasoning about any resource, written once for both frontends.

``check`` brings what a user wrote into one normal form or says per field what is wrong. ``diff`` compares it with what is known to exist.
``create``, ``read`` and ``update`` are the steps an engine with a state of its own (Pulumi) asks for one by one; ``ensure`` and
``ensure_absent`` are the whole way for a frontend that remembers nothing (Ansible): find, plan, apply. Everything here but the five
methods of the resource is pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from functools import lru_cache
from typing import Any, Literal, TypeVar

from pydantic import ValidationError, create_model

from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.resources.base import Inputs, OnChange, Resource, State, Takeover, Trait
from pulumi_hosting.resources.powers import (
    Adoptable,
    Findable,
    Predicted,
    Priced,
    Provisioned,
    Rebuildable,
    Registered,
    Sandboxed,
    Settled,
    Validated,
)
from pulumi_hosting.session.context import Context, account
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import KeyLacksScope, NoSuchObject, ResourceConflict, ResourceError, Unchangeable, WrongMode

Action = Literal["created", "updated", "replaced", "deleted", "unchanged"]
HIDDEN = "(secret)"
S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class Checked:
    """``inputs`` when everything is known and right; ``values``: the known fields in normal form; ``failures``: field → reason;
    ``known``: the inputs without what is not known yet."""

    inputs: Any
    values: Mapping[str, Any] = attribute(repr=False)  # in plain, passwords too
    failures: Mapping[str, str]
    known: Any = attribute(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs. Values of secret fields read ``(secret)``."""

    field: str
    before: Any
    after: Any
    replaces: bool


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs, and remarks about differences that will have no effect."""

    changes: tuple[Change, ...] = ()
    remarks: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    """Fields that differ although the declaration forbids their change."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(change.field for change in self.changes)

    @property
    def replaces(self) -> tuple[str, ...]:
        return tuple(change.field for change in self.changes if change.replaces)


@dataclass(frozen=True, slots=True)
class Outcome:
    """ "The object has been … created | updated | replaced | deleted | unchanged", with what can be shown of it."""

    action: Action
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    state: State | None
    diff: Diff = Diff()
    cost: Cost | None = None
    """What it charges, where that was asked for."""
    takeover: Takeover | None = None
    """What was, or would be, taken over instead of being made."""

    @property
    def changed(self) -> bool:
        return self.action != "unchanged"


# --- optional powers, with what holds where a resource does not have them -----------------------------------------------------


def natural_key(resource: Resource[Any, Any]) -> tuple[str, ...]:
    """The inputs that name an object before it has an id."""
    return resource.natural_key if isinstance(resource, Findable) else ()


def on_change(resource: Resource[Any, Any], field: str, desired: Mapping[str, Any]) -> OnChange:
    """What a change of ``field`` means among the ``desired`` values."""
    chosen = resource.on_change(field, desired) if isinstance(resource, Rebuildable) else None
    return chosen or ("replace" if resource.Inputs.trait(field).replaces else "update")


def is_provisional(resource: Resource[Any, Any], state: State) -> bool:
    """Whether the id stands for an order that is still to become the object."""
    return isinstance(resource, Provisioned) and resource.is_provisional(state)


def is_simulated(resource: Resource[Any, Any], id: str) -> bool:
    """Whether the id alone shows that the object is only simulated."""
    return isinstance(resource, Sandboxed) and resource.is_simulated(id)


def sandbox_of(resource: Resource[Any, Any]) -> str:
    """What a test key can do with the kind: ``listed``, ``recorded`` or ``refused`` (see ``Sandboxed``)."""
    return resource.sandbox if isinstance(resource, Sandboxed) else "recorded"


def mode_of(resource: Resource[Any, Any], state: State) -> str:
    """``live``, or ``test`` for what is only simulated: by the record, else by the id."""
    return recorded_mode(resource, state) or "live"


def predict(resource: Resource[Any, Any], inputs: Inputs, state: State | None) -> dict[str, Any]:
    """The state's fields as they would be afterwards, as far as they can be known without doing it."""
    known = {**state.shown(), "mode": mode_of(resource, state)} if state else {}
    hidden = resource.State.secret_fields()
    desired = {name: value for name, value in inputs.given().items() if name in resource.State.model_fields and name not in hidden}
    known |= desired
    return resource.adjust_prediction(known, state) if isinstance(resource, Predicted) else known


def listed(context: Context, resource: Resource[Any, S], **filters: Any) -> Iterable[S]:
    """Every object of the kind on the account, or those that match. Raises ``ResourceError`` where the API has no list of them."""
    if not isinstance(resource, Findable):
        raise ResourceError(f"a {resource.title} cannot be listed")
    found: Iterable[S] = resource.all(context, **filters)
    return found


def _find(context: Context, resource: Resource[Any, Any], inputs: Any) -> Any:
    return resource.find(context, inputs) if isinstance(resource, Findable) else None


# --- check -------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _partial(inputs: type[Inputs], unknown: frozenset[str]) -> type[Inputs]:
    """The same model where ``unknown`` fields may be anything: what is known is still checked, alone and together."""
    anything: dict[str, Any] = dict.fromkeys(unknown, (Any, None))
    made: type[Inputs] = create_model(inputs.__name__, __base__=inputs, **anything)
    return made


def check(resource: Resource[Any, Any], raw: Mapping[str, Any], unknown: Collection[str] = ()) -> Checked:
    """Validate ``raw`` and bring it into normal form. ``unknown``: fields whose values are only known later; they are not judged."""
    open_fields = frozenset(unknown) & frozenset(resource.Inputs.model_fields)
    known = {name: value for name, value in raw.items() if name not in open_fields}
    failures = {name: "is not an input of this resource" for name in unknown if name not in resource.Inputs.model_fields}
    whole: type[Inputs] = resource.Inputs
    try:
        model = _partial(whole, open_fields) if open_fields else whole
        inputs = model.model_validate(known)
    except ValidationError as error:
        return Checked(None, known, {**failures, **reasons(error)})
    return Checked(inputs if not open_fields else None, inputs.given(), failures, inputs)


def declared(resource: Resource[Any, Any], raw: Mapping[str, Any]) -> Checked:
    """Like ``check``, for a frontend where what exists need not be described whole: its ``inputs`` may lack what only a new object needs.
    Such inputs are for ``ensure`` and ``ensure_absent``; whatever is absent reads None."""
    absent = frozenset(name for name, info in resource.Inputs.model_fields.items() if info.is_required() and name not in raw)
    whole: type[Inputs] = resource.Inputs
    model = _partial(whole, absent) if absent else whole
    try:
        inputs = model.model_validate(dict(raw))
    except ValidationError as error:
        return Checked(None, raw, reasons(error))
    return Checked(inputs, inputs.given(), {})


def _whole(resource: Resource[Any, Any], inputs: Any, current: State | None = None) -> Any:
    """Inputs that a new object can be made of; what was not mentioned is taken over from the ``current`` one."""
    known = current.values() if current else {}
    kept = {name: known[name] for name, info in resource.Inputs.model_fields.items() if info.is_required() and known.get(name) is not None}
    checked = check(resource, {**kept, **inputs.given()})
    if checked.failures:
        raise InvalidInput(checked.failures, f"there is no such {resource.title} yet, and a new one")
    return checked.inputs


def reasons(error: ValidationError) -> dict[str, str]:
    """Field → reason, without the refused value: it may be a secret."""
    found: dict[str, str] = {}
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        field = str(item["loc"][0]) if item["loc"] else ""
        reason = item["msg"].removeprefix("Value error, ")
        if not field and ": " in reason:
            field, reason = reason.split(": ", 1)  # rules over several fields name the one to correct
        reason = {"missing": "is required", "extra_forbidden": "is not an input of this resource"}.get(item["type"], reason)
        path = ".".join(str(part) for part in item["loc"][1:] if isinstance(part, int))
        found.setdefault(field, f"[{path}] {reason}" if path else reason)
    return found


# --- diff --------------------------------------------------------------------------------------------------------------------


Same = Callable[[str, Mapping[str, Any], Any], bool]
"""``Resource.is_same`` with a context: field, the state's values, the declared value."""


def differs(field: str, olds: Mapping[str, Any], after: Any) -> bool:
    return False


def diff(
    resource: Resource[Any, Any], olds: Mapping[str, Any], news: Mapping[str, Any], unknown: Collection[str] = (), same: Same = differs
) -> Diff:
    """Compare what is known to exist (``olds``: the state's values) with what is declared (``news``: normal form).

    ``same`` is asked about each field that reads differently.
    """
    changes: list[Change] = []
    remarks: list[str] = []
    installed: list[str] = []
    refusals: list[str] = []
    secret = resource.Inputs.secret_fields()
    for field in resource.Inputs.model_fields:
        if field not in news and field not in unknown:
            continue  # not mentioned = not managed
        trait = resource.Inputs.trait(field)
        if trait.policy:
            continue
        before = olds.get(field)
        how = on_change(resource, field, news)
        if field in unknown:
            if not trait.when_creating and how != "keep":
                changes.append(Change(field, _shown(field, before, secret), "(known after apply)", how == "replace"))
            continue
        after = news[field]
        if _same(trait, before, after):
            continue
        if trait.when_creating:
            if field in olds:
                remarks.append(f"{field} matters when ordering only: the change has no effect")
            continue
        if trait.trigger and not olds:
            continue  # there is nothing yet that it could act on
        if before is None and (trait.write_only or ((trait.replaces or trait.rebuilds) and field in resource.State.model_fields)):
            continue  # not observable, and nothing was ever recorded: nothing to compare with
        if same(field, olds, after):
            continue
        if how == "keep":
            installed.append(field)
            continue
        if how == "refuse":
            refusals.append(field)
        changes.append(Change(field, _shown(field, before, secret), _shown(field, after, secret), how == "replace"))
    rebuilt = any(change.replaces or resource.Inputs.trait(change.field).rebuilds for change in changes)
    if not rebuilt:  # else the new ones are installed with the rest
        remarks += [
            f"{field} has changed and is installed only when a {resource.title} is made: the change has no effect. Next: to have it installed, "
            "set rebuild to 'replace' (a new one, the old one is deleted) or 'reinstall' (the same one, its disk is erased)"
            for field in installed
        ]
    return Diff(tuple(changes), tuple(remarks), tuple(refusals))


def is_same(resource: Resource[Any, Any], field: str, before: Any, after: Any) -> bool:
    """Whether two values of an input are one, by its trait: a key with another comment is the same key."""
    return _same(resource.Inputs.trait(field), before, after)


def _same(trait: Trait, before: Any, after: Any) -> bool:
    if trait.unordered and isinstance(before, list) and isinstance(after, list):
        return sorted(map(str, before)) == sorted(map(str, after))
    if trait.normal is not None and isinstance(before, str) and isinstance(after, str):
        return trait.normal(before) == trait.normal(after)
    return bool(before == after) or (before in (None, "", []) and after in (None, "", []))


def _shown(field: str, value: Any, secret: frozenset[str]) -> Any:
    return HIDDEN if field in secret and value is not None else value


def live_inputs(resource: Resource[Any, Any], state: State, managed: Collection[str], last: Mapping[str, Any]) -> dict[str, Any]:
    """The managed inputs as they are now; what cannot be observed stays as it was."""
    now = state.values()
    return {name: now[name] if now.get(name) is not None else last.get(name) for name in managed if name in resource.Inputs.model_fields}


# --- who may touch what ------------------------------------------------------------------------------------------------------


def recorded_mode(resource: Resource[Any, Any], state: State) -> str | None:
    """``live`` or ``test``, by what was recorded; None where neither the record nor the id tells."""
    return state.mode or ("test" if is_simulated(resource, state.id) else None)


def guard(context: Context, resource: Resource[Any, Any], state: State) -> None:
    """Stop before a test key changes what is real, or a live key anything that was only simulated. Raises ``ResourceError``."""
    refuse_other_mode(context.client, context.declared_mode)
    made = recorded_mode(resource, state)
    if made in (None, context.mode):
        return
    named = f"{resource.title} {getattr(state, 'name', None) or ''} (id {state.id})".replace("  ", " ")
    if made == "live":
        raise WrongMode(
            f"{named} was made with a live key, and a test key may look at it but never change it; nothing was sent. "
            "Next: use the live key for changes, the test key for previews"
        )
    raise WrongMode(
        f"{named} was only simulated, with a test key, and a live key must not touch it; nothing was sent. "
        "Next: use the test key that made it, or, with Pulumi, remove it from the state (pulumi state delete)"
    )


def refuse_other_mode(client: Client, declared: str | None) -> None:
    """Stop before a key of another mode than the ``declared`` one writes. Raises ``ResourceError``."""
    mode = "test" if client.is_test_key else "live"
    if declared not in (None, mode):
        raise WrongMode(
            f"the configuration says mode {declared}, and this is a {mode} key: it may look and preview, and change nothing. "
            f"Next: use a {declared} key"
        )


def missing_scopes(context: Context, resource: Resource[Any, Any], verb: str) -> str | None:
    """What the key lacks to ``create``, ``update`` or ``delete``, in a sentence; None where it lacks nothing."""
    if sandbox_of(resource) == "refused" and context.client.is_test_key:
        return None
    missing = sorted({*resource.scopes[verb]} - {*account(context.client).scopes})
    lacks = f"the API key lacks {', '.join(missing)}, needed to {verb} a {resource.title}"
    return f"{lacks}. Next: give it that scope, or use another key" if missing else None


# --- one step at a time ------------------------------------------------------------------------------------------------------


def create(
    context: Context, resource: Resource[Any, Any], inputs: Any, save: Callable[[State], None] = lambda state: None, *, wait: bool = True
) -> Any:
    """Make it and wait for it. ``save`` is called the moment an id is known, before any waiting; without ``wait`` an order that is still
    under way is left to itself."""
    refuse_other_mode(context.client, context.declared_mode)
    saving = replace(context, save=lambda made: save(_stamped(made, context.mode)))  # what is paid for is saved before it is waited for
    state = _stamped(resource.create(saving, inputs), context.mode)
    _refuse_taken(context, resource, inputs, state)
    save(state)
    context.ownership.add(context.identity, state.id)
    if is_provisional(resource, state) and not wait:
        return state
    return _settle(context, resource, state, inputs, context.mode)


def _refuse_taken(context: Context, resource: Resource[Any, Any], inputs: Any, state: State) -> None:
    """Nothing is adopted that is to be replaced, or that another declaration has."""
    if getattr(inputs, "adopt_id", None) is None:
        return
    if state.id in context.owned:
        raise ResourceError(
            f"adopt_id names {resource.title} {state.id}, the very one that is to be replaced; nothing was changed. Next: leave adopt_id out"
        )
    if state.id in context.ownership.of_others(context.identity):
        raise ResourceError(
            f"adopt_id: another declaration has {resource.title} {state.id} already; nothing was changed. Next: correct adopt_id"
        )


def wait(context: Context, resource: Resource[Any, Any], state: Any) -> Any:
    """Only wait, writing nothing: for a state whose id is provisional. Raises ``WaitTimeout``."""
    arrived = _stamped(resource.wait(context, state), state.mode) if isinstance(resource, Provisioned) else state
    context.ownership.add(context.identity, arrived.id)
    return arrived


def resume(context: Context, resource: Resource[Any, Any], state: Any, inputs: Any) -> Any:
    """Go on waiting for what an earlier run began: a state whose id is provisional."""
    guard(context, resource, state)
    return _settle(context, resource, state, inputs, state.mode or context.mode)


def _settle(context: Context, resource: Resource[Any, Any], state: Any, inputs: Any, mode: str) -> Any:
    settled = _stamped(resource.settle(context, state, inputs), mode) if isinstance(resource, Settled) else state
    context.ownership.add(context.identity, settled.id)
    return settled


def _stamped(state: Any, mode: str | None) -> Any:
    return state if state.mode == mode else state.model_copy(update={"mode": mode})


def read(context: Context, resource: Resource[Any, Any], last: Any) -> Any:
    """The object as it is now, or None if it is gone. What was simulated and cannot be read back stays as it was recorded."""
    made = recorded_mode(resource, last)
    if made == "test" and not context.client.is_test_key:
        guard(context, resource, last)
    if made == "test" and sandbox_of(resource) != "listed":
        return last
    if sandbox_of(resource) == "refused" and context.client.is_test_key:
        context.info(f"{resource.title} {last.id} cannot be looked at with a test key: it is taken to be as it was recorded")
        return last
    found = resource.read(context, last.id, last)
    if found is None:
        account(context.client)  # "not found" by something that is not this API, at a mistyped address perhaps, proves nothing: this raises
        # A state that does not say which key made it: with a test key, absence says nothing where such objects are never listed.
        return last if made is None and context.client.is_test_key and sandbox_of(resource) != "listed" and _is_recorded(last) else None
    return _stamped(found, made or mode_of(resource, found))


def _is_recorded(last: State) -> bool:
    return any(value not in (None, "", []) for name, value in last.values().items() if name != "id")


def update(context: Context, resource: Resource[Any, Any], state: Any, inputs: Any, fields: frozenset[str]) -> Any:
    """Apply ``fields`` in place. What was only simulated and cannot be read back changes in the record alone."""
    guard(context, resource, state)
    if recorded_mode(resource, state) == "test" and sandbox_of(resource) != "listed":
        context.info(f"{resource.title} {state.id} was simulated, and so is its change")
        desired = {name: getattr(inputs, name) for name in fields if name in resource.State.model_fields}
        return state.model_copy(update=desired)
    return _stamped(resource.update(context, state, inputs, fields), state.mode or context.mode)


def delete(context: Context, resource: Resource[Any, Any], state: Any) -> None:
    """Remove it; gone already = done."""
    guard(context, resource, state)
    if recorded_mode(resource, state) == "test" and sandbox_of(resource) != "listed":
        context.info(f"{resource.title} {state.id} was simulated: there is nothing to remove")
        return
    account(context.client)  # before "not found" is taken for done
    resource.delete(context, state)


# --- the whole way -----------------------------------------------------------------------------------------------------------


def shown(resource: Resource[Any, Any], state: State) -> dict[str, Any]:
    """What can be shown of an object, whether it was made just now or found."""
    return {**state.shown(), "mode": mode_of(resource, state)}


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """On what terms ``ensure`` acts.

    - ``dry_run``: send no write and do not wait; the outcome is the one of the real run, as far as it can be known.
    - ``wait``: whether to wait for an order that is still under way.
    - ``priced``: whether the price must be known before anything is ordered; ``approve`` is told it, None where it cannot be known, and
      raises ``ResourceError`` to refuse.
    - ``save``: called with the object the moment it is made, before anything else can fail.
    """

    dry_run: bool = False
    wait: bool = True
    priced: bool = False
    approve: Callable[[Cost | None], None] = lambda cost: None
    save: Callable[[State], None] = lambda state: None


def ensure(
    context: Context, resource: Resource[Any, Any], inputs: Any, *, id: str | None = None, terms: ApplyOptions = ApplyOptions()
) -> Outcome:
    """Bring the account to what ``inputs`` declare. ``id`` names the object where it is known (a rename, for example).

    ``inputs`` may come from ``declared``: what is missing for a new object is an ``InvalidInput`` when one has to be made, and so is what
    only the account can tell (catalog, stock).
    """
    current = _lookup(context, resource, inputs, id)
    if current is None:
        return _made(context, resource, _whole(resource, inputs), terms)
    settled = Diff()
    if is_provisional(resource, current):
        settled = _set_by_settling(resource, current, inputs)
        if terms.dry_run or not terms.wait:
            action: Action = "updated" if settled and terms.wait else "unchanged"
            predicted = predict(resource, inputs, current) if settled and terms.wait else shown(resource, current)
            return Outcome(action, shown(resource, current), predicted, current, settled if terms.wait else Diff())
        before = shown(resource, current)
        current = resume(context, resource, current, inputs)
    else:
        before = shown(resource, current)
    found = diff(resource, current.values(), inputs.given())
    refuse_forbidden(resource, current, found)
    if not found:
        if settled:
            return Outcome("updated", before, shown(resource, current), current, settled)
        return Outcome("unchanged", shown(resource, current), shown(resource, current), current, found)
    if isinstance(resource, Registered) and (why := resource.why_unchangeable(current)):
        waiting, named = ", ".join(sorted(found.fields)), getattr(current, "name", current.id)
        context.warn(f"{resource.title} {named}: {waiting} cannot be set yet, since {why}. Next: run again later")
        return Outcome("unchanged", shown(resource, current), shown(resource, current), current)
    if id is not None and found.fields & set(natural_key(resource)):
        _refuse_namesake(context, resource, inputs, current)
    if found.replaces:
        if resource.replacement != "free":
            raise Unchangeable(_cannot_change(resource, current, found))
        inputs = _whole(resource, inputs, current)
        if terms.dry_run:
            return Outcome("replaced", before, predict(resource, inputs, None), None, found)
        delete(context, resource, current)
        state = create(context, resource, inputs, wait=terms.wait)
        return Outcome("replaced", before, shown(resource, state), state, found)
    if terms.dry_run:
        return Outcome("updated", before, predict(resource, inputs, current), None, found)
    state = update(context, resource, current, inputs, found.fields)
    return Outcome("updated", before, shown(resource, state), state, found)


def _made(context: Context, resource: Resource[Any, Any], inputs: Any, terms: ApplyOptions) -> Outcome:
    """A new object, or what an interrupted run left of it."""
    taken = resource.takeover(context, inputs) if isinstance(resource, Adoptable) else None
    before = shown(resource, taken.state) if taken else None
    if lacks := missing_scopes(context, resource, "create"):
        if not terms.dry_run:
            raise KeyLacksScope(lacks)
        context.warn(lacks)  # whoever only looks for drift needs no more than to read
    desired = inputs.given()
    if isinstance(resource, Validated) and (failures := resource.validate(context, desired, frozenset(desired))):
        raise InvalidInput(failures, resource.title)
    cost = None
    if isinstance(resource, Priced) and terms.priced and taken is None:
        cost = resource.cost(context, desired)
        terms.approve(cost)
    if terms.dry_run:
        if cost is not None:
            remark_on_balance(context, cost)
        return Outcome("created", before, predict(resource, inputs, taken.state if taken else None), None, cost=cost, takeover=taken)
    if taken is not None and terms.priced:
        context = replace(context, approve=terms.approve)  # should it be paid after all
    state = create(context, resource, inputs, terms.save, wait=terms.wait)
    return Outcome("created", before, shown(resource, state), state, cost=cost, takeover=taken)


def remark_on_balance(context: Context, cost: Cost) -> None:
    """Say what a real run would be refused for: the balance does not cover the charge."""
    if cost.balance is not None and cost.amount > cost.balance:
        context.warn(f"{cost.amount} {cost.currency} for {cost.what} is more than the balance of {cost.balance}: it would be refused")


def predict_create(resource: Resource[Any, Any], raw: Mapping[str, Any], unknown: Collection[str]) -> Outcome:
    """The outcome of making an object of which ``unknown`` inputs are only known later. Nothing is asked. Raises ``InvalidInput``."""
    checked = check(resource, raw, unknown)
    if checked.failures:
        raise InvalidInput(checked.failures, resource.title)
    hidden = resource.State.secret_fields()
    known = {name: value for name, value in checked.values.items() if name in resource.State.model_fields and name not in hidden}
    return Outcome("created", None, known, None)


def ensure_absent(
    context: Context, resource: Resource[Any, Any], inputs: Any, *, id: str | None = None, terms: ApplyOptions = ApplyOptions()
) -> Outcome:
    """Bring the account to not having the object. An order of it that is still under way is waited for: it may become a server."""
    current = _lookup(context, resource, inputs, id, must_exist=False)
    if current is None:
        return Outcome("unchanged", None, None, None)
    if id is not None:
        _refuse_another(resource, inputs, current)
    if isinstance(resource, Registered) and resource.is_released(current):
        context.warn(f"{resource.title} {getattr(current, 'name', current.id)} stays on the account, and nothing is left to do about it")
        return Outcome("unchanged", None, None, None)
    if not terms.dry_run:
        delete(context, resource, current)
    return Outcome("deleted", shown(resource, current), None, None)


def _set_by_settling(resource: Resource[Any, Any], current: State, inputs: Any) -> Diff:
    """What ``settle`` will set on an object that is still coming: the inputs that can change in place and are not so yet."""
    traits = {name: resource.Inputs.trait(name) for name in inputs.given()}
    settled = {name for name, trait in traits.items() if not (trait.replaces or trait.when_creating or trait.rebuilds or trait.policy)}
    desired = {name: value for name, value in inputs.given().items() if name in settled}
    return diff(resource, current.values(), desired)


def _lookup(context: Context, resource: Resource[Any, Any], inputs: Any, id: str | None, *, must_exist: bool = True) -> Any:
    found = _looked_up(context, resource, inputs, id, must_exist)
    return found if found is None else _stamped(found, mode_of(resource, found))


def _looked_up(context: Context, resource: Resource[Any, Any], inputs: Any, id: str | None, must_exist: bool) -> Any:
    if id is None:
        return _find(context, resource, inputs)
    # What the service may rewrite (a key's comment) is compared as declared, as it is when the object is found by its natural key.
    named = {field: value for field, value in inputs.given().items() if field in natural_key(resource)}
    current = resource.read(context, id, resource.State.partial({**named, "id": id}))
    nameable = any(getattr(inputs, field, None) is not None for field in natural_key(resource))
    if current is None and must_exist and resource.replacement == "free" and nameable:
        current = _find(context, resource, inputs)  # a replacement has another id: the declaration that asked for it must hold afterwards
    if current is None and must_exist:
        raise NoSuchObject(
            f"there is no {resource.title} with id {id} on this account. Next: correct the id, or leave it out to create one"
        )
    return current


def _refuse_another(resource: Resource[Any, Any], inputs: Any, current: State) -> None:
    """Stop before the object of an id is removed although the declaration names another one: an id may be stale."""
    given, known = inputs.given(), current.values()
    for field in natural_key(resource):
        if given.get(field) is not None and field in known and not _same(resource.Inputs.trait(field), known[field], given[field]):
            raise ResourceError(
                f"the {resource.title} with id {current.id} has {field} {known[field]!r}, not {given[field]!r}; nothing was removed. "
                f"Next: correct the id, or leave {field} out"
            )


def _refuse_namesake(context: Context, resource: Resource[Any, Any], inputs: Any, current: State) -> None:
    """Stop before the object named by its id becomes indistinguishable from another."""
    other = _find(context, resource, inputs)
    if other is not None and other.id != current.id:
        raise ResourceConflict(
            f"{resource.title} {current.id} cannot become {getattr(inputs, 'name', '')!r}: {resource.title} {other.id} answers to that already; "
            f"nothing was changed. Next: choose another name, or delete {resource.title} {other.id} first",
            id=other.id,
        )


def forbidden(resource: Resource[Any, Any], olds: Mapping[str, Any], news: Mapping[str, Any], same: Same = differs) -> dict[str, str]:
    """Field → reason, for changes from one declaration to the next that the new one forbids."""
    return {
        field: "differs from what was declared before, and rebuild is 'forbid': declare what it was, or set rebuild to another value"
        for field in resource.Inputs.model_fields
        if field in news and on_change(resource, field, news) == "refuse" and field in olds
        if not _same(resource.Inputs.trait(field), olds[field], news[field]) and not same(field, olds, news[field])
    }


def refuse_forbidden(resource: Resource[Any, Any], current: State, found: Diff) -> None:
    """Raise ``ResourceError`` where the declaration forbids what it asks for."""
    if found.refusals:
        what = ", ".join(found.refusals)
        raise Unchangeable(
            f"{resource.title} {getattr(current, 'name', None) or current.id}: {what} differs, and rebuild is 'forbid'; nothing was changed. "
            "Next: declare what it is, or set rebuild to 'replace' or 'reinstall'"
        )


def _cannot_change(resource: Resource[Any, Any], current: State, found: Diff) -> str:
    what = "; ".join(f"{change.field} is {change.before!r}, not {change.after!r}" for change in found.changes if change.replaces)
    if all(resource.Inputs.trait(field).rebuilds for field in found.replaces):
        return (
            f"{resource.title} {getattr(current, 'name', '')} (id {current.id}): {what}, and that cannot be changed in place; nothing was "
            "changed. Next: declare what it is, or have it reinstalled (state: reinstalled), which erases its disk"
        )
    return (
        f"{resource.title} {getattr(current, 'name', '')} (id {current.id}): {what}, and that cannot be changed in place; nothing was changed. "
        f"Next: declare what it is, or delete it first and order anew"
    )
