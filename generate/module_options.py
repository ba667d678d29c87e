"""The options of a module: how Ansible reads them, and what they mean."""

import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic.fields import FieldInfo

from generate.returns import sentence
from pulumi_hosting.api.secrets import Secret

# as ansible-test sees it
SOUNDS_SECRET = re.compile(r"(pass(?!ive)|secret|token|cryptkey|key)", re.IGNORECASE)

OptionSource = str | Sequence[str] | Mapping[str, Any] | None
"""What the YAML has of an option: its description, or a mapping with ``description`` and the fields of
:class:`Option` that differ.
"""


@dataclass(frozen=True)
class Option:
    type: str
    description: Sequence[str] = ()
    elements: str | None = None
    choices: Sequence[object] | None = None
    default: object = None
    required: bool = False
    secret: bool = False

    def spec(self, name: str) -> dict[str, object]:
        """The option in the argument spec."""
        spec = {"type": self.type, **self._given("elements", "choices", "default", "required")}
        if self.secret or SOUNDS_SECRET.search(name):
            spec["no_log"] = self.secret
        return spec

    def documentation(self) -> dict[str, object]:
        """The option in DOCUMENTATION."""
        return {
            "description": list(self.description),
            "type": self.type,
            **self._given("elements", "choices", "default", "required"),
        }

    def _given(self, *names: str) -> dict[str, object]:
        values = {name: getattr(self, name) for name in names}
        return {
            name: list(value) if name == "choices" else value
            for name, value in values.items()
            if value or (name == "default" and value is not None)
        }


def option(source: OptionSource, info: FieldInfo | None = None) -> Option:
    """The option for a field of one of our models; without ``info``, one that only the module has."""
    found = Option("str")
    if info is not None:
        annotation: object = info.annotation
        found = _plain(annotation)
        choices = next(
            (extra["enum"] for extra in _extras(typing.Annotated[annotation, info]) if "enum" in extra), None
        )
        if choices and found.choices is None and found.type == "int":
            found = replace(found, choices=choices)
        found = replace(found, description=[sentence(info.description or "")])
    if isinstance(source, Mapping):
        return replace(
            found, **{**source, "description": lines(source.get("description")) or found.description}
        )
    return replace(found, description=lines(source) or found.description)


def lines(text: str | Sequence[str] | None) -> list[str]:
    return [] if text is None else [text] if isinstance(text, str) else list(text)


def _plain(annotation: Any) -> Option:
    """How Ansible reads a field of this type."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _plain(annotation.__origin__)
    if origin in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        return _plain(parts[0]) if len(parts) == 1 else Option("str")
    if origin is Literal:
        choices = typing.get_args(annotation)
        return Option("int" if isinstance(choices[0], int) else "str", choices=choices)
    if origin is list:
        return Option("list", elements=_plain(typing.get_args(annotation)[0]).type)
    if annotation is Secret:
        return Option("str", secret=True)
    return Option(
        {int: "int", bool: "bool", float: "float"}.get(annotation, "dict" if origin is dict else "str")
    )


def _extras(annotation: object) -> Iterator[Mapping[str, Any]]:
    for part in typing.get_args(annotation):
        if isinstance(part, FieldInfo):
            if isinstance(part.json_schema_extra, dict):
                yield part.json_schema_extra
            yield from _extras(part.annotation)
        yield from _extras(part)
