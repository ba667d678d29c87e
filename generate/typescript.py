"""Types for TypeScript programs from the package schema, where no ``pulumi package gen-sdk`` makes them.

    python -m generate.typescript examples/typescript/sdks/hosting

writes a package of one module: a class and its arguments for each resource, two functions for each lookup,
and the provider. It behaves as the package of Pulumi's own generator does, without its module per resource
and its configuration module.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generate.render import render
from pulumi_hosting.provider.plugin.install import version
from pulumi_hosting.provider.plugin.package_schema import package_spec

Spec = Mapping[str, Any]

_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}


def write(directory: Path) -> None:
    """The package, into ``directory``."""
    spec = package_spec(version())
    directory.mkdir(parents=True, exist_ok=True)
    manifest = {
        "name": spec["language"]["nodejs"]["packageName"],
        "version": spec["version"],
        "main": "index.ts",
        "types": "index.ts",
        "pulumi": {"resource": True, "name": spec["name"], "version": spec["version"]},
    }
    (directory / "package.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    (directory / "index.ts").write_text(module(spec), encoding="utf-8")


def module(spec: Spec) -> str:
    """The package's one module."""
    filters = {
        "comment": _comment,
        "json": json.dumps,
        "name": _name,
        "optional": _optional,
        "sent": _sent,
        "type": _type,
    }
    return render("typescript/index.ts.j2", filters, spec=spec)


def _optional(kind: Spec, required: bool, lifted: bool = False) -> str:
    return _type(kind, lifted) + ("" if required else " | undefined")


def _type(kind: Spec, lifted: bool = False) -> str:
    """``lifted``: parts of it may be known later only."""
    if reference := kind.get("$ref"):
        return "any" if reference.startswith("pulumi.json#") else _name(reference)
    if parts := kind.get("oneOf"):
        return " | ".join(_type(part, lifted) for part in parts)
    if kind["type"] == "array":
        return f"{_inside(kind['items'], lifted)}[]"
    if kind["type"] == "object":
        return f"{{ [key: string]: {_inside(kind['additionalProperties'], lifted)} }}"
    return _PLAIN[kind["type"]]


def _inside(kind: Spec, lifted: bool) -> str:
    return f"pulumi.Input<{_type(kind, lifted=True)}>" if lifted else _type(kind)


def _sent(key: str, kind: Spec) -> str:
    """A property as the constructor passes it on."""
    return (
        f"args?.{key} === undefined ? undefined : pulumi.secret(args.{key})"
        if kind.get("secret")
        else f"args?.{key}"
    )


def _comment(spec: Spec, margin: str = "") -> str:
    words = str(spec.get("description", "")).replace("*/", "*\\/").splitlines()
    lines = ["/**", *(f" * {line}".rstrip() for line in words), " */"] if words else []
    return "".join(f"{margin}{line}\n" for line in lines)


def _name(token: str) -> str:
    return token.rpartition(":")[2]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
