"""What differs between what exists and what is declared. Pure, but for ``Same``, which may ask the
account.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi_hosting.resources.base import AnyResource, State, Trait
from pulumi_hosting.resources.powers import on_change
from pulumi_hosting.session.errors import Unchangeable

HIDDEN = "(secret)"
Same = Callable[[str, Mapping[str, Any], Any], bool]
"""``Rebuildable.is_same`` of one request: field, the state's values, the declared value."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs. Values of secret fields read ``(secret)``."""

    field: str
    before: Any
    after: Any
    replaces: bool


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs, and remarks about differences that will have no effect."""

    changes: tuple[FieldChange, ...] = ()
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


NO_CHANGES = Diff()


def diff(
    resource: AnyResource,
    olds: Mapping[str, Any],
    news: Mapping[str, Any],
    unknown: Collection[str] = (),
    same: Same | None = None,
) -> Diff:
    """Compare what is known to exist (``olds``: the state's values) with what is declared (``news``: normal
    form).

    ``same`` is asked about each field that reads differently.
    """
    changes: list[FieldChange] = []
    ignored: list[str] = []
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
                shown = _shown(field, before, secret)
                changes.append(FieldChange(field, shown, "(known after apply)", how == "replace"))
            continue
        after = news[field]
        if is_same(resource, field, before, after):
            continue
        if trait.when_creating:
            if field in olds:
                ignored.append(f"{field} is create-only; change ignored")
            continue
        if trait.trigger and not olds:
            continue  # there is nothing yet that it could act on
        if before is None and (
            trait.write_only or ((trait.replaces or trait.rebuilds) and field in resource.State.model_fields)
        ):
            continue  # not observable, and nothing was ever recorded: nothing to compare with
        if same is not None and same(field, olds, after):
            continue
        if how == "keep":
            installed.append(field)
            continue
        if how == "refuse":
            refusals.append(field)
        changes.append(
            FieldChange(field, _shown(field, before, secret), _shown(field, after, secret), how == "replace")
        )
    replaced = [change for change in changes if change.replaces]
    remarks = [] if replaced else ignored  # a new object is made with them
    rebuilt = any(resource.Inputs.trait(change.field).rebuilds for change in changes)
    if not (replaced or rebuilt):  # else the new ones are installed with the rest
        remarks += [
            f"{field} has changed and is installed only when a {resource.title} is made: the change has no "
            "effect. Next: to install it, set rebuild to 'replace' (a new one, the old one is "
            "deleted) or 'reinstall' (the same one, its disk is erased)"
            for field in installed
        ]
    return Diff(tuple(changes), tuple(remarks), tuple(refusals))


def is_same(resource: AnyResource, field: str, before: Any, after: Any) -> bool:
    """Whether two values of an input are one, by its trait: a key with another comment is the same key."""
    trait: Trait = resource.Inputs.trait(field)
    if resource.Inputs.is_open(field, after) and before is not None:
        return set(before) == set(after) if isinstance(before, list) else before in after
    if trait.unordered and isinstance(before, list) and isinstance(after, list):
        return sorted(map(str, before)) == sorted(map(str, after))
    if trait.normal is not None and isinstance(before, str) and isinstance(after, str):
        return trait.normal(before) == trait.normal(after)
    return bool(before == after) or (before in (None, "", []) and after in (None, "", []))


def _shown(field: str, value: Any, secret: frozenset[str]) -> Any:
    return HIDDEN if field in secret and value is not None else value


def shown_inputs(resource: AnyResource, state: State) -> frozenset[str]:
    """The inputs that the state shows: what a declaration of an existing object manages."""
    values = state.values()
    return frozenset(
        name
        for name in resource.Inputs.model_fields
        if values.get(name) not in (None, "", []) and not resource.Inputs.trait(name).policy
    )


def forbidden(
    resource: AnyResource, olds: Mapping[str, Any], news: Mapping[str, Any], same: Same | None = None
) -> dict[str, str]:
    """Field → reason, for changes from one declaration to the next that the new one forbids."""
    return {
        field: (
            "differs from what was declared before, and rebuild is 'forbid': declare what it was, or set "
            "rebuild to another value"
        )
        for field in resource.Inputs.model_fields
        if field in news and on_change(resource, field, news) == "refuse" and field in olds
        if not is_same(resource, field, olds[field], news[field])
        and not (same is not None and same(field, olds, news[field]))
    }


def refuse_forbidden(resource: AnyResource, current: State, found: Diff) -> None:
    """Raise ``ResourceError`` if the declaration forbids what it asks for."""
    if found.refusals:
        what = ", ".join(found.refusals)
        raise Unchangeable(
            f"{resource.title} {getattr(current, 'name', None) or current.id}: {what} differs, and rebuild "
            "is 'forbid'; nothing was changed. Next: declare it as it is, or set rebuild to "
            "'replace' or 'reinstall'"
        )
