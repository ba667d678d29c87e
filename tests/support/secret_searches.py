"""Whether a test searches for a secret: read from its source, without running it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]

_SECRET = re.compile(
    r"canary|secret|spelling|password|whsec|vk_live|auth_code|planted|\bkey\b|_key\b", re.IGNORECASE
)
"""How names and texts of secrets, and of their spellings, read in tests."""


@dataclass
class _Module:
    tree: ast.Module

    @cached_property
    def functions(self) -> dict[str, list[ast.FunctionDef]]:
        """By name: functions, methods and fixtures."""
        found: dict[str, list[ast.FunctionDef]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
        return found

    @cached_property
    def imported(self) -> list[Path]:
        """The modules of tests that it imports from."""
        named = [str(node.module) for node in self.tree.body if isinstance(node, ast.ImportFrom)]
        paths = [ROOT / f"{name.replace('.', '/')}.py" for name in named if name.startswith("tests.")]
        return [path for path in paths if path.is_file()]

    @cached_property
    def used(self) -> frozenset[str]:
        """Names and texts of secrets outside of searches, and the searched parts of these texts."""
        searches = [*_searches(self.tree)]
        searched = {inner for search in searches for inner in ast.walk(search.left)}
        wanted = {text for search in searches for text in _secrets(search.left)}
        others = [node for node in ast.walk(self.tree) if node not in searched]
        texts = [_text(node) for node in others if isinstance(node, ast.Constant)]
        names = {node.id for node in others if isinstance(node, ast.Name)}
        return frozenset(names | {text for text in wanted if any(text in other for other in texts)})


@cache
def _module(path: Path) -> _Module:
    return _Module(ast.parse(path.read_text(encoding="utf-8")))


def why_not(test: str) -> str | None:
    """Why ``tests/folder/test_file.py::test_name`` is no search for a secret; None where it is one.

    It is one where the test, or a function of the tests that it calls, asserts that a secret is not in
    something, or collects where it is and the test asserts that nothing was collected; and where the secret
    is also used for something else than to be searched for.
    """
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file():
        return f"there is no file {path}"
    found = _module(ROOT / path).functions.get(name)
    if not found:
        return f"{path} has no {name}"
    return why_no_search(found[0], ROOT / path)


def why_no_search(test: ast.FunctionDef, path: Path) -> str | None:
    code = [*_reached(test, path)]
    searches = [
        search
        for node, _ in code
        for search in _searches(node)
        if _is_asserted(search, node) or (node is not test and _asserts_nothing_found(test))
    ]
    if not searches:
        return f"{test.name} asserts nothing of a secret"
    modules = {place for _, module in code for place in (module, *_module(module).imported)}
    used = {text for module in modules for text in _module(module).used}
    if not any(_secrets(search.left) <= used for search in searches):
        return f"{test.name} searches for what it nowhere uses: {sorted(_secrets(searches[0].left))}"
    return None


def _reached(test: ast.FunctionDef, path: Path) -> Iterator[tuple[ast.FunctionDef, Path]]:
    """The test and every function of tests that it names, with their modules; also what these name."""
    waiting, seen = [(test, path)], set()
    while waiting:
        node, module = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node, module
        named = {*_names(node), *(argument.arg for argument in node.args.args)}
        for place in (module, *_module(module).imported):
            for name in named & _module(place).functions.keys():
                waiting += [(function, place) for function in _module(place).functions[name]]


def _names(node: ast.AST) -> set[str]:
    return {
        inner.id if isinstance(inner, ast.Name) else inner.attr
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name | ast.Attribute)
    }


def _searches(node: ast.AST) -> Iterator[ast.Compare]:
    """Its comparisons of the kind ``secret in text``."""
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Compare) or not isinstance(inner.ops[0], ast.In | ast.NotIn):
            continue
        if _secrets(inner.left):
            yield inner


def _secrets(node: ast.AST) -> frozenset[str]:
    """The names and texts of secrets in an expression."""
    texts = {
        _text(inner)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str | bytes)
    }
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return frozenset(text for text in texts | names if _SECRET.search(text))


def _is_asserted(search: ast.Compare, function: ast.FunctionDef) -> bool:
    """Whether it is asserted that the secret is not there."""
    return any(
        search in ast.walk(node.test)
        for node in ast.walk(function)
        if isinstance(node, ast.Assert)
        and (isinstance(search.ops[0], ast.NotIn) or _is_none_found(node.test) or _is_not(node.test))
    )


def _asserts_nothing_found(test: ast.FunctionDef) -> bool:
    return any(_is_none_found(node.test) for node in ast.walk(test) if isinstance(node, ast.Assert))


def _is_none_found(asserted: ast.expr) -> bool:
    """``f(…) == []``."""
    return (
        isinstance(asserted, ast.Compare)
        and isinstance(asserted.ops[0], ast.Eq)
        and isinstance(asserted.comparators[0], ast.List)
        and not asserted.comparators[0].elts
        and any(isinstance(node, ast.Call | ast.ListComp) for node in ast.walk(asserted.left))
    )


def _is_not(asserted: ast.expr) -> bool:
    return isinstance(asserted, ast.UnaryOp) and isinstance(asserted.op, ast.Not)


def _text(node: ast.Constant) -> str:
    return node.value.decode(errors="replace") if isinstance(node.value, bytes) else str(node.value)
