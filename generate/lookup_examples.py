"""How each lookup is called in Python, YAML and TypeScript, and in Ansible where a module does it."""

import json
from collections.abc import Mapping

from generate.collection import Module, lookups_of
from pulumi_hosting.api.casing import camel
from pulumi_hosting.provider.names import token
from pulumi_hosting.schema.lookups import Lookup

SAMPLES: Mapping[str, object] = {
    "delivery_id": "90001",
    "domain_id": "70001",
    "invoice_id": "10001",
    "key_id": "50001",
    "name": "example.com",
    "server_id": "20001",
    "tariff_id": 1,
    "webhook_id": "80001",
}
"""A value for each argument that a lookup needs."""


def arguments(lookup: Lookup, values: Mapping[str, object] = SAMPLES) -> dict[str, object]:
    """The arguments of the example: those that are needed."""
    return {field.name: values[field.name] for field in lookup.arguments if field.required}


def python(lookup: Lookup, values: Mapping[str, object] = SAMPLES) -> str:
    """A program in Python; with ``import pulumi_hosting.native as hosting`` the plugin asks."""
    given = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments(lookup, values).items())
    return f"import pulumi_hosting as hosting\n\nfound = hosting.{lookup.name}({given})\n"


def yaml(lookup: Lookup, values: Mapping[str, object] = SAMPLES) -> str:
    """The variable of a program in YAML."""
    lines = ["variables:", "  found:", "    fn::invoke:", f"      function: {token(lookup.wire)}"]
    given = arguments(lookup, values)
    lines += ["      arguments:"] if given else ["      arguments: {}"]
    lines += [f"        {camel(name)}: {json.dumps(value)}" for name, value in given.items()]
    return "\n".join(lines) + "\n"


def typescript(lookup: Lookup, values: Mapping[str, object] = SAMPLES) -> str:
    """A program in TypeScript."""
    given = ", ".join(
        f"{camel(name)}: {json.dumps(value)}" for name, value in arguments(lookup, values).items()
    )
    argument = f"{{ {given} }}" if given else "{}"
    return (
        'import * as hosting from "pulumi-hosting";\n\n'
        f"export const found = hosting.{lookup.wire}Output({argument});\n"
    )


def module_of(lookup: Lookup, modules: list[Module]) -> Module | None:
    """The Ansible module that asks it: alone, for one object, or as a part of its result."""
    return next((module for module in modules if lookup.wire in lookups_of(module.source)), None)
