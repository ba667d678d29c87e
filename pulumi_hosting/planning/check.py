"""What a user wrote, brought into one normal form, or said to be wrong field by field. Pure: nothing is
asked.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError, create_model

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.resources.base import Inputs, Resource


@dataclass(frozen=True, slots=True)
class Checked:
    """Declared inputs after validation.

    - ``inputs``: the whole declaration; None where something is wrong or not known yet.
    - ``failures``: field → reason.
    - ``known``: the inputs without what is not known yet; None where something is wrong.
    - ``unknown``: the fields whose values are only known later.
    - ``raw``: the known values as they were given; only where something is wrong.
    """

    inputs: Any
    failures: Mapping[str, str]
    known: Any = field(default=None, repr=False)
    unknown: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def values(self) -> Mapping[str, Any]:
        """The known fields in plain values and in normal form, secrets revealed; as they were given where
        something is wrong.
        """
        if self.known is None:
            return self.raw
        values: Mapping[str, Any] = self.known.given()
        return values


def check(resource: Resource[Any, Any], raw: Mapping[str, Any], unknown: Collection[str] = ()) -> Checked:
    """Validate ``raw`` and bring it into normal form. ``unknown``: fields whose values are only known
    later; they are not judged.
    """
    model: type[Inputs] = resource.Inputs
    named = {
        field for field, name in model.named_by().items() if field not in raw and name in {*raw, *unknown}
    }
    later = frozenset(unknown) | named
    known = {name: value for name, value in raw.items() if name not in later}
    failures = {name: _no_input(name, model) for name in later if name not in model.model_fields}
    open_fields = later & frozenset(resource.Inputs.model_fields)
    try:
        inputs = _partial(model, open_fields).model_validate(known)
    except ValidationError as error:
        return Checked(None, {**failures, **reasons(error, model)}, None, later, known)
    return Checked(None if open_fields else inputs, failures, inputs, later)


def declared(resource: Resource[Any, Any], raw: Mapping[str, Any]) -> Checked:
    """Like ``check``, where an object that exists need not be described whole: what only a new one needs
    may be absent, and reads None.
    """
    absent = frozenset(
        name for name, info in resource.Inputs.model_fields.items() if info.is_required() and name not in raw
    )
    model: type[Inputs] = resource.Inputs
    try:
        inputs = _partial(model, absent).model_validate(dict(raw))
    except ValidationError as error:
        return Checked(None, reasons(error, model), raw=raw)
    return Checked(inputs, {}, inputs)


@lru_cache(maxsize=256)
def _partial(inputs: type[Inputs], unknown: frozenset[str]) -> type[Inputs]:
    """The same model where ``unknown`` fields may be anything: what is known is still checked, alone and
    together.
    """
    if not unknown:
        return inputs
    anything: dict[str, Any] = dict.fromkeys(unknown, (Any, None))
    made: type[Inputs] = create_model(inputs.__name__, __base__=inputs, **anything)
    return made


_VALIDATOR = re.compile(r"^(?:Input|String|List|Value|Dictionary|Set) should ")

_TYPES = {
    "string_type": "must be a text",
    "is_instance_of": "must be a text",  # a secret
    "list_type": "must be a list",
    "dict_type": "must be a map",
    "int_type": "must be a whole number",
    "whole_number": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
"""Validator's error of a value of a wrong type → what it must be."""


def reasons(error: ValidationError, model: type[BaseModel]) -> dict[str, str]:
    """Field of ``model`` → reason. Of refused values only numbers in fields for numbers are repeated, of
    others of a wrong type what they are: a text may be a secret.
    """
    found: dict[str, str] = {}
    for item in error.errors(include_url=False, include_context=False):
        name = str(item["loc"][0]) if item["loc"] else ""
        reason = _TYPES.get(item["type"]) or worded(item["msg"])
        if not name and ": " in reason:
            name, reason = reason.split(": ", 1)  # rules over several fields name the one to correct
        if item["type"] == "extra_forbidden":
            reason = _no_input(name, model)
        elif item["type"] == "missing":
            other = model.named_by().get(name) if issubclass(model, Inputs) else None
            reason = f"is required, unless {other} names it" if other else "is required"
        elif given := _number(item["input"], name, model):
            reason = f"{reason}, and is {given}"
        elif item["type"] in _TYPES:
            reason = f"{_inside(item['loc'], model)}{reason}, and is {_what(item['input'])}"
        path = ".".join(str(part) for part in item["loc"][1:] if isinstance(part, int))
        found.setdefault(name, f"[{path}] {reason}" if path else reason)
    return found


def worded(message: str) -> str:
    """The reason of a validator in words of ours."""
    reason = _VALIDATOR.sub("must ", message.removeprefix("Value error, "))
    return reason.replace(" after validation", "")


def _inside(loc: tuple[int | str, ...], model: type[BaseModel]) -> str:
    """Says that it is a value in a map, and not the map, that is wrong."""
    info = model.model_fields.get(str(loc[0])) if len(loc) > 1 else None
    if info is None or not _holds_a_map(info.annotation):
        return ""
    return "a name in it " if loc[-1] == "[key]" else "a value in it "


def _holds_a_map(hint: object) -> bool:
    return get_origin(hint) is dict or any(map(_holds_a_map, get_args(hint)))


def _what(value: object) -> str:
    """What a value is, and not which."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str | Secret):
        return "a text"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, Mapping):
        return "a map"
    return "a list" if isinstance(value, list | tuple | set | frozenset) else "of another type"


def _number(value: object, name: str, model: type[BaseModel]) -> str:
    """A number given for a field that holds numbers, as it was written; else nothing."""
    info = model.model_fields.get(name)
    if info is None or not _holds_numbers(info.annotation) or not isinstance(value, int | float):
        return ""
    if not abs(value) < 2**63:
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _holds_numbers(hint: object) -> bool:
    return hint is int or any(map(_holds_numbers, get_args(hint)))


def _no_input(name: str, model: type[BaseModel]) -> str:
    like = get_close_matches(name, model.model_fields)
    return f"is not an input of this resource{f'; did you mean {like[0]}?' if like else ''}"
