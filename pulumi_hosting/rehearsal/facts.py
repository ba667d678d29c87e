"""Values as JSON: what is read, and what a report shows."""

from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, ClassVar

JsonObject = Mapping[str, Any]
"""An object that another program wrote, not checked."""
Json = str | float | bool | None | list["Json"] | dict[str, "Json"]


def mapping(value: object) -> JsonObject:
    """The object; empty if it is none."""
    return value if isinstance(value, Mapping) else {}


class ReportFacts:
    """What machines read of a value: the attributes that ``JSON`` names, in this order."""

    __slots__ = ()
    JSON: ClassVar[tuple[str, ...]]

    def facts(self) -> dict[str, Json]:
        return {name: for_json(getattr(self, name)) for name in self.JSON}


def for_json(value: object) -> Json:
    """Money as a decimal text with two digits, as in the API; moments as texts in UTC.

    >>> for_json({"charged": Decimal("5.005"), "notes": ("new",)})
    {'charged': '5.01', 'notes': ['new']}
    """
    match value:
        case ReportFacts():
            return dict(value.facts())
        case Decimal():
            return str(value.quantize(Decimal("0.01"), ROUND_HALF_UP))
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case float():
            return round(value, 3)
        case Mapping():
            return {str(name): for_json(item) for name, item in value.items()}
        case list() | tuple():
            return [for_json(item) for item in value]
        case None | str() | bool() | int():
            return value
    raise TypeError(f"no JSON for {type(value)}")
