"""One field, one place: what a state shows and what a change sends follow from the API's models.

An input that the API's body of a change has too changes in place. A field of a state marked with :class:`At`
holds what the API shows there, and means what the API's document says of it, unless it has a text of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any, get_args

from pydantic import BaseModel

from pulumi_hosting.api import models as m
from pulumi_hosting.session.text import as_text


@dataclass(frozen=True, slots=True)
class At:
    """Where the API's object has a field of a state: a ``path`` such as ``billing.auto_renew``; by default
    the field of the same name.
    """

    path: str = ""


def paths(state: type[BaseModel]) -> Mapping[str, str]:
    """The fields of a state that the API shows, and where."""
    marked = {
        name: next((mark.path or name for mark in info.metadata if isinstance(mark, At)), None)
        for name, info in state.model_fields.items()
    }
    return {name: path for name, path in marked.items() if path is not None}


def parts(annotation: Any) -> tuple[Any, ...]:
    """The type itself, and what it may be instead."""
    return (annotation, *get_args(annotation))


def field_at(model: type[BaseModel], path: str) -> Any:
    """The declaration of the API's field. Raises ``KeyError`` for a path that the model does not have."""
    *heads, last = path.split(".")
    for head in heads:
        kinds = parts(model.model_fields[head].annotation)
        model = next(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
    return model.model_fields[last]


def describe(model: type[BaseModel], at: Mapping[str, str], api: type[BaseModel]) -> None:
    """Give the fields of a model that have no text, or no examples, of their own those of the API's field.
    Raises ``KeyError`` for a path that is not there.
    """
    for name, path in at.items():
        found, own = field_at(api, path), model.model_fields[name]
        own.description = own.description or found.description
        own.examples = own.examples or found.examples


@cache
def _getters(state: type[BaseModel]) -> tuple[tuple[str, Callable[[Any], Any] | None, str], ...]:
    """Of each field: its name, what reads the object within that it stands in, and its name there."""
    return tuple(
        (name, attrgetter(head) if head else None, last)
        for name, path in paths(state).items()
        for head, _, last in [path.rpartition(".")]
    )


def shown(state: type[BaseModel], found: m.Response) -> dict[str, Any]:
    """The fields of a state that the API shows, as a state holds them: money and time as text."""
    values: dict[str, Any] = {}
    for name, within, last in _getters(state):
        holder = within(found) if within else found
        value = None if holder is None else getattr(holder, last)
        values[name] = as_text(value) if isinstance(value, Decimal | datetime) else value
    return values
