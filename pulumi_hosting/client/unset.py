"""Arguments that were not given: their fields are not sent. ``None`` is another thing."""

from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")


class Unset(Enum):
    """The type of :data:`UNSET`."""

    UNSET = "not given"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET
"""Not given: the field is not sent. ``None`` is sent as ``null``, which for some fields means "clear"."""

Given: TypeAlias = T | Unset


def given(**arguments: object) -> dict[str, Any]:
    """Those arguments that were given."""
    return {name: value for name, value in arguments.items() if value is not UNSET}
