"""Property paths: `a.b[0]["c.d"]`, `*` for every element."""

import re
from collections.abc import Iterable
from typing import Any

from .property_values import SecretValue, bare

_PATH_PART = re.compile(r'\.?([^.\["\]]+)|\["((?:[^"\\]|\\.)*)"\]|\[(\d+|\*)\]')


def parse_path(path: str) -> list[str | int]:
    """The parts of a property path; ValueError when it is none."""
    parts: list[str | int] = []
    position = 0
    while position < len(path):
        match = _PATH_PART.match(path, position)
        if match is None:
            raise ValueError(f"{path!r} is not a property path")
        name, quoted, index = match.groups()
        if index is not None:
            parts.append("*" if index == "*" else int(index))
        else:
            parts.append(name if name is not None else re.sub(r"\\(.)", r"\1", quoted))
        position = match.end()
    return parts


def path_contains(outer: Iterable[str | int], inner: Iterable[str | int]) -> bool:
    """True when `inner` names the same place as `outer`, or one inside it."""
    outer, inner = list(outer), list(inner)
    return len(outer) <= len(inner) and all(a in ("*", b) for a, b in zip(outer, inner, strict=False))


def reset_path(path: list[str | int], old: Any, new: Any) -> tuple[Any, bool]:
    """`new` with the value at `path` reset to that in `old`; False when the path is not in both."""
    if not path:
        return old, True
    part, rest = path[0], path[1:]
    if isinstance(new, SecretValue) or isinstance(old, SecretValue):
        value, done = reset_path(path, bare(old), bare(new))
        return (SecretValue(value) if isinstance(new, SecretValue) else value), done
    if part == "*":
        keys: Iterable[Any] = (
            range(len(new)) if isinstance(new, list) else sorted({*(old or {}), *(new or {})})
        )
        done = True
        for key in keys:
            new, each = reset_path([key, *rest], old, new)
            done = done and each
        return new, done
    if isinstance(part, str) and isinstance(new, dict) and isinstance(old, dict):
        if not rest and part not in old:
            return {key: value for key, value in new.items() if key != part}, True
        if part not in old or (rest and part not in new):
            return new, part not in old and part not in new
        value, done = reset_path(rest, old[part], new.get(part))
        return new | {part: value}, done
    if (
        isinstance(part, int)
        and isinstance(new, list)
        and isinstance(old, list)
        and part < min(len(old), len(new))
    ):
        value, done = reset_path(rest, old[part], new[part])
        return [*new[:part], value, *new[part + 1 :]], done
    return new, False
