"""The options of a module: how Ansible reads them, and what they mean."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic.fields import FieldInfo

from generate.returns import ANSIBLE_TYPES, sentence
from pulumi_hosting.resources.base import mentions_secret
from pulumi_hosting.schema.fields import Type, numbers_allowed, type_of

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
        kind = type_of(info.annotation)
        option_type = "list" if kind.several else _ansible(kind)
        elements = kind if kind.several else kind.of
        found = Option(
            option_type,
            [sentence(info.description or "")],
            _ansible(elements) if elements is not None and option_type == "list" else None,
            kind.choices or numbers_allowed(info) or None,
            secret=mentions_secret(info.annotation),
        )
    given = source if isinstance(source, Mapping) else {"description": source}
    return replace(found, **{**given, "description": lines(given.get("description")) or found.description})


def lines(text: str | Sequence[str] | None) -> list[str]:
    return [] if text is None else [text] if isinstance(text, str) else list(text)


def _ansible(type: Type) -> str:
    """What Ansible calls a kind of value; a union of several is text."""
    return "str" if type.kind == "any" else ANSIBLE_TYPES[type.kind]
