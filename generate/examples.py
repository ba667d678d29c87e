"""The example programs in other forms and languages, translated from those in Python for the native
provider: the program with every resource, and one for each resource.
"""

import ast
import json
from collections.abc import Mapping

from generate import example_playbooks
from generate.example_programs import Program, Statement, called, is_setting, joined, read, text_of
from generate.render import ROOT, render
from pulumi_hosting.api.casing import camel
from pulumi_hosting.resources import RESOURCES

SOURCE = "examples/python/native/__main__.py"
OF_RESOURCES = "examples/resources"
OWNED: tuple[str, ...] = (
    f"{OF_RESOURCES}/*/Pulumi.yaml",
    f"{OF_RESOURCES}/*/index.ts",
    f"{OF_RESOURCES}/*/playbook.yml",
)
WIDTH = 100


def files() -> Mapping[str, str]:
    """The text of every file."""
    whole = read(SOURCE)
    found = {
        "examples/python/dynamic/__main__.py": _dynamic((ROOT / SOURCE).read_text(encoding="utf-8")),
        "examples/yaml/Pulumi.yaml": yaml_program(whole, "examples/Pulumi.yaml.j2"),
        "examples/typescript/index.ts": typescript_program(whole, "examples/index.ts.j2"),
    }
    for kind in RESOURCES:
        if not (ROOT / OF_RESOURCES / kind).is_dir():
            continue  # a test asks for it
        program = read(f"{OF_RESOURCES}/{kind}/__main__.py")
        found |= {
            f"{OF_RESOURCES}/{kind}/Pulumi.yaml": yaml_program(program, "examples/resource.yaml.j2"),
            f"{OF_RESOURCES}/{kind}/index.ts": typescript_program(program, "examples/resource.ts.j2"),
            f"{OF_RESOURCES}/{kind}/playbook.yml": example_playbooks.playbook(program),
        }
    return found


def yaml_program(program: Program, template: str) -> str:
    """The program in YAML."""
    return render(template, {"yaml": lambda value: _yaml(value, program)}, program=program, camel=camel)


def typescript_program(program: Program, template: str) -> str:
    """The program in TypeScript."""
    text = render(template, {"call": lambda one: _call(one, program)}, program=program, camel=camel)
    return text + "".join(
        f"export const {camel(one.name)} = {_script(one.arguments['value'], program)};\n"
        for one in program.of("export")
    )


def _dynamic(source: str) -> str:
    """The same program with dynamic resources: another import, and no plugin to install."""
    body = source.partition('"""\n\n')[2].replace(
        "from pulumi_hosting import native as hosting", "import pulumi_hosting as hosting"
    )
    return render("examples/dynamic.py.j2") + body


# --- values -------------------------------------------------------------------------------------------------


def _yaml(node: ast.expr, program: Program) -> str:
    """A value on one line of YAML."""
    if isinstance(node, ast.List):
        items = [_yaml(item, program) for item in node.elts]
        return f"[{', '.join(json.dumps(item) if '{' in item else item for item in items)}]"
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return json.dumps(node.value)
    text = joined(node, lambda part: f"${{{_reference(part, program, yaml=True)}}}")
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
        text = joined(node, lambda part: f"${{{_reference(part, program, yaml=False)}}}")
        return f"{'pulumi.interpolate' if later else ''}`{text}`"
    return _reference(node, program, yaml=False)


def _reference(node: ast.expr, program: Program, *, yaml: bool) -> str:
    if isinstance(node, ast.Call) and is_setting(node):
        name = text_of(node.args[0])
        return (
            name if yaml else f"config.{camel(called(node).replace('_int', '_number'))}({json.dumps(name)})"
        )
    if isinstance(node, ast.Attribute):
        return f"{_reference(node.value, program, yaml=yaml)}.{camel(node.attr)}"
    if isinstance(node, ast.Name):
        statement = program.set_by(node.id)
        return statement.name if yaml and statement.kind != "lookup" else camel(node.id)
    raise ValueError(f"{program.source}:{node.lineno}: this value cannot be translated")


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
