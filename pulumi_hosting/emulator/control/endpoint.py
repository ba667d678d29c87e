"""What a control call is: body in, JSON out, errors as ``{"error": …}``; and what the bodies are made of."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, TypeVar, get_args
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, create_model
from pydantic_core import ErrorDetails

from pulumi_hosting.emulator import events
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_timestamp, parse_timestamp
from pulumi_hosting.emulator.messages import Answer, ApiRequest
from pulumi_hosting.emulator.rows import AccountRow, Editable, Row

# The default of a field that may be left out; null is refused. `Body.given` has it only if it was sent.
LEFT_OUT: Any = None

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
R = TypeVar("R", bound=Row)

log = logging.getLogger("pulumi_hosting.emulator")


class ControlError(Exception):
    """A control call that is refused; the message is the answer's ``error``."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


class Body(BaseModel):
    """The JSON object of a control call. Unknown fields and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    def given(self) -> dict[str, Any]:
        """The fields that were sent, by name."""
        return {
            name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set
        }


@dataclass(frozen=True)
class Route:
    """A control call: ``function(core, **path parameters)``, with ``body`` or ``query`` if it has such a
    parameter. The model of the body is ``body``, or what the parameter says; without one no field is known.

    ``locked``: hold the core's lock during the call, run what is due before it and save after it.
    """

    method: str
    path: str
    function: Callable[..., object]
    body: type[BaseModel] | None = None
    locked: bool = True

    def answer(self, core: Core, ids: Mapping[str, int], request: ApiRequest) -> Answer:
        arguments: dict[str, object] = dict(ids)
        kinds = self.function.__annotations__
        try:
            body = self.body or kinds.get("body")
            if body or self.method != "GET":
                model = body or Body
                content = parsed(model, model.model_validate_json, request.body.strip() or b"{}")
                arguments |= {"body": content} if body else {}
            if query := kinds.get("query"):
                given = dict(parse_qsl(request.query, keep_blank_values=True))
                arguments["query"] = parsed(query, query.model_validate, given)
            call = partial(self.function, core, **arguments)
            return Answer(200, _locked(core, call) if self.locked else call())
        except ControlError as error:
            return Answer(error.status, {"error": str(error)})
        except Exception as error:  # a bug is answered, and the emulator goes on
            log.exception("a control call failed")
            words = f"internal error of the emulator: {type(error).__name__}. Next: see its log"
            return Answer(500, {"error": words})


def _locked(core: Core, call: Callable[[], object]) -> object:
    with core.lock:
        core.run_due()
        with events.low_balance_events(core.store):
            view = call()
        core.save()
    core.wake()
    return view


def parsed(model: type[M], validate: Callable[[T], M], given: T) -> M:
    """What is given, as this model. Raises ``ControlError``, which says what is wrong with it."""
    try:
        return validate(given)
    except ValidationError as error:
        raise ControlError(_explained(error, model)) from error


def _explained(error: ValidationError, model: type[BaseModel]) -> str:
    """One line for the first thing wrong with a body; unknown fields first, with the known ones."""
    details = error.errors(include_url=False)
    unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    if unknown:
        names = ", ".join(sorted(".".join(map(str, loc)) for loc in unknown))
        fields = _model_at(model, unknown[0][:-1]).model_fields
        known = (field.alias or name for name, field in fields.items())
        return f"unknown field: {names}; known: {', '.join(known) or 'none'}"
    first = details[0]
    name = ".".join(str(part) for part in first["loc"])
    return f"{name}: {_message(first)}" if name else _message(first)


def _model_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel]:
    for part in loc:
        annotation = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        for kind in (annotation, *get_args(annotation)):  # itself, or what a list holds
            model = kind if isinstance(kind, type) and issubclass(kind, BaseModel) else model
    return model


_MESSAGES = {
    "model_type": "must be a JSON object",
    "missing": "is required",
    "decimal_type": "must be a decimal number as a string",
    "decimal_parsing": "must be a decimal number as a string",
    "decimal_max_places": "must not have more than four fraction digits",
}


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "json_invalid":
        return f"the body is not JSON: {detail['ctx']['error']}"
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    own = detail["msg"].replace("Input should be", "must be")
    return _MESSAGES.get(detail["type"]) or f"{own}, given {detail['input']!r}"


# --- bodies made of columns, and types of fields that several calls have -----------------------------------

MAX_AMOUNT = Decimal(10) ** 12


def _moment(value: object) -> float:
    try:
        moment = (
            float(value)
            if isinstance(value, int | float) and not isinstance(value, bool)
            else parse_timestamp(str(value))
        )
        format_timestamp(moment)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise ValueError("must be an RFC 3339 timestamp or unix seconds") from error
    return moment


Amount = Annotated[Decimal, Field(ge=0, le=MAX_AMOUNT, decimal_places=4)]
Balance = Annotated[Decimal, Field(ge=-MAX_AMOUNT, le=MAX_AMOUNT, decimal_places=4)]
Percent = Annotated[Decimal, Field(ge=0, le=100, decimal_places=4)]
Moment = Annotated[float, PlainValidator(_moment)]
Timestamp = Moment | None


def columns_of(row: type[Row], **kinds: object) -> type[Body]:
    """A body with the editable columns of ``row``, each of which may be left out.

    ``kinds``: the types of columns that are checked otherwise than their own type says, and of fields that
    are no columns.
    """
    marks = {
        column.name: (column.type, mark)
        for column in fields(row)
        for mark in get_args(column.type)
        if isinstance(mark, Editable)
    }
    known: dict[str, Any] = {name: (kind, LEFT_OUT) for name, kind in kinds.items() if name not in marks}
    for name, (kind, mark) in marks.items():
        known[name] = (kinds.get(name, kind), Field(LEFT_OUT, alias=mark.name))
    return create_model(f"{row.__name__}Body", __base__=Body, **known)


def assign(row: Row, body: Body, *apart: str) -> None:
    """Set the columns that were sent, those in ``apart`` left out."""
    for name, value in body.given().items():
        if name not in apart:
            setattr(row, name, value)


def find(table: Mapping[int, R], id: int, what: str) -> R:
    """A row by its id; 404 if there is none."""
    row = table.get(id)
    if row is None:
        raise ControlError(f"there is no {what} {id}", 404)
    return row


def account_of(core: Core, account_id: int | None) -> AccountRow:
    """The account of that id; without one the first account."""
    if account_id is None:
        return next(iter(core.store.accounts.values()))
    return find(core.store.accounts, account_id, "account")
