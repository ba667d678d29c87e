"""The RETURN section of a module: the fields of the models that it shows, with their meaning and a sample."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from pulumi_hosting.schema.fields import Type, fields

TEXTS: Mapping[str, str] = yaml.safe_load((Path(__file__).parent / "texts.yml").read_text(encoding="utf-8"))
SAMPLES: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "samples.yml").read_text(encoding="utf-8"))
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
    "description": "What the task's own request charges to the balance, or would in check mode. Null where it charges nothing; with the "
    "amount null where the price is not known before an earlier task has really run, which a warning says too. "
    "A task that failed shows what it had charged before.",
    "returned": "success, and where a failed task had charged something",
    "type": "dict",
    "contains": {
        "amount": {"description": "A decimal number as text.", "type": "str", "sample": "5.00"},
        "currency": {"description": "ISO 4217 code, where the service names it.", "type": "str", "sample": "EUR"},
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


def contents(model: type[BaseModel], owner: str) -> dict[str, Any]:
    """What a result of this model holds, without its secrets. ``owner`` is the path of the result."""
    found: dict[str, Any] = {}
    for item in fields(model):
        if not item.secret:
            name = RENAMED.get(f"{owner}.{item.name}", item.name)
            found[name] = _returned(item.type, item.description, f"{owner}.{name}", name, known_values(model, item.name))
    return found


def _returned(type: Type, description: str, path: str, name: str, known: Sequence[Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"description": _meaning(description, path, name), "type": ANSIBLE_TYPES[type.kind]}
    if type.kind == "array" and type.of is not None:
        entry["elements"] = ANSIBLE_TYPES[type.of.kind]
    model = next(type.models(), None)
    return {**entry, "contains": contents(model, path)} if model is not None else {**entry, "sample": _sample(path, name, type, known)}


def known_values(model: type[BaseModel], name: str) -> list[Any]:
    """The values that the API document names for a text; none where any text will do."""
    schema = model.model_json_schema()["properties"].get(name, {})
    parts = [schema, *schema.get("anyOf", ()), *schema.get("allOf", ()), schema.get("items", {})]
    parts += [part.get("items", {}) for part in schema.get("anyOf", ())]
    return [value for part in parts for value in part.get("examples", part.get("enum", ())) if value is not None]


def _meaning(description: str, path: str, name: str) -> str:
    """What a result means: the model's words, unless they only repeat the name."""
    repeats = description.rstrip(".").lower().removeprefix("the ") in ("", name.replace("_", " "))
    return sentence(TEXTS.get(path, TEXTS.get(name, description)) if repeats else description)


def _sample(path: str, name: str, type: Type, known: Sequence[Any]) -> Any:
    for key in (path, name):
        if key in SAMPLES and (key == path or not known or SAMPLES[key] in known or type.kind == "array"):
            return SAMPLES[key]
    if known:
        return [known[0]] if type.kind == "array" else known[0]
    if type.is_id:
        return "4711"
    if name.endswith("_at"):
        return "2026-11-21T10:00:00Z"
    if name.startswith("price") or name.endswith(("amount", "total", "charged")):
        return "5.00"
    return {"string": "text", "integer": 1, "number": 1.0, "boolean": True, "array": [], "map": {}, "any": None, "object": {}}[type.kind]
