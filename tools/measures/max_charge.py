"""Who reads ``max_charge``: the functions that take the limit out of where it is kept.

A **reader** is a function of ours, by hand, whose code loads

- the attribute ``max_charge``, or the key ``max_charge`` or ``maxCharge`` (a subscript, ``get``, ``in``),
- or the amount that a budget or a task made of it: ``limit`` of ``self`` in a budget, of ``budget`` or of
  ``task``.

A function that is given the limit as an argument carries it, and is not counted. The source is read, not run,
so every branch counts.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.measures import code

NAMES = ("max_charge", "maxCharge")
KEEPERS = ("budget", "task")


def readers(root: Path) -> list[str]:
    """The functions, as ``folder/file.py Class.function``."""
    found: dict[str, None] = {}
    for path in code.product(root):
        text = (root / path).read_text(encoding="utf-8")
        if not code.is_generated(text):
            for function in _readers(ast.parse(text), []):
                found[f"{code.short(path)} {function}"] = None
    return [*found]


def folders(functions: list[str]) -> set[str]:
    """The folders of these functions."""
    return {function.rpartition("/")[0] for function in functions}


def _readers(node: ast.AST, scope: list[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _readers(child, [*scope, child.name])
        else:
            if scope and _reads(child, scope):
                yield ".".join(scope)
            yield from _readers(child, scope)


def _reads(node: ast.AST, scope: list[str]) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return node.attr in NAMES or (node.attr == "limit" and _keeps(node.value, scope))
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return _is_name(node.slice)
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.In | ast.NotIn) and _is_name(node.left)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("get", "pop")
        and bool(node.args)
        and _is_name(node.args[0])
    )


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in NAMES


def _keeps(node: ast.AST, scope: list[str]) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name == "self":
        return any("Budget" in part for part in scope)
    return name.strip("_").lower() in KEEPERS
