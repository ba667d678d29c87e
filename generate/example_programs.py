"""An example program in Python, read as a list of statements, so that it can be written in other languages.

A program is a list of statements: settings, lookups, resources, outputs. Their values are literals, lists,
names, attributes and f-strings; anything else in the program is an error here.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from generate.render import ROOT
from pulumi_hosting.api.casing import camel
from pulumi_hosting.schema.lookups import LOOKUPS


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
    """``source``: the name of its file; ``title``: the first line of its docstring."""

    source: str
    title: str
    tree: ast.Module
    statements: list[Statement] = field(default_factory=list)

    def of(self, kind: str) -> list[Statement]:
        return [statement for statement in self.statements if statement.kind == kind]

    def set_by(self, variable: str) -> Statement:
        return next(statement for statement in self.statements if statement.target == variable)

    def settings(self) -> dict[str, str]:
        """The settings that the program reads, with their types."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and is_setting(node)]
        return {
            text_of(call.args[0]): "integer" if called(call).endswith("_int") else "string" for call in calls
        }


def read(source: str) -> Program:
    """The program in the file ``source`` of the repository."""
    text = (ROOT / source).read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    program = Program(source, (ast.get_docstring(tree) or "").partition("\n")[0].rstrip("."), tree)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_prose(node):
            continue
        target = (
            node.targets[0].id
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            else None
        )
        call = node.value if isinstance(node, ast.Assign | ast.Expr) else None
        if not isinstance(call, ast.Call):
            raise ValueError(f"{source}:{node.lineno}: only calls can be translated")
        if called(call) != "Config":
            program.statements.append(_statement(call, target, [*_comments(lines, node.lineno)]))
    return program


def _statement(call: ast.Call, target: str | None, comments: list[str]) -> Statement:
    name = called(call)
    keywords = {keyword.arg or "": keyword.value for keyword in call.keywords}
    if is_setting(call):
        return Statement(
            "setting",
            text_of(call.args[0]),
            target,
            {},
            comments,
            "integer" if name.endswith("_int") else "string",
        )
    if name == "export":
        return Statement("export", text_of(call.args[0]), None, {"value": call.args[1]}, comments)
    if camel(name) in LOOKUPS:
        given = zip((item.name for item in LOOKUPS[camel(name)].arguments), call.args, strict=False)
        return Statement("lookup", camel(name), target, {**dict(given), **keywords}, comments)
    return Statement("resource", text_of(call.args[0]), target, keywords, comments, name)


def _comments(lines: list[str], number: int) -> Iterator[str]:
    first = number - 1
    while lines[first - 1].startswith("# "):
        first -= 1
    yield from (line.removeprefix("# ") for line in lines[first : number - 1])


def _is_prose(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_setting(call: ast.Call) -> bool:
    return called(call).startswith("require")


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def text_of(node: ast.expr) -> str:
    text: str = ast.literal_eval(node)
    return text


def joined(node: ast.expr, referred: Callable[[ast.expr], str]) -> str:
    """The text of a literal or an f-string; ``referred`` writes what is not literal."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(joined(part, referred) for part in node.values)
    return referred(node.value if isinstance(node, ast.FormattedValue) else node)
