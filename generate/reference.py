"""The pages of ``docs/reference``: resources, lookups, operations, error codes, models."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from pydantic import BaseModel

from generate.render import codes, render
from pulumi_hosting.api import models
from pulumi_hosting.api.operations import OPERATIONS, PRESETS, SCOPES, Operation
from pulumi_hosting.api.values import LINE_PATTERN, LINES_PATTERN
from pulumi_hosting.client import exceptions
from pulumi_hosting.client.words import PYTHON
from pulumi_hosting.provider.names import token
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import Inputs
from pulumi_hosting.schema.fields import quoted
from pulumi_hosting.schema.lookups import LOOKUPS, Lookup

OWNED = ("docs/reference/*.md",)


def files() -> Mapping[str, str]:
    """The text of every page."""
    filters: dict[str, Callable[..., object]] = {
        "cost": _cost,
        "default": default,
        "error_class": lambda row: exceptions.error_class(row.status, row.code).__name__,
        "finds": finds,
        "model_link": _model_link,
        "models": _models,
        "on_change": on_change,
        "prose": lambda described: quoted(described.__dict__.get("__doc__") or ""),
        "properties": lambda model: model.model_json_schema(by_alias=False, ref_template="{model}")[
            "properties"
        ],
        "token": token,
        "type": _type,
    }
    values = {
        "codes": {
            row.code: replace(row, remedy=PYTHON.fill(row.remedy)) for row in exceptions.CODES.values()
        },
        "exceptions": exceptions,
        "lookups": LOOKUPS,
        "models": models,
        "operations": OPERATIONS,
        "presets": PRESETS,
        "resources": RESOURCES,
        "scopes": SCOPES,
        "tags": [(tag, [*rows]) for tag, rows in groupby(OPERATIONS, key=group_of)],
    }
    names = ("resources.md", "lookups.md", "operations.md", "errors.md", "models.md")
    return {f"docs/reference/{name}": render(f"reference/{name}.j2", filters, **values) for name in names}


def group_of(operation: Operation) -> str:
    """The area of the API; the operations of the service itself are one."""
    return operation.tag if "." in operation.call else "service"


def on_change(name: str, inputs: type[Inputs]) -> str:
    trait = inputs.trait(name)
    if trait.rebuilds:
        return "replaced, or as `rebuild` says" if name == "os" else "no effect, or as `rebuild` says"
    if trait.replaces:
        return "replaced"
    return (
        "no effect" if trait.when_creating or trait.policy else "an action" if trait.trigger else "in place"
    )


def finds(lookup: Lookup) -> str:
    model = next(lookup.value.models(), None)
    found = (
        _model_link(model)
        if model
        else {"string": "a file in base64", "map": "an open object"}[lookup.value.kind]
    )
    return f"list of {found}" if lookup.value.kind == "array" else found


def _cost(operation: Operation) -> str:
    cost = "expensive" if operation.expensive else "normal"
    for name, values in operation.expensive_when.items():
        cost += "; expensive with " + " or ".join(f"`{name}={value}`" for value in values)
    for limit in operation.limits:
        cost += f"; at most {limit.calls} in {limit.seconds} s for each `{limit.per}`"
    return cost


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The public models derived from ``base``, in the order of the file, without the generic ones."""
    for area in sorted(models.areas(), key=lambda area: area.__name__):
        for name, model in vars(area).items():
            if (
                inspect.isclass(model)
                and issubclass(model, base)
                and model.__module__ == area.__name__
                and model.model_fields
                and not name.startswith("_")
                and not model.__pydantic_generic_metadata__["parameters"]
            ):
                yield model


def default(name: str, model: type[BaseModel]) -> str:
    """What a field is when it is absent."""
    info = model.model_fields[name]
    if info.is_required():
        other = model.named_by().get(name) if issubclass(model, Inputs) else None
        return f"required, unless `{other}` is given" if other else "required"
    if issubclass(model, models.RequestModel):
        return "not sent"
    value = info.get_default(call_default_factory=True, validated_data={})
    return "its own defaults" if isinstance(value, BaseModel) else f"`{value!r}`"


def _type(schema: Mapping[str, Any]) -> str:
    """A property's JSON schema in words: its type, its bounds, the values it may have."""
    if "$ref" in schema:
        return f"[{schema['$ref']}](#{schema['$ref'].lower()})"
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(_type(part) for part in schema.get("anyOf") or schema["oneOf"])
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = {"date-time": "time", "password": "secret"}.get(
        schema.get("format", ""), schema.get("type", "anything")
    )
    if kind == "array":
        kind = f"list of {_type(schema.get('items', {}))}"
    if kind == "null":
        kind = "`None`"
    return "; ".join([kind, *_bounds(schema)])


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        yield f"{'' if low is None else low}..{'' if high in (None, models.INT64) else high}"
    for least, most, what in (("minLength", "maxLength", "characters"), ("minItems", "maxItems", "items")):
        if least in schema or most in schema:
            yield f"{schema.get(least, 0)}..{schema.get(most, '')} {what}"
    # What is longer is for programs: the meaning says it in words.
    if (
        "pattern" in schema
        and schema["pattern"] not in (LINE_PATTERN, LINES_PATTERN)
        and len(schema["pattern"]) < 60
    ):
        yield f"matches `{schema['pattern']}`"
    if schema.get("examples"):
        yield "known values " + codes(schema["examples"])


def _model_link(model: Any) -> str:
    """A model as a link into the page of models; a page or list of models links to the model it holds."""
    if model is None:
        return "—"
    if not (inspect.isclass(model) and issubclass(model, BaseModel)):
        return {bytes: "a file", dict: "an object"}[model]
    generic = model.__pydantic_generic_metadata__
    if generic["args"]:
        held = generic["args"][0]
        return f"{'page' if generic['origin'] is models.Page else 'list'} of {_model_link(held)}"
    name = model.__name__
    return f"[{name}](models.md#{name.lower()})"
