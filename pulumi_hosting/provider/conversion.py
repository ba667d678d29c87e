"""Between Pulumi's values and a resource's: camelCase on the wire, snake_case inside; no nulls on the wire;
keys beginning ``__`` are ours. What an entry of the stack's state records is of Pulumi's values.

Unknowns (values that exist only after another resource does) are found at any depth and named by field.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pulumi_hosting.provider import names
from pulumi_hosting.provider.names import PropertyValues, Props, camel
from pulumi_hosting.resources.base import AnyResource, State

UNKNOWN: Any = object()
"""A value that exists only afterwards."""


@dataclass(frozen=True, slots=True)
class WireDiff:
    """``properties``: what happens to each that differs, as Pulumi's protocol calls it."""

    changes: bool
    delete_before_replace: bool
    properties: Mapping[str, str]

    @property
    def replaces(self) -> tuple[str, ...]:
        return tuple(name for name, kind in self.properties.items() if kind.endswith("_REPLACE"))


@cache
def snake(name: str) -> str:
    """``tariffId`` → ``tariff_id``; names beginning ``__`` stay."""
    if name.startswith("__"):
        return name
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda hit: "_" + hit[1].lower(), name)


@cache
def field_of(key: str) -> str:
    """The field of a resource that a wire property is for."""
    name = snake(key)
    return next((one for one, several in names.SEVERAL.items() if several == name), name)


def property_of(name: str, is_list: bool) -> str:
    """The wire property for a field."""
    return camel(names.SEVERAL.get(name, name) if is_list else name)


def is_unknown(value: Any) -> bool:
    """Whether the value, or anything inside it, is only known later."""
    if isinstance(value, str | int | float):  # nearly every value
        return False
    # the plugin's, or in the dynamic form the SDK's, which the plugin does not load
    if value is UNKNOWN or type(value).__name__ == "Unknown":
        return True
    if isinstance(value, Mapping):
        return any(map(is_unknown, value.values()))
    return isinstance(value, list | tuple) and any(map(is_unknown, value))


def wrong_wait_timeout(props: PropertyValues) -> dict[str, str]:
    """Field → reason, if the waiting time is given, known, and no seconds to wait."""
    value = props.get(names.WAIT_TIMEOUT)
    if value is None or is_unknown(value) or (isinstance(value, int | float) and 0 < value <= 86400):
        return {}
    return {"wait_timeout": "must be seconds: more than 0 and at most 86400"}


def from_pulumi(props: PropertyValues) -> tuple[Props, frozenset[str]]:
    """A resource's raw inputs, and the names of those that are not known yet. Our own ``__`` keys are left
    out; a user's own map keeps its keys.
    """
    mine = {
        field_of(key): value
        for key, value in props.items()
        if not key.startswith("__") and key != names.WAIT_TIMEOUT and value is not None
    }
    unknown = frozenset(name for name, value in mine.items() if is_unknown(value))
    return {name: value for name, value in mine.items() if name not in unknown}, unknown


def to_pulumi(values: PropertyValues) -> Props:
    """Wire properties: camelCase keys, no nulls."""
    given = ((name, value) for name, value in values.items() if value is not None)
    return {property_of(name, isinstance(value, list)): value for name, value in given}


# --- what an entry of the stack's state records -----------------------------------------------------------


def provider_fields(props: PropertyValues) -> Props:
    """What is recorded beside the resource's own fields."""
    kept = (names.IDENTITY, names.DECLARED, names.ORGANIZATION, names.TIMEOUTS, names.WAIT_TIMEOUT)
    return {key: props[key] for key in kept if props.get(key) is not None}


def entry_stamp(olds: PropertyValues) -> Props:
    """The stamp of an entry of the stack's state: made once, kept for ever."""
    return {names.ENTRY: olds[names.ENTRY]} if olds.get(names.ENTRY) else {}


def recorded(resource: AnyResource, id: str, olds: PropertyValues) -> tuple[Props, State]:
    """Everything that an entry records, the inputs that are no part of the state among them, and the state.
    States of other versions may have more fields or fewer.
    """
    values, fields = {**from_pulumi(olds)[0], "id": id}, resource.State.model_fields
    return values, resource.State.partial({name: values[name] for name in values if name in fields})


def outputs_of(resource: AnyResource, values: PropertyValues, declared: PropertyValues) -> Props:
    """What to record: the values of the state, and what was declared but is no part of it."""
    fields = resource.State.model_fields
    found = {**{name: value for name, value in declared.items() if name not in fields}, **values}
    return {camel(name): value for name, value in found.items() if value is not None and name != "id"}


def declared_lately(
    resource: AnyResource, recorded: Collection[str], values: PropertyValues, latest: PropertyValues
) -> tuple[list[str], Props]:
    """The inputs that a refresh compares, those ``recorded`` as managed and the ``latest`` ones, since an
    update that changed nothing recorded no outputs; and what was declared of them, with the latest name and
    what it was resolved to.
    """
    managed = sorted({*recorded, *(resource.Inputs.model_fields.keys() & latest.keys())})
    fixed = _as_declared(resource, latest)
    declared = {name: values.get(name, latest.get(name)) for name in managed}
    return managed, declared | {name: value for name, value in latest.items() if name in fixed}


def _as_declared(resource: AnyResource, values: PropertyValues) -> set[str]:
    """What no read changes: a name and what it was resolved to, and several values of which one was taken."""
    several = {name for name, value in values.items() if resource.Inputs.is_open(name, value)}
    return {*several, *resource.Inputs.resolved_fields(values)}


def live_inputs(
    resource: AnyResource, now: PropertyValues, managed: Collection[str], last: PropertyValues
) -> Props:
    """The managed inputs as the values of the state have them now; what cannot be observed stays as it
    was."""
    fixed = _as_declared(resource, last)
    return {
        name: now[name] if now.get(name) is not None and name not in fixed else last.get(name)
        for name in managed
        if name in resource.Inputs.model_fields
    }
