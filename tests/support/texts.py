"""The texts of the package's code."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Place and text of every text of the code that is no docstring: as a whole, with ``X`` for each value
    that is filled in, and the parts between these values.
    """
    for path in sorted(folder.rglob("*.py")):
        for line, text in _texts_of(path):
            yield f"{path.relative_to(ROOT)}:{line}", text


@cache
def _texts_of(path: Path) -> list[tuple[int, str]]:
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    statements = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    found = []
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            found.append((node.lineno, "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            found.append((node.lineno, node.value))
    return found
