"""What a program declares or reads (`Goal`), and the URNs that an operation is restricted to (`Targets`)."""

import re
from dataclasses import dataclass, field
from functools import cached_property

from .property_values import Properties


@dataclass(frozen=True)
class Alias:
    """Another name a resource may have had: a whole URN, or the parts that differ."""

    urn: str = ""
    name: str = ""
    type: str = ""
    stack: str = ""
    project: str = ""
    parent: str = ""
    no_parent: bool = False


@dataclass
class Goal:
    """A resource as the program declares or reads it."""

    type: str
    name: str
    custom: bool = False
    properties: Properties = field(default_factory=dict)
    parent: str = ""
    protect: bool | None = None
    dependencies: list[str] = field(default_factory=list)
    provider: str = ""
    property_dependencies: dict[str, list[str]] = field(default_factory=dict)
    delete_before_replace: bool | None = None
    ignore_changes: list[str] = field(default_factory=list)
    additional_secret_outputs: list[str] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    import_id: str = ""
    id: str = ""
    """Of a resource that the program reads."""
    custom_timeouts: dict[str, float] = field(default_factory=dict)
    replace_on_changes: list[str] = field(default_factory=list)
    replacement_trigger: object = None
    retain_on_delete: bool | None = None
    deleted_with: str = ""
    replace_with: list[str] = field(default_factory=list)
    hide_diff: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Targets:
    """URNs that an operation is restricted to; `*` matches anything but a colon, `**` anything.

    Without any: all.
    """

    patterns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def __contains__(self, urn: object) -> bool:
        return not self.patterns or self._expression.fullmatch(str(urn)) is not None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        escaped = map(re.escape, self.patterns)
        return re.compile("|".join(text.replace(r"\*\*", ".*").replace(r"\*", "[^:]*") for text in escaped))
