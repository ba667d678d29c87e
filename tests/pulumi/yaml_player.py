"""Plays ``shop.yaml``, a Pulumi program in YAML, from Python: config, lookups, resources in the order of
their references, outputs.

It is what the tests need where Pulumi's own host for YAML is missing, and reads no more of YAML programs than
the example has.
"""

import re
from pathlib import Path
from typing import Any

import pulumi
import yaml

PROGRAM = yaml.safe_load(Path("shop.yaml").read_text(encoding="utf-8"))
SETTINGS = pulumi.Config()
_known: dict[str, Any] = {}


class Anything(pulumi.CustomResource):
    """A resource whose properties are read by their name on the wire."""

    def __init__(self, token: str, name: str, props: dict[str, Any], wanted: set[str]) -> None:
        super().__init__(token, name, dict.fromkeys(wanted) | props)


def thing(name: str) -> Any:
    """What ``name`` stands for, made when it is first asked for."""
    if name not in _known:
        _known[name] = _made(name)
    return _known[name]


def _made(name: str) -> Any:
    if name in PROGRAM["config"]:
        return (
            SETTINGS.require_int(name)
            if PROGRAM["config"][name]["type"] == "integer"
            else SETTINGS.require(name)
        )
    if name in PROGRAM["variables"]:
        call = PROGRAM["variables"][name]["fn::invoke"]
        return pulumi.runtime.invoke(call["function"], value(call["arguments"])).value
    spec = PROGRAM["resources"][name]
    wanted = set(re.findall(rf"\$\{{{name}\.(\w+)\}}", yaml.safe_dump(PROGRAM))) - {"id"}
    return Anything(spec["type"], name, value(spec["properties"]), wanted)


def value(found: Any) -> Any:
    """With every ``${reference}`` replaced by what it stands for."""
    if isinstance(found, dict):
        return {key: value(inside) for key, inside in found.items()}
    if isinstance(found, list):
        return [value(inside) for inside in found]
    if not isinstance(found, str):
        return found
    parts = re.split(r"\$\{([^}]*)\}", found)
    if parts[0] == parts[-1] == "" and len(parts) == 3:
        return _referred(parts[1])
    return pulumi.Output.concat(*(_referred(part) if place % 2 else part for place, part in enumerate(parts)))


def _referred(reference: str) -> Any:
    name, _, property = reference.partition(".")
    found = thing(name)
    if not property:
        return found
    return found[property] if isinstance(found, dict) else getattr(found, property)


for each in PROGRAM["resources"]:
    thing(each)
for title, output in PROGRAM["outputs"].items():
    pulumi.export(title, value(output))
