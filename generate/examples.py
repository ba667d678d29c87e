"""The example programs in other forms and languages, translated from the one in Python for the native
provider.

A program is a list of statements: settings, lookups, resources, outputs. Their values are literals, lists,
names, attributes and f-strings; anything else in the program is an error here.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generate.render import ROOT, render
from pulumi_hosting.api.casing import camel
from pulumi_hosting.schema.lookups import LOOKUPS

SOURCE = "examples/python/native/__main__.py"
OWNED: tuple[str, ...] = ()
BY_HAND: frozenset[str] = frozenset()
WIDTH = 100


@dataclass
class Statement:
    """One statement. ``target``: the variable it sets; ``name``: that of the resource, output or setting."""

    kind: str
    name: str
    target: str | None
    arguments: dict[str, ast.expr]
    comments: list[str]
    type: str = ""


@dataclass
class Program:
    statements: list[Statement] = field(default_factory=list)

    def of(self, kind: str) -> list[Statement]:
        return [statement for statement in self.statements if statement.kind == kind]

    def set_by(self, variable: str) -> Statement:
        return next(statement for statement in self.statements if statement.target == variable)

    def settings(self) -> dict[str, str]:
        """The settings that the program reads, with their types."""
        tree = ast.parse((ROOT / SOURCE).read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_setting(node)]
        return {
            _text(call.args[0]): "integer" if _called(call).endswith("_int") else "string" for call in calls
        }


def files() -> Mapping[str, str]:
    """The text of every file."""
    source = (ROOT / SOURCE).read_text(encoding="utf-8")
    program = _read(source)
    values: dict[str, Any] = {"program": program, "camel": camel}
    return {
        "examples/python/dynamic/__main__.py": _dynamic(source),
        "examples/yaml/Pulumi.yaml": render(
            "examples/Pulumi.yaml.j2", {"yaml": lambda value: _yaml(value, program)}, **values
        ),
        "examples/typescript/index.ts": render(
            "examples/index.ts.j2", {"call": lambda one: _call(one, program)}, **values
        )
        + "".join(
            f"export const {camel(one.name)} = {_script(one.arguments['value'], program)};\n"
            for one in program.of("export")
        ),
    }


def _dynamic(source: str) -> str:
    """The same program with dynamic resources: another import, and no plugin to install."""
    body = source.partition('"""\n\n')[2].replace(
        "from pulumi_hosting import native as hosting", "import pulumi_hosting as hosting"
    )
    return render("examples/dynamic.py.j2") + body


# --- reading ------------------------------------------------------------------------------------------------


def _read(source: str) -> Program:
    lines = source.splitlines()
    program = Program()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_prose(node):
            continue
        target = (
            node.targets[0].id
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            else None
        )
        call = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        if not isinstance(call, ast.Call):
            raise ValueError(f"{SOURCE}:{node.lineno}: only calls can be translated")
        if _called(call) != "Config":
            program.statements.append(_statement(call, target, [*_comments(lines, node.lineno)]))
    return program


def _statement(call: ast.Call, target: str | None, comments: list[str]) -> Statement:
    called = _called(call)
    keywords = {keyword.arg or "": keyword.value for keyword in call.keywords}
    if _is_setting(call):
        return Statement(
            "setting",
            _text(call.args[0]),
            target,
            {},
            comments,
            "integer" if called.endswith("_int") else "string",
        )
    if called == "export":
        return Statement("export", _text(call.args[0]), None, {"value": call.args[1]}, comments)
    if camel(called) in LOOKUPS:
        given = zip((item.name for item in LOOKUPS[camel(called)].arguments), call.args, strict=False)
        return Statement("lookup", camel(called), target, {**dict(given), **keywords}, comments)
    return Statement("resource", _text(call.args[0]), target, keywords, comments, called)


def _comments(lines: list[str], number: int) -> Iterator[str]:
    first = number - 1
    while lines[first - 1].startswith("# "):
        first -= 1
    yield from (line.removeprefix("# ") for line in lines[first : number - 1])


def _is_prose(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_setting(call: ast.Call) -> bool:
    return _called(call).startswith("require")


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _text(node: ast.expr) -> str:
    text: str = ast.literal_eval(node)
    return text


# --- values -------------------------------------------------------------------------------------------------


def _yaml(node: ast.expr, program: Program) -> str:
    """A value on one line of YAML."""
    if isinstance(node, ast.List):
        items = [_yaml(item, program) for item in node.elts]
        return f"[{', '.join(json.dumps(item) if '{' in item else item for item in items)}]"
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return json.dumps(node.value)
    text = _joined(node, lambda part: f"${{{_reference(part, program, yaml=True)}}}")
    return json.dumps(text, ensure_ascii=False) if ": " in text or text[:1] in "*&!%@`'\"[{#" else text


def _script(node: ast.expr, program: Program) -> str:
    """A value in TypeScript."""
    if isinstance(node, ast.List):
        return f"[{', '.join(_script(item, program) for item in node.elts)}]"
    if isinstance(node, ast.Constant):
        return json.dumps(node.value, ensure_ascii=False)
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        # a property of a resource or of what a lookup finds
        later = any(isinstance(part, ast.Attribute) for part in parts)
        text = _joined(node, lambda part: f"${{{_reference(part, program, yaml=False)}}}")
        return f"{'pulumi.interpolate' if later else ''}`{text}`"
    return _reference(node, program, yaml=False)


def _joined(node: ast.expr, referred: Callable[[ast.expr], str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _joined(part.value if isinstance(part, ast.FormattedValue) else part, referred)
            for part in node.values
        )
    return referred(node)


def _reference(node: ast.expr, program: Program, *, yaml: bool) -> str:
    if isinstance(node, ast.Call) and _is_setting(node):
        name = _text(node.args[0])
        return (
            name if yaml else f"config.{camel(_called(node).replace('_int', '_number'))}({json.dumps(name)})"
        )
    if isinstance(node, ast.Attribute):
        return f"{_reference(node.value, program, yaml=yaml)}.{camel(node.attr)}"
    if isinstance(node, ast.Name):
        statement = program.set_by(node.id)
        return statement.name if yaml and statement.kind != "lookup" else camel(node.id)
    raise ValueError(f"{SOURCE}:{node.lineno}: this value cannot be translated")


def _call(statement: Statement, program: Program) -> str:
    """A resource or a lookup in TypeScript."""
    server = statement.arguments.get("server")
    given = {
        camel(name): _script(value, program)
        for name, value in statement.arguments.items()
        if name != "server"
    }
    if server is not None:
        given = {"serverId": f"{_script(server, program)}.id", **given}
    items = [name if name == value else f"{name}: {value}" for name, value in given.items()]
    options = f", {{ deletedWith: {_script(server, program)} }}" if server is not None else ""
    is_lookup = statement.kind == "lookup"
    head = (
        f"hosting.{statement.name}Output("
        if is_lookup
        else f"new hosting.{statement.type}({json.dumps(statement.name)}, "
    )
    line = f"{head}{{ {', '.join(items)} }}{options});"
    if len(line) <= WIDTH:
        return line
    return f"{head}{{\n" + "".join(f"    {item},\n" for item in items) + f"}}{options});"
