"""Changes made outside of the provider, in the control panel or by the service: declared on the fields, used
by rehearsals.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pulumi_hosting.resources.api_fields import parts
from pulumi_hosting.resources.base import Inputs


@dataclass(frozen=True, slots=True)
class Drift:
    """A trait of an input that can change outside. A setting without it becomes another text, or the
    opposite.

    - ``other``: another valid value, given the present one (None if the object has none).
    - ``sent_as``: the field's name in the emulator's control interface, if it differs.
    """

    other: Callable[[Any], Any]
    sent_as: str | None = None


def drifts(inputs: type[Inputs]) -> Mapping[str, Drift]:
    """The fields of a resource that can change outside: its settings, and those that say how."""
    found = {}
    for name, field in inputs.model_fields.items():
        declared = next((item for item in field.metadata if isinstance(item, Drift)), None)
        if declared is not None:
            found[name] = declared
        elif name in inputs.settings():
            found[name] = Drift(_inverted if bool in parts(field.annotation) else _edited)
    return found


def renamed(value: str) -> str:
    return f"{value}-renamed"


def _inverted(value: bool | None) -> bool:
    return not value


def _edited(value: str | None) -> str:
    return "changed in the control panel"
