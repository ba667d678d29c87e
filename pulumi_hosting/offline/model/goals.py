"""What a program declares or reads (`Goal`), and the URNs that an operation is restricted to (`Targets`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pulumi.runtime.proto.alias_pb2 import Alias

from .state import ResourceState


@dataclass
class Goal:
    """A resource as the program declares or reads it: the state that it is to get, still without its URN, and
    what no state holds.
    """

    state: ResourceState
    name: str
    aliases: Iterable[Alias] = ()
    """Other names that it may have had."""
    delete_before_replace: bool | None = None


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
