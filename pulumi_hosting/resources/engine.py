"""Check, diff, plan, apply: the reasoning about any noun, written once for both frontends.

``check`` brings what a user wrote into one normal form or says per field what is wrong. ``diff`` compares it with what is known to exist.
``create``, ``read`` and ``update`` are the steps an engine with a state of its own (Pulumi) asks for one by one; ``ensure`` and
``ensure_absent`` are the whole way for a frontend that remembers nothing (Ansible): find, plan, apply. Everything here but the five
methods of the noun is pure.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import lru_cache
from typing import Any, Literal

from pydantic import ValidationError, create_model

from pulumi_hosting.api.errors import InvalidInput
from pulumi_hosting.resources.base import Context, Foreign, Inputs, Noun, NounError, State, Trait

Action = Literal["created", "updated", "replaced", "deleted", "unchanged"]
HIDDEN = "(secret)"


@dataclass(frozen=True, slots=True)
class Checked:
    """``inputs`` when everything is known and right; ``values``: the known fields in normal form; ``failures``: field → reason."""

    inputs: Any
    values: Mapping[str, Any] = attribute(repr=False)  # in plain, passwords too
    failures: Mapping[str, str]


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

    @property
    def changed(self) -> bool:
        return self.action != "unchanged"


# --- check -------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _partial(inputs: type[Inputs], unknown: frozenset[str]) -> type[Inputs]:
    """The same model where ``unknown`` fields may be anything: what is known is still checked, alone and together."""
    anything: dict[str, Any] = dict.fromkeys(unknown, (Any, None))
    made: type[Inputs] = create_model(inputs.__name__, __base__=inputs, **anything)
    return made


def check(noun: Noun[Any, Any], raw: Mapping[str, Any], unknown: Collection[str] = ()) -> Checked:
    """Validate ``raw`` and bring it into normal form. ``unknown``: fields whose values are only known later; they are not judged."""
    open_fields = frozenset(unknown) & frozenset(noun.Inputs.model_fields)
    known = {name: value for name, value in raw.items() if name not in open_fields}
    failures = {name: "is not an input of this resource" for name in unknown if name not in noun.Inputs.model_fields}
    whole: type[Inputs] = noun.Inputs
    try:
        model = _partial(whole, open_fields) if open_fields else whole
        inputs = model.model_validate(known)
    except ValidationError as error:
        return Checked(None, known, {**failures, **_failures(error)})
    return Checked(inputs if not open_fields else None, inputs.given(), failures)


def declared(noun: Noun[Any, Any], raw: Mapping[str, Any]) -> Checked:
    """Like ``check``, for a frontend where what exists need not be described whole: its ``inputs`` may lack what only a new object needs.
    Such inputs are for ``ensure`` and ``ensure_absent``; whatever is absent reads None."""
    absent = frozenset(name for name, info in noun.Inputs.model_fields.items() if info.is_required() and name not in raw)
    whole: type[Inputs] = noun.Inputs
    model = _partial(whole, absent) if absent else whole
    try:
        inputs = model.model_validate(dict(raw))
    except ValidationError as error:
        return Checked(None, raw, _failures(error))
    return Checked(inputs, inputs.given(), {})


def _whole(noun: Noun[Any, Any], inputs: Any, current: State | None = None) -> Any:
    """Inputs that a new object can be made of; what was not mentioned is taken over from the ``current`` one."""
    known = current.values() if current else {}
    kept = {name: known[name] for name, info in noun.Inputs.model_fields.items() if info.is_required() and known.get(name) is not None}
    checked = check(noun, {**kept, **inputs.given()})
    if checked.failures:
        raise InvalidInput(checked.failures, f"there is no such {noun.title} yet, and a new one")
    return checked.inputs


def _failures(error: ValidationError) -> dict[str, str]:
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


def diff(noun: Noun[Any, Any], olds: Mapping[str, Any], news: Mapping[str, Any], unknown: Collection[str] = ()) -> Diff:
    """Compare what is known to exist (``olds``: the state's values) with what is declared (``news``: normal form)."""
    changes: list[Change] = []
    remarks: list[str] = []
    secret = noun.Inputs.secret_fields()
    for field in noun.Inputs.model_fields:
        if field not in news and field not in unknown:
            continue  # not mentioned = not managed
        trait = noun.Inputs.trait(field)
        before = olds.get(field)
        if field in unknown:
            if not trait.when_creating:
                changes.append(Change(field, _shown(field, before, secret), "(known after apply)", trait.replaces))
            continue
        after = news[field]
        if _same(trait, before, after):
            continue
        if trait.when_creating:
            if field in olds:
                remarks.append(f"{field} matters when ordering only: the change has no effect")
            continue
        if trait.write_only and before is None:
            continue  # not observable, and nothing was ever recorded: nothing to compare with
        changes.append(Change(field, _shown(field, before, secret), _shown(field, after, secret), trait.replaces))
    return Diff(tuple(changes), tuple(remarks))


def _same(trait: Trait, before: Any, after: Any) -> bool:
    if trait.unordered and isinstance(before, list) and isinstance(after, list):
        return sorted(map(str, before)) == sorted(map(str, after))
    return bool(before == after) or (before in (None, "", []) and after in (None, "", []))


def _shown(field: str, value: Any, secret: frozenset[str]) -> Any:
    return HIDDEN if field in secret and value is not None else value


def live_inputs(noun: Noun[Any, Any], state: State, managed: Collection[str], last: Mapping[str, Any]) -> dict[str, Any]:
    """The managed inputs as they are now; what cannot be observed stays as it was."""
    now = state.values()
    return {name: now[name] if now.get(name) is not None else last.get(name) for name in managed if name in noun.Inputs.model_fields}


# --- one step at a time ------------------------------------------------------------------------------------------------------


def create(context: Context, noun: Noun[Any, Any], inputs: Any, save: Callable[[State], None] = lambda state: None) -> Any:
    """Make it and wait for it. ``save`` is called the moment an id is known, before any waiting."""
    state = noun.create(context, inputs)
    save(state)
    context.claims.add(context.identity, state.id)
    settled = noun.settle(context, state, inputs)
    context.claims.add(context.identity, settled.id)
    return settled


def read(context: Context, noun: Noun[Any, Any], last: Any) -> Any:
    """The object as it is now, or None if it is gone. With a test key, absence says nothing where such objects are never listed."""
    found = noun.read(context, last.id, last)
    if found is None and not noun.listed_in_sandbox and context.client.is_test_key:
        return last
    return found


# --- the whole way -----------------------------------------------------------------------------------------------------------


def ensure(context: Context, noun: Noun[Any, Any], inputs: Any, *, id: str | None = None, dry_run: bool = False) -> Outcome:
    """Bring the account to what ``inputs`` declare. ``id`` names the object where it is known (a rename, for example).

    ``inputs`` may come from ``declared``: what is missing for a new object is an ``InvalidInput`` when one has to be made. ``dry_run``
    sends no write and does not wait; its outcome is the one of the real run, as far as it can be known.
    """
    current = _lookup(context, noun, inputs, id)
    if current is None:
        inputs = _whole(noun, inputs)
        taken = noun.foresee(context, inputs)
        before = taken.shown() if taken else None
        if dry_run:
            return Outcome("created", before, noun.predict(inputs, taken), None)
        state = create(context, noun, inputs)
        return Outcome("created", before, state.shown(), state)
    settled = Diff()
    if noun.is_provisional(current):
        settled = _set_by_settling(noun, current, inputs)
        if dry_run:
            action: Action = "updated" if settled else "unchanged"
            return Outcome(action, current.shown(), noun.predict(inputs, current), current, settled)
        before = current.shown()
        current = noun.settle(context, current, inputs)
    else:
        before = current.shown()
    found = diff(noun, current.values(), inputs.given())
    if not found:
        if settled:
            return Outcome("updated", before, current.shown(), current, settled)
        return Outcome("unchanged", current.shown(), current.shown(), current, found)
    if id is not None and found.fields & set(noun.natural_key):
        _refuse_namesake(context, noun, inputs, current)
    if found.replaces:
        if not noun.replacement_is_free:
            raise NounError(_cannot_change(noun, current, found))
        inputs = _whole(noun, inputs, current)
        if dry_run:
            return Outcome("replaced", before, noun.predict(inputs, None), None, found)
        noun.delete(context, current)
        state = create(context, noun, inputs)
        return Outcome("replaced", before, state.shown(), state, found)
    if dry_run:
        return Outcome("updated", before, noun.predict(inputs, current), None, found)
    state = noun.update(context, current, inputs, found.fields)
    return Outcome("updated", before, state.shown(), state, found)


def ensure_absent(context: Context, noun: Noun[Any, Any], inputs: Any, *, id: str | None = None, dry_run: bool = False) -> Outcome:
    """Bring the account to not having the object. An order of it that is still under way is waited for: it may become a server."""
    current = _lookup(context, noun, inputs, id, must_exist=False)
    if current is None:
        return Outcome("unchanged", None, None, None)
    if not dry_run:
        noun.delete(context, current)
    return Outcome("deleted", current.shown(), None, None)


def _set_by_settling(noun: Noun[Any, Any], current: State, inputs: Any) -> Diff:
    """What ``settle`` will set on an object that is still coming: the inputs that can change in place and are not so yet."""
    traits = {name: noun.Inputs.trait(name) for name in inputs.given()}
    wishes = {name: value for name, value in inputs.given().items() if not (traits[name].replaces or traits[name].when_creating)}
    return diff(noun, current.values(), wishes)


def _lookup(context: Context, noun: Noun[Any, Any], inputs: Any, id: str | None, *, must_exist: bool = True) -> Any:
    if id is None:
        return noun.find(context, inputs)
    # What the service may rewrite (a key's comment) is compared as declared, as it is when the object is found by its natural key.
    named = {field: value for field, value in inputs.given().items() if field in noun.natural_key}
    current = noun.read(context, id, noun.partial_state({**named, "id": id}))
    if current is None and must_exist and noun.replacement_is_free:
        current = noun.find(context, inputs)  # a replacement has another id: the declaration that asked for it must hold afterwards
    if current is None and must_exist:
        raise NounError(f"there is no {noun.title} with id {id} on this account. Next: correct the id, or leave it out to create one")
    return current


def _refuse_namesake(context: Context, noun: Noun[Any, Any], inputs: Any, current: State) -> None:
    """Stop before the object named by its id becomes indistinguishable from another."""
    other = noun.find(context, inputs)
    if other is not None and other.id != current.id:
        raise Foreign(
            f"{noun.title} {current.id} cannot become {getattr(inputs, 'name', '')!r}: {noun.title} {other.id} answers to that already; "
            f"nothing was changed. Next: choose another name, or delete {noun.title} {other.id} first",
            id=other.id,
        )


def _cannot_change(noun: Noun[Any, Any], current: State, found: Diff) -> str:
    what = "; ".join(f"{change.field} is {change.before!r}, not {change.after!r}" for change in found.changes if change.replaces)
    return (
        f"{noun.title} {getattr(current, 'name', '')} (id {current.id}): {what}, and that cannot be changed in place; nothing was changed. "
        f"Next: declare what it is, or delete it first and order anew"
    )
