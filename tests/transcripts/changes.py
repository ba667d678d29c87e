"""What differs between two values that were flattened: one line for each field."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

SECRET_MARK = "4dabf18193072939515e22adb298388d"
"""The key of a secret in a state."""


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Path and text of each field."""
    if isinstance(value, Mapping) and SECRET_MARK in value:
        yield path, "<secret>"
    elif isinstance(value, Mapping) and (value or not path):
        for name in sorted(value, key=str):
            yield from flat(value[name], f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from flat(item, f"{path}[{number}]")
    else:
        yield path, json.dumps(value, ensure_ascii=False)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Lines of what came (+), is another (~) or went (-), by the name of an object and of its field."""
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after:
            yield f"- {name}"
            continue
        lines = list(_fields(dict(flat(before.get(name, {}))), dict(flat(after[name]))))
        if name not in before or lines:
            yield f"{'~' if name in before else '+'} {name}"
        yield from lines


def _fields(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    present = {part for path in new for part in _parents(path)}
    gone = (next((part for part in _parents(path) if part in new or part not in present), "") for path in old)
    for path in dict.fromkeys(part for part in gone if part and part not in new):
        yield f"  - {path}"
    for path, text in new.items():
        if path not in old:
            yield f"  + {path} = {text}"
        elif old[path] != text:
            yield f"  ~ {path} = {text}"


def _parents(path: str) -> Iterator[str]:
    """``a``, ``a.b`` and ``a.b[0]`` for ``a.b[0]``."""
    yield from (path[: found.start()] for found in re.finditer(r"[.\[]", path))
    yield path
