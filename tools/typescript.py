"""Types for TypeScript programs, made from the package schema, where there is no `pulumi package gen-sdk` to make them.

    python -m tools.typescript examples/typescript/sdks/hosting

writes a package of one module: a class and its arguments for each resource, two functions for each lookup, and the provider. It behaves as
the package of Pulumi's own generator does, without that one's module per resource and configuration module.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pulumi_hosting.provider.plugin.install import version
from pulumi_hosting.provider.plugin.package_schema import package_spec

Spec = Mapping[str, Any]

_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
_HEAD = """// Made from the schema of the hosting plugin: do not edit.
import * as pulumi from "@pulumi/pulumi";
"""


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
    parts = [_HEAD + f"\nconst version = {json.dumps(spec['version'])};\n"]
    parts += [_interface(_name(token), kind) for token, kind in spec["types"].items()]
    parts += [part for token, resource in spec["resources"].items() for part in _resource(token, resource)]
    parts += [part for token, function in spec["functions"].items() for part in _function(token, function)]
    parts += _provider(spec)
    return "\n".join(parts)


# --- parts -------------------------------------------------------------------------------------------------------------------


def _resource(token: str, spec: Spec) -> Iterator[str]:
    name, inputs, outputs = _name(token), spec["inputProperties"], spec["properties"]
    arguments = f"{name}Args"
    yield _interface(arguments, {"properties": inputs, "required": spec["requiredInputs"]}, lifted=True)
    # What is not among the properties, though absent, would not be an attribute afterwards.
    sent = [*(f"{key}: {_sent(key, kind)}" for key, kind in inputs.items()), *(f"{key}: undefined" for key in outputs if key not in inputs)]
    ours = {
        "aliases": spec.get("aliases", []),
        "additionalSecretOutputs": [key for key, kind in outputs.items() if kind.get("secret")],
    }
    yield _lines(
        _comment(spec),
        f"export class {name} extends pulumi.CustomResource {{",
        *(f"    declare readonly {key}: pulumi.Output<{_optional(kind, key in spec['required'])}>;" for key, kind in outputs.items()),
        "",
        f"    static get(name: string, id: pulumi.Input<pulumi.ID>, opts?: pulumi.CustomResourceOptions): {name} {{",
        f"        return new {name}(name, undefined as unknown as {arguments}, {{ ...opts, id }});",
        "    }",
        "",
        f"    constructor(name: string, args: {arguments}, opts: pulumi.CustomResourceOptions = {{}}) {{",
        f"        const ours = {{ version, ...{json.dumps(ours)} }};",
        f"        super({json.dumps(token)}, name, {{ {', '.join(sent)} }}, pulumi.mergeOptions(ours, opts));",
        "    }",
        "}",
    )


def _function(token: str, spec: Spec) -> Iterator[str]:
    name, inputs = _name(token), spec["inputs"]
    big = name[0].upper() + name[1:]
    found = f"{big}Result"
    yield _interface(found, spec["outputs"])
    comment = _comment(spec)
    if not inputs["properties"]:
        arguments = lifted = ""
        given = "{}"
    else:
        yield _interface(f"{big}Args", inputs)
        yield _interface(f"{big}OutputArgs", inputs, lifted=True)
        default = "" if inputs["required"] else " = {}"
        arguments, lifted, given = f"args: {big}Args{default}, ", f"args: {big}OutputArgs{default}, ", "{ ...args }"
    yield _lines(
        comment,
        f"export function {name}({arguments}opts: pulumi.InvokeOptions = {{}}): Promise<{found}> {{",
        f"    return pulumi.runtime.invoke({json.dumps(token)}, {given}, {{ version, ...opts }});",
        "}",
        "",
        comment,
        f"export function {name}Output({lifted}opts: pulumi.InvokeOutputOptions = {{}}): pulumi.Output<{found}> {{",
        f"    return pulumi.runtime.invokeOutput<{found}>({json.dumps(token)}, {given}, {{ version, ...opts }});",
        "}",
    )


def _provider(spec: Spec) -> Iterator[str]:
    inputs = spec["provider"]["inputProperties"]
    yield _interface("ProviderArgs", {"properties": inputs}, lifted=True)
    yield _lines(
        _comment(spec["provider"]),
        "export class Provider extends pulumi.ProviderResource {",
        "    constructor(name: string, args: ProviderArgs = {}, opts: pulumi.ResourceOptions = {}) {",
        f"        const props = {{ {', '.join(f'{key}: {_sent(key, kind)}' for key, kind in inputs.items())} }};",
        f"        super({json.dumps(spec['name'])}, name, props, pulumi.mergeOptions({{ version }}, opts));",
        "    }",
        "}",
    )


def _interface(name: str, spec: Spec, *, lifted: bool = False) -> str:
    """``lifted``: each property may be known later only."""
    rows = []
    for key, kind in spec["properties"].items():
        required = key in spec.get("required", ())
        wanted = f"pulumi.Input<{_optional(kind, required, lifted=True)}>" if lifted else _type(kind)
        rows += [line for line in (_comment(kind, "    "),) if line]
        rows.append(f"    {'' if lifted else 'readonly '}{key}{'' if required else '?'}: {wanted};")
    return _lines(_comment(spec), f"export interface {name} {{", *rows, "}")


def _optional(kind: Spec, required: bool, *, lifted: bool = False) -> str:
    return _type(kind, lifted=lifted) + ("" if required else " | undefined")


def _type(kind: Spec, *, lifted: bool = False) -> str:
    if reference := kind.get("$ref"):
        return "any" if reference.startswith("pulumi.json#") else _name(reference)
    if kind["type"] == "array":
        return f"{_inside(kind['items'], lifted)}[]"
    if kind["type"] == "object":
        return f"{{ [key: string]: {_inside(kind['additionalProperties'], lifted)} }}"
    return _PLAIN[kind["type"]]


def _inside(kind: Spec, lifted: bool) -> str:
    return f"pulumi.Input<{_type(kind, lifted=True)}>" if lifted else _type(kind)


def _sent(key: str, kind: Spec) -> str:
    return f"args?.{key} === undefined ? undefined : pulumi.secret(args.{key})" if kind.get("secret") else f"args?.{key}"


def _comment(spec: Spec, margin: str = "") -> str:
    words = str(spec.get("description", "")).replace("*/", "*\\/").splitlines()
    return "\n".join((f"{margin}/**", *(f"{margin} * {line}".rstrip() for line in words), f"{margin} */")) if words else ""


def _name(token: str) -> str:
    return token.rpartition(":")[2]


def _lines(*lines: str) -> str:
    kept: Iterable[str] = lines[1:] if not lines[0] else lines
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
