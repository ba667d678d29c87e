"""The package schema: the native provider for Pulumi, in every language. Made from the resources and the
table of operations.
"""

from collections.abc import Iterable
from importlib import metadata
from typing import Any

from pydantic import BaseModel

from pulumi_hosting.installation import PACKAGE, repository
from pulumi_hosting.provider.names import NAME, camel, class_of, dynamic_token, token
from pulumi_hosting.provider.resource_shape import inputs_of, outputs_of, summary_of, title_of
from pulumi_hosting.provider.stack_settings import SETTINGS, STACK_SETTINGS
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
    about = metadata.metadata(PACKAGE)
    urls = dict(line.split(", ", 1) for line in about.get_all("Project-URL", []))
    return {
        "name": NAME,
        "displayName": "Hosting",
        "version": version,
        "description": (
            "Servers, domains, addresses and more of hosts that implement the Hosting Client API v1."
        ),
        "keywords": ["pulumi", "hosting", "vds", "category/cloud", "kind/native"],
        "license": about["License-Expression"],
        "publisher": PACKAGE,
        "homepage": urls["Homepage"],
        "repository": urls.get("Repository", ""),  # a clone that was updated since its installation
        "logoUrl": f"{urls['Source']}docs/images/logo.svg",
        **_download(),
        "config": {"variables": configuration()},
        "provider": {"description": "One account, by its API key.", "inputProperties": configuration()},
        "types": {token(type_name(model)): _object(model) for model in nested(properties)},
        "resources": {token(class_of(kind)): _resource(resource) for kind, resource in RESOURCES.items()},
        "functions": {token(lookup.wire): _function(lookup) for lookup in lookups},
        "language": {
            # pulumi_hosting is this package, which has classes of its own for Python.
            "python": {"packageName": "pulumi_hosting_sdk", "pyproject": {"enabled": True}},
            "nodejs": {"packageName": "pulumi-hosting"},
        },
    }


def _download() -> Spec:
    """Where a machine with nothing but a program and its classes finds the plugin: in the git repository, if
    the package was installed from one. Not an address that may not answer: classes that name one use no other
    plugin, not even that of ``plugin install``. (``pulumi package add ADDRESS`` names its own.)
    """
    address = repository()
    return {"pluginDownloadURL": address.replace("https://", "git://", 1)} if address else {}


def configuration() -> Spec:
    """The provider's settings, by name."""
    return {
        name: {
            "type": setting.kind,
            **({"secret": True} if setting.secret else {}),
            "description": setting.description,
            "defaultInfo": {"environment": [SETTINGS[name]]},
        }
        for name, setting in STACK_SETTINGS.items()
    }


# --- parts -------------------------------------------------------------------------------------------------


def _resource(resource: AnyResource) -> Spec:
    inputs, outputs = inputs_of(resource), outputs_of(resource)
    changes = summary_of(resource, lambda name: f"`{camel(name)}`")
    replacing = {name for name in resource.Inputs.model_fields if resource.Inputs.trait(name).replaces}
    return {
        "description": f"{markdown(title_of(resource))}\n\n{changes}",
        "inputProperties": {
            field.wire: _property(field, replaces=field.name in replacing) for field in inputs
        },
        "requiredInputs": _required(inputs),
        **_shape(outputs),
        "aliases": [{"type": dynamic_token(resource.kind)}],
    }


def _function(lookup: Lookup) -> Spec:
    return {
        "description": lookup.description,
        "inputs": {"type": "object", **_shape(lookup.arguments)},
        "outputs": {"type": "object", **_shape(lookup.results)},
    }


def _object(model: type[BaseModel]) -> Spec:
    spec = {"type": "object", "description": description(model), **_shape(fields(model))}
    return {name: value for name, value in spec.items() if value or name == "properties"}


def _shape(inside: Iterable[Field]) -> Spec:
    return {"properties": {field.wire: _property(field) for field in inside}, "required": _required(inside)}


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
    if type.several:
        return {"oneOf": [{"type": type.kind}, {"type": "array", "items": {"type": type.kind}}]}
    return {"$ref": "pulumi.json#/Any"} if type.kind == "any" else {"type": type.kind}
