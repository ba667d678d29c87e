"""Changes made outside of the provider, in the control panel or by the service: declared on the fields, used
by rehearsals.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Drift:
    """A trait of an input that can change outside.

    - ``other``: another valid value, given the present one (None where the object has none).
    - ``sent_as``: the field's name in the emulator's control interface, where it differs.
    """

    other: Callable[[Any], Any]
    sent_as: str | None = None


def drifts(inputs: type[BaseModel]) -> Mapping[str, Drift]:
    """The fields of a resource that can change outside."""
    return {
        name: next(item for item in field.metadata if isinstance(item, Drift))
        for name, field in inputs.model_fields.items()
        if any(isinstance(item, Drift) for item in field.metadata)
    }


def renamed(value: str) -> str:
    return f"{value}-renamed"


def inverted(value: bool | None) -> bool:
    return not value


def edited(value: str | None) -> str:
    return "changed in the control panel"
