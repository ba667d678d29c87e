"""An example program as an Ansible playbook: a task for each resource, and one that shows each output."""

import ast
import json
from collections.abc import Callable, Mapping

from generate.example_programs import Program, Statement, is_setting, joined, text_of
from generate.render import render
from pulumi_hosting.provider.conversion import snake
from pulumi_hosting.provider.names import class_of
from pulumi_hosting.resources import RESOURCES

_KINDS: Mapping[str, str] = {class_of(kind): kind for kind in RESOURCES}


def playbook(program: Program) -> str:
    """The text of the playbook."""
    if taken := {*map(snake, program.settings())} & {one.target for one in program.of("resource")}:
        raise ValueError(f"{program.source}: {taken} are settings too, which a playbook cannot tell apart")
    filters: dict[str, Callable[..., object]] = {
        "module": lambda statement: _KINDS[statement.type],
        "options": lambda statement: _options(statement, program),
        "snake": snake,
        "title": lambda statement: _title(_KINDS[statement.type]),
        "value": lambda node: _value(node, program),
    }
    return render("examples/playbook.yml.j2", filters, program=program)


def _title(kind: str) -> str:
    title = RESOURCES[kind].title
    return f"{title[0].upper()}{title[1:]}"


def _options(statement: Statement, program: Program) -> dict[str, str]:
    """The options of a task. What Pulumi takes from the resource's name is an option here."""
    given = dict(statement.arguments)
    found = {}
    if RESOURCES[_KINDS[statement.type]].default_name and "name" not in given:
        found["name"] = statement.name
    if server := given.pop("server", None):
        found["server_id"] = f'"{{{{ {_reference(server, program)}.id }}}}"'
    return found | {name: _value(value, program) for name, value in given.items()}


def _value(node: ast.expr, program: Program) -> str:
    """A value on one line of YAML."""
    if isinstance(node, ast.List):
        return f"[{', '.join(_value(item, program) for item in node.elts)}]"
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else json.dumps(node.value)
    return json.dumps(joined(node, lambda part: f"{{{{ {_reference(part, program)} }}}}"))


def _reference(node: ast.expr, program: Program) -> str:
    """A variable of the playbook: a setting, or what a task has registered."""
    if isinstance(node, ast.Call) and is_setting(node):
        return snake(text_of(node.args[0]))
    if isinstance(node, ast.Attribute):
        return f"{_reference(node.value, program)}.{node.attr}"
    if isinstance(node, ast.Name):
        statement = program.set_by(node.id)
        return snake(statement.name) if statement.kind == "setting" else f"{node.id}.{_KINDS[statement.type]}"
    raise ValueError(f"{program.source}:{node.lineno}: this value cannot be translated")
