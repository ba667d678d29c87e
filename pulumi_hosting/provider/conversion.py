"""Between Pulumi's values and a resource's: camelCase on the wire, snake_case inside; no nulls on the wire;
keys beginning ``__`` are ours.

Unknowns (values that exist only after another resource does) are found at any depth and named by field.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pulumi.output import Unknown

from pulumi_hosting.provider.names import DECLARED as DECLARED
from pulumi_hosting.provider.names import IDENTITY as IDENTITY
from pulumi_hosting.provider.names import ORGANIZATION as ORGANIZATION
from pulumi_hosting.provider.names import TIMEOUTS as TIMEOUTS
from pulumi_hosting.provider.names import WAIT_TIMEOUT as WAIT_TIMEOUT
from pulumi_hosting.provider.names import PropertyValues as PropertyValues
from pulumi_hosting.provider.names import Props as Props
from pulumi_hosting.provider.names import camel as camel

MANAGED = "__managed"
"""Output: the inputs the program gives, so that a refresh compares those and no others."""

ACCOUNT = "__account"
"""Output: the account the object is on, so that another account's silence is never taken for its end."""

ENTRY = "__entry"
"""Output: which entry of the stack's state this is, to tell two that name one object apart."""

UNKNOWN: Any = Unknown()  # type: ignore[no-untyped-call]  # the SDK leaves its constructor untyped
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
    return (
        name
        if name.startswith("__")
        else re.sub(r"(?<=[a-z0-9])([A-Z])", lambda hit: "_" + hit[1].lower(), name)
    )


def is_unknown(value: Any) -> bool:
    """Whether the value, or anything inside it, is only known later."""
    if isinstance(value, str | int | float):  # nearly every value
        return False
    if isinstance(value, Unknown):
        return True
    if isinstance(value, Mapping):
        return any(map(is_unknown, value.values()))
    return isinstance(value, list | tuple) and any(map(is_unknown, value))


def is_wait_timeout(value: Any) -> bool:
    """Whether it is none, seconds to wait, or only known later."""
    if value is None or is_unknown(value):
        return True
    return isinstance(value, int | float) and 0 < value <= 86400


def from_pulumi(props: PropertyValues) -> tuple[Props, frozenset[str]]:
    """A resource's raw inputs, and the names of those that are not known yet. Our own ``__`` keys are left
    out; a user's own map keeps its keys.
    """
    mine = {
        snake(key): value for key, value in props.items() if not key.startswith("__") and key != WAIT_TIMEOUT
    }
    unknown = frozenset(name for name, value in mine.items() if is_unknown(value))
    return {name: value for name, value in mine.items() if name not in unknown and value is not None}, unknown


def to_pulumi(values: PropertyValues, without: Iterable[str] = ()) -> Props:
    """Wire properties: camelCase keys, no nulls."""
    left_out = frozenset(without)
    return {
        camel(name): value for name, value in values.items() if value is not None and name not in left_out
    }
