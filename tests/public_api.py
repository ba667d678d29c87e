"""The public Python API as text: every public name with its signature, as the source spells it.
``tests/public_api.txt`` holds it.

``python -m tests.public_api`` writes that file. A change of it is a change of what users can rely on: name it
in the changelog.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from pulumi_hosting import native
from pulumi_hosting.provider.sdk import exports

LIST = Path(__file__).with_suffix(".txt")
MODULES = (
    "pulumi_hosting",
    "pulumi_hosting.actions",
    "pulumi_hosting.emulator",
    "pulumi_hosting.native",
    "pulumi_hosting.webhooks",
    "pulumi_hosting.webhooks.receiver",
)
PARTS = {
    "pulumi_hosting.emulator.clock": ("Clock",),
    "pulumi_hosting.emulator.core": ("Core",),
    "pulumi_hosting.emulator.in_process_transport": ("Transport",),
    "pulumi_hosting.rehearsal.account_check": ("AccountCheck", "check"),
    "pulumi_hosting.rehearsal.control_client": ("Control",),
    "pulumi_hosting.rehearsal.engines": ("Run", "Stack", "choose"),
    "pulumi_hosting.rehearsal.managed_objects": ("ManagedObject", "ManagedObjects"),
    "pulumi_hosting.rehearsal.warm_python": ("forked",),
}
"""Modules of which only these names are public."""


def lines() -> Iterator[str]:
    """One line for each name, sorted within its module."""
    for name, listed in names().items():
        module = import_module(name)
        for public in sorted(listed):
            home = exports.NATIVE if module is native else exports.PACKAGE
            if public in exports.LOOKUPS:  # made at run time, from the stub file's signature
                yield f"{name}.{public}{signature(definitions(home[public], '.pyi')[public])}"
            else:
                yield from described(f"{name}.{public}", getattr(module, public))
    for name in ("AsyncClient", "Client"):
        yield from services(name, client(name))


def names() -> dict[str, tuple[str, ...]]:
    """The public names by module."""
    whole = {name: tuple(import_module(name).__all__) for name in MODULES}
    return dict(sorted((whole | PARTS).items()))


def client(name: str) -> Any:
    return getattr(import_module("pulumi_hosting"), name)(
        "vk_live_public_api_of_the_tests", "https://api.example.com/v1"
    )


def services(path: str, holder: object) -> Iterator[str]:
    """The services of a client, and those of a service, with their methods."""
    loaded = {name for base in type(holder).__mro__ for name, value in vars(base).items() if _is_lazy(value)}
    for name in sorted({*vars(holder), *loaded}):
        service = getattr(holder, name)
        if not name.startswith("_") and type(service).__name__.endswith("Service"):
            yield from (f"{path}.{name}.{member}" for member in sorted(members(type(service))))
            yield from services(f"{path}.{name}", service)


def _is_lazy(value: object) -> bool:
    return isinstance(value, cached_property)


def described(path: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        yield f"{path}: class({bases})"
        yield from (f"{path}.{member}" for member in sorted(members(value)))
    elif inspect.isfunction(value):
        yield f"{path}{signature(parsed(value))}"
    else:
        yield f"{path}: {type(value).__name__}"


@cache
def listed_classes() -> set[type]:
    return {
        found
        for module, listed in names().items()
        for name in listed
        if inspect.isclass(found := getattr(import_module(module), name))
    }


def members(found: type) -> set[str]:
    """Public fields, properties and methods of a class, those inherited from classes of ours that are not
    listed included."""
    collected: dict[str, str] = {}
    for base in reversed(found.__mro__):
        if not base.__module__.startswith("pulumi_hosting") or (
            base is not found and base in listed_classes()
        ):
            continue
        for node in _statements(parsed(base)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                node.name == "__init__" or node.name[0] != "_"
            ):
                decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
                kind = (
                    ""
                    if not decorators & {"property", "cached_property", "functools.cached_property"}
                    else "property "
                )
                collected[node.name] = f"{node.name}: {kind}{signature(node)}"
            elif (
                isinstance(node, ast.AnnAssign)
                and isinstance(node.target, ast.Name)
                and node.target.id[0] != "_"
            ):
                default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
                collected[node.target.id] = f"{node.target.id}: {ast.unparse(node.annotation)}{default}"
    return set(collected.values())


def _statements(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """The body of a class; of an ``if``, the first branch: the one of type checkers."""
    for statement in node.body:
        yield from statement.body if isinstance(statement, ast.If) else [statement]


def parsed(value: Any) -> Any:
    """The definition of a class or function, as its module has it."""
    return definitions(value.__module__)[value.__name__]


@cache
def definitions(module: str, suffix: str = ".py") -> dict[str, Any]:
    file = inspect.getsourcefile(import_module(module))
    assert file is not None
    source = Path(file).with_suffix(suffix).read_text(encoding="utf-8")
    return {
        node.name: node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"({ast.unparse(node.args)}){returns}"


def text() -> str:
    return "\n".join(lines()) + "\n"


if __name__ == "__main__":
    LIST.write_text(text(), encoding="utf-8")
