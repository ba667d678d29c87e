"""Validates queries and bodies with the models of the operation table and names what is wrong with them."""

import re
from collections.abc import Mapping
from functools import cache
from typing import get_args
from urllib.parse import parse_qsl

from pydantic import ValidationError
from pydantic_core import from_json

from pulumi_hosting.api.models.body import RequestModel
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.api.values import id_number
from pulumi_hosting.emulator.formats import View
from pulumi_hosting.emulator.messages import Refusal, invalid

# Pydantic's error types as the reasons in `details.fields`.
WORDS: Mapping[str, str] = {
    "missing": "required",
    "extra_forbidden": "unknown",
    "literal_error": "not_allowed",
    "string_too_short": "too_short",
    "string_too_long": "too_long",
    "too_short": "too_few",
    "too_long": "too_many",
    "not_public": "not_public",
    "greater_than_equal": "out_of_range",
    "less_than_equal": "out_of_range",
}

PERIOD_FIELDS = frozenset(("months", "hours", "years"))
_PERIOD_FINDINGS = frozenset(("literal_error", "greater_than_equal", "less_than_equal"))


def refusal(error: ValidationError, operation: Operation) -> Refusal:
    """The error for an invalid body or query: ``validation_error``, or another code of the operation."""
    findings = error.errors(include_url=False, include_context=False, include_input=False)
    fields: dict[str, str] = {}
    for finding in findings:
        name, kind = ".".join(str(part) for part in finding["loc"]) or "body", finding["type"]
        fields.setdefault(name, WORDS.get(kind) or ("wrong_type" if kind.endswith("_type") else "invalid"))
    kinds = {finding["type"] for finding in findings}
    names = {str(finding["loc"][0]) if finding["loc"] else "" for finding in findings}
    if "invalid_period" in operation.codes and names <= PERIOD_FIELDS and kinds <= _PERIOD_FINDINGS:
        return invalid_period(*names)
    if "invalid_period" in operation.codes and names == {""}:
        # In operations with a period, the only rules across fields are those of the period.
        return invalid_period("months", "hours")
    if "invalid_action" in operation.codes and names == {"action"} and kinds == {"literal_error"}:
        return Refusal("invalid_action", details={"fields": {"action": "invalid_action"}})
    return invalid(**fields)


def invalid_period(*names: str) -> Refusal:
    return Refusal("invalid_period", details={"fields": dict.fromkeys(sorted(names), "invalid_period")})


def read_query(operation: Operation, raw: str) -> dict[str, str]:
    """The query as a dictionary; repeated and unknown parameters are refused."""
    query: dict[str, str] = {}
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise Refusal("invalid_request", "the query cannot be parsed") from error
    for name, value in pairs:
        if name in query:
            raise invalid(**{name: "repeated"})
        query[name] = value
    if operation.query is None and query:
        raise invalid(**dict.fromkeys(query, "unknown"))
    return query


def check_query(operation: Operation, query: Mapping[str, str]) -> RequestModel | None:
    if operation.query is None:
        return None
    values: dict[str, object] = dict(query)
    for name in _integers(operation.query) & set(query):
        if not re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", query[name]):
            raise invalid(**{name: "invalid"})
        values[name] = int(query[name])
    try:
        # Not strict: a query holds strings only, and timestamps are parsed from them.
        return operation.query.model_validate(values, strict=False)
    except ValidationError as error:
        raise refusal(error, operation) from error


@cache
def _integers(model: type[RequestModel]) -> frozenset[str]:
    """The integer fields of a query, those with enumerated values included."""

    def is_integer(kind: object) -> bool:
        return kind is int or type(kind) is int or any(is_integer(part) for part in get_args(kind))

    return frozenset(name for name, field in model.model_fields.items() if is_integer(field.annotation))


def read_body(operation: Operation, headers: Mapping[str, str], body: bytes) -> View | None:
    """The JSON of a body; ``None`` if there is none and none is required."""
    if not operation.is_write:
        return None
    # A content type without a body is ignored if no body is required.
    if not body and (operation.request is None or operation.body_optional):
        return None
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    if media_type != "application/json" and (body or media_type):
        raise Refusal("unsupported_media_type")
    try:
        # The document is silent about a name that stands twice: the last one counts, as in most parsers.
        data = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise Refusal("invalid_request", "the body is not JSON") from error
    if not isinstance(data, dict):
        raise Refusal("invalid_request", "the body is not a JSON object")
    return data


def check_body(operation: Operation, data: View | None) -> RequestModel | None:
    """The body as the operation's model; ``validation_error`` if it does not fit."""
    model: type[RequestModel] | None = operation.request
    if model is None:
        if data:
            raise invalid(**dict.fromkeys(data, "unknown"))
        return None
    data = dict(data or {})
    if operation.id == "create_server" and "name" not in data and "server_name" in data:
        # An older name of the field, still accepted by live deployments.
        data["name"] = data.pop("server_name")
    try:
        body = model.model_validate(data)
    except ValidationError as error:
        raise refusal(error, operation) from error
    # The models use None for a field that is left out; in JSON only few fields may be null.
    if None in data.values():
        nulls = [name for name, value in data.items() if value is None and not model.may_be_null(name)]
        if nulls:
            raise invalid(**dict.fromkeys(nulls, "wrong_type"))
    return body


def path_ids(raw: Mapping[str, str]) -> dict[str, int]:
    """Path parameters as positive 64-bit ids; ``not_found`` for anything else."""
    ids = {}
    for name, text in raw.items():
        number = id_number(text)
        if number is None:
            raise Refusal("not_found")
        ids[name] = number
    return ids
