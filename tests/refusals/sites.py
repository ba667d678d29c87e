"""The places of the code that refuse something: read from its source, and noticed when they do."""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from pulumi_hosting.client import call_errors, exceptions
from pulumi_hosting.client.call_errors import HostingError
from pulumi_hosting.session import errors

PACKAGE = Path(errors.__file__).parents[1]
FOLDERS = ("planning", "resources", "exactly_once", "actions", "session")
_CLASSES = {
    name
    for module in (call_errors, exceptions, errors)
    for name, value in vars(module).items()
    if inspect.isclass(value) and issubclass(value, HostingError)
}
_VALIDATION = "ValueError"
"""Its text is the reason of a field, which pydantic keeps: so it is recognised by its words."""


@dataclass(frozen=True)
class Site:
    """Where an error is made. ``name``: the file and the function, numbered if it has several; ``words``: of
    a field's reason, what every line of it has."""

    name: str
    file: str
    first: int
    last: int
    words: re.Pattern[str] | None = field(default=None, compare=False)


@cache
def sites() -> list[Site]:
    """Every place of the folders that makes an error of ours, or a reason why a field is refused."""
    found = list[Site]()
    for path in sorted(path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py")):
        file, numbers = path.relative_to(PACKAGE).as_posix(), Counter[str]()
        for function, call in _calls(ast.parse(path.read_text()), ""):
            numbers[function] += 1
            number = f" {numbers[function]}" if numbers[function] > 1 else ""
            words = _words(call) if _name(call) == _VALIDATION else None
            found.append(Site(f"{file} {function}{number}", file, call.lineno, call.end_lineno or 0, words))
    return found


def _calls(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        name = inside
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{inside}.{child.name}".lstrip(".")
        if isinstance(child, ast.Call) and _name(child) in {*_CLASSES, _VALIDATION}:
            yield name, child
        yield from _calls(child, name)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _words(call: ast.Call) -> re.Pattern[str]:
    """What the text has whatever is filled in."""
    text: ast.expr = call.args[0]
    if isinstance(text, ast.BinOp):
        text = text.left
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    return re.compile(
        "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)
    )


class Provoked:
    """The sites that refused something."""

    def __init__(self, known: list[Site]) -> None:
        self.names = set[str]()
        self._by_file: dict[str, list[Site]] = {}
        self._worded = [site for site in known if site.words is not None]
        for site in known:
            if site.words is None:
                self._by_file.setdefault(site.file, []).append(site)

    def made(self, frame: FrameType | None) -> None:
        """An error is being made, in this frame."""
        while frame is not None:
            _, _, file = frame.f_code.co_filename.rpartition(f"{PACKAGE.as_posix()}/")
            for site in self._by_file.get(file, ()):
                if site.first <= frame.f_lineno <= site.last:
                    self.names.add(site.name)
                    return
            frame = frame.f_back

    def read(self, line: str) -> None:
        """A person reads this line."""
        self.names |= {site.name for site in self._worded if site.words and site.words.search(line)}


@contextmanager
def noticed(known: list[Site]) -> Iterator[Provoked]:
    """What of the ``known`` sites refuses something meanwhile."""
    provoked = Provoked(known)
    make = HostingError.__new__

    def noticing(cls: type[HostingError], *_: object, **__: object) -> HostingError:
        provoked.made(inspect.currentframe())
        return Exception.__new__(cls)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostingError, "__new__", noticing)
        yield provoked
    assert HostingError.__new__ is make
