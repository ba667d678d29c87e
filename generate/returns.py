"""The RETURN section of a module: the fields of the models that it shows, with their meaning and a sample."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from pulumi_hosting.schema.fields import Field, fields

SAMPLES: Mapping[str, object] = yaml.safe_load(
    (Path(__file__).parent / "samples.yml").read_text(encoding="utf-8")
)
ANSIBLE_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "map": "dict",
    "object": "dict",
    "any": "raw",
}
RENAMED = {"invoices.items": "lines"}  # in a template, invoice.items is a method

CHARGE = {
    "description": "What the request of this task charges to the balance, or would charge in check mode. "
    "Null where it charges nothing. A failed task shows what it charged before it failed.",
    "returned": "success, and where a failed task had charged something",
    "type": "dict",
    "contains": {
        "amount": {
            "description": "The sum, a decimal number as text. Null where the price is not known before an "
            "earlier task has really run; a warning says so too.",
            "type": "str",
            "sample": "5.00",
        },
        "currency": {
            "description": "ISO 4217 code of the currency of the sum, where the service names it.",
            "type": "str",
            "sample": "EUR",
        },
    },
}
NOTE = {
    "description": "Why nothing was done, or what else to know.",
    "returned": "when there is something to say",
    "type": "str",
    "sample": "it is paid already",
}


def sentence(text: str) -> str:
    """A description of the package as Ansible's documentation has it."""
    text = re.sub(r"`([^`]*)`", r"V(\1)", text).strip()
    return text if text.endswith((".", "?")) or not text else f"{text}."


def contents(model: type[BaseModel], owner: str) -> dict[str, object]:
    """What a result of this model holds, without its secrets. ``owner`` is the path of the result. Raises
    ``LookupError`` for a field without a description.
    """
    found: dict[str, object] = {}
    for item in fields(model):
        if not item.secret:
            name = RENAMED.get(f"{owner}.{item.name}", item.name)
            found[name] = _returned(model, item, f"{owner}.{name}")
    return found


def _returned(model: type[BaseModel], item: Field, path: str) -> dict[str, object]:
    if not item.description:
        raise LookupError(f"{model.__name__}.{item.name} has no description: give its Field one")
    entry: dict[str, object] = {
        "description": sentence(item.description),
        "type": ANSIBLE_TYPES[item.type.kind],
    }
    if item.type.kind == "array" and item.type.of is not None:
        entry["elements"] = ANSIBLE_TYPES[item.type.of.kind]
    inner = next(item.type.models(), None)
    return (
        {**entry, "contains": contents(inner, path)}
        if inner is not None
        else {**entry, "sample": sample(model, item)}
    )


def known_values(model: type[BaseModel], name: str) -> list[object]:
    """The values that the API document names for a text; none where any text will do."""
    schema = _properties(model).get(name, {})
    parts = [schema, *schema.get("anyOf", ()), *schema.get("allOf", ()), schema.get("items", {})]
    parts += [part.get("items", {}) for part in schema.get("anyOf", ())]
    return [
        value for part in parts for value in part.get("examples", part.get("enum", ())) if value is not None
    ]


@cache
def _properties(model: type[BaseModel]) -> dict[str, Any]:
    found: dict[str, Any] = model.model_json_schema()["properties"]
    return found


def sample(model: type[BaseModel], item: Field) -> object:
    """A value that the field can have. Raises ``LookupError`` for a text that ``samples.yml`` has to name."""
    for owner in model.__mro__:
        if f"{owner.__name__}.{item.name}" in SAMPLES:
            return SAMPLES[f"{owner.__name__}.{item.name}"]
    if known := known_values(model, item.name):
        return [known[0]] if item.type.kind == "array" else known[0]
    if item.name in SAMPLES:
        return SAMPLES[item.name]
    return _by_type(model, item)


def _by_type(model: type[BaseModel], item: Field) -> object:
    is_time = item.name.endswith("_at") or item.name in ("time", "not_before")
    is_money = item.name.startswith("price") or item.name.endswith(("amount", "total", "charged"))
    is_id = item.type.is_id or item.name in ("id", "server_id")
    if item.type.kind == "string":
        text = "4711" if is_id else "2026-11-21T10:00:00Z" if is_time else "5.00" if is_money else None
        if text is None:
            raise LookupError(
                f"samples.yml needs {model.__name__}.{item.name}: a value that the field can have"
            )
        return text
    return {"integer": 1, "number": 1.0, "boolean": True, "array": [], "map": {}, "any": None, "object": {}}[
        item.type.kind
    ]
