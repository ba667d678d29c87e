"""The package schema: the native provider for Pulumi, in every language. Made from the resources and the
table of operations.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from pulumi_hosting.provider.names import NAME as NAME
from pulumi_hosting.provider.names import camel, dynamic_token
from pulumi_hosting.provider.names import token as token
from pulumi_hosting.provider.resource_shape import class_name, inputs_of, outputs_of, summary_of, title_of
from pulumi_hosting.provider.stack_settings import SETTINGS
from pulumi_hosting.resources import RESOURCES
from pulumi_hosting.resources.base import AnyResource
from pulumi_hosting.schema.fields import Field, Type, description, fields, markdown, nested, type_name
from pulumi_hosting.schema.lookups import LOOKUPS, Lookup

Spec = dict[str, Any]


def package_spec(version: str) -> Spec:
    """The package's schema, as ``pulumi package get-schema`` prints it."""
    lookups = tuple(LOOKUPS.values())
    properties = [
        field.type
        for resource in RESOURCES.values()
        for field in (*inputs_of(resource), *outputs_of(resource))
    ]
    properties += [field.type for lookup in lookups for field in lookup.results]
    return {
        "name": NAME,
        "displayName": "Hosting",
        "version": version,
        "description": (
            "Servers, domains, addresses and more of hosting companies that speak the Hosting Client API v1."
        ),
        "keywords": ["pulumi", "hosting", "vds", "category/cloud", "kind/native"],
        "license": "Apache-2.0",
        "config": {"variables": configuration()},
        "provider": {"description": "One account, by its API key.", "inputProperties": configuration()},
        "types": {token(type_name(model)): _object(model) for model in nested(properties)},
        "resources": {token(class_name(resource)): _resource(resource) for resource in RESOURCES.values()},
        "functions": {token(lookup.wire): _function(lookup) for lookup in lookups},
        "language": {
            # pulumi_hosting is this package, which has classes of its own for Python.
            "python": {"packageName": "pulumi_hosting_sdk", "pyproject": {"enabled": True}},
            "nodejs": {"packageName": "pulumi-hosting"},
        },
    }


_SETTINGS: Mapping[str, Spec] = {
    "apiKey": {
        "type": "string",
        "secret": True,
        "description": "API key: `vk_live_…`, or `vk_test_…` for simulated writes.",
    },
    "baseUrl": {"type": "string", "description": "Address of the API, https, ending in `/v1`."},
    "mode": {
        "type": "string",
        "description": "`live` or `test`: change nothing with an API key of the other mode.",
    },
    "maxCharge": {
        "type": "string",
        "description": (
            "Order nothing that would make the charges of one run exceed this sum, a decimal "
            "in the account's currency."
        ),
    },
    "scope": {
        "type": "string",
        "description": "A part of every identity: for stacks of one project and name that share an account.",
    },
    "strict": {
        "type": "boolean",
        "description": (
            "Refuse what is otherwise only warned of: a preview that cannot reach the API, a "
            "takeover without a scope."
        ),
    },
    "rateLimitTimeout": {
        "type": "number",
        "description": "Seconds that a request may wait for the rate limit of the key. Default 600.",
    },
}


def configuration() -> Spec:
    """The provider's settings, by name."""
    return {
        name: {**_SETTINGS[name], "defaultInfo": {"environment": [variable]}}
        for name, variable in SETTINGS.items()
    }


def _summary(resource: AnyResource) -> str:
    return f"{markdown(title_of(resource))}\n\n{summary_of(resource, lambda name: f'`{camel(name)}`')}"


# --- parts -------------------------------------------------------------------------------------------------


def _resource(resource: AnyResource) -> Spec:
    inputs, outputs = inputs_of(resource), outputs_of(resource)
    replacing = {name for name in resource.Inputs.model_fields if resource.Inputs.trait(name).replaces}
    return {
        "description": _summary(resource),
        "inputProperties": {
            field.wire: _property(field, replaces=field.name in replacing) for field in inputs
        },
        "requiredInputs": _required(inputs),
        "properties": _properties(outputs),
        "required": _required(outputs),
        "aliases": [{"type": dynamic_token(resource.kind)}],
    }


def _function(lookup: Lookup) -> Spec:
    return {
        "description": lookup.description,
        "inputs": {
            "type": "object",
            "properties": _properties(lookup.arguments),
            "required": _required(lookup.arguments),
        },
        "outputs": {
            "type": "object",
            "properties": _properties(lookup.results),
            "required": _required(lookup.results),
        },
    }


def _object(model: type[BaseModel]) -> Spec:
    inside = fields(model)
    spec = {
        "type": "object",
        "description": description(model),
        "properties": _properties(inside),
        "required": _required(inside),
    }
    return {name: value for name, value in spec.items() if value or name == "properties"}


def _properties(inside: Iterable[Field]) -> Mapping[str, Spec]:
    return {field.wire: _property(field) for field in inside}


def _required(inside: Iterable[Field]) -> list[str]:
    return [field.wire for field in inside if field.required]


def _property(field: Field, *, replaces: bool = False) -> Spec:
    spec = _type(field.type)
    if field.description:
        spec["description"] = field.description
    if field.secret:
        spec["secret"] = True
    if replaces:
        spec["willReplaceOnChanges"] = True
    return spec


def _type(type: Type) -> Spec:
    if type.model is not None:
        return {"$ref": f"#/types/{token(type_name(type.model))}"}
    if type.kind == "array" and type.of is not None:
        return {"type": "array", "items": _type(type.of)}
    if type.kind == "map" and type.of is not None:
        return {"type": "object", "additionalProperties": _type(type.of)}
    return {"$ref": "pulumi.json#/Any"} if type.kind == "any" else {"type": type.kind}
