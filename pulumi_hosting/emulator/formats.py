"""Timestamps, money, seconds and whole objects as the API writes them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import formatdate
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, get_args

from pydantic import AliasChoices, AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

CENT = Decimal("0.01")

View = dict[str, Any]
"""A JSON object as it is answered."""

Write = Callable[[Any], object]
"""How a value is written in JSON."""


def format_timestamp(moment: float | None) -> str | None:
    """Unix seconds as RFC 3339 in UTC, to the millisecond; ``None`` stays ``None``."""
    if moment is None:
        return None
    second, milliseconds = divmod(round(moment * 1000), 1000)
    return f"{_to_the_second(second)}.{milliseconds:03}Z" if milliseconds else f"{_to_the_second(second)}Z"


@lru_cache(1024)
def _to_the_second(second: int) -> str:
    """Without the ``Z``."""
    return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")


@lru_cache(16)
def format_http_date(second: int) -> str:
    """A whole unix second as a ``Date`` header (IMF-fixdate)."""
    return formatdate(second, usegmt=True)


def parse_timestamp(text: str) -> float:
    """Unix seconds of an RFC 3339 timestamp with ``Z`` or an offset; ``ValueError`` for anything else."""
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise ValueError("a timestamp needs Z or an offset")
    return value.timestamp()


@lru_cache(1024)
def format_money(value: Decimal) -> str:
    """A money string: two fraction digits, up to four if the value has them (hourly prices)."""
    # Equal values share an entry of the cache, and -0 equals 0: the sum has no sign.
    return f"{value + 0:.2f}" if value == value.quantize(CENT) else f"{value.normalize():f}"


def format_seconds(value: float) -> str:
    """Seconds for a header, without a fraction if it is zero."""
    return str(int(value)) if value == int(value) else str(value)


# --- objects ----------------------------------------------------------------------------------------------


def shown_as(model: type[BaseModel], row: Any = None, /, **own: object) -> View:
    """An object with the fields of ``model``: those in ``own``, the others from the columns of ``row`` that
    have their names, or null.

    Money, times and percentages are written as the types of the model say. A field that dialects name
    differently is sent under each of its names. A name in ``own`` that the model does not have is refused.
    """
    empty, columns, values_of, written, others = _plan(model, row.__class__)
    view = empty.copy()
    view.update(zip(columns, values_of(row)))  # noqa: B905  # of one length, and the check takes time
    view.update(own)
    if len(view) > len(empty):
        raise TypeError(f"{model.__name__} has no field {', '.join(own.keys() - empty.keys())}")
    for name, write in written:
        if (value := view[name]) is not None:
            view[name] = write(value)
    for other, name in others:
        view[other] = view[name]
    return view


class _Plan(NamedTuple):
    """How rows of one class become objects of one model. ``others``: the second names of fields."""

    empty: View
    columns: tuple[str, ...]
    values_of: Callable[[Any], Iterable[object]]
    written: tuple[tuple[str, Write], ...]
    others: tuple[tuple[str, str], ...]


@lru_cache(512)  # a store that is kept in a file has classes of its own
def _plan(model: type[BaseModel], row: type[Any]) -> _Plan:
    fields = [
        (_names(name, field), set(_kinds(field.annotation))) for name, field in model.model_fields.items()
    ]
    known = {*dir(row), *getattr(row, "__dataclass_fields__", ())}
    columns = tuple(names[0] for names, _ in fields if names[0] in known)
    return _Plan(
        empty=dict.fromkeys(name for names, _ in fields for name in names),
        columns=columns,
        # Twice as fast as getattr, but for one name it returns the value alone.
        values_of=attrgetter(*columns)
        if len(columns) > 1
        else lambda row: [getattr(row, name) for name in columns],
        written=tuple(
            (names[0], _WRITTEN[kind]) for names, kinds in fields for kind in kinds & _WRITTEN.keys()
        ),
        others=tuple((other, names[0]) for names, _ in fields for other in names[1:]),
    )


def _names(name: str, field: FieldInfo) -> tuple[str, ...]:
    """The names of a field in answers."""
    if field.serialization_alias is not None:
        return (field.serialization_alias,)
    choices = field.validation_alias
    return tuple(map(str, choices.choices)) if isinstance(choices, AliasChoices) else (name,)


def _kinds(annotation: object) -> Iterator[object]:
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def _number(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else value


_WRITTEN: dict[object, Write] = {Decimal: format_money, AwareDatetime: format_timestamp, float: _number}
