"""How a control call becomes a Starlette endpoint: body in, JSON out, errors as ``{"error": …}``."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, to_json
from starlette.requests import Request
from starlette.responses import Response

from pulumi_hosting.emulator import events
from pulumi_hosting.emulator.core import Core
from pulumi_hosting.emulator.formats import format_http_date

# The default of a field that may be left out; null is refused. `Body.given` has it only if it was sent.
LEFT_OUT: Any = None

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


class Query(BaseModel):
    """The query of a control call; unknown parameters are ignored."""

    model_config = ConfigDict(defer_build=True)


def answer(core: Core, view: object, status: int = 200) -> Response:
    """A JSON response with the emulator's own ``Date``."""
    headers = {"Content-Type": "application/json", "Date": format_http_date(core.clock.now())}
    return Response(to_json(view), status, headers)


def endpoint(
    function: Callable[..., Any], body: type[Body] | None = None, *, locked: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that calls ``function(core, **path parameters)``, with ``body`` or ``query`` if it has such
    a parameter. The model of the body is ``body``, or what the parameter says.

    ``locked``: hold the core's lock during the call, run what is due before it and save after it.
    """
    body_model = body or function.__annotations__.get("body")
    query_model = function.__annotations__.get("query")

    def respond(core: Core, arguments: dict[str, Any], raw: bytes, query: Mapping[str, str]) -> Response:
        try:
            if body_model is not None:
                arguments["body"] = _parsed(
                    lambda: body_model.model_validate_json(raw.strip() or b"{}"), body_model
                )
            if query_model is not None:
                arguments["query"] = _parsed(lambda: query_model.model_validate(dict(query)), query_model)
            return answer(core, _locked(core, function, arguments) if locked else function(core, **arguments))
        except ControlError as error:
            return answer(core, {"error": str(error)}, error.status)
        except Exception as error:  # a bug is answered, and the emulator goes on
            log.exception("a control call failed")
            return answer(
                core,
                {"error": f"internal error of the emulator: {type(error).__name__}. Next: see its log"},
                500,
            )

    async def serve(request: Request) -> Response:
        state = request.app.state
        raw = await request.body()
        response: Response = await state.run(
            respond, state.core, dict(request.path_params), raw, request.query_params
        )
        return response

    serve.__name__ = function.__name__
    serve.__doc__ = function.__doc__
    return serve


def _locked(core: Core, function: Callable[..., Any], arguments: dict[str, Any]) -> object:
    with core.lock:
        core.run_due()
        now = core.clock.now()
        with events.low_balance_events(core.store, now, now):
            view = function(core, **arguments)
        core.save()
    core.wake()
    return view


def _parsed(parse: Callable[[], BaseModel], model: type[BaseModel]) -> BaseModel:
    try:
        return parse()
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
        return f"unknown field: {names}; known: {', '.join(known)}"
    first = details[0]
    name = ".".join(str(part) for part in first["loc"])
    return f"{name}: {_message(first)}" if name else _message(first)


def _model_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel]:
    for part in loc:
        annotation = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else model
    return model


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "json_invalid":
        return f"the body is not JSON: {detail['ctx']['error']}"
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    if detail["type"] == "model_type":
        return "must be a JSON object"
    if detail["type"] == "missing":
        return "is required"
    return detail["msg"].replace("Input should be", "must be") + f", given {detail['input']!r}"
