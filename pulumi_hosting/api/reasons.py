"""What is wrong with a refused value, in plain words: one wording for the client, Pulumi and Ansible."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pulumi_hosting.api.secrets import Secret

_VALIDATOR = re.compile(r"^(?:Input|String|List|Value|Dictionary|Set) should ")

_TYPES = {
    "string_type": "must be a text",
    "is_instance_of": "must be a text",  # a secret
    "list_type": "must be a list",
    "dict_type": "must be a map",
    "int_type": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "whole_number": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}
"""Validator's error of a value of a wrong type → what it must be."""


def reasons(
    error: ValidationError,
    fields: Mapping[str, FieldInfo],
    *,
    strange: Callable[[str], str] = lambda name: "is not a field of this request",
    absent: Callable[[str], str] = lambda name: "is required",
) -> dict[str, str]:
    """Field → reason, the first of each; under ``""`` what concerns no one field. Of refused values only
    numbers in fields for numbers are repeated, of others of a wrong type what they are: a text may be a
    secret.

    ``fields``: those of the model. ``strange``, ``absent``: the reason of a field that there is not, and of
    one that was not given.
    """
    found: dict[str, str] = {}
    for item in error.errors(include_url=False, include_context=False):
        name = str(item["loc"][0]) if item["loc"] else ""
        info, value = fields.get(name), item["input"]
        reason = worded(item, value)
        if not name and ": " in reason:
            name, reason = reason.split(": ", 1)  # rules over several fields name the one to correct
        if item["type"] == "extra_forbidden":
            reason = strange(name)
        elif item["type"] == "missing":
            reason = absent(name)
        elif isinstance(value, date) and not (isinstance(value, datetime) and value.tzinfo):
            reason = f"give a datetime with a time zone, such as datetime.now(UTC); {value} has none"
        elif given := _number(value, info):
            reason = f"{reason}, and is {given}"
        elif item["type"] in _TYPES:
            reason = f"{_inside(item['loc'], info)}{reason}, and is {_what(value)}"
        path = ".".join(str(part) for part in item["loc"][1:] if isinstance(part, int))
        found.setdefault(name, f"[{path}] {reason}" if path else reason)
    return found


def worded(item: ErrorDetails, value: object = None) -> str:
    """The reason of a validator in words of ours. ``value``: what was refused, if it is known."""
    message = _TYPES.get(item["type"]) or item["msg"]
    if message.startswith("Value should have") and isinstance(value, Secret):
        message = message.replace(" item", " character")
    if message.startswith("Input should be a valid string, unable"):
        return "is not valid Unicode"
    reason = _VALIDATOR.sub("must ", message.removeprefix("Value error, "))
    return reason.replace(" after validation", "")


def _inside(loc: tuple[int | str, ...], info: FieldInfo | None) -> str:
    """Says that it is a value in a map, and not the map, that is wrong."""
    if len(loc) < 2 or info is None or not holds(dict, info.annotation):
        return ""
    return "a name in it " if loc[-1] == "[key]" else "a value in it "


def holds(kind: type, hint: object) -> bool:
    """Whether values of this kind are among those of a type hint."""
    return kind in (hint, get_origin(hint)) or any(holds(kind, part) for part in get_args(hint))


def known_words(part: object) -> list[object]:
    """The values that a field, or a type in it, is documented with."""
    if isinstance(part, FieldInfo):
        extra = part.json_schema_extra
        examples = extra.get("examples") if isinstance(extra, dict) else None
        return [*(examples if isinstance(examples, list) else ()), *known_words(part.annotation)]
    parts = get_args(part)
    if get_origin(part) is Literal:
        return list(parts)
    return [word for inner in parts for word in known_words(inner)]


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


def _number(value: object, info: FieldInfo | None) -> str:
    """A number given for a field that holds numbers, as it was written; else nothing."""
    if info is None or not holds(int, info.annotation) or not isinstance(value, int | float):
        return ""
    if not abs(value) < 2**63:
        return ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
